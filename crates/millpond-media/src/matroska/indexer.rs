//! Reads the index of a Matroska or WebM file: its head, and then all blocks, or those of the first and the last fragment.

use super::{
    clusters::Event,
    extracting::Extracting,
    fragments::Fragments,
    head::{self, Found, Head},
    lane::{self, Lane},
    outliner::{self, Outliner},
    segment::Info,
    stretch::{Marks, Stretch},
};
use crate::{
    error::MediaError,
    movie::{
        Movie, SkippedTrack, Track, TrackKind, artwork::ImageRange, chapter::Chapter, outline::Outline, tags::Tags,
    },
    units::ByteRange,
    work::Work,
};
use bytes::Bytes;

/// Nanoseconds of a second.
const SECOND: f64 = 1e9;

/// Reads the index of one file.
#[derive(Debug)]
pub(crate) struct MatroskaIndexer {
    object_len: u64,
    stage: Stage,
    outlining: bool,
    work: Work,
}

#[derive(Debug)]
enum Stage {
    Head(Box<Head>),
    /// Comparing the cues with the first and the last fragment.
    Outline(Box<(Found, Outliner)>),
    Blocks(Box<Blocks>),
    Done,
}

/// All blocks of a segment.
#[derive(Debug)]
struct Blocks {
    info: Info,
    chapters: Vec<Chapter>,
    artwork: Option<ImageRange>,
    tags: Tags,
    lanes: Vec<Lane>,
    /// `None` where the file stores whole frames.
    extracting: Option<Extracting>,
    stretch: Stretch,
    start: u64,
    /// Whether the cues name fragments.
    has_fragments: bool,
}

/// Result of one step.
#[derive(Debug)]
pub(crate) enum MatroskaStep {
    /// The bytes of these ranges are needed.
    Needs(Vec<ByteRange>),
    Done(Box<Movie>),
}

impl MatroskaIndexer {
    /// Creates an indexer for an object of `object_len` bytes. Elements of its head have at most `most` bytes; the first requests
    /// have `read_size`. With `outlining` the cues become an outline, where there are any.
    pub(crate) fn new(object_len: u64, most: u64, read_size: u64, outlining: bool, work: Work) -> Self {
        let head = Head::new(object_len, most, read_size, work.clone());
        Self { object_len, stage: Stage::Head(Box::new(head)), outlining, work }
    }

    /// Whether the first and the last fragment are read.
    pub(crate) fn is_at_frames(&self) -> bool {
        matches!(self.stage, Stage::Outline(_))
    }

    /// Whether all blocks are read, each request behind the one before.
    pub(crate) fn is_at_blocks(&self) -> bool {
        matches!(self.stage, Stage::Blocks(_))
    }

    /// Bytes of heap that the tables of all blocks hold so far.
    pub(crate) fn scanned_bytes(&self) -> usize {
        match &self.stage {
            Stage::Blocks(blocks) => blocks.lanes.iter().map(Lane::heap_bytes).sum(),
            _ => 0,
        }
    }

    /// Takes the bytes of a range that was needed.
    pub(crate) fn supply(&mut self, range: ByteRange, bytes: Bytes) {
        match &mut self.stage {
            Stage::Head(head) => head.supply(bytes),
            Stage::Outline(parts) => parts.1.supply(range, &bytes),
            Stage::Blocks(blocks) => blocks.stretch.supply(bytes),
            Stage::Done => {}
        }
    }

    /// Reads as far as the bytes allow.
    ///
    /// # Errors
    /// The file is damaged beyond reading, or none of its tracks can be played.
    pub(crate) fn step(&mut self) -> Result<MatroskaStep, MediaError> {
        loop {
            match std::mem::replace(&mut self.stage, Stage::Done) {
                Stage::Head(mut head) => match head.step()? {
                    head::Step::Needs(range) => return Ok(self.needs(Stage::Head(head), vec![range])),
                    head::Step::Found(found) => {
                        let outliner = self.outlining.then(|| Outliner::new(&found, &self.work)).flatten();
                        self.stage = match outliner {
                            Some(outliner) => Stage::Outline(Box::new((*found, outliner))),
                            None => self.blocks(*found),
                        };
                    }
                },
                Stage::Outline(mut parts) => match parts.1.step()? {
                    outliner::Step::Needs(ranges) => return Ok(self.needs(Stage::Outline(parts), ranges)),
                    outliner::Step::Refused => {
                        self.stage = self.blocks(parts.0);
                    }
                    outliner::Step::Outlined(tracks, left, outline) => {
                        let skipped = left.into_iter().map(|(id, error)| SkippedTrack::of_error(id, &error));
                        let movie = movie(&parts.0.info, tracks, skipped.collect());
                        let outline: Option<Box<Outline>> = Some(outline);
                        let (chapters, tags) = (parts.0.chapters, parts.0.tags);
                        let artwork = parts.0.artwork.map(Into::into);
                        let movie = Movie { fragmented: true, chapters, artwork, tags, outline, ..movie };
                        return Ok(MatroskaStep::Done(Box::new(movie)));
                    }
                },
                Stage::Blocks(mut blocks) => match blocks.step()? {
                    Some(range) => return Ok(self.needs(Stage::Blocks(blocks), vec![range])),
                    None => return Ok(MatroskaStep::Done(Box::new(blocks.finish()?))),
                },
                Stage::Done => {
                    return Err(MediaError::invalid("the object", 0, "a poll after the movie was handed out", "none"));
                }
            }
        }
    }

