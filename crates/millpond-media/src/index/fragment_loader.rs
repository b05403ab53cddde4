//! Reads the samples of some fragments of an outlined movie.

use crate::{
    boxes::Node,
    budget::MOST_READS_OF_A_SAMPLE,
    codec::{Codec, TrackKind, nal::NalSyntax},
    error::MediaError,
    index::{
        entry_look::{Look, Verdict},
        in_band,
        span_walk::SpanWalk,
    },
    matroska::BlockLoader,
    movie::{
        Movie, Track,
        outline::Form,
        sample_table::{Sample, SampleTable},
        tags::Tags,
    },
    mp4::moov::MovieDraft,
    units::ByteRange,
    work::Work,
};
use bytes::Bytes;
use std::{ops::Range, sync::Arc};

/// Most bytes of fragment boxes of one load.
const MOST_METADATA: u64 = 16 << 20;

/// Result of one poll of a [`FragmentLoader`].
#[derive(Clone, Debug, PartialEq)]
pub enum LoadStep {
    /// The bytes of this range are needed. The range lies behind all earlier ranges, with two exceptions: first bytes of samples, and
    /// neighbouring fragments.
    Need(ByteRange),
    /// The movie with the samples of the fragments only.
    Done(Box<Movie>),
}

/// Reads the samples of consecutive fragments of an outlined movie from the bytes of these fragments.
///
/// Call [`poll`](Self::poll). For [`LoadStep::Need`] pass the bytes to [`supply`](Self::supply), and poll again. All ranges
/// lie within [`Outline::range`](crate::Outline::range), except in Matroska files, where neighbouring fragments may contain sound of
/// these fragments. An error tells that the fragments contradict the index of fragments.
#[derive(Debug)]
pub struct FragmentLoader {
    movie: Arc<Movie>,
    /// The bytes of the fragments.
    range: ByteRange,
    fragments: Range<u32>,
    stage: Stage,
    asked: Option<ByteRange>,
    work: Work,
}

#[derive(Debug)]
enum Stage {
    Walk(SpanWalk),
    /// Reading the blocks of a Matroska file.
    Blocks(Box<BlockLoader>),
    /// Examining first pictures.
    Pictures(Box<Movie>, Vec<Check>),
    Done,
}

/// A check of the first picture of a track.
#[derive(Debug)]
enum Check {
    /// Whether decoding can begin with it.
    Entry(Look),
    /// Whether it has no other parameter sets than the sample entry, whose type forbids them. The codec is that of the header.
    Sets(Box<Codec>, ByteRange),
}

impl FragmentLoader {
    /// Creates a loader. `None` if `movie` has no such fragments. Its steps are spent on `work`.
    #[must_use]
    pub fn new(movie: Arc<Movie>, fragments: Range<u32>, work: Work) -> Option<Self> {
        let range = movie.outline.as_ref()?.range(&fragments)?;
        let stage = match &movie.outline.as_ref()?.form {
            Form::Boxes(_) => Stage::Walk(SpanWalk::new(range, MOST_METADATA, work.clone())),
            Form::Clusters(_) => Stage::Blocks(Box::new(BlockLoader::new(&movie, &fragments, work.clone())?)),
        };
        Some(Self { movie, range, fragments, stage, asked: None, work })
    }

    /// Returns the range needed next, or the movie.
    ///
    /// # Errors
    /// The bytes are not the fragments that the outline promises, or `work` has ended.
    pub fn poll(&mut self) -> Result<LoadStep, MediaError> {
        if let Some(asked) = self.asked {
            return Ok(LoadStep::Need(asked));
        }
        if let Stage::Walk(walk) = &mut self.stage {
            if let Some(range) = walk.step()? {
                return Ok(self.ask(range));
            }
            let (loaded, codecs) = parsed(&self.movie, &self.fragments, walk.moofs(), self.work.clone())?;
            check_places(&loaded, self.range)?;
            let checks = checks(&loaded, codecs);
            self.stage = Stage::Pictures(Box::new(loaded), checks);
        }
        if let Stage::Blocks(blocks) = &mut self.stage
            && let Some(range) = blocks.step()?
        {
            return Ok(self.ask(range));
        }
        match std::mem::replace(&mut self.stage, Stage::Done) {
            Stage::Blocks(blocks) => {
                Ok(LoadStep::Done(Box::new(Movie { tracks: blocks.finish(), ..bare(&self.movie) })))
            }
            Stage::Pictures(movie, checks) => match checks.last().map(Check::range) {
                None => Ok(LoadStep::Done(movie)),
                Some(range) => {
                    self.stage = Stage::Pictures(movie, checks);
                    Ok(self.ask(range))
                }
            },
            _ => Err(self.not_as_promised()),
        }
    }

    /// Passes in the bytes of the range that the last [`poll`](Self::poll) returned.
    pub fn supply(&mut self, bytes: Bytes) {
        if self.asked.take().is_none() {
            return;
        }
        match &mut self.stage {
            Stage::Walk(walk) => walk.supply(bytes),
            Stage::Blocks(blocks) => blocks.supply(bytes),
            Stage::Pictures(_, checks) => {
                let passes = match checks.pop() {
                    None => true,
                    Some(Check::Sets(codec, _)) => in_band::repeats_sets(&codec, &bytes),
                    Some(Check::Entry(mut look)) => match look.read(&bytes) {
                        Verdict::Entry => true,
                        Verdict::Unknown if look.reads() < MOST_READS_OF_A_SAMPLE => {
                            checks.push(Check::Entry(look));
                            true
                        }
                        Verdict::Unknown | Verdict::Other => false,
                    },
                };
                if !passes {
                    self.stage = Stage::Done;
                }
            }
            Stage::Done => {}
        }
    }

