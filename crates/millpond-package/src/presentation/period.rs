//! Periods of an asset's timeline: stretches in which no track needs another decoder.
//!
//! Each period is a presentation with formats, init segments and segments of its own. Times go on from period to period. HLS has
//! a discontinuity and another map where a period begins, and DASH has a `Period`. In live streams an epoch is the same.

use crate::presentation::{Presentation, track::PresentedTrack};

/// One of the periods of an asset that has several.
#[derive(Debug)]
pub struct Period {
    /// Number of the period, from 1.
    pub(crate) number: usize,
    /// Presentation time at which the period begins, in nanoseconds; 0 for the first period.
    pub(crate) start: i64,
    /// The tracks of the period. Their names are the asset's names with the period's number appended, such as `v1p2`.
    pub(crate) presentation: Presentation,
}

impl Period {
    /// Returns the part of a track of the asset that is in the period; `None` where the track has no sample in it.
    pub(crate) fn part_of(&self, track: &PresentedTrack) -> Option<&PresentedTrack> {
        let is_part = |part: &&PresentedTrack| part.name.rsplit_once(MARK).is_some_and(|(of, _)| of == track.name);
        self.presentation.tracks.iter().find(is_part)
    }
}

/// Character between the name of a track and the number of a period.
const MARK: char = 'p';

/// Returns the name of the whole track, where that of its part in a period is `part`.
pub(crate) fn whole(part: &str) -> &str {
    part.rsplit_once(MARK).map_or(part, |(of, _)| of)
}

/// Returns the name of the part of a track in period `number`.
pub(crate) fn name(track: &str, number: usize) -> String {
    format!("{track}{MARK}{number}")
}
