//! Streams of own packetizers through networks that lose, repeat and reorder.

mod lossy;

use super::*;
use crate::{
    packet::Header,
    payload::{Packetizer, Piece, Unit},
    rtcp::{RtcpItem, SenderReport},
    sdp_reader::{MediaDescription, SessionDescription},
};
use bytes::Bytes;
use proptest::{collection::vec, prelude::*};
use std::time::Duration;

const SSRC: u32 = 7;
/// Ticks between two frames.
const STEP: u32 = 3000;
const FIRST: u16 = 65_530;

fn stream(format: Packetizer) -> MediaDescription {
    let (map, parameters) = match format {
        Packetizer::Avc(_) => ("H264/90000", "packetization-mode=1"),
        Packetizer::Hevc(_) => ("H265/90000", "x=y"),
        Packetizer::Aac => ("mpeg4-generic/48000/2", "mode=AAC-hbr;sizelength=13;indexlength=3;indexdeltalength=3"),
        Packetizer::Opus => ("opus/48000/2", "x=y"),
        Packetizer::Mpa => ("MPA/90000", "x=y"),
        _ => ("PCMU/8000", "x=y"),
    };
    let text = format!("v=0\r\nm=video 0 RTP/AVP 96\r\na=rtpmap:96 {map}\r\na=fmtp:96 {parameters}\r\n");
    SessionDescription::read(text.as_bytes(), "rtsp://h/").unwrap().streams.remove(0)
}

fn receiver(format: Packetizer, limits: ReorderLimits) -> TrackReceiver {
    TrackReceiver::new(&stream(format), Some(SSRC), limits, Duration::ZERO).unwrap()
}

fn packet(header: Header, payload: &[u8]) -> Bytes {
    [&header.to_bytes()[..], payload].concat().into()
}

fn header(sequence: u16, timestamp: u32) -> Header {
    Header { marker: true, payload_type: 96, sequence, timestamp, ssrc: SSRC }
}

/// Returns the packets of consecutive frames.
fn packets(format: Packetizer, frames: &[Vec<u8>]) -> Vec<Bytes> {
    let mut all = Vec::new();
    for (frame, place) in frames.iter().zip(0_u32..) {
        let mut pieces: Vec<Piece> = Vec::new();
        format.cut(frame, 100, &mut pieces).unwrap();
        for piece in pieces {
            let sequence = FIRST.wrapping_add(all.len() as u16);
            let header = Header { marker: piece.marker, ..header(sequence, place * STEP) };
            all.push(packet(header, &[piece.head(), &frame[piece.body.clone()]].concat()));
        }
    }
    all
}

const FORMATS: [Packetizer; 6] = [
    Packetizer::Avc(4),
    Packetizer::Hevc(4),
    Packetizer::Aac,
    Packetizer::Opus,
    Packetizer::Mpa,
    Packetizer::Pcm(crate::payload::Pcm { values: crate::payload::Values::Pcmu, channels: 1 }),
];

/// Generates frames whose first bytes are valid.
fn frame(format: Packetizer) -> BoxedStrategy<Vec<u8>> {
    let nal = |header: Vec<u8>| {
        vec(vec(any::<u8>(), 1..300), 1..4).prop_map(move |units| {
            let unit = |(place, mut body): (usize, Vec<u8>)| {
                // The first slice of a picture, and no other, begins with this bit.
                body[0] = body[0] & 0x7f | u8::from(place == 0) << 7;
                let length = (header.len() + body.len()) as u32;
                [&length.to_be_bytes()[..], &header, &body].concat()
            };
            units.into_iter().enumerate().flat_map(unit).collect()
        })
    };
    match format {
        Packetizer::Avc(_) => nal(vec![0x65]).boxed(),
        Packetizer::Hevc(_) => nal(vec![19 << 1, 1]).boxed(),
        // Layer III at 48 kHz with 32 kbit/s.
        Packetizer::Mpa => vec(any::<u8>(), 92).prop_map(|body| [&[0xff, 0xfb, 0x14, 0][..], &body].concat()).boxed(),
        Packetizer::Pcm(_) => vec(any::<u8>(), 1..100).boxed(),
        _ => vec(any::<u8>(), 1..600).boxed(),
    }
}

fn film() -> impl Strategy<Value = (Packetizer, Vec<Vec<u8>>)> {
    prop::sample::select(&FORMATS[..]).prop_flat_map(|format| (Just(format), vec(frame(format), 1..12)))
}

/// Returns whether each unit is the frame of its time, in order.
fn assert_whole(units: &[Unit], frames: &[Vec<u8>]) -> Result<Vec<u32>, TestCaseError> {
    let mut places: Vec<u32> = Vec::new();
    for unit in units {
        let place = unit.timestamp / STEP;
        prop_assert_eq!(&unit.bytes, &frames[place as usize]);
        prop_assert!(places.last().is_none_or(|last| *last < place), "{:?} {}", places, place);
        places.push(place);
    }
    Ok(places)
}

