//! Live streams by RTSP: an edge that plays another server's streams.

use crate::support::{self, Server, clips, relay::Relay, rtsp::Client};
use std::time::{Duration, Instant};

/// 25 pictures a second, key frames two seconds apart.
pub(crate) const CLIP: &str = "h264_aac.mp4";

/// A server with a channel, and an edge whose place is that server.
pub(crate) fn servers() -> (Server, Server) {
    let upstream = Server::start(&[clips::folder().to_str().unwrap(), "--rtsp-channels", CLIP]);
    let place = format!("cams=rtsp://127.0.0.1:{}/", upstream.rtsp);
    let edge = Server::start(&[&place, "--linger", "0s"]);
    (upstream, edge)
}

/// A server with a channel, and an edge whose place is that server behind a relay, which loses one of `loss` packets.
pub(crate) fn relayed(loss: usize, transport: &str, more: &[&str]) -> (Server, Relay, Server) {
    let upstream = Server::start(&[clips::folder().to_str().unwrap(), "--rtsp-channels", CLIP]);
    let relay = Relay::start(upstream.rtsp, loss);
    let place = format!("cams=rtsp://127.0.0.1:{}/", relay.port);
    let edge = Server::start(&[&[&*place, "--linger", "0s", "--source-transport", transport], more].concat());
    (upstream, relay, edge)
}

/// The kinds of the modules that there are.
fn kinds(server: &Server) -> Vec<String> {
    let graph: serde_json::Value = support::api::api(server.admin, "graph");
    let modules = graph["modules"].as_array().unwrap();
    let mut kinds: Vec<String> = modules.iter().map(|module| module["kind"].as_str().unwrap().to_owned()).collect();
    kinds.sort();
    kinds
}

/// Counters of live streams of a server, for the message of a failure.
pub(crate) fn counted(server: &Server) -> String {
    let text = support::get(server.admin, "/metrics", &[]).text().to_owned();
    let is_told = |line: &&str| line.starts_with("millpond_live_") && !line.ends_with(" 0");
    text.lines().filter(is_told).collect::<Vec<_>>().join(", ")
}

fn until_nothing_runs(server: &Server) {
    let began = Instant::now();
    while !kinds(server).is_empty() {
        assert!(began.elapsed() < Duration::from_secs(40), "{:?}", kinds(server));
        std::thread::sleep(Duration::from_millis(50));
    }
}

pub(crate) fn watch(server: &Server, path: &str) -> Client {
    let mut client = Client::new(server, path);
    let described = client.ask("DESCRIBE", "", "");
    let is_live = described.status == 200 && described.body.contains("a=range:npt=now-");
    assert!(is_live, "{} {}", described.status, described.body);
    assert_eq!(client.set_up("v1", "RTP/AVP/TCP;unicast;interleaved=0-1").status, 200);
    assert_eq!(client.set_up("a1", "RTP/AVP/TCP;unicast;interleaved=2-3").status, 200);
    let reply = client.ask("PLAY", "", "");
    assert_eq!((reply.status, &*reply.headers["range"]), (200, "npt=now-"));
    client
}

/// Payloads of whole pictures, those of one timestamp together. The last picture may have more, and is left out.
pub(crate) fn pictures(client: &Client) -> Vec<Vec<&[u8]>> {
    let packets: Vec<&Vec<u8>> =
        client.packets.iter().filter(|(channel, _)| *channel == 0).map(|(_, packet)| packet).collect();
    let each = packets.chunk_by(|a, b| a[4..8] == b[4..8]);
    let mut all: Vec<Vec<&[u8]>> = each.map(|of| of.iter().map(|packet| &packet[12..]).collect()).collect();
    all.pop();
    all
}

#[test]
fn viewers_of_a_stream_share_one_session_and_get_every_picture() {
    let (upstream, edge) = servers();
    let path = format!("cams/{CLIP}");
    let mut direct = watch(&upstream, CLIP);
    direct.receive(|packets| packets.len() > 20);
    let mut first = watch(&edge, &path);
    first.receive(|packets| packets.len() > 100);
    let mut second = watch(&edge, &path);
    assert_eq!(kinds(&edge), ["reception", "transmission", "transmission"]);
    assert_eq!(kinds(&upstream), ["channel", "loader", "transmission", "transmission"]);
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(6) {
        [&mut direct, &mut first, &mut second].into_iter().for_each(Client::packet);
    }
    let sent = pictures(&direct);
    for viewer in [&first, &second] {
        let seen = pictures(viewer);
        let at = sent.iter().position(|picture| picture == &seen[0]).expect("a picture of the channel");
        assert!(at.is_multiple_of(50), "a key frame first, not picture {at}");
        let both = seen.len().min(sent.len() - at);
        assert!(both > 50, "{both} pictures");
        let same = seen.iter().zip(&sent[at..]).take_while(|(a, b)| a == b).count();
        assert_eq!(same, both, "picture {same} differs; {}", counted(&edge));
    }
    assert_eq!(edge.metric("millpond_rtp_missed_deadlines_total", ""), 0.0);
    assert_eq!(first.ask("TEARDOWN", "", "").status, 200);
    // The reply may be faster than the end of the module.
    let began = Instant::now();
    while kinds(&edge) != ["reception", "transmission"] {
        assert!(began.elapsed() < Duration::from_secs(40), "{:?}", kinds(&edge));
        std::thread::sleep(Duration::from_millis(50));
    }
    drop((first, second));
    until_nothing_runs(&edge);
    drop(direct);
    until_nothing_runs(&upstream);
}

