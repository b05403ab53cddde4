//! Tests that divided frames can be joined again, and that packets follow their formats.

use super::*;
use proptest::prelude::*;

const ALL: [Packetizer; 11] = [
    Packetizer::Avc(4),
    Packetizer::Hevc(2),
    Packetizer::Av1,
    Packetizer::Vp8,
    Packetizer::Vp9,
    Packetizer::Aac,
    Packetizer::Mpa,
    Packetizer::Opus,
    Packetizer::Ac3,
    Packetizer::Eac3,
    Packetizer::Pcm(Pcm { values: Values::L16, channels: 2 }),
];

fn cut(packetizer: Packetizer, frame: &[u8], most: usize) -> Vec<(Piece, Vec<u8>)> {
    let mut pieces = Vec::new();
    packetizer.cut(frame, most, &mut pieces).unwrap();
    let payload = |piece: Piece| {
        let bytes = [piece.head(), &frame[piece.body.clone()]].concat();
        (piece, bytes)
    };
    pieces.into_iter().map(payload).collect()
}

/// Returns a frame of NAL units with lengths of four bytes.
fn frame(units: &[Vec<u8>]) -> Vec<u8> {
    units.iter().flat_map(|unit| [&(unit.len() as u32).to_be_bytes()[..], unit].concat()).collect()
}

/// Returns the NAL units of H.264 payloads (RFC 6184 5.6, 5.8).
fn avc(payloads: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut units: Vec<Vec<u8>> = Vec::new();
    for payload in payloads {
        match payload[0] & 0x1f {
            28 if payload[1] & 0x80 != 0 => {
                units.push([&[payload[0] & 0xe0 | payload[1] & 0x1f], &payload[2..]].concat());
            }
            28 => units.last_mut().unwrap().extend_from_slice(&payload[2..]),
            _ => units.push(payload.clone()),
        }
    }
    units
}

#[test]
fn messages_go_before_the_first_slice() {
    let pieces = |packetizer: Packetizer, frame: &[u8]| {
        let mut pieces = Vec::new();
        packetizer.cut(frame, 1388, &mut pieces).unwrap();
        packetizer.first_slice(frame, &pieces)
    };
    let slice = |head: &[u8]| [head, &[7; 5000]].concat();
    let before = [vec![9, 0xf0], [&[6, 5][..], &[7; 3000]].concat()];
    // The message before it takes three packets.
    let avc = [&before[..], &[slice(&[0x65]), slice(&[0x65])]].concat();
    assert_eq!(pieces(Packetizer::Avc(4), &frame(&avc)), Some(4));
    assert_eq!(pieces(Packetizer::Avc(4), &frame(&before)), None, "no slice");
    assert_eq!(pieces(Packetizer::Hevc(4), &frame(&[vec![0x46, 1, 0x50], slice(&[0x26, 1])])), Some(1));
    assert_eq!(Packetizer::Avc(4).first_slice(&[0, 0, 0, 9, 0x65], &[]), None, "cut off");
    assert_eq!(Packetizer::Opus.first_slice(&[1], &[]), None);
}

#[test]
fn large_h264_units_are_fragmented_evenly() {
    let units = vec![vec![0x06, 1, 2], [&[0x65][..], &[7; 5000]].concat()];
    let all = cut(Packetizer::Avc(4), &frame(&units), 1388);
    let lengths: Vec<usize> = all.iter().map(|(piece, _)| piece.len()).collect();
    assert_eq!(lengths, [3, 1388, 1388, 1388, 5000 - 3 * 1386 + 2]);
    let marked: Vec<bool> = all.iter().map(|(piece, _)| piece.marker).collect();
    assert_eq!(marked, [false, false, false, false, true]);
    let heads: Vec<&[u8]> = all.iter().map(|(piece, _)| piece.head()).collect();
    assert_eq!(heads, [&[][..], &[0x7c, 0x85], &[0x7c, 0x05], &[0x7c, 0x05], &[0x7c, 0x45]]);
    assert_eq!(avc(&all.into_iter().map(|(_, payload)| payload).collect::<Vec<_>>()), units);
}

