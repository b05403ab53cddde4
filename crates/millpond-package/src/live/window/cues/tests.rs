use super::*;
use crate::{
    dash::live::{ManifestView, mpd},
    delivery::container::Container,
    hls::live::{PlaylistView, media},
    live::{
        CutRules, Extent, PastSegment, PastTrack, SegmentNumber,
        testing::{LIMITS, cut, epoch, film, rules, window},
    },
};
use millpond_media::ts::{SpliceEvent, SpliceKind, SpliceMeaning};

const SECOND: u64 = 90_000;
/// Wall time of stream time 10 s.
const TEN_O_CLOCK: u64 = 1_795_341_600;
const BREAK: SpliceEvent = SpliceEvent {
    number: 7,
    kind: SpliceKind::Insert,
    meaning: SpliceMeaning::Out,
    duration: Some(30 * SECOND),
    returns: false,
};
const RETURN: SpliceEvent = SpliceEvent { meaning: SpliceMeaning::In, duration: None, ..BREAK };
const VIEW: PlaylistView<'static> =
    PlaylistView { run: "0a1b", container: Container::Fmp4, skip: false, extent: Extent::Edge, query: "" };

/// A cue at milliseconds of stream time. Its section is told apart by a byte.
fn cue(millis: u64, byte: u8, events: &[SpliceEvent]) -> Cue {
    let command = if events.first().is_none_or(|event| event.kind == SpliceKind::Insert) { 5 } else { 6 };
    let splice = SpliceSection { command, time: None, events: events.to_vec() };
    Cue { at: Duration::from_millis(millis), splice: splice.into(), section: Bytes::from(vec![0xfc, 0, 0, 0, byte]) }
}

/// A film of some seconds from stream time 10 s on, 10:00.
fn watched(seconds: i64) -> Window {
    window(LIMITS, cut(rules(), film(seconds, 50)))
}

/// The tags of cues in a playlist.
fn tags(window: &Window, view: &PlaylistView<'_>) -> Vec<String> {
    let list = media(window, 0, view).unwrap();
    list.lines().filter_map(|line| line.strip_prefix("#EXT-X-DATERANGE:")).map(str::to_owned).collect()
}

fn count(window: &Window) -> usize {
    window.cues_since(Duration::ZERO).count()
}

#[test]
fn a_break_and_its_return_are_one_range() {
    let mut window = watched(5);
    let before = window.version();
    window.cue(&cue(20_040, 1, &[BREAK]));
    let open = "ID=\"insert-7-1795341610040\",START-DATE=\"2026-11-22T10:00:10.040Z\",PLANNED-DURATION=30.000,\
                SCTE35-OUT=0xFC00000001";
    assert_eq!(tags(&window, &VIEW), [open]);
    assert!(window.version() > before);
    // Repeated with another section, and a return of another number.
    let before = window.version();
    window.cue(&cue(20_080, 2, &[BREAK]));
    assert_eq!(window.version(), before);
    window.cue(&cue(45_040, 0xa3, &[SpliceEvent { number: 8, ..RETURN }]));
    window.cue(&cue(45_040, 0xa4, &[SpliceEvent { number: 8, ..RETURN }]));
    let whole = "ID=\"insert-7-1795341610040\",START-DATE=\"2026-11-22T10:00:10.040Z\",\
                 END-DATE=\"2026-11-22T10:00:35.040Z\",DURATION=25.000,PLANNED-DURATION=30.000,\
                 SCTE35-OUT=0xFC00000001,SCTE35-IN=0xFC000000A3";
    assert_eq!(tags(&window, &VIEW), [whole]);
    // The number is used again.
    window.cue(&cue(60_000, 5, &[BREAK]));
    assert_eq!(count(&window), 2);
}

