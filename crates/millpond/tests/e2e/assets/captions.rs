//! Captions within pictures (CEA-608): manifests announce them, and ffmpeg reads them in the segments.

use crate::support::{self, Server, clips};
use std::{fs, path::Path, process::Command, sync::OnceLock};

/// Letters of the captions, an even number.
pub(crate) const LETTERS: &str = "HELLO!";
/// The beginning of each tag of a channel.
pub(crate) const CHANNEL: &str = "#EXT-X-MEDIA:TYPE=CLOSED-CAPTIONS,GROUP-ID=\"cc\",";

/// A place with the same captioned pictures in each container, and a transport stream without captions. Made once.
pub(crate) fn place() -> &'static str {
    static FOLDER: OnceLock<String> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("captions-1");
        let (raw, served) = (root.join("raw"), root.join("served"));
        fs::create_dir_all(&raw).unwrap();
        fs::create_dir_all(&served).unwrap();
        let coded = "V -t 2 -c:v libx264 -preset ultrafast -bf 0 -g 25";
        clips::make(&raw.join("plain.h264"), coded);
        clips::make(&served.join("silent.ts"), coded);
        let captioned = raw.join("captioned.h264");
        fs::write(&captioned, with_captions(&fs::read(raw.join("plain.h264")).unwrap())).unwrap();
        clips::make(&served.join("film.mp4"), &format!("-r 25 -i {} -c copy", captioned.display()));
        clips::make(&served.join("packets.ts"), &format!("-i {} -c copy", served.join("film.mp4").display()));
        for other in ["film.mkv", "film.flv"] {
            clips::make(&served.join(other), &format!("-i {} -c copy", served.join("film.mp4").display()));
        }
        served.to_str().unwrap().to_owned()
    })
}

/// Puts a message with the next two bytes of line 21 before each picture of a byte stream.
fn with_captions(stream: &[u8]) -> Vec<u8> {
    let (mut pairs, mut out, mut rest) = (line_21().into_iter(), Vec::new(), stream);
    while let Some(at) = rest.windows(3).position(|three| three == [0_u8, 0, 1]) {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at + 3..];
        // The first slice of a picture.
        if matches!(rest[0] & 0x1f, 1 | 5) && rest[1] & 0x80 != 0 {
            let [first, second] = pairs.next().unwrap_or([0x80; 2]);
            out.extend([0, 0, 1, 6, 4, 14, 0xb5, 0, 0x31]);
            out.extend(b"GA94");
            out.extend([3, 0xc1, 0xff, 0xfc, first, second, 0xff, 0x80]);
        }
        out.extend([0, 0, 1]);
    }
    out.extend_from_slice(rest);
    out
}

/// The bytes of line 21 for each picture: captions that pop on, and later off.
fn line_21() -> Vec<[u8; 2]> {
    let odd = |byte: u8| if byte.count_ones() % 2 == 1 { byte } else { byte | 0x80 };
    let command = |second: u8| [[0x14, second]; 2];
    let letters = LETTERS.as_bytes().chunks_exact(2).map(|two| [two[0], two[1]]);
    let begin = [[0, 0]; 5].into_iter().chain(command(0x20)).chain(command(0x60));
    let shown = begin.chain(letters).chain(command(0x2f));
    let all = shown.chain([[0, 0]; 20]).chain(command(0x2c));
    all.map(|pair| pair.map(odd)).collect()
}

fn text(server: &Server, path: &str) -> String {
    let reply = server.get(path);
    assert_eq!(reply.status, 200, "{path}: {}", reply.text());
    reply.text()
}

#[test]
fn indexing_finds_captions_in_pictures_that_it_reads() {
    let server = &Server::start(&[place()]);
    let captioned = ["packets.ts", "film.mkv", "film.flv"];
    for list in ["index.m3u8", "ts/index.m3u8"] {
        for title in captioned {
            let found = text(server, &format!("{title}/{list}"));
            let expected = format!("{CHANNEL}NAME=\"CC1\",DEFAULT=NO,AUTOSELECT=YES,INSTREAM-ID=\"CC1\"\n");
            assert!(found.contains(&expected) && found.contains(",CLOSED-CAPTIONS=\"cc\"\n"), "{title}: {found}");
            assert_eq!(found.matches("TYPE=CLOSED-CAPTIONS").count(), 1, "{title}: {found}");
        }
        let silent = text(server, &format!("silent.ts/{list}"));
        assert!(silent.contains(",CLOSED-CAPTIONS=NONE\n") && !silent.contains("TYPE=CLOSED"), "{silent}");
        // Pictures of MP4 are not read for the index.
        let unknown = text(server, &format!("film.mp4/{list}"));
        assert!(unknown.contains("#EXT-X-STREAM-INF") && !unknown.contains("CLOSED-CAPTIONS"), "{unknown}");
    }
    for title in captioned {
        let mpd = text(server, &format!("{title}/index.mpd"));
        let expected = "<Accessibility schemeIdUri=\"urn:scte:dash:cc:cea-608:2015\" value=\"CC1=und\"/>";
        assert!(mpd.contains(expected) && !mpd.contains("cea-708"), "{title}: {mpd}");
    }
    for other in ["silent.ts", "film.mp4"] {
        assert!(!text(server, &format!("{other}/index.mpd")).contains("urn:scte:dash:cc"), "{other}");
    }
}

