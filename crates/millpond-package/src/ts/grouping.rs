//! Groups units into PES packets.

use super::{Unit, clock, sizes::Sizes};
use std::ops::Range;

/// Most payload bytes of an audio PES packet with more than one frame.
const MOST_BYTES: u64 = 10_000;
/// Longest time from the first to the last frame of an audio PES packet (90 kHz): 0.3 s.
const MOST_TICKS: i64 = 27_000;
/// Most ticks (90 kHz) between the end of a frame and the start of the next for which the next needs no timestamp:
/// allows for rounding of coarse timescales, but for no audible gap.
const SLACK: i64 = 180;

/// Returns the ranges of units that share a PES packet: one unit for video, a run of frames for audio. Where audio
/// carries the clock, a new PES packet begins in time for each PCR, because PCRs are sent at the start of PES packets.
pub(super) fn groups(sizes: Sizes, units: &[Unit]) -> impl Iterator<Item = Range<usize>> {
    let frame = if sizes.is_video { None } else { frame_ticks(units) };
    let most_ticks = if sizes.has_clock { clock::MOST_APART - frame.unwrap_or(0).max(0) + 1 } else { MOST_TICKS };
    let mut next = 0;
    std::iter::from_fn(move || {
        let start = next;
        let first = units.get(start)?;
        next += 1;
        let Some(frame) = frame else { return Some(start..next) };
        let mut bytes = sizes.payload(first);
        while let (Some(before), Some(unit)) = (units.get(next - 1), units.get(next)) {
            bytes = bytes.saturating_add(sizes.payload(unit));
            let step = unit.pts.saturating_sub(before.pts);
            let span = unit.pts.saturating_sub(first.pts);
            if bytes > MOST_BYTES || span >= most_ticks || step.saturating_sub(frame).abs() > SLACK {
                break;
            }
            next += 1;
        }
        Some(start..next)
    })
}

/// Returns the duration of a frame: the shortest step, because gaps only make steps longer.
fn frame_ticks(units: &[Unit]) -> Option<i64> {
    units.windows(2).map(|pair| pair[1].pts.saturating_sub(pair[0].pts)).min()
}
