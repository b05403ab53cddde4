//! The fragments of an object whose samples are read when they are needed.

use crate::units::ByteRange;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Denominator of [`FragmentTimes::share`].
const WHOLE: u64 = 1 << 16;

/// A table of the fragments of an object, made of its index of fragments (`sidx`, `mfra`) or of its cues (Matroska). The samples of
/// a fragment are read together with its bytes, by a [`FragmentLoader`](crate::FragmentLoader).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outline {
    /// Facts by which fragments are read.
    pub(crate) form: Form,
    /// Offset of each fragment, and of the end of the last.
    pub(crate) offsets: Vec<u64>,
    /// Times of each track of the movie, in the same order.
    pub(crate) tracks: Vec<FragmentTimes>,
}

/// The form of fragments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Form {
    Boxes(Boxes),
    Clusters(Clusters),
}

/// Facts of a file in ISO base media format.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Boxes {
    /// The box with the track headers (`moov`).
    pub(crate) header: Vec<u8>,
    pub(crate) header_offset: u64,
    pub(crate) object_len: u64,
    /// Whether the header describes the samples of the first fragment.
    pub(crate) has_header_samples: bool,
}

/// Facts of a Matroska file. A fragment begins with a frame that a cue names, and a cluster before it or at it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Clusters {
    /// Nanoseconds of a tick of the segment.
    pub(crate) scale: u64,
    /// Number of the track whose frames the cues name.
    pub(crate) track: u64,
    /// Time of the first frame of each fragment, in ticks of the segment.
    pub(crate) cues: Vec<i64>,
    /// Offset of the cluster with the first frame of each fragment. It may begin with frames of the fragment before.
    pub(crate) starts: Vec<u64>,
    /// Bytes behind the place of a first frame in which it is found.
    pub(crate) margin: u64,
    /// End of the segment.
    pub(crate) end: u64,
    /// Number of each track of the movie, and nanoseconds of a frame where these are stated.
    pub(crate) tracks: Vec<(u64, Option<u64>)>,
}

/// Times of the fragments of one track, in ticks of the track, before edits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FragmentTimes {
    /// Least composition time of each fragment, and the end of the last.
    pub(crate) times: Vec<i64>,
    /// Fragments after the first with which decoding can't begin, in order.
    pub(crate) no_entries: Vec<u32>,
    /// Whether pictures of a fragment may need pictures of the fragment before.
    pub(crate) is_open: bool,
    /// Largest difference between a stated time and that of the samples.
    pub(crate) tolerance: i64,
    /// The track's part of the bytes of fragments, in parts of [`WHOLE`].
    pub(crate) share: u64,
}

impl Outline {
    /// Number of fragments: two at least.
    #[must_use]
    pub fn len(&self) -> u32 {
        u32::try_from(self.offsets.len().saturating_sub(1)).unwrap_or(u32::MAX)
    }

    /// Whether there is no fragment.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes that are read for consecutive fragments; `None` where there are no such ones.
    #[must_use]
    pub fn range(&self, fragments: &Range<u32>) -> Option<ByteRange> {
        let at = |fragment: u32| self.offsets.get(fragment as usize).copied();
        (fragments.start < fragments.end).then_some(())?;
        match &self.form {
            Form::Boxes(_) => Some(ByteRange::new(at(fragments.start)?, at(fragments.end)?)),
            Form::Clusters(clusters) => {
                let start = *clusters.starts.get(fragments.start as usize)?;
                Some(ByteRange::new(start, at(fragments.end)?.saturating_add(clusters.margin).min(clusters.end)))
            }
        }
    }

    /// Number of bytes of consecutive fragments; 0 where there are no such ones.
    #[must_use]
    pub fn bytes(&self, fragments: &Range<u32>) -> u64 {
        let at = |fragment: u32| self.offsets.get(fragment as usize).copied();
        let (start, end) = (at(fragments.start), at(fragments.end));
        start.zip(end).map_or(0, |(start, end)| end.saturating_sub(start))
    }