/// Writes the segment of a film in a container into a file.
fn segment(server: &Server, parts: &[&str], file: &Path) {
    let bytes: Vec<u8> = parts.iter().flat_map(|part| server.get(part).body).collect();
    fs::write(file, bytes).unwrap();
}

/// Number of pictures in which ffprobe sees captions.
pub(crate) fn captioned_pictures(file: &Path) -> usize {
    let mut ffprobe = Command::new("ffprobe");
    ffprobe.args(["-v", "error", "-select_streams", "v", "-show_frames", "-show_entries", "frame=side_data_list"]);
    let output = ffprobe.arg(file).output().unwrap();
    String::from_utf8_lossy(&output.stdout).matches("ATSC A53 Part 4 Closed Captions").count()
}

/// The captions that ffmpeg reads in pictures, as SubRip.
pub(crate) fn read_captions(file: &Path) -> String {
    let source = format!("movie={}[out0+subcc]", file.display());
    let args = ["-v", "error", "-nostdin", "-f", "lavfi", "-i", &source, "-map", "0:s", "-f", "srt", "-"];
    let output = Command::new("ffmpeg").args(args).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn stated_captions_are_announced_and_are_in_the_segments() {
    let server = &Server::start(&[place(), "--captions", "CC1=eng,CC3=es"]);
    for title in ["film.mp4", "silent.ts"] {
        let list = text(server, &format!("{title}/index.m3u8"));
        for (name, language, channel) in [("English", "en", "CC1"), ("Spanish", "es", "CC3")] {
            let named = format!("{CHANNEL}NAME=\"{name}\",LANGUAGE=\"{language}\",");
            assert!(list.contains(&named) && list.contains(&format!(",INSTREAM-ID=\"{channel}\"\n")), "{list}");
        }
        assert!(list.contains(",CLOSED-CAPTIONS=\"cc\"\n"), "{list}");
        let mpd = text(server, &format!("{title}/index.mpd"));
        assert!(mpd.contains("\"urn:scte:dash:cc:cea-608:2015\" value=\"CC1=eng;CC3=spa\"/>"), "{mpd}");
    }
    if !support::have("ffprobe") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for title in ["film.mp4", "packets.ts"] {
        let path = |part: &str| format!("{title}/{part}");
        for (name, parts) in
            [("s.ts", vec![path("ts/v1/1.ts")]), ("s.mp4", vec![path("v1/init.mp4"), path("v1/1.m4s")])]
        {
            let file = folder.path().join(name);
            segment(server, &parts.iter().map(String::as_str).collect::<Vec<_>>(), &file);
            assert_eq!(captioned_pictures(&file), 50, "{title} {name}");
            let captions = read_captions(&file);
            assert!(captions.contains(LETTERS), "{title} {name}: {captions}");
        }
    }
}

#[test]
fn a_place_has_its_own_rule() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("millpond.toml");
    let films = place();
    let content = format!(
        "captions = \"CC1=en\"\n[places.a]\nurl = \"{films}\"\n[places.b]\nurl = \"{films}\"\ncaptions = \"off\"\n\
         [places.c]\nurl = \"{films}\"\ncaptions = \"auto\"\n"
    );
    fs::write(&config, content).unwrap();
    let server = &Server::start(&["--config", config.to_str().unwrap()]);
    assert!(text(server, "a/packets.ts/index.m3u8").contains("LANGUAGE=\"en\""));
    assert!(text(server, "b/packets.ts/index.m3u8").contains(",CLOSED-CAPTIONS=NONE\n"));
    assert!(text(server, "c/packets.ts/index.m3u8").contains("NAME=\"CC1\""));
    // Another rule makes another version, which caches keep apart.
    let version = |place: &str| {
        let list = text(server, &format!("{place}/packets.ts/index.m3u8"));
        list.lines().find_map(|line| line.strip_prefix('~')?.split('/').next().map(str::to_owned)).unwrap()
    };
    assert!(version("a") != version("b") && version("b") != version("c"));
}
