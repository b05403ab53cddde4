//! Every output, decoded by ffmpeg, equals the decoded file, frame for frame and in time.

use crate::support::{
    self,
    clips::{self, Carried},
    decode,
    origins::{self, Kind},
};
use millpond_media::{Track, TrackKind};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock},
};

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

/// Tracks of a clip: (is video, coarsest tick of its clock), and whether there are pictures that are not compared.
fn tracks(file: &Path) -> (Vec<(bool, f64)>, bool) {
    let movie = millpond_media::index_bytes(&std::fs::read(file).unwrap()).unwrap();
    let is_video = |t: &Track| matches!(t.kind, TrackKind::Video { .. });
    let is_long = movie.tracks.iter().any(|t| is_video(t) && t.samples.len() as usize > decode::MOST_PICTURES);
    let tracks = movie.tracks.iter().filter(|t| !matches!(t.kind, TrackKind::Text));
    (tracks.map(|t| (is_video(t), 1.0 / f64::from(t.timescale.get()))).collect(), is_long)
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

/// A file as ffmpeg decodes it: for each track where ffmpeg finds it, what is decoded, and the tick of its clock.
struct Reference {
    maps: Vec<(String, bool)>,
    tracks: Vec<decode::Track>,
    ticks: Vec<f64>,
    /// Whether a track has more pictures than are compared.
    is_long: bool,
    /// Time of the first picture or sound. In MP4 and Matroska, times count from 0.
    start: f64,
}

/// Extensions of files whose times may begin anywhere.
const ANY_START: [&str; 4] = ["ts", "m2ts", "flv", "mp3"];

/// Decodes the tracks of an input. Each process of ffmpeg decodes `at_once` of them.
fn decoded(input: &str, maps: &[(String, bool)], at_once: usize) -> Result<Vec<decode::Track>, String> {
    let maps: Vec<_> = maps.iter().map(|(map, is_video)| (map.as_str(), *is_video)).collect();
    let all: Result<Vec<_>, _> = maps.chunks(at_once).map(|maps| decode::tracks(&["-i", input], maps)).collect();
    Ok(all?.into_iter().flatten().collect())
}

impl Reference {
    fn of(file: &Path) -> Result<Self, String> {
        let (mut video, mut audio) = (0, 0);
        let of = |(is_video, tick): (bool, f64)| {
            let count = if is_video { &mut video } else { &mut audio };
            let map = format!("0:{}:{count}", if is_video { 'v' } else { 'a' });
            *count += 1;
            ((map, is_video), tick)
        };
        let (tracks, is_long) = tracks(file);
        let (maps, ticks): (Vec<_>, _) = tracks.into_iter().map(of).unzip();
        let tracks = decoded(file.to_str().unwrap(), &maps, Self::at_once(&maps, is_long))?;
        let first = |track: &decode::Track| match track {
            decode::Track::Video(frames) => frames.iter().map(|frame| frame.time).fold(f64::MAX, f64::min),
            decode::Track::Audio(sound) => sound.start,
        };
        let begins_anywhere = file.extension().is_some_and(|of| ANY_START.iter().any(|extension| of == *extension));
        let start = if begins_anywhere { tracks.iter().map(first).fold(f64::MAX, f64::min) } else { 0.0 };
        Ok(Self { tracks, maps, ticks, is_long, start })
    }

    /// Number of tracks that a process decodes. Beside sound, it would decode all pictures of a long clip.
    fn at_once(maps: &[(String, bool)], is_long: bool) -> usize {
        if is_long { 1 } else { maps.len().max(1) }
    }

    /// Compares what a player gets with the file. Gives the number of tracks.
    fn compare(&self, url: &str, output: &Output) -> Result<usize, String> {
        // Where it reads several tracks by DASH, ffmpeg loses the first frames of all but one.
        let at_once = Self::at_once(&self.maps, self.is_long || output.tail.ends_with(".mpd"));
        let ours = decoded(url, &self.maps, at_once)?;
        for ((file, ours), tick) in self.tracks.iter().zip(&ours).zip(&self.ticks) {
            // Where the file's clock is finer than the output's, the output's counts.
            let tick = if output.base > 0.0 { tick.max(TS_TICK) } else { *tick };
            let base = output.base - self.start;
            match (ours, file) {
                (decode::Track::Video(ours), decode::Track::Video(file)) => {
                    decode::same_video(ours, file, base, tick)?;
                }
                (decode::Track::Audio(ours), decode::Track::Audio(file)) => {
                    decode::same_audio(ours, file, base, tick)?;
                }
                _ => unreachable!("both are decoded by the same list"),
            }
        }
        Ok(self.tracks.len())
    }
}

/// Decoded frames of a file. Tests of every storage share those of made clips.
fn reference(file: PathBuf) -> Arc<Result<Reference, String>> {
    if !file.starts_with(clips::folder()) {
        return Arc::new(Reference::of(&file));
    }
    type Shared = Arc<OnceLock<Arc<Result<Reference, String>>>>;
    static KNOWN: Mutex<BTreeMap<PathBuf, Shared>> = Mutex::new(BTreeMap::new());
    let shared = KNOWN.lock().unwrap().entry(file.clone()).or_default().clone();
    shared.get_or_init(|| Arc::new(Reference::of(&file))).clone()
}

/// Every playable clip with the containers it fits.
fn matrix(folder: &Path, names: Vec<(String, Carried)>, kind: Kind) {
    let Some(stack) = origins::start(kind, folder, &["--segment-duration", "2"]) else { return };
    let mut failures = Vec::new();
    for (name, carried) in names {
        let reference = reference(folder.join(&name));
        let reference = match &*reference {
            Ok(reference) => reference,
            Err(error) => {
                failures.push(format!("{name}: {error}"));
                continue;
            }
        };
        for output in &OUTPUTS {
            if carried == Carried::Fmp4 && output.base > 0.0 {
                let refused = stack.server.get(&format!("{name}/{}", output.tail));
                // Where the picture can't be carried, the sound is left if it can.
                let sound_only = refused.status == 200 && !refused.text().contains("RESOLUTION");
                if refused.status != 422 && !sound_only {
                    failures.push(format!("{name} {}: status {}", output.name, refused.status));
                }
                continue;
            }
            let url = stack.server.url(&format!("{name}/{}", output.tail));
            match reference.compare(&url, output) {
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
    let all = clips::CLIPS.iter().chain(clips::DERIVED).filter(|clip| kind == Kind::Folder || FAR.contains(&clip.name));
    matrix(clips::folder(), all.map(|clip| (clip.name.to_owned(), clip.carried)).collect(), kind);
}

/// Clips that remote storages serve: one for each way in which files are read. Codecs don't matter there.
const FAR: [&str; 10] = [
    "h264_aac.mp4",
    "h264_moov_first.mp4",
    "h264_aac.ts",
    "h264_mid_gop.mp4",
    "h264_fragmented.mp4",
    "h264_fragmented_sidx.mp4",
    "h264_partly_fragmented.mp4",
    "vp9_opus.mp4",
    "hevc_open_gop_ac3.mkv",
    "h264_mp3_live.mkv",
];

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
