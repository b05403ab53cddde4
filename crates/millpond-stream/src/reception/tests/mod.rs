//! Receptions of scripted servers, on a virtual clock.

mod camera;
pub(crate) mod server;
mod udp;

use super::*;
use crate::{
    Frame,
    epoch::EpochReason,
    graph::{Module as _, Output, PipeReader, pipe},
    registry::Registry,
    report::{Reporter, StreamState},
};
use millpond_rtp::message::{Method, headers};
use server::{FakeConnector, IN_BAND, PICTURES, PPS, SDP, SPS, header, picture, server, units};
use std::{sync::Arc, time::Duration};
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};

/// A reception that runs, and a test that takes its frames.
struct Viewer {
    frames: PipeReader,
    reporter: Reporter,
    task: JoinHandle<()>,
    _nodes: Vec<crate::registry::NodeGuard>,
}

fn start(connector: FakeConnector, change: impl FnOnce(&mut RtspSource)) -> Viewer {
    start_relayed(connector, None, change)
}

fn start_relayed(
    connector: FakeConnector,
    relay: Option<(Arc<dyn Relay>, Arc<str>)>,
    change: impl FnOnce(&mut RtspSource),
) -> Viewer {
    let mut source = RtspSource::new("rtsp://u:secret@camera/door?k=secret").unwrap();
    source.transport = SourceTransport::Tcp;
    change(&mut source);
    let (registry, reporter) = (Registry::default(), Reporter::default());
    let nodes = vec![registry.add("reception", "door"), registry.add("transmission", "viewer")];
    let (writer, frames) = pipe(&registry, nodes[0].id(), nodes[1].id(), 1000);
    let module = RtspReception::new(source, Arc::new(connector), reporter.clone()).with_relay(relay);
    let module = Box::new(module);
    let run = module.run(Vec::new(), Output::Pipe(writer));
    let task = tokio::spawn(async move { run.await.unwrap() });
    Viewer { frames, reporter, task, _nodes: nodes }
}

impl Viewer {
    /// Waits for a number of frames.
    async fn take(&mut self, count: usize) -> Vec<Frame> {
        let mut all = Vec::new();
        while all.len() < count {
            let run = timeout(Duration::from_secs(100), self.frames.next()).await;
            all.extend(run.unwrap_or_else(|_| panic!("{} frames of {count}", all.len())).unwrap().iter().cloned());
        }
        assert_eq!(all.len(), count);
        all
    }

    fn epochs(&self) -> Vec<(u32, EpochReason)> {
        self.reporter.epochs().borrow().iter().map(|epoch| (epoch.number, epoch.reason)).collect()
    }

    /// Waits until the source failed or was lost; returns the error, and whether it was lost.
    async fn error(&self) -> (SourceError, bool) {
        let mut state = self.reporter.state();
        loop {
            match &*state.borrow_and_update() {
                StreamState::Failed { why, .. } => return (why.as_ref().clone(), false),
                StreamState::Lost { why, .. } => return (why.as_ref().clone(), true),
                StreamState::Waiting | StreamState::Scheduled { .. } | StreamState::Running { .. } => {}
            }
            timeout(Duration::from_secs(100), state.changed()).await.expect("an error").unwrap();
        }
    }
}

fn of(frames: &[Frame], track: u16) -> Vec<&Frame> {
    frames.iter().filter(|frame| frame.track == track).collect()
}

