//! Sender reports of one track.

use super::SECOND;
use std::collections::VecDeque;

/// Reports that are kept: about 40 s.
const KEPT: usize = 8;
/// Greatest difference between the progress of a sender's two clocks from one report to the next.
const AGREE: i64 = SECOND / 10;

/// A moment by both clocks of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Report {
    /// Nanoseconds of the clock that its tracks share.
    pub(super) clock: i64,
    /// Nanoseconds of the track's timestamps, unwrapped.
    pub(super) media: i64,
}

/// The last sender reports of one track. A report that contradicts the last report replaces it.
#[derive(Debug, Default)]
pub(super) struct Reports {
    last: VecDeque<Report>,
}

impl Reports {
    /// Takes a report.
    pub(super) fn take(&mut self, report: Report) {
        if let Some(last) = self.last.back() {
            let passed = report.clock.saturating_sub(last.clock);
            let differs = report.media.saturating_sub(last.media).saturating_sub(passed);
            if passed < 0 || differs.saturating_abs() > AGREE + passed / 100 {
                self.last.clear();
            } else if passed == 0 {
                return;
            }
        }
        if self.last.len() == KEPT {
            self.last.pop_front();
        }
        self.last.push_back(report);
    }

    /// The last report.
    pub(super) fn last(&self) -> Option<Report> {
        self.last.back().copied()
    }

    /// Whether two reports agree.
    pub(super) fn are_confirmed(&self) -> bool {
        self.last.len() > 1
    }

    /// Time of the track at a time of the sender's clock: between reports, as they tell; elsewhere as if both clocks were
    /// equally fast.
    pub(super) fn media_at(&self, clock: i64) -> Option<i64> {
        let after = self.last.partition_point(|report| report.clock < clock);
        let near = self.last.get(after).or(self.last.back())?;
        let Some(before) =
            after.checked_sub(1).and_then(|before| self.last.get(before)).filter(|_| near.clock >= clock)
        else {
            return Some(near.media.saturating_add(clock.saturating_sub(near.clock)));
        };
        let (passed, all) = (clock - before.clock, near.clock - before.clock);
        let ahead = i128::from(near.media.saturating_sub(before.media)) * i128::from(passed) / i128::from(all);
        Some(before.media.saturating_add(ahead as i64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reports(of: &[(i64, i64)]) -> Reports {
        let mut reports = Reports::default();
        for (clock, media) in of {
            reports.take(Report { clock: clock * SECOND, media: *media });
        }
        reports
    }

    #[test]
    fn the_time_of_a_track_is_interpolated() {
        let reports = reports(&[(10, 1_000_000), (15, 5 * SECOND + 2_000_000), (20, 10 * SECOND + 3_000_000)]);
        assert_eq!(reports.media_at(15 * SECOND), Some(5 * SECOND + 2_000_000));
        assert_eq!(reports.media_at(10 * SECOND + SECOND / 2), Some(SECOND / 2 + 1_100_000));
        assert_eq!(reports.media_at(9 * SECOND), Some(1_000_000 - SECOND), "before the first");
        assert_eq!(reports.media_at(21 * SECOND), Some(11 * SECOND + 3_000_000), "after the last");
        assert_eq!(Reports::default().media_at(0), None);
    }

    #[test]
    fn a_contradiction_replaces_what_was_told() {
        let at = |seconds: i64| seconds * SECOND;
        let same = reports(&[(10, at(1)), (15, at(6))]);
        assert!(same.are_confirmed());
        for garbage in [(5, at(11)), (20, at(12)), (20, at(-7)), (3_000_000_000, 5)] {
            let reports = reports(&[(10, at(1)), (15, at(6)), garbage]);
            assert!(!reports.are_confirmed(), "{garbage:?}");
            assert_eq!(reports.last().map(|report| report.media), Some(garbage.1));
        }
        assert!(!reports(&[(10, at(1)), (10, at(1))]).are_confirmed(), "a repetition");
        let mut many = Reports::default();
        (0..100).for_each(|turn| many.take(Report { clock: at(turn), media: at(turn) }));
        assert_eq!(many.last.len(), KEPT);
    }
}
