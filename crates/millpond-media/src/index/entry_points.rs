//! Finds the samples with which decoding can really begin, by comparing sync flags with the media.
//!
//! Some writers flag every sample as a sync sample, or the first sample of every fragment. Segments that begin with a
//! wrongly flagged sample can't be decoded. The types of NAL units reveal that (see [`NalSyntax`]) but are in the
//! media. So they are read only where the flags look wrong, a few hundred bytes of a few samples:
//!
//! 1. A track is in doubt where all its samples are sync samples, or where most of its sync samples are smaller than
//!    its average sample. A first sample without the flag is in doubt too. Only tracks of H.264 and H.265 are ever in
//!    doubt.
//! 2. [`TRIALS`] flagged samples of a track in doubt are read. Where decoding can begin with each, the flags are right.
//! 3. Otherwise the track is divided into windows of a second or more. In each window the largest flagged samples are
//!    read, the largest first, until decoding can begin with one. These samples become the track's only sync samples.
//! 4. Where no such sample is found, the flags stay, because decoding has to begin somewhere.
//!
//! The number of reads is bounded for the whole movie, see [`crate::budget`].

use crate::{
    budget::{MOST_LOOKS_AT_SAMPLES, MOST_READS_OF_A_SAMPLE},
    codec::{TrackKind, nal::NalSyntax, video::sps},
    error::MediaError,
    index::{
        entry_look::{Look, Verdict},
        lane::Arrived,
    },
    movie::{
        Movie, Track,
        sample_table::{Sample, SampleTable},
    },
    units::ByteRange,
    work::Work,
};
use bytes::Bytes;
use std::{
    collections::{BTreeSet, HashMap},
    ops::Range,
};

/// Number of samples that are read to check a track's flags.
const TRIALS: u32 = 32;
/// Most windows of a track.
const MOST_WINDOWS: i64 = 512;
/// Most samples that are read in a window.
const MOST_OF_WINDOW: usize = 4;
/// Least number of sync samples whose sizes are significant.
const TELLING: u32 = 8;

/// The search for entry points of a movie's tracks.
#[derive(Debug)]
pub(crate) struct EntrySearch {
    movie: Movie,
    tracks: Vec<TrackSearch>,
    /// Number of samples that may still be read.
    left: usize,
    work: Work,
}

/// The search in one track.
#[derive(Debug)]
struct TrackSearch {
    /// Index of the track in the movie.
    place: usize,
    stage: Stage,
    /// Samples that are being read.
    looks: Vec<Look>,
    /// Samples with which decoding can begin, found so far.
    entries: BTreeSet<u32>,
    /// Picture size of a parameter set between the samples.
    size: Option<(u16, u16)>,
}

#[derive(Debug)]
enum Stage {
    /// Only the first sample is in doubt.
    First,
    /// Samples all over the track are being read.
    Trial,
    /// The flags are wrong; the largest samples of the windows are being read.
    Windows(Vec<Window>),
}

impl EntrySearch {
    /// Starts the search in `movie`. Its steps are spent on `work`.
    pub(crate) fn of(movie: Movie, work: Work) -> Result<Self, MediaError> {
        let mut search = Self { tracks: Vec::new(), left: MOST_LOOKS_AT_SAMPLES, work, movie };
        if search.movie.external_media.is_some() {
            return Ok(search);
        }
        for place in 0..search.movie.tracks.len() {
            search.doubt(place)?;
        }
        Ok(search)
    }

    fn doubt(&mut self, place: usize) -> Result<(), MediaError> {
        let Some(track) = self.movie.tracks.get(place) else { return Ok(()) };
        let Some((syntax, length_size)) =
            NalSyntax::of(&track.codec).filter(|_| matches!(track.kind, TrackKind::Video { .. }))
        else {
            return Ok(());
        };
        let look = |sample: Sample| (!sample.range.is_empty()).then(|| Look::new(syntax, length_size, sample));
        spend(&self.work, u64::from(track.samples.len()))?;
        let first = track.samples.get(0);
        let (stage, looks): (Stage, Vec<Look>) = if is_doubtful(&track.samples) {
            (Stage::Trial, trials(&track.samples).filter_map(look).collect())
        } else if first.is_some_and(|sample| !sample.sync) || sps::lacks_size(&track.kind) {
            (Stage::First, first.into_iter().filter_map(look).collect())
        } else {
            return Ok(());
        };
        if looks.len() <= self.left {
            self.left -= looks.len();
            self.tracks.push(TrackSearch { place, stage, looks, entries: BTreeSet::new(), size: None });
        }
        Ok(())
    }

    /// Takes the bytes that arrived and returns the ranges to read next; none at the end.
    pub(crate) fn step(&mut self, arrived: &mut Arrived) -> Result<Vec<ByteRange>, MediaError> {
        let asked: BTreeSet<ByteRange> = self.tracks.iter().flat_map(|t| &t.looks).map(Look::range).collect();
        let bytes: HashMap<ByteRange, Bytes> =
            asked.into_iter().filter_map(|range| Some((range, arrived.take(range)?))).collect();
        for search in &mut self.tracks {
            search.judge(&bytes);
            while search.looks.is_empty() {
                let Some(track) = self.movie.tracks.get(search.place) else { break };
                if !search.go_on(track, &mut self.left, &self.work)? {
                    break;
                }
            }
        }
        let wanted: BTreeSet<ByteRange> = self.tracks.iter().flat_map(|t| &t.looks).map(Look::range).collect();
        spend(&self.work, wanted.len() as u64)?;
        Ok(wanted.into_iter().collect())
    }

