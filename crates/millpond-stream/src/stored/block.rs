//! Frames of a short time, loaded together and shared.

use super::{BlockLength, MediaReader, StoredMedia};
use crate::{Frame, Run};
use bytes::Bytes;
use millpond_media::Importance;
use millpond_package::{ObjectIndex, ObjectRange, PresentedTrack, timeline::Timed};
use millpond_rtp::payload::Conversion;
use millpond_store::{Hold, OriginError};
use std::{collections::VecDeque, ops::Range, sync::Arc, time::Duration};

/// Most bytes of a block. For 200 ms these are 671 Mbit/s.
const BYTES: u64 = 16 << 20;
/// Most frames of a track in 200 ms: 20,480 a second. Files that a broken writer made have all sound in an instant.
const FRAMES: usize = 4096;
/// Ranges with a smaller gap between them are read as one.
const GAP: u64 = 16 << 10;
/// Samples that are looked up at once.
const LOOK_UP: u32 = 16;

/// Why frames can't be loaded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadError {
    /// The origin's fault.
    #[error(transparent)]
    Origin(#[from] OriginError),
    /// The server has no room for the work now.
    #[error("{0}")]
    Refused(Box<dyn std::error::Error + Send + Sync>),
    /// The asset is too dense to be sent.
    #[error("at {at:.1?}: {bytes} bytes of one block, expected at most {BYTES}")]
    TooDense {
        /// Decode time of the frame that exceeds the limit.
        at: Duration,
        /// Bytes up to that frame.
        bytes: u64,
    },
}

impl LoadError {
    /// Describes the error for viewers: as it is, but for the location of the origin.
    pub(crate) fn for_viewers(&self) -> String {
        match self {
            Self::Origin(error) => error.for_viewers(),
            error => error.to_string(),
        }
    }
}

/// The frames of some tracks of an asset that are due within one [block length](BlockLength).
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) frames: Run,
    /// The next sample of each track after it.
    pub(crate) next: Vec<u32>,
    /// The number of the next block that has frames; `None` at the end.
    pub(crate) following: Option<u64>,
    /// Bytes that it counts for in memory.
    pub(crate) weight: u64,
    /// Memory of the bytes that were read; `None` where none were.
    pub(crate) hold: Option<Arc<Hold>>,
}

/// Tracks of an asset, each at its next sample.
pub(crate) struct Lanes<'a> {
    lanes: Vec<Lane<'a>>,
    length: BlockLength,
}

struct Lane<'a> {
    track: &'a PresentedTrack,
    /// Index in the presentation's tracks.
    number: u16,
    timescale: u32,
    conversion: Conversion,
    /// The next sample to look up.
    next: u32,
    waiting: VecDeque<Timed>,
    /// Frames in the block that is planned.
    taken: usize,
}

/// Converts ticks to a time. Times before the beginning become 0.
pub(crate) fn seconds(ticks: i64, timescale: u32) -> Duration {
    let nanos = i128::from(ticks.max(0)) * 1_000_000_000 / i128::from(timescale.max(1));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

impl<'a> Lanes<'a> {
    /// Begins at a sample of each track. `tracks` are indexes of the presentation's tracks.
    pub(crate) fn new(media: &'a StoredMedia, length: BlockLength, tracks: &[u16], next: &[u32]) -> Self {
        let lane = |(number, next): (&u16, &u32)| {
            let track = media.track(*number)?;
            let source = track.source_track()?;
            let (timescale, conversion) = (source.timescale.get(), Conversion::of(&source.codec));
            let (number, next, waiting) = (*number, *next, VecDeque::new());
            Some(Lane { track, number, timescale, conversion, next, waiting, taken: 0 })
        };
        Self { lanes: tracks.iter().zip(next).filter_map(lane).collect(), length }
    }

    /// The number of the block of the sample that is due next.
    pub(crate) fn following(&mut self) -> Option<u64> {
        self.lanes.iter_mut().filter_map(Lane::due).min().map(|due| self.length.block_of(due))
    }

    /// The next sample of each track.
    pub(crate) fn next(&self) -> Vec<u32> {
        self.lanes.iter().map(|lane| lane.waiting.front().map_or(lane.next, |timed| timed.ordinal)).collect()
    }

    /// Takes all samples that are due before the end of a block. Those of a track beyond the limit are left out.
    ///
    /// # Errors
    /// They have too many bytes.
    pub(crate) fn plan(&mut self, block: u64) -> Result<PlannedBlock, LoadError> {
        let until = self.length.begin_of(block.saturating_add(1));
        let mut frames: Vec<Planned> = Vec::new();
        let mut bytes: u64 = 0;
        let most = FRAMES.saturating_mul(self.length.periods() as usize);
        let mut left_out = 0;
        self.lanes.iter_mut().for_each(|lane| lane.taken = 0);
        loop {
            let first = self.lanes.iter_mut().filter_map(|lane| Some((lane.due()?, lane))).min_by_key(|(due, _)| *due);
            let Some((due, lane)) = first.filter(|(due, _)| *due < until) else { break };
            let Some(timed) = lane.waiting.pop_front() else { break };
            lane.taken += 1;
            if lane.taken > most {
                left_out += 1;
                continue;
            }
            let Some(range) = lane.track.place(&timed.sample) else { continue };
            let sets = lane.track.sets_of(&timed.sample);
            bytes = bytes.saturating_add(range.range.len() + sets.len() as u64);
            if bytes > BYTES {
                return Err(LoadError::TooDense { at: due, bytes });
            }
            let (is_sync, conversion) = (timed.sample.sync, lane.conversion);
            let (track, number) = (lane.number, timed.ordinal);
            frames.push(Planned { track, number, due, pts: timed.pts, is_sync, range, conversion, sets });
        }
        let spans = spans(&frames);
        Ok(PlannedBlock { frames, spans, next: self.next(), following: self.following(), left_out })
    }
}

impl Lane<'_> {
    /// Due time of the next sample.
    fn due(&mut self) -> Option<Duration> {
        if self.waiting.is_empty() {
            self.waiting.extend(self.track.samples_of(self.next..self.next.saturating_add(LOOK_UP)));
            self.next = self.next.saturating_add(self.waiting.len() as u32);
        }
        Some(seconds(self.waiting.front()?.dts, self.timescale))
    }
}

