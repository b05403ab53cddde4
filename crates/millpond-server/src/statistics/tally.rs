//! From samples of viewers to counts by day and title.
//!
//! The viewers of a sample count for the time since the sample before. A viewer has begun where the sample before did not have it.
#![forbid(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types)]

use super::{ByProtocol, Days, UtcDay, ViewerProtocol, ViewerSample, ViewingCounts, days::cut};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

/// Longest time for which a sample counts. A machine that slept had no viewers.
const LONGEST: Duration = Duration::from_secs(15);

/// The time of a sample.
#[derive(Clone, Copy, Debug)]
pub(super) struct SampleTime {
    /// Time on a clock that is never set.
    pub(super) now: Duration,
    /// Time since the Unix epoch.
    pub(super) wall: Duration,
}

/// Counts of viewing, and what they are continued with.
#[derive(Debug, Default)]
pub(crate) struct ViewingTally {
    days: Days,
    /// Time of the latest sample, on the clock that is never set.
    sampled: Option<Duration>,
    /// Viewers of the latest sample.
    known: BTreeSet<(ViewerProtocol, u64)>,
    /// Day of the latest sample, and its viewers by title.
    present: Option<(UtcDay, BTreeMap<String, u64>)>,
}

/// Figures of one sample, for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sampled {
    /// Present viewers.
    pub(super) viewers: ByProtocol<u64>,
    /// Viewers that have begun since the sample before.
    pub(super) starts: ByProtocol<u64>,
    /// Time of all viewers together since the sample before.
    pub(super) watched: ByProtocol<Duration>,
}

/// The figures of one title in a sample.
#[derive(Default)]
struct TitleSample {
    viewers: ByProtocol<u64>,
    starts: ByProtocol<u64>,
    rebuffers: u64,
}

impl TitleSample {
    fn viewers(&self) -> u64 {
        self.viewers.iter().sum()
    }

    /// Counts of this sample alone, without times.
    fn counts(&self) -> ViewingCounts {
        ViewingCounts {
            starts: self.starts,
            peak: self.viewers(),
            rebuffers: self.rebuffers,
            ..ViewingCounts::default()
        }
    }

    fn watched(&self, passed: Duration) -> ByProtocol<Duration> {
        self.viewers.map(|viewers| passed.saturating_mul(u32::try_from(viewers).unwrap_or(u32::MAX)))
    }
}

impl ViewingTally {
    /// Continues the counts of days.
    pub(super) fn new(days: Days) -> Self {
        Self { days, ..Self::default() }
    }

    /// The counts.
    pub(crate) fn days(&self) -> &Days {
        &self.days
    }

    /// Returns the viewers of a title in the latest sample, if that was taken on a day.
    pub(crate) fn present(&self, day: UtcDay, title: &str) -> u64 {
        let on_day = self.present.as_ref().filter(|(of, _)| *of == day);
        on_day.and_then(|(_, viewers)| viewers.get(title)).copied().unwrap_or(0)
    }

    /// Returns all viewers of the latest sample, if that was taken on a day.
    pub(crate) fn all_present(&self, day: UtcDay) -> u64 {
        self.present.iter().filter(|(of, _)| *of == day).flat_map(|(_, viewers)| viewers.values()).sum()
    }

    /// Adds a sample.
    pub(super) fn add(&mut self, sample: &ViewerSample, at: SampleTime) -> Sampled {
        let before = self.sampled.replace(at.now);
        let passed = before.map_or(Duration::ZERO, |before| at.now.saturating_sub(before).min(LONGEST));
        let known = std::mem::take(&mut self.known);
        let (mut titles, mut all) = (BTreeMap::<&str, TitleSample>::new(), TitleSample::default());
        for viewer in &sample.viewers {
            let protocol = viewer.protocol as usize;
            let id = (viewer.protocol, viewer.number);
            let is_new = u64::from(!known.contains(&id));
            for of in [titles.entry(cut(&viewer.title)).or_default(), &mut all] {
                of.viewers[protocol] += 1;
                of.starts[protocol] += is_new;
            }
            self.known.insert(id);
        }
        for (title, rebuffers) in &sample.rebuffers.by_title {
            titles.entry(cut(title)).or_default().rebuffers += rebuffers;
            all.rebuffers += rebuffers;
        }
        let (others, today) = (sample.rebuffers.others, UtcDay::of_wall(at.wall));
        all.rebuffers += others;
        if all.viewers() + all.rebuffers > 0 {
            let own = passed.min(today.passed(at.wall));
            self.add_time(today.before(), (&titles, &all), passed - own);
            self.add_time(today, (&titles, &all), own);
            self.add_counts(today, (&titles, &all), others);
        }
        let present = titles.iter().map(|(title, of)| ((*title).to_owned(), of.viewers())).collect();
        self.present = Some((today, present));
        Sampled { viewers: all.viewers, starts: all.starts, watched: all.watched(passed) }
    }

    /// Adds the time that has passed since the sample before, as far as it belongs to a day.
    fn add_time(&mut self, day: UtcDay, (titles, all): (&BTreeMap<&str, TitleSample>, &TitleSample), passed: Duration) {
        if passed.is_zero() || all.viewers() == 0 {
            return;
        }
        let day = self.days.day(day);
        day.all.add_watched(&all.watched(passed));
        for (title, of) in titles.iter().filter(|(_, of)| of.viewers() > 0) {
            day.title(title).add_watched(&of.watched(passed));
        }
        day.bound(|title| titles.get(title).map_or(0, TitleSample::viewers));
    }

    /// Adds viewers, and what they and their players have done, to the day of a sample. `others` are rebuffers of titles that are not named.
    fn add_counts(&mut self, day: UtcDay, (titles, all): (&BTreeMap<&str, TitleSample>, &TitleSample), others: u64) {
        let day = self.days.day(day);
        day.all.add(&all.counts());
        day.others.rebuffers = day.others.rebuffers.saturating_add(others);
        titles.iter().for_each(|(title, of)| day.title(title).add(&of.counts()));
        day.bound(|title| titles.get(title).map_or(0, TitleSample::viewers));
    }
}

#[cfg(test)]
mod tests;
