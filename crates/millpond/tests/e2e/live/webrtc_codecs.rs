//! Codecs by WebRTC: those that viewers take, those that they don't, and B-frames.

use crate::{
    live::webrtc::{publish, seen},
    support::{
        self, clips, have,
        webrtc::{self, Viewer, packets, pictures, place},
    },
};
use std::path::{Path, PathBuf};

/// The lines of a section of an answer.
fn section<'a>(answer: &'a str, kind: &str) -> Vec<&'a str> {
    let start = format!("m={kind} ");
    let from = answer.lines().skip_while(|line| !line.starts_with(&start));
    let is_other = |line: &str| line.starts_with("m=") && !line.starts_with(&start);
    from.take_while(|line| !is_other(line)).collect()
}

fn clip(folder: &Path, name: &str, args: &str) -> PathBuf {
    let clip = folder.join(name);
    clips::make(&clip, args);
    clip
}

#[test]
fn sound_of_telephones_is_passed_on() {
    if !have("ffmpeg") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let clip = clip(folder.path(), "clip.mov", "V S -c:v libx264 -g 50 -bf 0 -c:a pcm_mulaw -ar 8000 -ac 1");
    let (server, _) = webrtc::serve(&[]);
    let _publisher = publish(&server, &clip);
    let mut viewer = Viewer::new(&server, "live/cam");
    let sound = section(&viewer.answer, "audio");
    assert!(sound.contains(&"a=rtpmap:0 PCMU/8000"), "{}", viewer.answer);
    viewer.receive(|viewer| viewer.pictures.len() > 25 && viewer.sounds.len() > 25);
    // Packets of RTP begin and end elsewhere than those of the file.
    let came: Vec<u8> = viewer.sounds.iter().flat_map(|data| data.data.to_vec()).collect();
    let known: Vec<u8> = packets(&clip, "a:0").into_iter().flat_map(|packet| packet.bytes).collect();
    place(&came[..4000], &known);
    let ticks: Vec<u64> = viewer.sounds.iter().map(|data| data.time.numer()).collect();
    let steps = ticks.windows(2).zip(&viewer.sounds).all(|(two, data)| two[1] - two[0] == data.data.len() as u64);
    assert!(steps, "a tick for each sample: {ticks:?}");
}

#[test]
fn sound_that_viewers_do_not_take_is_left_out() {
    if !have("ffmpeg") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let clip = clip(folder.path(), "clip.mp4", "V S -c:v libx264 -g 50 -bf 0 -c:a aac");
    let (server, _) = webrtc::serve(&["--webrtc-opus", "false"]);
    let _publisher = publish(&server, &clip);
    let mut viewer = Viewer::new(&server, "live/cam");
    let note = viewer.answer.lines().find(|line| line.starts_with("i=")).unwrap_or_default();
    assert!(note.contains("left out") && note.contains("mp4a"), "{}", viewer.answer);
    assert!(section(&viewer.answer, "audio")[0].starts_with("m=audio 0 "), "{}", viewer.answer);
    assert!(viewer.answer.contains("a=group:BUNDLE 0\r\n") || !viewer.answer.contains("a=group:BUNDLE 0 1"));
    viewer.receive(|viewer| viewer.pictures.len() > 60);
    place(&seen(&viewer), &pictures(&packets(&clip, "v:0")));
    assert!(viewer.sounds.is_empty());
}

#[test]
fn streams_of_which_viewers_take_nothing_are_refused() {
    if !have("ffmpeg") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let coding = "V -c:v libx265 -x265-params log-level=error:keyint=50 -tag:v hev1";
    let clip = clip(folder.path(), "clip.mp4", coding);
    let (server, _) = webrtc::serve(&[]);
    let _publisher = publish(&server, &clip);
    let reply = webrtc::send(server.port, "POST", "/live/cam/whep", &[webrtc::SDP], &webrtc::offer());
    let problem: serde_json::Value = serde_json::from_slice(&reply.body).unwrap();
    let detail = problem["detail"].as_str().unwrap_or_default();
    assert_eq!(reply.status, 422, "{detail}");
    assert!((detail.contains("hev1") || detail.contains("hvc1")) && detail.contains("H264"), "{detail}");
    assert_eq!(webrtc::sessions(&server).len(), 0);
    // Others play it.
    assert_eq!(support::get(server.port, "/live/cam/index.m3u8", &[]).status, 200);
}

#[test]
fn pictures_come_in_the_order_in_which_they_show() {
    if !have("ffmpeg") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let clip = clip(folder.path(), "clip.mp4", "V -c:v libx264 -g 50 -bf 2");
    let (server, _) = webrtc::serve(&[]);
    let _publisher = publish(&server, &clip);
    let mut viewer = Viewer::new(&server, "live/cam");
    viewer.receive(|viewer| viewer.pictures.len() > 60);
    let times: Vec<u64> = viewer.pictures.iter().map(|picture| picture.time.numer()).collect();
    assert!(times.is_sorted_by(|a, b| a < b), "{times:?}");
    // All but those that show before one that was sent: I and P.
    let packets = packets(&clip, "v:0");
    let mut shown = f64::MIN;
    let kept = |time: f64| {
        let is_kept = time > shown;
        shown = shown.max(time);
        is_kept
    };
    let is_kept: Vec<bool> = packets.iter().map(|packet| packet.time).map(kept).collect();
    assert!(is_kept.iter().any(|is_kept| !is_kept), "the clip has B-frames");
    let kept = pictures(&packets).into_iter().zip(is_kept).filter_map(|(picture, is_kept)| is_kept.then_some(picture));
    place(&seen(&viewer), &kept.collect::<Vec<_>>());
}
