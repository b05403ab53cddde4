//! Limits on the memory and work that one movie takes to index and to present.
//!
//! A count in a table is only a claim. So the samples that are held and walked over are bounded by the bytes of
//! metadata that were read, plus a base for small files with regular tables. A movie over a limit is refused, and the
//! error names the box, before memory or time is spent. All limits are here; each holds for one object:
//!
//! | what | at most | reason |
//! |---|---|---|
//! | samples | 2,097,152, and one for each byte of metadata | tables take a byte or more per sample; 18 hours of AC-3 in one chunk |
//! | samples of a fragment in a stream | 8,192, and one for each byte of the fragment | a tenth of a second of PCM in single frames |
//! | edits of all tracks | 16,384 | each decodes a block of 128 samples; phones and editors write tens |
//! | samples that edits present again | 1,048,576 | loops made by editors are short |
//! | tracks | 256 | a hundred languages, and as many subtitles |
//! | reasons for skipped tracks | 512 | two for each track |
//! | rounds of reading up to the movie box | 1,024 | real files have a handful of boxes before it |
//! | rounds of reading fragments | 100,000 | a day of fragments of one second without an index |
//! | samples read to find entry points | 2,112; 512 bytes each, 2,048 where parameter sets or messages precede the slice | 32 to check the flags, then four per second of eight minutes |
//! | visits of lanes in all rounds | 16,777,216 | two hundred rounds over a day of fragments of one second |
//!
//! Every sample, edit, box and lane is also a step of the job's [`Work`], so that the job can be cancelled.

use crate::{
    boxes::Node,
    error::MediaError,
    work::{Work, WorkError},
};

/// Samples of a movie that need no bytes of tables to justify them.
const BASE_SAMPLES: u64 = 1 << 21;
/// Samples of a fragment in a stream that need no bytes to justify them.
const FRAGMENT_SAMPLES: u64 = 1 << 13;
/// Samples that one byte of metadata justifies.
const SAMPLES_A_BYTE: u64 = 1;
/// Most edits of all tracks of a movie together.
const MOST_EDITS: u64 = 1 << 14;
/// Most samples that edits of a movie present beyond the first time.
const REPEATED_SAMPLES: u64 = 1 << 20;
/// Most tracks whose tables are read.
pub(crate) const MOST_TRACKS: usize = 256;
/// Most reasons kept for skipped tracks.
pub(crate) const MOST_SKIPPED: usize = 512;
/// Most rounds of reads until the movie box is found.
const MOST_BOX_ROUNDS: u32 = 1024;
/// Most rounds of reads of fragments.
const MOST_FRAGMENT_ROUNDS: u32 = 100_000;
/// Most visits of lanes in all rounds together.
const MOST_LOOKS: u64 = 1 << 24;
/// Most samples that are read to find entry points.
pub(crate) const MOST_LOOKS_AT_SAMPLES: usize = 2112;
/// Most reads of one such sample.
pub(crate) const MOST_READS_OF_A_SAMPLE: u32 = 4;
/// Steps that are spent together.
const BATCH: u32 = 1024;

/// Remaining allowance of one movie.
#[derive(Debug)]
pub(crate) struct Budget {
    work: Work,
    /// Steps taken but not yet spent.
    owed: u32,
    samples: u64,
    most_samples: u64,
    edits: u64,
    repeated: u64,
}

impl Budget {
    /// Creates the budget of one movie, whose steps are spent on `work`.
    pub(crate) fn new(work: Work) -> Self {
        Self { work, owed: 0, samples: 0, most_samples: BASE_SAMPLES, edits: 0, repeated: 0 }
    }

    /// Creates the budget of one fragment of a stream without end, whose steps are spent on `work`.
    pub(crate) fn of_fragment(work: Work) -> Self {
        Self { most_samples: FRAGMENT_SAMPLES, ..Self::new(work) }
    }

