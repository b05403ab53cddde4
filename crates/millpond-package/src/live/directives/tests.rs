use super::*;
use crate::live::testing::{LIMITS, cut, film, rules, window};

#[test]
fn queries() {
    let asks = |segment: Option<u64>, part, skip| Ok(Directives { segment: segment.map(SegmentNumber), part, skip });
    let table = [
        ("", asks(None, None, false)),
        ("token=a&_HLS_msn=17", asks(Some(17), None, false)),
        ("_HLS_msn=17&_HLS_part=2&_HLS_skip=YES", asks(Some(17), Some(2), true)),
        ("_HLS_skip=v2", asks(None, None, true)),
        ("_HLS_skip=no&_HLS_push=1", asks(None, None, false)),
        ("_HLS_msn=1&_HLS_part=99999999999", asks(Some(1), Some(u32::MAX), false)),
        ("_HLS_part=2", Err(BadDirectives::PartAlone)),
        ("_HLS_msn=", Err(BadDirectives::Number("_HLS_msn"))),
        ("_HLS_msn=-1", Err(BadDirectives::Number("_HLS_msn"))),
        ("_HLS_msn=+1", Err(BadDirectives::Number("_HLS_msn"))),
        ("_HLS_msn=99999999999999999999", Err(BadDirectives::Number("_HLS_msn"))),
        ("_HLS_msn=1&_HLS_part=x", Err(BadDirectives::Number("_HLS_part"))),
        ("_HLS_msn=1&_HLS_msn=2", Err(BadDirectives::Twice("_HLS_msn"))),
    ];
    for (query, expected) in table {
        assert_eq!(Directives::parse(query), expected, "{query}");
    }
}

#[test]
fn reloads_wait_for_the_next_part_and_not_for_more() {
    // Segments 100 to 103 are complete, with seven parts each; some parts of 104 are.
    let window = window(LIMITS, cut(rules(), film(9, 25)));
    let next = u32::from(window.hint(0).unwrap().part);
    assert!((1..6).contains(&next));
    let table = [
        (None, None, Reload::Now),
        (Some(5), None, Reload::Now),
        (Some(103), None, Reload::Now),
        (Some(103), Some(6), Reload::Now),
        // Behind the last part: the first one of the next segment.
        (Some(103), Some(7), Reload::Now),
        (Some(104), None, Reload::Now),
        (Some(104), Some(next - 1), Reload::Now),
        (Some(104), Some(next), Reload::Wait),
        (Some(104), Some(next + 9), Reload::Wait),
        (Some(104), Some(next + 10), Reload::TooFar),
        (Some(105), None, Reload::Wait),
        (Some(105), Some(9), Reload::Wait),
        (Some(105), Some(10), Reload::TooFar),
        (Some(106), None, Reload::TooFar),
        (Some(u64::MAX), Some(u32::MAX), Reload::TooFar),
    ];
    for (segment, part, expected) in table {
        let directives = Directives { segment: segment.map(SegmentNumber), part, skip: false };
        assert_eq!(directives.decide(&window, 0), expected, "{segment:?} {part:?}");
    }
}

#[test]
fn without_parts_reloads_wait_for_whole_segments() {
    let whole = crate::live::CutRules { part: None, ..rules() };
    let window = window(LIMITS, cut(whole, film(9, 25)));
    for (segment, expected) in [(103, Reload::Now), (104, Reload::Wait), (105, Reload::Wait), (106, Reload::TooFar)] {
        let directives = Directives { segment: Some(SegmentNumber(segment)), ..Directives::default() };
        assert_eq!(directives.decide(&window, 0), expected, "{segment}");
    }
}