#[tokio::test(start_paused = true)]
async fn frames_that_are_sent_come_out() {
    let (mut server, connector) = server();
    let mut viewer = start(connector, |_| {});
    let mut peer = server.play(SDP).await;
    assert_eq!(peer.transports, ["RTP/AVP/TCP;unicast;interleaved=0-1", "RTP/AVP/TCP;unicast;interleaved=2-3"]);
    let pictures: Vec<Vec<u8>> = (0..10).map(|number| picture(if number == 0 { 0x65 } else { 0x41 }, number)).collect();
    for (number, picture) in (0_u32..).zip(&pictures) {
        // A packet of a channel that nobody asked for.
        peer.data(9, b"x").await;
        peer.frame(0, picture, (u32::MAX - 9000).wrapping_add(3600 * number)).await;
        peer.frame(1, &[number as u8; 40], 1024 * number).await;
        sleep(Duration::from_millis(40)).await;
    }
    let frames = viewer.take(20).await;
    for (track, step) in [(0, 3600), (1, 1024)] {
        let of_track = of(&frames, track);
        assert_eq!(of_track.len(), 10);
        for (number, frame) in of_track.iter().enumerate() {
            let expected = if track == 0 { pictures[number].clone() } else { vec![number as u8; 40] };
            assert_eq!((frame.number as usize, &frame.data[..]), (number, &expected[..]));
            assert_eq!(frame.pts - of_track[0].pts, step * number as i64);
            assert_eq!((frame.epoch, frame.is_sync), (0, track == 1 || number == 0));
            assert!(frame.due >= Duration::from_secs(9) && frame.due < Duration::from_secs(11), "{frame:?}");
        }
    }
    assert_eq!(viewer.epochs(), [(0, EpochReason::Start)]);
    let formats = viewer.reporter.epochs().borrow()[0].formats.clone();
    let names: Vec<_> = formats.iter().map(|format| format.as_ref().unwrap().name.clone()).collect();
    assert_eq!(names, ["v1", "a1"]);
    assert!(matches!(*viewer.reporter.state().borrow(), StreamState::Running { .. }));
}

/// Another server that seems to receive each stream.
#[derive(Debug)]
struct Other;

impl Relay for Other {
    fn source<'a>(&'a self, _: &'a str) -> futures_util::future::BoxFuture<'a, Option<RtspSource>> {
        let mut source = RtspSource::new("rtsp://other/door").unwrap();
        source.transport = SourceTransport::Tcp;
        Box::pin(std::future::ready(Some(source)))
    }
}

#[tokio::test(start_paused = true)]
async fn the_source_is_asked_where_other_servers_give_no_frames() {
    let (mut server, connector) = server();
    let mut viewer = start_relayed(connector, Some((Arc::new(Other), "door".into())), |_| {});
    let began = Instant::now();
    let mut attempts = 0;
    let mut peer = loop {
        let mut peer = server.accept().await;
        let request = peer.request().await.unwrap();
        if request.request_uri().unwrap().host_str() == Some("camera") {
            let body = if request.method() == Method::Describe { PICTURES } else { "" };
            peer.reply(&request, "200 OK", "", body).await;
            break peer;
        }
        attempts += 1;
        peer.reply(&request, "404 Not Found", "", "").await;
    };
    assert!(attempts > 3 && began.elapsed() >= Duration::from_secs(20), "{attempts} {:?}", began.elapsed());
    peer.play(PICTURES).await;
    peer.frame(0, &picture(0x65, 1), 0).await;
    viewer.take(1).await;
}

