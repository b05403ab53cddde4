//! Every output, decoded by ffmpeg, equals the decoded file, frame for frame and in time.

use crate::support::{
    self,
    clips::{self, Carried},
    decode,
    origins::{self, Kind},
};
use millpond_media::TrackKind;
use std::path::{Path, PathBuf};

/// HLS in TS begins at ten seconds, so that times before the presentation can be said.
const TS_BASE: f64 = 10.0;
const TS_TICK: f64 = 1.0 / 90_000.0;

struct Output {
    name: &'static str,
    tail: &'static str,
    base: f64,
}

const OUTPUTS: [Output; 3] = [
    Output { name: "HLS TS", tail: "ts/index.m3u8", base: TS_BASE },
    Output { name: "HLS fMP4", tail: "index.m3u8", base: 0.0 },
    Output { name: "DASH", tail: "index.mpd", base: 0.0 },
];

/// Tracks of a clip: (is video, coarsest tick of its clock).
fn tracks(file: &Path) -> Vec<(bool, f64)> {
    let movie = millpond_media::index_bytes(&std::fs::read(file).unwrap()).unwrap();
    movie
        .tracks
        .iter()
        .filter(|t| !matches!(t.kind, TrackKind::Text))
        .map(|t| (matches!(t.kind, TrackKind::Video { .. }), 1.0 / f64::from(t.timescale.get())))
        .collect()
}

fn is_playable(file: &Path) -> bool {
    let index = millpond_media::index_bytes(&std::fs::read(file).unwrap());
    if let Err(error) = &index {
        println!("{}: not playable: {error}", file.display());
        assert!(error.to_string().contains("encrypted"), "{}: {error}", file.display());
    }
    // Decoders make nothing of encrypted samples without their key.
    index.is_ok_and(|movie| movie.tracks.iter().all(|track| track.protection.is_none()))
}

/// Decodes a track of the file itself with ffmpeg.
enum Reference {
    Video(Vec<decode::Frame>),
    Audio(decode::Sound),
}

/// The tracks of a file: where ffmpeg finds each, what it decodes from it, and the tick of its clock.
fn references(file: &Path) -> Result<Vec<(String, Reference, f64)>, String> {
    let input = ["-i", file.to_str().unwrap()];
    let (mut video, mut audio) = (0, 0);
    let of = |(is_video, tick): (bool, f64)| {
        let count = if is_video { &mut video } else { &mut audio };
        let map = format!("0:{}:{count}", if is_video { 'v' } else { 'a' });
        *count += 1;
        let reference = match is_video {
            true => Reference::Video(decode::video(&input, &map)?),
            false => Reference::Audio(decode::audio(&input, &map)?),
        };
        Ok((map, reference, tick))
    };
    tracks(file).into_iter().map(of).collect()
}

fn compare(references: &[(String, Reference, f64)], url: &str, output: &Output) -> Result<usize, String> {
    for (map, reference, tick) in references {
        // Where the file's clock is finer than the output's, the output's counts.
        let tick = if output.base > 0.0 { tick.max(TS_TICK) } else { *tick };
        match reference {
            Reference::Video(file) => {
                decode::same_video(&decode::video(&["-i", url], map)?, file, output.base, tick)?;
            }
            Reference::Audio(file) => {
                decode::same_audio(&decode::audio(&["-i", url], map)?, file, output.base, tick)?;
            }
        }
    }
    Ok(references.len())
}

/// Every playable clip with the containers it fits.
fn matrix(folder: &Path, names: Vec<(String, Carried)>, kind: Kind) {
    let Some(stack) = origins::start(kind, folder, &["--segment-duration", "2"]) else { return };
    let mut failures = Vec::new();
    for (name, carried) in names {
        let references = match references(&folder.join(&name)) {
            Ok(references) => references,
            Err(error) => {
                failures.push(format!("{name}: {error}"));
                continue;
            }
        };
        for output in &OUTPUTS {
            if carried == Carried::Fmp4 && output.base > 0.0 {
                let refused = stack.server.get(&format!("{name}/{}", output.tail));
                // What is left when the picture can't be carried is the sound, where it can.
                let sound_only = refused.status == 200 && !refused.text().contains("RESOLUTION");
                if refused.status != 422 && !sound_only {
                    failures.push(format!("{name} {}: status {}", output.name, refused.status));
                }
                continue;
            }
            let url = stack.server.url(&format!("{name}/{}", output.tail));
            match compare(&references, &url, output) {
                Ok(tracks) => println!("{kind:?} {name} {}: {tracks} tracks equal", output.name),
                Err(error) => failures.push(format!("{name} {}: {error}", output.name)),
            }
        }
    }
    let log: Vec<String> = stack.server.log_text().lines().filter(|l| l.contains("ERROR")).map(str::to_owned).collect();
    assert!(failures.is_empty(), "{} differ:\n{}\n{}", failures.len(), failures.join("\n"), log.join("\n"));
}

fn made(kind: Kind) {
    if !support::have("ffmpeg") {
        return;
    }
    let names = clips::CLIPS.iter().chain(clips::DERIVED).map(|c| (c.name.to_owned(), c.carried)).collect();
    matrix(clips::folder(), names, kind);
}

#[test]
fn made_clips_from_a_folder() {
    made(Kind::Folder);
}

#[test]
fn made_clips_from_nginx() {
    made(Kind::Nginx);
}

#[test]
fn made_clips_from_s3() {
    made(Kind::S3);
}

#[test]
fn real_clips() {
    let Some(folder) = support::shared_media() else { return };
    if !support::have("ffmpeg") {
        return;
    }
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    let names = files
        .iter()
        .filter_map(|f| f.file_name()?.to_str())
        .filter(|n| n.ends_with(".mp4") && !n.starts_with("bad_") && is_playable(&folder.join(n)))
        .map(|n| {
            let only_fmp4 = n.starts_with("vp9") || n.starts_with("av1") || n.starts_with("opus");
            (n.to_owned(), if only_fmp4 { Carried::Fmp4 } else { Carried::Everywhere })
        })
        .collect();
    matrix(&folder, names, Kind::Folder);
}