    /// Adds `bytes` of metadata that were read: they justify samples.
    pub(crate) fn justify(&mut self, bytes: usize) {
        self.most_samples = self.most_samples.saturating_add(bytes as u64 * SAMPLES_A_BYTE);
    }

    /// Takes `steps` steps for reading `node`.
    pub(crate) fn step(&mut self, node: &Node<'_>, steps: u32) -> Result<(), MediaError> {
        self.owed = self.owed.saturating_add(steps);
        if self.owed < BATCH {
            return Ok(());
        }
        let owed = u64::from(std::mem::take(&mut self.owed));
        self.work.spend(owed).map_err(|error| MediaError::work(node.path.clone(), node.offset, error))
    }

    /// Takes `count` samples, and as many steps.
    pub(crate) fn samples(&mut self, node: &Node<'_>, count: u32) -> Result<(), MediaError> {
        self.samples += u64::from(count);
        if self.samples > self.most_samples {
            let (found, most) = (self.samples, self.most_samples);
            return Err(MediaError::too_large(node.path.clone(), node.offset, found, most, "samples"));
        }
        self.step(node, count)
    }

    /// Takes the edits of a track.
    pub(crate) fn edits(&mut self, path: &str, offset: u64, count: usize) -> Result<(), MediaError> {
        self.edits = self.edits.saturating_add(count as u64);
        if self.edits > MOST_EDITS {
            return Err(MediaError::too_large(path, offset, self.edits, MOST_EDITS, "edits of all tracks"));
        }
        Ok(())
    }

    /// Takes the samples that edits present again: `presented` in a track that has `samples`.
    pub(crate) fn repeated(&mut self, path: &str, offset: u64, presented: u64, samples: u32) -> Result<(), MediaError> {
        self.repeated = self.repeated.saturating_add(presented.saturating_sub(u64::from(samples)));
        if self.repeated > REPEATED_SAMPLES {
            let (found, what) = (self.repeated, "samples presented again by edits");
            return Err(MediaError::too_large(path, offset, found, REPEATED_SAMPLES, what));
        }
        Ok(())
    }

    /// Spends `steps` without batching.
    pub(crate) fn spend(&self, steps: u64) -> Result<(), WorkError> {
        self.work.spend(steps)
    }
}

/// Remaining rounds of reads of a search: each may cost a request to the origin.
#[derive(Clone, Debug)]
pub(crate) struct Rounds {
    path: &'static str,
    rounds: u32,
    most: u32,
    looks: u64,
}

impl Rounds {
    /// Returns the rounds of the search for the movie box.
    pub(crate) fn to_movie_box() -> Self {
        Self { path: "moov", rounds: 0, most: MOST_BOX_ROUNDS, looks: 0 }
    }

    /// Returns the rounds of the search for fragments.
    pub(crate) fn to_fragments() -> Self {
        Self { path: "moof", rounds: 0, most: MOST_FRAGMENT_ROUNDS, looks: 0 }
    }

    /// Begins a round that visits `lanes` lanes, the first at `offset`.
    pub(crate) fn begin(&mut self, lanes: usize, offset: u64, work: &Work) -> Result<(), MediaError> {
        self.rounds += 1;
        self.looks = self.looks.saturating_add(lanes as u64);
        let too_large = |found, most, what| Err(MediaError::too_large(self.path, offset, found, most, what));
        if self.rounds > self.most {
            return too_large(u64::from(self.rounds), u64::from(self.most), "reads one after the other");
        }
        if self.looks > MOST_LOOKS {
            return too_large(self.looks, MOST_LOOKS, "places to look for fragments");
        }
        work.spend(lanes as u64 + 1).map_err(|error| MediaError::work(self.path, offset, error))
    }

    /// Whether another index may cut the object into `lanes` lanes, each of which takes a visit.
    pub(crate) fn cut(&mut self, lanes: usize) -> bool {
        // Half of the visits are left for reading the lanes.
        let looks = self.looks.saturating_add(lanes as u64);
        let fits = looks <= MOST_LOOKS / 2;
        if fits {
            self.looks = looks;
        }
        fits
    }
}
