//! Media playlists of tracks of several periods: a discontinuity and another map where each one begins (RFC 8216 4.3.2.3, 4.3.2.5).

use super::{
    Container, keys,
    media::{FRAGMENT, IFRAME, entry, has_independent, head, start},
};
use crate::{
    delivery::{text_track::is_webvtt, transport},
    presentation::{Presentation, period::Period, track::PresentedTrack},
    writing::digits,
};

/// Returns the part of a track in each period, where its playlist lists several.
pub(super) fn parts<'a>(
    presentation: &'a Presentation,
    track: &PresentedTrack,
    container: Container,
) -> Option<Vec<(&'a Period, Option<&'a PresentedTrack>)>> {
    let periods = match container {
        Container::Fmp4 => &presentation.periods[..],
        Container::Ts => transport::periods(presentation),
    };
    let parts: Vec<_> = periods.iter().map(|period| (period, period.part_of(track))).collect();
    (!parts.is_empty()).then_some(parts)
}

/// Returns a playlist of the parts of a track. Names of its segments, or of its pictures for trick play, begin and end with `name`.
///
/// Playlists of all tracks have the same number of discontinuities, as players find segments that belong together by it.
pub(super) fn joined(
    presentation: &Presentation,
    track: &PresentedTrack,
    parts: &[(&Period, Option<&PresentedTrack>)],
    (suffix, prefix): (&str, &str),
) -> String {
    let is_trick_play = prefix == IFRAME;
    let lists: Vec<Vec<u64>> =
        parts.iter().map(|(_, part)| part.map(|part| micros(part, is_trick_play)).unwrap_or_default()).collect();
    let is_mapped = suffix == FRAGMENT;
    let all = parts.iter().filter_map(|(_, part)| *part);
    let independent = all.clone().all(has_independent) && !is_webvtt(track);
    let mut out = String::with_capacity(512 + lists.iter().map(Vec::len).sum::<usize>() * ENTRY);
    head(&mut out, if is_mapped { 7 } else { 3 }, lists.iter().flatten().copied(), independent);
    if is_trick_play {
        out.push_str("#EXT-X-I-FRAMES-ONLY\n");
    } else {
        start(&mut out, presentation);
    }
    for ((period, part), micros) in parts.iter().zip(lists) {
        if period.number > 1 {
            out.push_str("#EXT-X-DISCONTINUITY\n");
        }
        let Some(part) = part else { continue };
        let folder = format!("../{}/", part.name);
        if is_mapped && !micros.is_empty() {
            out.push_str("#EXT-X-MAP:URI=\"");
            out.push_str(&folder);
            out.push_str("init.mp4\"\n");
            keys::of_track(&mut out, &period.presentation, part);
        }
        let begin = format!("{folder}{prefix}");
        for (number, micros) in (1..).zip(micros) {
            entry(&mut out, micros, &begin, number, suffix);
        }
    }
    out.push_str("#EXT-X-ENDLIST\n");
    out
}

/// Most bytes of an entry, except for very long segments.
const ENTRY: usize = 48;

/// Returns the durations of a track's segments, or of its pictures for trick play, in millionths of a second.
fn micros(part: &PresentedTrack, is_trick_play: bool) -> Vec<u64> {
    match part.media().filter(|_| is_trick_play) {
        Some(media) => {
            let scale = media.track().timescale.get();
            media.iframes(part.segments.end()).durations().map(|ticks| digits::micros(ticks, scale)).collect()
        }
        None => part.segments.micros().collect(),
    }
}