#[test]
fn a_return_alone_has_its_own_range() {
    let mut window = watched(5);
    window.cue(&cue(12_000, 1, &[RETURN]));
    window.cue(&cue(12_000, 1, &[RETURN]));
    let expected = "ID=\"insert-7-1795341602000\",START-DATE=\"2026-11-22T10:00:02.000Z\",\
                    END-DATE=\"2026-11-22T10:00:02.000Z\",SCTE35-IN=0xFC00000001";
    assert_eq!(tags(&window, &VIEW), [expected]);
}

#[test]
fn each_segment_of_a_section_has_a_range() {
    let segment = |number, kind, meaning| SpliceEvent {
        number,
        kind: SpliceKind::Segment(kind),
        meaning,
        duration: None,
        returns: false,
    };
    let mut window = watched(5);
    window.cue(&cue(11_000, 1, &[segment(3, 0x34, SpliceMeaning::Out), segment(4, 0x10, SpliceMeaning::Other)]));
    // The end of another kind of segment, and of another number.
    window.cue(&cue(12_000, 2, &[segment(3, 0x31, SpliceMeaning::In), segment(5, 0x35, SpliceMeaning::In)]));
    window.cue(&cue(13_000, 3, &[segment(3, 0x35, SpliceMeaning::In), segment(4, 0x11, SpliceMeaning::Other)]));
    let found: Vec<_> = window.cues_since(Duration::ZERO).map(|range| (&*range.id, range.attribute)).collect();
    use CueAttribute::{Command, In, Out};
    let expected = [
        ("segment-34-3-1795341601000", Out),
        ("segment-10-4-1795341601000", Command),
        ("segment-31-3-1795341602000", In),
        ("segment-35-5-1795341602000", In),
        ("segment-11-4-1795341603000", Command),
    ];
    assert_eq!(found, expected);
    let ended = window.cues_since(Duration::ZERO).filter(|range| range.end.is_some()).count();
    assert_eq!(ended, 1);
}

#[test]
fn other_commands_are_told_apart_by_their_bytes() {
    let mut window = watched(5);
    for byte in [1, 1, 2] {
        window.cue(&cue(11_000, byte, &[]));
    }
    let ids: Vec<_> = window.cues_since(Duration::ZERO).map(|range| range.id.clone()).collect();
    assert_eq!(ids, ["command-05-00000001-1795341601000", "command-05-00000002-1795341601000"]);
}

#[test]
fn cancelled_and_moved_breaks_leave() {
    let mut window = watched(5);
    let cancelled = SpliceEvent { meaning: SpliceMeaning::Cancelled, duration: None, ..BREAK };
    window.cue(&cue(20_000, 1, &[BREAK]));
    window.cue(&cue(22_000, 2, &[BREAK]));
    let starts = |window: &Window| -> Vec<_> {
        window.cues_since(Duration::ZERO).map(|range| range.begin.at.as_secs() - TEN_O_CLOCK + 10).collect()
    };
    assert_eq!(starts(&window), [22]);
    window.cue(&cue(12_000, 3, &[SpliceEvent { number: 8, ..cancelled }]));
    assert_eq!(starts(&window), [22]);
    window.cue(&cue(12_000, 3, &[cancelled]));
    assert_eq!(count(&window), 0);
    // One that has ended stays.
    window.cue(&cue(11_000, 1, &[BREAK]));
    window.cue(&cue(12_000, 2, &[RETURN]));
    window.cue(&cue(12_000, 3, &[cancelled]));
    assert_eq!(count(&window), 1);
}

#[test]
fn breaks_that_return_by_themselves_end_at_their_time() {
    let mut window = watched(5);
    window.cue(&cue(11_000, 1, &[SpliceEvent { duration: Some(SECOND), returns: true, ..BREAK }]));
    window.expire_cues();
    let ended = "ID=\"insert-7-1795341601000\",START-DATE=\"2026-11-22T10:00:01.000Z\",\
                 END-DATE=\"2026-11-22T10:00:02.000Z\",DURATION=1.000,PLANNED-DURATION=1.000,SCTE35-OUT=0xFC00000001";
    assert_eq!(tags(&window, &VIEW), [ended]);
}

