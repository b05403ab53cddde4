//! The bytes that the beginning of an asset needs.

use crate::{
    object::ObjectIndex,
    plan::ObjectRange,
    presentation::{Presentation, track::PresentedTrack},
};
use millpond_media::units::ByteRange;

/// Ranges with a smaller gap between them are one: headers of fragments lie between samples.
const GAP: u64 = 64 << 10;
/// Most bytes before the first sample that are taken for the index of an object.
const INDEX: u64 = 64 << 20;

impl Presentation {
    /// Returns the ranges with the samples of the first `seconds` of all tracks, and with the bytes before the first sample of an
    /// object, which are its index as a rule. Ranges are in order and apart from each other. An object without samples, such as a subtitle file, is one range.
    /// The work is in proportion to the samples.
    #[must_use]
    pub fn opening(&self, seconds: f64) -> Vec<ObjectRange> {
        let mut ranges: Vec<_> = self.tracks().iter().flat_map(|track| of_track(track, seconds)).collect();
        ranges.sort_unstable_by_key(|range| (range.object.0, range.range.start));
        let mut joined: Vec<ObjectRange> = Vec::new();
        for next in ranges {
            match joined.last_mut().filter(|last| last.object == next.object) {
                Some(last) if next.range.start <= last.range.end.saturating_add(GAP) => {
                    last.range.end = last.range.end.max(next.range.end);
                }
                None if next.range.start <= INDEX => {
                    joined.push(ObjectRange { range: ByteRange::new(0, next.range.end), ..next });
                }
                _ => joined.push(next),
            }
        }
        joined
    }

    /// Returns the offset after the last sample of an object, in decode order of each track; `None` where it has no samples.
    #[must_use]
    pub fn media_end(&self, object: ObjectIndex) -> Option<u64> {
        let last = |track: &PresentedTrack| {
            let count = track.sample_count();
            let place = track.place(&track.samples_of(count.saturating_sub(1)..count).pop()?.sample)?;
            (place.object == object).then_some(place.range.end)
        };
        self.tracks().iter().filter_map(last).max()
    }
}

fn of_track(track: &PresentedTrack, seconds: f64) -> Vec<ObjectRange> {
    let Some(object) = track.object() else { return Vec::new() };
    if track.sample_count() == 0 {
        return vec![ObjectRange { object, range: ByteRange::new(0, u64::MAX) }];
    }
    let end = track.ordinal_at(seconds).unwrap_or(u32::MAX);
    track.samples_of(0..end).into_iter().filter_map(|timed| track.place(&timed.sample)).collect()
}
