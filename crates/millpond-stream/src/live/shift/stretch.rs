//! The segments of a time, for readers of the past.

use super::{
    State, TimeShift,
    entry::{StoredEpoch, StoredSegment, StoredTrack, time},
};
use millpond_package::live::LiveFormat;
use millpond_store::{
    Chunk,
    ring::{Outcome, Queued, RingError, RingPlace},
};
use std::{io, os::unix::fs::FileExt as _, time::Duration};

/// Why a clip of the past can't be made.
#[derive(Debug, thiserror::Error)]
pub enum NoClip {
    /// Nothing of that time is on the disk.
    #[error("nothing of that time is kept")]
    NotKept,
    /// The codec or its configuration changes within the clip.
    #[error("the formats change at {}: ask for a clip before or after that", shown(*.at))]
    Changed {
        /// Wall time of the change, since the Unix epoch.
        at: Duration,
    },
    /// Fragmented MP4 can carry none of its tracks.
    #[error("no track that fragmented MP4 can carry")]
    Unfit,
    /// A segment was removed from the disk while it was being read.
    #[error("segment {segment} was removed from the disk")]
    Evicted {
        /// Number of the segment.
        segment: u64,
    },
    /// The disk failed.
    #[error("the disk failed: {0}")]
    Disk(#[from] RingError),
    /// A file could not be read.
    #[error("reading the past of the stream: {0}")]
    Unreadable(#[from] io::Error),
}

fn shown(wall: Duration) -> String {
    let mut text = String::new();
    millpond_utc::push(&mut text, wall);
    text
}

/// A segment of the past, as a reader gets it.
#[derive(Debug)]
pub(crate) struct SegmentParts {
    pub(crate) number: u64,
    /// Run and number of its epoch.
    pub(crate) epoch: (u64, u32),
    /// Stream time of its beginning.
    pub(crate) start: Duration,
    pub(crate) is_independent: bool,
    /// Places of the parts of each track; none where the track is a gap.
    pub(crate) tracks: Vec<Vec<RingPlace>>,
}

impl SegmentParts {
    fn of(segment: &StoredSegment) -> Self {
        let place = |queued: &Queued| match queued.outcome() {
            Outcome::Written(place) => Some(place),
            Outcome::Waiting | Outcome::Lost => None,
        };
        let places = |track: &StoredTrack| match track.waiting.is_empty() {
            true => track.places.clone(),
            false => track.waiting.iter().map(place).collect::<Option<_>>().unwrap_or_default(),
        };
        Self {
            number: segment.number,
            epoch: segment.key(),
            start: segment.start,
            is_independent: segment.is_independent,
            tracks: segment.tracks.iter().map(places).collect(),
        }
    }

    /// Whether decoding of a track can begin with it.
    pub(crate) fn begins(&self, track: usize) -> bool {
        self.is_independent && self.tracks.get(track).is_some_and(|places| !places.is_empty())
    }
}

/// Playlists tell whole milliseconds, rounded down, so times are compared as such.
pub(crate) const fn millis(wall: Duration) -> u128 {
    wall.as_millis()
}

impl State {
    /// Wall time at which a segment ends, as far as its closed tracks tell.
    pub(super) fn end_of(&self, segment: &StoredSegment) -> Duration {
        let epoch = self.epochs.get(&segment.key());
        let lasts = |(place, track): (usize, &StoredTrack)| {
            let scale = epoch?.formats.get(place)?.as_ref()?.track.timescale;
            Some(time(track.closed?.1, scale))
        };
        let longest = segment.tracks.iter().enumerate().filter_map(lasts).max();
        segment.wall.saturating_add(longest.unwrap_or_default())
    }
}

impl TimeShift {
    /// Returns the numbers of the first and the last segment with media from `start` to `end`, wall times since the Unix epoch.
    ///
    /// # Errors
    /// [`NoClip::NotKept`].
    pub(crate) fn between(&self, start: Duration, end: Duration) -> Result<(u64, u64), NoClip> {
        let state = self.lock();
        let segments = &state.segments;
        let mut first = segments.partition_point(|of| millis(of.wall) <= millis(start)).saturating_sub(1);
        // The time may lie in a hole behind that segment.
        first += usize::from(segments.get(first).is_some_and(|of| millis(state.end_of(of)) <= millis(start)));
        let last = segments.partition_point(|of| millis(of.wall) < millis(end)).checked_sub(1);
        let last = last.filter(|last| *last >= first).ok_or(NoClip::NotKept)?;
        let number = |place: usize| segments.get(place).map(|of| of.number).ok_or(NoClip::NotKept);
        Ok((number(first)?, number(last)?))
    }

    /// Whether all segments that begin before a wall time are complete and on the disk, or lost, and a later one has begun.
    pub(crate) fn is_past(&self, end: Duration) -> bool {
        let state = self.lock();
        let is_later = |segment: &StoredSegment| millis(segment.wall) >= millis(end);
        let is_settled = |segment: &StoredSegment| {
            let waits = |queued: &Queued| queued.outcome() == Outcome::Waiting;
            segment.tracks.iter().all(|track| track.closed.is_some() && !track.waiting.iter().any(waits))
        };
        let mut newest = state.segments.iter().rev().peekable();
        newest.peek().is_some_and(|newest| is_later(newest))
            && newest.find(|segment| !is_later(segment)).is_none_or(is_settled)
    }

    /// Returns the first segment with this number or a later one.
    pub(crate) fn segment_from(&self, number: u64) -> Option<SegmentParts> {
        let state = self.lock();
        let place = state.segments.partition_point(|segment| segment.number < number);
        state.segments.get(place).map(SegmentParts::of)
    }

    /// Number of the oldest segment.
    pub(crate) fn oldest(&self) -> Option<u64> {
        self.lock().segments.front().map(|segment| segment.number)
    }

    /// Returns an epoch of a run.
    pub(super) fn epoch(&self, key: (u64, u32)) -> Option<StoredEpoch> {
        self.lock().epochs.get(&key).cloned()
    }

    /// Returns the formats of the tracks from one segment to another.
    ///
    /// # Errors
    /// [`NoClip::Changed`].
    pub(crate) fn formats(&self, first: u64, last: u64) -> Result<Vec<Option<LiveFormat>>, NoClip> {
        let state = self.lock();
        let (mut formats, mut known) = (Vec::new(), None);
        let inside = state.segments.iter().filter(|of| (first..=last).contains(&of.number));
        for segment in inside {
            let key = segment.key();
            if known.replace(key) == Some(key) {
                continue;
            }
            let Some(epoch) = state.epochs.get(&key) else { continue };
            formats.resize(formats.len().max(epoch.formats.len()), None);
            for (known, format) in formats.iter_mut().zip(&epoch.formats) {
                match (&known, format) {
                    (Some(known), Some(format)) if !is_same(known, format) => {
                        return Err(NoClip::Changed { at: segment.wall });
                    }
                    (None, Some(format)) => *known = Some(format.clone()),
                    _ => {}
                }
            }
        }
        Ok(formats)
    }

    /// Reads a payload. It blocks the thread.
    ///
    /// # Errors
    /// It was removed, or the disk failed.
    pub(crate) fn bytes(&self, place: RingPlace) -> Result<Vec<u8>, NoClip> {
        match self.ring.read(place)? {
            Chunk::Bytes(bytes) => Ok(bytes.into()),
            Chunk::File { file, range, .. } => {
                let mut bytes = vec![0; place.length() as usize];
                file.read_exact_at(&mut bytes, range.start)?;
                Ok(bytes)
            }
        }
    }
}

/// Whether samples of two formats can follow each other without another init segment. The index of the data reference (ISO/IEC
/// 14496-12 8.5.2.2) says nothing.
fn is_same(one: &LiveFormat, other: &LiveFormat) -> bool {
    let entry = |format: &LiveFormat| {
        let mut entry = format.track.sample_entry.clone();
        entry.get_mut(14..16).into_iter().flatten().for_each(|byte| *byte = 0);
        entry
    };
    entry(one) == entry(other)
}