#[test]
fn events_leave_with_the_segments_that_they_belong_to() {
    let limits = crate::live::WindowLimits { segments: 4, listed: Duration::from_secs(4), ..LIMITS };
    let mut window = Window::new(limits, crate::live::testing::tracks(), 7);
    window.begin(epoch(0, Duration::from_secs(10)));
    let mut counts = Vec::new();
    for (number, one) in cut(CutRules { part: None, ..rules() }, film(60, 50)).into_iter().enumerate() {
        window.push(one);
        if number == 0 {
            window.cue(&cue(12_000, 1, &[SpliceEvent { duration: Some(4 * SECOND), ..BREAK }]));
        }
        counts.push(count(&window));
    }
    assert_eq!(counts.iter().filter(|count| **count == 1).count(), counts.partition_point(|count| *count == 1));
    let part = counts.partition_point(|count| *count == 1) as f64 / counts.len() as f64;
    assert!((0.15..0.4).contains(&part), "16 s and the window of 60 s: {part}");
}

#[test]
fn a_flood_of_cues_is_bounded() {
    let mut window = watched(5);
    for number in 0..2000 {
        window.cue(&cue(20_000 + u64::from(number), 1, &[SpliceEvent { number, ..BREAK }]));
    }
    assert_eq!(count(&window), 256);
    let long = Bytes::from(vec![0xfc; 4000]);
    for number in 2000..2100 {
        let one = cue(20_000, 1, &[SpliceEvent { number, ..BREAK }]);
        window.cue(&Cue { section: long.clone(), ..one });
    }
    assert_eq!(count(&window), 16);
}

#[test]
fn all_playlists_list_events_and_clips_only_theirs() {
    let mut window = watched(60);
    window.cue(&cue(30_000, 1, &[BREAK]));
    let skip = PlaylistView { skip: true, ..VIEW };
    let delta = media(&window, 0, &skip).unwrap();
    assert!(delta.contains("SKIPPED-SEGMENTS=") && !delta.contains("CAN-SKIP-DATERANGES"), "{delta}");
    assert_eq!(tags(&window, &skip), tags(&window, &VIEW));
    assert!(media(&window, 1, &VIEW).unwrap().contains("#EXT-X-DATERANGE:ID=\"insert-7-"));
    let first = window.segments().next().unwrap().number.0;
    let clip = |from: u64, to: u64| {
        let extent = Extent::Clip(SegmentNumber(first + from), SegmentNumber(first + to));
        tags(&window, &PlaylistView { extent, ..VIEW }).len()
    };
    // From 20 s of the film on, for 30 s.
    assert_eq!([clip(0, 9), clip(0, 10), clip(24, 25), clip(26, 27)], [0, 1, 1, 0]);
}

#[test]
fn manifests_have_events_in_their_periods() {
    let mut window = watched(5);
    window.cue(&cue(12_500, 1, &[BREAK]));
    let view = ManifestView {
        run: "0a1b",
        clock: "/time",
        published: Duration::ZERO,
        away: Duration::ZERO,
        extent: Extent::Edge,
    };
    let expected = "    <EventStream schemeIdUri=\"urn:scte:scte35:2014:xml+bin\" timescale=\"90000\">
      <Event presentationTime=\"225000\" duration=\"2700000\" id=\"45272773\">
        <Signal xmlns=\"http://www.scte.org/schemas/35/2016\">
          <Binary>/AAAAAE=</Binary>
        </Signal>
      </Event>
    </EventStream>
    <AdaptationSet";
    let text = mpd(&window, &view).unwrap();
    assert!(text.contains(expected), "{text}");
    window.cue(&cue(14_000, 2, &[RETURN]));
    let text = mpd(&window, &view).unwrap();
    assert!(text.contains("presentationTime=\"225000\" duration=\"2700000\""), "{text}");
    assert!(text.contains("<Event presentationTime=\"360000\" id="), "{text}");
    assert_eq!(text.matches("<EventStream").count(), 1);
}

