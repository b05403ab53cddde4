//! Each rule, broken by one change of playlists that keep all rules.

use super::*;

const PATH: &str = "/cam/v1/index.m3u8";

const HEAD: &str = concat!(
    "#EXTM3U\n#EXT-X-VERSION:9\n#EXT-X-TARGETDURATION:2\n#EXT-X-PART-INF:PART-TARGET=0.5\n#EXT-X-INDEPENDENT-SEGMENTS\n",
    "#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,CAN-SKIP-UNTIL=12,HOLD-BACK=6,PART-HOLD-BACK=1.5\n",
);

/// Segments `from..to` of 2 s, the last two with parts, and `open` parts of the next one.
fn playlist(from: u64, to: u64, open: usize) -> String {
    let mut text = format!("{HEAD}#EXT-X-MEDIA-SEQUENCE:{from}\n");
    for number in from..to {
        text += &format!("#EXT-X-PROGRAM-DATE-TIME:{}\n", date_of(number));
        if number + 2 >= to {
            text += &parts(number, 4);
        }
        text += &format!("#EXTINF:2.0,\n{number}.m4s\n");
    }
    let hint = if open == 4 { format!("{}.0", to + 1) } else { format!("{to}.{open}") };
    text + &parts(to, open)
        + &format!("#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"{hint}.m4s\"\n")
        + &format!("#EXT-X-RENDITION-REPORT:URI=\"../a1/index.m3u8\",LAST-MSN={to},LAST-PART=0\n")
}

fn date_of(number: u64) -> String {
    format!("2026-11-22T10:{:02}:{:02}.000Z", number * 2 / 60, number * 2 % 60)
}

fn parts(number: u64, count: usize) -> String {
    let part = |part| {
        let independent = if part == 0 { ",INDEPENDENT=YES" } else { "" };
        format!("#EXT-X-PART:DURATION=0.5,URI=\"{number}.{part}.m4s\"{independent}\n")
    };
    (0..count).map(part).collect()
}

/// The same without the first segments.
fn delta(from: u64, to: u64, open: usize, skipped: u64) -> String {
    let whole = playlist(from, to, open);
    let rest = whole.find(&format!("#EXT-X-PROGRAM-DATE-TIME:{}", date_of(from + skipped))).unwrap();
    format!("{HEAD}#EXT-X-MEDIA-SEQUENCE:{from}\n#EXT-X-SKIP:SKIPPED-SEGMENTS={skipped}\n{}", &whole[rest..])
}

fn reload(body: &str) -> Reload<'_> {
    Reload { path: PATH, body, ..Reload::default() }
}