#[tokio::test(start_paused = true)]
async fn a_drop_sends_teardown() {
    let (mut server, connector) = server();
    let mut viewer = start(connector, |_| {});
    let mut peer = server.play(PICTURES).await;
    peer.frame(0, &picture(0x65, 1), 0).await;
    viewer.take(1).await;
    let dropped = Instant::now();
    viewer.task.abort();
    // Media that is under way doesn't disturb.
    peer.frame(0, &picture(0x41, 2), 3600).await;
    let request = peer.request().await.unwrap();
    assert_eq!((request.method(), &*header(&request, &headers::SESSION)), (&Method::Teardown, "7"));
    assert!(dropped.elapsed() < Duration::from_millis(100));
    peer.reply(&request, "200 OK", "", "").await;
    assert!(peer.request().await.is_none(), "the connection is closed");
    assert!(dropped.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn a_server_without_reply_to_teardown_is_left() {
    let (mut server, connector) = server();
    let viewer = start(connector, |_| {});
    let mut peer = server.play(PICTURES).await;
    sleep(Duration::from_millis(1)).await;
    drop(viewer.frames);
    viewer.task.abort();
    let left = Instant::now();
    assert_eq!(peer.request().await.unwrap().method(), &Method::Teardown);
    assert!(peer.request().await.is_none());
    assert_eq!(left.elapsed().as_secs(), 2);
}

#[tokio::test(start_paused = true)]
async fn sources_that_fail_are_tried_again() {
    for (status, kind) in [
        ("404 Not Found", SourceErrorKind::NotFound),
        ("401 Unauthorized\r\nWWW-Authenticate: Digest realm=\"a\", nonce=\"b\"", SourceErrorKind::Unauthorized),
        ("454 Session Not Found", SourceErrorKind::Refused(454)),
    ] {
        let (mut server, connector) = server();
        let viewer = start(connector, |_| {});
        let mut peer = server.accept().await;
        while let Some(request) = peer.request().await {
            let status = if matches!(request.method(), Method::Describe) { status } else { "200 OK" };
            peer.reply(&request, status, "", "").await;
        }
        let (error, is_lost) = viewer.error().await;
        assert_eq!((error.kind, is_lost), (kind, false), "{error}");
        assert!(!error.to_string().contains("secret") && error.words.starts_with("DESCRIBE: "), "{error}");
        let mut peer = server.play(PICTURES).await;
        peer.frame(0, &picture(0x65, 1), 0).await;
        sleep(Duration::from_millis(10)).await;
        assert_eq!(viewer.epochs(), [(0, EpochReason::Start)], "the first epoch, whatever failed before");
    }
    let (_, connector) = server();
    let viewer = start(connector, |_| {});
    assert_eq!(viewer.error().await.0.kind, SourceErrorKind::Unreachable);
}

#[tokio::test(start_paused = true)]
async fn streams_that_can_not_be_received_are_no_media() {
    let (mut server, connector) = server();
    let viewer = start(connector, |_| {});
    let mut peer = server.accept().await;
    for body in ["", "v=0\r\nm=video 0 RTP/AVP 26\r\nm=application 0 RTP/AVP 98\r\na=rtpmap:98 onvif/90000\r\n"] {
        let request = peer.request().await.unwrap();
        peer.reply(&request, "200 OK", "", body).await;
    }
    assert_eq!(viewer.error().await.0.kind, SourceErrorKind::NoMedia);
}

#[tokio::test(start_paused = true)]
async fn a_reset_in_a_frame_loses_that_frame_alone() {
    let (mut server, connector) = server();
    let mut viewer = start(connector, |_| {});
    let mut peer = server.play(PICTURES).await;
    for number in 0..3 {
        peer.frame(0, &picture(if number == 0 { 0x65 } else { 0x41 }, number), 3600 * u32::from(number)).await;
    }
    let packets = peer.packets(0, &picture(0x41, 3), 3 * 3600);
    assert!(packets.len() > 2);
    peer.data(0, &packets[0]).await;
    drop(peer);
    let before = viewer.take(3).await;
    let (error, is_lost) = viewer.error().await;
    assert_eq!((error.kind, is_lost), (SourceErrorKind::Unreachable, true));

    let lost = Instant::now();
    let mut peer = server.play(PICTURES).await;
    let delay = lost.elapsed().as_millis();
    assert!((400..=600).contains(&delay), "{delay}");
    // Without its references a picture is of no use.
    peer.frame(0, &picture(0x41, 4), 77).await;
    peer.frame(0, &picture(0x65, 5), 3677).await;
    let after = viewer.take(1).await;
    assert_eq!((after[0].number, after[0].epoch, &after[0].data[..]), (3, 1, &picture(0x65, 5)[..]));
    assert!(after[0].due > before[2].due && after[0].pts > before[2].pts);
    assert_eq!(viewer.epochs(), [(0, EpochReason::Start), (1, EpochReason::Reconnection)]);
    assert!(matches!(*viewer.reporter.state().borrow(), StreamState::Running { .. }));
}

#[tokio::test(start_paused = true)]
async fn pictures_that_refer_to_others_from_before_a_session_are_left_out() {
    let (mut server, connector) = server();
    let mut viewer = start(connector, |_| {});
    for session in 0..2_u32 {
        let mut peer = server.play(PICTURES).await;
        // Decoded behind the key frame and presented before it: one of its references is missing.
        for (number, place) in [(0, 10), (1, 8), (2, 9), (3, 13), (4, 11)] {
            peer.frame(0, &picture(if number == 0 { 0x65 } else { 0x41 }, number), 3600 * place).await;
        }
        let frames = viewer.take(3).await;
        let taken: Vec<_> = frames.iter().map(|frame| (frame.number, (frame.pts - frames[0].pts) / 3600)).collect();
        assert_eq!(taken, [(3 * session, 0), (3 * session + 1, 3), (3 * session + 2, 1)]);
        assert_eq!(frames[1].data[..], picture(0x41, 3)[..]);
    }
    viewer.error().await;
    let counts = viewer.reporter.counts();
    assert_eq!((counts.sessions, counts.lost_packets, counts.broken_frames), (2, 0, 0), "{counts:?}");
    assert!(counts.packets > 10, "{counts:?}");
}

#[tokio::test(start_paused = true)]
async fn a_silent_source_is_lost() {
    let (mut server, connector) = server();
    let mut viewer = start(connector, |_| {});
    let mut peer = server.play(PICTURES).await;
    peer.frame(0, &picture(0x65, 1), 0).await;
    viewer.take(1).await;
    let silent = Instant::now();
    let (error, is_lost) = viewer.error().await;
    assert_eq!((error.kind, is_lost, silent.elapsed().as_secs()), (SourceErrorKind::TimedOut, true, 5), "{error}");
    assert_eq!(peer.request().await.unwrap().method(), &Method::Teardown);
    // A server that plays, and never sends.
    let _peer = server.play(PICTURES).await;
    let silent = Instant::now();
    let mut state = viewer.reporter.state();
    state.mark_unchanged();
    state.changed().await.unwrap();
    assert_eq!(silent.elapsed().as_secs(), 10);
}

#[tokio::test(start_paused = true)]
async fn parameter_sets_in_band_are_waited_for() {
    let (mut server, connector) = server();
    let mut viewer = start(connector, |_| {});
    let mut peer = server.play(IN_BAND).await;
    peer.frame(0, &picture(0x65, 1), 0).await;
    let slice = picture(0x65, 2);
    let frame = [units(&[SPS, PPS]), slice.clone()].concat();
    peer.frame(0, &frame, 3600).await;
    let frames = viewer.take(1).await;
    assert!(frames[0].data.ends_with(&slice) && frames[0].is_sync && frames[0].number == 0);
    drop(peer);

    // The next session has none for the longest time.
    let mut peer = server.play(IN_BAND).await;
    let began = Instant::now();
    while viewer.error().await.0.kind != SourceErrorKind::NoMedia {
        peer.frame(0, &picture(0x41, 2), 0).await;
        sleep(Duration::from_secs(1)).await;
        assert!(began.elapsed() < Duration::from_secs(20));
    }
    // The state is looked at once a second.
    assert!((10..=11).contains(&began.elapsed().as_secs()));
}

#[tokio::test(start_paused = true)]
async fn reports_are_sent_and_bye_ends() {
    let (mut server, connector) = server();
    let mut viewer = start(connector, |_| {});
    let mut peer = server.play(SDP).await;
    for number in 0..8_u8 {
        peer.frame(0, &picture(if number == 0 { 0x65 } else { 0x41 }, number), 90_000 * u32::from(number)).await;
        peer.frame(1, &[number; 40], 48_000 * u32::from(number)).await;
        sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(viewer.take(16).await.len(), 16);
    let (channel, report) = peer.interleaved().await;
    assert_eq!((channel, report[1]), (1, 201), "a receiver report");
    for ssrc in [70, 71] {
        let bye = [0x81, 203, 0, 1, 0, 0, 0, ssrc];
        peer.data(2 * (ssrc - 70) + 1, &bye).await;
    }
    let ended = Instant::now();
    assert!(viewer.error().await.1);
    assert!(ended.elapsed() <= Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn a_film_without_a_bye_ends_at_the_length_that_its_description_states() {
    let film = SDP.replace("a=control:*", "a=control:*\r\na=range:npt=0-8.000");
    for (seconds, is_whole) in [(8_u8, true), (5, false)] {
        let (mut server, connector) = server();
        let mut viewer = start(connector, |source| source.policies.after_end = AfterEnd::Close);
        let mut peer = server.play(&film).await;
        for number in 0..seconds {
            peer.frame(0, &picture(if number == 0 { 0x65 } else { 0x41 }, number), 90_000 * u32::from(number)).await;
            peer.frame(1, &[number; 40], 48_000 * u32::from(number)).await;
            sleep(Duration::from_secs(1)).await;
        }
        assert_eq!(viewer.take(2 * usize::from(seconds)).await.len(), 2 * usize::from(seconds));
        if is_whole {
            let silent = Instant::now();
            timeout(Duration::from_secs(100), viewer.task).await.expect("the end").unwrap();
            assert!(silent.elapsed() <= Duration::from_secs(2), "{:?}", silent.elapsed());
        } else {
            assert!(viewer.error().await.1, "a source that stops before its end is lost");
        }
    }
}
