//! RTP and RTCP packets, and frames that are cut into packets.
#![no_main]

use libfuzzer_sys::fuzz_target;
use millpond_rtp::{packet, payload::Packetizer, rtcp};

fuzz_target!(|bytes: &[u8]| {
    if let Ok((_, payload)) = packet::parse(bytes) {
        assert!(payload.len() + packet::HEADER <= bytes.len());
    }
    if let Ok(reports) = rtcp::parse(bytes) {
        assert!(reports.len() <= bytes.len() / 4);
    }
    let [kind, most, frame @ ..] = bytes else { return };
    let packetizer = match kind % 10 {
        0 => Packetizer::Avc(4),
        1 => Packetizer::Hevc(4),
        2 => Packetizer::Av1,
        3 => Packetizer::Vp8,
        4 => Packetizer::Vp9,
        5 => Packetizer::Aac,
        6 => Packetizer::Mpa,
        7 => Packetizer::Avc(2),
        8 => Packetizer::Ac3,
        _ => Packetizer::Eac3,
    };
    let most = usize::from(*most) * 8;
    let mut pieces = Vec::new();
    if packetizer.cut(frame, most, &mut pieces).is_ok() {
        assert!(pieces.iter().all(|piece| piece.body.end <= frame.len() && piece.len() <= most.max(16)));
    }
});
