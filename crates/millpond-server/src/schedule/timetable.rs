//! The timetable of a schedule. It reads no clock and no file.
#![cfg_attr(not(test), forbid(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types))]

use super::Fault;
use crate::week::{DAY, of_week};
use millpond_settings::value::show_duration;
use std::time::Duration;

/// Days after which times of the week repeat.
const WEEK: u64 = 7;

/// The entries of a schedule, and what plays between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Timetable {
    /// Name of the channel for viewers; `None` for the stream's path.
    pub(super) title: Option<String>,
    /// Path of the asset or stream that plays while no entry does.
    pub(super) filler: String,
    entries: Vec<Entry>,
    /// Entries with a date, by their times.
    dated: Vec<(Duration, usize)>,
}

/// A programme.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Line of the file.
    pub(super) line: usize,
    pub(super) at: At,
    pub(super) content: Content,
    /// Time of the asset at which it begins.
    pub(super) from: Duration,
    /// Longest time for which it plays.
    pub(super) length: Option<Duration>,
    /// Whether the asset plays again and again.
    pub(super) repeats: bool,
    pub(super) title: Option<String>,
    pub(super) description: Option<String>,
}

/// When an entry begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum At {
    /// At a time since the Unix epoch.
    Once(Duration),
    /// At a time of the day.
    Weekly {
        of_day: Duration,
        /// A bit for each day of the week, that of Monday is the lowest.
        days: u8,
    },
}

/// The asset or stream that an entry plays, by its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// A stored asset.
    Asset(String),
    /// A live stream or channel.
    Stream(String),
}

/// The part that plays during some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    /// Index of the entry; `None` for the filler.
    pub(super) entry: Option<usize>,
    /// Beginning, since the Unix epoch.
    pub(super) at: Duration,
    /// End; `None` where it has none.
    pub(super) until: Option<Duration>,
}

/// Durations of assets from the time at which an entry begins, as far as they are known.
pub(super) trait Lengths {
    /// Returns that of an entry.
    fn of(&self, entry: &Entry) -> Option<Duration>;
}

impl Content {
    /// The path.
    pub(super) fn path(&self) -> &str {
        match self {
            Self::Asset(path) | Self::Stream(path) => path,
        }
    }
}

impl Entry {
    /// Longest time for which it plays, where it is not cut off.
    fn lasts(&self, lengths: &impl Lengths) -> Option<Duration> {
        let whole = (!self.repeats && matches!(self.content, Content::Asset(_))).then(|| lengths.of(self)).flatten();
        [whole, self.length].into_iter().flatten().min()
    }
}

impl At {
    /// Whether a day since 1970-01-01 is one of its days.
    fn has(days: u8, day: u64) -> bool {
        days & (1 << of_week(day)) != 0
    }

    /// The last time of the week that is not behind `now`.
    fn last(of_day: Duration, days: u8, now: Duration) -> Option<Duration> {
        let today = now.as_secs() / DAY;
        let all = (0..=WEEK).filter_map(|back| today.checked_sub(back)).filter(|day| Self::has(days, *day));
        all.map(|day| Duration::from_secs(day * DAY) + of_day).find(|at| *at <= now)
    }

    /// The first time of the week that is not before `now`.
    fn next(of_day: Duration, days: u8, now: Duration) -> Option<Duration> {
        let today = now.as_secs() / DAY;
        let all = (0..=WEEK).map(|ahead| today + ahead).filter(|day| Self::has(days, *day));
        all.map(|day| Duration::from_secs(day * DAY) + of_day).find(|at| *at >= now)
    }
}

impl Timetable {
    /// Makes one of its entries.
    ///
    /// # Errors
    /// Entries overlap.
    pub(super) fn new(title: Option<String>, filler: String, entries: Vec<Entry>) -> Result<Self, Vec<Fault>> {
        let once = |(index, entry): (usize, &Entry)| match entry.at {
            At::Once(at) => Some((at, index)),
            At::Weekly { .. } => None,
        };
        let mut dated: Vec<_> = entries.iter().enumerate().filter_map(once).collect();
        dated.sort_unstable();
        let mut of_week: Vec<_> = entries.iter().enumerate().flat_map(times_of_week).collect();
        of_week.sort_unstable();
        // The week goes on with its first entries.
        let again: Vec<_> = of_week.iter().map(|(at, index)| (*at + Duration::from_secs(WEEK * DAY), *index)).collect();
        of_week.extend(again.first());
        let pairs = dated.windows(2).chain(of_week.windows(2));
        let mut faults: Vec<_> = pairs.filter_map(|pair| overlap(&entries, pair)).collect();
        faults.sort_unstable_by_key(|fault| fault.line);
        faults.dedup();
        if faults.is_empty() { Ok(Self { title, filler, entries, dated }) } else { Err(faults) }
    }