proptest! {
    #[test]
    fn reordered_packets_are_whole_frames_again(
        (format, frames) in film(),
        jitter in vec(0..40_u64, 1..60),
        repeats in vec(any::<bool>(), 1..20),
    ) {
        let mut arrivals = Vec::new();
        let all = packets(format, &frames);
        // The first packet is not overtaken; later ones are by up to 40 ms.
        for (((place, packet), jitter), repeats) in
            (0_u64..).zip(all).zip(jitter.iter().cycle()).zip(repeats.iter().cycle())
        {
            let jitter = if place == 0 { 0 } else { *jitter };
            arrivals.push((5 * place + jitter, packet.clone()));
            if *repeats {
                arrivals.push((5 * place + jitter + 3, packet));
            }
        }
        arrivals.sort_by_key(|(at, _)| *at);
        let mut receiver = receiver(format, ReorderLimits::UDP);
        receiver.begin(FIRST);
        let mut units = Vec::new();
        for (at, packet) in arrivals {
            receiver.rtp(&packet, Duration::from_millis(at), &mut units);
        }
        let places = assert_whole(&units, &frames)?;
        prop_assert_eq!(places.len(), frames.len());
        prop_assert_eq!((receiver.dropped(), receiver.wake()), (0, None));
        prop_assert_eq!(receiver.statistics().missing(), 0);
        prop_assert!(units.iter().all(|unit| !unit.lost_before));
    }

    #[test]
    fn no_broken_frame_is_delivered(
        (format, frames) in film(),
        fates in vec((0..10_u8, 0..250_u64), 1..60),
        is_ordered: bool,
    ) {
        let mut arrivals = Vec::new();
        for ((place, packet), (fate, jitter)) in (0_u64..).zip(packets(format, &frames)).zip(fates.iter().cycle()) {
            match fate {
                0 | 1 => {}
                2 => arrivals.extend([(5 * place, packet.clone()), (5 * place + jitter, packet)]),
                3 => arrivals.push((5 * place + jitter, packet)),
                _ => arrivals.push((5 * place, packet)),
            }
        }
        arrivals.sort_by_key(|(at, _)| *at);
        let limits = if is_ordered { ReorderLimits::IN_ORDER } else { ReorderLimits::UDP };
        let mut receiver = receiver(format, limits);
        receiver.begin(FIRST);
        let mut units = Vec::new();
        for (at, packet) in arrivals {
            let at = Duration::from_millis(at);
            receiver.tick(at, &mut units);
            receiver.rtp(&packet, at, &mut units);
            prop_assert!(receiver.wake().is_none_or(|wake| wake > at));
        }
        receiver.tick(Duration::from_secs(100), &mut units);
        assert_whole(&units, &frames)?;
    }

    #[test]
    fn no_bytes_make_a_receiver_panic(
        packets in vec((vec(any::<u8>(), 0..60), 0..3_u16, 0..50_u64), 1..80),
        format in prop::sample::select(&FORMATS[..]),
    ) {
        let mut receiver = receiver(format, ReorderLimits::UDP);
        let (mut sequence, mut now, mut units) = (0_u16, Duration::ZERO, Vec::new());
        for (bytes, skip, later) in packets {
            sequence = sequence.wrapping_add(skip);
            now += Duration::from_millis(later);
            receiver.rtp(&packet(header(sequence, 0), &bytes), now, &mut units);
            receiver.rtp(&bytes.clone().into(), now, &mut units);
            let _ = receiver.rtcp(&bytes, now);
            receiver.report(1, "test", now);
        }
    }
}

#[test]
fn other_packets_are_counted() {
    let mut receiver = receiver(Packetizer::Aac, ReorderLimits::UDP);
    let mut units = Vec::new();
    let now = Duration::ZERO;
    let mut push = |header: Header, payload: &[u8]| receiver.rtp(&packet(header, payload), now, &mut units);
    push(header(1, 0), b"\x00\x10\x00\x08b");
    push(Header { ssrc: 8, ..header(2, 0) }, b"x");
    push(Header { payload_type: 13, ..header(2, 0) }, b"x");
    push(header(3, STEP), b"\x00\x10\x00\x08d");
    push(header(3, STEP), b"\x00\x10\x00\x08d");
    push(header(4, 2 * STEP), b"\x00\x0f\x00\x00");
    receiver.rtp(&Bytes::from_static(b"short"), now, &mut units);
    let counts = ReceiveCounts { foreign: 1, other_payload: 1, invalid: 1, late: 1, broken: 1 };
    assert_eq!((receiver.counts(), receiver.problem().is_some(), receiver.problem()), (counts, true, None));
    let units: Vec<_> = units.iter().map(|unit| (&unit.bytes[..], unit.lost_before)).collect();
    assert_eq!(units, [(&b"b"[..], false), (b"d", false)]);
}

#[test]
fn wrong_announcements_are_ignored() {
    let frames = vec![vec![1; 50]; 3];
    for announced in [FIRST - 1000, FIRST + 1, FIRST.wrapping_add(30_000)] {
        let mut receiver = receiver(Packetizer::Opus, ReorderLimits::UDP);
        receiver.begin(announced);
        let mut units = Vec::new();
        for packet in packets(Packetizer::Opus, &frames) {
            receiver.rtp(&packet, Duration::ZERO, &mut units);
        }
        assert_eq!(units.len(), 3, "{announced}");
    }
}

