//! Transport stream segments of a presentation's tracks.
//!
//! Where exactly one audio track fits into a transport stream, it is muxed into the segments of every video track.
//! Otherwise every audio track has segments of its own. Muxing needs boundaries that all video tracks share, so that a
//! segment number has the same audio everywhere. The audio must not outlast the video by more than a target duration,
//! because the last segment contains all of its end.

use crate::{
    PackageError, Plan,
    delivery::text_track::is_webvtt,
    presentation::{
        Presentation,
        budget::MOST_SEGMENT_SAMPLES,
        counters::{Role, TsLayout, last_decoded, units},
        muxed_audio::MuxedAudio,
        period::Period,
        track::{MediaKind, MediaTrack, PresentedTrack},
    },
    timeline::{bandwidth::Bandwidth, grid::Grid, segmentation::partition},
    ts::{self, Continuity, ElementaryStream, TableNumbers},
};
use std::ops::Range;

/// Chooses the audio track that is muxed; `None` where each has segments of its own.
fn mux(presentation: &Presentation) -> Option<MuxedAudio> {
    let video = carried(presentation, MediaKind::Video).next().filter(|track| !track.is_alternative())?;
    let mut audio = carried(presentation, MediaKind::Audio);
    let (audio, None) = (audio.next()?, audio.next()) else { return None };
    let media = audio.media()?;
    let end = |t: &PresentedTrack| t.segments.timescale().seconds(t.segments.end());
    if !presentation.aligned || end(audio) > end(video) + presentation.target as f64 / 1e9 {
        return None;
    }
    let boundaries = Grid::new(Some(&video.segments), presentation.target).inner(media.track().timescale);
    let ordinals = partition(&media.timeline, &media.track().samples, &boundaries);
    if ordinals.windows(2).any(|pair| pair[1].saturating_sub(pair[0]) > MOST_SEGMENT_SAMPLES) {
        return None;
    }
    let layout = TsLayout::of(media, &ordinals, &video.segments, Role::Muxed);
    let place = presentation.tracks.iter().position(|t| t.name == audio.name)?;
    Some(MuxedAudio { place, ordinals: ordinals.into(), layout })
}

/// Returns the tracks of a kind that a transport stream can carry.
pub(crate) fn carried(presentation: &Presentation, kind: MediaKind) -> impl Iterator<Item = &PresentedTrack> {
    presentation.of_kind(kind).filter(|t| fits(t))
}

/// Whether a transport stream can carry the track, which is tried with an empty segment.
fn fits(track: &PresentedTrack) -> bool {
    let empty = |m: &MediaTrack| ts::segment(vec![stream(m, 0..0, 0, Role::Muxed)], TableNumbers::default()).is_ok();
    // Start codes, ADTS headers and parameter sets can be inserted only into clear bytes.
    let is_clear = track.protection().is_none();
    is_clear && track.kind != MediaKind::Text && track.media().is_some_and(|m| *m.fits_ts.get_or_init(|| empty(m)))
}

/// Returns the audio track that is muxed into the video's segments, if any.
#[must_use]
pub fn muxed_audio(presentation: &Presentation) -> Option<&PresentedTrack> {
    presentation.tracks.get(muxed(presentation)?.place)
}

fn muxed(presentation: &Presentation) -> Option<&MuxedAudio> {
    presentation.muxed.get_or_init(|| mux(presentation)).as_ref()
}

/// Whether the track has transport stream segments of its own. Tracks of stitched titles have none if an item carries other tracks,
/// because the track itself lacks samples of items.
#[must_use]
pub fn is_carried(presentation: &Presentation, track: &PresentedTrack) -> bool {
    (presentation.stitched().is_none() || is_alike(presentation)) && carries(presentation, track)
}

/// Returns why transport streams lack a track, as the end of a sentence about the track; `None` for a track that has segments or is
/// muxed.
pub(crate) fn absence(presentation: &Presentation, track: &PresentedTrack) -> Option<&'static str> {
    if track.kind == MediaKind::Text {
        return (!is_webvtt(track)).then_some("is not listed beside MPEG-2 TS: its subtitles can't become WebVTT");
    }
    if track.protection().is_some() {
        return Some("is not in MPEG-2 TS: it is encrypted");
    }
    if !fits(track) {
        return Some("is not in MPEG-2 TS, which has H.264, HEVC, AAC, MPEG audio, AC-3 and E-AC-3");
    }
    let is_whole = presentation.stitched().is_none() || is_alike(presentation);
    (!is_whole).then_some("is not in MPEG-2 TS: an item of the stitched title has tracks that MPEG-2 TS lacks")
}

/// Whether the track has segments of its own, if its tracks are carried in the same way in all periods.
fn carries(presentation: &Presentation, track: &PresentedTrack) -> bool {
    let is_muxed = || muxed_audio(presentation).is_some_and(|audio| audio.name == track.name);
    fits(track) && (track.kind != MediaKind::Audio || !is_muxed())
}

