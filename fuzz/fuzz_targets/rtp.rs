//! RTP packets, and frames that are cut into packets and put together again.
#![cfg_attr(feature = "libfuzzer", no_main)]

use millpond_fuzz::fuzz_target;
use millpond_rtp::{
    packet::{self, Header},
    payload::{Depacketizer, Packetizer, Pcm, Values},
};

fuzz_target!(|bytes: &[u8]| {
    if let Ok((_, payload)) = packet::parse(bytes) {
        assert!(payload.len() + packet::HEADER <= bytes.len());
    }
    let [kind, most, frame @ ..] = bytes else { return };
    let packetizer = match kind % 12 {
        0 => Packetizer::Avc(4),
        1 => Packetizer::Hevc(4),
        2 => Packetizer::Av1,
        3 => Packetizer::Vp8,
        4 => Packetizer::Vp9,
        5 => Packetizer::Aac,
        6 => Packetizer::Mpa,
        7 => Packetizer::Avc(2),
        8 => Packetizer::Ac3,
        9 => Packetizer::Opus,
        10 => Packetizer::Pcm(Pcm { values: Values::L16, channels: 2 }),
        _ => Packetizer::Eac3,
    };
    let most = usize::from(*most) * 8;
    let mut pieces = Vec::new();
    if packetizer.cut(frame, most, &mut pieces).is_err() {
        return;
    }
    let fits = |length| packetizer == Packetizer::Opus || length <= most.max(16);
    assert!(pieces.iter().all(|piece| piece.body.end <= frame.len() && fits(piece.len())));
    // Frames of MPEG audio may be no frames, and OBUs may be written in another way, or be left out.
    let exact = !matches!(packetizer, Packetizer::Mpa | Packetizer::Av1);
    let (mut depacketizer, mut units) = (Depacketizer::new(packetizer), Vec::new());
    for (piece, sequence) in pieces.iter().zip(0_u64..) {
        let header = Header { marker: piece.marker, sequence: sequence as u16, ..Header::default() };
        let payload = [piece.head(), &frame[piece.body.clone()]].concat();
        let pushed = depacketizer.push(&header, &payload, &mut units);
        assert!(pushed.is_ok() || !exact, "{pushed:?}");
    }
    if exact && !frame.is_empty() {
        assert!(units.len() == 1 && units[0].bytes == frame);
    }
});
