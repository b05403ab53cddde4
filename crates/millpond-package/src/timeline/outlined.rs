//! Tracks whose index has the times of all fragments, and the samples of the first one only.
//!
//! Segments are made of whole fragments. Their boundaries are those of the index of fragments, whether or not samples of other
//! fragments were read, so that manifests never change. Ordinals of such a track's [`Segments`] number fragments.

use crate::timeline::{
    Timeline,
    scan::Facts,
    segmentation::{Segments, SyncPoint},
};
use millpond_media::{ByteRange, FragmentTimes, Movie, Outline, Timescale};
use std::ops::Range;

/// The fragments of one track on its timeline.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outlined<'a> {
    outline: &'a Outline,
    times: &'a FragmentTimes,
    /// Presentation time minus composition time.
    shift: i64,
    may_pause: bool,
}

impl<'a> Outlined<'a> {
    /// Returns the fragments of the track at `place`; `None` where the index has all samples.
    pub(crate) fn of(movie: &'a Movie, place: usize, timeline: &Timeline) -> Option<Self> {
        let outline = movie.outline.as_deref()?;
        let may_pause = outline.may_pause(place);
        Some(Self { outline, times: outline.times(place)?, shift: timeline.first_shift()?, may_pause })
    }

    /// Number of fragments.
    pub(crate) fn len(&self) -> u32 {
        self.outline.len()
    }

    /// Largest difference between a boundary and the first sample behind it, in ticks.
    pub(crate) fn tolerance(&self) -> i64 {
        self.times.tolerance()
    }

    /// Whether a segment may begin with a pause, or have no samples.
    pub(crate) fn may_pause(&self) -> bool {
        self.may_pause
    }

    /// Returns the bytes of consecutive fragments.
    pub(crate) fn range(&self, fragments: &Range<u32>) -> Option<ByteRange> {
        self.outline.range(fragments)
    }

    /// Returns the facts of the track. `first` are those of the first fragment.
    pub(crate) fn facts(&self, first: Facts) -> Facts {
        first.of_beginning(self.end(), self.bytes(&(0..self.len())))
    }

    /// Returns the fragments with which decoding can begin, and the first one, which is presented from `start` on.
    pub(crate) fn points(self, start: i64) -> impl Iterator<Item = SyncPoint> + 'a {
        let fragments = (0..self.len()).filter(move |fragment| *fragment == 0 || self.times.is_entry(*fragment));
        fragments.map(move |ordinal| SyncPoint {
            ordinal,
            time: if ordinal == 0 { start } else { self.time(ordinal) },
            bytes: self.bytes(&(0..ordinal)),
            is_open: ordinal > 0 && self.times.is_open(),
        })
    }

    /// Cuts the track at the fragments that are nearest to `boundaries`. Returns the segments, and the bytes of each.
    pub(crate) fn cut(&self, boundaries: &[i64], start: i64, timescale: Timescale) -> (Segments, Vec<u64>) {
        let (mut first, mut time) = (vec![0], vec![start.max(0)]);
        let mut next = 1;
        for boundary in boundaries {
            while next + 1 < self.len() && self.time(next + 1).abs_diff(*boundary) < self.time(next).abs_diff(*boundary)
            {
                next += 1;
            }
            let is_behind = next < self.len() && time.last().is_some_and(|last| *last < self.time(next));
            let is_nearer_to_end = self.end().abs_diff(*boundary) < self.time(next).abs_diff(*boundary);
            if !is_behind || is_nearer_to_end {
                continue;
            }
            first.push(next);
            time.push(self.time(next));
            next += 1;
        }
        time.push(self.end().max(time.last().map_or(1, |last| last.saturating_add(1))));
        first.push(self.len());
        let bytes = first.windows(2).map(|pair| self.bytes(&(pair[0]..pair[1]))).collect();
        (Segments::new(timescale, first, time), bytes)
    }

    /// Presentation time of the end of the last fragment.
    pub(crate) fn end(&self) -> i64 {
        self.time(self.len())
    }

    fn time(&self, fragment: u32) -> i64 {
        let time = self.times.times().get(fragment as usize).or(self.times.times().last()).copied();
        time.unwrap_or(0).saturating_add(self.shift)
    }

    fn bytes(&self, fragments: &Range<u32>) -> u64 {
        self.times.share(self.outline.bytes(fragments))
    }
}