    fn ask(&mut self, range: ByteRange) -> LoadStep {
        self.asked = Some(range);
        LoadStep::Need(range)
    }

    fn not_as_promised(&self) -> MediaError {
        let found = "a first picture that needs others, or other parameter sets";
        MediaError::invalid("moof", self.range.start, found, "a key frame where the index of fragments has one")
    }
}

impl Check {
    fn range(&self) -> ByteRange {
        match self {
            Self::Entry(look) => look.range(),
            Self::Sets(_, range) => *range,
        }
    }
}

/// Returns the movie with the samples of some fragments, and the codecs that the header states.
fn parsed(
    movie: &Movie,
    fragments: &Range<u32>,
    moofs: &[(u64, Bytes)],
    work: Work,
) -> Result<(Movie, Vec<Codec>), MediaError> {
    let Some(Form::Boxes(boxes)) = movie.outline.as_ref().map(|outline| &outline.form) else {
        return Err(MediaError::invalid("moov", 0, "no table of fragments", "one"));
    };
    let at = boxes.header_offset;
    let node = Node::new(&boxes.header, at, "moov")
        .ok_or_else(|| MediaError::truncated("moov", at, boxes.header.len() as u64, 8))?;
    let draft = MovieDraft::parse(&node, boxes.object_len, work)?;
    let keeps = fragments.start == 0 && boxes.has_header_samples;
    let draft = with_fragments(if keeps { draft } else { draft.without_samples() }, moofs)?;
    // A pause of sound may be longer than a fragment.
    let pauses = |(place, track): (usize, &Track)| {
        let may_pause = movie.outline.as_ref().is_some_and(|outline| outline.may_pause(place));
        (may_pause && track.protection.is_none()).then_some(track.id)
    };
    let pausing: Vec<u32> = movie.tracks.iter().enumerate().filter_map(pauses).collect();
    if !draft.is_regular(|id| pausing.contains(&id)) {
        let found = "fragments without samples of a track, or with irregular ones";
        return Err(MediaError::invalid("moof", at, found, "samples of each track"));
    }
    let loaded = draft.finish()?;
    let with_samples = |track: &Track| {
        let Some(now) = loaded.tracks.iter().find(|now| now.id == track.id) else {
            let silent = Track { samples: SampleTable::default(), ..track.clone() };
            return pausing.contains(&track.id).then(|| (silent, track.codec.clone()));
        };
        let (samples, protection) = (now.samples.clone(), now.protection.clone());
        let has_groups = protection.as_ref().is_some_and(|protection| !protection.groups.is_empty());
        let is_alike = protection.is_some() == track.protection.is_some() && !has_groups;
        is_alike.then(|| (Track { samples, protection, ..track.clone() }, now.codec.clone()))
    };
    let tracks: Option<Vec<(Track, Codec)>> = movie.tracks.iter().map(with_samples).collect();
    let tracks =
        tracks.ok_or_else(|| MediaError::invalid("moof", at, "other tracks", "those of the first fragment"))?;
    let (tracks, codecs) = tracks.into_iter().unzip();
    Ok((Movie { tracks, fragment_headers: loaded.fragment_headers, ..bare(movie) }, codecs))
}

/// Returns a movie without tracks and outline.
fn bare(movie: &Movie) -> Movie {
    Movie {
        timescale: movie.timescale,
        duration: movie.duration,
        fragmented: true,
        tracks: Vec::new(),
        clips: Vec::new(),
        chapters: Vec::new(),
        artwork: None,
        tags: Tags::default(),
        programmes: Vec::new(),
        skipped: Vec::new(),
        external_media: None,
        system_headers: movie.system_headers.clone(),
        fragment_headers: Vec::new(),
        cut_short: false,
        outline: None,
        is_indivisible: false,
        extraction: None,
        stitched: None,
    }
}

/// Appends the samples of fragments.
pub(crate) fn with_fragments(mut draft: MovieDraft, moofs: &[(u64, Bytes)]) -> Result<MovieDraft, MediaError> {
    for (place, bytes) in moofs {
        if let Some(moof) = Node::new(bytes, *place, "moof") {
            draft.add_fragment(&moof)?;
        }
    }
    Ok(draft)
}

/// Checks that all samples lie in `range`.
pub(crate) fn check_places(movie: &Movie, range: ByteRange) -> Result<(), MediaError> {
    let is_outside = |sample: &Sample| {
        !sample.range.is_empty() && (sample.range.start < range.start || sample.range.end > range.end)
    };
    let outside = movie.tracks.iter().find_map(|track| track.samples.iter().find(is_outside));
    outside.map_or(Ok(()), |sample| {
        let found = format!("a sample at bytes {}", sample.range);
        Err(MediaError::invalid("moof/traf/trun", range.start, found, format!("one within {range}")))
    })
}

/// Returns the checks of first pictures that are coded in NAL units and clear. `codecs` are those of the header.
fn checks(movie: &Movie, codecs: Vec<Codec>) -> Vec<Check> {
    let mut checks = Vec::new();
    for (track, codec) in movie.tracks.iter().zip(codecs) {
        let is_clear_video = track.protection.is_none() && matches!(track.kind, TrackKind::Video { .. });
        let Some((syntax, length_size)) = NalSyntax::of(&track.codec).filter(|_| is_clear_video) else { continue };
        let first = track.samples.get(0).filter(|sample| sample.sync && !sample.range.is_empty());
        let Some(first) = first else { continue };
        if codec.entry_type() != track.codec.entry_type() {
            checks.push(Check::Sets(Box::new(codec), in_band::head(first.range)));
        }
        checks.push(Check::Entry(Look::new(syntax, length_size, first)));
    }
    checks
}
