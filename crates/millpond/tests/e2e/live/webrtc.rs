//! Live streams by WebRTC: what a viewer gets of what is pushed.

use crate::{
    live::publish::until_published,
    support::{
        Running, Server, clips, have,
        webrtc::{self, Packet, Viewer, is_key, packets, place, slices},
    },
};
use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};
use str0m::media::MediaData;

/// 9 seconds, 25 pictures a second, key frames four seconds apart, no B-frames, Opus.
const CLIP: &str = "V S -c:v libx264 -g 100 -bf 0 -sc_threshold 0 -c:a libopus";
/// Pictures of a group.
const GROUP: usize = 100;

/// A server, and a clip that is pushed to it as `live/cam`.
pub(crate) struct Pushed {
    pub(crate) server: Server,
    /// Port of WebRTC.
    pub(crate) port: SocketAddr,
    publisher: Option<Running>,
    clip: PathBuf,
    _folder: tempfile::TempDir,
}

impl Pushed {
    /// Of the clip above. `None` where ffmpeg is missing.
    pub(crate) fn start(more: &[&str]) -> Option<Self> {
        if !have("ffmpeg") {
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let clip = folder.path().join("clip.mp4");
        clips::make(&clip, CLIP);
        let (server, port) = webrtc::serve(more);
        let publisher = publish(&server, &clip);
        Some(Self { server, port, publisher: Some(publisher), clip, _folder: folder })
    }

    /// The publisher leaves.
    pub(crate) fn leave(&mut self) {
        self.publisher = None;
    }

    /// Packets of a track of the clip.
    pub(crate) fn packets(&self, track: &str) -> Vec<Packet> {
        packets(&self.clip, track)
    }
}

/// Pushes a clip round and round, as it is, and waits until `live/cam` is published.
pub(crate) fn publish(server: &Server, clip: &Path) -> Running {
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin", "-re", "-stream_loop", "-1", "-i"]).arg(clip);
    command.args(["-c", "copy", "-f", "rtsp", "-rtsp_transport", "tcp"]);
    command.arg(format!("rtsp://127.0.0.1:{}/live/cam", server.rtsp));
    let publisher = Running(command.stdout(Stdio::null()).spawn().unwrap());
    until_published(server, "live/cam");
    publisher
}

/// The slices of pictures that came.
pub(crate) fn seen(viewer: &Viewer) -> Vec<Vec<&[u8]>> {
    viewer.pictures.iter().map(|picture| slices(&picture.data)).collect()
}

/// Whether times of what came are those of a clip, to a millisecond. What comes after the clip's end is left out.
#[track_caller]
fn assert_times(came: &[MediaData], clip: &[Packet], at: usize) {
    let (first, from) = (&came[0], clip[at].time);
    for (data, packet) in came.iter().zip(&clip[at..]) {
        let since = (data.time.numer() - first.time.numer()) as f64 / f64::from(data.time.denom());
        let expected = packet.time - from;
        assert!((since - expected).abs() < 0.001, "{since} s, not {expected} s, behind the first");
    }
}

#[test]
fn every_picture_and_packet_of_sound_is_that_of_the_publisher() {
    let Some(pushed) = Pushed::start(&[]) else { return };
    let mut viewer = Viewer::new(&pushed.server, "live/cam");
    let has_reports = |viewer: &Viewer| {
        let last = [viewer.pictures.last(), viewer.sounds.last()];
        last.iter().flatten().filter(|data| viewer.sender_time(data).is_some()).count() == 2
    };
    viewer.receive(|viewer| viewer.pictures.len() > 120 && viewer.sounds.len() > 50 && has_reports(viewer));
    let (video, sound) = (pushed.packets("v:0"), pushed.packets("a:0"));
    let first = place(&seen(&viewer), &webrtc::pictures(&video));
    assert!(first.is_multiple_of(GROUP), "a key frame first, not picture {first}");
    assert_times(&viewer.pictures, &video, first);
    let came: Vec<&[u8]> = viewer.sounds.iter().map(|data| &*data.data).collect();
    let known: Vec<&[u8]> = sound.iter().map(|packet| &*packet.bytes).collect();
    let from = place(&came, &known);
    assert_times(&viewer.sounds, &sound, from);
    // Sound and pictures of the same second of the clip have the same time of the sender.
    let behind = |came: &MediaData, packet: &Packet| viewer.sender_time(came).unwrap() - packet.time;
    let step = behind(&viewer.pictures[0], &video[first]) - behind(&viewer.sounds[0], &sound[from]);
    assert!(step.abs() < 0.05, "sound is {step} s off");
}

#[test]
fn a_viewer_begins_with_the_key_frame_of_the_group() {
    let Some(pushed) = Pushed::start(&[]) else { return };
    let video = pushed.packets("v:0");
    let pictures = webrtc::pictures(&video);
    let mut early = Viewer::new(&pushed.server, "live/cam");
    early.receive(|viewer| viewer.pictures.len() > 5);
    let at = |viewer: &Viewer| (place(&seen(viewer), &pictures) + viewer.pictures.len()) % pictures.len();
    // In the middle of a group of four seconds.
    early.receive(|viewer| (30..60).contains(&(at(viewer) % GROUP)) && at(viewer) < 2 * GROUP);
    let mut late = Viewer::new(&pushed.server, "live/cam");
    while late.pictures.is_empty() {
        early.turn();
        late.turn();
    }
    let (first, newest) = (place(&seen(&late), &pictures), at(&early));
    assert!(is_key(&late.pictures[0]) && first.is_multiple_of(GROUP), "picture {first}");
    assert_eq!(first, newest - newest % GROUP, "the group of picture {newest}");
    // It catches up with the other one.
    while at(&late) + 3 < at(&early) || at(&late) > at(&early) + 3 {
        early.turn();
        late.turn();
        assert!(late.pictures.len() < 500, "{} and {}", at(&early), at(&late));
    }
}

#[test]
fn a_viewer_that_asks_for_a_key_frame_gets_one() {
    let Some(pushed) = Pushed::start(&[]) else { return };
    let video = pushed.packets("v:0");
    let pictures = webrtc::pictures(&video);
    let mut viewer = Viewer::new(&pushed.server, "live/cam");
    viewer.receive(|viewer| viewer.pictures.len() > 5);
    let first = place(&seen(&viewer), &pictures);
    // One that has just been sent a key frame gets no other one.
    viewer.receive_for(Duration::from_secs(1));
    // Early in a group: the next key frame of the stream is far.
    let at = |viewer: &Viewer| (first + viewer.pictures.len()) % pictures.len();
    viewer.receive(|viewer| {
        viewer.pictures.len() > 20 && (20..40).contains(&(at(viewer) % GROUP)) && at(viewer) < 2 * GROUP
    });
    let asked = viewer.pictures.len();
    viewer.ask_for_key_frame();
    let next = |viewer: &Viewer| viewer.pictures[asked..].iter().position(is_key).map(|at| asked + at);
    viewer.receive(|viewer| next(viewer).is_some_and(|next| viewer.pictures.len() > next + 50));
    let next = next(&viewer).unwrap();
    let seen = seen(&viewer);
    let (before, after) = (place(&seen[..next], &pictures), place(&seen[next..], &pictures));
    assert_eq!(before, first);
    assert_eq!(after % GROUP, 0);
    let group = (first + asked) / GROUP * GROUP % pictures.len();
    assert_eq!(after, group, "the kept group, before the stream's next key frame");
    let times: Vec<u64> = viewer.pictures.iter().map(|picture| picture.time.numer()).collect();
    let back = times.windows(2).position(|two| two[0] >= two[1]);
    assert_eq!(back, None, "times rise: {:?}", back.map(|at| &times[at.saturating_sub(2)..(at + 4).min(times.len())]));
    assert!(viewer.pictures[1..].iter().all(|picture| picture.contiguous), "packets are numbered without a hole");
}

#[test]
fn lost_packets_are_sent_again() {
    let Some(pushed) = Pushed::start(&[]) else { return };
    let mut viewer = Viewer::new(&pushed.server, "live/cam");
    assert!(viewer.answer.contains(" rtx/90000"), "{}", viewer.answer);
    viewer.loss = 12;
    viewer.receive(|viewer| viewer.pictures.len() > 120 && viewer.lost > 10);
    place(&seen(&viewer), &webrtc::pictures(&pushed.packets("v:0")));
}
