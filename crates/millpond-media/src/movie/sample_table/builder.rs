//! Packs samples into a table, block by block.

use super::{
    Head, MAX_SAMPLES, SampleTable,
    columns::{COLUMN, ColumnWriter},
    even::Even,
};

/// Builds a table from samples in decoding order.
#[derive(Clone, Debug, Default)]
pub struct SampleTableBuilder {
    heads: Vec<Head>,
    packed: Vec<u8>,
    block: Vec<Pending>,
    packed_samples: u32,
    next_dts: i64,
    block_dts: i64,
    total_bytes: u64,
    not_all_sync: bool,
    composition: Option<(i32, i32)>,
    even: Option<Even>,
    /// Ticks by which decode times are later than those that were set.
    ahead: i64,
    keeps_presentation: bool,
}

/// A sample of the block that is being filled.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    offset: u64,
    size: u32,
    pub(super) step: i64,
    pub(super) composition: i32,
    sync: bool,
}

impl SampleTableBuilder {
    /// Gives a duration to samples without one. Samples that share a decode time share the time up to the next sample. Samples of
    /// a track without any durations last `usual` ticks.
    #[must_use]
    pub fn even(self, usual: u32) -> Self {
        Self { even: Some(Even::new(usual)), ..self }
    }

    /// Keeps the times of presentation of samples whose decode times an overlap moves.
    #[must_use]
    pub(crate) fn keep_presentation(self) -> Self {
        Self { keeps_presentation: true, ..self }
    }

    /// Appends a sample. A table holds 67,108,864 samples; further ones are dropped.
    pub fn push(&mut self, offset: u64, size: u32, duration: u32, composition: i32, sync: bool) {
        if self.len() >= MAX_SAMPLES {
            return;
        }
        if self.block.len() == COLUMN {
            self.flush(false);
        }
        if self.block.is_empty() {
            self.block_dts = self.next_dts;
        }
        let (step, composition) = self.catch_up(i64::from(duration), composition);
        self.block.push(Pending { offset, size, step, composition, sync });
        self.next_dts = self.next_dts.saturating_add(step);
        self.total_bytes = self.total_bytes.saturating_add(u64::from(size));
        self.not_all_sync |= !sync;
    }

    /// Shortens the duration of a sample that follows an overlap, to a tick at least, until its times are as set. Returns
    /// duration and composition offset.
    fn catch_up(&mut self, duration: i64, composition: i32) -> (i64, i32) {
        if self.ahead == 0 {
            return (duration, composition);
        }
        let moved = if self.keeps_presentation { self.ahead } else { 0 };
        let offset = i64::from(composition).saturating_sub(moved).clamp(i64::from(i32::MIN), i64::from(i32::MAX));
        let wanted = duration.saturating_sub(self.ahead);
        let given = wanted.max(duration.min(1));
        self.ahead = given.saturating_sub(wanted);
        (given, offset as i32)
    }

    /// Sets the decoding time of the next sample. A jump forward stretches the duration of the last sample, a jump back shortens
    /// it. If `dts` is before the last sample's time, the last sample and the next samples last one tick each, until they are on
    /// time again. Decoding times never run backwards (8.6.1.2).
    pub fn set_start_dts(&mut self, dts: i64) {
        if let Some(last) = self.block.last_mut() {
            let step = i128::from(dts) - (i128::from(self.next_dts) - i128::from(last.step));
            let shortest = last.step.min(1);
            if let Ok(step @ 0..) = i64::try_from(step) {
                last.step = step;
                self.next_dts = dts;
                self.ahead = 0;
                if let Some(even) = &mut self.even {
                    even.late = 0;
                }
            } else {
                self.next_dts = self.next_dts.saturating_sub(last.step).saturating_add(shortest);
                last.step = shortest;
                self.ahead = self.next_dts.saturating_sub(dts);
            }
        } else {
            self.next_dts = dts;
            self.ahead = 0;
        }
    }

    /// Decoding time of the next sample.
    #[must_use]
    pub fn next_dts(&self) -> i64 {
        self.next_dts
    }

    /// Decoding time of the last sample. If there is no sample, the next sample's.
    pub(crate) fn last_dts(&self) -> i64 {
        self.next_dts.saturating_sub(self.block.last().map_or(0, |last| last.step))
    }

    /// Number of samples so far.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.packed_samples + self.block.len() as u32
    }

    /// Whether no sample was appended yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of heap held.
    pub(crate) fn heap_bytes(&self) -> usize {
        let (heads, block) = (self.heads.capacity() * size_of::<Head>(), self.block.capacity() * size_of::<Pending>());
        heads + block + self.packed.capacity()
    }

    /// Returns the finished table.
    #[must_use]
    pub fn finish(mut self) -> SampleTable {
        self.flush(true);
        self.heads.shrink_to_fit();
        self.packed.shrink_to_fit();
        SampleTable {
            len: self.packed_samples,
            end_dts: if self.packed_samples == 0 { 0 } else { self.next_dts },
            total_bytes: self.total_bytes,
            all_sync: !self.not_all_sync,
            composition: self.composition.unwrap_or_default(),
            heads: self.heads,
            packed: self.packed,
            durations: Vec::new(),
        }
    }

    fn flush(&mut self, is_last: bool) {
        if let Some(even) = self.even.as_mut().filter(|_| !self.block.is_empty()) {
            even.apply(&mut self.block, is_last);
            self.next_dts = self.block.iter().fold(self.block_dts, |dts, sample| dts.saturating_add(sample.step));
        }
        let Some(first) = self.block.first() else { return };
        for composition in self.block.iter().map(|sample| sample.composition) {
            let (least, most) = self.composition.unwrap_or((composition, composition));
            self.composition = Some((least.min(composition), most.max(composition)));
        }
        // 2^26 samples of at most 33 bytes each keep the position in 32 bits.
        let position = self.packed.len() as u32;
        self.heads.push(Head { offset: first.offset, dts: self.block_dts, position });
        let mut writer = ColumnWriter::default();
        let mut column = [0; COLUMN];
        let mut put = |of: &dyn Fn(&Pending) -> i64| {
            for (value, sample) in column.iter_mut().zip(&self.block) {
                *value = of(sample);
            }
            writer.put_column(&column[..self.block.len()]);
        };
        put(&|s| i64::from(s.sync));
        put(&|s| s.step);
        put(&|s| i64::from(s.size));
        put(&|s| i64::from(s.composition));
        let mut flags = [0; COLUMN];
        let mut gaps = Vec::with_capacity(COLUMN);
        for (i, pair) in self.block.windows(2).enumerate() {
            let gap = pair[1].offset.wrapping_sub(pair[0].offset.wrapping_add(u64::from(pair[0].size)));
            if gap != 0 {
                flags[i + 1] = 1;
                gaps.push(gap as i64);
            }
        }
        writer.put_column(&flags[..self.block.len()]);
        writer.put_column(&gaps);
        self.packed.extend_from_slice(&writer.take());
        self.packed_samples += self.block.len() as u32;
        self.block.clear();
    }
}
