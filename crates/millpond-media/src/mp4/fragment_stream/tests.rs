use super::*;
use crate::fixture::{AAC, AVC, bx, fields, mvhd, trak};
use proptest::prelude::*;

const MOOF_BASE: u32 = 0x2_0000;

fn moov(tracks: &[Vec<u8>]) -> Vec<u8> {
    let trex = |id| fields(b"trex", &[0, id, 1, 40, 10, 0x0101_0000]);
    let mvex = bx(b"mvex", &[&trex(1), &trex(2)]);
    bx(b"moov", &[&mvhd(), &tracks.concat(), &mvex])
}

fn both() -> Vec<u8> {
    moov(&[trak(1, b"vide", AVC, &[]), trak(2, b"soun", AAC, &[])])
}

/// A fragment of one sample of each size for each track, and its media: samples of a track are together.
fn fragment(time: u32, sizes: &[&[u32]]) -> Vec<u8> {
    let make = |moof_len: u32| {
        let mut at = moof_len + 8;
        let trafs = (1..).zip(sizes).map(|(id, sizes)| {
            let mut run = vec![0x201, sizes.len() as u32, at];
            run.extend(sizes.iter());
            at += sizes.iter().sum::<u32>();
            let (tfhd, tfdt) = (fields(b"tfhd", &[MOOF_BASE, id]), fields(b"tfdt", &[0, time]));
            bx(b"traf", &[&tfhd, &tfdt, &fields(b"trun", &run)])
        });
        bx(b"moof", &[&fields(b"mfhd", &[0, 1]), &trafs.collect::<Vec<_>>().concat()])
    };
    let moof = make(make(0).len() as u32);
    let len: u32 = sizes.iter().flat_map(|sizes| sizes.iter()).sum();
    let media: Vec<u8> = (0..len).map(|n| n as u8).collect();
    [moof, bx(b"mdat", &[&media])].concat()
}

fn events(bytes: &[u8], step: usize) -> (Vec<FragmentEvent>, Option<MediaError>) {
    let (mut stream, mut events) = (FragmentStream::new(), Vec::new());
    for chunk in bytes.chunks(step.max(1)) {
        if let Err(error) = stream.push(chunk, &mut events) {
            return (events, Some(error));
        }
    }
    (events, None)
}

/// Track, decoding time and data of each sample.
fn samples(events: &[FragmentEvent]) -> Vec<(usize, i64, Vec<u8>)> {
    let sample = |event: &FragmentEvent| match event {
        FragmentEvent::Sample(sample) => Some((sample.track, sample.dts, sample.data.to_vec())),
        _ => None,
    };
    events.iter().filter_map(sample).collect()
}

fn faults(events: &[FragmentEvent]) -> Vec<&str> {
    let faults = events.iter().filter_map(|event| match event {
        FragmentEvent::Fault(why) => Some(why.as_str()),
        _ => None,
    });
    faults.collect()
}

#[test]
fn progressive_files_are_named() {
    let file = [bx(b"ftyp", &[b"isom\0\0\0\0"]), bx(b"mdat", &[&[0; 64]])].concat();
    let (_, error) = events(&file, 7);
    let error = error.unwrap().to_string();
    assert!(error.contains("a progressive MP4 file") && error.contains("frag_keyframe"), "{error}");
}

#[test]
fn samples_come_with_their_media() {
    let skipped =
        [bx(b"styp", &[b"msdh"]), bx(b"sidx", &[&[0; 40]]), bx(b"emsg", &[&[7; 100]]), bx(b"prft", &[&[1; 20]])];
    let bytes =
        [both(), fragment(0, &[&[2, 3], &[4]]), skipped.concat(), both(), fragment(500, &[&[1], &[1]])].concat();
    for step in [1, 7, 64, 100_000] {
        let (events, error) = events(&bytes, step);
        assert_eq!((error, faults(&events)), (None, vec![]));
        assert!(matches!(&events[0], FragmentEvent::Tracks { tracks, .. } if tracks.len() == 2));
        let expected = [
            (0, 0, vec![0, 1]),
            (0, 40, vec![2, 3, 4]),
            (1, 0, vec![5, 6, 7, 8]),
            (0, 500, vec![0]),
            (1, 500, vec![1]),
        ];
        assert_eq!(samples(&events), expected, "steps of {step}");
        assert_eq!(events.len(), 6, "the repeated movie box is no event");
    }
}