#[test]
fn key_frames_that_bring_their_parameter_sets_are_known() {
    let avc = |units: &[&[u8]]| {
        Packetizer::Avc(4).stands_alone(&frame(&units.iter().map(|unit| unit.to_vec()).collect::<Vec<_>>()))
    };
    assert!(avc(&[&[0x09, 0x10], &[0x67, 1], &[0x68, 1], &[0x65, 1]]));
    assert!(!avc(&[&[0x06, 1], &[0x65, 1]]), "a picture and what is said of it");
    let hevc = |unit: &[u8]| Packetizer::Hevc(2).stands_alone(&[&[0, unit.len() as u8], unit].concat());
    assert!(hevc(&[33 << 1, 1, 5]) && !hevc(&[19 << 1, 1, 5]));
    assert!(!Packetizer::Avc(4).stands_alone(&[0, 0, 0, 9, 0x67]), "cut off");
    assert!(Packetizer::Opus.stands_alone(&[1]));
}

#[test]
fn hevc_fragments_keep_layer_and_type() {
    // IDR_W_RADL (19) of layer 1, temporal id 2.
    let unit = [&[19 << 1, 1 << 3 | 2][..], &[9; 3000]].concat();
    let heads: Vec<Vec<u8>> = {
        let bytes = [&[0x0b, 0xba][..], &unit].concat();
        cut(Packetizer::Hevc(2), &bytes, 1388).into_iter().map(|(piece, _)| piece.head().to_vec()).collect()
    };
    assert_eq!(heads, [[49 << 1, 10, 0x80 | 19], [49 << 1, 10, 19], [49 << 1, 10, 0x40 | 19]]);
}

#[test]
fn sound_has_its_headers() {
    let heads = |packetizer, length: usize| -> Vec<Vec<u8>> {
        cut(packetizer, &vec![0; length], 1388).into_iter().map(|(piece, _)| piece.head().to_vec()).collect()
    };
    // 300 bytes in 13 bits: 300 << 3.
    assert_eq!(heads(Packetizer::Aac, 300), [[0, 16, 0x09, 0x60]]);
    assert_eq!(heads(Packetizer::Mpa, 1440), [[0, 0, 0, 0], [0, 0, 0x05, 0x68]]);
    assert_eq!(heads(Packetizer::Opus, 200), [[0_u8; 0]]);
    assert_eq!(heads(Packetizer::Pcm(Pcm { values: Values::L16, channels: 2 }), 1200), [[0_u8; 0]]);
    assert_eq!(heads(Packetizer::Ac3, 1000), [[0, 1]]);
    assert_eq!(heads(Packetizer::Ac3, 1792), [[1, 2], [3, 2]], "five eighths and more in the first");
    assert_eq!(heads(Packetizer::Eac3, 1792), [[1, 2], [1, 2]]);
    let mut pieces = Vec::new();
    assert!(Packetizer::Aac.cut(&[0; 9000], 1388, &mut pieces).unwrap_err().to_string().contains("9000 bytes"));
}

#[test]
fn av1_leaves_out_what_is_not_sent() {
    // Temporal delimiter, sequence header of 3 bytes, frame of 2000 bytes, each with its size.
    let bytes = [&[0x12, 0, 0x0a, 3, 1, 2, 3, 0x32, 0xd0, 0x0f][..], &[5; 2000]].concat();
    let all = cut(Packetizer::Av1, &bytes, 1388);
    let heads: Vec<&[u8]> = all.iter().map(|(piece, _)| piece.head()).collect();
    // The sequence header with its length, and the beginning of the frame.
    assert_eq!(heads, [&[0x68, 4, 0x08, 1, 2, 3, 0x30][..], &[0x90]]);
    assert_eq!(all.iter().map(|(piece, _)| piece.body.len()).collect::<Vec<_>>(), [1381, 619]);
    assert!(all[1].0.marker && !all[0].0.marker);
}

