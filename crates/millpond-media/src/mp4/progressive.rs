//! The sample tables of a progressive track (`stbl`, ISO/IEC 14496-12 8.5 to 8.7), walked side by side.
//!
//! Nothing is expanded: cursors run over the bytes of the boxes, and a count is cut to the entries that are present.
//! Only a constant sample size stands for many samples with few bytes. There the size of the object and the movie's
//! budget are the bounds.

use crate::{
    boxes::{Entries, FullBox, Node},
    budget::Budget,
    error::MediaError,
    movie::sample_table::SampleTableBuilder,
    mp4::{
        clips::Clips,
        sample_entries::{Fate, MOST_ENTRIES, SampleEntries},
    },
};
use std::cmp::Reverse;

/// Most samples of one constant size in another object, whose length is unknown: more than three days of AC-3.
const MAX_CONSTANT_ELSEWHERE: u32 = 1 << 24;

/// The tables of one track.
#[derive(Debug)]
pub(crate) struct Tables<'a> {
    stbl: &'a Node<'a>,
    sizes: Sizes<'a>,
    chunks: Chunks<'a>,
    runs: Vec<ChunkRun>,
    times: Entries<'a, 8>,
    composition: Entries<'a, 8>,
    sync: Option<Entries<'a, 4>>,
}