#[test]
fn failures_of_a_source_become_statuses() {
    let (upstream, edge) = servers();
    assert_eq!(Client::new(&edge, "cams/nothing").ask("DESCRIBE", "", "").status, 404);
    assert_eq!(Client::new(&edge, "cams/nothing").set_up("v1", "RTP/AVP;unicast;client_port=5000-5001").status, 404);
    drop(upstream);
    assert_eq!(Client::new(&edge, &format!("cams/{CLIP}")).ask("DESCRIBE", "", "").status, 502);
    until_nothing_runs(&edge);
}

/// Checks that sequence numbers and times of a viewer's pictures go on, and that all of them are pictures of the clip.
fn assert_goes_on(viewer: &Client, sent: &[Vec<&[u8]>]) {
    let heads = viewer.rtp(0);
    assert!(heads.windows(2).all(|two| two[0].0.wrapping_add(1) == two[1].0), "sequence numbers have no hole");
    // B-frames go back by a few pictures; a new start would go back by more.
    assert!(heads.windows(2).all(|two| (two[1].1.wrapping_sub(two[0].1) as i32) > -90_000), "times go on");
    for (number, picture) in pictures(viewer).iter().enumerate() {
        assert!(sent.contains(picture), "picture {number} is none of the clip");
    }
}

pub(crate) fn receive_for(clients: &mut [&mut Client], time: Duration) {
    let began = Instant::now();
    while began.elapsed() < time {
        clients.iter_mut().for_each(|client| client.packet());
    }
}

#[test]
fn a_connection_that_is_cut_or_silent_costs_pictures_but_breaks_none() {
    let (upstream, relay, edge) = relayed(0, "tcp", &[]);
    let mut direct = watch(&upstream, CLIP);
    // All pictures of the clip, which has 225.
    let began = Instant::now();
    while pictures(&direct).len() < 240 {
        assert!(began.elapsed() < Duration::from_secs(60), "{}", upstream.log_text());
        (0..50).for_each(|_| direct.packet());
    }
    let mut viewer = watch(&edge, &format!("cams/{CLIP}"));
    for (fault, connections) in [(Relay::cut as fn(&Relay), 2), (Relay::mute, 3)] {
        let before = viewer.packets.len();
        viewer.receive(|packets| packets.len() > before + 200);
        fault(&relay);
        let began = Instant::now();
        while relay.connections() < connections {
            assert!(began.elapsed() < Duration::from_secs(30), "{}", edge.log_text());
            std::thread::sleep(Duration::from_millis(20));
        }
        let before = viewer.packets.len();
        // The packets that wait in the sockets are from before the fault.
        viewer.receive(|packets| packets.len() > before + 400);
    }
    assert_eq!(kinds(&edge), ["reception", "transmission"]);
    assert_goes_on(&viewer, &pictures(&direct));
    drop(viewer);
    until_nothing_runs(&edge);
}

#[test]
fn every_picture_that_arrives_whole_by_udp_is_passed_on() {
    let (upstream, relay, edge) = relayed(50, "udp", &["--source-retransmission", "false"]);
    let mut direct = watch(&upstream, CLIP);
    direct.receive(|packets| packets.len() > 20);
    let mut viewer = watch(&edge, &format!("cams/{CLIP}"));
    // Shorter than the clip: every payload is sent once.
    receive_for(&mut [&mut direct, &mut viewer], Duration::from_secs(6));
    let (sent, seen, lost) = (pictures(&direct), pictures(&viewer), relay.lost());
    assert!(lost.len() > 3, "{} packets were lost", lost.len());
    let is_whole = |picture: &&Vec<&[u8]>| picture.iter().all(|payload| !lost.contains(*payload));
    let at = sent.iter().position(|picture| picture == &seen[0]).expect("a picture of the channel");
    let whole: Vec<_> = sent[at..].iter().filter(is_whole).collect();
    let both = seen.len().min(whole.len());
    assert!(both > 50 && whole.len() < sent.len() - at, "{both} pictures");
    let same = seen.iter().zip(&whole).take_while(|(a, b)| a == *b).count();
    assert_eq!(same, both, "picture {same} differs; {}", counted(&edge));
}
