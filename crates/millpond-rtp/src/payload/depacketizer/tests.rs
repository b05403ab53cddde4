//! Tests that frames come back whole or not at all, and that packets of other senders are read, with examples from the
//! formats' specifications.

mod formats;

use super::*;
use crate::payload::{Pcm, Piece, Values};
use millpond_media::NalSyntax;
use proptest::{collection::vec, prelude::*, sample::Index};
use std::collections::BTreeMap;

type Packets = Vec<(Header, Vec<u8>)>;

const FIRST: u16 = 65_530;
const STEP: u32 = 1000;

/// Returns the packets of consecutive frames, across the wraps of sequence numbers and timestamps.
fn packets(format: Packetizer, frames: &[Vec<u8>], most: usize) -> Packets {
    let mut all = Packets::new();
    for (frame, place) in frames.iter().zip(0..) {
        let mut pieces: Vec<Piece> = Vec::new();
        format.cut(frame, most, &mut pieces).unwrap();
        for piece in pieces {
            let header = Header {
                marker: piece.marker,
                payload_type: 96,
                sequence: FIRST.wrapping_add(all.len() as u16),
                timestamp: timestamp(place),
                ssrc: 1,
            };
            all.push((header, [piece.head(), &frame[piece.body.clone()]].concat()));
        }
    }
    all
}

fn timestamp(place: u32) -> u32 {
    (u32::MAX - 2 * STEP).wrapping_add(place * STEP)
}

/// Returns the units of packets, and the number of dropped units.
fn join(format: Packetizer, packets: &Packets) -> (Vec<Unit>, u64) {
    let mut depacketizer = Depacketizer::new(format).starting_at(FIRST);
    let mut units = Vec::new();
    for (header, payload) in packets {
        depacketizer.push(header, payload, &mut units).unwrap();
    }
    depacketizer.finish(&mut units);
    (units, depacketizer.dropped())
}

fn nal(codec: Packetizer) -> BoxedStrategy<Vec<u8>> {
    let (size, types) = match codec {
        Packetizer::Avc(size) => (size, (0..24_u8).prop_union(30..32).prop_map(|kind| vec![0x60 | kind]).boxed()),
        Packetizer::Hevc(size) => (size, (0..48_u8).prop_union(51..64).prop_map(|kind| vec![kind << 1, 1]).boxed()),
        _ => unreachable!("no NAL units"),
    };
    let most = if size == 1 { 250 } else { 4000 };
    let frame = move |units: Vec<(Vec<u8>, Vec<u8>)>| {
        let mut is_first = true;
        let unit = |(header, mut body): (Vec<u8>, Vec<u8>)| {
            // No NAL unit contains a start code.
            body.iter_mut().filter(|byte| **byte == 0).for_each(|byte| *byte = 3);
            if is_slice(codec, header[0]) {
                // The first slice of a picture, and no other, begins with this bit.
                body[0] = body[0] & 0x7f | u8::from(std::mem::take(&mut is_first)) << 7;
            }
            let length = ((header.len() + body.len()) as u32).to_be_bytes();
            [&length[4 - usize::from(size)..], &header, &body].concat()
        };
        units.into_iter().map(unit).collect::<Vec<_>>().concat()
    };
    vec((types, vec(any::<u8>(), 1..most)), 1..5).prop_map(frame).boxed()
}

fn is_slice(codec: Packetizer, first: u8) -> bool {
    match codec {
        Packetizer::Avc(_) => NalSyntax::Avc.is_slice(&[first]),
        _ => NalSyntax::Hevc.is_slice(&[first]),
    }
}

fn is_nal(format: Packetizer) -> bool {
    matches!(format, Packetizer::Avc(_) | Packetizer::Hevc(_))
}

fn av1() -> BoxedStrategy<Vec<u8>> {
    let kinds = prop::sample::select(vec![1_u8, 3, 4, 5, 6, 7, 15]);
    let obu = (kinds, any::<Option<u8>>(), vec(any::<u8>(), 0..3000)).prop_map(|(kind, extension, body)| {
        let header = kind << 3 | u8::from(extension.is_some()) << 2 | 2;
        let size = match body.len() {
            short @ 0..0x80 => vec![short as u8],
            long => vec![long as u8 & 0x7f | 0x80, (long >> 7) as u8],
        };
        [vec![header], Vec::from_iter(extension), size, body].concat()
    });
    vec(obu, 1..5).prop_map(|obus| obus.concat()).boxed()
}

