//! Reads the samples of some fragments of an outlined Matroska file.

use super::{
    clusters::{Event, Mark},
    lane,
    samples::Samples,
    stretch::{Marks, Stretch},
};
use crate::{
    error::MediaError,
    movie::{
        Movie, Track,
        outline::{Clusters, Form},
    },
    units::ByteRange,
    work::Work,
};
use bytes::Bytes;
use std::{ops::Range, sync::Arc};

/// Reads the samples of consecutive fragments.
#[derive(Debug)]
pub(crate) struct BlockLoader {
    movie: Arc<Movie>,
    stretch: Stretch,
    /// Number and samples of each track.
    lanes: Vec<(u64, Samples)>,
    /// Time of the frame behind the fragments, in ticks of the segment.
    end: Option<i64>,
}

impl BlockLoader {
    /// Creates a loader; `None` where the movie has no such fragments.
    pub(crate) fn new(movie: &Arc<Movie>, fragments: &Range<u32>, work: Work) -> Option<Self> {
        let outline = movie.outline.as_ref()?;
        let (Form::Clusters(clusters), range) = (&outline.form, outline.range(fragments)?) else { return None };
        let begin = mark(clusters, fragments.start).filter(|_| fragments.start > 0);
        let marks = Marks { begin, until: mark(clusters, fragments.end) };
        let samples = |(track, (number, frame)): (&Track, &(u64, Option<u64>))| {
            (*number, lane::samples(&track.codec, &track.kind, *frame, clusters.scale))
        };
        let lanes = movie.tracks.iter().zip(&clusters.tracks).map(samples).collect();
        let stretch = Stretch::new(range, marks, clusters.end, work);
        Some(Self { movie: movie.clone(), stretch, lanes, end: marks.until.map(|mark| mark.time) })
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
            match self.stretch.next()? {
                Event::Needs(range) => return Ok(Some(range)),
                Event::End => return Ok(None),
                Event::Block(block) => {
                    if let Some((_, samples)) = self.lanes.iter_mut().find(|(number, _)| *number == block.track) {
                        samples.push(&block, self.stretch.frames());
                    }
                }
            }
        }
    }

    /// Returns the tracks with the samples that were read.
    pub(crate) fn finish(self) -> Vec<Track> {
        let closed: Vec<bool> = (0..self.movie.tracks.len()).map(|place| self.is_closed(place)).collect();
        let tracks = self.movie.tracks.iter().zip(self.lanes).zip(closed);
        let finished = |((track, (_, mut samples)), is_closed): ((&Track, (u64, Samples)), bool)| {
            if let Some(end) = self.end.filter(|_| is_closed) {
                samples.end_at(samples.clock().ticks(end));
            }
            Track { samples: samples.finish(), ..track.clone() }
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

/// Returns the first frame of a fragment; `None` behind the last.
fn mark(clusters: &Clusters, fragment: u32) -> Option<Mark> {
    let time = *clusters.cues.get(fragment as usize)?;
    Some(Mark { track: clusters.track, time })
}