/// Sizes of the samples (8.7.3).
#[derive(Clone, Copy, Debug)]
enum Sizes<'a> {
    /// No table, and so no samples.
    None,
    /// One size for all samples.
    Constant { size: u32, count: u32 },
    /// Sizes of 32 bits.
    Words(Entries<'a, 4>),
    /// `stz2`: sizes of 4, 8 or 16 bits.
    Compact { bits: u8, bytes: &'a [u8], count: u32 },
}

/// Samples that are left out, and the reason.
#[derive(Debug)]
pub(crate) struct Cut {
    /// Box path, index of the first sample, and cause.
    pub(crate) reason: String,
    /// Whether the object ends before them.
    pub(crate) by_end: bool,
}

/// Offsets of the chunks (8.7.5).
#[derive(Clone, Copy, Debug)]
enum Chunks<'a> {
    Short(Entries<'a, 4>),
    Long(Entries<'a, 8>),
}

/// Chunks of the same shape (8.7.4).
#[derive(Clone, Copy, Debug)]
struct ChunkRun {
    /// Number of the first chunk, from 1.
    first: u32,
    samples: u32,
    description: u32,
}

impl<'a> Tables<'a> {
    /// Parses the tables in `stbl`.
    pub(crate) fn parse(stbl: &'a Node<'a>) -> Result<Self, MediaError> {
        let sizes = Sizes::parse(stbl)?;
        let tables = Self {
            stbl,
            sizes,
            chunks: Chunks::parse(stbl)?,
            runs: chunk_runs(stbl)?,
            times: table(stbl, b"stts")?.unwrap_or(Entries::EMPTY),
            composition: table(stbl, b"ctts")?.unwrap_or(Entries::EMPTY),
            sync: table(stbl, b"stss")?,
        };
        if sizes.count() > 0 {
            if tables.times.len() == 0 {
                return Err(stbl.invalid("samples without times (stts)", "an entry at least"));
            }
            if tables.chunks.len() == 0 {
                return Err(stbl.invalid("samples without chunks (stco or co64)", "a chunk at least"));
            }
            if tables.runs.is_empty() {
                return Err(stbl.invalid("samples without a usable chunk map (stsc)", "an entry at least"));
            }
        }
        Ok(tables)
    }

    /// Number of samples that the tables claim.
    pub(crate) fn len(&self) -> u32 {
        self.sizes.count()
    }

    /// Whether the tables hold no sample.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the sample descriptions that chunks use, counted from 1. The description of most samples is first.
    pub(crate) fn descriptions(&self) -> Vec<u32> {
        let mut used: Vec<(u32, u64)> = Vec::new();
        let ends = self.runs.iter().skip(1).map(|next| u64::from(next.first)).chain([self.chunks.len() as u64 + 1]);
        for (run, end) in self.runs.iter().zip(ends).filter(|(run, _)| run.samples > 0) {
            let samples = u64::from(run.samples).saturating_mul(end.saturating_sub(u64::from(run.first)));
            if let Some((_, count)) = used.iter_mut().find(|(description, _)| *description == run.description) {
                *count = count.saturating_add(samples);
            } else if used.len() < MOST_ENTRIES {
                used.push((run.description, samples));
            }
        }
        used.sort_by_key(|(_, samples)| Reverse(*samples));
        used.into_iter().map(|(description, _)| description).collect()
    }

    /// Appends all samples that lie before `object_len` (`None`: in another object), except for those whose sample entry
    /// can't be used. Returns the reason where samples at the end are left out.
    pub(crate) fn fill(
        &self,
        out: &mut SampleTableBuilder,
        (entries, clips): (&mut SampleEntries, &mut Option<Clips>),
        object_len: Option<u64>,
        budget: &mut Budget,
    ) -> Result<Option<Cut>, MediaError> {
        let count = self.sizes.count_within(object_len, MAX_CONSTANT_ELSEWHERE);
        let limit = object_len.unwrap_or(u64::MAX);
        let mut times = Runs::new(self.times);
        let mut composition = Runs::new(self.composition);
        let mut sync = SyncCursor::new(self.sync);
        let mut run = RunCursor::new(&self.runs);
        let (mut index, mut dts, mut fate, mut described) = (0, 0_i64, Fate::Kept, 0);
        for chunk in 0..self.chunks.len() {
            budget.step(self.stbl, 1)?;
            let mut offset = self.chunks.get(chunk);
            let in_chunk = run.samples_in(chunk);
            if run.description != described && in_chunk > 0 {
                described = run.description;
                let before = std::mem::replace(&mut fate, entries.begin(described, out.len()));
                if fate == Fate::Kept && before != Fate::Kept {
                    out.set_start_dts(dts);
                }
                if let Some(clips) = clips {
                    clips.begin(described, dts);
                }
            }
            for _ in 0..in_chunk {
                if index >= count {
                    return Ok(self.cut(index, "the object holds no more", true));
                }
                let size = self.sizes.get(index);
                let Some(end) = offset.checked_add(u64::from(size)).filter(|&end| end <= limit) else {
                    let why = format!("{size} bytes at {offset} pass the end of the object");
                    return Ok(self.cut(index, &why, true));
                };
                budget.samples(self.stbl, 1)?;
                let (_, duration) = times.next_or_last(1);
                // Composition offsets are signed in version 1 only (8.6.1.3), but writers put negative ones into
                // version 0.
                let composition = composition.next_or_zero() as i32;
                let is_sync = sync.is_sync(index);
                if fate == Fate::Kept {
                    out.push(offset, size, duration, composition, is_sync);
                } else {
                    entries.leave_out(described, 1);
                }
                if let Some(clips) = clips {
                    clips.push(offset, size, duration, composition, is_sync);
                }
                dts = dts.saturating_add(i64::from(duration));
                offset = end;
                index += 1;
            }
        }
        Ok(self.cut(index, "no chunk holds them", false))
    }

    fn cut(&self, index: u32, why: &str, by_end: bool) -> Option<Cut> {
        let count = self.sizes.count();
        (index < count).then(|| {
            let (path, offset) = (&self.stbl.path, self.stbl.offset);
            let reason = format!("{path} at byte {offset}: samples from {index} of {count} on are left out: {why}");
            Cut { reason, by_end }
        })
    }
}

impl<'a> Sizes<'a> {
    fn parse(stbl: &Node<'a>) -> Result<Self, MediaError> {
        if let Some(stsz) = stbl.child(b"stsz") {
            let FullBox { mut fields, .. } = stsz.full()?;
            let (size, count) = (fields.u32()?, fields.u32()?);
            return Ok(match size {
                0 => Self::Words(Entries::new(fields.rest(), count)),
                size => Self::Constant { size, count },
            });
        }
        let Some(stz2) = stbl.child(b"stz2") else { return Ok(Self::None) };
        let FullBox { mut fields, .. } = stz2.full()?;
        fields.skip(3)?;
        let (bits, count) = (fields.u8()?, fields.u32()?);
        if !matches!(bits, 4 | 8 | 16) {
            return Err(stz2.invalid(format!("a field size of {bits}"), "4, 8 or 16"));
        }
        let bytes = fields.rest();
        let present = u32::try_from(bytes.len() as u64 * 8 / u64::from(bits)).unwrap_or(u32::MAX);
        Ok(Self::Compact { bits, bytes, count: count.min(present) })
    }

    fn count(self) -> u32 {
        match self {
            Self::None => 0,
            Self::Constant { count, .. } | Self::Compact { count, .. } => count,
            Self::Words(entries) => entries.len() as u32,
        }
    }

    /// Returns the number of samples to try. A constant size stands for at most the samples that the object can hold,
    /// or for `elsewhere` samples of another object.
    fn count_within(self, object_len: Option<u64>, elsewhere: u32) -> u32 {
        match (self, object_len) {
            (Self::Constant { size, count }, Some(len)) => {
                count.min(u32::try_from(len / u64::from(size.max(1))).unwrap_or(u32::MAX))
            }
            (Self::Constant { count, .. }, None) => count.min(elsewhere),
            (sizes, _) => sizes.count(),
        }
    }

    fn get(self, index: u32) -> u32 {
        let index = index as usize;
        match self {
            Self::None => 0,
            Self::Constant { size, .. } => size,
            Self::Words(entries) => entries.get(index).map_or(0, |e| u32::from_be_bytes(*e)),
            Self::Compact { bits, bytes, .. } => {
                let byte = |i: usize| bytes.get(i).copied().map_or(0, u32::from);
                match bits {
                    4 if index.is_multiple_of(2) => byte(index / 2) >> 4,
                    4 => byte(index / 2) & 15,
                    8 => byte(index),
                    _ => byte(index * 2) << 8 | byte(index * 2 + 1),
                }
            }
        }
    }
}

impl<'a> Chunks<'a> {
    fn parse(stbl: &Node<'a>) -> Result<Self, MediaError> {
        Ok(match table(stbl, b"co64")? {
            Some(long) => Self::Long(long),
            None => Self::Short(table(stbl, b"stco")?.unwrap_or(Entries::EMPTY)),
        })
    }

    fn len(self) -> usize {
        match self {
            Self::Short(entries) => entries.len(),
            Self::Long(entries) => entries.len(),
        }
    }

    fn get(self, index: usize) -> u64 {
        match self {
            Self::Short(entries) => entries.get(index).map_or(0, |e| u64::from(u32::from_be_bytes(*e))),
            Self::Long(entries) => entries.get(index).map_or(0, |e| u64::from_be_bytes(*e)),
        }
    }
}

/// Reads a counted table of `N`-byte entries in a full box; `None` where the box is missing.
fn table<'a, const N: usize>(stbl: &Node<'a>, kind: &[u8; 4]) -> Result<Option<Entries<'a, N>>, MediaError> {
    let Some(node) = stbl.child(kind) else { return Ok(None) };
    let FullBox { mut fields, .. } = node.full()?;
    let count = fields.u32()?;
    Ok(Some(Entries::new(fields.rest(), count)))
}