    /// Returns the movie with corrected sync flags.
    pub(crate) fn finish(mut self) -> Result<Movie, MediaError> {
        for search in self.tracks {
            let Some(track) = self.movie.tracks.get_mut(search.place) else { continue };
            if let Some(size) = search.size {
                sps::fill_size(&mut track.kind, &mut track.sample_entry, size);
            }
            let flags: Box<dyn Fn(&Sample) -> bool> = match search.stage {
                Stage::First if search.entries.contains(&0) => Box::new(|sample| sample.sync || sample.index == 0),
                Stage::Windows(_) if !search.entries.is_empty() => {
                    let entries = search.entries;
                    Box::new(move |sample| entries.contains(&sample.index))
                }
                _ => continue,
            };
            spend(&self.work, 2 * u64::from(track.samples.len()))?;
            track.samples = track.samples.with_sync(flags);
        }
        Ok(self.movie)
    }
}

impl TrackSearch {
    /// Examines the samples whose bytes arrived. Samples that need more bytes stay.
    fn judge(&mut self, bytes: &HashMap<ByteRange, Bytes>) {
        let Self { looks, entries, size, .. } = self;
        looks.retain_mut(|look| {
            // The sample has not been requested yet.
            let Some(bytes) = bytes.get(&look.range()) else { return look.reads() == 0 };
            let verdict = look.read(bytes);
            *size = size.or(look.size());
            if verdict == Verdict::Entry {
                entries.insert(look.sample());
            }
            verdict == Verdict::Unknown && look.reads() < MOST_READS_OF_A_SAMPLE
        });
    }

    /// Chooses the next samples to read when all earlier ones are judged; returns `false` at the end.
    fn go_on(&mut self, track: &Track, left: &mut usize, work: &Work) -> Result<bool, MediaError> {
        match &mut self.stage {
            Stage::First => return Ok(false),
            Stage::Trial if self.entries.len() == trials(&track.samples).count() => return Ok(false),
            Stage::Trial => {
                spend(work, u64::from(track.samples.len()))?;
                self.stage = Stage::Windows(windows(&track.samples, i64::from(track.timescale.get())));
            }
            Stage::Windows(windows) => {
                let Some((syntax, length_size)) = NalSyntax::of(&track.codec) else { return Ok(false) };
                let entries = &self.entries;
                let open = windows.iter_mut().filter(|w| entries.range(w.samples.clone()).next().is_none());
                let next = open.filter_map(|window| window.largest.pop()).take(*left);
                self.looks.extend(next.map(|sample| Look::new(syntax, length_size, sample)));
                *left -= self.looks.len();
                return Ok(!self.looks.is_empty());
            }
        }
        Ok(true)
    }
}

/// A part of a track and its largest flagged samples, the largest last.
#[derive(Debug)]
struct Window {
    samples: Range<u32>,
    largest: Vec<Sample>,
}

/// Whether the sync flags look wrong.
fn is_doubtful(table: &SampleTable) -> bool {
    if table.all_sync() {
        return table.len() > 1;
    }
    let average = table.total_bytes() / u64::from(table.len().max(1));
    let (mut flagged, mut small) = (0_u32, 0_u32);
    for sample in table.iter().filter(|sample| sample.sync) {
        flagged += 1;
        small += u32::from(sample.range.len() < average);
    }
    flagged >= TELLING && small > flagged / 2
}

/// Returns flagged samples all over a table, at distances that match no group of pictures.
fn trials(table: &SampleTable) -> impl Iterator<Item = Sample> + '_ {
    let flagged = if table.all_sync() { table.len() } else { table.sync_samples().count() as u32 };
    let count = flagged.min(TRIALS);
    let place = move |trial: u32| {
        let part = |n: u32| (u64::from(n) * u64::from(flagged) / u64::from(count.max(1))) as u32;
        let (from, to) = (part(trial), part(trial + 1));
        // Weyl's sequence: evenly spread, without a period.
        from + trial.wrapping_mul(0x9e37_79b9) % (to - from).max(1)
    };
    let mut wanted = (0..count).map(place).peekable();
    let flagged = (0_u32..).zip(table.sync_samples());
    flagged.filter_map(move |(number, index)| {
        wanted.next_if_eq(&number)?;
        table.get(index)
    })
}

/// Returns the windows of a table with `timescale` ticks per second.
fn windows(table: &SampleTable, timescale: i64) -> Vec<Window> {
    let start = table.start_dts();
    let length = table.end_dts().saturating_sub(start).max(1);
    let count = (length / timescale.max(1)).clamp(1, MOST_WINDOWS);
    let number = |sample: &Sample| {
        let gone = i128::from(sample.dts.saturating_sub(start)) * i128::from(count) / i128::from(length);
        gone.clamp(0, i128::from(count) - 1)
    };
    let mut windows: Vec<Window> = Vec::new();
    let mut last = None;
    for sample in table {
        if last.replace(number(&sample)) != Some(number(&sample)) {
            windows.push(Window { samples: sample.index..sample.index, largest: Vec::new() });
        }
        let Some(window) = windows.last_mut() else { continue };
        window.samples.end = sample.index + 1;
        if sample.sync && !sample.range.is_empty() {
            window.add(sample);
        }
    }
    windows
}

impl Window {
    fn add(&mut self, sample: Sample) {
        let place = self.largest.partition_point(|other| other.range.len() < sample.range.len());
        self.largest.insert(place, sample);
        if self.largest.len() > MOST_OF_WINDOW {
            self.largest.remove(0);
        }
    }
}

fn spend(work: &Work, steps: u64) -> Result<(), MediaError> {
    work.spend(steps).map_err(|error| MediaError::work("moov/trak/mdia/minf/stbl/stss", 0, error))
}

#[cfg(test)]
mod tests;
