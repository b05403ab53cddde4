//! PCM and G.711 that are delivered as FLAC, which browsers decode. No value of up to 24 bits changes.
//!
//! The access units of the track stay as they are, for RTSP. Blocks of its frames become frames of FLAC when a segment is made. A segment
//! begins with a block, so that a frame of FLAC is the same in whichever segment and server it is made.
//!
//! Where an index has the samples of the first fragment only, the frames before a segment are not counted. The blocks of a segment then
//! begin with its first fragment, and its last block may be short. Each block has the number of its first sample, which follows from the
//! time of the segment.

use crate::{
    flac::{FlacStream, Numbering},
    timeline::{
        Timed,
        bandwidth::Bandwidth,
        blocks::{BlockShape, BlockStart, Blocks},
        segmentation::Segments,
    },
};
use millpond_media::{
    codec::{Codec, PcmCoding},
    movie::Track,
    units::Timescale,
};

/// Most bytes of the frames of one segment, which is made in memory. Longer segments are divided.
const MOST_SEGMENT: u64 = 8 << 20;
/// Most bytes of a frame's row in `trun` (ISO/IEC 14496-12 8.8.8): duration and size.
const ROW: u64 = 8;

/// The form in which PCM is delivered as FLAC.
#[derive(Clone, Debug)]
pub(crate) struct FlacForm {
    /// The track as HLS and DASH describe it, without samples.
    pub(crate) track: Track,
    /// Coding of the stored values.
    pub(crate) coding: PcmCoding,
    pub(crate) stream: FlacStream,
    pub(crate) shape: BlockShape,
}

impl FlacForm {
    /// Returns the form of a track's samples; `None` for other codecs than PCM, and for PCM that no browser decodes as FLAC.
    pub(crate) fn of(track: &Track, numbering: Numbering) -> Option<Self> {
        let Codec::Pcm(config) = &track.codec else { return None };
        let stream = FlacStream::of(config).filter(|_| track.protection.is_none())?;
        let stream = FlacStream { numbering, ..stream };
        let shape = BlockShape {
            length: stream.block.into(),
            frame: config.frame_bytes(),
            rate: stream.sample_rate,
            timescale: track.timescale.get(),
        };
        let delivered = stream.delivered(track)?;
        Some(Self { track: delivered, coding: config.coding, stream, shape })
    }
}

/// A track that is delivered as FLAC.
#[derive(Debug)]
pub(crate) struct FlacTrack {
    pub(crate) form: FlacForm,
    cutting: Cutting,
    /// Bits per second of the samples as they are stored.
    pub(crate) stored: Bandwidth,
}

/// The blocks of a track.
#[derive(Debug)]
enum Cutting {
    /// All access units are known.
    Counted {
        /// First block of each segment, and the end of the last segment.
        starts: Box<[BlockStart]>,
        /// Frames of PCM in all segments.
        frames: u64,
    },
    /// The blocks of a segment are known when its fragments are loaded.
    Loaded {
        /// Ticks by which the first access unit is presented before time 0.
        early: i64,
    },
}

/// Blocks of one segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentBlocks {
    /// The first block.
    pub(crate) start: BlockStart,
    /// The first block of the next segment, or the end of the track.
    pub(crate) next: BlockStart,
    /// Frames of PCM in the segment.
    pub(crate) frames: u64,
}

impl FlacTrack {
    /// Creates a track whose access units are loaded with the fragments of a segment.
    pub(crate) fn loaded(form: FlacForm, early: i64, stored: Bandwidth) -> Self {
        Self { form, cutting: Cutting::Loaded { early }, stored }
    }

    /// Returns the blocks of segment `number`, from 1; `None` where they are loaded.
    pub(crate) fn segment(&self, number: u32) -> Option<SegmentBlocks> {
        let Cutting::Counted { starts, frames } = &self.cutting else { return None };
        let place = usize::try_from(number).ok()?.checked_sub(1)?;
        let (start, next) = (*starts.get(place)?, *starts.get(place + 1)?);
        let before = |block: u32| (u64::from(block) * u64::from(self.form.shape.length)).min(*frames);
        Some(SegmentBlocks { start, next, frames: before(next.number).saturating_sub(before(start.number)) })
    }

    /// Ticks by which the first block is presented before time 0. In fragments this is the media time of time 0.
    pub(crate) fn early(&self) -> i64 {
        match &self.cutting {
            Cutting::Counted { starts, .. } => starts.first().map_or(0, |first| first.time.saturating_neg().max(0)),
            Cutting::Loaded { early } => *early,
        }
    }

    /// Bytes of heap held.
    pub(crate) fn heap_bytes(&self) -> usize {
        let track = &self.form.track;
        let texts = track.language.len() + track.name.as_ref().map_or(0, String::len);
        let starts = match &self.cutting {
            Cutting::Counted { starts, .. } => size_of_val(&**starts),
            Cutting::Loaded { .. } => 0,
        };
        size_of::<Self>() + starts + track.sample_entry.len() + texts
    }
}