/// A window with a segment of an earlier run, a minute before its own first one. Stream times of both runs are equal.
fn continued(cues: Vec<PastCue>) -> Window {
    let mut window = Window::new(LIMITS, crate::live::testing::tracks(), 7);
    window.keep_past(Duration::from_secs(3600));
    let (from, wall) = (Duration::from_secs(10), Duration::from_secs(TEN_O_CLOCK - 60));
    let mut earlier = epoch(u32::MAX - 1, from);
    earlier.wall = wall;
    let tracks =
        [SECOND as i64, 48_000].map(|scale| PastTrack { start: scale * 10, duration: scale * 60, bytes: 1000 });
    let (number, epoch_of, discontinuity) = (SegmentNumber(99), u32::MAX - 1, 6);
    let tracks = tracks.into();
    let past = PastSegment { number, epoch: epoch_of, discontinuity, start: from, wall, is_independent: true, tracks };
    window.restore(vec![earlier], vec![past]);
    window.restore_cues(cues);
    window.begin(epoch(0, from));
    cut(rules(), film(5, 50)).into_iter().for_each(|one| window.push(one));
    window
}

#[test]
fn cues_of_an_earlier_run_are_those_of_its_segments() {
    let mut first = watched(5);
    let taken = |window: &mut Window, millis, byte, event| window.cue(&cue(millis, byte, &[event]));
    assert!(taken(&mut first, 12_000, 1, RETURN).is_some() && taken(&mut first, 12_000, 1, RETURN).is_none());
    let earlier = |seconds: u64, byte, events: &[SpliceEvent]| {
        let Cue { splice, section, .. } = cue(0, byte, events);
        let at = Duration::from_secs(TEN_O_CLOCK - 60 + seconds);
        PastCue { at, edge: at - Duration::from_secs(1), splice, section }
    };
    // A break that had no end yet, one that returns by itself, and one from before all segments.
    let returns = SpliceEvent { number: 9, duration: Some(2 * SECOND), returns: true, ..BREAK };
    let old = PastCue { at: Duration::from_secs(TEN_O_CLOCK - 600), ..earlier(0, 3, &[RETURN]) };
    let mut window = continued(vec![old, earlier(2, 1, &[BREAK]), earlier(8, 2, &[returns])]);
    // The same stream time as that of the break.
    window.cue(&cue(12_000, 4, &[RETURN]));
    let view = PlaylistView { extent: Extent::Past, ..VIEW };
    let of_break = "ID=\"insert-7-1795341542000\",START-DATE=\"2026-11-22T09:59:02.000Z\",END-DATE=\"2026-11-22T10:00:02.000Z\",\
                    DURATION=60.000,PLANNED-DURATION=30.000,SCTE35-OUT=0xFC00000001,SCTE35-IN=0xFC00000004";
    let of_other = "ID=\"insert-9-1795341548000\",START-DATE=\"2026-11-22T09:59:08.000Z\",END-DATE=\"2026-11-22T09:59:10.000Z\",\
                    DURATION=2.000,PLANNED-DURATION=2.000,SCTE35-OUT=0xFC00000002";
    assert_eq!(tags(&window, &view), [of_break, of_other]);
    let (run, clock, zero) = ("0a1b", "/time", Duration::ZERO);
    let manifest = ManifestView { run, clock, published: zero, away: zero, extent: Extent::Past };
    let text = mpd(&window, &manifest).unwrap();
    let (before, now) = text.split_once("</Period>").unwrap();
    let times = |text: &str| -> Vec<u64> {
        let events = text.split("<Event presentationTime=\"").skip(1);
        events.map(|event| event.split_once('"').unwrap().0.parse::<u64>().unwrap() / SECOND).collect()
    };
    assert_eq!((times(before), times(now)), (vec![2, 8], vec![2]), "{text}");
}
