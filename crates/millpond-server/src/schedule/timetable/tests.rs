//! Plans of given entries, and properties of all plans.

use super::*;
use proptest::prelude::*;

/// Durations of all assets.
struct All(Option<u64>);

impl Lengths for All {
    fn of(&self, _: &Entry) -> Option<Duration> {
        self.0.map(s)
    }
}

/// Monday, 2026-11-23.
const MONDAY: u64 = 20_780 * DAY;

fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn entry(at: At, length: Option<u64>) -> Entry {
    let content = Content::Asset("films/a.mp4".to_owned());
    let (from, repeats, length) = (Duration::ZERO, false, length.map(s));
    Entry { line: 0, at, content, from, length, repeats, title: None, description: None }
}

fn dated(at: u64, length: Option<u64>) -> Entry {
    entry(At::Once(s(MONDAY + at)), length)
}

fn weekly(of_day: u64, days: u8, length: Option<u64>) -> Entry {
    entry(At::Weekly { of_day: s(of_day), days }, length)
}

fn timetable(entries: Vec<Entry>) -> Result<Timetable, Vec<Fault>> {
    let lines = entries.into_iter().enumerate().map(|(line, entry)| Entry { line, ..entry }).collect();
    Timetable::new(None, "films/wait.mp4".to_owned(), lines)
}

/// Entry, beginning and end of what plays, in seconds from Monday on.
fn plan(timetable: &Timetable, length: Option<u64>, at: u64) -> (Option<usize>, Option<u64>, Option<u64>) {
    let slot = timetable.plan(&All(length), s(MONDAY + at));
    let seconds = |at: Duration| at.as_secs().checked_sub(MONDAY);
    (slot.entry, seconds(slot.at), slot.until.and_then(seconds))
}

const HOUR: u64 = 3600;

#[test]
fn an_entry_ends_at_the_next_one_or_with_its_asset_or_its_time() {
    let films = timetable(vec![dated(0, None), dated(2 * HOUR, Some(HOUR)), dated(5 * HOUR, None)]).unwrap();
    // Where durations are unknown, the next entry ends the one before.
    assert_eq!(plan(&films, None, HOUR), (Some(0), Some(0), Some(2 * HOUR)));
    assert_eq!(plan(&films, None, 2 * HOUR), (Some(1), Some(2 * HOUR), Some(3 * HOUR)));
    assert_eq!(plan(&films, None, 4 * HOUR), (None, Some(3 * HOUR), Some(5 * HOUR)));
    assert_eq!(plan(&films, None, 99 * HOUR), (Some(2), Some(5 * HOUR), None));
    // Assets of an hour and a half.
    let length = Some(90 * 60);
    assert_eq!(plan(&films, length, 90 * 60 - 1), (Some(0), Some(0), Some(90 * 60)));
    assert_eq!(plan(&films, length, 90 * 60), (None, Some(90 * 60), Some(2 * HOUR)));
    assert_eq!(plan(&films, length, 9 * HOUR), (None, Some(5 * HOUR + 90 * 60), None));
    // An asset that is longer than the time until the next entry is cut off.
    assert_eq!(plan(&films, Some(9 * HOUR), HOUR), (Some(0), Some(0), Some(2 * HOUR)));
    let before = films.plan(&All(None), s(MONDAY - 1));
    assert_eq!(before, Slot { entry: None, at: s(0), until: Some(s(MONDAY)) });
    let mut looped = dated(0, Some(3 * HOUR));
    looped.repeats = true;
    let looped = timetable(vec![looped]).unwrap();
    assert_eq!(plan(&looped, Some(60), 2 * HOUR), (Some(0), Some(0), Some(3 * HOUR)));
}

