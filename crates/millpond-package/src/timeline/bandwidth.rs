//! Bit rates of tracks for HLS and DASH manifests.

/// Bits per second of a track, container included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bandwidth {
    /// Peak segment bit rate (RFC 8216 4.3.4.2): the largest over runs of segments that last between half and one and a
    /// half target durations.
    pub peak: u64,
    /// Average over the whole track.
    pub average: u64,
    /// The rate that a playback needs to its end: from the beginning of any segment to the end of any later one, its bytes are at most
    /// this rate times the duration of these segments, and ten seconds at the average rate. It is at least the average.
    pub sustained: u64,
}

/// Buffer of a playback in microseconds at the average rate: its bytes may be ahead of the sustained rate by as much.
const AHEAD: u64 = 10_000_000;
/// Part of the sustained rate to which it is found.
const PRECISION: u64 = 1024;
/// Number of rates that are tried from the peak on, each twice the one before. A run of segments that is longer than those of the peak
/// may need more than it.
const DOUBLINGS: u32 = 8;

/// Divisor of the target duration: two consecutive segments last at least this part of it.
const SHORT: u128 = 64;

/// Duration and size of one segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Load {
    pub(crate) micros: u64,
    pub(crate) bytes: u64,
}

impl Bandwidth {
    /// Computes the bit rates of a track with these segments.
    pub(crate) fn of(loads: &[Load]) -> Self {
        let target = u128::from(loads.iter().map(|l| seconds(l.micros)).max().unwrap_or(1)) * 1_000_000;
        let total = loads.iter().fold((0, 0), add);
        let average = rate(total);
        let mut peak = 0;
        let loads = &joined(loads, target)[..];
        for first in 0..loads.len() {
            let mut run = (0, 0);
            for load in &loads[first..] {
                run = add(run, load);
                if run.0 * 2 > target * 3 {
                    break;
                }
                if run.0 * 2 >= target {
                    peak = peak.max(rate(run));
                }
            }
        }
        let peak = peak.max(average);
        Self { peak, average, sustained: sustained(loads, (average, peak)) }
    }

    /// Returns the larger bit rates of two tracks of which one is played.
    pub(crate) fn larger(self, other: Self) -> Self {
        let (peak, average) = (self.peak.max(other.peak), self.average.max(other.average));
        Self { peak, average, sustained: self.sustained.max(other.sustained) }
    }

    /// Sums the bit rates of two tracks that are played together.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self {
            peak: self.peak.saturating_add(other.peak),
            average: self.average.saturating_add(other.average),
            sustained: self.sustained.saturating_add(other.sustained),
        }
    }
}

/// Finds the least rate, from the average on, at which a leaky bucket of [`AHEAD`] never overflows. Where bytes without a duration
/// overflow it at any rate, that is the peak.
fn sustained(loads: &[Load], (average, peak): (u64, u64)) -> u64 {
    let buffer = u128::from(average) * u128::from(AHEAD);
    let suffices = |rate: u64| {
        let mut held = 0_u128;
        loads.iter().all(|load| {
            held += u128::from(load.bytes) * 8_000_000;
            held = held.saturating_sub(u128::from(rate) * u128::from(load.micros));
            held <= buffer
        })
    };
    if suffices(average) {
        return average;
    }
    let highest = (0..DOUBLINGS).map(|doubling| peak.saturating_mul(1 << doubling)).find(|rate| suffices(*rate));
    let Some(mut enough) = highest else { return peak };
    let mut too_low = average;
    while enough - too_low > enough / PRECISION + 1 {
        let middle = too_low + (enough - too_low) / 2;
        if suffices(middle) {
            enough = middle;
        } else {
            too_low = middle;
        }
    }
    enough
}

/// Rounds a duration to whole seconds as for `EXT-X-TARGETDURATION`; at least 1.
pub(crate) fn seconds(micros: u64) -> u64 {
    ((micros.saturating_add(500_000)) / 1_000_000).max(1)
}

