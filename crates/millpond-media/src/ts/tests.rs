//! Tests of tables, units and frames that ffmpeg does not make.

use super::{mux::Mux, *};

fn events(mux: &Mux) -> Vec<TsEvent> {
    let (mut demultiplexer, mut events) = (Demultiplexer::new(TsLimits::default()), Vec::new());
    // Packets are found by the sync byte of the next one.
    demultiplexer.push(&[&mux.bytes[..], &[0x47, 0x1f, 0xff, 0x10]].concat(), &mut events);
    demultiplexer.finish(&mut events);
    events
}

fn kinds(events: &[TsEvent]) -> Vec<String> {
    let kind = |event: &TsEvent| match event {
        TsEvent::Programmes(list) => format!("{} programmes", list.len()),
        TsEvent::Streams(map) => {
            let names: Vec<_> = map.streams.iter().map(|stream| stream.coding.name()).collect();
            format!("{}: {}", map.programme, names.join(", "))
        }
        TsEvent::Unit(unit) => format!("unit of {:#x}", unit.pid),
        TsEvent::Clock { .. } => "clock".to_owned(),
        TsEvent::Cue { section, .. } => format!("cue of {} bytes", section.len()),
        TsEvent::Fault(fault) => fault.to_string(),
    };
    events.iter().map(kind).collect()
}

#[test]
fn programmes_and_streams_change() {
    let mut mux = Mux::default();
    mux.association(0, &[(0, 0x10), (1, 0x1000)]);
    mux.map(0x1000, 1, 0, &[(0x1b, 0x100, &[]), (0x06, 0x101, &[0x56, 0]), (0x11, 0x102, b"\x0a\x04DEU\0")]);
    mux.unit(0x100, Some(1), &[1]);
    mux.association(0, &[(0, 0x10), (1, 0x1000)]);
    mux.map(0x1000, 1, 1, &[(0x24, 0x100, &[]), (0x11, 0x102, b"\x0a\x04DEU\0")]);
    mux.unit(0x100, Some(2), &[1]);
    // Another programme; the first one goes.
    mux.association(1, &[(2, 0x1001)]);
    mux.map(0x1000, 1, 2, &[(0x1b, 0x100, &[])]);
    mux.map(0x1001, 2, 0, &[(0x0f, 0x100, &[]), (0x42, 0x200, &[])]);
    let found = events(&mux);
    let expected = [
        "1 programmes",
        "1: H.264, teletext, AAC in LATM",
        "unit of 0x100",
        "1: HEVC, AAC in LATM",
        "1 programmes",
        "unit of 0x100",
        "2: AAC in ADTS, an unknown stream type",
    ];
    assert_eq!(kinds(&found), expected);
    let TsEvent::Streams(map) = &found[1] else { panic!() };
    assert_eq!((map.clock_pid, map.streams[2].language.as_deref()), (0x100, Some("deu")));
}

#[test]
fn only_one_programme_is_read() {
    let mut mux = Mux::default();
    mux.association(0, &[(1, 0x1000), (2, 0x1001)]);
    mux.map(0x1000, 1, 0, &[(0x1b, 0x100, &[])]);
    mux.map(0x1001, 2, 0, &[(0x1b, 0x200, &[])]);
    mux.unit(0x100, Some(1), &[1]);
    mux.unit(0x200, Some(1), &[1]);
    let (mut demultiplexer, mut events) = (Demultiplexer::new(TsLimits::default()).only(2), Vec::new());
    demultiplexer.push(&[&mux.bytes[..], &[0x47, 0x1f, 0xff, 0x10]].concat(), &mut events);
    demultiplexer.finish(&mut events);
    assert_eq!(kinds(&events), ["2 programmes", "2: H.264", "unit of 0x200"]);
}