/// A block whose bytes were not read yet.
pub(crate) struct PlannedBlock {
    frames: Vec<Planned>,
    /// The byte ranges to read, by object.
    pub(crate) spans: Vec<(ObjectIndex, Range<u64>)>,
    next: Vec<u32>,
    following: Option<u64>,
    /// Number of frames beyond the limit.
    pub(crate) left_out: u64,
}

/// A frame whose bytes were not read yet.
pub(crate) struct Planned {
    pub(crate) track: u16,
    pub(crate) number: u32,
    pub(crate) due: Duration,
    pub(crate) pts: i64,
    pub(crate) is_sync: bool,
    pub(crate) range: ObjectRange,
    pub(crate) conversion: Conversion,
    /// Parameter sets that precede its bytes.
    pub(crate) sets: Bytes,
}

impl PlannedBlock {
    /// Makes a block of one frame.
    pub(crate) fn single(frame: Planned) -> Self {
        let frames = vec![frame];
        Self { spans: spans(&frames), frames, next: Vec::new(), following: None, left_out: 0 }
    }

    /// Reads the bytes.
    pub(crate) async fn read(self, reader: &MediaReader, media: &StoredMedia) -> Result<Block, OriginError> {
        let hold = Arc::new(reader.holds.take(self.spans.iter().map(|(_, range)| range.end - range.start).sum()));
        let mut read = Vec::with_capacity(self.spans.len());
        for (index, range) in &self.spans {
            let Some(object) = media.object(*index) else { continue };
            let bytes = reader.read(object, range.clone(), &hold).await?;
            read.push(Span { object: *index, start: range.start, bytes });
        }
        let copied = self.frames.iter().filter(|planned| planned.is_copied());
        let copied: u64 = copied.map(|planned| planned.range.range.len() + planned.sets.len() as u64).sum();
        let bytes = copied + read.iter().map(|span| span.bytes.len() as u64).sum::<u64>();
        let weight = bytes + (self.frames.len() * size_of::<Frame>() + size_of::<Block>()) as u64;
        let frames = self.frames.iter().map(|planned| planned.frame(&read)).collect();
        Ok(Block { frames, next: self.next, following: self.following, weight, hold: Some(hold) })
    }
}

/// Bytes of an object that were read.
struct Span {
    object: ObjectIndex,
    start: u64,
    bytes: Bytes,
}

impl Planned {
    /// Whether the frame's bytes are a copy of those that were read.
    fn is_copied(&self) -> bool {
        self.conversion != Conversion::None || !self.sets.is_empty()
    }

    fn frame(&self, spans: &[Span]) -> Frame {
        let range = self.range.range;
        let within = |span: &&Span| {
            span.object == self.range.object
                && span.start <= range.start
                && range.end <= span.start + span.bytes.len() as u64
        };
        let data = spans.iter().find(within).map(|span| {
            let from = (range.start - span.start) as usize;
            span.bytes.slice(from..from + range.len() as usize)
        });
        let mut data = self.conversion.apply(data.unwrap_or_default());
        if !self.sets.is_empty() {
            data = [&self.sets[..], &data].concat().into();
        }
        let Self { track, number, due, pts, is_sync, .. } = *self;
        Frame { track, number, due, pts, epoch: 0, is_sync, importance: Importance::BASE, data }
    }
}

/// Returns the ranges of the frames. Ranges near each other become one.
fn spans(frames: &[Planned]) -> Vec<(ObjectIndex, Range<u64>)> {
    let mut ranges: Vec<_> =
        frames.iter().map(|frame| (frame.range.object, frame.range.range.start, frame.range.range.end)).collect();
    ranges.sort_unstable();
    let mut spans: Vec<(ObjectIndex, Range<u64>)> = Vec::new();
    for (object, start, end) in ranges {
        match spans.last_mut() {
            Some((same, span)) if *same == object && start <= span.end + GAP => span.end = span.end.max(end),
            _ => spans.push((object, start..end)),
        }
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_become_times() {
        assert_eq!(seconds(-5, 1000), Duration::ZERO);
        assert_eq!(seconds(90_000 * 3600 * 24, 90_000), Duration::from_secs(3600 * 24));
    }

    #[test]
    fn ranges_near_each_other_are_read_as_one() {
        let planned = |object, start, end| Planned {
            track: 0,
            number: 0,
            due: Duration::ZERO,
            pts: 0,
            is_sync: true,
            range: ObjectRange { object: ObjectIndex(object), range: millpond_media::units::ByteRange { start, end } },
            conversion: Conversion::None,
            sets: Bytes::new(),
        };
        let frames = [planned(1, 0, 5), planned(0, 100, 200), planned(0, 0, 50), planned(0, GAP + 201, GAP + 300)];
        let expected = [(0, 0..200), (0, GAP + 201..GAP + 300), (1, 0..5)];
        assert_eq!(spans(&frames), expected.map(|(object, range)| (ObjectIndex(object), range)));
    }
}
