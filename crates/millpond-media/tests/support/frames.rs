//! Compares frames of transport streams with samples of MP4 files.

use millpond_media::{NalSyntax, Timescale};

/// NAL units of a sample that are in frames of a transport stream too: without parameter sets and delimiters.
pub(crate) fn without_sets(syntax: NalSyntax, sample: &[u8]) -> Vec<u8> {
    let (mut kept, mut rest) = (Vec::new(), sample);
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        let (unit, later) = after.split_at(u32::from_be_bytes(*length) as usize);
        rest = later;
        let is_left_out = match syntax {
            NalSyntax::Avc => matches!(unit[0] & 0x1f, 7..=9 | 12),
            NalSyntax::Hevc => matches!(unit[0] >> 1 & 0x3f, 32..=35 | 38),
        };
        if !is_left_out {
            kept.extend([length, unit].concat());
        }
    }
    kept
}

/// Ticks of 90 kHz.
pub(crate) fn ticks(time: i64, timescale: Timescale) -> i64 {
    (i128::from(time) * 90_000 / i128::from(timescale.get())) as i64
}
