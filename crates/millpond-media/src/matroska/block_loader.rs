//! Reads the samples of some fragments of an outlined Matroska file.

use super::{
    borders::{Borders, Side},
    clusters::{Block, Event, Mark},
    lane,
    samples::Samples,
    stretch::{Marks, Stretch},
};
use crate::{
    error::MediaError,
    movie::{
        Movie, Track,
        outline::{Clusters, Form},
        sample_table::SampleTable,
    },
    units::ByteRange,
    work::Work,
};
use bytes::Bytes;
use std::{ops::Range, sync::Arc};

/// Most fragments on either side that are searched for sound of the same time.
const MOST_BESIDE: u32 = 4;
/// Most bytes of neighbouring fragments that are read, on either side.
const MOST_BYTES_BESIDE: u64 = 8 << 20;
/// Most late blocks of a track that are kept until the loader knows their fragment: a second of frames of a millisecond.
const MOST_LATE: usize = 1024;

/// Reads the samples of consecutive fragments.
#[derive(Debug)]
pub(crate) struct BlockLoader {
    movie: Arc<Movie>,
    fragments: Range<u32>,
    zone: Zone,
    stretch: Stretch,
    /// Bytes that were requested from fragments on one side.
    beside: u64,
    lanes: Vec<Lane>,
    /// Time of the frame behind the fragments, in ticks of the segment.
    end: Option<i64>,
    work: Work,
}

/// The part of the file that is being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Zone {
    /// The fragments.
    Own,
    /// A fragment before them.
    Earlier(u32),
    /// A fragment behind them.
    Later(u32),
}

impl BlockLoader {
    /// Creates a loader; `None` where the movie has no such fragments.
    pub(crate) fn new(movie: &Arc<Movie>, fragments: &Range<u32>, work: Work) -> Option<Self> {
        let outline = movie.outline.as_ref()?;
        let Form::Clusters(clusters) = &outline.form else { return None };
        let stretch = stretch(movie, fragments, &work)?;
        let lane = |(place, (track, (number, frame))): (usize, (&Track, &(u64, Option<u64>)))| {
            let samples = || lane::samples(&track.codec, &track.kind, *frame, clusters.scale);
            let borders = outline.times(place).filter(|_| outline.may_pause(place)).map(|times| {
                let at = |fragment: u32| times.times.get(fragment as usize).copied();
                let start = at(fragments.start).filter(|_| fragments.start > 0);
                Borders::new(start, at(fragments.end).filter(|_| fragments.end < outline.len()), times.tolerance)
            });
            let (late, earlier) = (Vec::new(), SampleTable::default());
            Lane { number: *number, samples: samples(), borders, late, ahead: samples(), earlier }
        };
        let lanes = movie.tracks.iter().zip(&clusters.tracks).enumerate().map(lane).collect();
        let end = mark(clusters, fragments.end).map(|mark| mark.time);
        let (movie, fragments) = (movie.clone(), fragments.clone());
        Some(Self { movie, fragments, zone: Zone::Own, stretch, beside: 0, lanes, end, work })
    }

    /// Takes the bytes of the range that was needed.
    pub(crate) fn supply(&mut self, bytes: Bytes) {
        self.stretch.supply(bytes);
    }

    /// Reads as far as the bytes allow. Returns the range that is needed; `None` at the end.
    ///
    /// # Errors
    /// A frame is not where the cues say, or the job has ended.
    pub(crate) fn step(&mut self) -> Result<Option<ByteRange>, MediaError> {
        loop {
            let event = match self.stretch.next() {
                Ok(event) => event,
                Err(error) if self.zone == Zone::Own || matches!(error, MediaError::Work { .. }) => return Err(error),
                // The samples of the fragments are complete. A neighbouring fragment is read up to its fault.
                Err(_) => Event::End,
            };
            let is_over = match event {
                Event::Needs(range) if self.affords(range) => return Ok(Some(range)),
                Event::Needs(_) | Event::End => true,
                Event::Block(block) => {
                    if let Some(lane) = self.lanes.iter_mut().find(|lane| lane.number == block.track) {
                        lane.take(self.zone, block, self.stretch.frames());
                    }
                    matches!(self.zone, Zone::Later(_)) && !self.lanes.iter().any(Lane::lacks_end)
                }
            };
            if is_over && !self.next_zone() {
                return Ok(None);
            }
        }
    }

    /// Counts a range of a neighbouring fragment. Returns whether the range may be read.
    fn affords(&mut self, range: ByteRange) -> bool {
        if self.zone == Zone::Own {
            return true;
        }
        self.beside = self.beside.saturating_add(range.len());
        self.beside <= MOST_BYTES_BESIDE
    }

    /// Continues with a neighbouring fragment that may contain sound of the fragments; `false` if there is none.
    fn next_zone(&mut self) -> bool {
        let (before, behind) = match self.zone {
            Zone::Own => (Some(self.fragments.start), self.fragments.end),
            Zone::Earlier(fragment) => (Some(fragment), self.fragments.end),
            Zone::Later(fragment) => (None, fragment.saturating_add(1)),
        };
        self.lanes.iter_mut().for_each(|lane| lane.end(self.zone));
        let is_near = |fragment: &u32| {
            let range =
                self.fragments.start.saturating_sub(MOST_BESIDE)..self.fragments.end.saturating_add(MOST_BESIDE);
            range.contains(fragment)
        };
        let lacks_beginning = self.lanes.iter().any(Lane::lacks_beginning);
        let earlier = before.and_then(|first| first.checked_sub(1)).filter(|_| lacks_beginning).filter(is_near);
        let later = Some(behind).filter(|_| self.lanes.iter().any(Lane::lacks_end)).filter(is_near);
        let (zone, fragment) = match (earlier, later) {
            (Some(earlier), _) => (Zone::Earlier(earlier), earlier),
            (None, Some(later)) => (Zone::Later(later), later),
            (None, None) => return false,
        };
        let Some(stretch) = stretch(&self.movie, &(fragment..fragment.saturating_add(1)), &self.work) else {
            return false;
        };
        if before.is_some() && matches!(zone, Zone::Later(_)) {
            self.beside = 0;
        }
        (self.zone, self.stretch) = (zone, stretch);
        true
    }

