//! Reads the index of a Matroska or WebM file: its head, and then all blocks.

use super::{
    clusters::{Clusters, Event},
    head::{self, Found, Head},
    lane::{self, Lane},
    segment::Info,
};
use crate::{
    budget::MOST_SKIPPED,
    error::MediaError,
    movie::{Movie, SkippedTrack, Track},
    units::ByteRange,
    work::Work,
};
use bytes::Bytes;

/// Bytes of a request while blocks are read.
const READ: u64 = 1 << 20;
/// Nanoseconds of a second.
const SECOND: f64 = 1e9;

/// Reads the index of one file.
#[derive(Debug)]
pub(crate) struct MatroskaIndexer {
    stage: Stage,
    asked: Option<ByteRange>,
    work: Work,
}

#[derive(Debug)]
enum Stage {
    Head(Box<Head>),
    Blocks(Box<Blocks>),
    Done,
}

#[derive(Debug)]
struct Blocks {
    info: Info,
    lanes: Vec<Lane>,
    clusters: Clusters,
}

/// Result of one step.
#[derive(Debug)]
pub(crate) enum MatroskaStep {
    /// The bytes of this range are needed.
    Needs(ByteRange),
    Done(Box<Movie>),
}

impl MatroskaIndexer {
    /// Creates an indexer for an object of `object_len` bytes. Elements of its head have at most `most` bytes; the first requests
    /// have `read_size`.
    pub(crate) fn new(object_len: u64, most: u64, read_size: u64, work: Work) -> Self {
        let head = Head::new(object_len, most, read_size, false, work.clone());
        Self { stage: Stage::Head(Box::new(head)), asked: None, work }
    }

    /// Whether blocks are read, each request behind the one before.
    pub(crate) fn is_at_blocks(&self) -> bool {
        matches!(self.stage, Stage::Blocks(_))
    }

    /// The range that was needed last.
    pub(crate) fn asked(&self) -> Option<ByteRange> {
        self.asked
    }

    /// Takes the bytes of the range that was needed.
    pub(crate) fn supply(&mut self, bytes: Bytes) {
        self.asked = None;
        match &mut self.stage {
            Stage::Head(head) => head.supply(bytes),
            Stage::Blocks(blocks) => blocks.clusters.supply(bytes),
            Stage::Done => {}
        }
    }

    /// Reads as far as the bytes allow.
    ///
    /// # Errors
    /// The file is damaged beyond reading, or none of its tracks can be played.
    pub(crate) fn step(&mut self) -> Result<MatroskaStep, MediaError> {
        if let Stage::Head(head) = &mut self.stage {
            match head.step()? {
                head::Step::Needs(range) => return Ok(self.needs(range)),
                head::Step::Found(found) => self.stage = Stage::Blocks(Box::new(Blocks::new(*found, self.work.clone()))),
            }
        }
        if let Stage::Blocks(blocks) = &mut self.stage {
            if let Some(range) = blocks.step()? {
                return Ok(self.needs(range));
            }
        }
        match std::mem::replace(&mut self.stage, Stage::Done) {
            Stage::Blocks(blocks) => Ok(MatroskaStep::Done(Box::new(blocks.finish()?))),
            _ => Err(MediaError::invalid("the object", 0, "a poll after the movie was handed out", "none")),
        }
    }

    fn needs(&mut self, range: ByteRange) -> MatroskaStep {
        self.asked = Some(range);
        MatroskaStep::Needs(range)
    }
}

impl Blocks {
    fn new(found: Found, work: Work) -> Self {
        let Found { info, tracks, segment, first_cluster, .. } = found;
        let lanes: Vec<Lane> = tracks.into_iter().map(|entry| Lane::new(entry, &info)).collect();
        let mut clusters = Clusters::new(ByteRange::new(first_cluster, segment.1), READ, work);
        for lane in lanes.iter().filter(|lane| lane.waits()) {
            clusters.show_first_of(lane.entry.number);
        }
        Self { info, lanes, clusters }
    }

    /// Reads blocks. Returns the range that is needed; `None` at the end.
    fn step(&mut self) -> Result<Option<ByteRange>, MediaError> {
        if !self.lanes.iter().any(|lane| lane.plays() && lane::is_media(&lane.entry)) {
            return Ok(None);
        }
        loop {
            match self.clusters.next()? {
                Event::Needs(range) => return Ok(Some(range)),
                Event::End => return Ok(None),
                Event::Block(block) => {
                    let Some(lane) = self.lanes.iter_mut().find(|lane| lane.entry.number == block.track) else { continue };
                    lane.push(&block, self.clusters.frames(), &self.info);
                    if lane.waits() {
                        self.clusters.show_first_of(block.track);
                    }
                }
            }
        }
    }

    fn finish(self) -> Result<Movie, MediaError> {
        let Self { info, lanes, clusters } = self;
        let cut_short = clusters.is_cut_short();
        let base = lanes.iter().filter_map(Lane::first).min().unwrap_or(0);
        let mut tracks: Vec<Track> = Vec::new();
        let mut skipped = Vec::new();
        for lane in lanes {
            let id = u32::try_from(lane.entry.number).unwrap_or(u32::MAX);
            match lane.finish(id, base, &info) {
                Ok(track) if tracks.iter().all(|other| other.id != id) => tracks.push(track),
                Ok(_) => skipped.push(SkippedTrack { id, reason: format!("track number {id} was used before") }),
                Err(error) => skipped.push(SkippedTrack { id, reason: error.to_string() }),
            }
        }
        skipped.truncate(MOST_SKIPPED);
        if tracks.is_empty() {
            let found = skipped.into_iter().map(|track| track.reason).collect();
            return Err(MediaError::NoPlayableTrack { path: "Tracks".to_owned(), offset: clusters.at(), found, cut_short });
        }
        let duration = info.duration.map_or(0.0, |ticks| ticks * info.scale as f64 / SECOND);
        Ok(Movie {
            timescale: lane::MOVIE,
            duration: (duration * f64::from(lane::MOVIE.get())) as u64,
            fragmented: false,
            tracks,
            clips: Vec::new(),
            skipped,
            external_media: None,
            system_headers: Vec::new(),
            fragment_headers: Vec::new(),
            cut_short,
            outline: None,
            is_indivisible: true,
            stitched: None,
        })
    }
}
