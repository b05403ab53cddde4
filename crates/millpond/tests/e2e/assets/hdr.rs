//! Colours and light of HDR pictures: what ffprobe finds in our fragments is what it finds in the file.

use crate::support::{self, Server};
use serde_json::Value;
use std::{collections::BTreeMap, path::Path, process::Command};

/// PQ pictures of BT.2020.
const PQ: &str = "-pix_fmt yuv420p10le -color_primaries bt2020 -color_trc smpte2084 -colorspace bt2020nc";

/// Bodies of `mdcv` and `clli`: the display of BT.2100 with 1,000 cd/m2, and pictures of 1,000 and 400 cd/m2.
const DISPLAY: [u16; 8] = [13_250, 34_500, 7500, 3000, 34_000, 16_000, 15_635, 16_450];
const LUMINANCES: [u32; 2] = [10_000_000, 50];
const LEVELS: [u16; 2] = [1000, 400];

fn ffmpeg(args: &str, output: &Path) {
    let result = Command::new("ffmpeg").args(["-v", "error"]).args(args.split_whitespace()).arg(output).output();
    let result = result.unwrap();
    assert!(result.status.success(), "{args}: {result:?}");
}

fn boxed(kind: &[u8; 4], body: &[u8]) -> Vec<u8> {
    let size = u32::try_from(body.len() + 8).unwrap();
    [&size.to_be_bytes()[..], kind, body].concat()
}

fn place(bytes: &[u8], from: usize, kind: &[u8; 4]) -> Option<usize> {
    bytes[from..].windows(4).position(|four| four == kind).map(|at| from + at - 4)
}

/// Adds the light to the pictures of an MP4 file, whose movie box is behind the media.
fn add_light(file: &Path) {
    let mut bytes = std::fs::read(file).unwrap();
    let movie = place(&bytes, 0, b"moov").unwrap();
    assert!(place(&bytes, 0, b"mdat").unwrap() < movie);
    let display: Vec<u8> = DISPLAY.iter().flat_map(|code| code.to_be_bytes()).collect();
    let luminances: Vec<u8> = LUMINANCES.iter().flat_map(|code| code.to_be_bytes()).collect();
    let levels: Vec<u8> = LEVELS.iter().flat_map(|code| code.to_be_bytes()).collect();
    let light = [boxed(b"mdcv", &[display, luminances].concat()), boxed(b"clli", &levels)].concat();
    let size = |bytes: &[u8], at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
    let entry = [b"hev1", b"hvc1"].into_iter().find(|kind| place(&bytes, movie, kind).is_some()).unwrap();
    for kind in [b"moov", b"trak", b"mdia", b"minf", b"stbl", b"stsd", entry] {
        let at = place(&bytes, movie, kind).unwrap();
        let grown = size(&bytes, at) + u32::try_from(light.len()).unwrap();
        bytes[at..at + 4].copy_from_slice(&grown.to_be_bytes());
    }
    let colors = place(&bytes, movie, b"colr").unwrap();
    let behind = colors + size(&bytes, colors) as usize;
    bytes.splice(behind..behind, light);
    std::fs::write(file, bytes).unwrap();
}

/// Colours and side data of the pictures of a file. Fractions are numbers: writers reduce them or not.
fn colors(file: &Path) -> BTreeMap<String, String> {
    let entries = "stream=color_range,color_space,color_transfer,color_primaries:stream_side_data";
    let args = ["-v", "error", "-select_streams", "v", "-show_entries", entries, "-of", "json"];
    let output = Command::new("ffprobe").args(args).arg(file).output().unwrap();
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let stream = found["streams"][0].as_object().unwrap_or_else(|| panic!("{found}"));
    let mut facts = BTreeMap::new();
    for (name, value) in stream.iter().filter(|(name, _)| *name != "side_data_list") {
        facts.insert(name.clone(), value.to_string());
    }
    let data = stream.get("side_data_list").and_then(Value::as_array).into_iter().flatten();
    for data in data.filter(|data| data["side_data_type"] != "DOVI configuration record") {
        for (name, value) in data.as_object().unwrap().iter().filter(|(name, _)| *name != "side_data_type") {
            let fraction = value.as_str().and_then(|text| text.split_once('/'));
            let number = fraction.map(|(above, below)| {
                let [above, below] = [above, below].map(|number| number.parse::<f64>().unwrap());
                format!("{:.5}", above / below)
            });
            facts.insert(format!("{} {name}", data["side_data_type"]), number.unwrap_or_else(|| value.to_string()));
        }
    }
    facts
}

/// The first segment of a title's pictures, with its init segment, as a file.
fn segment(server: &Server, name: &str, folder: &Path) -> std::path::PathBuf {
    let mut bytes = Vec::new();
    for part in ["v1/init.mp4", "v1/1.m4s"] {
        let reply = server.get(&format!("{name}/{part}"));
        assert_eq!(reply.status, 200, "{name}/{part}: {}", String::from_utf8_lossy(&reply.body));
        bytes.extend(reply.body);
    }
    let file = folder.join(format!("{name}.fragments.mp4"));
    std::fs::write(&file, bytes).unwrap();
    file
}

#[test]
fn light_and_colors_of_hdr_are_those_of_the_file() {
    if !support::have("ffmpeg") || !support::have("ffprobe") {
        return;
    }
    let (folder, made) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = |name: &str| folder.path().join(name);
    let pictures = "-f lavfi -i testsrc2=size=320x180:rate=25:duration=1";
    let x265 = "log-level=error:colorprim=bt2020:transfer=smpte2084:colormatrix=bt2020nc";
    ffmpeg(&format!("{pictures} -c:v libx265 -preset ultrafast -x265-params {x265} {PQ}"), &path("light.mp4"));
    add_light(&path("light.mp4"));
    ffmpeg(&format!("-i {} -c copy", path("light.mp4").display()), &path("light.mkv"));
    ffmpeg(&format!("{pictures} -c:v libvpx-vp9 -profile:v 2 -deadline realtime -cpu-used 8 {PQ}"), &path("vp9.webm"));
    let server = Server::start(&[folder.path().to_str().unwrap()]);
    for (name, has_light) in [("light.mp4", true), ("light.mkv", true), ("vp9.webm", false)] {
        let expected = colors(&path(name));
        assert_eq!(expected.get("color_transfer").map(String::as_str), Some("\"smpte2084\""), "{name}: {expected:?}");
        let light = expected.keys().filter(|key| key.contains("luminance") || key.contains("max_content")).count();
        assert_eq!(light, if has_light { 3 } else { 0 }, "{name}: {expected:?}");
        assert_eq!(colors(&segment(&server, name, made.path())), expected, "{name}");
        let list = server.get(&format!("{name}/index.m3u8")).text();
        assert!(list.contains("VIDEO-RANGE=PQ"), "{name}: {list}");
    }
}
