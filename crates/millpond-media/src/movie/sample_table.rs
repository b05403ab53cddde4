//! Offset and times of each sample, in three to four bytes per sample.
//!
//! Samples are held in blocks of 128: a head with offset and time of the first sample, and bit-packed columns (frame of
//! reference, with patches) for the others. Chunks (8.7.4) are not kept. A column holds the gap between the end of a
//! sample and the start of the next, which is zero inside a chunk.

use crate::{
    movie::sample_table::columns::{COLUMN, ColumnReader},
    units::ByteRange,
};
pub use builder::SampleTableBuilder;
pub(crate) use follow::Slack;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Most samples of one table: more than a day at 700 per second.
pub(crate) const MAX_SAMPLES: u32 = 1 << 26;

const BLOCK: u32 = COLUMN as u32;

/// One sample (3.1.13 of ISO/IEC 14496-12), or one access unit of PCM: its bytes, and its times in ticks of the track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Position in decoding order, from 0.
    pub index: u32,
    /// Byte range in the object.
    pub range: ByteRange,
    /// Decoding time.
    pub dts: i64,
    /// Composition time minus decoding time; may be negative.
    pub composition: i32,
    /// Difference to the next sample's decoding time; time of display of text that may overlap.
    pub duration: u32,
    /// Whether decoding can start here.
    pub sync: bool,
}

impl Sample {
    /// Composition time (8.6.1.3): the time of display before edits.
    #[must_use]
    pub fn pts(&self) -> i64 {
        self.dts.saturating_add(i64::from(self.composition))
    }
}

/// The samples of one track in decoding order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampleTable {
    len: u32,
    end_dts: i64,
    total_bytes: u64,
    all_sync: bool,
    composition: (i32, i32),
    heads: Vec<Head>,
    packed: Vec<u8>,
    /// Durations of samples that overlap; empty where each one ends as the next begins.
    durations: Vec<u32>,
}

/// Search keys of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Head {
    /// Offset of the first sample in the object.
    offset: u64,
    /// Decoding time of the first sample.
    dts: i64,
    /// Index of the block's columns in `packed`.
    position: u32,
}

impl SampleTable {
    /// Creates an empty builder, for samples in decoding order.
    #[must_use]
    pub fn builder() -> SampleTableBuilder {
        SampleTableBuilder::default()
    }

    /// Number of samples.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether there is no sample.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns sample `index`, in constant time: one block is decoded.
    #[must_use]
    pub fn get(&self, index: u32) -> Option<Sample> {
        if index >= self.len {
            return None;
        }
        Some(self.with_duration(self.decode(index / BLOCK)?.sample(index)))
    }