/// Returns the periods of transport streams. These are the asset's periods if each period carries the same tracks in the same
/// way, else none.
pub(crate) fn periods(presentation: &Presentation) -> &[Period] {
    if is_alike(presentation) { &presentation.periods } else { &[] }
}

/// Returns the first part of a track that a transport stream can't carry though another part fits, with the number of its period.
pub(crate) fn misfit(presentation: &Presentation) -> Option<(usize, &PresentedTrack)> {
    let of_track = |track: &PresentedTrack| {
        let parts = presentation.periods.iter().filter_map(|period| Some((period.number, period.part_of(track)?)));
        let parts: Vec<_> = parts.collect();
        let has_fit = parts.iter().any(|(_, part)| fits(part));
        parts.into_iter().find(|(_, part)| has_fit && !fits(part))
    };
    presentation.tracks.iter().filter(|track| track.kind != MediaKind::Text).find_map(of_track)
}

/// Whether each period carries the same tracks in the same way.
fn is_alike(presentation: &Presentation) -> bool {
    let is_same = |period: &Period| {
        let carriage = |of: &Presentation, track: &PresentedTrack| (fits(track), carries(of, track));
        presentation.tracks.iter().filter(|track| track.kind != MediaKind::Text).all(|track| {
            let part = period.part_of(track);
            part.is_none_or(|part| carriage(&period.presentation, part) == carriage(presentation, track))
        })
    };
    presentation.periods.iter().all(is_same)
}

/// Returns segment `number` of a video or audio track as a transport stream; `None` where there is no such segment.
///
/// The first call for a track walks over its samples to compute the continuity counters of all segments.
///
/// # Errors
/// As [`ts::segment`].
pub fn segment(presentation: &Presentation, track: &PresentedTrack, number: u32) -> Result<Option<Plan>, PackageError> {
    if !is_carried(presentation, track) {
        return Ok(None);
    }
    let (Some(media), Some(info)) = (track.media(), track.segment(number)) else { return Ok(None) };
    let (layout, role) = (layout(presentation, track, media), own_role(presentation, track));
    let mut streams = vec![stream(media, info.samples, layout.first(number), role)];
    if let (Some((audio, samples)), Some(muxed)) = (muxed_samples(presentation, track, number), muxed(presentation)) {
        streams.push(stream(audio, samples, muxed.layout.first(number), Role::Muxed));
    }
    let counter = (number.wrapping_sub(1) % 16) as u8;
    ts::segment(streams, TableNumbers { counter, version: presentation.table_version }).map(Some)
}

/// Returns the stream of some samples, which lie in one object: those of a stitched title have periods.
fn stream(media: &MediaTrack, ordinals: Range<u32>, first_counter: u8, role: Role) -> ElementaryStream {
    let until = role.until(media, ordinals.end);
    let mut units = units(media, ordinals);
    let object = units.first().map_or(media.object, |unit| media.place(unit.range).object);
    units.iter_mut().for_each(|unit| unit.range = media.place(unit.range).range);
    ElementaryStream {
        movie: media.movie.clone(),
        track: media.index,
        object,
        until,
        units,
        first_counter,
        continuity: Continuity::Counted,
    }
}

/// Returns the role of a track in its own segments: audio in them may continue after the last picture.
fn own_role(presentation: &Presentation, track: &PresentedTrack) -> Role {
    Role::Own(muxed_with(presentation, track).and_then(|(audio, _)| last_decoded(audio)))
}

fn layout<'a>(presentation: &Presentation, track: &PresentedTrack, media: &'a MediaTrack) -> &'a TsLayout {
    media.ts.get_or_init(|| {
        let segments = track.segments.iter();
        let ordinals: Vec<u32> = std::iter::once(0).chain(segments.map(|s| s.samples.end)).collect();
        TsLayout::of(media, &ordinals, &track.segments, own_role(presentation, track))
    })
}

fn muxed_with<'a>(presentation: &'a Presentation, track: &PresentedTrack) -> Option<(&'a MediaTrack, &'a MuxedAudio)> {
    if track.kind != MediaKind::Video || track.is_alternative() {
        return None;
    }
    let muxed = muxed(presentation)?;
    Some((presentation.tracks.get(muxed.place)?.media()?, muxed))
}

/// Returns the audio that is muxed into segment `number` (from 1) of a track, and the ordinals of its samples.
pub(crate) fn muxed_samples<'a>(
    presentation: &'a Presentation,
    track: &PresentedTrack,
    number: u32,
) -> Option<(&'a MediaTrack, Range<u32>)> {
    let (audio, muxed) = muxed_with(presentation, track)?;
    let place = usize::try_from(number).ok()?;
    Some((audio, *muxed.ordinals.get(place.checked_sub(1)?)?..*muxed.ordinals.get(place)?))
}

