//! The clock of an item: when its time 0 is, and when its tracks begin.

use super::CLOCK;
use crate::{
    Movie,
    movie::{
        Edit, Track,
        edits::{Span, first_shown, spans, spans_of},
    },
};

/// Files whose clocks begin later than this, and that have no edit lists, keep the clock of a live stream.
const LIVE: i64 = 1_000_000_000;

/// Returns the time at which the clocks of a file's tracks begin, in nanoseconds.
pub(super) fn origin(movie: &Movie) -> i64 {
    if movie.tracks.iter().any(|track| !track.edits.is_empty()) {
        return 0;
    }
    let start = |track: &Track| Some(track.timescale.convert(track.samples.get(0)?.pts(), CLOCK));
    movie.tracks.iter().filter_map(start).min().filter(|start| *start >= LIVE).unwrap_or(0)
}

/// Returns the spans of a track of a stretch of segments. Its samples may begin hours behind the time 0 of its edit list, at which the
/// whole stream begins. A usual reading would present pictures from time 0 on, and sound hours later.
pub(super) fn spans_of_stretch(track: &Track, movie: &Movie) -> Vec<Span> {
    let (waits, time) = match track.edits[..] {
        [Edit { duration: 0, media_time: Some(time) }] => (0, time),
        [Edit { duration, media_time: None }, Edit { duration: 0, media_time: Some(time) }] => {
            let ticks = i64::try_from(duration).unwrap_or(i64::MAX);
            (movie.timescale.convert(ticks, track.timescale), time)
        }
        _ => return spans(track, movie.timescale),
    };
    let begins = time.max(first_shown(&track.samples));
    let later = waits.saturating_add(begins.saturating_sub(time));
    let mut spans = spans_of(track, &[Edit { duration: 0, media_time: Some(begins) }], movie.timescale);
    for span in &mut spans {
        span.shift = span.shift.saturating_add(later);
        span.start = span.start.saturating_add(later);
        span.end = span.end.saturating_add(later);
    }
    spans
}