    /// Returns the tracks with the samples that were read.
    pub(crate) fn finish(self) -> Vec<Track> {
        let closed: Vec<bool> = (0..self.movie.tracks.len()).map(|place| self.is_closed(place)).collect();
        let tracks = self.movie.tracks.iter().zip(self.lanes).zip(closed);
        let finished = |((track, lane), is_closed): ((&Track, Lane), bool)| {
            let Lane { mut samples, earlier, .. } = lane;
            if let Some(end) = self.end.filter(|_| is_closed) {
                samples.end_at(samples.clock().ticks(end));
            }
            let samples = samples.finish();
            let samples = if earlier.is_empty() { samples } else { joined(&earlier, &samples) };
            Track { samples, ..track.clone() }
        };
        tracks.map(finished).collect()
    }

    /// Whether the pictures of a track end where the next fragment begins.
    fn is_closed(&self, place: usize) -> bool {
        let times = self.movie.outline.as_ref().and_then(|outline| outline.times(place));
        let is_first = self.movie.outline.as_ref().is_some_and(|outline| match &outline.form {
            Form::Clusters(clusters) => clusters.tracks.get(place).is_some_and(|(number, _)| *number == clusters.track),
            Form::Boxes(_) => false,
        });
        is_first && times.is_some_and(|times| !times.is_open())
    }
}

/// A track whose blocks are read.
#[derive(Debug)]
struct Lane {
    number: u64,
    samples: Samples,
    /// `None` for a track whose frames belong to the fragment in which they lie.
    borders: Option<Borders>,
    /// Blocks behind the stated end, which may belong to the next fragments.
    late: Vec<(Block, Vec<ByteRange>)>,
    /// Frames of the earlier fragment that is being read.
    ahead: Samples,
    /// Samples of earlier fragments that were read.
    earlier: SampleTable,
}

impl Lane {
    /// Adds the frames of a block, if they belong to the fragments.
    fn take(&mut self, zone: Zone, block: Block, frames: &[ByteRange]) {
        let time = self.samples.clock().ticks(block.time);
        let Some(borders) = &mut self.borders else {
            if zone == Zone::Own {
                self.samples.push(&block, frames);
            }
            return;
        };
        match zone {
            Zone::Own => match borders.own(time) {
                Side::These => self.samples.push(&block, frames),
                Side::Late if self.late.len() < MOST_LATE => self.late.push((block, frames.to_vec())),
                Side::Late | Side::Others => {}
            },
            Zone::Earlier(_) if borders.lacks_beginning() && borders.earlier(time) => self.ahead.push(&block, frames),
            Zone::Later(_) if borders.lacks_end() && borders.later(time) => self.samples.push(&block, frames),
            Zone::Earlier(_) | Zone::Later(_) => {}
        }
    }

    /// Ends a part of the file.
    fn end(&mut self, zone: Zone) {
        let Some(borders) = &mut self.borders else { return };
        match zone {
            Zone::Own => {
                let late = std::mem::take(&mut self.late);
                for (block, frames) in late.iter().filter(|_| borders.keeps_late()) {
                    self.samples.push(block, frames);
                }
            }
            Zone::Earlier(_) => {
                let next = self.samples.anew();
                let ahead = std::mem::replace(&mut self.ahead, next).finish();
                if borders.end_earlier() {
                    self.earlier = joined(&ahead, &self.earlier);
                }
            }
            Zone::Later(_) => {}
        }
    }

    fn lacks_beginning(&self) -> bool {
        self.borders.as_ref().is_some_and(Borders::lacks_beginning)
    }

    fn lacks_end(&self) -> bool {
        self.borders.as_ref().is_some_and(Borders::lacks_end)
    }
}

/// Returns the samples of two tables of sound, one after the other.
fn joined(first: &SampleTable, second: &SampleTable) -> SampleTable {
    let mut table = SampleTable::builder();
    for sample in first.iter().chain(second) {
        table.set_start_dts(sample.dts);
        let size = u32::try_from(sample.range.len()).unwrap_or(u32::MAX);
        table.push(sample.range.start, size, sample.duration, sample.composition, sample.sync);
    }
    table.finish()
}

/// Returns a reader of consecutive fragments; `None` where there are none.
fn stretch(movie: &Movie, fragments: &Range<u32>, work: &Work) -> Option<Stretch> {
    let outline = movie.outline.as_ref()?;
    let (Form::Clusters(clusters), range) = (&outline.form, outline.range(fragments)?) else { return None };
    let begin = mark(clusters, fragments.start).filter(|_| fragments.start > 0);
    let marks = Marks { begin, until: mark(clusters, fragments.end) };
    Some(Stretch::new(range, marks, clusters.end, work.clone()))
}

/// Returns the first frame of a fragment; `None` behind the last.
fn mark(clusters: &Clusters, fragment: u32) -> Option<Mark> {
    let time = *clusters.cues.get(fragment as usize)?;
    Some(Mark { track: clusters.track, time })
}