#[test]
fn an_announcement_may_be_overtaken_by_packets() {
    let frames = [[&300_u32.to_be_bytes()[..], &[0x65; 300]].concat()];
    let packets = packets(Packetizer::Avc(4), &frames);
    for overtaking in 0..packets.len() {
        let mut receiver = receiver(Packetizer::Avc(4), ReorderLimits::UDP);
        let mut units = Vec::new();
        for (place, packet) in packets.iter().enumerate() {
            if place == overtaking {
                receiver.begin(FIRST);
            }
            receiver.rtp(packet, Duration::ZERO, &mut units);
        }
        assert_eq!((units.len(), receiver.dropped()), (1, 0), "{overtaking} packets before");
    }
}

#[test]
fn sources_may_restart_anywhere() {
    let mut receiver = receiver(Packetizer::Opus, ReorderLimits::UDP);
    let mut units = Vec::new();
    for (sequence, timestamp) in [(1, 0), (2, 1), (40_000, 500), (40_001, 501), (40_002, 502)] {
        receiver.rtp(&packet(header(sequence, timestamp), b"a"), Duration::ZERO, &mut units);
    }
    let found: Vec<_> = units.iter().map(|unit| (unit.timestamp, unit.lost_before)).collect();
    assert_eq!(found, [(0, false), (1, false), (501, true), (502, false)]);
    assert_eq!(receiver.statistics().restarts(), 1);
    for sequence in [7, 8] {
        let header = Header { ssrc: 9, ..header(sequence, 0) };
        receiver.rtp(&packet(header, b"b"), Duration::from_secs(3), &mut units);
    }
    assert_eq!((receiver.ssrc(), units.len()), (Some(9), 5));
}

#[test]
fn reports_have_loss_and_the_last_sender_report() {
    let mut receiver = receiver(Packetizer::Opus, ReorderLimits::UDP);
    let blocks = |receiver: &mut TrackReceiver, now| {
        crate::rtcp::parse(&receiver.report(1, "millpond", Duration::from_secs(now))).unwrap()
    };
    assert_eq!(blocks(&mut receiver, 0), [], "nothing to report");
    let mut units = Vec::new();
    for sequence in [1, 2, 4, 5] {
        receiver.rtp(&packet(header(sequence, 0), b"a"), Duration::ZERO, &mut units);
    }
    let report = SenderReport { ssrc: SSRC, ntp: 0x1234_5678_9abc_def0, timestamp: 0, packets: 5, octets: 5 };
    receiver.rtcp(&report.to_bytes("sender"), Duration::from_secs(1)).unwrap();
    let other = SenderReport { ssrc: 99, ntp: 1 << 40, ..report };
    receiver.rtcp(&other.to_bytes("other"), Duration::from_secs(2)).unwrap();
    let [RtcpItem::Reception(block)] = blocks(&mut receiver, 3)[..] else { panic!("one block") };
    assert_eq!((block.ssrc, block.lost, block.fraction_lost, block.highest), (SSRC, 1, 51, 5));
    assert_eq!((block.last_report, block.delay), (0x5678_9abc, 2 << 16));
}

#[test]
fn key_frames_and_parameter_sets_are_found() {
    let nal = |bytes: &[u8]| [&(bytes.len() as u32).to_be_bytes()[..], bytes].concat();
    let avc = |units: &[&[u8]]| (Packetizer::Avc(4), units.iter().flat_map(|unit| nal(unit)).collect::<Vec<u8>>());
    let hevc = |units: &[&[u8]]| (Packetizer::Hevc(4), units.iter().flat_map(|unit| nal(unit)).collect::<Vec<u8>>());
    for ((format, frame), is_key, sets) in [
        (avc(&[&[0x67, 1], &[0x68, 2], &[0x65, 0x88, 9]]), true, vec![&[0x67, 1][..], &[0x68, 2]]),
        (avc(&[&[0x65, 0x48], &[0x65, 0x80]]), false, vec![]),
        (avc(&[&[0x06, 6, 1, 0x80, 0x80], &[0x41, 0x88]]), true, vec![]),
        (avc(&[&[0x41, 0x88]]), false, vec![]),
        (
            hevc(&[&[64, 1, 1], &[66, 1, 2], &[68, 1, 3], &[38, 1, 0x80]]),
            true,
            vec![&[64, 1, 1][..], &[66, 1, 2], &[68, 1, 3]],
        ),
        (hevc(&[&[2, 1, 0x80]]), false, vec![]),
        ((Packetizer::Aac, vec![1, 2, 3]), true, vec![]),
    ] {
        let mut receiver = receiver(format, ReorderLimits::UDP);
        let mut units = Vec::new();
        for packet in packets(format, std::slice::from_ref(&frame)) {
            receiver.rtp(&packet, Duration::ZERO, &mut units);
        }
        let [unit] = &units[..] else { panic!("{units:?}") };
        let found: Vec<&[u8]> = unit.parameter_sets.iter().map(|set| &set[..]).collect();
        assert_eq!((unit.is_key, found), (is_key, sets));
    }
}
