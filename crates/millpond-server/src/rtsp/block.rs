//! Frames of a short time, as they are loaded together and shared.

use super::{cut::Cut, keys::Key, media::Media};
use crate::{library::Asset, work::PoolError};
use bytes::Bytes;
use millpond_graph::{Frame, Run};
use millpond_package::{ObjectIndex, ObjectRange, PresentedTrack, timeline::Timed};
use millpond_rtp::payload::Conversion;
use millpond_store::{Hold, OriginError};
use std::{collections::VecDeque, ops::Range, sync::Arc, time::Duration};

/// The most bytes and frames of a block: of 200 ms that is 671 Mbit/s, and 20,480 frames a second.
const BYTES: u64 = 16 << 20;
const FRAMES: usize = 4096;
/// Ranges with less than this between them are read as one.
const GAP: u64 = 16 << 10;
/// Samples looked up at once.
const BATCH: u32 = 16;

/// Why frames can't be loaded.
#[derive(Debug, thiserror::Error)]
pub(super) enum LoadError {
    /// The origin's fault.
    #[error(transparent)]
    Origin(#[from] OriginError),
    /// The server has no room for the work now.
    #[error(transparent)]
    Refused(#[from] PoolError),
    /// No stream that one would send.
    #[error("at {at:.1?}: {bytes} bytes in {frames} frames of one block, expected at most {BYTES} in {FRAMES}")]
    TooDense {
        /// Decode time of the frame that is too much.
        at: Duration,
        /// Bytes up to that.
        bytes: u64,
        /// Frames before it.
        frames: usize,
    },
}

/// Frames of some tracks of an asset that are due between two [cuts](Cut).
#[derive(Debug)]
pub(super) struct Block {
    pub(super) frames: Run,
    /// The next sample of each track behind it.
    pub(super) next: Vec<u32>,
    /// The block in which there is something next; nothing at the end.
    pub(super) following: Option<u64>,
    /// Bytes that it has.
    pub(super) weight: u64,
    /// Room for those that were read; nothing where there are none.
    pub(super) hold: Option<Arc<Hold>>,
}

/// Tracks on their way through an asset.
pub(super) struct Lanes<'a> {
    lanes: Vec<Lane<'a>>,
    cut: Cut,
}

struct Lane<'a> {
    track: &'a PresentedTrack,
    /// Place in the presentation's tracks.
    number: u16,
    timescale: u32,
    conversion: Conversion,
    object: ObjectIndex,
    /// The next sample to look up.
    next: u32,
    waiting: VecDeque<Timed>,
}

/// Ticks to time; what lies before the beginning is at the beginning.
pub(super) fn seconds(ticks: i64, timescale: u32) -> Duration {
    let nanos = i128::from(ticks.max(0)) * 1_000_000_000 / i128::from(timescale.max(1));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

impl<'a> Lanes<'a> {
    /// Tracks by their numbers in the presentation, each from a sample on.
    pub(super) fn new(asset: &'a Asset, cut: Cut, tracks: &[u16], next: &[u32]) -> Self {
        let lane = |(number, next): (&u16, &u32)| {
            let track = asset.presentation.tracks().get(usize::from(*number))?;
            let source = track.source_track()?;
            let (timescale, conversion) = (source.timescale.get(), Conversion::of(&source.codec));
            let object = track.object()?;
            Some(Lane { object, track, number: *number, timescale, conversion, next: *next, waiting: VecDeque::new() })
        };
        Self { lanes: tracks.iter().zip(next).filter_map(lane).collect(), cut }
    }

    /// The block of the sample that is due next.
    pub(super) fn following(&mut self) -> Option<u64> {
        self.lanes.iter_mut().filter_map(Lane::due).min().map(|due| self.cut.block_of(due))
    }

    /// The next sample of each track.
    pub(super) fn next(&self) -> Vec<u32> {
        self.lanes.iter().map(|lane| lane.waiting.front().map_or(lane.next, |timed| timed.ordinal)).collect()
    }

    /// Takes off what is due until the end of a block.
    ///
    /// # Errors
    /// It is more than a block may have.
    pub(super) fn gather(&mut self, block: u64) -> Result<Gathered, LoadError> {
        let until = self.cut.begin_of(block.saturating_add(1));
        let mut frames: Vec<Planned> = Vec::new();
        let mut bytes: u64 = 0;
        loop {
            let first = self.lanes.iter_mut().filter_map(|lane| Some((lane.due()?, lane))).min_by_key(|(due, _)| *due);
            let Some((due, lane)) = first.filter(|(due, _)| *due < until) else { break };
            let Some(timed) = lane.waiting.pop_front() else { break };
            let place = ObjectRange { object: lane.object, range: timed.sample.range };
            bytes = bytes.saturating_add(place.range.len());
            if bytes > BYTES || frames.len() >= FRAMES {
                return Err(LoadError::TooDense { at: due, bytes, frames: frames.len() });
            }
            let (is_sync, conversion) = (timed.sample.sync, lane.conversion);
            let (track, number) = (lane.number, timed.ordinal);
            frames.push(Planned { track, number, due, pts: timed.pts, is_sync, place, conversion });
        }
        let spans = spans(&frames);
        Ok(Gathered { frames, spans, next: self.next(), following: self.following() })
    }
}

impl Lane<'_> {
    /// When the next sample is due.
    fn due(&mut self) -> Option<Duration> {
        if self.waiting.is_empty() {
            self.waiting.extend(self.track.samples_of(self.next..self.next.saturating_add(BATCH)));
            self.next = self.next.saturating_add(self.waiting.len() as u32);
        }
        Some(seconds(self.waiting.front()?.dts, self.timescale))
    }
}