    /// Returns all samples in decoding order.
    #[must_use]
    pub fn iter(&self) -> Samples<'_> {
        self.range(0..self.len)
    }

    /// Returns the samples of `range`, cut to the table.
    #[must_use]
    pub fn range(&self, range: Range<u32>) -> Samples<'_> {
        let end = range.end.min(self.len);
        Samples { table: self, next: range.start.min(end), end, block: None }
    }

    /// Returns the last sample whose decoding time is at or before `dts`; `None` before the first.
    #[must_use]
    pub fn at_dts(&self, dts: i64) -> Option<u32> {
        let block = self.heads.partition_point(|head| head.dts <= dts).checked_sub(1)?;
        let head = self.heads.get(block)?;
        let block = u32::try_from(block).ok()?;
        let mut columns = ColumnReader::new(self.packed.get(head.position as usize..)?);
        let mut steps = [0; COLUMN];
        let len = self.block_len(block);
        columns.get_column(&mut steps[..len]);
        columns.get_column(&mut steps[..len]);
        let mut time = head.dts;
        let mut last = 0;
        for (position, step) in (0_u32..).zip(&steps[..len]) {
            if time > dts {
                break;
            }
            last = position;
            time = time.saturating_add(*step);
        }
        Some(block * BLOCK + last)
    }

    /// Returns the last sample that begins at `offset` or before it; `None` before the first. The offsets of all samples must rise.
    pub(crate) fn at_offset(&self, offset: u64) -> Option<u32> {
        let block = self.heads.partition_point(|head| head.offset <= offset).checked_sub(1)?;
        let block = u32::try_from(block).ok()?;
        let decoded = self.decode(block)?;
        let begun = decoded.offset[..self.block_len(block)].partition_point(|start| *start <= offset);
        Some(block * BLOCK + (begun as u32).saturating_sub(1))
    }

    /// The decoding time after the last sample; 0 for an empty table.
    #[must_use]
    pub fn end_dts(&self) -> i64 {
        self.end_dts
    }

    /// The decoding time of the first sample; 0 for an empty table.
    #[must_use]
    pub fn start_dts(&self) -> i64 {
        self.heads.first().map_or(0, |head| head.dts)
    }

    /// Sum of the sizes of all samples.
    #[must_use]
    pub fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// Positions of the sync samples, in order.
    pub fn sync_samples(&self) -> impl Iterator<Item = u32> + '_ {
        (0_u32..).zip(&self.heads).flat_map(move |(block, head)| {
            let len = self.block_len(block);
            let mut sync = [1; COLUMN];
            if !self.all_sync {
                ColumnReader::new(self.packed.get(head.position as usize..).unwrap_or_default())
                    .get_column(&mut sync[..len]);
            }
            (0..len as u32).filter(move |&i| sync[i as usize] != 0).map(move |i| block * BLOCK + i)
        })
    }

    /// Least and greatest composition offset; zeros for an empty table.
    #[must_use]
    pub fn composition_bounds(&self) -> (i32, i32) {
        self.composition
    }

    /// Whether every sample is a sync sample.
    #[must_use]
    pub fn all_sync(&self) -> bool {
        self.all_sync
    }

    /// Gives each sample a duration of its own, which may exceed the time to the next one.
    #[must_use]
    pub(crate) fn with_durations(self, durations: Vec<u32>) -> Self {
        Self { durations, ..self }
    }

    /// Whether samples may overlap.
    #[must_use]
    pub fn overlaps(&self) -> bool {
        !self.durations.is_empty()
    }

    /// Returns the same samples with other sync flags.
    pub(crate) fn with_sync(&self, is_sync: impl Fn(&Sample) -> bool) -> Self {
        let mut builder = Self::builder();
        builder.set_start_dts(self.start_dts());
        let mut samples = self.iter().peekable();
        while let Some(sample) = samples.next() {
            let Sample { range, duration, composition, .. } = sample;
            let size = u32::try_from(range.len()).unwrap_or(u32::MAX);
            builder.push(range.start, size, duration, composition, is_sync(&sample));
            // A hole in the timeline can exceed the 32 bits of a duration.
            builder.set_start_dts(samples.peek().map_or(self.end_dts, |next| next.dts));
        }
        builder.finish().with_durations(self.durations.clone())
    }

    /// Bytes of heap that the table holds.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.heads.capacity() * std::mem::size_of::<Head>() + self.packed.capacity() + self.durations.capacity() * 4
    }

    /// Returns a sample with its own duration, if it has one.
    fn with_duration(&self, sample: Sample) -> Sample {
        let own = self.durations.get(sample.index as usize);
        Sample { duration: own.copied().unwrap_or(sample.duration), ..sample }
    }

    /// Number of samples in block `block`; at most [`COLUMN`].
    fn block_len(&self, block: u32) -> usize {
        self.len.saturating_sub(block.saturating_mul(BLOCK)).min(BLOCK) as usize
    }

    fn decode(&self, block: u32) -> Option<Decoded> {
        let head = self.heads.get(block as usize)?;
        let len = self.block_len(block);
        let mut columns = ColumnReader::new(self.packed.get(head.position as usize..)?);
        let mut decoded = Decoded { block, ..Decoded::EMPTY };
        columns.get_column(&mut decoded.sync[..len]);
        columns.get_column(&mut decoded.step[..len]);
        columns.get_column(&mut decoded.size[..len]);
        columns.get_column(&mut decoded.composition[..len]);
        let mut flags = [0; COLUMN];
        columns.get_column(&mut flags[..len]);
        let gaps = flags[..len].iter().filter(|&&flag| flag != 0).count();
        let mut gap = [0; COLUMN];
        columns.get_column(&mut gap[..gaps]);
        let mut gap = gap[..gaps].iter();
        let (mut offset, mut dts) = (head.offset, head.dts);
        for (i, flag) in flags[..len].iter().enumerate() {
            if *flag != 0 {
                offset = offset.wrapping_add(gap.next().copied().unwrap_or(0) as u64);
            }
            decoded.offset[i] = offset;
            decoded.dts[i] = dts;
            offset = offset.wrapping_add(decoded.size[i] as u64);
            dts = dts.saturating_add(decoded.step[i]);
        }
        Some(decoded)
    }
}

impl<'a> IntoIterator for &'a SampleTable {
    type Item = Sample;
    type IntoIter = Samples<'a>;

    fn into_iter(self) -> Samples<'a> {
        self.iter()
    }
}

/// One block, unpacked.
#[derive(Clone, Debug)]
struct Decoded {
    block: u32,
    sync: [i64; COLUMN],
    step: [i64; COLUMN],
    size: [i64; COLUMN],
    composition: [i64; COLUMN],
    offset: [u64; COLUMN],
    dts: [i64; COLUMN],
}

impl Decoded {
    const EMPTY: Self = Self {
        block: 0,
        sync: [0; COLUMN],
        step: [0; COLUMN],
        size: [0; COLUMN],
        composition: [0; COLUMN],
        offset: [0; COLUMN],
        dts: [0; COLUMN],
    };

    fn sample(&self, index: u32) -> Sample {
        let i = (index % BLOCK) as usize;
        Sample {
            index,
            range: ByteRange::at(self.offset[i], u64::from(self.size[i] as u32)),
            dts: self.dts[i],
            composition: self.composition[i] as i32,
            // The difference to the next sample can exceed 32 bits where the timeline has a hole.
            duration: u32::try_from(self.step[i]).unwrap_or(u32::MAX),
            sync: self.sync[i] != 0,
        }
    }
}

/// Samples in decoding order, of a whole [`SampleTable`] or a part of it.
#[derive(Clone, Debug)]
pub struct Samples<'a> {
    table: &'a SampleTable,
    next: u32,
    end: u32,
    block: Option<Box<Decoded>>,
}

impl Iterator for Samples<'_> {
    type Item = Sample;

    fn next(&mut self) -> Option<Sample> {
        if self.next >= self.end {
            return None;
        }
        let index = self.next;
        self.next += 1;
        let block = index / BLOCK;
        match &mut self.block {
            Some(decoded) if decoded.block == block => {}
            Some(decoded) => **decoded = self.table.decode(block)?,
            none => *none = Some(Box::new(self.table.decode(block)?)),
        }
        self.block.as_ref().map(|decoded| self.table.with_duration(decoded.sample(index)))
    }

    fn nth(&mut self, n: usize) -> Option<Sample> {
        self.next = self.next.saturating_add(u32::try_from(n).unwrap_or(u32::MAX)).min(self.end);
        self.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = (self.end - self.next) as usize;
        (left, Some(left))
    }
}

impl ExactSizeIterator for Samples<'_> {}

mod builder;
mod columns;
mod even;
mod follow;

#[cfg(test)]
mod tests;
