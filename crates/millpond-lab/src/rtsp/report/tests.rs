use super::*;
use crate::rtsp::{
    failure::{Failure, FailureKind},
    figures::Counters,
    schedule::Timing,
};
use crate::tally::Ending;
use millpond_rtp::{client::RequestKind, reception::Arrival};
use url::Url;

fn report() -> Report {
    let millis = Duration::from_millis;
    let mut tally = Tally { starts: 4, ..Tally::default() };
    tally.took(RequestKind::Describe, millis(3));
    tally.startup.record(millis(8));
    let detail = "rtsp://h/b: DESCRIBE gives 404 Not Found".to_owned();
    let failure = Failure { kind: FailureKind::Status(RequestKind::Describe, 404), detail };
    tally.failure(failure, &Counters::default());
    tally.ended(Ending::Failed);
    tally.ended(Ending::Done);
    let mut media = MediaFigures::default();
    for behind in [0, 1, 200] {
        let timing = Timing { behind: millis(behind), since_frame: Some(millis(33)) };
        media.packet(Arrival::Next { skipped: u16::from(behind == 1) }, timing, 1000);
    }
    let mut history = History::new();
    history.note(millis(1000), Counts { active: 2, starts: 2, packets: 2, bytes: 2000, ..Counts::default() });
    history.note(millis(2000), Counts { starts: 4, packets: 3, bytes: 3000, late: 1, ..Counts::default() });
    let options = Options::new(["a", "b"].map(|name| Url::parse(&format!("rtsp://h/{name}")).unwrap()).to_vec());
    let total = Total {
        elapsed: millis(2000),
        tally: &tally,
        media: &media,
        history: &history,
        processor: millis(100),
        overflows: 7,
    };
    Report::new(&options, &total)
}

#[test]
fn json_and_text_say_the_same() {
    let report = report();
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!((&json["sessions"]["started"], &json["clients"]), (&4.into(), &10.into()));
    assert_eq!(json["methods"][0]["method"], "DESCRIBE");
    assert_eq!(json["media"]["late"], 1);
    assert_eq!(json["failures"][0]["kind"], "DESCRIBE status 404");
    let text = report.to_string();
    for part in [
        "rtsp://h/a and 1 more (udp), 10 clients, 2.0 s",
        "4 sessions started (2.0/s): 1 done, 1 failed, 0 cut off",
        "1 late (33.333 %), 1 lost (25.000 %)",
        "3 packets (2/s), 0.00 MB (0.0 Mbit/s)",
        "1 x DESCRIBE status 404\n    rtsp://h/b",
        "generator: 5.0 % of a processor; sockets of this machine had no room for 7 packets",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
}

#[test]
fn the_timeline_has_the_rates_of_each_stretch() {
    let report = report();
    let [first, second] = report.timeline[..] else { panic!("{:?}", report.timeline) };
    assert_eq!((first.elapsed, first.active, first.starts_per_second, first.late_percent), (1.0, 2, 2.0, 0.0));
    assert_eq!((second.packets_per_second, second.late_percent), (1.0, 100.0));
    assert_eq!(second.megabits_per_second, 0.008);
}

#[test]
fn distributions_rise() {
    let points = report().distributions.behind;
    assert!(points.is_sorted() && points.len() == 51, "{points:?}");
    assert_eq!(points.last(), Some(&(200.0, 99.0)));
    assert!(crate::histogram::Histogram::new().distribution().is_empty());
}