#[test]
fn cues_are_given_whole_and_scrambled_streams_named_once() {
    let mut mux = Mux::default();
    mux.association(0, &[(1, 0x1000)]);
    mux.map(0x1000, 1, 0, &[(0x86, 0x1f0, &[]), (0x1b, 0x100, &[])]);
    let mut cue = vec![0xfc, 0x30, 17, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xf0, 0, 0, 0, 0];
    cue.extend(checksum(&cue).to_be_bytes());
    mux.put(0x1f0, &[&[0], &cue[..]].concat());
    cue[5] = 1;
    mux.put(0x1f0, &[&[0], &cue[..]].concat());
    let start = mux.bytes.len();
    mux.unit(0x100, Some(1), &[1; 300]);
    mux.unit(0x100, Some(1), &[1; 300]);
    for packet in mux.bytes[start..].chunks_mut(188) {
        packet[3] |= 0x80;
    }
    let found = kinds(&events(&mux));
    assert_eq!(found[2], "cue of 20 bytes");
    assert!(found[3].contains("wrong checksum"), "{}", found[3]);
    assert!(found[4].contains("scrambled") && found.len() == 5, "{found:?}");
}

/// Frames of PES packets of one stream.
fn frames(coding: StreamCoding, units: &[(Option<u64>, &[u8])]) -> (Vec<TsFrame>, Vec<FrameFault>, usize) {
    let mut framer = Framer::new(coding).expect("frames");
    let mut out = Vec::new();
    for (pts, data) in units {
        let data = bytes::Bytes::copy_from_slice(data);
        framer.push(&PesUnit { pts: *pts, data, is_unbounded: true, ..PesUnit::default() }, &mut out);
    }
    framer.finish(&mut out);
    let (mut frames, mut faults, mut configurations) = (Vec::new(), Vec::new(), 0);
    for framed in out {
        match framed {
            Framed::Frame(frame) => frames.push(frame),
            Framed::Fault(fault) => faults.push(fault),
            Framed::Configuration(_) => configurations += 1,
        }
    }
    (frames, faults, configurations)
}

/// A start code and a NAL unit.
fn nal(bytes: &[u8]) -> Vec<u8> {
    [&[0, 0, 1], bytes].concat()
}

/// A NAL unit with its length.
fn sized(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u32).to_be_bytes()[..], bytes].concat()
}

#[test]
fn access_units_are_independent_of_pes_packets() {
    let (delimiter, first, second, other) = (nal(&[9, 0xf0]), [0x65, 0x88, 1], [0x65, 0x48, 2], [0x01, 0x88, 3]);
    // Two pictures and the first slice of a third one, and the rest of that with a fourth.
    let packet = [delimiter.clone(), nal(&first), nal(&second), delimiter, nal(&other), nal(&first)];
    let rest = [nal(&second), nal(&other)].concat();
    let (found, faults, _) = frames(StreamCoding::Avc, &[(Some(900), &packet.concat()), (Some(12_000), &rest)]);
    assert_eq!(faults, []);
    let seen: Vec<_> = found.iter().map(|f| (f.pts, f.is_estimated, f.is_sync)).collect();
    let expected = [(900, false, true), (4500, true, false), (8100, true, true), (12_000, false, false)];
    assert_eq!(seen, expected);
    assert_eq!(found[0].data, [sized(&first), sized(&second)].concat());
    assert_eq!(found[2].data, [sized(&first), sized(&second)].concat());
    // The same bytes, cut anywhere, give the same pictures.
    let all = [packet.concat(), rest].concat();
    let whole = frames(StreamCoding::Avc, &[(Some(900), &all)]).0;
    assert_eq!(whole.len(), 4);
    for cut in 1..all.len() {
        let (cut, _, _) = frames(StreamCoding::Avc, &[(Some(900), &all[..cut]), (None, &all[cut..])]);
        assert_eq!(cut, whole);
    }
}

#[test]
fn two_fields_are_one_frame() {
    let sps = crate::fixture::hex("67640015acd941533c45e022000003000200000300643e28532c");
    let pps = [0x68, 0b1100_0000];
    // First macroblock 0, type 7, set 0, frame number, a field, its parity, a stop bit.
    let slice = |number: u8, bottom: u8| [0x61, 0b1000_1000, 0b1000_0000 | number << 3 | 4 | bottom << 1 | 1, 0x80];
    let field = |number, bottom| [nal(&[9, 0xf0]), nal(&slice(number, bottom))].concat();
    let start = [nal(&sps), nal(&pps), field(0, 0)].concat();
    let units =
        [(Some(0), &start[..]), (Some(1800), &field(0, 1)), (Some(3600), &field(1, 1)), (Some(7200), &field(2, 0))];
    let (found, faults, configurations) = frames(StreamCoding::Avc, &units);
    assert_eq!((faults, configurations), (vec![], 1));
    assert_eq!(found.iter().map(|frame| frame.pts).collect::<Vec<_>>(), [0, 3600, 7200]);
    assert_eq!(found[0].data, [sized(&slice(0, 0)), sized(&slice(0, 1))].concat());
}