/// Bits per second of the track's transport stream segments, muxed audio included.
#[must_use]
pub fn bandwidth(presentation: &Presentation, track: &PresentedTrack) -> Bandwidth {
    let own = track.media().map_or_else(Bandwidth::default, |m| layout(presentation, track, m).bandwidth);
    muxed_with(presentation, track).map_or(own, |(_, muxed)| own.with(muxed.layout.bandwidth))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{audio, frames, joined, movie, presentation, reordered, table, video};

    const VIDEO_PID: u16 = 0x100;

    /// Runs a plan with samples of one NAL unit each.
    fn run(plan: Plan) -> Vec<u8> {
        let Plan::Rewrite(mut rewrite) = plan else { panic!("not a rewriting plan") };
        let len = rewrite.len();
        let mut out = Vec::new();
        while let Some(read) = rewrite.next_read() {
            let mut bytes = vec![0x41; read.range.len() as usize];
            let size = (bytes.len() as u32).saturating_sub(4);
            bytes[..4].copy_from_slice(&size.to_be_bytes());
            rewrite.push(&bytes, &mut out).unwrap();
        }
        rewrite.finish(&mut out).unwrap();
        assert_eq!(len, Some(out.len() as u64));
        out
    }

    /// Checks that continuity counters of packets with payload continue over consecutive segments.
    fn assert_continuous(stream: &[u8]) {
        let mut last = std::collections::HashMap::new();
        for packet in stream.chunks(188) {
            let pid = u16::from_be_bytes([packet[1], packet[2]]) & 0x1fff;
            let counter = packet[3] & 15;
            if packet[3] & 0x10 != 0
                && let Some(before) = last.insert(pid, counter)
            {
                assert_eq!((before + 1) % 16, counter, "pid {pid}");
            }
        }
        assert!(last.contains_key(&VIDEO_PID) && last.contains_key(&0));
    }

    /// Returns a film whose samples are all apart, so that each takes a read of its own.
    fn film(audio_frames: u32) -> Presentation {
        presentation(vec![movie(vec![
            video(table(&reordered(250, 25, 1000), 48, 1), 12_800, Vec::new()),
            audio(table(&frames(audio_frames), 1 << 24, 1), "eng", Vec::new()),
        ])])
    }

    #[test]
    fn counters_go_on_from_segment_to_segment() {
        let p = film(468);
        let v = p.track("v1").unwrap();
        assert_eq!(muxed_audio(&p).unwrap().name(), "a1");
        let segments = (1..=v.segment_count()).map(|n| run(segment(&p, v, n).unwrap().unwrap()));
        assert_continuous(&segments.flatten().collect::<Vec<u8>>());
    }

    #[test]
    fn clips_that_were_joined_have_their_own_parameter_sets() {
        let track = video(table(&reordered(250, 25, 1000), 48, 1), 12_800, Vec::new());
        let p = presentation(vec![movie(vec![joined(track, 50, 130)])]);
        let v = p.track("v1").unwrap();
        let all: Vec<u8> = (1..=v.segment_count()).flat_map(|n| run(segment(&p, v, n).unwrap().unwrap())).collect();
        assert_continuous(&all);
        let count = |set: &[u8]| all.windows(set.len()).filter(|bytes| *bytes == set).count();
        // Key frames 0 and 25, then four of the second clip, then sample 130 and four key frames.
        assert_eq!((count(&[0, 0, 0, 1, 0x68, 0xee]), count(&[0, 0, 0, 1, 0x68, 0xef, 1, 2, 3, 4, 5, 6, 7])), (7, 4));
    }

    #[test]
    fn bandwidth_is_that_of_the_segments() {
        let p = film(468);
        let v = p.track("v1").unwrap();
        let bytes: u64 = (1..=v.segment_count()).map(|n| run(segment(&p, v, n).unwrap().unwrap()).len() as u64).sum();
        let average = bandwidth(&p, v).average;
        assert!(average.abs_diff(bytes * 8 / 10) <= 2, "{average} for {bytes} bytes in 10 s");
    }

    #[test]
    fn audio_that_goes_on_for_long_is_not_muxed() {
        let p = film(468 * 3);
        assert!(muxed_audio(&p).is_none());
        let a = p.track("a1").unwrap();
        assert!(a.segment_count() > p.track("v1").unwrap().segment_count());
        assert!(segment(&p, a, a.segment_count()).unwrap().is_some());
        assert!(segment(&p, a, a.segment_count() + 1).unwrap().is_none());
        assert!(segment(&p, a, 0).unwrap().is_none());
    }

    #[test]
    fn audio_that_ends_early_leaves_the_rest_to_the_video() {
        let p = film(100);
        let v = p.track("v1").unwrap();
        assert_eq!(p.track("a1").unwrap().segment_count(), 1);
        let segments = (1..=v.segment_count()).map(|n| run(segment(&p, v, n).unwrap().unwrap()));
        assert_continuous(&segments.flatten().collect::<Vec<u8>>());
    }
}