/// Generates layer III frames at 48 kHz, and frames whose header states no length.
fn mpa() -> BoxedStrategy<Vec<u8>> {
    let rates = (1..15_u8).prop_flat_map(|rate| {
        let kilobits = [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320][usize::from(rate)];
        vec(any::<u8>(), 3 * kilobits - 4).prop_map(move |body| [&[0xff, 0xfb, rate << 4 | 4, 0][..], &body].concat())
    });
    let others = (0..0xff_u8, vec(any::<u8>(), 0..3000)).prop_map(|(first, rest)| [vec![first], rest].concat());
    prop_oneof![rates, others].boxed()
}

/// Generates frames that a format accepts.
fn frame(format: Packetizer) -> BoxedStrategy<Vec<u8>> {
    let bytes = |most: usize| vec(any::<u8>(), 1..most).boxed();
    match format {
        Packetizer::Avc(_) | Packetizer::Hevc(_) => nal(format),
        Packetizer::Av1 => av1(),
        Packetizer::Vp9 => (0x80..0xc0_u8, bytes(6000)).prop_map(|(first, rest)| [vec![first], rest].concat()).boxed(),
        Packetizer::Mpa => mpa(),
        Packetizer::Aac => bytes(8192),
        _ => bytes(6000),
    }
}

const FORMATS: [Packetizer; 15] = [
    Packetizer::Avc(4),
    Packetizer::Avc(2),
    Packetizer::Avc(1),
    Packetizer::Hevc(4),
    Packetizer::Hevc(2),
    Packetizer::Av1,
    Packetizer::Vp8,
    Packetizer::Vp9,
    Packetizer::Aac,
    Packetizer::Mpa,
    Packetizer::Opus,
    Packetizer::Ac3,
    Packetizer::Eac3,
    Packetizer::Pcm(Pcm { values: Values::L24, channels: 2 }),
    Packetizer::Pcm(Pcm { values: Values::Pcmu, channels: 1 }),
];

fn stream() -> impl Strategy<Value = (Packetizer, Vec<Vec<u8>>, usize)> {
    let sizes = prop_oneof![16..64_usize, 64..2000_usize];
    (prop::sample::select(&FORMATS[..]), sizes)
        .prop_flat_map(|(format, most)| (Just(format), vec(frame(format), 1..7), Just(most)))
        .prop_map(|(format, mut frames, most)| {
            // A last frame of unknown length is never known to be whole.
            if format == Packetizer::Mpa {
                frames.push([&[0xff, 0xfb, 0x14, 0][..], &[0; 92]].concat());
            }
            // Whole frames of two channels that fit into one packet.
            if let Packetizer::Pcm(_) = format {
                for frame in &mut frames {
                    frame.resize(frame.len().clamp(6, most) / 6 * 6, 0);
                }
            }
            (format, frames, most)
        })
}

/// Checks that each unit is the frame of its time, in order; returns the frames found. Behind lost packets, pictures of NAL units
/// may lack some before their slices.
fn whole(format: Packetizer, units: &[Unit], frames: &[Vec<u8>]) -> Result<Vec<usize>, TestCaseError> {
    let times: BTreeMap<u32, usize> = (0..frames.len()).map(|place| (timestamp(place as u32), place)).collect();
    let mut places = Vec::new();
    for unit in units {
        let place = times[&unit.timestamp];
        let has_slices = is_nal(format) && unit.lost_before && frames[place].ends_with(&unit.bytes);
        prop_assert!(
            unit.bytes == frames[place] || has_slices,
            "frame {place} of {} bytes is {}",
            frames[place].len(),
            unit.bytes.len()
        );
        prop_assert!(places.last().is_none_or(|before| *before < place));
        let follows = places.last().map_or(0, |before| before + 1) == place;
        prop_assert!(follows || unit.lost_before, "{places:?} {place}");
        places.push(place);
    }
    Ok(places)
}

