use super::{
    super::{Rebuffers, SampledViewer},
    *,
};
use ViewerProtocol::{Http, Rtsp, Srt, WebRtc};

/// 2026-11-29, an hour before its end.
const EVENING: u64 = 1_795_993_200;
const HOUR: u64 = 3600;

fn sample(viewers: &[(ViewerProtocol, u64, &str)]) -> ViewerSample {
    let viewer = |&(protocol, number, title): &(ViewerProtocol, u64, &str)| SampledViewer {
        protocol,
        number,
        title: title.to_owned(),
    };
    ViewerSample { viewers: viewers.iter().map(viewer).collect(), rebuffers: Rebuffers::default() }
}

fn at(now: u64, wall: u64) -> SampleTime {
    SampleTime { now: Duration::from_secs(now), wall: Duration::from_secs(wall) }
}

/// Counts of a day's titles: path, seconds, starts, peak and rebuffers.
fn titles(tally: &ViewingTally, day: &str) -> Vec<(String, u64, u64, u64, u64)> {
    let day: UtcDay = day.parse().unwrap();
    let found = tally.days().iter().find(|(of, _)| *of == day);
    let row = |title: &str, counts: &ViewingCounts| {
        (title.to_owned(), counts.watched().as_secs(), counts.starts(), counts.peak, counts.rebuffers)
    };
    let Some((_, counts)) = found else { return Vec::new() };
    let rows = counts.titles.iter().map(|(title, counts)| row(title, counts));
    rows.chain([row("*", &counts.all)]).collect()
}

fn rows(expected: &[(&str, u64, u64, u64, u64)]) -> Vec<(String, u64, u64, u64, u64)> {
    expected.iter().map(|(title, a, b, c, d)| ((*title).to_owned(), *a, *b, *c, *d)).collect()
}

#[test]
fn viewers_of_all_protocols_are_counted_by_title() {
    let mut tally = ViewingTally::default();
    let first = [(Http, 1, "live/cam"), (Rtsp, 1, "live/cam"), (Srt, 1, "live/cam"), (Http, 2, "films/a.mp4")];
    let begun = tally.add(&sample(&first), at(0, EVENING));
    assert_eq!((begun.viewers, begun.starts, begun.watched), ([2, 1, 0, 1, 0], [2, 1, 0, 1, 0], [Duration::ZERO; 5]));
    // One leaves, another one comes.
    let second = [(Http, 1, "live/cam"), (Rtsp, 1, "live/cam"), (WebRtc, 1, "live/cam"), (Http, 2, "films/a.mp4")];
    let then = tally.add(&sample(&second), at(5, EVENING + 5));
    let five = Duration::from_secs(5);
    assert_eq!((then.starts, then.watched), ([0, 0, 1, 0, 0], [2 * five, five, five, Duration::ZERO, Duration::ZERO]));
    tally.add(&sample(&[(Http, 2, "films/a.mp4")]), at(10, EVENING + 10));
    let expected = rows(&[("films/a.mp4", 10, 1, 1, 0), ("live/cam", 15, 4, 3, 0), ("*", 25, 5, 4, 0)]);
    assert_eq!(titles(&tally, "2026-11-29"), expected);
    let day = "2026-11-29".parse().unwrap();
    assert_eq!((tally.present(day, "films/a.mp4"), tally.present(day, "live/cam"), tally.all_present(day)), (1, 0, 1));
    // It left, and comes again.
    tally.add(&sample(&[]), at(15, EVENING + 15));
    tally.add(&sample(&[(Http, 2, "films/a.mp4")]), at(20, EVENING + 20));
    assert_eq!(titles(&tally, "2026-11-29")[0], ("films/a.mp4".to_owned(), 15, 2, 1, 0));
}

#[test]
fn the_peak_of_all_titles_is_that_of_one_moment() {
    let mut tally = ViewingTally::default();
    tally.add(&sample(&[(Http, 1, "a"), (Http, 2, "a"), (Http, 3, "a")]), at(0, EVENING));
    tally.add(&sample(&[(Http, 4, "b"), (Http, 5, "b")]), at(5, EVENING + 5));
    let expected = rows(&[("a", 0, 3, 3, 0), ("b", 10, 2, 2, 0), ("*", 10, 5, 3, 0)]);
    assert_eq!(titles(&tally, "2026-11-29"), expected);
}

