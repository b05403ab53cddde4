//! Writes WebVTT.

use super::{Cue, clock};
use std::ops::Range;

/// Presentation time 0 on the 90 kHz clock of transport streams: 10 s, so that priming and preroll before 0 have
/// positive times.
pub const MPEGTS_BASE: u64 = 900_000;

/// Returns an HLS segment: the cues shown in `window` (milliseconds), with their whole times. A cue that crosses a
/// boundary is in both segments (RFC 8216, 3.5). `base` is presentation time 0 on the 90 kHz clock of the media: 0 for
/// fragmented MP4, [`MPEGTS_BASE`] for transport streams.
#[must_use]
pub fn segment(cues: &[Cue], window: Range<i64>, base: u64) -> String {
    let mut out = format!("WEBVTT\nX-TIMESTAMP-MAP=MPEGTS:{base},LOCAL:00:00:00.000\n");
    cues.iter().filter(|cue| cue.start < window.end && cue.end > window.start).for_each(|cue| push(&mut out, cue));
    out
}

/// Returns all cues in one file.
#[must_use]
pub fn whole(cues: &[Cue]) -> String {
    let mut out = "WEBVTT\n".to_owned();
    cues.iter().for_each(|cue| push(&mut out, cue));
    out
}

/// Returns the cues of a period in one file: those shown in `window` (milliseconds), with times from its start on.
#[must_use]
pub fn period(cues: &[Cue], window: Range<i64>) -> String {
    let mut out = "WEBVTT\n".to_owned();
    for cue in cues.iter().filter(|cue| cue.start < window.end && cue.end > window.start) {
        let time = |time: i64| time.min(window.end).saturating_sub(window.start);
        push(&mut out, &Cue { start: time(cue.start), end: time(cue.end), ..cue.clone() });
    }
    out
}

/// Appends a cue, unless it ends before the presentation begins.
fn push(out: &mut String, cue: &Cue) {
    if cue.end <= 0 || cue.end <= cue.start || cue.text.is_empty() {
        return;
    }
    out.push('\n');
    if let Some(id) = cue.id.as_deref().filter(|id| !id.is_empty() && !id.contains("-->") && !id.contains(['\n', '\r']))
    {
        out.push_str(id);
        out.push('\n');
    }
    clock::push(out, cue.start);
    out.push_str(" --> ");
    clock::push(out, cue.end);
    if !cue.settings.is_empty() {
        out.push(' ');
        out.push_str(&cue.settings);
    }
    out.push('\n');
    out.push_str(&cue.text);
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::{super::vtt, *};

    fn cue(start: i64, end: i64, text: &str) -> Cue {
        Cue { start, end, text: text.into(), ..Cue::default() }
    }

    #[test]
    fn a_segment_has_the_cues_of_its_window() {
        let cues = [cue(0, 4000, "before"), cue(3000, 5000, "over"), cue(7000, 9000, "out"), cue(8000, 9000, "after")];
        assert_eq!(
            segment(&cues, 4000..8000, MPEGTS_BASE),
            "WEBVTT\nX-TIMESTAMP-MAP=MPEGTS:900000,LOCAL:00:00:00.000\n\n\
             00:00:03.000 --> 00:00:05.000\nover\n\n00:00:07.000 --> 00:00:09.000\nout\n"
        );
    }

    #[test]
    fn times_of_a_period_begin_with_it() {
        let cues = [cue(0, 4000, "before"), cue(3000, 5000, "over"), cue(7000, 9000, "out"), cue(8000, 9000, "after")];
        let expected = "WEBVTT\n\n00:00:00.000 --> 00:00:01.000\nover\n\n00:00:03.000 --> 00:00:04.000\nout\n";
        assert_eq!(period(&cues, 4000..8000), expected);
    }

    #[test]
    fn a_segment_without_cues_is_a_file_all_the_same() {
        assert_eq!(segment(&[], 0..4000, MPEGTS_BASE), "WEBVTT\nX-TIMESTAMP-MAP=MPEGTS:900000,LOCAL:00:00:00.000\n");
    }

    #[test]
    fn what_is_written_reads_back() {
        let cues = [
            Cue { settings: "line:0 align:left".into(), id: Some("a b".into()), ..cue(0, 1, "<b>x</b> &amp;\ny") },
            cue(3_599_999, 360_000_000, "z"),
        ];
        assert_eq!(vtt::parse(whole(&cues).as_bytes()).unwrap().cues, cues);
        assert_eq!(vtt::parse(segment(&cues, 0..i64::MAX, MPEGTS_BASE).as_bytes()).unwrap().cues, cues);
    }

    #[test]
    fn time_begins_at_0() {
        assert_eq!(whole(&[cue(-500, 500, "a"), cue(-500, 0, "b")]), "WEBVTT\n\n00:00:00.000 --> 00:00:00.500\na\n");
    }
}