    /// Returns the times of the track at `place` in the movie.
    #[must_use]
    pub fn times(&self, place: usize) -> Option<&FragmentTimes> {
        self.tracks.get(place)
    }

    /// Whether the track at `place` may begin late in a fragment, or have no samples there. Matroska's cues have the times of one track,
    /// and other tracks may pause.
    #[must_use]
    pub fn may_pause(&self, place: usize) -> bool {
        match &self.form {
            Form::Boxes(_) => false,
            Form::Clusters(clusters) => clusters.tracks.get(place).is_some_and(|(number, _)| *number != clusters.track),
        }
    }

    /// Bytes of heap held.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        let of_track = |track: &FragmentTimes| {
            size_of::<FragmentTimes>() + track.times.capacity() * 8 + track.no_entries.capacity() * 4
        };
        let tracks: usize = self.tracks.iter().map(of_track).sum();
        let form = match &self.form {
            Form::Boxes(boxes) => boxes.header.capacity(),
            Form::Clusters(clusters) => {
                (clusters.cues.capacity() + clusters.starts.capacity()) * 8 + clusters.tracks.capacity() * 24
            }
        };
        size_of::<Self>() + form + self.offsets.capacity() * 8 + tracks
    }
}

impl FragmentTimes {
    /// Least composition time of each fragment, and the end of the last.
    #[must_use]
    pub fn times(&self) -> &[i64] {
        &self.times
    }

    /// Whether decoding can begin with a fragment.
    #[must_use]
    pub fn is_entry(&self, fragment: u32) -> bool {
        self.no_entries.binary_search(&fragment).is_err()
    }

    /// Whether pictures of a fragment may need pictures of the fragment before.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.is_open
    }

    /// Largest difference between a stated time and that of the samples, in ticks.
    #[must_use]
    pub const fn tolerance(&self) -> i64 {
        self.tolerance
    }

    /// Returns the track's part of `bytes` of fragments, estimated from the first and the last fragment. The parts of all
    /// tracks are at least the whole.
    #[must_use]
    pub fn share(&self, bytes: u64) -> u64 {
        let part = u128::from(bytes) * u128::from(self.share);
        u64::try_from(part.div_ceil(u128::from(WHOLE))).unwrap_or(u64::MAX)
    }
}

/// Returns the share of a track that has `bytes` of `all` sample bytes.
pub(crate) fn share(bytes: u64, all: u64) -> u64 {
    let part = u128::from(bytes) * u128::from(WHOLE);
    u64::try_from(part.div_ceil(u128::from(all.max(1)))).unwrap_or(WHOLE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(share: u64) -> FragmentTimes {
        FragmentTimes { times: vec![0, 10, 20], no_entries: vec![1], is_open: false, tolerance: 1, share }
    }

    #[test]
    fn shares_of_all_tracks_cover_the_whole() {
        let (a, b) = (times(share(7, 10)), times(share(3, 10)));
        for bytes in [0, 1, 999, u64::MAX / 2] {
            assert!(a.share(bytes) + b.share(bytes) >= bytes);
            assert!(a.share(bytes) + b.share(bytes) <= bytes + bytes / 10_000 + 2);
        }
    }

    #[test]
    fn fragments_have_ranges() {
        let outline = Outline {
            form: Form::Boxes(Boxes {
                header: Vec::new(),
                header_offset: 0,
                object_len: 400,
                has_header_samples: false,
            }),
            offsets: vec![100, 200, 300],
            tracks: vec![times(1)],
        };
        assert_eq!(outline.len(), 2);
        assert_eq!(outline.range(&(0..2)), Some(ByteRange::new(100, 300)));
        assert_eq!((outline.range(&(1..1)), outline.range(&(1..3))), (None, None));
        assert!(outline.times(0).is_some_and(|times| times.is_entry(0) && !times.is_entry(1)));
    }
}