#[test]
fn time_is_divided_at_midnight() {
    let mut tally = ViewingTally::default();
    let one = sample(&[(Rtsp, 7, "live/cam")]);
    tally.add(&one, at(0, EVENING + HOUR - 7));
    tally.add(&one, at(5, EVENING + HOUR - 2));
    tally.add(&one, at(10, EVENING + HOUR + 3));
    tally.add(&one, at(15, EVENING + HOUR + 8));
    assert_eq!(titles(&tally, "2026-11-29"), rows(&[("live/cam", 7, 1, 1, 0), ("*", 7, 1, 1, 0)]));
    // It began on the day before.
    assert_eq!(titles(&tally, "2026-11-30"), rows(&[("live/cam", 8, 0, 1, 0), ("*", 8, 0, 1, 0)]));
}

#[test]
fn a_clock_that_is_set_changes_the_day_and_no_time() {
    let mut tally = ViewingTally::default();
    let one = sample(&[(Rtsp, 7, "live/cam")]);
    tally.add(&one, at(0, EVENING + 2 * HOUR));
    tally.add(&one, at(5, EVENING + 2 * HOUR + 5));
    // Two hours back, and then forth again.
    tally.add(&one, at(10, EVENING + 10));
    tally.add(&one, at(15, EVENING + 2 * HOUR + 15));
    assert_eq!(titles(&tally, "2026-11-30"), rows(&[("live/cam", 10, 1, 1, 0), ("*", 10, 1, 1, 0)]));
    assert_eq!(titles(&tally, "2026-11-29"), rows(&[("live/cam", 5, 0, 1, 0), ("*", 5, 0, 1, 0)]));
    // The other clock never goes back; if it did, nothing would be added.
    tally.add(&one, at(3, EVENING + 2 * HOUR + 20));
    assert_eq!(titles(&tally, "2026-11-30")[1].1, 10);
}

#[test]
fn a_machine_that_slept_had_no_viewers() {
    let mut tally = ViewingTally::default();
    let one = sample(&[(Http, 1, "a")]);
    tally.add(&one, at(0, EVENING));
    tally.add(&one, at(8 * HOUR, EVENING + 8 * HOUR));
    assert_eq!(titles(&tally, "2026-11-30"), rows(&[("a", 15, 0, 1, 0), ("*", 15, 0, 1, 0)]));
}

#[test]
fn a_restart_continues_the_day() {
    let mut tally = ViewingTally::default();
    tally.add(&sample(&[(Http, 1, "a"), (Http, 2, "a")]), at(0, EVENING));
    tally.add(&sample(&[(Http, 1, "a")]), at(5, EVENING + 5));
    let mut again = ViewingTally::new(tally.days().clone());
    // Another process: its numbers are others, and its clock begins at 0.
    again.add(&sample(&[(Http, 9, "a")]), at(0, EVENING + 60));
    again.add(&sample(&[(Http, 9, "a")]), at(5, EVENING + 65));
    assert_eq!(titles(&again, "2026-11-29"), rows(&[("a", 10, 3, 2, 0), ("*", 10, 3, 2, 0)]));
}

#[test]
fn rebuffers_count_where_nobody_is_seen_too() {
    let mut tally = ViewingTally::default();
    let by_title = [("films/a.mp4".to_owned(), 2)].into();
    let empty = sample(&[]);
    tally.add(&empty, at(0, EVENING));
    assert_eq!(titles(&tally, "2026-11-29"), []);
    tally.add(&ViewerSample { rebuffers: Rebuffers { by_title, others: 3 }, ..empty }, at(5, EVENING + 5));
    assert_eq!(titles(&tally, "2026-11-29"), rows(&[("films/a.mp4", 0, 0, 0, 2), ("*", 0, 0, 0, 5)]));
    let (_, day) = tally.days().iter().next().unwrap();
    assert_eq!(day.others.rebuffers, 3);
}

#[test]
fn the_sums_stay_where_titles_are_left_out() {
    let mut tally = ViewingTally::default();
    for round in 0..3_u64 {
        let viewers = (0..3000).map(|number| SampledViewer {
            protocol: Http,
            number,
            title: format!("films/{}", (number + round) % 3000),
        });
        let sample = ViewerSample { viewers: viewers.collect(), ..ViewerSample::default() };
        tally.add(&sample, at(5 * round, EVENING + 5 * round));
    }
    let (_, day) = tally.days().iter().next().unwrap();
    assert_eq!(day.titles.len(), 1000);
    let mut sum = day.others;
    day.titles.values().for_each(|title| sum.add(title));
    assert_eq!((sum.watched, sum.starts), (day.all.watched, day.all.starts));
    assert_eq!((day.all.peak, day.others.peak, day.all.watched()), (3000, 2000, Duration::from_secs(30_000)));
}
