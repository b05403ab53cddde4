//! Payloads of each format, put together to units: in bounds, and able to be cut again. The first byte chooses the
//! format; then come packets, each with a byte of flags and one of length before it.
#![cfg_attr(feature = "libfuzzer", no_main)]

use millpond_fuzz::fuzz_target;
use millpond_rtp::{
    packet::Header,
    payload::{Depacketizer, Packetizer, Pcm, Unit, Values},
};

const MOST: usize = 2000;

fuzz_target!(|bytes: &[u8]| {
    let Some((kind, mut rest)) = bytes.split_first() else { return };
    let format = match kind % 15 {
        0 => Packetizer::Avc(4),
        1 => Packetizer::Avc(1),
        2 => Packetizer::Hevc(4),
        3 => Packetizer::Hevc(2),
        4 => Packetizer::Av1,
        5 => Packetizer::Vp8,
        6 => Packetizer::Vp9,
        7 => Packetizer::Aac,
        8 => Packetizer::Mpa,
        9 => Packetizer::Opus,
        10 => Packetizer::Ac3,
        11 => Packetizer::Avc(3),
        12 => Packetizer::Pcm(Pcm { values: Values::L24, channels: 2 }),
        13 => Packetizer::Pcm(Pcm { values: Values::Pcmu, channels: 1 }),
        _ => Packetizer::Eac3,
    };
    let mut depacketizer = Depacketizer::new(format).with_most_bytes(MOST);
    let (mut header, mut units) = (Header::default(), Vec::new());
    while let [flags, length, after @ ..] = rest {
        let (payload, after) = after.split_at(usize::from(*length).min(after.len()));
        rest = after;
        header.marker = flags & 1 != 0;
        header.timestamp = header.timestamp.wrapping_add(u32::from(flags >> 1 & 1) * 3000);
        // Mostly the next one.
        header.sequence = header.sequence.wrapping_add(match flags >> 2 & 7 {
            0 => 0,
            1 => 2,
            2 => 700,
            _ => 1,
        });
        let _ = depacketizer.push(&header, payload, &mut units);
    }
    depacketizer.finish(&mut units);
    for unit in units {
        assert!(!unit.bytes.is_empty() && unit.bytes.len() <= MOST, "{}", unit.bytes.len());
        again(format, &unit);
    }
});

/// A unit that can be cut comes back the same.
fn again(format: Packetizer, unit: &Unit) {
    let mut pieces = Vec::new();
    // What is in fragments of MPEG audio may be no frames.
    if format == Packetizer::Mpa || format.cut(&unit.bytes, 100, &mut pieces).is_err() {
        return;
    }
    let (mut depacketizer, mut units) = (Depacketizer::new(format), Vec::new());
    for (piece, sequence) in pieces.iter().zip(0..) {
        let header = Header { marker: piece.marker, sequence, ..Header::default() };
        let payload = [piece.head(), &unit.bytes[piece.body.clone()]].concat();
        depacketizer.push(&header, &payload, &mut units).expect("what was cut");
    }
    assert!(units.len() == 1 && units[0].bytes == unit.bytes, "{format:?}");
}
