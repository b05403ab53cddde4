//! Lost packets of RTSP: an edge asks the source for them again, and viewers get whole frames.

use crate::{
    live::rtsp::{CLIP, counted, pictures, receive_for, relayed, watch},
    live::sources::{PICTURES, SOUND, Source, X264, has_gstreamer},
    support::{Server, free_port, relay::Relay, rtsp::Client},
};
use std::time::{Duration, Instant};

fn repaired(edge: &Server) -> f64 {
    edge.metric("millpond_live_repaired_packets_total", "")
}

#[test]
fn pictures_with_lost_packets_are_repaired() {
    // A machine that stands still for a third of a second gives packets up, which the metric tells.
    assert!((0..3).any(|_| are_repaired()), "packets are repaired too late again and again");
}

/// Plays with losses: whether all packets were repaired in time.
fn are_repaired() -> bool {
    let (upstream, relay, edge) = relayed(50, "udp", &[]);
    let mut direct = watch(&upstream, CLIP);
    direct.receive(|packets| packets.len() > 20);
    let mut viewer = watch(&edge, &format!("cams/{CLIP}"));
    // Shorter than the clip: every payload is sent once.
    receive_for(&mut [&mut viewer], Duration::from_secs(6));
    let last = pictures(&viewer).last().unwrap().concat();
    let began = Instant::now();
    while !pictures(&direct).iter().any(|picture| picture.concat() == last) && began.elapsed() < Duration::from_secs(8)
    {
        (0..20).for_each(|_| direct.packet());
    }
    let (sent, seen) = (pictures(&direct), pictures(&viewer));
    assert!(relay.lost().len() > 3, "{} packets were lost", relay.lost().len());
    let at = sent.iter().position(|picture| picture == &seen[0]).expect("a picture of the channel");
    let both = seen.len().min(sent.len() - at);
    assert!(both > 50, "{both} pictures");
    let same = seen.iter().zip(&sent[at..]).take_while(|(a, b)| a == b).count();
    if same < both && edge.metric("millpond_live_too_late_packets_total", "") > 0.0 {
        return false;
    }
    assert_eq!(same, both, "picture {same} differs; {}", counted(&edge));
    assert!(repaired(&edge) > 3.0, "{}", counted(&edge));
    true
}

#[test]
fn gstreamer_repairs_what_is_lost() {
    if !has_gstreamer() {
        return;
    }
    let sound = format!("{SOUND} ! rtpmp4gpay name=pay1 pt=97");
    let door = format!("{PICTURES} ! x264enc tune=zerolatency {X264} ! rtph264pay name=pay0 pt=96 {sound}");
    for profiles in ["avpf", "both"] {
        let source = Source::with_retransmission(free_port(), &[("door", door.clone())], profiles);
        let relay = Relay::start(source.port, 33);
        let place = format!("cams=rtsp://127.0.0.1:{}/", relay.port);
        let edge = Server::start(&[&place, "--linger", "0s", "--source-transport", "udp"]);
        let mut viewer = Client::new(&edge, "cams/door");
        assert_eq!(viewer.set_up("v1", "RTP/AVP/TCP;unicast;interleaved=0-1").status, 200);
        assert_eq!(viewer.ask("PLAY", "", "").status, 200);
        viewer.receive(|packets| packets.len() > 100);
        // The first frame may have begun before the session.
        let broken = || edge.metric("millpond_live_broken_frames_total", "");
        let (before, lost) = (broken(), relay.lost().len());
        viewer.receive(|packets| packets.len() > 800);
        assert!(relay.lost().len() > lost + 3 && repaired(&edge) > 3.0, "{profiles}: {}", counted(&edge));
        // A machine that stands still for a third of a second gives packets up.
        let too_late = edge.metric("millpond_live_too_late_packets_total", "");
        assert!(broken() <= before + too_late, "{profiles}: {}", counted(&edge));
    }
}
