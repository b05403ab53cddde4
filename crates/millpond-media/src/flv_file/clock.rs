//! Times of tags, without wraps, and without the restarts of files that were joined.

/// Milliseconds by which tags may precede those before them.
const MOST_BACK: i64 = 1000;
/// Tags after a restart by which it is believed.
const DOUBTFUL: u32 = 8;

/// The clock of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Clock {
    /// Time of the last tag as stated, without wraps.
    last: Option<i64>,
    /// Milliseconds that restarts add.
    added: i64,
    /// The last time before a restart, what was added then, and the tags in which that may go on.
    before: Option<(i64, i64, u32)>,
}

impl Clock {
    /// Returns the time of the tag that states `timestamp`. After a restart times go on where they were; a single wrong time is none.
    pub(super) fn time(&mut self, timestamp: u32) -> i64 {
        let last = self.last.unwrap_or(timestamp.into());
        let step = i64::from(timestamp.wrapping_sub(last as u32).cast_signed());
        let mut stated = last.saturating_add(step);
        if let Some((before, added, tags)) = self.before {
            // Differences of wrapping times tell whether the times before go on.
            let since = i64::from(timestamp.wrapping_sub(before as u32).cast_signed());
            let goes_on = (0..=MOST_BACK).contains(&since);
            if goes_on {
                (stated, self.added) = (before + since, added);
            }
            self.before = Some((before, added, tags - 1)).filter(|(_, _, tags)| *tags > 0 && !goes_on);
        }
        if step < -MOST_BACK {
            self.before = Some((last, self.added, DOUBTFUL));
            self.added = self.added.saturating_sub(step);
        }
        self.last = Some(stated);
        stated.saturating_add(self.added)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(stated: &[u32]) -> Vec<i64> {
        let mut clock = Clock::default();
        stated.iter().map(|time| clock.time(*time)).collect()
    }

    #[test]
    fn times_neither_wrap_nor_restart() {
        assert_eq!(times(&[0, 40, 23, 80]), [0, 40, 23, 80]);
        let wrapped = times(&[u32::MAX - 10, 29, 69]);
        assert_eq!(wrapped, [4_294_967_285, 4_294_967_325, 4_294_967_365]);
        assert_eq!(times(&[0, 60_000, 0, 23, 40]), [0, 60_000, 60_000, 60_023, 60_040]);
        let mut long = vec![0, 60_000, 0];
        long.extend((1..20).map(|tag| tag * 40));
        long.extend([60_000, 60_040]);
        assert_eq!(times(&long).last(), Some(&120_040), "times of the second part are not those of the first");
    }

    #[test]
    fn a_single_wrong_time_is_no_restart() {
        assert_eq!(times(&[0, 60_000, 0, 60_040, 60_080]), [0, 60_000, 60_000, 60_040, 60_080]);
        assert_eq!(times(&[0, 60_000, 120_000]), [0, 60_000, 120_000], "a pause");
    }
}