impl FlacForm {
    /// Most bytes of the frames of each segment, with their rows, as far as the durations of segments tell.
    pub(crate) fn sizes_by_time(&self, segments: &Segments) -> Vec<u64> {
        let times = segments.times();
        let size = |(start, end): (&i64, &i64)| {
            let ticks = u64::try_from(end.saturating_sub(*start)).unwrap_or(0);
            let (rate, timescale) = (u64::from(self.shape.rate), u64::from(self.shape.timescale));
            self.most_bytes(ticks.saturating_mul(rate).div_ceil(timescale.max(1)))
        };
        times.iter().zip(times.iter().skip(1)).map(size).collect()
    }

    /// Most bytes of a segment of `frames` of PCM, with the rows of its blocks.
    pub(crate) fn most_bytes(&self, frames: u64) -> u64 {
        let blocks = frames.div_ceil(self.shape.length.into()).saturating_add(1);
        self.stream.most_bytes(frames).saturating_add(blocks.saturating_mul(most_bytes(&self.stream, 0)))
    }
}

/// Cuts a track by time: each block belongs to the segment that contains its presentation time.
pub(crate) struct FlacCut<'a> {
    form: FlacForm,
    /// Boundaries inside the track, in ticks, in ascending order.
    boundaries: &'a [i64],
    next: usize,
    blocks: Blocks,
    starts: Vec<BlockStart>,
    /// Most bytes of the blocks of each segment, with their rows.
    sizes: Vec<u64>,
    /// Stored bytes of each segment: those of units that begin in it.
    stored: Vec<u64>,
}

/// A track that was cut.
pub(crate) struct FlacSegments {
    pub(crate) segments: Segments,
    /// Stored bytes of each segment.
    pub(crate) stored: Vec<u64>,
    /// Most bytes of each segment's frames, with their rows.
    pub(crate) sizes: Vec<u64>,
    pub(crate) track: FlacTrack,
}

impl<'a> FlacCut<'a> {
    pub(crate) fn new(form: FlacForm, boundaries: &'a [i64]) -> Self {
        let blocks = Blocks::new(form.shape);
        Self { form, boundaries, next: 0, blocks, starts: Vec::new(), sizes: Vec::new(), stored: Vec::new() }
    }

    /// Adds the next access unit.
    pub(crate) fn add(&mut self, unit: &Timed) {
        let Self { form, boundaries, next, blocks, starts, sizes, stored } = self;
        let size = most_bytes(&form.stream, form.shape.length.into());
        blocks.add(unit, |start| {
            let mut begins = sizes.last().is_none_or(|held| held.saturating_add(size) > MOST_SEGMENT);
            while boundaries.get(*next).is_some_and(|boundary| *boundary <= start.time) {
                *next += 1;
                begins = true;
            }
            if begins {
                starts.push(start);
                sizes.push(0);
                stored.push(0);
            }
            if let Some(held) = sizes.last_mut() {
                *held = held.saturating_add(size);
            }
        });
        if let Some(held) = stored.last_mut() {
            *held = held.saturating_add(unit.sample.range.len());
        }
    }

    /// Returns the segments of a track of `units` access units, which is shown until `end`. `last` is the end of the last unit. `None`
    /// where no unit has a whole frame.
    pub(crate) fn finish(mut self, timescale: Timescale, units: u32, (end, last): (i64, i64)) -> Option<FlacSegments> {
        if self.starts.is_empty() {
            return None;
        }
        let frames = self.blocks.frames();
        if let Some(held) = self.sizes.last_mut() {
            let length = u64::from(self.form.shape.length);
            let rest = if frames.is_multiple_of(length) { length } else { frames % length };
            let (whole, rest) = (most_bytes(&self.form.stream, length), most_bytes(&self.form.stream, rest));
            *held = held.saturating_sub(whole).saturating_add(rest);
        }
        let mut times: Vec<i64> = Vec::with_capacity(self.starts.len() + 1);
        for time in self.starts.iter().map(|start| start.time).chain([end]) {
            // The first segment begins at time 0 at the earliest, and each one later than the one before.
            let least = times.last().map_or(0, |before| before.saturating_add(1));
            times.push(time.max(least));
        }
        let ordinals = self.starts.iter().map(|start| start.ordinal).chain([units]).collect();
        self.starts.push(self.blocks.end(units, last));
        let cutting = Cutting::Counted { starts: self.starts.into(), frames };
        let track = FlacTrack { form: self.form, cutting, stored: Bandwidth::default() };
        let segments = Segments::new(timescale, ordinals, times);
        Some(FlacSegments { segments, stored: self.stored, sizes: self.sizes, track })
    }
}

/// Most bytes of a frame of `samples` per channel, with its row.
fn most_bytes(stream: &FlacStream, samples: u64) -> u64 {
    stream.most_bytes(samples).saturating_add(ROW)
}
