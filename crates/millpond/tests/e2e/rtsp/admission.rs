//! Admission to RTSP: a session is refused that the machine or an origin can't serve as well as those that play
//! already.

use crate::support::{Server, clips, origins, rtsp::Client};
use std::{
    net::UdpSocket,
    path::Path,
    time::{Duration, Instant},
};

const OVER_TCP: &str = "RTP/AVP/TCP;unicast;interleaved=0-1";

/// Two films of 2 Mbit/s and 40 s.
fn films(folder: &Path) {
    clips::make(
        &folder.join("a.mp4"),
        "-f lavfi -i testsrc2=size=320x180:rate=25:duration=40,noise=alls=60:allf=t -c:v libx264 -preset ultrafast -b:v 2M -g 25",
    );
    std::fs::copy(folder.join("a.mp4"), folder.join("b.mp4")).unwrap();
}

/// One who asks to play, and what the answer is.
fn play(server: &Server, film: &str) -> (Client, u16) {
    let mut client = Client::new(server, film);
    assert_eq!(client.set_up("v1", OVER_TCP).status, 200);
    let status = client.ask("PLAY", "", "").status;
    (client, status)
}

#[test]
fn who_does_not_fit_is_refused() {
    let folder = clips::folder().to_str().unwrap();
    let server = Server::start(&[folder, "--rtsp-sessions-per-client", "20", "--rtsp-mbps", "1"]);
    let mut clients: Vec<Client> = (0..21).map(|_| Client::new(&server, "h264_aac.mp4")).collect();
    let set_up = |client: &mut Client| client.set_up("v1", OVER_TCP).status;
    let statuses: Vec<u16> = clients.iter_mut().map(set_up).collect();
    assert_eq!((statuses[..20].iter().all(|status| *status == 200), statuses[20]), (true, 453));
    let played: Vec<u16> = clients[..20].iter_mut().map(|client| client.ask("PLAY", "", "").status).collect();
    let fits = played.iter().take_while(|status| **status == 200).count();
    assert!((1..20).contains(&fits) && played[fits..].iter().all(|status| *status == 453), "a megabit: {played:?}");
    // Who leaves makes room.
    assert_eq!(clients[0].ask("TEARDOWN", "", "").status, 200);
    assert_eq!(clients[fits].ask("PLAY", "", "").status, 200);
    assert_eq!(set_up(&mut clients[20]), 200);
}

#[test]
fn a_silent_client_keeps_its_session_for_the_time_that_is_set() {
    let folder = clips::folder().to_str().unwrap();
    let server = Server::start(&[folder, "--rtsp-session-timeout", "10s", "--rtsp-sessions-per-client", "1"]);
    // The ports of a client that listens and never reports.
    let sockets = [UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap()];
    let [rtp, rtcp] = sockets.each_ref().map(|socket| socket.local_addr().unwrap().port());
    let mut client = Client::new(&server, "h264_aac.mp4");
    let reply = client.set_up("v1", &format!("RTP/AVP;unicast;client_port={rtp}-{rtcp}"));
    assert!(reply.headers["session"].ends_with(";timeout=10"), "{:?}", reply.headers);
    assert_eq!(client.ask("PLAY", "", "").status, 200);
    let played = Instant::now();
    // A session by UDP that has played outlives its connection.
    drop(client);
    let mut next = Client::new(&server, "h264_aac.mp4");
    while next.set_up("v1", OVER_TCP).status != 200 {
        // 60 s without the setting.
        assert!(played.elapsed() < Duration::from_secs(50), "the session stays\n{}", server.log_text());
        std::thread::sleep(Duration::from_millis(200));
    }
    assert!(played.elapsed() >= Duration::from_secs(9), "the session ended after {:?}", played.elapsed());
}

#[test]
fn an_origin_is_read_by_no_more_than_it_gives() {
    let (folder, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    films(folder.path());
    let Some((_origin, port)) = origins::nginx(folder.path(), scratch.path(), "") else { return };
    let server = Server::start(&[&format!("http://127.0.0.1:{port}"), "--rtsp-origin-mbps", "3"]);
    let (first, status) = play(&server, "a.mp4");
    assert_eq!(status, 200);
    assert_eq!(play(&server, "b.mp4").1, 453, "two megabits and two are more than three");
    let (mut second, status) = play(&server, "a.mp4");
    assert_eq!(status, 200, "what another has just read");
    let mut jump = || second.ask("PLAY", "", "Range: npt=30-\r\n").status;
    assert_eq!(jump(), 453, "where nobody was");
    assert_eq!(server.get("b.mp4").status, 200);
    assert_eq!(play(&server, "b.mp4").1, 200, "what lies in the cache");
    drop(first);
    let began = Instant::now();
    while jump() != 200 {
        assert!(began.elapsed() < Duration::from_secs(40), "who left makes room");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn who_would_read_from_an_origin_that_is_late_is_refused() {
    let (folder, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    films(folder.path());
    let slow = "limit_rate_after 100k; limit_rate 30k;";
    let Some((_origin, port)) = origins::nginx(folder.path(), scratch.path(), slow) else { return };
    let server = Server::start(&[&format!("http://127.0.0.1:{port}")]);
    let status_comes = |status: u16| {
        let began = Instant::now();
        while play(&server, "b.mp4").1 != status {
            assert!(began.elapsed() < Duration::from_secs(30), "{status}\n{}", server.log_text());
            std::thread::sleep(Duration::from_millis(200));
        }
    };
    let (first, status) = play(&server, "a.mp4");
    assert_eq!(status, 200);
    status_comes(453);
    drop(first);
    status_comes(200);
}
