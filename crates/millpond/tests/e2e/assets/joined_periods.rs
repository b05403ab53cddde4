//! Clips in one file that need decoders of several kinds: periods of HLS and DASH.

use super::joined::{BASELINE, LARGE, join, same};
use crate::support::{
    self, Server, clips,
    decode::{self, Sound},
};
use std::{path::Path, process::Command};

/// HEVC with sound of another rate and number of channels than the other clips.
pub(super) const HEVC: &str = "-f lavfi -i testsrc2=size=640x360:rate=25:duration=4 -f lavfi -i sine=880:sample_rate=44100:duration=4 \
    -c:v libx265 -tag:v hvc1 -x265-params log-level=error:keyint=50 -c:a aac -ac 1 -aac_pns 0";

/// One stretch of a media playlist without a discontinuity: the bytes of its map and segments.
pub(super) type Stretch = Vec<u8>;

/// Reads a media playlist below `name` as players do.
pub(super) fn stretches(server: &Server, name: &str, playlist: &str) -> Vec<Stretch> {
    let text = server.get(&format!("{name}/{playlist}")).text();
    let folder = Path::new(name).join(playlist).parent().unwrap().to_path_buf();
    let get = |uri: &str| {
        let mut path = folder.clone();
        for part in uri.split('/') {
            if part == ".." { assert!(path.pop()) } else { path.push(part) }
        }
        let reply = server.get(path.to_str().unwrap());
        assert_eq!(reply.status, 200, "{uri} of {text}");
        reply.body
    };
    let mut all = vec![Stretch::new()];
    for line in text.lines() {
        let map = line.strip_prefix("#EXT-X-MAP:URI=\"").and_then(|rest| rest.strip_suffix('"'));
        if line == "#EXT-X-DISCONTINUITY" {
            all.push(Stretch::new());
        } else if let Some(uri) = map.or((!line.starts_with('#')).then_some(line)) {
            all.last_mut().unwrap().extend(get(uri));
        }
    }
    all
}

pub(super) fn decoded<T>(folder: &Path, bytes: &[u8], decode: impl Fn(&[&str]) -> Result<T, String>) -> T {
    let file = folder.join("stretch");
    std::fs::write(&file, bytes).unwrap();
    decode(&["-i", file.to_str().unwrap()]).unwrap_or_else(|error| panic!("{error}"))
}

fn sound_of_clip(folder: &Path, name: &str, args: &str) -> Sound {
    // One that exists is not made again.
    let file = folder.join(name);
    clips::make(&file, args);
    decode::audio(&["-i", file.to_str().unwrap()], "0:a").unwrap()
}

/// Whether sound is that of a clip, after `priming` samples.
fn is_sound_of(ours: &Sound, clip: &Sound, priming: usize) -> Result<(), String> {
    let form = |sound: &Sound| (sound.rate, sound.channels);
    if form(ours) != form(clip) {
        return Err(format!("{:?}, expected {:?}", form(ours), form(clip)));
    }
    let ours = &ours.samples[priming * ours.channels * 4..];
    let common = ours.len().min(clip.samples.len());
    let missing = clip.samples.len() - common;
    if missing > 4096 * clip.channels * 4 || ours[..common] != clip.samples[..common] {
        let first = ours.iter().zip(&clip.samples).position(|(a, b)| a != b);
        return Err(format!("{} bytes, expected {}, first other {first:?}", ours.len(), clip.samples.len()));
    }
    Ok(())
}

