//! Groups units into PES packets.

use super::{Unit, clock, sizes::Sizes};
use std::ops::Range;

/// Most payload bytes of an audio PES packet with more than one frame.
const MOST_BYTES: u64 = 10_000;
/// Longest time from the first to the last frame of an audio PES packet (90 kHz): 0.3 s.
const MOST_TICKS: i64 = 27_000;
/// Most ticks (90 kHz) by which a frame may deviate from its place after the first frame, besides the rounding of the track's
/// times: 0.1 ms. Clocks of live streams are corrected by less in a PES packet.
const SLACK: i64 = 9;
/// Ticks (90 kHz) of a second.
const SECOND: i64 = 90_000;

/// Distance of two audio frames without a gap: samples, and samples per second.
#[derive(Clone, Copy, Debug)]
pub(super) struct FrameStep {
    pub(super) samples: u32,
    pub(super) rate: u32,
}

impl FrameStep {
    /// Returns the time of `frames` frames in ticks (90 kHz), rounded down.
    fn ticks(self, frames: usize) -> i64 {
        let samples = i64::try_from(frames).unwrap_or(i64::MAX).saturating_mul(i64::from(self.samples));
        samples.saturating_mul(SECOND) / i64::from(self.rate.max(1))
    }

    /// Returns the step of units. This is their codec's step if units follow each other with it, else the shortest step, because
    /// gaps only make steps longer.
    fn of(codec: Option<Self>, units: &[Unit]) -> Option<Self> {
        let steps = || units.windows(2).map(|pair| pair[1].pts.saturating_sub(pair[0].pts));
        let is_near = |own: &Self| steps().any(|step| step.saturating_sub(own.ticks(1)).abs() < own.ticks(1) / 4);
        let shortest = || Some(Self { samples: u32::try_from(steps().min()?.max(0)).ok()?, rate: SECOND as u32 });
        codec.filter(is_near).or_else(shortest)
    }
}

/// Returns the ranges of units that share a PES packet: one unit for video and subtitles, a run of frames for audio. Only the first
/// frame of a PES packet has a timestamp, so it ends where the next frame does not follow at once. Where audio carries the
/// clock, a new PES packet begins in time for each PCR, because PCRs are sent at the start of PES packets.
pub(super) fn groups(sizes: Sizes, units: &[Unit]) -> impl Iterator<Item = Range<usize>> {
    let step = if sizes.stands_alone { None } else { FrameStep::of(sizes.step, units) };
    let frame = step.map_or(0, |step| step.ticks(1));
    let most_ticks = if sizes.has_clock { clock::MOST_APART - frame + 1 } else { MOST_TICKS };
    let slack = SLACK.saturating_add(sizes.tick);
    let mut next = 0;
    std::iter::from_fn(move || {
        let start = next;
        let first = units.get(start)?;
        next += 1;
        let Some(step) = step else { return Some(start..next) };
        let mut bytes = sizes.payload(first);
        while let Some(unit) = units.get(next) {
            bytes = bytes.saturating_add(sizes.payload(unit));
            let span = unit.pts.saturating_sub(first.pts);
            let off = span.saturating_sub(step.ticks(next - start)).abs();
            if bytes > MOST_BYTES || span >= most_ticks || off > slack {
                break;
            }
            next += 1;
        }
        Some(start..next)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_media::units::ByteRange;

    /// Returns the lengths of the groups of frames at `times`.
    fn lengths(sizes: Sizes, times: &[i64]) -> Vec<usize> {
        let unit = |&pts: &i64| Unit { range: ByteRange::at(0, 100), dts: pts, pts, sync: true, sets: Some(0) };
        let units: Vec<_> = times.iter().map(unit).collect();
        groups(sizes, &units).map(|group| group.len()).collect()
    }

    /// Returns the times of frames of 1024 samples, rounded to ticks of a timescale.
    fn times(rate: i64, timescale: i64, frames: i64) -> Vec<i64> {
        (0..frames).map(|n| n * 1024 * timescale / rate * SECOND / timescale).collect()
    }

    #[test]
    fn a_step_of_times_begins_a_pes_packet() {
        let aac = Some(FrameStep { samples: 1024, rate: 48_000 });
        let regular = times(48_000, 48_000, 12);
        assert_eq!(lengths(Sizes::of_sound(aac, 2), &regular), [12]);
        for jump in [135, -135, 30, -30] {
            let jumped: Vec<_> = regular.iter().enumerate().map(|(n, at)| at + if n < 5 { 0 } else { jump }).collect();
            assert_eq!(lengths(Sizes::of_sound(aac, 2), &jumped), [5, 7], "{jump}");
            assert_eq!(lengths(Sizes::of_sound(None, 2), &jumped[..4]), [4], "{jump}");
        }
    }

    #[test]
    fn slow_drift_ends_a_pes_packet_before_it_is_heard() {
        let aac = Some(FrameStep { samples: 1024, rate: 48_000 });
        let drifting: Vec<_> = times(48_000, 48_000, 12).iter().enumerate().map(|(n, at)| at + 4 * n as i64).collect();
        assert_eq!(lengths(Sizes::of_sound(aac, 2), &drifting), [3, 3, 3, 3]);
    }

    #[test]
    fn coarse_times_are_not_steps() {
        for (rate, timescale) in [(44_100, 44_100), (44_100, 90_000), (48_000, 1000), (44_100, 600), (22_050, 1000)] {
            let step = Some(FrameStep { samples: 1024, rate: rate as u32 });
            let tick = (SECOND + timescale - 1) / timescale;
            let most = (MOST_TICKS * rate / SECOND / 1024 + 1) as usize;
            let frames = times(rate, timescale, most as i64);
            assert_eq!(lengths(Sizes::of_sound(step, tick), &frames), [most], "{rate} Hz in ticks of 1/{timescale} s");
        }
    }
}
