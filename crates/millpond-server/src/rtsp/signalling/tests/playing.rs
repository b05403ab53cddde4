//! The order of PLAY, PAUSE and TEARDOWN, and seeks.

use super::simulation::{LENGTH, SECOND, World};
use crate::rtsp::record::End;

const UDP: &str = "RTP/AVP;unicast;client_port=5000-5001";
const TCP: &str = "RTP/AVP/TCP;unicast";

/// A client with a session that plays from the beginning.
fn playing(transport: &str) -> (World, usize, String) {
    let mut world = World::default();
    let client = world.connect(1);
    let session = world.set_up(client, transport);
    assert_eq!(range(&mut world, client, &session), "npt=0-100");
    (world, client, session)
}

/// Plays; gives the range of the reply, or its status.
fn range(world: &mut World, client: usize, headers: &str) -> String {
    let reply = world.ask(client, "PLAY", headers);
    let status = reply.status;
    reply.header("Range").map_or_else(|| status.to_string(), |range| range.replace(".000", ""))
}

#[test]
fn playing_goes_on_where_it_was_paused() {
    let (mut world, client, session) = playing(UDP);
    world.pass(7 * SECOND);
    for _ in 0..2 {
        assert_eq!(world.ask(client, "PAUSE", &session).status, 200, "twice");
        world.pass(20 * SECOND);
    }
    assert_eq!(range(&mut world, client, &session), "npt=7-100");
    world.pass(3 * SECOND);
    let pause = world.ask(client, "PAUSE", &session);
    assert_eq!(pause.header("Session"), session.trim_end().strip_prefix("Session: "));
    assert_eq!(range(&mut world, client, &format!("{session}Scale: -2\r\n")), "npt=10-0");
    world.pass(2 * SECOND);
    assert_eq!(range(&mut world, client, &session), "npt=6-100", "PLAY while it plays");
}

#[test]
fn at_the_end_there_is_nothing_to_play_but_what_lies_before() {
    let (mut world, client, session) = playing(TCP);
    for _ in 0..2 {
        world.pass(LENGTH as u32 / 2 * SECOND);
        assert_eq!(world.ask(client, "PAUSE", &session).status, 200);
        let expected = if world.now < LENGTH as u32 * SECOND { "npt=50-100" } else { "457" };
        assert_eq!(range(&mut world, client, &session), expected);
    }
    assert_eq!(range(&mut world, client, &format!("{session}Range: npt=100-\r\n")), "457");
    assert_eq!(range(&mut world, client, &format!("{session}Scale: -1\r\n")), "npt=100-0");
    world.pass(50 * SECOND);
    assert_eq!(range(&mut world, client, &format!("{session}Range: npt=99-\r\n")), "npt=99-100");
    let state = world.made[0].state();
    assert_eq!((state.opened, state.stopped), (4, 3));
}

#[test]
fn a_storm_of_seeks_leaves_one_transmission() {
    let (mut world, client, session) = playing(TCP);
    let mut random = fastrand::Rng::with_seed(3);
    for _ in 0..1000 {
        let from = random.u32(0..=110);
        let expected = if from < 100 { format!("npt={from}-100") } else { "457".into() };
        assert_eq!(range(&mut world, client, &format!("{session}Range: npt={from}-\r\n")), expected);
        if random.u32(0..4) == 0 {
            assert_eq!(world.ask(client, "PAUSE", &session).status, 200);
        }
        world.pass(random.u32(0..2000) * SECOND / 1000);
    }
    assert_eq!(world.ask(client, "TEARDOWN", &session).status, 200);
    let state = world.made[0].state();
    assert_eq!((state.opened, world.sessions.len()), (state.stopped, 0));
    assert!(state.opened > 800);
}

#[test]
fn headers_of_play_are_checked_before_anything_stops() {
    let (mut world, client, session) = playing(UDP);
    let refused = [
        ("Range: npt=x-\r\n", 457),
        ("Range: smpte=0:10:20-\r\n", 501),
        ("Range: npt=200-\r\n", 457),
        ("Range: clock=2026-\r\n", 457),
        ("Speed: fast\r\n", 400),
        ("Scale: 0\r\n", 400),
    ];
    for (header, status) in refused {
        assert_eq!(world.ask(client, "PLAY", &format!("{session}{header}")).status, status, "{header}");
    }
    assert_eq!(world.made[0].state().stopped, 1, "by the part outside of the title alone");
    let reply = world.ask(client, "PLAY", &format!("{session}Range: npt=5-20\r\nSpeed: 9\r\nScale: 1\r\n"));
    let headers = ["Range", "Speed", "Scale", "RTP-Info"].map(|name| reply.header(name).unwrap_or("none"));
    assert_eq!(headers, ["npt=5.000-20.000", "4", "1", "url=rtsp://192.0.2.100/a.mp4/v1;seq=1;rtptime=2"]);
}

#[test]
fn a_session_is_torn_down_once() {
    for transport in [TCP, UDP] {
        let (mut world, client, session) = playing(transport);
        assert_eq!(world.ask(client, "TEARDOWN", &session).status, 200);
        for method in ["TEARDOWN", "PLAY", "PAUSE", "GET_PARAMETER"] {
            assert_eq!(world.ask(client, method, &session).status, 454, "{method}");
        }
        world.close(client);
        assert_eq!((world.sessions.len(), world.made[0].state().ended), (0, Some(End::Teardown)));
    }
}

#[test]
fn methods_in_the_wrong_state_are_refused() {
    let (mut world, client, session) = playing(TCP);
    assert_eq!(world.ask(client, "SETUP", &format!("{session}Transport: {TCP}\r\n")).status, 455);
    let unknown = world.ask(client, "RECORD", &session);
    assert_eq!(unknown.status, 501);
    assert!(unknown.header("Public").is_some_and(|methods| methods.contains("TEARDOWN")));
    assert_eq!(world.ask(client, "SETUP", "Transport: RTP/AVP;multicast\r\n").status, 461);
    assert_eq!(world.ask(client, "SETUP", "Transport: RAW/RAW/UDP\r\n").status, 461);
    let body = format!("{session}Content-Length: 3\r\n\r\na\r");
    assert_eq!(world.send(client, super::simulation::request("SET_PARAMETER", 5, &body).as_bytes())[0].status, 451);
}
