//! Blocks of PCM: each has the same number of frames, and may begin within an access unit.

use crate::timeline::Timed;

/// Beginning of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockStart {
    /// Number of the block, from 0.
    pub(crate) number: u32,
    /// Ordinal of the access unit in which it begins.
    pub(crate) ordinal: u32,
    /// Frames of that unit before it.
    pub(crate) skip: u32,
    /// Presentation time, in ticks of the track.
    pub(crate) time: i64,
}

/// Properties of the blocks of a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockShape {
    /// Frames of a block; at least 1.
    pub(crate) length: u32,
    /// Bytes of a frame; at least 1.
    pub(crate) frame: u32,
    /// Frames per second; at least 1.
    pub(crate) rate: u32,
    /// Ticks of the track per second.
    pub(crate) timescale: u32,
}

/// Finds the blocks of a track, whose access units are added in order.
#[derive(Debug)]
pub(crate) struct Blocks {
    shape: BlockShape,
    /// Frames of all units that were added, and of those before the first one.
    frames: u64,
    /// Number of the next block, whose beginning was not added yet.
    next: u64,
    /// Least time of the next block. Times rise, also where edits make units overlap.
    floor: i64,
}

impl BlockShape {
    /// Number of whole frames in a unit.
    pub(crate) fn frames_in(&self, unit: &Timed) -> u64 {
        unit.sample.range.len() / u64::from(self.frame)
    }

    /// Returns the ticks from the beginning of a unit of `count` frames to the frame behind `skip` others. A gap behind the unit lengthens
    /// it, and an overlap shortens it; the frames keep their rate in the first case only.
    fn ticks(&self, unit: &Timed, skip: u64, count: u64) -> i64 {
        let equally = u128::from(unit.sample.duration) * u128::from(skip) / u128::from(count.max(1));
        let by_rate = u128::from(skip) * u128::from(self.timescale) / u128::from(self.rate.max(1));
        i64::try_from(equally.min(by_rate)).unwrap_or(0)
    }
}

impl Blocks {
    /// Begins with the first unit of a track.
    pub(crate) fn new(shape: BlockShape) -> Self {
        Self { shape, frames: 0, next: 0, floor: i64::MIN }
    }

    /// Begins with the unit in which a block starts.
    pub(crate) fn from(shape: BlockShape, start: &BlockStart) -> Self {
        let before = u64::from(start.number) * u64::from(shape.length);
        let frames = before.saturating_sub(start.skip.into());
        Self { shape, frames, next: start.number.into(), floor: start.time }
    }

    /// Adds a unit, and passes each block that begins in it to `each`.
    pub(crate) fn add(&mut self, unit: &Timed, mut each: impl FnMut(BlockStart)) {
        let count = self.shape.frames_in(unit);
        let end = self.frames.saturating_add(count);
        loop {
            let first = self.next.saturating_mul(self.shape.length.into());
            if first >= end {
                break;
            }
            let skip = first.saturating_sub(self.frames);
            let time = unit.pts.saturating_add(self.shape.ticks(unit, skip, count)).max(self.floor);
            self.floor = time.saturating_add(1);
            each(BlockStart {
                number: u32::try_from(self.next).unwrap_or(u32::MAX),
                ordinal: unit.ordinal,
                skip: u32::try_from(skip).unwrap_or(u32::MAX),
                time,
            });
            self.next = self.next.saturating_add(1);
        }
        self.frames = end;
    }

    /// Number of frames that were added, and of those before them.
    pub(crate) const fn frames(&self) -> u64 {
        self.frames
    }

    /// Returns the end of a track whose last unit ends at `time`, and which has `units`: the beginning of a block that is not there.
    pub(crate) fn end(&self, units: u32, time: i64) -> BlockStart {
        let number = u32::try_from(self.next).unwrap_or(u32::MAX);
        BlockStart { number, ordinal: units, skip: 0, time: time.max(self.floor) }
    }
}