/// Reads the chunk map without its invalid entries: those that name no chunk, or none after the chunk of the last
/// entry. Entries of zero samples stay, because they say that chunks are empty.
fn chunk_runs(stbl: &Node<'_>) -> Result<Vec<ChunkRun>, MediaError> {
    let entries = table::<12>(stbl, b"stsc")?.unwrap_or(Entries::EMPTY);
    let mut runs: Vec<ChunkRun> = Vec::with_capacity(entries.len());
    for entry in entries.iter() {
        let word = |i: usize| entry.get(i..).and_then(<[u8]>::first_chunk).map_or(0, |w| u32::from_be_bytes(*w));
        let run = ChunkRun { first: word(0), samples: word(4), description: word(8).max(1) };
        if run.first > runs.last().map_or(0, |last| last.first) {
            runs.push(run);
        }
    }
    Ok(if runs.iter().any(|run| run.samples > 0) { runs } else { Vec::new() })
}

/// Finds the run of a chunk, for chunks in ascending order.
struct RunCursor<'r> {
    runs: &'r [ChunkRun],
    samples: u32,
    /// Sample description of the last chunk.
    description: u32,
}

impl<'r> RunCursor<'r> {
    fn new(runs: &'r [ChunkRun]) -> Self {
        // Chunks before the first entry have its shape.
        let (samples, description) = runs.first().map_or((0, 1), |run| (run.samples, run.description));
        Self { runs, samples, description }
    }

