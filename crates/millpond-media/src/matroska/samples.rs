//! Frames of a track to its sample table.
//!
//! Matroska states when a frame is presented, in ticks that are mostly milliseconds. Decoding times are made of them: the frames of a
//! group of pictures are decoded at its presentation times in rising order, and presented a fixed delay later. The frames
//! of sound follow one another without gaps as long as the stated times allow that.

use super::clusters::Block;
use crate::{
    codec::audio::opus,
    movie::sample_table::{SampleTable, SampleTableBuilder, Slack},
    units::{ByteRange, Timescale},
};

/// Most pictures of a group. A longer group is cut there.
const MOST_PICTURES: usize = 1 << 16;
/// Ticks of the segment by which a stated time may differ from the end of the frame before.
const ROUNDED: i64 = 1;

/// Ticks of a segment to ticks of a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Clock {
    /// Nanoseconds of a tick of the segment.
    pub(super) scale: u64,
    pub(super) timescale: Timescale,
}

impl Clock {
    /// Converts a time or a duration of the segment.
    pub(super) fn ticks(&self, ticks: i64) -> i64 {
        let nanoseconds = ticks.saturating_mul(i64::try_from(self.scale).unwrap_or(i64::MAX));
        Timescale::NANOS.convert(nanoseconds, self.timescale)
    }
}

/// How the frames of a track follow one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Course {
    /// Pictures. They are presented `delay` ticks after they are decoded at the latest; 0 where none is presented before one that
    /// is decoded earlier.
    Pictures { delay: i64 },
    /// Frames of `length` ticks each.
    Even { length: u32 },
    /// PCM: frames of `bytes` each, one tick long, of which a sample has `most`.
    Pcm { bytes: u32, most: u32 },
    /// Packets of Opus, which tell how long they last.
    Opus,
    /// Frames of any length.
    Stated,
}

/// A frame before its decoding time is known.
#[derive(Clone, Copy, Debug)]
struct Picture {
    time: i64,
    range: ByteRange,
    is_key: bool,
}

/// Makes the sample table of one track.
#[derive(Debug)]
pub(super) struct Samples {
    clock: Clock,
    course: Course,
    /// Duration of a frame whose end is not known.
    usual: u32,
    group: Vec<Picture>,
    table: SampleTableBuilder,
    /// Least stated time, in ticks of the segment.
    first: Option<i64>,
}

impl Samples {
    pub(super) fn new(clock: Clock, course: Course, usual: u32) -> Self {
        let table = SampleTable::builder().keep_presentation();
        Self { clock, course, usual: usual.max(1), group: Vec::new(), table, first: None }
    }

    /// Adds the frames of a block.
    pub(super) fn push(&mut self, block: &Block, frames: &[ByteRange]) {
        let (time, is_key) = (block.time, block.is_key);
        let start = self.clock.ticks(time);
        self.first = Some(self.first.map_or(time, |first| first.min(time)));
        match self.course {
            Course::Pictures { .. } => {
                let mut time = start;
                for (number, range) in frames.iter().copied().enumerate() {
                    let is_key = is_key && number == 0;
                    if !self.group.is_empty() && (is_key || self.group.len() >= MOST_PICTURES) {
                        self.end_group();
                    }
                    self.group.push(Picture { time, range, is_key });
                    time = time.saturating_add(i64::from(self.usual));
                }
            }
            Course::Even { length } => self.even(start, frames, length, block.padding),
            Course::Opus => {
                let length = opus::samples(&block.opening).unwrap_or(self.usual);
                self.even(start, frames, length, block.padding);
            }
            Course::Pcm { bytes, most } => {
                let mut at = self.follow(start);
                for range in frames {
                    let unit = u64::from(bytes) * u64::from(most);
                    let mut place = range.start;
                    while place + u64::from(bytes) <= range.end {
                        let size = unit.min((range.end - place) / u64::from(bytes) * u64::from(bytes));
                        let length = (size / u64::from(bytes)) as u32;
                        self.sound(at, ByteRange::at(place, size), length);
                        at += i64::from(length);
                        place += size;
                    }
                }
            }
            Course::Stated => {
                let stated =
                    block.duration.and_then(|ticks| i64::try_from(ticks).ok()).map(|ticks| self.clock.ticks(ticks));
                let count = i64::try_from(frames.len().max(1)).unwrap_or(1);
                let each = stated.and_then(|all| u32::try_from(all / count).ok()).filter(|each| *each > 0);
                let each = each.unwrap_or(self.usual);
                let mut at = start;
                for range in frames {
                    self.sound(at, *range, each);
                    at += i64::from(each);
                }
            }
        }
    }

