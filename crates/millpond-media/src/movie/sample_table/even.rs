//! Makes decode times rise where a file has samples of no duration.
//!
//! Only the last sample of a track may have no duration (ISO/IEC 14496-12 8.6.1.2). Samples that share a decode time get equal
//! parts of the time up to the next sample. All outputs then have the same times.

use super::builder::Pending;

/// State carried from block to block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Even {
    /// Ticks per sample where the track has no durations at all; never 0.
    usual: i64,
    /// Duration of the sample before the block; 0 where no sample had one yet.
    before: i64,
    /// Ticks by which times are late, because too many samples shared too few ticks.
    pub(super) late: i64,
}

impl Even {
    pub(super) fn new(usual: u32) -> Self {
        Self { usual: i64::from(usual.max(1)), before: 0, late: 0 }
    }

    /// Sets the durations of a block's samples. `is_last`: no block follows.
    pub(super) fn apply(&mut self, block: &mut [Pending], is_last: bool) {
        let mut rest = block;
        while let Some(zeros) = rest.iter().position(|sample| sample.step > 0) {
            let (group, after) = std::mem::take(&mut rest).split_at_mut(zeros + 1);
            self.share(group);
            rest = after;
        }
        if rest.is_empty() {
            return;
        }
        let count = rest.len() as i64;
        match self.before {
            // No sample of the track had a duration so far.
            0 => share(rest, self.usual.saturating_mul(count)),
            // The end of the track continues with the last duration.
            before if is_last => share(rest, before.saturating_mul(count)),
            // The time up to the next decode time is in the next block, which will make up for it.
            _ => {
                share(rest, count);
                self.late = self.late.saturating_add(count);
            }
        }
    }

    /// Shares the duration of a group's last sample among the whole group, less the ticks by which times are late. Each
    /// sample gets at least one tick.
    fn share(&mut self, group: &mut [Pending]) {
        let ticks = group.last().map_or(0, |last| last.step);
        let wanted = ticks.saturating_sub(self.late);
        let given = wanted.max(group.len() as i64);
        self.late = given.saturating_sub(wanted);
        share(group, given);
        self.before = group.last().map_or(0, |last| last.step);
    }
}

/// Shares `ticks` equally. Composition times stay where they differ within the group; otherwise they move with the
/// decode times.
fn share(group: &mut [Pending], ticks: i64) {
    let first = group.first().map_or(0, |sample| sample.composition);
    let is_composed = group.iter().any(|sample| sample.composition != first);
    let count = group.len() as i128;
    let at = |place: usize| (i128::from(ticks) * place as i128 / count.max(1)) as i64;
    for (place, sample) in group.iter_mut().enumerate() {
        sample.step = at(place + 1) - at(place);
        if is_composed {
            let composition = i64::from(sample.composition).saturating_sub(at(place));
            sample.composition = composition.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::movie::sample_table::{SampleTable, SampleTableBuilder};
    use proptest::prelude::*;

    fn built(usual: u32, durations: &[u32]) -> Vec<i64> {
        composed(usual, durations, &[]).iter().map(|(dts, _)| *dts).collect()
    }

    /// Decode and composition times of samples with these durations and offsets, and the end of the last sample.
    fn composed(usual: u32, durations: &[u32], offsets: &[i32]) -> Vec<(i64, i64)> {
        let mut out = SampleTable::builder().even(usual);
        for (place, duration) in durations.iter().enumerate() {
            out.push(place as u64, 1, *duration, offsets.get(place).copied().unwrap_or(0), true);
        }
        times(out)
    }

    fn times(out: SampleTableBuilder) -> Vec<(i64, i64)> {
        let table = out.finish();
        let samples = table.iter().map(|sample| (sample.dts, sample.pts()));
        samples.chain([(table.end_dts(), table.end_dts())]).collect()
    }

    #[test]
    fn samples_of_one_time_share_what_follows() {
        assert_eq!(built(40, &[40, 0, 0, 120, 40]), [0, 40, 80, 120, 160, 200]);
        assert_eq!(built(40, &[40, 0, 41, 40]), [0, 40, 60, 81, 121]);
        assert_eq!(built(40, &[40, 40]), [0, 40, 80], "what rises stays");
    }

    #[test]
    fn the_end_goes_on_and_a_track_without_any_time_has_the_usual_one() {
        assert_eq!(built(40, &[25, 25, 0]), [0, 25, 50, 75]);
        assert_eq!(built(40, &[0; 5]), [0, 40, 80, 120, 160, 200]);
        let many = built(40, &[0; 300]);
        assert!(many.windows(2).all(|pair| pair[1] - pair[0] == 40), "across blocks");
    }

    #[test]
    fn too_few_ticks_are_made_up_for() {
        assert_eq!(built(40, &[5, 0, 0, 1, 5, 5]), [0, 5, 6, 7, 8, 11, 16]);
        // 130 samples of one decode time: the first block ends before the time they share is known.
        let mut durations = vec![100];
        durations.extend([0; 129]);
        durations.extend([1000, 100]);
        let times = built(40, &durations);
        assert!(times.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(times[131], 1100, "on time again");
    }

    #[test]
    fn composition_times_stay_where_they_differ() {
        let shown = |times: Vec<(i64, i64)>| times.iter().map(|(_, pts)| *pts).collect::<Vec<_>>();
        assert_eq!(shown(composed(40, &[0, 0, 0, 0], &[0, 80, 40, 120]))[..4], [0, 80, 40, 120]);
        assert_eq!(shown(composed(40, &[0, 0, 0, 0], &[80; 4]))[..4], [80, 120, 160, 200]);
    }

    #[test]
    fn a_start_of_a_fragment_sets_the_time_right() {
        let mut out = SampleTable::builder().even(40);
        for fragment in [1000, 1120] {
            out.set_start_dts(fragment);
            (0..3).for_each(|_| out.push(0, 1, 0, 0, true));
        }
        let expected = [1000, 1040, 1080, 1120, 1160, 1200];
        let found = times(out);
        assert_eq!(found[..3].iter().map(|(dts, _)| *dts).collect::<Vec<_>>(), expected[..3]);
        assert!(found.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert_eq!(found[3].0, 1120);
    }

    proptest! {
        #[test]
        fn times_always_rise_and_end_where_they_did(
            durations in prop::collection::vec(prop_oneof![Just(0), 0_u32..6, any::<u32>()], 1..700),
        ) {
            let found = built(7, &durations);
            prop_assert!(found.windows(2).all(|pair| pair[0] < pair[1]));
            let whole: i64 = durations.iter().map(|d| i64::from(*d)).sum();
            prop_assert!(*found.last().unwrap() >= whole);
        }
    }
}