    /// Number of samples in `chunk`, counted from 0.
    fn samples_in(&mut self, chunk: usize) -> u32 {
        while let [run, rest @ ..] = self.runs {
            if run.first as usize > chunk + 1 {
                break;
            }
            (self.samples, self.description, self.runs) = (run.samples, run.description, rest);
        }
        self.samples
    }
}

/// Run lengths (`stts`, `ctts`), read one value per sample.
struct Runs<'a> {
    entries: std::slice::Iter<'a, [u8; 8]>,
    left: u32,
    value: u32,
}

impl<'a> Runs<'a> {
    fn new(entries: Entries<'a, 8>) -> Self {
        Self { entries: entries.iter(), left: 0, value: 0 }
    }

    fn step(&mut self) -> bool {
        while self.left == 0 {
            let Some([a, b, c, d, value @ ..]) = self.entries.next() else { return false };
            self.left = u32::from_be_bytes([*a, *b, *c, *d]);
            self.value = u32::from_be_bytes(*value);
        }
        self.left -= 1;
        true
    }

    /// Returns the duration of the next samples, and the number of samples, at most `most`, that have it. After the end
    /// of the table its last value is repeated.
    fn next_or_last(&mut self, most: u32) -> (u32, u32) {
        let more = if self.step() { self.left.min(most - 1) } else { most - 1 };
        self.left = self.left.saturating_sub(more);
        // Deltas with the top bit set are negative differences of some writers. They count as one tick, as in ffmpeg.
        (more + 1, if self.value > i32::MAX as u32 { 1 } else { self.value })
    }

    /// Returns the next value; 0 after the end of the table.
    fn next_or_zero(&mut self) -> u32 {
        if self.step() { self.value } else { 0 }
    }
}

/// Reads the sync sample table (8.6.2), for samples in ascending order.
struct SyncCursor<'a> {
    entries: Option<std::iter::Peekable<std::slice::Iter<'a, [u8; 4]>>>,
    base: u32,
    empty: bool,
}

impl<'a> SyncCursor<'a> {
    fn new(table: Option<Entries<'a, 4>>) -> Self {
        // Samples count from 1, but some writers count from 0.
        let base = match table.and_then(|t| t.get(0)) {
            Some([0, 0, 0, 0]) => 0,
            _ => 1,
        };
        let empty = table.is_some_and(|t| t.len() == 0);
        Self { entries: table.map(|t| t.iter().peekable()), base, empty }
    }

    /// Whether sample `index` is a sync sample. Without a table all samples are; with an empty one the first is,
    /// because decoding has to begin somewhere.
    fn is_sync(&mut self, index: u32) -> bool {
        let Some(entries) = &mut self.entries else { return true };
        let number = index.saturating_add(self.base);
        while entries.next_if(|e| u32::from_be_bytes(**e) < number).is_some() {}
        entries.next_if(|e| u32::from_be_bytes(**e) == number).is_some() || (self.empty && index == 0)
    }
}

mod pcm;
mod places;

#[cfg(test)]
mod tests;