/// Joins loads so that any two consecutive ones last at least a [`SHORT`] part of the target. No real track has shorter
/// ones. The number of loads in one and a half targets is then bounded.
fn joined(loads: &[Load], target: u128) -> Vec<Load> {
    let mut joined: Vec<Load> = Vec::with_capacity(loads.len());
    for load in loads {
        match joined.last_mut() {
            Some(last) if (u128::from(last.micros) + u128::from(load.micros)) * SHORT < target => {
                last.micros += load.micros;
                last.bytes = last.bytes.saturating_add(load.bytes);
            }
            _ => joined.push(*load),
        }
    }
    joined
}

fn add(sum: (u128, u128), load: &Load) -> (u128, u128) {
    (sum.0 + u128::from(load.micros), sum.1 + u128::from(load.bytes))
}

fn rate((micros, bytes): (u128, u128)) -> u64 {
    if micros == 0 {
        return 0;
    }
    u64::try_from((bytes * 8_000_000).div_ceil(micros)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn load(seconds: f64, bytes: u64) -> Load {
        Load { micros: (seconds * 1e6) as u64, bytes }
    }

    #[test]
    fn peak_is_the_heaviest_segment() {
        let found = Bandwidth::of(&[load(4.0, 1000), load(4.0, 4000), load(4.0, 1000)]);
        assert_eq!(found, Bandwidth { peak: 8000, average: 4000, sustained: 4000 });
    }

    #[test]
    fn a_short_tail_counts_only_with_its_neighbour() {
        let found = Bandwidth::of(&[load(4.0, 4000), load(0.1, 10_000)]);
        assert_eq!(found.peak, 27_318, "14,000 bytes in 4.1 s");
    }

    #[test]
    fn segments_without_time_are_counted_in_linear_time() {
        let mut loads = vec![load(0.0, 1); 1 << 20];
        loads.push(load(1.0, 0));
        assert_eq!(Bandwidth::of(&loads).peak, 8 << 20);
    }

    #[test]
    fn a_busy_beginning_within_the_buffer_needs_no_more_than_the_average() {
        // 15 s at 1.6 times the rate of the rest: 8 s of it are ahead.
        let busy = (0..40).map(|number| load(6.0, if number * 6 < 15 { 1600 } else { 1000 }));
        let found = Bandwidth::of(&busy.collect::<Vec<_>>());
        assert_eq!(found.sustained, found.average);
        // Ten minutes of it are more than a buffer: they need their own rate, less what the buffer has.
        let busy = (0..200).map(|number| load(6.0, if number < 100 { 1600 } else { 1000 }));
        let found = Bandwidth::of(&busy.collect::<Vec<_>>());
        assert!(found.sustained > found.average * 11 / 10 && found.sustained < 1600 * 8 / 6, "{found:?}");
    }

    proptest! {
        #[test]
        fn no_stretch_needs_more_than_the_sustained_rate_and_the_buffer(
            segments in proptest::collection::vec((100_000_u64..12_000_000, 0_u64..20_000_000), 1..120),
        ) {
            let of = |(micros, rate): &(u64, u64)| Load { micros: *micros, bytes: micros * rate / 8_000_000 };
            let loads: Vec<_> = segments.iter().map(of).collect();
            let Bandwidth { average, sustained, .. } = Bandwidth::of(&loads);
            prop_assert!(sustained >= average);
            // Short segments count as one with the next.
            let slack = seconds(loads.iter().map(|load| load.micros).max().unwrap()) * 1_000_000 / 32;
            for first in 0..loads.len() {
                let mut run = (0, 0);
                for load in &loads[first..] {
                    run = add(run, load);
                    let may = u128::from(sustained) * (run.0 + u128::from(slack)) + u128::from(average * AHEAD);
                    prop_assert!(run.1 * 8_000_000 <= may, "{run:?}");
                }
            }
        }
    }

    #[test]
    fn nothing_has_no_rate() {
        assert_eq!(Bandwidth::of(&[]), Bandwidth::default());
        assert_eq!(Bandwidth::of(&[load(0.0, 5)]), Bandwidth::default());
    }
}
