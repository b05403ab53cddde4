use super::{rates::steady, *};
use crate::live::testing::{LIMITS, closed, cut, epoch, film, rules, tracks, window};
use std::collections::HashSet;

#[test]
fn segments_are_found_by_number() {
    let window = window(LIMITS, cut(rules(), film(9, 25)));
    assert!(window.is_ready());
    assert_eq!(window.last_closed(0), Some(SegmentNumber(103)));
    assert_eq!(window.first_listed(), Some(SegmentNumber(100)));
    let segment = window.segment(SegmentNumber(101)).unwrap();
    let video = segment.track(0).unwrap();
    assert_eq!((video.start(), video.duration(), video.parts().len()), (Some(12 * 90_000), 180_000, 7));
    assert!(video.is_closed() && !video.is_gap() && segment.is_independent);
    assert_eq!(video.bytes(), video.parts().iter().map(Part::len).sum::<u64>());
    assert!(window.segment(SegmentNumber(99)).is_none() && window.segment(SegmentNumber(105)).is_none());
    assert!(window.init(1, 0).unwrap().windows(4).any(|four| four == b"mp4a"));
    assert!(window.init(2, 0).is_none() && window.init(0, 1).is_none());
    let wall = window.epoch(0).unwrap().wall_of(Duration::from_millis(11_500));
    assert_eq!(wall, Duration::from_millis(1_795_341_601_500));
}

#[test]
fn the_next_part_is_hinted_and_others_are_unknown() {
    let window = window(LIMITS, cut(rules(), film(9, 25)));
    let hint = window.hint(0).unwrap();
    let edge = window.edge(0).unwrap();
    assert_eq!((hint.segment, hint.part), (edge.segment, edge.part + 1));
    assert_eq!(window.part(0, hint), PartLookUp::Next);
    assert!(matches!(window.part(0, edge), PartLookUp::Complete(part) if part.index == edge.part));
    assert_eq!(window.part(0, Edge { part: hint.part + 1, ..hint }), PartLookUp::Unknown);
    assert_eq!(window.part(0, Edge { segment: SegmentNumber(102), part: 9 }), PartLookUp::Unknown);
}

#[test]
fn limits_hold_after_each_push() {
    let cuts = cut(rules(), film(60, 50));
    let table = [
        WindowLimits { segments: 5, ..LIMITS },
        WindowLimits { bytes: 60_000, ..LIMITS },
        WindowLimits { age: Duration::from_secs(8), ..LIMITS },
    ];
    for limits in table {
        let mut window = Window::new(limits, tracks(), 0);
        for cut in cuts.clone() {
            window.push(cut);
            assert!(window.heap_bytes() <= limits.bytes && window.segments().len() <= limits.segments + 1);
            let held: u64 = window.segments().map(Segment::heap_bytes).sum();
            assert_eq!(window.heap_bytes(), held);
        }
        assert!((4..=7).contains(&window.segments().len()), "{limits:?}: {}", window.segments().len());
        let numbers: Vec<_> = window.segments().map(|segment| segment.number.0).collect();
        assert!(numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]));
        assert_eq!(window.last_closed(0).unwrap().0, closed(&cuts, 0).last().unwrap().0);
    }
}

#[test]
fn an_unfinished_segment_that_is_too_large_becomes_a_gap() {
    let mut window = Window::new(WindowLimits { bytes: 1500, ..LIMITS }, tracks(), 0);
    for cut in cut(rules(), film(9, 50)) {
        window.push(cut);
        assert!(window.heap_bytes() <= 1500);
    }
    assert!(window.segments().all(|segment| segment.track(0).unwrap().is_gap()));
    assert_eq!(window.part(0, window.hint(0).unwrap()), PartLookUp::Next);
}

#[test]
fn epochs_are_discontinuities_and_leave_with_their_segments() {
    let mut window = window(WindowLimits { segments: 4, ..LIMITS }, cut(rules(), film(5, 25)));
    let mut number = window.segments().last().unwrap().number.0;
    for of_epoch in 1..40 {
        window.begin(epoch(of_epoch, Duration::from_secs(20 * u64::from(of_epoch))));
        if of_epoch % 3 == 0 {
            continue;
        }
        let segment = SegmentNumber(number + 1);
        let start = Duration::from_secs(20 * u64::from(of_epoch));
        window.push(Cut::Opened { segment, epoch: of_epoch, start, is_independent: true });
        for n in [number, number + 1] {
            for track in [0, 1] {
                window.push(Cut::Closed { track, segment: SegmentNumber(n), start: 0, duration: 1 });
            }
        }
        number += 1;
    }
    let found: HashSet<_> = window.segments().map(|segment| segment.discontinuity).collect();
    assert_eq!(found.len(), 4, "each is in an epoch of its own");
    let last = window.segments().last().unwrap();
    assert_eq!(last.discontinuity, 7 + 26, "epochs without segments do not count");
    assert!(window.epochs.len() < 10, "{}", window.epochs.len());
    assert!(window.segments().all(|segment| window.init(0, segment.epoch).is_some()));
}

#[test]
fn told_rates_seldom_change() {
    let table = [(0, 1234, 1300), (1300, 1290, 1300), (1300, 1301, 1400), (1300, 649, 650), (0, 0, 0), (0, 99, 99)];
    for (told, found, expected) in table {
        assert_eq!(steady(told, found), expected, "{told} {found}");
    }
    assert_eq!(steady(0, u64::MAX), u64::MAX);
}
