//! RTSP over the time shift of live streams.

use crate::support::{Server, clips, get, rtsp::Client, rtsp::Reply, rtsp::over};
use millpond_media::fragment_stream::{FragmentEvent, FragmentStream};
use std::{
    path::Path,
    time::{Duration, Instant},
};

/// 9 seconds, 25 pictures a second, key frames two seconds apart, B-frames, AAC.
const CLIP: &str = "h264_aac.mp4";
/// Channels of RTP with pictures and sound.
const TRACKS: [u8; 2] = [0, 2];

/// A server with a channel, and one that keeps its past.
fn servers(folder: &Path) -> (Server, Server) {
    let origin = Server::start(&[clips::folder().to_str().unwrap(), "--rtsp-channels", CLIP]);
    let edge = edge(&origin, folder);
    (origin, edge)
}

fn edge(origin: &Server, folder: &Path) -> Server {
    let place = format!("cams=rtsp://127.0.0.1:{}/", origin.rtsp);
    let folder = folder.to_str().unwrap();
    let shift = ["--time-shift", "1h", "--time-shift-size", "64MiB", "--time-shift-folder", folder];
    Server::start(&[&[&*place], &shift[..], &["--source-transport", "tcp"]].concat())
}

/// A segment of a playlist: its path, and the wall time of its beginning as text of RTSP.
#[derive(Clone, Debug, PartialEq)]
struct Listed {
    path: String,
    clock: String,
}

fn load(server: &Server, path: &str) -> Vec<u8> {
    let reply = get(server.port, path, &[]);
    assert_eq!(reply.status, 200, "{path}: {} {}", reply.text(), server.log_text());
    reply.body
}

/// The segments of the whole past of a track.
fn listed(server: &Server, track: &str) -> Vec<Listed> {
    let text = String::from_utf8(load(server, &format!("/cams/{CLIP}/{track}/index.m3u8?dvr"))).unwrap();
    let (mut all, mut clock) = (Vec::new(), String::new());
    for line in text.lines() {
        if let Some(time) = line.strip_prefix("#EXT-X-PROGRAM-DATE-TIME:") {
            clock = time.replace(['-', ':'], "");
        } else if let Some(path) = line.strip_prefix("../") {
            all.push(Listed { path: format!("/cams/{CLIP}/{path}"), clock: clock.clone() });
        }
    }
    all
}