/// Returns the presentation times of blocks of these lengths, which follow one another from the first frame of some units on.
pub(crate) fn times(shape: BlockShape, units: &[Timed], lengths: &[u32]) -> Vec<i64> {
    let begins = lengths.iter().scan(0_u64, |next, length| {
        let begin = *next;
        *next += u64::from(*length);
        Some(begin)
    });
    let mut begins = begins.peekable();
    let (mut before, mut floor, mut times) = (0_u64, i64::MIN, Vec::with_capacity(lengths.len()));
    for unit in units {
        let count = shape.frames_in(unit);
        let end = before.saturating_add(count);
        while let Some(first) = begins.next_if(|first| *first < end) {
            let skip = first.saturating_sub(before);
            let time = unit.pts.saturating_add(shape.ticks(unit, skip, count)).max(floor);
            floor = time.saturating_add(1);
            times.push(time);
        }
        before = end;
    }
    times
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        testing::{Made, audio, table},
        timeline::Timeline,
    };
    use millpond_media::{
        Codec, Timescale,
        codec::{ByteOrder, PcmCoding, PcmConfig},
        movie::{Edit, Track},
    };

    const SHAPE: BlockShape = BlockShape { length: 100, frame: 4, rate: 48_000, timescale: 48_000 };

    /// Ordinals, skipped frames and times of blocks of 100 frames, in units of these frames and durations.
    fn starts(units: &[(u32, u32)], edits: Vec<Edit>) -> Vec<(u32, u32, i64)> {
        let made = |(frames, duration): &(u32, u32)| Made {
            size: frames * 4,
            duration: *duration,
            composition: 0,
            sync: true,
        };
        let table = table(&units.iter().map(made).collect::<Vec<_>>(), 0, 0);
        let coding = PcmCoding::Signed16(ByteOrder::Little);
        let config = PcmConfig { fourcc: *b"sowt", coding, channels: 2, sample_rate: 48_000 };
        let track = Track { codec: Codec::Pcm(config), ..audio(table, "eng", edits) };
        let timeline = Timeline::new(&track, Timescale::MILLIS, 0);
        let (mut blocks, mut found) = (Blocks::new(SHAPE), Vec::new());
        let units: Vec<Timed> = timeline.walk(&track.samples, 0..timeline.len()).collect();
        units.iter().for_each(|unit| blocks.add(unit, |start| found.push(start)));
        assert_eq!(found.len(), blocks.end(timeline.len(), 0).number as usize);
        let alone: Vec<i64> = found.iter().map(|start| start.time).collect();
        assert_eq!(times(SHAPE, &units, &vec![SHAPE.length; found.len()]), alone);
        // From any block on, the rest is the same.
        for (place, start) in found.iter().enumerate() {
            let (mut rest, mut again) = (Blocks::from(SHAPE, start), Vec::new());
            units[start.ordinal as usize..].iter().for_each(|unit| rest.add(unit, |start| again.push(start)));
            assert_eq!((&again[..], rest.frames()), (&found[place..], blocks.frames()));
        }
        found.iter().map(|start| (start.ordinal, start.skip, start.time)).collect()
    }

    #[test]
    fn blocks_begin_anywhere_in_units() {
        let even = |units: &[u32]| starts(&units.iter().map(|unit| (*unit, *unit)).collect::<Vec<_>>(), Vec::new());
        assert_eq!(even(&[60, 60, 60, 60]), [(0, 0, 0), (1, 40, 100), (3, 20, 200)]);
        assert_eq!(even(&[100, 100, 1]), [(0, 0, 0), (1, 0, 100), (2, 0, 200)]);
        assert_eq!(even(&[250, 30]), [(0, 0, 0), (0, 100, 100), (0, 200, 200)]);
        assert_eq!(even(&[7]), [(0, 0, 0)]);
    }

    #[test]
    fn gaps_and_overlaps_move_no_frame_far() {
        // The second unit is followed by a gap, and the third one is cut short by the fourth.
        let units = [(60, 60), (60, 1000), (60, 30), (60, 60), (60, 60)];
        assert_eq!(starts(&units, Vec::new()), [(0, 0, 0), (1, 40, 100), (3, 20, 1110)]);
    }

    #[test]
    fn times_are_those_of_the_edit_list() {
        let late = Edit { duration: 1000, media_time: None };
        let rest = Edit { duration: 0, media_time: Some(60) };
        assert_eq!(starts(&[(60, 60); 4], vec![late, rest]), [(0, 0, 48_000), (1, 40, 48_100)]);
    }
}
