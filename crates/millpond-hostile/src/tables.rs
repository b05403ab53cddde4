//! Sample tables (`stbl`) of a track.

use crate::boxes::{bx, table, words};

/// Sizes of the samples.
#[derive(Clone, Debug)]
pub enum Sizes {
    /// No `stsz`.
    None,
    /// One size for all samples. The sample count is only claimed.
    Constant {
        /// Bytes of a sample.
        size: u32,
        /// Number of samples.
        count: u32,
    },
    /// One size per sample.
    Each(Vec<u32>),
}

/// Sample tables. Their claims may contradict each other.
#[derive(Clone, Debug)]
pub struct TableRecipe {
    /// `stsz`.
    pub sizes: Sizes,
    /// `stts`: counts and durations.
    pub times: Vec<(u32, u32)>,
    /// `ctts`: counts and offsets.
    pub composition: Vec<(u32, i32)>,
    /// `stss`; `None` leaves the box out.
    pub sync: Option<Vec<u32>>,
    /// `stsc`: first chunk, samples per chunk, sample description.
    pub runs: Vec<(u32, u32, u32)>,
    /// `co64`.
    pub chunks: Vec<u64>,
    /// Entry count that all tables claim instead of their own.
    pub claimed: Option<u32>,
}

impl TableRecipe {
    /// Describes `count` sync samples of `size` bytes and `duration` ticks, in one chunk.
    #[must_use]
    pub fn constant(count: u32, size: u32, duration: u32) -> Self {
        Self {
            sizes: Sizes::Constant { size, count },
            times: vec![(count, duration)],
            composition: Vec::new(),
            sync: None,
            runs: vec![(1, count, 1)],
            chunks: vec![0],
            claimed: None,
        }
    }

    /// Describes tables without samples, as fragmented movies have them.
    #[must_use]
    pub fn empty() -> Self {
        Self { sizes: Sizes::None, times: Vec::new(), runs: Vec::new(), chunks: Vec::new(), ..Self::constant(0, 0, 0) }
    }

    pub(crate) fn write(&self, sample_entry: &[u8]) -> Vec<u8> {
        let claim = |len: usize| self.claimed.unwrap_or(len as u32);
        let mut parts = vec![bx(b"stsd", &[&words(&[0, 1]), sample_entry])];
        match &self.sizes {
            Sizes::None => {}
            Sizes::Constant { size, count } => parts.push(bx(b"stsz", &[&words(&[0, *size, *count])])),
            Sizes::Each(sizes) => parts.push(bx(b"stsz", &[&words(&[0, 0, claim(sizes.len())]), &words(sizes)])),
        }
        parts.push(table(b"stts", claim(self.times.len()), self.times.iter().flat_map(|(n, d)| [*n, *d])));
        if !self.composition.is_empty() {
            let entries = self.composition.iter().flat_map(|(n, offset)| [*n, *offset as u32]);
            parts.push(table(b"ctts", claim(self.composition.len()), entries));
        }
        if let Some(sync) = &self.sync {
            parts.push(table(b"stss", claim(sync.len()), sync.iter().copied()));
        }
        parts.push(table(b"stsc", claim(self.runs.len()), self.runs.iter().flat_map(|(a, b, c)| [*a, *b, *c])));
        let chunks = self.chunks.iter().flat_map(|chunk| [(chunk >> 32) as u32, *chunk as u32]);
        parts.push(table(b"co64", claim(self.chunks.len()), chunks));
        bx(b"stbl", &[&parts.concat()])
    }
}