    /// The entries, in the order of the file.
    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The entry of a slot; `None` for the filler.
    pub(super) fn entry(&self, slot: &Slot) -> Option<&Entry> {
        self.entries.get(slot.entry?)
    }

    /// Entries of the week: index, time of the day and days.
    fn weekly(&self) -> impl Iterator<Item = (usize, Duration, u8)> {
        let of = |(index, entry): (usize, &Entry)| match entry.at {
            At::Once(_) => None,
            At::Weekly { of_day, days } => Some((index, of_day, days)),
        };
        self.entries.iter().enumerate().filter_map(of)
    }

    /// The end of the dated entry that takes the place of an entry of the week at a time: it begins then, or plays `for` a time around it.
    fn covered(&self, at: Duration) -> Option<Duration> {
        let before = self.dated.partition_point(|(begin, _)| *begin <= at);
        let (begin, index) = self.dated.get(before.checked_sub(1)?)?;
        let end = *begin + self.entries.get(*index)?.length.unwrap_or_default();
        (at < end || at == *begin).then_some(end.max(at + Duration::from_nanos(1)))
    }

    /// The entry that began last, and when.
    fn last(&self, now: Duration) -> Option<(Duration, usize)> {
        let before = self.dated.partition_point(|(begin, _)| *begin <= now);
        let dated = before.checked_sub(1).and_then(|place| self.dated.get(place)).copied();
        let weekly = self.weekly().filter_map(|(index, of_day, days)| Some((At::last(of_day, days, now)?, index)));
        let weekly = weekly.filter(|(at, _)| self.covered(*at).is_none()).max();
        // One with a date takes the place of one of the week.
        dated.into_iter().chain(weekly).reduce(|dated, weekly| if weekly.0 > dated.0 { weekly } else { dated })
    }

    /// When the next entry begins after `now`.
    fn next(&self, now: Duration) -> Option<Duration> {
        let soonest = now + Duration::from_nanos(1);
        let dated = self.dated.get(self.dated.partition_point(|(begin, _)| *begin <= now)).map(|(begin, _)| *begin);
        let weekly = self.weekly().filter_map(|(_, of_day, days)| {
            let mut at = At::next(of_day, days, soonest)?;
            // Where the dated entry that covers it begins later, that one is next.
            while let Some(end) = self.covered(at).filter(|_| dated.is_none_or(|dated| at < dated)) {
                at = At::next(of_day, days, end)?;
            }
            Some(at)
        });
        dated.into_iter().chain(weekly).min()
    }

    /// Returns what plays at a time since the Unix epoch.
    pub(super) fn plan(&self, lengths: &impl Lengths, now: Duration) -> Slot {
        let next = self.next(now);
        let Some((at, index)) = self.last(now) else { return Slot { entry: None, at: Duration::ZERO, until: next } };
        let own = self.entries.get(index).and_then(|entry| entry.lasts(lengths)).map(|lasts| at + lasts);
        match own.filter(|end| *end <= now) {
            Some(end) => Slot { entry: None, at: end, until: next },
            None => Slot { entry: Some(index), at, until: own.into_iter().chain(next).min() },
        }
    }

    /// Returns the slots from a time on, of which the first one may have begun before: all that begin before `to`, at most `most`.
    pub(super) fn slots(&self, lengths: &impl Lengths, (from, to): (Duration, Duration), most: usize) -> Vec<Slot> {
        let first = Some(self.plan(lengths, from));
        let following = |slot: &Slot| slot.until.filter(|until| *until < to).map(|until| self.plan(lengths, until));
        std::iter::successors(first, following).take(most).collect()
    }
}

/// The times within a week at which an entry begins, from Monday on.
fn times_of_week((index, entry): (usize, &Entry)) -> Vec<(Duration, usize)> {
    let At::Weekly { of_day, days } = entry.at else { return Vec::new() };
    let on = (0..WEEK).filter(|day| days & (1 << day) != 0);
    on.map(|day| (Duration::from_secs(day * DAY) + of_day, index)).collect()
}

/// Why two entries, one after the other, can't both play.
fn overlap(entries: &[Entry], pair: &[(Duration, usize)]) -> Option<Fault> {
    let [(begin, first), (next, second)] = pair else { return None };
    let (first, second) = (entries.get(*first)?, entries.get(*second)?);
    if begin == next {
        let (line, other) = (first.line.max(second.line), first.line.min(second.line));
        let words = format!("it begins when the entry of line {other} begins: give one of them another time");
        return Some(Fault { line, words });
    }
    let length = first.length.filter(|length| *begin + *length > *next)?;
    let (length, gap) = (show_duration(length), show_duration(*next - *begin));
    let words = format!(
        "its for of {length} goes beyond the beginning of the entry of line {}, {gap} later: shorten it, or leave it out, because an \
         entry ends where the next one begins",
        second.line
    );
    Some(Fault { line: first.line, words })
}

#[cfg(test)]
mod tests;