#[test]
fn hevc_pictures_and_their_flags() {
    // IDR with two slice segments, then TRAIL_N, then TRAIL_R; first_slice_segment_in_pic_flag is the first bit.
    let bytes = [[0x26, 1, 0x80], [0x26, 1, 0x01], [0x00, 1, 0x80], [0x02, 1, 0x80]].map(|unit| nal(&unit)).concat();
    let (found, _, _) = frames(StreamCoding::Hevc, &[(Some(0), &bytes)]);
    let seen: Vec<_> = found.iter().map(|f| (f.is_sync, f.data.len())).collect();
    assert_eq!(seen, [(true, 14), (false, 7), (false, 7)]);
}

#[test]
fn pictures_without_a_start_or_a_time_are_dropped() {
    let (found, faults, _) = frames(StreamCoding::Avc, &[(None, &nal(&[0x65, 0x88])), (Some(5), &nal(&[0x65, 0x48]))]);
    // The second slice continues the first picture, which has no time.
    assert_eq!((found.len(), faults), (0, vec![FrameFault::Untimed]));
    let (found, faults, _) = frames(StreamCoding::Avc, &[(Some(5), &nal(&[0x65, 0x48]))]);
    assert_eq!((found.len(), faults), (0, vec![FrameFault::Incomplete]));
}

/// An ADTS frame of `len` bytes: AAC LC, 48 kHz, stereo.
fn adts(fill: u8, len: usize) -> Vec<u8> {
    let size = len + 7;
    let mut frame =
        vec![0xff, 0xf1, 0x4c, 0x80 | (size >> 11) as u8, (size >> 3) as u8, (size << 5) as u8 | 0x1f, 0xfc];
    frame.resize(size, fill);
    frame
}

#[test]
fn frames_of_sound_continue_over_packets() {
    let all = [adts(1, 50), adts(2, 60), adts(3, 70), adts(4, 80)].concat();
    for cut in 1..all.len() {
        let (found, faults, configurations) =
            frames(StreamCoding::Adts, &[(Some(90_000), &all[..cut]), (None, &all[cut..])]);
        assert_eq!((faults, configurations), (vec![], 1), "cut at {cut}");
        let times: Vec<_> = found.iter().map(|frame| (frame.pts, frame.data[0])).collect();
        assert_eq!(times, [(90_000, 1), (91_920, 2), (93_840, 3), (95_760, 4)], "cut at {cut}");
    }
}

#[test]
fn sound_is_found_in_garbage() {
    // A sync word in the garbage whose frame is followed by none.
    let bytes =
        [&[1, 2, 0xff, 0xf1, 0x4c, 0x80, 2, 0x1f, 0xfc, 9, 9][..], &adts(1, 50), &[0; 9], &adts(2, 60), &adts(3, 9)];
    let (found, faults, _) = frames(StreamCoding::Adts, &[(Some(0), &bytes.concat())]);
    assert_eq!(found.iter().map(|frame| frame.data[0]).collect::<Vec<_>>(), [2, 3]);
    assert_eq!(faults, [FrameFault::Garbage]);
}

#[test]
fn enhanced_ac3_is_grouped_to_six_blocks() {
    // Independent substream 0 of two blocks (numblkscod 1) and a dependent one, 20 bytes each, 48 kHz, 5.1.
    let frame = |kind: u8| {
        let mut frame = vec![0x0b, 0x77, kind << 6, 9, 0b0001_1111, 16 << 3, 0, 0x80, 0, 0];
        frame.resize(20, kind);
        frame
    };
    let group = [frame(0), frame(1), frame(0), frame(1), frame(0), frame(1)].concat();
    let (found, faults, configurations) = frames(StreamCoding::Eac3, &[(Some(0), &[&group[..], &group].concat())]);
    assert_eq!((faults, configurations), (vec![], 1));
    assert_eq!(found.iter().map(|frame| (frame.pts, frame.data.len())).collect::<Vec<_>>(), [(0, 120), (2880, 120)]);
}