    /// Begins to read all blocks.
    fn blocks(&self, found: Found) -> Stage {
        Stage::Blocks(Box::new(Blocks::new(found, self.object_len, self.work.clone())))
    }

    fn needs(&mut self, stage: Stage, ranges: Vec<ByteRange>) -> MatroskaStep {
        self.stage = stage;
        MatroskaStep::Needs(ranges)
    }
}

impl Blocks {
    fn new(found: Found, object_len: u64, work: Work) -> Self {
        let lanes: Vec<Lane> = found.tracks.iter().map(|entry| Lane::new(entry.clone(), &found.info)).collect();
        let plays = |number: u64| lanes.iter().any(|lane| lane.entry.number == number && lane.plays());
        let has_fragments = Fragments::of(&found, |entry| plays(entry.number)).is_some();
        let range = ByteRange::new(found.first_cluster, found.segment.1);
        let mut stretch = Stretch::new(range, Marks::ALL, range.end, work);
        for lane in lanes.iter().filter(|lane| lane.waits()) {
            stretch.show_first_of(lane.entry.number);
        }
        let Found { info, chapters, artwork, tags, .. } = found;
        let extracting = Extracting::new(&lanes, artwork, (range.start, object_len));
        Self { info, chapters, artwork, tags, lanes, extracting, stretch, start: range.start, has_fragments }
    }

    /// Reads blocks. Returns the range that is needed; `None` at the end.
    fn step(&mut self) -> Result<Option<ByteRange>, MediaError> {
        if !has_media(&self.lanes) {
            return Ok(None);
        }
        loop {
            match self.stretch.next()? {
                Event::Needs(range) => return Ok(Some(range)),
                Event::End => return Ok(None),
                Event::Block(block) => {
                    let Some(lane) = self.lanes.iter_mut().find(|lane| lane.entry.number == block.track) else {
                        continue;
                    };
                    let (number, frames) = (block.track, self.stretch.frames());
                    match &mut self.extracting {
                        Some(extracting) => lane.extract(block, frames, &self.info, extracting),
                        None => lane.push(&block, frames, &self.info),
                    }
                    lane.search_captions(self.stretch.available());
                    if lane.waits() {
                        self.stretch.show_first_of(number);
                    }
                }
            }
        }
    }

    fn finish(self) -> Result<Movie, MediaError> {
        let Self { info, chapters, artwork, tags, lanes, mut extracting, stretch, start, has_fragments } = self;
        let cut_short = stretch.is_cut_short();
        let base = lanes.iter().filter_map(Lane::first).min().unwrap_or(0);
        let has_media = has_media(&lanes);
        let mut tracks: Vec<Track> = Vec::new();
        let mut skipped = Vec::new();
        for mut lane in lanes {
            if let Some(extracting) = &mut extracting {
                extracting.end(lane.take_frames());
            }
            let id = u32::try_from(lane.entry.number).unwrap_or(u32::MAX);
            // No blocks are read for text alone.
            let alone = (lane.is_text() && !has_media).then(|| text_alone(lane.entry.offset));
            match lane.finish(id, base, &info) {
                Ok((track, _)) if tracks.iter().all(|other| other.id != id) => tracks.push(track),
                Ok(_) => skipped.push(SkippedTrack::new(id, format!("track number {id} was used before"))),
                Err(error) => skipped.push(SkippedTrack::of_error(id, &alone.unwrap_or(error))),
            }
        }
        tracks.sort_by_key(|track| track.kind == TrackKind::Text);
        if tracks.is_empty() {
            let found = skipped.into_iter().map(|track| track.reason).collect();
            return Err(MediaError::NoPlayableTrack { path: "Tracks".to_owned(), offset: start, found, cut_short });
        }
        // No fragments are read alone where samples are no ranges of the file.
        let fragmented = has_fragments && extracting.is_none();
        let (extraction, artwork) = match extracting.map(Extracting::finish) {
            Some((extraction, artwork)) => (Some(Box::new(extraction)), artwork),
            None => (None, artwork),
        };
        let (movie, artwork) = (movie(&info, tracks, skipped), artwork.map(Into::into));
        Ok(Movie { fragmented, chapters, artwork, tags, cut_short, extraction, ..movie })
    }
}

/// Whether pictures or sound can be played, as far as is known.
fn has_media(lanes: &[Lane]) -> bool {
    lanes.iter().any(|lane| lane.plays() && lane::is_media(&lane.entry))
}

/// Returns the error of a track of text in a file that has no other track to play.
fn text_alone(offset: u64) -> MediaError {
    let found = "text without pictures or sound that can be played";
    MediaError::invalid("Tracks/TrackEntry", offset, found, "text beside either")
}

fn movie(info: &Info, tracks: Vec<Track>, skipped: Vec<SkippedTrack>) -> Movie {
    let duration = info.duration.map_or(0.0, |ticks| ticks * info.scale as f64 / SECOND);
    let duration = (duration * f64::from(lane::MOVIE.get())) as u64;
    Movie { duration, ..Movie::of_tracks(lane::MOVIE, tracks, skipped) }
}
