//! Packets that are lost and asked for again: by an edge, and by a viewer.

use super::{By, watch::Watch};
use crate::{
    live::rtsp::{CLIP, relayed, watch as play},
    support::{Server, clips, relay::sockets, rtsp::Client},
};
use std::{
    net::UdpSocket,
    time::{Duration, Instant},
};

#[test]
fn a_source_that_loses_packets() {
    let (_upstream, relay, edge) = relayed(20, "udp", &[]);
    let watch = Watch::begin(&edge);
    let mut viewer = play(&edge, &format!("cams/{CLIP}"));
    for family in ["millpond_live_asked_packets_total", "millpond_live_repaired_packets_total"] {
        watch.until(family, || viewer.packet());
    }
    relay.lose_repeats();
    watch.until("millpond_live_too_late_packets_total", || viewer.packet());
    watch.end(By::Repairs, &edge);
}

/// A request for a packet: a report without a block, and generic NACK.
fn nack(source: [u8; 4], sequence: [u8; 2]) -> Vec<u8> {
    let (report, head) = ([0x80, 201, 0, 1, 0, 0, 0, 5], [0x81, 205, 0, 3, 0, 0, 0, 5]);
    [&report[..], &head, &source, &sequence, &[0, 0]].concat()
}

/// Returns the next packet with a payload type.
fn next(socket: &UdpSocket, payload_type: u8) -> Option<Vec<u8>> {
    let (mut bytes, began) = ([0; 2048], Instant::now());
    while let Ok(length) = socket.recv(&mut bytes)
        && began.elapsed() < Duration::from_secs(20)
    {
        if bytes[1] & 0x7f == payload_type {
            return Some(bytes[..length].to_vec());
        }
    }
    None
}

#[test]
fn a_viewer_that_loses_packets() {
    let server = Server::start(&[clips::folder().to_str().unwrap(), "--rtsp-channels", CLIP]);
    let watch = Watch::begin(&server);
    let mut client = Client::new(&server, CLIP);
    let described = client.ask("DESCRIBE", "", "").body;
    assert!(
        described.contains("a=rtcp-fb:96 nack\r\n") && described.contains("m=video 0 RTP/AVP 96\r\n"),
        "{described}"
    );
    assert!(described.contains("a=rtpmap:127 rtx/90000\r\na=fmtp:127 apt=96;rtx-time=1000\r\n"), "{described}");
    let (port, [rtp, rtcp]) = sockets();
    rtp.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let reply = client.set_up("v1", &format!("RTP/AVPF;unicast;client_port={port}-{}", port + 1));
    let transport = &reply.headers["transport"];
    assert!(reply.status == 200 && transport.starts_with("RTP/AVPF;unicast;"), "{transport}");
    let ports = transport.split("server_port=").nth(1).and_then(|rest| rest.split(['-', ';']).nth(1)).unwrap();
    let server_rtcp: u16 = ports.parse().unwrap();
    assert_eq!(client.ask("PLAY", "", "").status, 200);
    let ask = |packet: Vec<u8>| rtcp.send_to(&packet, ("127.0.0.1", server_rtcp)).unwrap();

    // The newest packet: the server keeps them for a second.
    let found = (0..5).find_map(|_| {
        let mut lost = next(&rtp, 96).expect("a packet");
        rtp.set_nonblocking(true).unwrap();
        while let Some(newer) = next(&rtp, 96) {
            lost = newer;
        }
        rtp.set_nonblocking(false).unwrap();
        let (sequence, source) = ([lost[2], lost[3]], [lost[8], lost[9], lost[10], lost[11]]);
        ask(nack(source, sequence));
        let repeated = next(&rtp, 127).filter(|packet| packet[12..14] == sequence)?;
        Some((lost, sequence, source, repeated))
    });
    let (lost, sequence, source, repeated) = found.expect("the packet again");
    assert_eq!((&repeated[12..14], &repeated[14..]), (&sequence[..], &lost[12..]));
    assert_eq!((&repeated[4..8], repeated[1] & 0x80), (&lost[4..8], lost[1] & 0x80));
    assert_ne!(repeated[8..12], source, "a source of its own");
    // No flood: it is sent three times, whatever is asked for.
    for _ in 0..10 {
        ask(nack(source, sequence));
    }
    ask(nack([source[0] ^ 1, source[1], source[2], source[3]], sequence));
    for family in ["millpond_rtp_refused_repeats_total", "millpond_rtcp_foreign_feedback_total"] {
        watch.until(family, || ());
    }
    watch.end(By::Repeats, &server);
    assert!(server.metric("millpond_rtp_repeated_packets_total", "") <= 3.0);
    assert_eq!(server.metric("millpond_rtcp_foreign_feedback_total", ""), 1.0);
}

/// A receiver report (RFC 3550 6.4.2) of a source, with a fifth of its packets lost, in reply to a sender report.
fn report(sender: &[u8], highest: u16, lost: u32) -> Vec<u8> {
    let mut report = vec![0x81, 201, 0, 7, 0, 0, 0, 5];
    report.extend(&sender[4..8]);
    report.push(51);
    report.extend(&lost.to_be_bytes()[1..]);
    report.extend(u32::from(highest).to_be_bytes());
    report.extend([0; 4]);
    report.extend(&sender[10..14]);
    report.extend([0; 4]);
    report
}

#[test]
fn a_viewer_whose_link_is_too_narrow() {
    let server = Server::start(&[clips::folder().to_str().unwrap(), "--rtsp-rate-control", "tfrc"]);
    let watch = Watch::begin(&server);
    let mut client = Client::new(&server, CLIP);
    let (port, [rtp, rtcp]) = sockets();
    let reply = client.set_up("v1", &format!("RTP/AVP;unicast;client_port={port}-{}", port + 1));
    let transport = &reply.headers["transport"];
    let ports = transport.split("server_port=").nth(1).and_then(|rest| rest.split(['-', ';']).nth(1)).unwrap();
    let server_rtcp: u16 = ports.parse().unwrap();
    assert_eq!(client.ask("PLAY", "", "").status, 200);
    rtp.set_nonblocking(true).unwrap();
    rtcp.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let (mut highest, mut received) = (0, 0_u32);
    let mut reply = || {
        let mut bytes = [0; 2048];
        let length = rtcp.recv(&mut bytes).unwrap();
        while rtp.recv(&mut bytes[length..]).is_ok() {
            (highest, received) = (u16::from_be_bytes([bytes[length + 2], bytes[length + 3]]), received + 1);
        }
        if bytes[1] == 200 && received > 0 {
            // It claims to have replied at once: a round trip of 0.3 s.
            std::thread::sleep(Duration::from_millis(300));
            rtcp.send_to(&report(&bytes[..length], highest, received / 5), ("127.0.0.1", server_rtcp)).unwrap();
        }
    };
    for family in ["millpond_rtp_loss_events_total", "millpond_rtp_held_frames_total"] {
        watch.until(family, &mut reply);
    }
    watch.end(By::Paced, &server);
}