/// A block whose bytes are not there yet.
pub(super) struct Gathered {
    frames: Vec<Planned>,
    /// What is read of which object.
    pub(super) spans: Vec<(ObjectIndex, Range<u64>)>,
    next: Vec<u32>,
    following: Option<u64>,
}

struct Planned {
    track: u16,
    number: u32,
    due: Duration,
    pts: i64,
    is_sync: bool,
    place: ObjectRange,
    conversion: Conversion,
}

impl Gathered {
    /// A key frame by itself, with a number and a presentation time of its own.
    pub(super) fn key(track: u16, number: u32, pts: i64, key: &Key, object: ObjectIndex) -> Self {
        let place = ObjectRange { object, range: key.timed.sample.range };
        let conversion = Conversion::None;
        let frames = vec![Planned { track, number, due: key.due, pts, is_sync: true, place, conversion }];
        Self { spans: spans(&frames), frames, next: Vec::new(), following: None }
    }

    pub(super) async fn read(self, media: &Media, asset: &Asset) -> Result<Block, OriginError> {
        let hold = Arc::new(media.holds.take(self.spans.iter().map(|(_, range)| range.end - range.start).sum()));
        let mut read = Vec::with_capacity(self.spans.len());
        for (place, range) in &self.spans {
            let Some(object) = asset.objects.get(usize::from(place.0)) else { continue };
            let bytes = media.read(object, range.clone(), &hold).await?;
            read.push(Span { place: *place, start: range.start, bytes });
        }
        let copied = self.frames.iter().filter(|planned| planned.conversion != Conversion::None);
        let copied: u64 = copied.map(|planned| planned.place.range.len()).sum();
        let bytes = copied + read.iter().map(|span| span.bytes.len() as u64).sum::<u64>();
        let weight = bytes + (self.frames.len() * size_of::<Frame>() + size_of::<Block>()) as u64;
        let frames = self.frames.iter().map(|planned| planned.frame(&read)).collect();
        Ok(Block { frames, next: self.next, following: self.following, weight, hold: Some(hold) })
    }
}

/// Bytes of an object that were read.
struct Span {
    place: ObjectIndex,
    start: u64,
    bytes: Bytes,
}

impl Planned {
    fn frame(&self, spans: &[Span]) -> Frame {
        let range = self.place.range;
        let within = |span: &&Span| {
            span.place == self.place.object
                && span.start <= range.start
                && range.end <= span.start + span.bytes.len() as u64
        };
        let data = spans.iter().find(within).map(|span| {
            let from = (range.start - span.start) as usize;
            span.bytes.slice(from..from + range.len() as usize)
        });
        let data = self.conversion.apply(data.unwrap_or_default());
        let Self { track, number, due, pts, is_sync, .. } = *self;
        Frame { track, number, due, pts, is_sync, data }
    }
}

/// The ranges of the frames, those that lie near each other as one.
fn spans(frames: &[Planned]) -> Vec<(ObjectIndex, Range<u64>)> {
    let mut ranges: Vec<_> =
        frames.iter().map(|frame| (frame.place.object, frame.place.range.start, frame.place.range.end)).collect();
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
            place: ObjectRange { object: ObjectIndex(object), range: millpond_media::units::ByteRange { start, end } },
            conversion: Conversion::None,
        };
        let frames = [planned(1, 0, 5), planned(0, 100, 200), planned(0, 0, 50), planned(0, GAP + 201, GAP + 300)];
        let expected = [(0, 0..200), (0, GAP + 201..GAP + 300), (1, 0..5)];
        assert_eq!(spans(&frames), expected.map(|(object, range)| (ObjectIndex(object), range)));
    }
}
