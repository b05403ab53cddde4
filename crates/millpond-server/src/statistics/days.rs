//! Counts of viewing by day and by title, in bounded memory.
#![forbid(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types)]

use super::{ByProtocol, UtcDay};
use std::{collections::BTreeMap, time::Duration};

/// Most days that are kept.
pub(super) const MOST_DAYS: usize = 30;
/// Most titles of a day with counts of their own.
pub(super) const MOST_TITLES: usize = 1000;
/// Most bytes of a title's path that are kept.
const TITLE: usize = 256;

/// Counts of the viewing of a title, or of several titles together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ViewingCounts {
    /// Time of all viewers together.
    pub(crate) watched: ByProtocol<Duration>,
    /// Viewers that have begun.
    pub(crate) starts: ByProtocol<u64>,
    /// Most viewers at the same time.
    pub(crate) peak: u64,
    /// Reports of players that their buffer ran empty.
    pub(crate) rebuffers: u64,
}

/// Counts of a day.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DayCounts {
    /// All titles together. Its peak is that of viewers of all titles at the same time.
    pub(crate) all: ViewingCounts,
    /// Titles without counts of their own, together.
    pub(crate) others: ViewingCounts,
    /// Counts by the paths of titles.
    pub(crate) titles: BTreeMap<String, ViewingCounts>,
}

/// Counts of the last days that had viewers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Days(BTreeMap<UtcDay, DayCounts>);

impl ViewingCounts {
    /// Returns the time of the viewers of all protocols.
    pub(crate) fn watched(&self) -> Duration {
        self.watched.iter().fold(Duration::ZERO, |sum, time| sum.saturating_add(*time))
    }

    /// Returns the viewers of all protocols that have begun.
    pub(crate) fn starts(&self) -> u64 {
        self.starts.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Adds the counts of others. The peak becomes the higher one of both.
    pub(super) fn add(&mut self, other: &Self) {
        self.add_watched(&other.watched);
        self.starts.iter_mut().zip(other.starts).for_each(|(sum, count)| *sum = sum.saturating_add(count));
        self.peak = self.peak.max(other.peak);
        self.rebuffers = self.rebuffers.saturating_add(other.rebuffers);
    }

    pub(super) fn add_watched(&mut self, times: &ByProtocol<Duration>) {
        self.watched.iter_mut().zip(times).for_each(|(sum, time)| *sum = sum.saturating_add(*time));
    }
}

impl DayCounts {
    /// Returns the counts of a title.
    pub(super) fn title(&mut self, title: &str) -> &mut ViewingCounts {
        self.titles.entry(cut(title).to_owned()).or_default()
    }

    /// Moves the titles with the least viewing to the others, where there are too many. `viewers` tells the present viewers of a title.
    pub(super) fn bound(&mut self, viewers: impl Fn(&str) -> u64) {
        let excess = self.titles.len().saturating_sub(MOST_TITLES);
        if excess == 0 {
            return;
        }
        let mut order: Vec<_> = self
            .titles
            .iter()
            .map(|(title, counts)| (counts.watched(), counts.starts(), counts.rebuffers, title.clone()))
            .collect();
        order.sort_unstable();
        let mut present = 0;
        for (_, _, _, title) in order.into_iter().take(excess) {
            present += viewers(&title);
            if let Some(counts) = self.titles.remove(&title) {
                self.others.add(&counts);
            }
        }
        self.others.peak = self.others.peak.max(present);
    }
}

impl Days {
    /// Returns the counts of a day. Where there are too many days, the one that is farthest from this one is dropped. That is the oldest one, or
    /// one of a clock that was wrong.
    pub(super) fn day(&mut self, day: UtcDay) -> &mut DayCounts {
        if self.0.len() >= MOST_DAYS && !self.0.contains_key(&day) {
            let farthest = self.0.keys().copied().max_by_key(|other| other.distance(day));
            farthest.and_then(|farthest| self.0.remove(&farthest));
        }
        self.0.entry(day).or_default()
    }

    /// Returns all days, the oldest first.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (UtcDay, &DayCounts)> {
        self.0.iter().map(|(day, counts)| (*day, counts))
    }
}

/// Returns the beginning of a title's path.
pub(super) fn cut(title: &str) -> &str {
    &title[..title.floor_char_boundary(TITLE)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(number: u64) -> UtcDay {
        UtcDay::of_wall(Duration::from_secs(number * 86_400))
    }

    #[test]
    fn the_oldest_day_leaves_and_one_of_a_wrong_clock_before_it() {
        let mut days = Days::default();
        (0..30).for_each(|number| _ = days.day(day(20_000 + number)));
        // The clock is years ahead for a moment.
        days.day(day(30_000)).all.peak = 1;
        assert_eq!(days.iter().count(), MOST_DAYS);
        days.day(day(20_029)).all.peak = 2;
        days.day(day(20_030)).all.peak = 3;
        let kept: Vec<_> = days.iter().map(|(day, _)| day).collect();
        assert_eq!(kept, (20_001..=20_030).map(day).collect::<Vec<_>>());
    }

    #[test]
    fn titles_with_the_least_viewing_are_summed() {
        let mut counts = DayCounts::default();
        for number in 0..MOST_TITLES + 10 {
            let title = counts.title(&format!("films/{number}"));
            let mut watched = [Duration::ZERO; 5];
            watched[0] = Duration::from_secs(number as u64);
            title.add_watched(&watched);
            (title.starts[1], title.peak) = (1, 1);
        }
        counts.bound(|_| 1);
        assert_eq!(counts.titles.len(), MOST_TITLES);
        assert!(!counts.titles.contains_key("films/9") && counts.titles.contains_key("films/10"));
        assert_eq!(
            (counts.others.watched(), counts.others.starts(), counts.others.peak),
            (Duration::from_secs(45), 10, 10)
        );
    }

    #[test]
    fn long_paths_are_cut_between_characters() {
        let mut counts = DayCounts::default();
        counts.title(&"é".repeat(1000)).peak = 1;
        counts.title(&"é".repeat(999)).peak = 2;
        assert_eq!(
            counts.titles.into_iter().map(|(title, counts)| (title.len(), counts.peak)).collect::<Vec<_>>(),
            [(256, 2)]
        );
    }
}