#[test]
fn joined_clips_of_other_codecs_and_sounds_are_periods() {
    if !support::have("ffmpeg") || !support::have("python3") {
        return;
    }
    let (place, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (folder, scratch) = (place.path(), scratch.path());
    let slower = LARGE.replace("-b:a 96k", "-ar 44100 -ac 2");
    let opus = LARGE.replace("-c:a aac -aac_pns 0 -b:a 96k", "-c:a libopus -ac 2");
    // Name, clips, parameters of codecs in the variants, periods in TS.
    let files: [(&str, &[&str], &[&str], usize); 4] = [
        ("codecs.mp4", &[BASELINE, HEVC], &["avc1.42", "hvc1.1", "mp4a.40.2"], 2),
        ("back.mp4", &[BASELINE, HEVC, BASELINE], &["avc1.42", "hvc1.1", "mp4a.40.2"], 3),
        ("rates.mp4", &[BASELINE, &slower], &["avc3.64", "mp4a.40.2"], 2),
        ("opus.mp4", &[BASELINE, &opus], &["avc3.64", "mp4a.40.2", "opus"], 1),
    ];
    let expected: Vec<_> = files.iter().map(|(name, all, ..)| join(folder, name, all)).collect();
    let server = Server::start(&[folder.to_str().unwrap(), "--segment-duration", "2"]);
    for ((name, all, codecs, in_ts), pictures) in files.iter().zip(&expected) {
        let variants = server.get(&format!("{name}/index.m3u8")).text();
        let stated = variants.split("CODECS=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default();
        let stated: Vec<&str> = stated.split(',').map(|codec| codec.get(..7).unwrap_or(codec)).collect();
        let wanted: Vec<&str> = codecs.iter().map(|codec| codec.get(..7).unwrap_or(codec)).collect();
        assert!(
            wanted.iter().all(|codec| stated.iter().any(|s| s.starts_with(&codec[..codec.len().min(6)]))),
            "{name}: {variants}"
        );
        let video = stretches(&server, name, "v1/index.m3u8");
        let audio = stretches(&server, name, "a1/index.m3u8");
        assert_eq!((video.len(), audio.len()), (all.len(), all.len()), "{name}");
        for (place, args) in all.iter().enumerate() {
            let own = &pictures[place * 100..][..100];
            let ours = decoded(scratch, &video[place], |input| decode::video(input, "0:v"));
            // ffmpeg shows pictures late where composition offsets are below 0, by the lowest of them. Browsers don't: tests/players.
            let late = if *args == BASELINE { 0.0 } else { 0.08 };
            decode::same_video(&ours, own, late, 0.001).unwrap_or_else(|error| panic!("{name}, clip {place}: {error}"));
            let ours = decoded(scratch, &audio[place], |input| decode::audio(input, "0:a"));
            let clip = sound_of_clip(scratch, &format!("{place} of {name}"), args);
            // The file has the priming of later clips as sound, and ffmpeg plays that of the first one too.
            if !args.contains("libopus") {
                is_sound_of(&ours, &clip, 1024).unwrap_or_else(|error| panic!("{name}, clip {place}: {error}"));
            }
            assert!((ours.start - 4.0 * place as f64).abs() < 0.06, "{name}, clip {place}: {} s", ours.start);
        }
        let mpd = server.get(&format!("{name}/index.mpd")).text();
        assert_eq!(mpd.matches("<Period").count(), all.len(), "{name}: {mpd}");
        assert!(mpd.contains("<Period id=\"2\" start=\"PT4S\">"), "{name}: {mpd}");
        assert!(mpd.contains("presentationTimeOffset=\"51200\""), "{name}: {mpd}");
        let ts = stretches(&server, name, "ts/v1/index.m3u8");
        assert_eq!(ts.len(), *in_ts, "{name}");
        for (place, bytes) in ts.iter().enumerate().filter(|_| *in_ts > 1) {
            let ours = decoded(scratch, bytes, |input| decode::video(input, "0:v"));
            same(&ours, &pictures[place * 100..][..100])
                .unwrap_or_else(|error| panic!("{name} in TS, clip {place}: {error}"));
        }
    }
    told(folder, "codecs.mp4");
    // A session has one description: RTSP sends what the first payload format carries.
    let url = format!("rtsp://127.0.0.1:{}/codecs.mp4", server.rtsp);
    let ours = decode::video(&["-rtsp_transport", "tcp", "-i", &url], "0:v").unwrap();
    same(&ours, &expected[0][..100]).unwrap();
    pictures_of_periods(&server, scratch, &expected[1]);
}

/// The examination of a file names what RTSP leaves out.
fn told(folder: &Path, name: &str) {
    let file = folder.join(name);
    let output = Command::new(env!("CARGO_BIN_EXE_millpond")).arg("probe").arg(file).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("they are played by HLS and DASH, and left out of RTSP"), "{text}");
}

/// Pictures for trick play are listed for all periods.
fn pictures_of_periods(server: &Server, folder: &Path, pictures: &[decode::Frame]) {
    let keys = stretches(server, "back.mp4", "v1/iframes.m3u8");
    let expected: [&[usize]; 3] = [&[0, 25, 50, 75], &[100, 150], &[200, 225, 250, 275]];
    assert_eq!(keys.len(), expected.len());
    for (bytes, numbers) in keys.iter().zip(expected) {
        let wanted: Vec<_> = numbers.iter().map(|number| pictures[*number].clone()).collect();
        same(&decoded(folder, bytes, |input| decode::video(input, "0:v")), &wanted).unwrap();
    }
    let still = server.get("back.mp4/v1p2/i2.mp4").body;
    same(&decoded(folder, &still, |input| decode::video(input, "0:v")), &pictures[150..151]).unwrap();
}
