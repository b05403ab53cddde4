//! Sessions and connections of silent clients.

use super::simulation::{Over, SECOND, World};
use crate::rtsp::{record::End, signalling::Ended};

const UDP: &str = "RTP/AVP;unicast;client_port=5000-5001";
const TCP: &str = "RTP/AVP/TCP;unicast;interleaved=0-1";
/// A receiver report on channel 1, and on one that nobody has.
const REPORT: &[u8] = b"$\x01\x00\x04\x80\xc9\x00\x00";
const STRAY: &[u8] = b"$\x07\x00\x04\x80\xc9\x00\x00";

/// A session that plays the whole title.
fn play(world: &mut World, transport: &str) -> (usize, String) {
    let client = world.connect(1);
    let session = world.set_up(client, transport);
    assert_eq!(world.ask(client, "PLAY", &session).status, 200);
    (client, session)
}

#[test]
fn a_session_without_keep_alive_ends_after_a_minute() {
    let mut world = World::default();
    let (client, session) = play(&mut world, UDP);
    world.pass(60 * SECOND);
    assert_eq!(world.sessions.len(), 1, "a minute is within the limit");
    world.pass(5 * SECOND);
    assert_eq!((world.sessions.len(), world.made[0].state().ended), (0, Some(End::Silent)));
    assert_eq!(world.ask(client, "GET_PARAMETER", &session).status, 454);
    world.pass(31 * SECOND);
    assert_eq!(world.clients[client].over, Some(Over::Ended(Ended::Silent)), "its connection follows");
}

#[test]
fn any_request_keeps_a_session_alive() {
    let mut world = World::default();
    let (client, session) = play(&mut world, UDP);
    for minute in 0..60 {
        world.pass(59 * SECOND);
        let method = ["GET_PARAMETER", "SET_PARAMETER", "OPTIONS"][minute % 3];
        let reply = world.ask(client, method, &session);
        assert_eq!(reply.status, 200);
        assert_eq!(reply.header("Session").is_some(), method != "OPTIONS");
    }
    assert_eq!((world.sessions.len(), world.clients[client].over), (1, None));
    // A request without its name keeps the connection, and not the session.
    for _ in 0..3 {
        world.pass(25 * SECOND);
        assert_eq!(world.ask(client, "OPTIONS", "").status, 200);
    }
    assert_eq!((world.sessions.len(), world.clients[client].over), (0, None));
}

#[test]
fn reports_by_udp_keep_a_session_and_its_connection() {
    use crate::rtsp::signalling::Viewer as _;
    let mut world = World::default();
    let (client, session) = play(&mut world, UDP);
    assert_eq!(world.ask(client, "PAUSE", &session).status, 200);
    for _ in 0..600 {
        world.pass(5 * SECOND);
        // A sending thread hears the receiver.
        world.made[0].heard(world.now);
    }
    assert_eq!((world.sessions.len(), world.clients[client].over), (1, None), "though nothing is said on it");
}

#[test]
fn packets_on_a_connection_show_that_its_client_is_there() {
    let mut world = World::default();
    let (client, _) = play(&mut world, TCP);
    world.pass(99 * SECOND);
    assert_eq!((world.sessions.len(), world.clients[client].over), (1, None), "100 s of media without a word");
    world.pass(6 * SECOND);
    assert_eq!(world.sessions.len(), 0, "nothing is sent behind the end");
    world.pass(60 * SECOND);
    assert_eq!(world.clients[client].over, Some(Over::Ended(Ended::Silent)));
}

#[test]
fn reports_on_a_channel_keep_a_paused_session_and_stray_ones_do_not() {
    let mut world = World::default();
    let (client, session) = play(&mut world, TCP);
    assert_eq!(world.ask(client, "PAUSE", &session).status, 200);
    for _ in 0..100 {
        world.pass(20 * SECOND);
        assert!(world.send(client, REPORT).is_empty());
    }
    assert_eq!((world.sessions.len(), world.made[0].state().reports), (1, 100));
    for _ in 0..4 {
        world.pass(20 * SECOND);
        world.send(client, STRAY);
    }
    assert_eq!((world.sessions.len(), world.made[0].state().reports), (0, 100));
}

#[test]
fn a_session_whose_client_reads_nothing_ends_at_the_next_look() {
    let mut world = World::default();
    let (_, _) = play(&mut world, TCP);
    world.pass(SECOND);
    world.made[0].state().is_stuck = true;
    world.pass(5 * SECOND);
    assert_eq!(world.sessions.len(), 0);
}

#[test]
fn a_session_that_is_asked_for_something_is_not_ended() {
    let mut world = World::default();
    let (client, session) = play(&mut world, UDP);
    world.made[0].state().is_busy = true;
    world.pass(120 * SECOND);
    assert_eq!((world.sessions.len(), world.clients[client].over), (1, None), "an origin that takes two minutes");
    world.made[0].state().is_busy = false;
    assert_eq!(world.ask(client, "GET_PARAMETER", &session).status, 200);
    world.pass(59 * SECOND);
    assert_eq!(world.sessions.len(), 1);
}

#[test]
fn a_connection_without_a_session_that_played_ends_when_idle() {
    let mut world = World::default();
    let silent = world.connect(1);
    let waiting = world.connect(2);
    world.set_up(waiting, UDP);
    world.pass(30 * SECOND);
    for client in [silent, waiting] {
        assert_eq!(world.clients[client].over, Some(Over::Ended(Ended::Silent)));
    }
    assert_eq!((world.sessions.len(), world.made[0].state().ended), (0, Some(End::ConnectionLost)));
}

#[test]
fn a_request_that_stays_incomplete_ends_the_connection() {
    let mut world = World::default();
    let (client, _) = play(&mut world, TCP);
    // Line ends are no message; a byte of one begins it.
    world.send(client, b"\r\n\r\n");
    world.pass(20 * SECOND);
    assert_eq!(world.clients[client].over, None);
    for byte in b"OPTIONS * " {
        assert!(world.clients[client].over.is_none());
        world.send(client, &[*byte]);
        world.pass(SECOND);
    }
    assert_eq!(world.clients[client].over, Some(Over::Ended(Ended::Incomplete)));
    assert_eq!((world.sessions.len(), world.made[0].state().ended), (0, Some(End::ConnectionLost)));
}