#[test]
fn times_may_jump_back_and_movies_may_change() {
    let one = moov(&[trak(1, b"vide", AVC, &[])]);
    let bytes = [both(), fragment(5000, &[&[1]]), fragment(0, &[&[1]]), one, fragment(7, &[&[1]])].concat();
    let (events, error) = events(&bytes, 1000);
    assert_eq!(error, None);
    let times: Vec<_> = samples(&events).iter().map(|(_, dts, _)| *dts).collect();
    assert_eq!(times, [5000, 0, 7]);
    let counts = events.iter().filter_map(|event| match event {
        FragmentEvent::Tracks { tracks, .. } => Some(tracks.len()),
        _ => None,
    });
    assert_eq!(counts.collect::<Vec<_>>(), [2, 1]);
}

#[test]
fn samples_without_media_are_faults() {
    let whole = fragment(0, &[&[5, 5], &[5]]);
    let moof = &whole[..whole.len() - 15 - 8];
    let short = [both(), moof.to_vec(), bx(b"mdat", &[&[0; 10]]), fragment(9, &[&[1]])].concat();
    let (found, error) = events(&short, 50);
    assert_eq!(error, None);
    assert_eq!(samples(&found).len(), 3, "two whole ones and the next fragment's");
    assert_eq!(faults(&found).len(), 1);
    let (found, _) = events(&[both(), moof.to_vec(), fragment(9, &[&[1]])].concat(), 50);
    assert_eq!((samples(&found).len(), faults(&found)), (1, vec!["the media of 3 samples do not follow their moof"]));
}

#[test]
fn impossible_streams_end() {
    let ends = |bytes: &[u8]| events(bytes, 10).1.expect("an error").to_string();
    assert!(ends(&fragment(0, &[&[1]])).contains("a fragment before any movie box"));
    assert!(ends(b"\0\0\0\x07free, and more bytes").contains("a box with a size and a type"));
    assert!(ends(b"GET / HTTP/1.1\r\n\r\n\0\0\0").contains("a box of type"));
    assert!(ends(&[&[0, 0x20, 0, 0][..], b"moov", &[0; 20]].concat()).contains("bytes of metadata"));
    assert!(ends(&moov(&[])).contains("no playable track"));
    let mut stream = FragmentStream::new();
    assert!(stream.push(&[0xff; 40], &mut Vec::new()).is_err());
    assert!(stream.push(&both(), &mut Vec::new()).is_err(), "an ended stream stays so");
}

proptest! {
    #[test]
    fn pieces_of_any_size_give_the_same_events(
        step in 1_usize..300,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..20),
    ) {
        let mut bytes = [both(), fragment(0, &[&[20, 30], &[4]]), both(), fragment(500, &[&[100], &[9]])].concat();
        for (place, value) in damage {
            let place = place.index(bytes.len());
            bytes[place] = value;
        }
        prop_assert_eq!(events(&bytes, step), events(&bytes, usize::MAX));
    }
}

#[test]
fn a_piece_may_end_anywhere() {
    let (init, whole) = (both(), fragment(0, &[&[5, 6], &[7]]));
    let samples = |events: &[FragmentEvent]| events.iter().filter(|e| matches!(e, FragmentEvent::Sample(_))).count();
    for end in 0..=whole.len() {
        let (mut stream, mut events) = (FragmentStream::new(), Vec::new());
        stream.push(&init, &mut events).unwrap();
        stream.push(&whole[..end], &mut events).unwrap();
        stream.end_piece(&mut events);
        let is_cut = !(end == 0 || end == whole.len());
        let faults = events.iter().filter(|event| matches!(event, FragmentEvent::Fault(_))).count();
        // The end of the fragment is the end of a box too.
        assert!(faults == usize::from(is_cut) || faults == 0, "{end}: {events:?}");
        events.clear();
        stream.push(&whole, &mut events).unwrap();
        assert_eq!(samples(&events), 3, "{end}");
    }
}
