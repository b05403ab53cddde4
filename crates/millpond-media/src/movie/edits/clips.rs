//! The spans of clips that follow each other in one track ([`Movie::clips`](crate::Movie::clips)).

use super::{Shown, Span, first_shown, media_end, spans};
use crate::{movie::Track, units::Timescale};

/// Returns the spans of the clips of one track, whose edit list has one edit that shows media, or none: one span of each clip
/// that is shown, and none of others. The edit list belongs to the whole track, so all clips have the shift of the first shown
/// clip.
#[must_use]
pub fn clip_spans(clips: &[&Track], movie_timescale: Timescale) -> Vec<Option<Span>> {
    let mut first: Option<(i64, Timescale)> = None;
    let mut all = Vec::with_capacity(clips.len());
    for clip in clips {
        let span = match first {
            Some((shift, timescale)) => later(clip, timescale.convert(shift, clip.timescale), movie_timescale),
            None if is_over(clip) => None,
            None => spans(clip, movie_timescale).into_iter().next(),
        };
        first = first.or(span.as_ref().map(|span| (span.shift, clip.timescale)));
        all.push(span);
    }
    all
}

/// Whether a clip ends before the edit begins.
fn is_over(clip: &Track) -> bool {
    let begin = clip.edits.iter().find_map(|edit| edit.media_time);
    begin.is_some_and(|begin| media_end(&clip.samples) <= begin)
}

/// Returns the span of a clip that follows others.
fn later(clip: &Track, shift: i64, movie_timescale: Timescale) -> Option<Span> {
    let table = &clip.samples;
    let start = first_shown(table).saturating_add(shift);
    let end = media_end(table).saturating_add(shift).min(edit_end(clip, movie_timescale));
    let last = Shown::of(table, |_| true).last_before(end.saturating_sub(shift))?;
    (start < end).then_some(Span { samples: 0..last.checked_add(1)?, shift, start, end })
}

/// Returns the presentation time at which the edit ends.
fn edit_end(clip: &Track, movie_timescale: Timescale) -> i64 {
    let mut elapsed = 0_i64;
    for edit in &clip.edits {
        elapsed = elapsed.saturating_add(i64::try_from(edit.duration).unwrap_or(i64::MAX));
        if edit.media_time.is_some() {
            return if edit.duration == 0 { i64::MAX } else { movie_timescale.convert(elapsed, clip.timescale) };
        }
    }
    i64::MAX
}