#[test]
fn av1_frames_of_many_obus_are_one_run_of_packets() {
    // A sequence header, a frame header with an extension, three groups of tiles, and an OBU behind them.
    let obu = |head: &[u8], size: usize| {
        let mut bytes = head.to_vec();
        bytes.extend([size as u8 & 0x7f | 0x80, (size >> 7) as u8]);
        bytes.extend((0..size).map(|at| at as u8));
        bytes
    };
    let sizes = [(&[0x0a][..], 11), (&[0x1e, 0x08], 20), (&[0x22], 1300), (&[0x22], 40), (&[0x22], 3000), (&[0x2a], 5)];
    let frame: Vec<u8> = sizes.iter().flat_map(|(head, size)| obu(head, *size)).collect();
    for most in [16, 40, 100, 1188, 10_000] {
        let all = cut(Packetizer::Av1, &frame, most);
        let heads: Vec<u8> = all.iter().map(|(piece, _)| piece.head()[0]).collect();
        // Fragments: the next packet goes on where one says so.
        assert!(heads.windows(2).all(|two| (two[0] & 0x40 != 0) == (two[1] & 0x80 != 0)), "{most}: {heads:x?}");
        assert_eq!(heads.iter().filter(|head| **head & 8 != 0).count(), 1);
        assert!(all.iter().all(|(piece, _)| piece.len() <= most), "{most}");
        if most == 1188 {
            // A new OBU begins no packet but the first one.
            assert!(heads[1..].iter().all(|head| head & 0x80 != 0), "{heads:x?}");
        }
    }
}

#[test]
fn vp9_says_where_frames_begin_and_whether_they_stand_alone() {
    // Frame marker 2, profile 0; then show_existing_frame, frame_type.
    let key = [&[0x82_u8][..], &[0; 2000]].concat();
    let heads =
        |frame: &[u8]| -> Vec<u8> { cut(Packetizer::Vp9, frame, 1388).iter().map(|(p, _)| p.head()[0]).collect() };
    assert_eq!(heads(&key), [0x08, 0x04]);
    assert_eq!(heads(&[0x86, 0]), [0x4c], "predicted from others, in one packet");
    let mut pieces = Vec::new();
    assert!(
        Packetizer::Vp9.cut(&[0x00], 1388, &mut pieces).is_err()
            && Packetizer::Vp9.cut(&[], 1388, &mut pieces).is_err()
    );
}

#[test]
fn lengths_that_lie_are_found() {
    for (bytes, at) in [(&[0, 0, 0][..], 0), (&[0, 0, 0, 9, 1], 0), (&[0, 0, 0, 1, 7, 0, 0, 0, 0], 5)] {
        let error = Packetizer::Avc(4).cut(bytes, 1388, &mut Vec::new()).unwrap_err();
        assert!(matches!(error, PayloadError::Invalid { at: found, .. } if found == at), "{error}");
    }
}

proptest! {
    #[test]
    fn h264_units_come_back(units in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..6000), 1..6), most in 16..2000_usize) {
        // Types of single units: those of aggregation and fragmentation don't occur in files.
        let units: Vec<Vec<u8>> = units.into_iter().map(|mut unit| { unit[0] = (unit[0] & 0x60) | (unit[0] % 23 + 1); unit }).collect();
        let all = cut(Packetizer::Avc(4), &frame(&units), most);
        prop_assert!(all.iter().all(|(piece, payload)| piece.len() == payload.len() && payload.len() <= most));
        prop_assert_eq!(avc(&all.into_iter().map(|(_, payload)| payload).collect::<Vec<_>>()), units);
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..3000), most in 0..3000_usize) {
        for packetizer in ALL {
            let mut pieces = Vec::new();
            if packetizer.cut(&bytes, most, &mut pieces).is_ok() {
                let fits = |piece: &Piece| piece.body.end <= bytes.len() && (packetizer == Packetizer::Opus || piece.len() <= most.max(16));
                prop_assert!(pieces.iter().all(fits), "{packetizer:?}");
            }
        }
    }
}
