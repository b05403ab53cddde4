use super::{rates::steady, *};
use crate::{
    dash::live::{ManifestView, mpd},
    delivery::container::Container,
    hls::live::{PlaylistView, media},
    live::{
        Cutter, TransportCounters, TransportSegment,
        testing::{LIMITS, audio_track, closed, cut, epoch, film, rules, tracks, video_track, window},
    },
};
use std::collections::HashSet;

#[test]
fn segments_are_found_by_number() {
    let window = window(LIMITS, cut(rules(), film(9, 25)));
    assert!(window.is_ready());
    assert_eq!(window.last_closed(0), Some(SegmentNumber(103)));
    assert_eq!(window.first_listed(Extent::Edge), Some(SegmentNumber(100)));
    assert_eq!(window.cut_to(SegmentNumber(103)), 4);
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

/// A window whose source was away for some minutes, and sent five seconds before and some `after`.
fn interrupted(limits: WindowLimits, minutes: u32, after: i64) -> Window {
    let mut window = Window::new(limits, tracks(), 0);
    let mut cutter = Cutter::new(rules(), vec![video_track(), audio_track()], 0, SegmentNumber(100));
    let mut cuts = Vec::new();
    let away = Duration::from_secs(60) * minutes;
    window.begin(epoch(0, Duration::from_secs(10)));
    film(5, 50).into_iter().for_each(|(track, sample)| cutter.push(track, sample, &mut cuts));
    cutter.discontinue(1, Duration::from_secs(15), &mut cuts);
    cuts.drain(..).for_each(|cut| window.push(cut));
    window.begin(epoch(1, Duration::from_secs(10) + away));
    for (track, mut sample) in film(after, 50) {
        let later = if track == 0 { 90_000 } else { 48_000 } * 60 * i64::from(minutes);
        (sample.dts, sample.pts) = (sample.dts + later, sample.pts + later);
        cutter.push(track, sample, &mut cuts);
    }
    cuts.drain(..).for_each(|cut| window.push(cut));
    window
}

#[test]
fn segments_leave_by_the_time_of_media_and_not_while_there_are_none() {
    let window = interrupted(LIMITS, 10, 5);
    assert_eq!(window.segments().len(), 6);
    assert_eq!(window.first_listed(Extent::Edge), Some(SegmentNumber(100)), "players who wait find their place");
    // They began 604 s apart.
    assert_eq!(window.depth(Extent::Edge, Duration::from_secs(20)), Duration::from_secs(624));
    // The last sound of the first epoch reaches over its last picture.
    let short = WindowLimits { listed: Duration::from_millis(5030), age: Duration::from_millis(7030), ..LIMITS };
    let window = interrupted(short, 10, 5);
    assert_eq!(window.first_listed(Extent::Edge), Some(SegmentNumber(102)));
    assert_eq!(window.segments().next().map(|first| first.number), Some(SegmentNumber(100)));
    let view = ManifestView {
        run: "0a",
        clock: "/time",
        published: Duration::ZERO,
        away: Duration::ZERO,
        extent: Extent::Edge,
    };
    assert_eq!(mpd(&window, &view).unwrap().matches("<Period").count(), 2);
    let window = interrupted(LIMITS, 30, 5);
    assert_eq!(window.first_listed(Extent::Edge), Some(SegmentNumber(103)), "nobody waits for half an hour");
    let window = interrupted(LIMITS, 30, 1);
    assert_eq!(window.first_listed(Extent::Edge), Some(SegmentNumber(102)), "a playlist has a complete segment");
}

#[test]
fn the_time_shift_buffer_keeps_its_beginning_while_the_source_is_away() {
    let window = window(LIMITS, cut(rules(), film(9, 50)));
    assert_eq!(window.depth(Extent::Edge, Duration::ZERO), Duration::from_secs(60));
    assert_eq!(window.depth(Extent::Edge, Duration::from_secs(300)), Duration::from_secs(308));
}

#[test]
fn told_rates_seldom_change() {
    let table = [(0, 1234, 1300), (1300, 1290, 1300), (1300, 1301, 1400), (1300, 649, 650), (0, 0, 0), (0, 99, 99)];
    for (told, found, expected) in table {
        assert_eq!(steady(told, found), expected, "{told} {found}");
    }
    assert_eq!(steady(0, u64::MAX), u64::MAX);
}

/// Segments 90 to 93 of an earlier run, which began an hour before.
fn past() -> Vec<PastSegment> {
    let segment = |n: u64| PastSegment {
        number: SegmentNumber(90 + n),
        epoch: u32::MAX - 1,
        discontinuity: 6,
        start: Duration::from_secs(500 + 2 * n),
        wall: Duration::from_secs(1_795_338_000 + 2 * n),
        is_independent: true,
        tracks: [90_000, 48_000]
            .map(|ticks| PastTrack { start: ticks * (500 + 2 * n as i64), duration: ticks * 2, bytes: 1000 * (n % 3) })
            .into(),
    };
    (0..4).map(segment).collect()
}

#[test]
fn segments_of_the_past_are_listed_before_those_of_this_run() {
    let mut window = Window::new(LIMITS, tracks(), 1);
    window.keep_past(Duration::from_secs(7200));
    window.restore(vec![epoch(u32::MAX - 1, Duration::from_secs(500))], past());
    assert!(!window.is_ready() && window.in_memory() == 0);
    window.begin(epoch(0, Duration::from_secs(10)));
    let mut cutter = Cutter::new(rules(), vec![video_track(), audio_track()], 0, SegmentNumber(94));
    let mut cuts = Vec::new();
    film(9, 50).into_iter().for_each(|(track, sample)| cutter.push(track, sample, &mut cuts));
    cuts.into_iter().for_each(|cut| window.push(cut));
    assert!(window.is_ready());
    let numbers: Vec<_> = window.segments().map(|segment| (segment.number.0, segment.discontinuity)).collect();
    assert_eq!(numbers[..5], [(90, 6), (91, 6), (92, 6), (93, 6), (94, 7)]);
    assert_eq!(window.first_listed(Extent::Edge), Some(SegmentNumber(94)));
    assert_eq!(window.first_listed(Extent::Past), Some(SegmentNumber(90)));
    let at = |seconds: i64| window.segment_at(0, seconds * 90_000);
    assert_eq!((at(10), at(500)), (Some(SegmentNumber(94)), None), "times of an earlier run are no addresses");
    let view = ManifestView {
        run: "0a",
        clock: "/time",
        published: Duration::ZERO,
        away: Duration::ZERO,
        extent: Extent::Past,
    };
    let mpd = mpd(&window, &view).unwrap();
    let (earlier, now) = mpd.split_once("</Period>").unwrap();
    assert!(earlier.contains("/$Number$.m4s\" startNumber=\"90\"") && !earlier.contains("$Time$"), "{mpd}");
    assert!(now.contains("/t$Time$.m4s\"") && !now.contains("$Number$"), "{mpd}");
    let gaps = |number| window.segment(SegmentNumber(number)).unwrap().track(0).unwrap().is_gap();
    assert!(gaps(90) && !gaps(91) && !gaps(92) && gaps(93) && !gaps(94));
    for (wall, number) in [(0, 90), (1_795_338_000, 90), (1_795_338_003, 91), (1_795_340_000, 93), (u64::MAX, 97)] {
        assert!(window.at(Duration::from_secs(wall)).unwrap().0 >= number, "{wall}");
    }
    window.forget_before(SegmentNumber(92));
    assert_eq!(window.segments().next().unwrap().number, SegmentNumber(92));
    window.forget_before(SegmentNumber(1000));
    assert_eq!(window.segments().next().unwrap().number, SegmentNumber(94), "those in memory stay");
}

#[test]
fn segments_that_left_memory_are_listed_where_they_are_stored() {
    let mut window = Window::new(WindowLimits { segments: 3, ..LIMITS }, tracks(), 1);
    window.keep_past(Duration::from_secs(20));
    window.begin(epoch(0, Duration::from_secs(10)));
    for cut in cut(rules(), film(29, 50)) {
        let closed = match &cut {
            Cut::Closed { track, segment, .. } if segment.0 != 107 => Some((*track, *segment)),
            _ => None,
        };
        window.push(cut);
        if let Some((track, segment)) = closed {
            window.stored(track, segment);
        }
    }
    assert_eq!(window.in_memory(), 3);
    let first = window.segments().next().unwrap();
    assert_eq!((first.number.0, first.track(0).unwrap().parts().len()), (103, 0), "those of 20 s are left");
    let start = first.track(0).unwrap().start().unwrap();
    assert_eq!(window.segment_at(0, start), Some(first.number));
    let made = |number| TransportSegment::of(&window, &mut TransportCounters::default(), 0, SegmentNumber(number));
    let kept = window.with_parts().next().unwrap().number;
    assert!(made(kept.0).is_some() && made(kept.0 - 1).is_none() && made(first.number.0).is_none());
    let view = PlaylistView { run: "0a", container: Container::Ts, skip: false, extent: Extent::Edge, query: "" };
    let text = media(&window, 0, &view).unwrap();
    assert!(text.contains(&format!("#EXT-X-MEDIA-SEQUENCE:{}\n", kept.0)), "{text}");
    let gaps: Vec<_> = window.segments().filter(|s| s.track(0).unwrap().is_gap()).map(|s| s.number.0).collect();
    assert_eq!(gaps, [107]);
    let memory: u64 = window.segments().flat_map(|s| (0..2).filter_map(|t| s.track(t))).map(|t| t.heap).sum();
    let fixed = window.segments().map(Segment::heap_bytes).sum::<u64>();
    assert_eq!(window.heap_bytes(), fixed);
    assert!(memory > 0 && window.depth(Extent::Past, Duration::ZERO) == Duration::from_secs(20));
}