fn rules(of: &[Reload<'_>]) -> Vec<Rule> {
    let mut checker = Checker::default();
    of.iter().flat_map(|reload| checker.check(reload)).map(|violation| violation.rule).collect()
}

/// Rules that a good playlist, and then another one with one text replaced, break.
fn broken(found: &str, replaced: &str) -> Vec<Rule> {
    let changed = playlist(1, 8, 2).replace(found, replaced);
    assert_ne!(changed, playlist(1, 8, 2), "{found}");
    rules(&[reload(&playlist(0, 8, 1)), reload(&changed)])
}

#[test]
fn good_playlists_break_no_rule() {
    let steps: Vec<String> = (0..40).map(|turn| playlist(turn / 4, 8 + turn / 4, turn as usize % 4)).collect();
    let mut checker = Checker::default();
    for (turn, body) in (0..).zip(&steps) {
        let (segment, part) = (Some(8 + turn / 4), Some(turn % 4).filter(|part| *part > 0).map(|part| part - 1));
        let asked = Duration::from_millis(500 * turn);
        let at = Reload { segment: segment.filter(|_| part.is_some()), part, asked, arrived: asked, ..reload(body) };
        assert_eq!(checker.check(&at), [], "{turn}");
    }
    assert_eq!(rules(&[reload(&playlist(0, 8, 0)), reload(&playlist(5, 20, 0))]), [], "a slow client");
}

#[test]
fn each_change_breaks_its_rule() {
    for (found, replaced, rule) in [
        ("#EXTM3U", "#EXT", Rule::Syntax),
        ("DURATION=0.5", "DURATION=x", Rule::Syntax),
        ("#EXTINF:2.0,\n5.m4s", "#EXTINF:2.5,\n5.m4s", Rule::SegmentTooLong),
        ("PART-HOLD-BACK=1.5", "PART-HOLD-BACK=0.9", Rule::PartHoldBack),
        (",HOLD-BACK=6", ",HOLD-BACK=5.9", Rule::HoldBack),
        ("SKIP-UNTIL=12", "SKIP-UNTIL=11", Rule::SkipUntil),
        ("CAN-SKIP-UNTIL=12,", "", Rule::ControlDiffers),
        ("#EXT-X-PART-INF:PART-TARGET=0.5\n", "", Rule::PartTargetMissing),
        ("PART-TARGET=0.5", "PART-TARGET=0.51", Rule::PartTargetChanged),
        ("TARGETDURATION:2", "TARGETDURATION:1", Rule::TargetChanged),
        ("DURATION=0.5,URI=\"8.1.m4s\"", "DURATION=0.6,URI=\"8.1.m4s\"", Rule::PartTooLong),
        ("DURATION=0.5,URI=\"7.1.m4s\"", "DURATION=0.4,URI=\"7.1.m4s\"", Rule::PartTooShort),
        ("DURATION=0.5,URI=\"7.3.m4s\"", "DURATION=0.2,URI=\"7.3.m4s\"", Rule::PartsDiffer),
        (",INDEPENDENT=YES", "", Rule::FirstPartDependent),
        ("MEDIA-SEQUENCE:1", "MEDIA-SEQUENCE:0", Rule::SegmentChanged),
        ("\n5.m4s", "\n5b.m4s", Rule::SegmentChanged),
        ("\"7.2.m4s\"", "\"7.2b.m4s\"", Rule::SegmentChanged),
        ("\"8.0.m4s\"", "\"8.0b.m4s\"", Rule::SegmentChanged),
        ("\"8.1.m4s\"", "\"8.1b.m4s\"", Rule::HintBroken),
        (
            "#EXT-X-MEDIA-SEQUENCE",
            "#EXT-X-DISCONTINUITY-SEQUENCE:1\n#EXT-X-MEDIA-SEQUENCE",
            Rule::DiscontinuitySequence,
        ),
        ("T10:00:10.000Z", "T10:00:10.100Z", Rule::DateDiffers),
    ] {
        let rules = broken(found, replaced);
        assert!(rules.contains(&rule), "{found}: {rules:?}, expected {rule:?}");
    }
}

#[test]
fn independent_and_missing_parts_may_be_short() {
    for mark in [",INDEPENDENT=YES", ",GAP=YES"] {
        let short = format!("#EXT-X-PART:DURATION=0.1,URI=\"s.m4s\"{mark}\n#EXT-X-PART:DURATION=0.5,URI=\"t.m4s\"\n");
        let body = playlist(0, 8, 0) + &short;
        assert!(!rules(&[reload(&body)]).contains(&Rule::PartTooShort), "{mark}");
        assert!(rules(&[reload(&body.replace(mark, ""))]).contains(&Rule::PartTooShort), "{mark}");
    }
}

#[test]
fn lists_only_grow_at_the_end() {
    let pair = |first: &str, then: &str| rules(&[reload(first), reload(then)]);
    let good = playlist(1, 9, 2);
    assert_eq!(pair(&good, &playlist(1, 9, 1)), [Rule::EndFell]);
    assert_eq!(pair(&good, &playlist(0, 9, 2)), [Rule::SequenceFell]);
    assert!(pair(&good, &playlist(7, 9, 2)).contains(&Rule::RemovedTooSoon));
    let hinted = format!("{}#EXT-X-ENDLIST\n", playlist(1, 9, 0));
    let ended = hinted.replace("#EXT-X-PRELOAD-HINT", "#");
    assert_eq!(pair(&ended, &ended), []);
    assert_eq!(pair(&ended, &hinted), [Rule::Ended]);
    assert!(pair(&ended, &playlist(1, 10, 0)).contains(&Rule::Ended));
}

#[test]
fn discontinuities_that_left_are_counted() {
    let mark = |text: &str| text.replace("#EXTINF:2.0,\n3.m4s", "#EXT-X-DISCONTINUITY\n#EXTINF:2.0,\n3.m4s");
    let counted = playlist(4, 12, 0).replace("#EXT-X-MEDIA", "#EXT-X-DISCONTINUITY-SEQUENCE:1\n#EXT-X-MEDIA");
    let before = mark(&playlist(3, 11, 0));
    assert_eq!(rules(&[reload(&before), reload(&counted)]), []);
    assert_eq!(rules(&[reload(&before), reload(&playlist(4, 12, 0))]), [Rule::DiscontinuitySequence]);
}

#[test]
fn blocked_replies_have_what_was_asked_for_in_time() {
    let body = playlist(0, 8, 2);
    let ask = |segment, part, seconds| {
        let arrived = Duration::from_secs(seconds);
        rules(&[Reload { segment: Some(segment), part, arrived, ..reload(&body) }])
    };
    for (segment, part) in [(7, None), (8, None), (8, Some(0)), (8, Some(1)), (7, Some(9))] {
        assert_eq!(ask(segment, part, 1), [], "{segment} {part:?}");
    }
    for (segment, part) in [(9, None), (8, Some(2)), (9, Some(0))] {
        assert_eq!(ask(segment, part, 1), [Rule::NotWhatWasAsked], "{segment} {part:?}");
    }
    assert_eq!(ask(8, Some(1), 7), [Rule::BlockedTooLong]);
}

#[test]
fn delta_updates_are_completed() {
    let whole = playlist(0, 20, 1);
    let update = |body: &str, skip| rules(&[reload(&whole), Reload { skip, ..reload(body) }]);
    assert_eq!(update(&delta(1, 20, 2, 10), true), []);
    assert_eq!(update(&delta(1, 20, 2, 10), false), [Rule::SkipUnasked]);
    assert_eq!(update(&delta(1, 20, 2, 15), true), [Rule::SkipTooNear]);
    assert_eq!(update(&delta(1, 20, 2, 10).replace("VERSION:9", "VERSION:8"), true), [Rule::Version]);
    assert!(update(&delta(1, 40, 2, 25), true).contains(&Rule::SkipWithoutBase));
    assert_eq!(rules(&[Reload { skip: true, ..reload(&delta(1, 20, 2, 10)) }]), [Rule::SkipWithoutBase]);
    // Segments that a delta update skips are those of the playlist before it.
    let mut checker = Checker::default();
    checker.check(&reload(&whole));
    checker.check(&Reload { skip: true, ..reload(&delta(1, 20, 2, 10)) });
    let changed = playlist(1, 20, 3).replace("\n4.m4s", "\n4b.m4s");
    let found = checker.check(&reload(&changed));
    assert_eq!(found.iter().map(|violation| violation.rule).collect::<Vec<_>>(), [Rule::SegmentChanged]);
}

#[test]
fn reports_are_not_older_than_playlists() {
    let (sound, pictures) = (playlist(0, 8, 2), playlist(0, 8, 2));
    let known = Reload { path: "/cam/a1/index.m3u8", arrived: Duration::from_secs(1), ..reload(&sound) };
    let later = Duration::from_secs(2);
    let after = Reload { asked: later, arrived: later, ..reload(&pictures) };
    assert_eq!(rules(&[known, after]), [Rule::ReportOld]);
    assert_eq!(rules(&[known, reload(&pictures)]), [], "asked before");
    for fresh in ["LAST-MSN=8,LAST-PART=1", "LAST-MSN=9,LAST-PART=0", "LAST-MSN=8", "LAST-PART=1", "X=1"] {
        let body = pictures.replace("LAST-MSN=8,LAST-PART=0", fresh);
        assert_eq!(rules(&[known, Reload { body: &body, ..after }]), [], "{fresh}");
    }
}

#[test]
fn caches_keep_playlists_for_a_while_only() {
    let body = playlist(0, 8, 2);
    let ask = |segment, seconds| {
        let max_age = Some(Duration::from_secs(seconds));
        rules(&[Reload { segment, part: segment.map(|_| 0), max_age, ..reload(&body) }])
    };
    assert_eq!((ask(None, 2), ask(Some(8), 12)), (Vec::new(), Vec::new()));
    assert_eq!(ask(None, 3), [Rule::CachedTooLong]);
    assert_eq!(ask(Some(8), 13), [Rule::CachedTooLong]);
}
