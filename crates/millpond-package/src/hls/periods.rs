//! Media playlists of tracks of several periods: a discontinuity and another map where each one begins (RFC 8216 4.3.2.3, 4.3.2.5).
//! A track that a period lacks has gaps there (`EXT-X-GAP`, draft-pantos-hls-rfc8216bis 4.4.4.7), so that its times go on.

use super::{
    Container,
    entries::Entries,
    keys,
    media::{FRAGMENT, IFRAME, has_independent, head, start},
};
use crate::{
    delivery::{text_track::is_webvtt, transport},
    presentation::{
        Presentation,
        period::{self, Period},
        track::PresentedTrack,
    },
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
    let list = |(period, part): &(&Period, Option<&PresentedTrack>)| match part {
        Some(part) => micros(part, is_trick_play),
        None => gaps(period),
    };
    let lists: Vec<Vec<u64>> = parts.iter().map(list).collect();
    let is_mapped = suffix == FRAGMENT;
    let all = parts.iter().filter_map(|(_, part)| *part);
    let independent = all.clone().all(has_independent) && !is_webvtt(track);
    let mut out = String::with_capacity(512 + lists.iter().map(Vec::len).sum::<usize>() * ENTRY);
    head(&mut out, (if is_mapped { 7 } else { 3 }, "VOD"), lists.iter().flatten().copied(), independent);
    if is_trick_play {
        out.push_str("#EXT-X-I-FRAMES-ONLY\n");
    } else {
        start(&mut out, presentation);
    }
    for ((period, part), micros) in parts.iter().zip(lists) {
        if period.number > 1 {
            out.push_str("#EXT-X-DISCONTINUITY\n");
        }
        let folder = format!("../{}/", period::name(&track.name, period.number));
        if let Some(part) = part.filter(|_| is_mapped && !micros.is_empty()) {
            out.push_str("#EXT-X-MAP:URI=\"");
            out.push_str(&folder);
            out.push_str("init.mp4\"\n");
            keys::of_track(&mut out, &period.presentation, part);
        }
        let begin = format!("{folder}{prefix}");
        let mut entries = Entries::new(&begin, suffix);
        for micros in micros {
            if part.is_none() {
                out.push_str(GAP);
            }
            entries.push(&mut out, micros);
        }
    }
    out.push_str("#EXT-X-ENDLIST\n");
    out
}

/// Says that a segment is not there, and must not be requested.
const GAP: &str = "#EXT-X-GAP\n";
/// Most bytes of an entry, except for very long segments.
const ENTRY: usize = 48;

/// Returns the durations of the gaps of a track that a period lacks: of the segments of the period's first track.
fn gaps(period: &Period) -> Vec<u64> {
    period.presentation.tracks.first().map(|first| first.segments.micros().collect()).unwrap_or_default()
}

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