proptest! {
    #[test]
    fn frames_come_back((format, frames, most) in stream()) {
        let (units, dropped) = join(format, &packets(format, &frames, most));
        prop_assert_eq!(whole(format, &units, &frames)?, Vec::from_iter(0..frames.len()), "{:?}", format);
        prop_assert!(dropped == 0 && units.iter().all(|unit| !unit.lost_before));
    }

    #[test]
    fn a_missing_packet_costs_its_frame_and_at_most_one_beside(
        (format, frames, most) in stream(),
        index in any::<Index>(),
    ) {
        let mut all = packets(format, &frames, most);
        let (missing, _) = all.remove(index.index(all.len()));
        let (units, _) = join(format, &all);
        let places = whole(format, &units, &frames)?;
        let hit = (0..frames.len()).find(|place| timestamp(*place as u32) == missing.timestamp).unwrap();
        prop_assert!(!places.contains(&hit) || is_nal(format));
        for place in 0..frames.len() {
            // Only without marks, the last frame is not known to be whole.
            let may_miss = place == hit || place == hit + 1 || format == Packetizer::Mpa && place + 1 == hit;
            prop_assert!(may_miss || places.contains(&place), "{format:?}: {place} of {places:?}, hit {hit}");
        }
        use Packetizer::{Ac3, Mpa, Opus, Pcm, Vp8, Vp9};
        if matches!(format, Vp8 | Vp9 | Opus | Mpa | Ac3 | Pcm(_)) {
            prop_assert!(hit + 1 == frames.len() || places.contains(&(hit + 1)), "the next one says that it begins");
        }
    }

    #[test]
    fn whatever_is_lost_or_comes_twice_no_frame_is_wrong(
        (format, frames, most) in stream(),
        fates in vec(0..10_u8, 1..40),
    ) {
        let fates = fates.iter().cycle();
        let all = packets(format, &frames, most).into_iter().zip(fates);
        let kept: Packets = all.flat_map(|(packet, fate)| match fate {
            0 | 1 => vec![],
            2 => vec![packet.clone(), packet],
            _ => vec![packet],
        }).collect();
        whole(format, &join(format, &kept).0, &frames)?;
    }

    #[test]
    fn no_bytes_make_it_panic_or_grow(
        payloads in vec((vec(any::<u8>(), 0..200), any::<bool>(), 0..3_u16, 0..2_u32), 1..30),
        format in prop::sample::select(&FORMATS[..]),
    ) {
        let mut depacketizer = Depacketizer::new(format).with_most_bytes(500);
        let (mut sequence, mut timestamp, mut units) = (0_u16, 0, Vec::new());
        for (payload, marker, skip, later) in payloads {
            sequence += 1 + skip / 2;
            timestamp += later;
            let header = Header { marker, payload_type: 96, sequence, timestamp, ssrc: 1 };
            let _ = depacketizer.push(&header, &payload, &mut units);
        }
        depacketizer.finish(&mut units);
        prop_assert!(units.iter().all(|unit| !unit.bytes.is_empty() && unit.bytes.len() <= 500));
    }
}

/// Returns two frames of three packets each.
fn two_frames() -> (Vec<Vec<u8>>, Packets) {
    let frame = |byte: u8| [&[0, 0, 0, 40, 0x65][..], &[byte; 39]].concat();
    let frames = vec![frame(1), frame(2)];
    let all = packets(Packetizer::Avc(4), &frames, 18);
    assert_eq!(all.len(), 6);
    (frames, all)
}

#[test]
fn losses_are_told_and_counted() {
    let (_, mut all) = two_frames();
    all.remove(1);
    let (units, dropped) = join(Packetizer::Avc(4), &all);
    assert_eq!((units.len(), dropped), (1, 1));
    assert!(units[0].lost_before && units[0].timestamp == timestamp(1));
}

#[test]
fn a_lost_mark_does_not_cost_the_next_frame() {
    let frame = vec![0, 0, 0, 2, 0x65, 1];
    let (frames, mut all) = two_frames();
    let frames = [vec![frame], frames].concat();
    for (header, _) in &mut all {
        header.sequence = header.sequence.wrapping_add(1);
        header.timestamp = header.timestamp.wrapping_add(STEP);
    }
    let first = packets(Packetizer::Avc(4), &frames[..1], 18);
    let mut all = [first, all].concat();
    all.remove(3);
    let (units, dropped) = join(Packetizer::Avc(4), &all);
    assert_eq!(whole(Packetizer::Avc(4), &units, &frames).unwrap(), [0, 2]);
    assert_eq!(dropped, 1);
}

