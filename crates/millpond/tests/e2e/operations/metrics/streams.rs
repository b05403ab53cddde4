//! RTSP: sessions, their receivers' reports, refusals, and what goes out late.

use super::origin::{Manner, Origin};
use super::{By, watch::Watch, web::serve};
use crate::support::{Server, free_port, have, rtsp::Client, skip};
use millpond_rtp::rtcp::{ReportBlock, receiver_report};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    io::Write as _,
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

/// Sessions of sound that no thread can send: 188 packets a second each.
const SESSIONS: usize = 8000;
const TCP: &str = "RTP/AVP/TCP;unicast;interleaved=0-1";

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../assets/sample").join(name)
}

/// A client that plays the pictures of an asset on its connection.
fn player(server: &Server, asset: &str, headers: &str) -> (Client, u32) {
    let mut client = Client::new(server, asset);
    let transport = client.set_up("v1", TCP).headers["transport"].clone();
    assert_eq!(client.ask("PLAY", "", headers).status, 200);
    (client, u32::from_str_radix(transport.split("ssrc=").nth(1).unwrap(), 16).unwrap())
}

#[test]
fn sessions() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(sample("180p.mp4"), folder.path().join("a.mp4")).unwrap();
    // The same with media that is no H.264.
    let mut broken = std::fs::read(sample("180p.mp4")).unwrap();
    let media = broken.windows(4).position(|name| name == b"mdat").unwrap() + 4;
    let end = media + u32::from_be_bytes(broken[media - 8..media - 4].try_into().unwrap()) as usize - 8;
    broken[media..end].fill(0xff);
    std::fs::write(folder.path().join("broken.mp4"), broken).unwrap();
    let rtmp = free_port();
    let pushed = format!("127.0.0.1:{rtmp}");
    let one_address = ["--rtsp-sessions-per-client", "5", "--rtmp", &pushed];
    let server = Server::start(
        &[&one_address[..], &[folder.path().to_str().unwrap(), "--rtsp-sessions", "5", "--max-connections", "16"]]
            .concat(),
    );
    let watch = Watch::begin(&server);
    // Two that watch the same, one a little behind what neither of them has read, and one without a picture.
    let (mut first, source) = player(&server, "a.mp4", "Range: npt=8-\r\n");
    let others = [("a.mp4", "Range: npt=8-\r\n"), ("a.mp4", "Range: npt=2-\r\n"), ("broken.mp4", "")];
    let others = others.map(|(asset, range)| player(&server, asset, range));
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    // The middle of an NTP time a second ago (RFC 3550 6.4.1).
    let last_report = ((now.as_secs() - 1 + 2_208_988_800) as u32) << 16;
    let reception =
        ReportBlock { ssrc: source, fraction_lost: 0, lost: 3, highest: 1, jitter: 90, last_report, delay: 0 };
    let packet = receiver_report(7, &[reception], "a client");
    let mut bytes = vec![b'$', 1, 0, packet.len() as u8];
    bytes.extend_from_slice(&packet);
    first.stream.get_mut().write_all(&bytes).unwrap();
    // A fifth that waits, and a sixth that finds no room.
    let waiting: Vec<_> = (0..2)
        .map(|_| {
            let mut client = Client::new(&server, "a.mp4");
            client.set_up("v1", TCP);
            client
        })
        .collect();
    let crowd = |port: u16| (0..20).filter_map(move |_| TcpStream::connect(("127.0.0.1", port)).ok());
    let many: Vec<_> = crowd(server.rtsp).chain(crowd(rtmp)).collect();
    // Nothing is sent for a while, though it was loaded.
    let process = Pid::from_child(&server.process.0);
    watch.until("millpond_rtp_lagging_frames_total", || {
        kill_process(process, Signal::STOP).unwrap();
        std::thread::sleep(Duration::from_millis(400));
        kill_process(process, Signal::CONT).unwrap();
        std::thread::sleep(Duration::from_millis(400));
    });
    drop((many, waiting));
    watch.end(By::Streams, &server);
    drop((first, others));
}

#[test]
fn an_origin_that_is_late() {
    let origin = Origin::start([("a.mp4".to_owned(), std::fs::read(sample("360p.mp4")).unwrap())]);
    let server = Server::start(&[&origin.url(), "--prefetch", "on-demand", "--slice", "16KiB"]);
    let watch = Watch::begin(&server);
    let (mut client, _) = player(&server, "a.mp4", "");
    client.receive(|packets| packets.len() > 20);
    origin.behaves(Manner::Slow(Duration::from_secs(3)));
    watch.until("millpond_rtp_missed_deadlines_total", || ());
    watch.end(By::LateOrigin, &server);
}

#[test]
fn more_than_the_threads_can_send() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(sample("360p.mp4"), folder.path().join("a.mp4")).unwrap();
    let limits = ["--workers", "1", "--rtsp-window", "60s", "--access-log", "false"];
    let server = Server::start(&[&[folder.path().to_str().unwrap()][..], &limits].concat());
    let watch = Watch::begin(&server);
    // Sound four times as fast, of which each frame is a packet, to ports where nobody listens.
    let mut client = Client::new(&server, "a.mp4");
    let mut sessions = 0;
    watch.until("millpond_rtsp_overloaded", || {
        for _ in 0..100 {
            if sessions < SESSIONS {
                client.session = None;
                client.set_up("a1", "RTP/AVP;unicast;client_port=40000-40001");
                client.ask("PLAY", "", "Speed: 4\r\n");
                sessions += 1;
            }
        }
    });
    if server.log_text().contains("the sending threads wait for the processor") {
        skip("other programs have the processor");
        return;
    }
    watch.end(By::Overload, &server);
}

/// Set where this test runs once more, on a machine of its own without a network.
const ALONE: &str = "MILLPOND_TEST_WITHOUT_NETWORK";

#[test]
fn a_machine_without_a_network() {
    if std::env::var_os(ALONE).is_none() {
        return run_without_a_network();
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(sample("180p.mp4"), folder.path().join("a.mp4")).unwrap();
    // From no address in particular: the system looks for the way of each packet.
    let port = free_port();
    let address = format!("0.0.0.0:{port}");
    let channel = ["--rtsp-channels", "a.mp4", "--rtsp-multicast", "239.192.0.1:5004/16", "--rtsp", &address];
    let server = serve(&[&[folder.path().to_str().unwrap()][..], &channel].concat(), port, Stdio::inherit());
    let watch = Watch::begin(&server);
    let mut client = Client::new(&server, "a.mp4");
    assert_eq!(client.set_up("v1", "RTP/AVP;multicast").status, 200);
    assert_eq!(client.ask("PLAY", "", "").status, 200);
    watch.until("millpond_rtp_failed_sends_total", || ());
    watch.end(By::NoNetwork, &server);
}

/// Runs the test in a network namespace that has the loopback only (network_namespaces(7)).
fn run_without_a_network() {
    if !have("unshare") || !have("ip") {
        return;
    }
    let script = "ip link set lo up && echo alone && exec \"$0\" --exact operations::metrics::streams::a_machine_without_a_network --nocapture";
    let mut command = Command::new("unshare");
    command.args(["--net", "--map-root-user", "sh", "-c", script]).arg(std::env::current_exe().unwrap());
    let output = command.env(ALONE, "1").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    if !said.contains("alone") {
        skip(&format!("no network namespace can be made here: {}", said.trim().replace('\n', ", ")));
        return;
    }
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}
