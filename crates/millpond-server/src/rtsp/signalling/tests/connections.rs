//! Requests of one connection, and what becomes of its sessions.

use super::simulation::{Over, SECOND, SESSIONS, World, request};
use crate::rtsp::{record::End, signalling::Ended};
use millpond_access::{Passwords, UserFile, Users};
use millpond_rtp::framing::FramingError;
use std::sync::Arc;

const UDP: &str = "RTP/AVP;unicast;client_port=5000-5001";
const TCP: &str = "RTP/AVP/TCP;unicast;interleaved=0-1";

/// A viewer's requests, from the description to the end.
fn visit() -> String {
    let set_up = format!("Transport: {TCP}\r\n");
    let session = "Session: session0\r\n";
    let all = [
        ("OPTIONS", String::new()),
        ("DESCRIBE", "Accept: application/sdp\r\n".into()),
        ("SETUP", set_up),
        ("PLAY", format!("{session}Range: npt=10-\r\n")),
        ("PAUSE", session.into()),
        ("PLAY", session.into()),
        ("GET_PARAMETER", session.into()),
        ("TEARDOWN", session.into()),
    ];
    all.iter().zip(1..).map(|((method, headers), number)| request(method, number, headers)).collect()
}

#[test]
fn requests_may_be_cut_at_every_byte() {
    let text = visit();
    for cut in 0..=text.len() {
        let mut world = World::default();
        let client = world.connect(1);
        let (first, second) = text.as_bytes().split_at(cut);
        let mut replies = world.send(client, first);
        replies.extend(world.send(client, second));
        let numbers: Vec<_> = replies.iter().map(|reply| (reply.status, reply.number())).collect();
        let expected: Vec<_> = (1..=8).map(|number| (200, Some(number))).collect();
        assert_eq!(numbers, expected, "cut at {cut}");
        assert_eq!(world.sessions.len(), 0);
    }
}

#[test]
fn packets_may_lie_between_requests() {
    let mut world = World::default();
    let client = world.connect(1);
    let session = world.set_up(client, TCP);
    let mut bytes = Vec::new();
    for number in 2..12 {
        bytes.extend_from_slice(b"$\x01\x00\x03\r\n$");
        bytes.extend_from_slice(request("GET_PARAMETER", number, &session).as_bytes());
    }
    let numbers: Vec<_> = world.send(client, &bytes).iter().filter_map(super::simulation::Received::number).collect();
    assert_eq!((numbers, world.made[0].state().reports), ((2..12).collect(), 10));
}

#[test]
fn two_hundred_pipelined_requests_get_their_replies_in_order() {
    let mut world = World::default();
    let client = world.connect(1);
    let session = world.set_up(client, TCP);
    let all: String = (2..202)
        .map(|number| request(["PLAY", "GET_PARAMETER", "PAUSE", "DESCRIBE"][number as usize % 4], number, &session))
        .collect();
    let replies = world.send(client, all.as_bytes());
    let numbers: Vec<_> = replies.iter().map(|reply| (reply.status, reply.number())).collect();
    assert_eq!(numbers, (2..202).map(|number| (200, Some(number))).collect::<Vec<_>>());
    let state = world.made[0].state();
    assert_eq!((state.opened, state.stopped), (50, 49));
}

#[test]
fn a_client_that_reads_no_replies_is_let_go() {
    let mut world = World::default();
    let client = world.connect(1);
    let session = world.set_up(client, TCP);
    assert_eq!(world.ask(client, "PLAY", &session).status, 200);
    world.stop_reading(client);
    let mut asked = 0;
    while world.clients[client].over.is_none() {
        world.send(client, request("DESCRIBE", 1, &session).as_bytes());
        asked += 1;
        assert!(asked < 100_000);
    }
    assert_eq!(world.clients[client].over, Some(Over::Ended(Ended::Unread)));
    assert!(asked > 1000, "{asked}: 1 MiB may wait");
    assert_eq!((world.sessions.len(), world.made[0].state().ended), (0, Some(End::ConnectionLost)));
}

#[test]
fn numbers_are_sent_back_as_they_came() {
    let mut world = World::default();
    let client = world.connect(1);
    let last = u64::from(u32::MAX);
    for number in [0, 1, 1, last - 1, last, 0, last + 1, u64::MAX, 3] {
        let replies = world.send(client, request("OPTIONS", number, "").as_bytes());
        assert_eq!((replies[0].status, replies[0].number()), (200, Some(number)));
    }
    for number in ["", "x", "+1", "-1", "18446744073709551616"] {
        let text = format!("OPTIONS * RTSP/1.0\r\nCSeq: {number}\r\n\r\n");
        let replies = world.send(client, text.as_bytes());
        assert_eq!(replies[0].status, 400, "{number:?}");
    }
    assert_eq!(world.send(client, b"OPTIONS * RTSP/1.0\r\n\r\n")[0].status, 400);
    assert!(world.clients[client].over.is_none(), "the next request can be found");
}

#[test]
fn options_that_are_required_are_named() {
    let mut world = World::default();
    let client = world.connect(1);
    let session = world.set_up(client, TCP);
    let reply = world.ask(client, "PLAY", &format!("{session}Require: play.basic, x\r\nProxy-Require: y\r\n"));
    assert_eq!((reply.status, reply.header("Unsupported")), (551, Some("play.basic, x, y")));
    assert_eq!(world.made[0].state().opened, 0);
    assert_eq!(world.ask(client, "PLAY", &format!("{session}Require: ,\r\n")).status, 200);
}