    /// Adds frames that last `length` ticks each. The last one ends `padding` nanoseconds early, and lasts a tick at least.
    fn even(&mut self, start: i64, frames: &[ByteRange], length: u32, padding: u64) {
        let mut at = self.follow(start);
        let padding = Timescale::NANOS.convert(i64::try_from(padding).unwrap_or(i64::MAX), self.clock.timescale);
        let padding = u32::try_from(padding).unwrap_or(u32::MAX).min(length.saturating_sub(1));
        for (left, range) in (0..frames.len()).rev().zip(frames) {
            let length = if left == 0 { length - padding } else { length };
            self.sound(at, *range, length);
            at = at.saturating_add(i64::from(length));
        }
    }

    /// Returns when a frame of sound is decoded that is stated at `start`: at the end of the frame before, if rounding explains
    /// the difference, or if the frames overlap by little.
    fn follow(&self, start: i64) -> i64 {
        let slack = Slack::of_sound(self.clock.timescale, self.clock.ticks(ROUNDED));
        self.table
            .follow(start, if matches!(self.course, Course::Pcm { .. }) { slack.with_any_overlap() } else { slack })
    }

    fn sound(&mut self, at: i64, range: ByteRange, length: u32) {
        let Ok(size) = u32::try_from(range.len()) else { return };
        if size == 0 {
            return;
        }
        self.table.set_start_dts(at);
        self.table.push(range.start, size, length, 0, true);
        if matches!(self.course, Course::Stated) {
            self.usual = length;
        }
    }

    /// Gives the pictures of a group their decoding times.
    fn end_group(&mut self) {
        let Course::Pictures { delay } = self.course else { return };
        let group = std::mem::take(&mut self.group);
        let mut sorted: Vec<i64> = group.iter().map(|picture| picture.time).collect();
        sorted.sort_unstable();
        // A picture is decoded before it is presented, and so are all that follow it.
        let mut latest = vec![i64::MAX; group.len()];
        let mut least = i64::MAX;
        for (picture, latest) in group.iter().zip(&mut latest).rev() {
            least = least.min(picture.time.saturating_add(delay));
            *latest = least;
        }
        for ((picture, sorted), latest) in group.iter().zip(sorted).zip(latest) {
            let decoded = sorted.min(latest);
            let composition = picture.time.saturating_add(delay).saturating_sub(decoded);
            let (Ok(size), Ok(composition)) = (u32::try_from(picture.range.len()), i32::try_from(composition)) else {
                continue;
            };
            if size == 0 {
                continue;
            }
            self.table.set_start_dts(decoded);
            self.table.push(picture.range.start, size, self.usual, composition, picture.is_key);
        }
    }

    /// Returns an empty table of the same track.
    pub(super) fn anew(&self) -> Self {
        Self::new(self.clock, self.course, self.usual)
    }

    /// End of the last frame of sound, in ticks of the track.
    pub(super) fn end(&self) -> i64 {
        self.table.next_dts()
    }

    pub(super) fn course(&self) -> Course {
        self.course
    }

    pub(super) fn clock(&self) -> Clock {
        self.clock
    }

    /// Ends the last frame at `end` ticks of the track, where that is later than its beginning.
    pub(super) fn end_at(&mut self, end: i64) {
        self.end_group();
        if end > self.table.last_dts() {
            self.table.set_start_dts(end);
        }
    }