#[test]
fn entries_of_the_week_come_again_and_give_way_to_dates() {
    let workdays = 0b001_1111;
    let entries = vec![
        weekly(20 * HOUR, workdays, None),
        weekly(22 * HOUR, 0b111_1111, None),
        // On Tuesday a film plays over the first one, and another one begins with the second one.
        dated(24 * HOUR + 19 * HOUR, Some(2 * HOUR)),
        dated(24 * HOUR + 22 * HOUR, None),
    ];
    let week = timetable(entries).unwrap();
    let day = |day: u64, hour: u64| (day * 24 + hour) * HOUR;
    assert_eq!(plan(&week, None, day(0, 21)), (Some(0), Some(day(0, 20)), Some(day(0, 22))));
    assert_eq!(plan(&week, None, day(1, 3)), (Some(1), Some(day(0, 22)), Some(day(1, 19))));
    assert_eq!(plan(&week, None, day(1, 20)), (Some(2), Some(day(1, 19)), Some(day(1, 21))));
    assert_eq!(plan(&week, None, day(1, 21)), (None, Some(day(1, 21)), Some(day(1, 22))));
    assert_eq!(plan(&week, None, day(1, 23)), (Some(3), Some(day(1, 22)), Some(day(2, 20))));
    // Not on Saturday.
    assert_eq!(plan(&week, None, day(5, 21)), (Some(1), Some(day(4, 22)), Some(day(5, 22))));
    assert_eq!(plan(&week, None, day(7, 20)), (Some(0), Some(day(7, 20)), Some(day(7, 22))));
    let slots = week.slots(&All(Some(HOUR)), (s(MONDAY), s(MONDAY + 7 * DAY)), 1000);
    assert_eq!(slots.iter().filter(|slot| slot.entry == Some(0)).count(), 4);
    assert_eq!(slots.iter().filter(|slot| slot.entry == Some(1)).count(), 6);
}

#[test]
fn entries_that_overlap_are_faults() {
    let faults = |entries| timetable(entries).unwrap_err().iter().map(ToString::to_string).collect::<Vec<_>>();
    let same = faults(vec![dated(HOUR, None), dated(HOUR, None)]);
    assert_eq!(same, ["line 1: it begins when the entry of line 0 begins: give one of them another time"]);
    let long = faults(vec![dated(HOUR, None), dated(0, Some(2 * HOUR))]);
    assert!(long[0].starts_with("line 1: its for of 7200s goes beyond the beginning of the entry of line 0, 3600s"));
    // From Sunday into Monday, and a daily one into itself.
    assert_eq!(faults(vec![weekly(HOUR, 1, None), weekly(23 * HOUR, 0b100_0000, Some(3 * HOUR))]).len(), 1);
    assert_eq!(faults(vec![weekly(HOUR, 0b111_1111, Some(25 * HOUR))]).len(), 1);
    assert!(timetable(vec![weekly(HOUR, 1, Some(7 * 24 * HOUR))]).is_ok());
}

fn entries() -> impl Strategy<Value = Vec<Entry>> {
    let length = || proptest::option::of(1..50 * HOUR);
    let once = (0..20 * DAY, length()).prop_map(|(at, length)| dated(at, length));
    let of_week = (0..DAY, 1_u8..128, length()).prop_map(|(of_day, days, length)| weekly(of_day, days, length));
    proptest::collection::vec(prop_oneof![once, of_week], 0..8)
}

proptest! {
    #[test]
    fn slots_follow_each_other_without_gaps(entries in entries(), length in proptest::option::of(1..9 * HOUR), begin in 0..9 * DAY) {
        let Ok(timetable) = timetable(entries) else { return Ok(()) };
        let (lengths, from, to) = (All(length), s(MONDAY + begin), s(MONDAY + begin + 9 * DAY));
        let slots = timetable.slots(&lengths, (from, to), 10_000);
        prop_assert!(slots[0].at <= from);
        for pair in slots.windows(2) {
            prop_assert_eq!(pair[0].until, Some(pair[1].at));
            prop_assert!(pair[0].at < pair[1].at && (pair[0].entry, pair[1].entry) != (None, None));
        }
        for slot in &slots {
            // The plan is the same during all of it.
            let last = slot.until.unwrap_or(to) - Duration::from_nanos(1);
            for at in [slot.at, slot.at + (last - slot.at) / 2, last] {
                prop_assert_eq!(timetable.plan(&lengths, at), *slot);
            }
            let Some(entry) = timetable.entry(slot) else { continue };
            let most = entry.length.into_iter().chain(length.map(s)).min();
            prop_assert!(slot.until.zip(most).is_none_or(|(until, most)| until <= slot.at + most));
            let is_its_time = match entry.at {
                At::Once(at) => at == slot.at,
                At::Weekly { of_day, days } => {
                    s(slot.at.as_secs() % DAY) == of_day && At::has(days, slot.at.as_secs() / DAY)
                }
            };
            prop_assert!(is_its_time);
        }
        // Each entry with a date plays at its time.
        for (at, index) in timetable.dated.iter().filter(|(at, _)| *at >= from && *at < to) {
            prop_assert!(slots.iter().any(|slot| slot.at == *at && slot.entry == Some(*index)));
        }
    }
}
