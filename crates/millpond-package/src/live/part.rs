//! Parts: one movie fragment of one track.

use crate::fmp4::{FragmentSample, TrackRun, fragment_head};
use bytes::Bytes;
use std::sync::Arc;

/// ID of the only track of a live init segment and its parts.
pub const TRACK_ID: u32 = 1;

/// Number of a segment: its HLS media sequence number (RFC 8216 4.3.3.2), common to all tracks of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentNumber(pub u64);

impl SegmentNumber {
    /// Returns the number of the following segment.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

/// One sample of a running stream, with times in ticks of its track.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveSample {
    /// Decode time as stream time.
    pub dts: i64,
    /// Presentation time as stream time.
    pub pts: i64,
    /// Whether decoding can begin with it.
    pub is_sync: bool,
    /// Its bytes as in the samples of an MP4 file.
    pub data: Bytes,
}

/// One `moof` and one `mdat` of one track.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Index of its track.
    pub track: usize,
    /// Number of its segment.
    pub segment: SegmentNumber,
    /// Index in its segment, from 0.
    pub index: u16,
    /// Presentation time of its beginning as stream time, in ticks of the track.
    pub start: i64,
    /// Decode time of its first sample as stream time, in ticks of the track.
    pub decode_time: i64,
    /// Sum of the durations of its samples in ticks.
    pub duration: i64,
    /// Whether it contains a sample with which decoding can begin.
    pub is_independent: bool,
    /// Durations, sizes and offsets of its samples.
    pub rows: Box<[FragmentSample]>,
    /// `moof` and the header of `mdat`, then each sample.
    pub bytes: Arc<[Bytes]>,
}

/// Position of a part in its stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct PartPlace {
    pub(super) track: usize,
    pub(super) segment: SegmentNumber,
    pub(super) index: u16,
    pub(super) start: i64,
    /// Decode time of the first sample in ticks.
    pub(super) decode_time: i64,
    /// Sequence number of the fragment.
    pub(super) sequence: u32,
}

impl Part {
    /// Creates the part of samples in decode order.
    pub(super) fn new(place: PartPlace, samples: Vec<(FragmentSample, Bytes)>) -> Self {
        let (rows, data): (Vec<_>, Vec<_>) = samples.into_iter().unzip();
        let decode_time = u64::try_from(place.decode_time).unwrap_or(0);
        let run = TrackRun { id: TRACK_ID, decode_time, samples: rows };
        let head = fragment_head(place.sequence, std::slice::from_ref(&run));
        let rows = run.samples.into_boxed_slice();
        Self {
            track: place.track,
            segment: place.segment,
            index: place.index,
            start: place.start,
            decode_time: place.decode_time,
            duration: rows.iter().map(|row| i64::from(row.duration)).fold(0, i64::saturating_add),
            is_independent: rows.iter().any(|row| row.is_sync),
            rows,
            bytes: std::iter::once(head).chain(data).collect(),
        }
    }

    /// Length in bytes.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a part has at least a head")]
    pub fn len(&self) -> u64 {
        self.bytes.iter().map(|bytes| bytes.len() as u64).sum()
    }

    /// Bytes of memory that it holds.
    #[must_use]
    pub fn heap_bytes(&self) -> u64 {
        let lists = self.rows.len() * size_of::<FragmentSample>() + self.bytes.len() * size_of::<Bytes>();
        (size_of::<Self>() + lists) as u64 + self.len()
    }
}