    /// Least time of a frame, in ticks of the segment; `None` before the first.
    pub(super) fn first(&self) -> Option<i64> {
        self.first
    }

    /// Bytes of heap held.
    pub(super) fn heap_bytes(&self) -> usize {
        self.group.capacity() * size_of::<Picture>() + self.table.heap_bytes()
    }

    /// Returns the table of all frames.
    pub(super) fn finish(mut self) -> SampleTable {
        self.end_group();
        self.table.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(time: i64, is_key: bool) -> Block {
        let (element, opening) = (ByteRange::at(0, 0), [0; 2]);
        Block { track: 1, element, time, is_key, duration: None, padding: 0, opening, first: None }
    }

    fn clock(timescale: u32) -> Clock {
        Clock { scale: 1_000_000, timescale: Timescale::new(timescale).unwrap() }
    }

    fn times(table: &SampleTable) -> Vec<(i64, i64, bool)> {
        table.iter().map(|sample| (sample.dts, sample.pts(), sample.sync)).collect()
    }

    #[test]
    fn pictures_are_decoded_at_the_times_of_their_group_in_order() {
        let mut samples = Samples::new(clock(1000), Course::Pictures { delay: 80 }, 40);
        for (place, (time, key)) in [(0, true), (120, false), (40, false), (80, false), (160, true)].iter().enumerate()
        {
            samples.push(&block(*time, *key), &[ByteRange::at(place as u64 * 10, 10)]);
        }
        let expected = [(0, 80, true), (40, 200, false), (80, 120, false), (120, 160, false), (160, 240, true)];
        assert_eq!(times(&samples.finish()), expected);
    }

    #[test]
    fn a_picture_is_never_presented_before_it_is_decoded() {
        let mut samples = Samples::new(clock(1000), Course::Pictures { delay: 0 }, 40);
        for (time, key) in [(0, true), (120, false), (40, false), (80, false)] {
            samples.push(&block(time, key), &[ByteRange::at(0, 10)]);
        }
        let table = samples.finish();
        assert!(table.iter().all(|sample| sample.composition >= 0));
        assert_eq!(table.iter().map(|sample| sample.pts()).collect::<Vec<_>>(), [0, 120, 40, 80]);
    }

    #[test]
    fn sound_follows_without_gaps_where_rounding_explains_the_difference() {
        let mut samples = Samples::new(clock(48_000), Course::Even { length: 1024 }, 1024);
        for time in [0, 21, 43, 200, 221] {
            samples.push(&block(time, true), &[ByteRange::at(0, 10)]);
        }
        let decoded: Vec<i64> = samples.finish().iter().map(|sample| sample.dts).collect();
        assert_eq!(decoded, [0, 1024, 2048, 9600, 10_624]);
    }

    #[test]
    fn sound_ends_where_padding_begins() {
        let lengths = |padding: u64| {
            let mut samples = Samples::new(clock(48_000), Course::Even { length: 960 }, 960);
            let last = Block { padding, ..block(20, true) };
            samples.push(&block(0, true), &[ByteRange::at(0, 10)]);
            samples.push(&last, &[ByteRange::at(10, 10), ByteRange::at(20, 10)]);
            samples.finish().iter().map(|sample| sample.duration).collect::<Vec<_>>()
        };
        assert_eq!(lengths(13_500_000), [960, 960, 312]);
        assert_eq!(lengths(0), [960, 960, 960]);
        assert_eq!(lengths(u64::MAX), [960, 960, 1]);
    }

    #[test]
    fn pcm_is_cut_into_units() {
        let mut samples = Samples::new(clock(8000), Course::Pcm { bytes: 2, most: 160 }, 1);
        samples.push(&block(0, true), &[ByteRange::at(50, 801)]);
        let found: Vec<_> = samples.finish().iter().map(|sample| (sample.range, sample.dts, sample.duration)).collect();
        let at = ByteRange::at;
        assert_eq!(found, [(at(50, 320), 0, 160), (at(370, 320), 160, 160), (at(690, 160), 320, 80)]);
    }
}