/// Frames of one packet for each NAL unit, joined without the packets at some places; returns the places of frames found.
fn without(frames: &[&[&[u8]]], lost: &[usize]) -> Vec<usize> {
    let unit = |nal: &&[u8]| [&[0, 0, 0, nal.len() as u8][..], nal].concat();
    let frames: Vec<Vec<u8>> = frames.iter().map(|frame| frame.iter().flat_map(unit).collect()).collect();
    let all = packets(Packetizer::Avc(4), &frames, 1000);
    let kept: Packets =
        all.into_iter().enumerate().filter(|(n, _)| !lost.contains(n)).map(|(_, packet)| packet).collect();
    let times = |unit: Unit| (0..frames.len()).find(|place| timestamp(*place as u32) == unit.timestamp).unwrap();
    join(Packetizer::Avc(4), &kept).0.into_iter().map(times).collect()
}

#[test]
fn a_lost_picture_does_not_cost_the_next_one() {
    const SET: &[u8] = &[0x67, 1];
    const MESSAGE: &[u8] = &[0x06, 5, 1, 0, 0x80];
    let (key, other, rest): (&[u8], &[u8], &[u8]) = (&[0x65, 0x88], &[0x41, 0x9a], &[0x41, 0x11]);
    // A picture of one packet.
    let frames: &[&[&[u8]]] = &[&[SET, key], &[other], &[other], &[other], &[SET, key], &[other]];
    assert_eq!(without(frames, &[3]), [0, 1, 3, 4, 5]);
    assert_eq!(without(frames, &[3, 4]), [0, 1, 4, 5]);
    assert_eq!(without(frames, &[4]), [0, 1, 2, 4, 5], "a set begins a key frame");
    assert_eq!(without(frames, &[5]), [0, 1, 2, 3, 5], "a key frame without its set");
    // No key frame has sets.
    let frames: &[&[&[u8]]] = &[&[key], &[other], &[key], &[other]];
    assert_eq!(without(frames, &[1]), [0, 2, 3]);
    // Slices, and messages before all of them.
    let frames: &[&[&[u8]]] =
        &[&[MESSAGE, key], &[MESSAGE, other, rest], &[MESSAGE, other, rest], &[MESSAGE, other, rest]];
    assert_eq!(without(frames, &[6]), [0, 1, 3], "without its first slice");
    assert_eq!(without(frames, &[5]), [0, 1, 3], "without its message");
    assert_eq!(without(frames, &[5, 6, 7]), [0, 1, 3]);
    // Nothing is known of the sender yet.
    assert_eq!(without(frames, &[0]), [1, 2, 3]);
}

#[test]
fn the_first_packets_are_missed_where_their_number_is_known() {
    let (frames, mut all) = two_frames();
    all[0].0.sequence = 7;
    let begun: Packets = all.drain(..).filter(|(header, _)| header.sequence != 7).collect();
    let (units, dropped) = join(Packetizer::Avc(4), &begun);
    assert_eq!((whole(Packetizer::Avc(4), &units, &frames).unwrap(), dropped), (vec![1], 1));
}

#[test]
fn senders_that_mark_no_ends_are_read_too() {
    let (frames, mut all) = two_frames();
    for (header, _) in &mut all {
        header.marker = false;
    }
    let (units, dropped) = join(Packetizer::Avc(4), &all);
    assert_eq!((whole(Packetizer::Avc(4), &units, &frames).unwrap(), dropped), (vec![0, 1], 0));
    all.remove(2);
    assert_eq!(join(Packetizer::Avc(4), &all), (vec![], 2), "whether the second one begins there can't be known");
}

#[test]
fn units_are_bounded() {
    let (_, all) = two_frames();
    let mut depacketizer = Depacketizer::new(Packetizer::Avc(4)).with_most_bytes(40);
    let mut units = Vec::new();
    let errors: Vec<PayloadError> =
        all.iter().filter_map(|(header, payload)| depacketizer.push(header, payload, &mut units).err()).collect();
    assert_eq!(errors, vec![PayloadError::TooLarge { most: 40 }; 2]);
    assert_eq!((units, depacketizer.dropped()), (vec![], 2));
}
