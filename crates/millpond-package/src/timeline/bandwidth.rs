//! Bit rates of tracks for HLS and DASH manifests.

/// Bits per second of a track, container included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bandwidth {
    /// Peak segment bit rate (RFC 8216 4.3.4.2): the largest over runs of segments that last between half and one and a
    /// half target durations.
    pub peak: u64,
    /// Average over the whole track.
    pub average: u64,
}

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
        Self { peak: peak.max(average), average }
    }

    /// Returns the larger bit rates of two tracks of which one is played.
    pub(crate) fn larger(self, other: Self) -> Self {
        Self { peak: self.peak.max(other.peak), average: self.average.max(other.average) }
    }

    /// Sums the bit rates of two tracks that are played together.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self { peak: self.peak.saturating_add(other.peak), average: self.average.saturating_add(other.average) }
    }
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

    fn load(seconds: f64, bytes: u64) -> Load {
        Load { micros: (seconds * 1e6) as u64, bytes }
    }

    #[test]
    fn peak_is_the_heaviest_segment() {
        let found = Bandwidth::of(&[load(4.0, 1000), load(4.0, 4000), load(4.0, 1000)]);
        assert_eq!(found, Bandwidth { peak: 8000, average: 4000 });
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
    fn nothing_has_no_rate() {
        assert_eq!(Bandwidth::of(&[]), Bandwidth::default());
        assert_eq!(Bandwidth::of(&[load(0.0, 5)]), Bandwidth::default());
    }
}
