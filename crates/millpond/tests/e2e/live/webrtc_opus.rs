//! Sound that peers of WebRTC do not decode, as Opus. ffmpeg decodes what comes.

use crate::{
    live::webrtc::{publish, seen},
    support::{
        Server, api, clips, have, ogg,
        webrtc::{self, PATIENCE, Viewer, packets, pictures, place, send},
    },
};
use std::{
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

/// Pictures, and a tone that rises from 200 Hz by 100 Hz a second: its height tells the time of the clip.
const RISING: &str =
    "V -f lavfi -i aevalsrc=0.5*sin(2*PI*(200*t+50*t*t)):s=44100:d=9 -c:v libx264 -g 100 -bf 0 -sc_threshold 0";

/// Modules of the graph that transcode.
fn transcoders(server: &Server) -> usize {
    let graph = api::api(server.admin, "graph");
    graph["modules"].as_array().unwrap().iter().filter(|module| module["kind"] == "opus").count()
}

/// The samples of sound that came, as ffmpeg decodes it.
fn decoded(viewer: &Viewer, folder: &Path) -> Vec<f32> {
    let file = folder.join("sound.opus");
    std::fs::write(&file, ogg::opus_file(1, viewer.sounds.iter().map(|data| &*data.data))).unwrap();
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin", "-i"]).arg(&file).args(["-ac", "1", "-ar", "48000", "-f", "f32le", "-"]);
    let output = command.output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout.chunks_exact(4).map(|four| f32::from_le_bytes(four.try_into().unwrap())).collect()
}

/// The frequency of a tone: the distance of its first and last rise through zero.
fn hertz(samples: &[f32]) -> f64 {
    let rises: Vec<f64> = samples
        .windows(2)
        .enumerate()
        .filter(|(_, two)| two[0] < 0.0 && two[1] >= 0.0)
        .map(|(at, two)| at as f64 + f64::from(two[0] / (two[0] - two[1])))
        .collect();
    (rises.len() - 1) as f64 * 48_000.0 / (rises[rises.len() - 1] - rises[0])
}

#[test]
fn aac_and_pcm_are_heard_as_opus_in_step_with_the_pictures() {
    if !have("ffmpeg") {
        return;
    }
    for (name, coding) in [("clip.mp4", "-c:a aac"), ("clip.mov", "-c:a pcm_s16be -ar 32000")] {
        let folder = tempfile::tempdir().unwrap();
        let clip = folder.path().join(name);
        clips::make(&clip, &format!("{RISING} {coding}"));
        let (server, _) = webrtc::serve(&[]);
        let _publisher = publish(&server, &clip);
        let mut viewer = Viewer::new(&server, "live/cam");
        assert!(!viewer.answer.contains("left out"), "{}", viewer.answer);
        let has_reports = |viewer: &Viewer| {
            let last = [viewer.pictures.last(), viewer.sounds.last()];
            last.iter().flatten().filter(|data| viewer.sender_time(data).is_some()).count() == 2
        };
        viewer.receive(|viewer| viewer.pictures.len() > 50 && viewer.sounds.len() > 60 && has_reports(viewer));
        let ticks: Vec<u64> = viewer.sounds.iter().map(|data| data.time.numer()).collect();
        assert!(ticks.windows(2).all(|two| two[1] - two[0] == 960), "{ticks:?}");
        // The pictures are those of the publisher.
        let video = packets(&clip, "v:0");
        let first = place(&seen(&viewer), &pictures(&video));
        let behind = viewer.sender_time(&viewer.pictures[0]).unwrap() - video[first].time;
        // A tenth of a second of the tone, and its middle.
        let samples = decoded(&viewer, folder.path());
        let (from, length) = (10, 4800);
        let tone = &samples[from * 960..][..length];
        let (heard, expected) =
            ((hertz(tone) - 200.0) / 100.0, viewer.sender_time(&viewer.sounds[from]).unwrap() + 0.05 - behind);
        assert!((heard - expected).abs() < 0.04, "{coding}: the sound of {heard} s at {expected} s");
        let loudest = tone.iter().fold(0.0_f32, |most, sample| most.max(sample.abs()));
        assert!((0.45..0.55).contains(&loudest), "{coding}: {loudest}");
        // A second viewer shares the sound; after the last one nothing is transcoded.
        let mut other = Viewer::new(&server, "live/cam");
        other.receive(|viewer| viewer.sounds.len() > 5);
        assert_eq!(transcoders(&server), 1);
        let viewers: Vec<_> = webrtc::sessions(&server).iter().map(|session| session["asset"].clone()).collect();
        assert_eq!(viewers, ["live/cam", "live/cam"]);
        for session in [&viewer.session, &other.session] {
            assert_eq!(send(server.port, "DELETE", session, &[], "").status, 200);
        }
        let began = Instant::now();
        while transcoders(&server) > 0 {
            assert!(began.elapsed() < PATIENCE, "{}", server.log_text());
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

#[test]
fn a_stream_with_opus_is_published_for_players_of_all_protocols() {
    if !have("ffmpeg") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let clip = folder.path().join("clip.mp4");
    clips::make(&clip, &format!("{RISING} -c:a aac"));
    let (server, _) = webrtc::serve(&["--modules", "live/cam opus to=live/opus"]);
    let _publisher = publish(&server, &clip);
    let url = format!("rtsp://127.0.0.1:{}/live/opus", server.rtsp);
    let began = Instant::now();
    let said = loop {
        let mut command = Command::new("ffprobe");
        command.args([
            "-v",
            "error",
            "-rtsp_transport",
            "tcp",
            "-show_entries",
            "stream=codec_name",
            "-of",
            "csv=p=0",
            &url,
        ]);
        let said = String::from_utf8(command.output().unwrap().stdout).unwrap();
        if said.contains("opus") {
            break said;
        }
        assert!(began.elapsed() < PATIENCE, "{said}{}", server.log_text());
    };
    assert!(said.contains("h264"), "{said}");
}
