//! Sample tables (`stbl`) of a track.

use crate::boxes::{bx, table, words};

/// Sizes of the samples.
#[derive(Clone, Debug)]
pub enum Sizes {
    /// No `stsz`.
    None,
    /// One size for all of a count that is only claimed.
    Constant {
        /// Bytes of a sample.
        size: u32,
        /// Samples.
        count: u32,
    },
    /// A size of each.
    Each(Vec<u32>),
}

/// The tables; what they claim need not fit together.
#[derive(Clone, Debug)]
pub struct TableRecipe {
    /// `stsz`.
    pub sizes: Sizes,
    /// `stts`: counts and durations.
    pub times: Vec<(u32, u32)>,
    /// `ctts`: counts and offsets.
    pub composition: Vec<(u32, i32)>,
    /// `stss`, where there is one.
    pub sync: Option<Vec<u32>>,
    /// `stsc`: first chunk, samples of a chunk, sample description.
    pub runs: Vec<(u32, u32, u32)>,
    /// `co64`.
    pub chunks: Vec<u64>,
    /// Count that all tables claim in place of their own.
    pub claimed: Option<u32>,
}

impl TableRecipe {
    /// `count` samples of `size` bytes and `duration` ticks in one chunk, all of them sync samples.
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

    /// TableRecipe without a sample, as movies with fragments have them.
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