#[test]
fn bytes_that_are_no_message_end_the_connection_and_its_sessions() {
    let mut world = World::default();
    let client = world.connect(1);
    world.set_up(client, TCP);
    let replies = world.send(client, b"\x16\x03\x01");
    assert_eq!(replies[0].status, 400);
    assert_eq!(world.clients[client].over, Some(Over::Framing(FramingError::Malformed)));
    assert_eq!(world.sessions.len(), 0);
}

#[test]
fn sessions_by_udp_outlive_their_connection_once_they_played() {
    let mut world = World::default();
    let client = world.connect(1);
    let played = world.set_up(client, UDP);
    assert_eq!(world.ask(client, "PLAY", &played).status, 200);
    let waiting = world.set_up(client, UDP);
    let busy = world.set_up(client, UDP);
    world.made[2].state().is_busy = true;
    world.close(client);
    world.made[2].state().is_busy = false;
    let again = world.connect(1);
    assert_eq!(world.ask(again, "PAUSE", &played).status, 200);
    assert_eq!(world.ask(again, "PLAY", &waiting).status, 454);
    assert_eq!(world.ask(again, "PLAY", &busy).status, 200, "another connection asks for it");
    let ended: Vec<_> = world.made.iter().map(|viewing| viewing.state().ended).collect();
    assert_eq!(ended, [None, Some(End::ConnectionLost), None]);
}

#[test]
fn a_session_is_of_use_where_it_was_given_alone() {
    let mut world = World::default();
    let owner = world.connect(1);
    let (tcp, udp) = (world.set_up(owner, TCP), world.set_up(owner, UDP));
    let (same, stranger) = (world.connect(1), world.connect(2));
    for method in ["PLAY", "PAUSE", "TEARDOWN", "GET_PARAMETER", "SETUP", "OPTIONS"] {
        let refused = [(stranger, &tcp), (stranger, &udp), (same, &tcp)];
        for (client, session) in refused {
            let headers = format!("{session}Transport: {UDP}\r\n");
            assert_eq!(world.ask(client, method, &headers).status, 454, "{method}");
        }
        let wrong = ["Session: \r\n", "Session: session9\r\n", "Session: session\r\n"];
        assert!(wrong.iter().all(|headers| world.ask(owner, method, headers).status == 454), "{method}");
    }
    for method in ["PLAY", "PAUSE", "TEARDOWN"] {
        assert_eq!(world.ask(owner, method, "").status, 454, "{method} without a name");
    }
    let with_parameter = format!("{};timeout=60\r\n", udp.trim_end());
    assert_eq!(world.ask(same, "PLAY", &with_parameter).status, 200);
    assert_eq!(world.ask(owner, "PLAY", &tcp).status, 200);
}

#[test]
fn a_channel_is_free_when_its_session_is_gone() {
    let mut world = World::default();
    let client = world.connect(1);
    let first = world.set_up(client, TCP);
    let second = world.ask(client, "SETUP", &format!("Transport: {TCP}\r\n"));
    assert_eq!(second.header("Transport"), Some("RTP/AVP/TCP;interleaved=2-3"), "the next pair that is free");
    assert_eq!(world.ask(client, "SETUP", &format!("{first}Transport: {TCP}\r\n")).status, 200, "by the same track");
    let other = world.ask(client, "SETUP", "Transport: RTP/AVP/TCP\r\n");
    assert_eq!(other.header("Transport"), Some("RTP/AVP/TCP;interleaved=4-5"));
    world.ask(client, "TEARDOWN", &first);
    world.set_up(client, TCP);
    world.send(client, b"$\x01\x00\x01a");
    assert_eq!(world.made.iter().map(|viewing| viewing.state().reports).collect::<Vec<_>>(), [0, 0, 0, 1]);
}

#[test]
fn sessions_and_channels_are_bounded() {
    let mut world = World::default();
    let client = world.connect(1);
    let any_channels = "RTP/AVP/TCP;unicast";
    let first = world.set_up(client, any_channels);
    for _ in 1..128 {
        world.set_up(client, any_channels);
    }
    let set_up = |world: &mut World, client, transport: &str| {
        world.ask(client, "SETUP", &format!("Transport: {transport}\r\n")).status
    };
    assert_eq!(set_up(&mut world, client, any_channels), 461, "256 channels");
    let other = world.connect(2);
    for _ in 128..SESSIONS {
        assert_eq!(set_up(&mut world, other, UDP), 200);
    }
    assert_eq!(set_up(&mut world, other, UDP), 453);
    assert_eq!(world.ask(client, "TEARDOWN", &first).status, 200);
    assert_eq!(set_up(&mut world, client, any_channels), 200);
    world.close(client);
    assert_eq!(world.sessions.len(), SESSIONS - 128);
    world.close(other);
    assert_eq!(world.sessions.len(), 0);
}

#[test]
fn wrong_passwords_end_the_connection_and_challenges_do_not() {
    let users = UserFile { path: "users".into(), users: Users::parse(b"ann:pass").unwrap() };
    let passwords = Arc::new(Passwords::new(users, &[7; 32]));
    let mut world = World::default();
    let client = world.connect_with(1, |terms| terms.passwords = Some(passwords));
    for _ in 0..20 {
        assert_eq!(world.ask(client, "DESCRIBE", "").status, 401);
        world.pass(SECOND);
    }
    assert_eq!(world.ask(client, "OPTIONS", "").status, 200);
    for _ in 0..7 {
        assert_eq!(world.ask(client, "DESCRIBE", "Authorization: Digest nonsense\r\n").status, 400);
    }
    assert!(world.clients[client].over.is_none());
    assert_eq!(world.ask(client, "DESCRIBE", "Authorization: Digest nonsense\r\n").status, 400);
    assert_eq!(world.clients[client].over, Some(Over::Ended(Ended::WrongPasswords)));
}