fn until_listed(server: &Server, count: usize) -> Vec<Listed> {
    let began = Instant::now();
    loop {
        let all = listed(server, "v1");
        if all.len() >= count {
            return all;
        }
        assert!(began.elapsed() < Duration::from_secs(120), "{all:?}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Pictures of segments, as NAL units without parameter sets.
fn samples(server: &Server, segments: &[Listed]) -> Vec<Vec<Vec<u8>>> {
    let (mut stream, mut events) = (FragmentStream::new(), Vec::new());
    let playlist = String::from_utf8(load(server, &format!("/cams/{CLIP}/v1/index.m3u8?dvr"))).unwrap();
    let init = playlist.lines().find_map(|line| line.strip_prefix("#EXT-X-MAP:URI=\"../")).unwrap();
    stream.push(&load(server, &format!("/cams/{CLIP}/{}", init.trim_end_matches('"'))), &mut events).unwrap();
    segments.iter().for_each(|segment| stream.push(&load(server, &segment.path), &mut events).unwrap());
    let sample = |event| match event {
        FragmentEvent::Sample(sample) => Some(units(&sample.data)),
        other => panic!("{other:?}"),
    };
    events.into_iter().skip(1).filter_map(sample).collect()
}

/// NAL units with lengths before them.
fn units(mut data: &[u8]) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    while let Some((length, rest)) = data.split_at_checked(4) {
        let (unit, rest) = rest.split_at(u32::from_be_bytes(length.try_into().unwrap()) as usize);
        all.push(unit.to_vec());
        data = rest;
    }
    all
}

/// Whether a NAL unit is a parameter set.
fn is_set(unit: &[u8]) -> bool {
    matches!(unit[0] & 31, 7 | 8)
}

/// Pictures that a client received, as NAL units without parameter sets (RFC 6184). The last one may have more.
fn received(client: &Client) -> Vec<Vec<Vec<u8>>> {
    let packets: Vec<&Vec<u8>> = client.packets.iter().filter(|(on, _)| *on == 0).map(|(_, packet)| packet).collect();
    let mut all = Vec::new();
    for picture in packets.chunk_by(|a, b| a[4..8] == b[4..8]) {
        let mut units: Vec<Vec<u8>> = Vec::new();
        for payload in picture.iter().map(|packet| &packet[12..]) {
            match payload[0] & 31 {
                24 => {
                    let mut rest = &payload[1..];
                    while let Some((length, after)) = rest.split_at_checked(2) {
                        let (unit, after) = after.split_at(usize::from(u16::from_be_bytes([length[0], length[1]])));
                        units.push(unit.to_vec());
                        rest = after;
                    }
                }
                28 if payload[1] & 0x80 != 0 => {
                    let head = payload[0] & 0xe0 | payload[1] & 31;
                    units.push([&[head], &payload[2..]].concat());
                }
                28 => units.last_mut().expect("a beginning").extend_from_slice(&payload[2..]),
                _ => units.push(payload.to_vec()),
            }
        }
        units.retain(|unit| !is_set(unit));
        all.push(units);
    }
    all
}

fn set_up(server: &Server) -> Client {
    let mut client = Client::new(server, &format!("cams/{CLIP}"));
    assert_eq!(client.set_up("v1", "RTP/AVP/TCP;unicast;interleaved=0-1").status, 200);
    assert_eq!(client.set_up("a1", "RTP/AVP/TCP;unicast;interleaved=2-3").status, 200);
    client
}

fn play(client: &mut Client, range: &str) -> Reply {
    let reply = client.ask("PLAY", "", &format!("Range: {range}\r\n"));
    assert_eq!(reply.status, 200, "{range}: {}", reply.body);
    reply
}

/// Sequence numbers and timestamps that RTP-Info promises, of pictures and of sound.
fn promised(reply: &Reply) -> [(u16, u32); 2] {
    let value = |text: &str, name: &str| text.split(name).nth(1).unwrap().split([';', ',']).next().unwrap().to_owned();
    let of = |track: &str| {
        let text = reply.headers["rtp-info"].split(',').find(|text| text.contains(track)).unwrap();
        (value(text, "seq=").parse().unwrap(), value(text, "rtptime=").parse().unwrap())
    };
    [of("/v1;"), of("/a1;")]
}

fn receive_for(client: &mut Client, time: Duration) {
    let began = Instant::now();
    while began.elapsed() < time {
        client.packet();
    }
}

/// Asserts that the sequence numbers of all tracks have no hole.
#[track_caller]
fn assert_whole(client: &Client) {
    for channel in TRACKS {
        let heads = client.rtp(channel);
        let hole = heads.windows(2).find(|two| two[0].0.wrapping_add(1) != two[1].0);
        assert_eq!(hole, None, "channel {channel}");
    }
}

#[test]
fn a_part_by_wall_time_has_the_frames_that_hls_lists() {
    let folder = tempfile::tempdir().unwrap();
    let (_origin, edge) = servers(folder.path());
    let all = until_listed(&edge, 8);
    let expected = samples(&edge, &all[1..4]);
    let mut client = set_up(&edge);
    let described = client.ask("DESCRIBE", "", "");
    let kept = described.body.split("a=range:clock=").nth(1).unwrap().lines().next().unwrap().to_owned();
    assert!(described.body.contains("a=range:npt=now-\r\n") && kept.ends_with("Z-"), "{}", described.body);
    let range = format!("clock={}-{}", all[1].clock, all[4].clock);
    let (began, reply) = (Instant::now(), play(&mut client, &range));
    assert_eq!(reply.headers["range"], range);
    client.receive(|packets| over(packets, 1) && over(packets, 3));
    // Segments are two seconds long, and are paced as they were presented.
    assert!(began.elapsed() > Duration::from_secs(5), "{:?}", began.elapsed());
    let (seen, promised) = (received(&client), promised(&reply));
    assert_eq!(client.rtp(0)[0], promised[0]);
    let sound = client.rtp(2)[0];
    assert_eq!(sound.0, promised[1].0);
    assert!(sound.1.wrapping_sub(promised[1].1) < 1024, "the first sound is presented with the first picture");
    assert_whole(&client);
    let same = seen.iter().zip(&expected).take_while(|(a, b)| a == b).count();
    // The end is one of decode times: pictures that are decoded before it may be shown behind it.
    assert_eq!(same, expected.len(), "of {} pictures", seen.len());
    assert!(seen.len() - same <= 3, "{} pictures", seen.len());

    for range in ["clock=20010101T000000Z-", "clock=29991231T235959.5Z-", "npt=90000-"] {
        let reply = client.ask("PLAY", "", &format!("Range: {range}\r\n"));
        assert_eq!(reply.status, 457, "{range}");
        assert!(reply.headers["range"].starts_with("clock=") && reply.body.contains(&reply.headers["range"]));
    }
    // Another part of the same session goes on with sequence numbers and times.
    let before = client.rtp(0).pop().unwrap();
    client.packets.clear();
    let reply = play(&mut client, &format!("clock={}-", all[2].clock));
    client.receive(|packets| packets.len() > 50);
    let first = client.rtp(0)[0];
    assert_eq!((first.0, first), (before.0.wrapping_add(1), self::promised(&reply)[0]));
    assert!((1..90_000).contains(&first.1.wrapping_sub(before.1)), "{before:?} {first:?}");
    assert_eq!(received(&client)[..10], samples(&edge, &all[2..3])[..10]);
}

#[test]
fn a_viewer_that_pauses_goes_on_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let (_origin, edge) = servers(folder.path());
    until_listed(&edge, 2);
    let (mut viewer, mut other) = (set_up(&edge), set_up(&edge));
    assert_eq!(play(&mut viewer, "npt=0.000-").headers["range"], "npt=now-", "what players send at first");
    play(&mut other, "npt=now-");
    // One that is not read would be a slow one, and lose frames.
    let watching = std::thread::spawn(move || {
        receive_for(&mut other, Duration::from_secs(16));
        other
    });
    receive_for(&mut viewer, Duration::from_secs(2));
    for pause in [3, 0, 1] {
        assert_eq!(viewer.ask("PAUSE", "", "").status, 200);
        let (count, before) = (viewer.packets.len(), viewer.rtp(0).pop().unwrap());
        std::thread::sleep(Duration::from_secs(pause));
        let reply = viewer.ask("PLAY", "", "");
        assert_eq!(reply.status, 200);
        assert!(reply.headers["range"].starts_with("npt=") && !reply.headers["range"].contains("now"), "{pause}");
        assert_eq!(promised(&reply)[0].0, before.0.wrapping_add(1));
        let more = count + 150;
        viewer.receive(|packets| packets.len() > more);
    }
    assert_eq!(viewer.ask("PAUSE", "", "").status, 200);
    let other = watching.join().unwrap();
    assert_whole(&viewer);
    let (seen, all) = (received(&viewer), received(&other));
    let at = all.iter().position(|picture| *picture == seen[0]).expect("the same key frame");
    let both = (seen.len() - 1).min(all.len() - at - 1);
    let same = seen.iter().zip(&all[at..]).take_while(|(a, b)| a == b).count();
    assert!(both > 75 && same >= both, "picture {same} of {both} differs");
    // Sound too, whose frames are packets.
    let sound = |client: &Client| {
        let packets = client.packets.iter().filter(|(on, _)| *on == 2);
        packets.map(|(_, packet)| packet[12..].to_vec()).collect::<Vec<_>>()
    };
    let (seen, all) = (sound(&viewer), sound(&other));
    let at = all.iter().position(|packet| *packet == seen[0]).expect("the same sound");
    let both = seen.len().min(all.len() - at);
    let same = seen.iter().zip(&all[at..]).take_while(|(a, b)| a == b).count();
    assert!(both > 100 && same == both, "sound {same} of {both} differs");
    // Timestamps have no hole either: 40 ms a picture, whose order differs.
    let mut times: Vec<u32> = viewer.rtp(0).iter().map(|(_, time)| *time).collect();
    let first = times[0];
    times.iter_mut().for_each(|time| *time = time.wrapping_sub(first));
    times.sort_unstable();
    times.dedup();
    // The pause may have kept back the pictures that are shown before the last one.
    times.pop();
    assert!(times.windows(2).all(|two| two[1] - two[0] <= 3 * 3601), "{times:?}");
    let reply = play(&mut viewer, "npt=now-");
    assert_eq!(reply.headers["range"], "npt=now-");
    let graph: serde_json::Value = crate::support::api::api(edge.admin, "graph");
    let modules = graph["modules"].as_array().unwrap();
    assert!(modules.iter().all(|module| module["kind"] != "past"), "{modules:?}");
}

#[test]
fn a_viewer_starts_over_and_passes_a_restart_of_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let (origin, mut first) = servers(folder.path());
    let before = until_listed(&first, 4);
    first.process.0.kill().unwrap();
    first.process.0.wait().unwrap();
    let edge = edge(&origin, folder.path());
    let all = until_listed(&edge, before.len() + 4);
    let mut client = set_up(&edge);
    play(&mut client, "npt=0.000-");
    client.receive(|packets| packets.len() > 20);
    let reply = play(&mut client, "npt=0-");
    assert_eq!(reply.headers["range"], "npt=0.000-");
    client.packets.clear();
    // Up to the second segment of the second run.
    let wanted = samples(&edge, &all[..before.len() + 2]).len();
    receive_for(&mut client, Duration::from_secs(2) * (before.len() as u32 + 3));
    assert_whole(&client);
    let (seen, expected) = (received(&client), samples(&edge, &all[..all.len() - 1]));
    let same = seen.iter().zip(&expected).take_while(|(a, b)| a == b).count();
    assert!(same + 1 >= seen.len().min(expected.len()), "picture {same} of {} and {}", seen.len(), expected.len());
    assert!(same > wanted - 25, "{same} pictures, {wanted} are two runs");
    // The time between the runs is jumped over.
    let step = |two: &[(u16, u32)]| (two[1].1.wrapping_sub(two[0].1) as i32).abs();
    assert!(client.rtp(0).windows(2).all(|two| step(two) < 90_000), "timestamps go on");
}
