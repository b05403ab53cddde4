//! A running stream as one transport stream without an end.

use super::{
    Continuity, TableNumbers, carriage, clock,
    lane::{CLOCK_DELAY, FIRST_PID},
    memory::{MemoryStream, Sample, movie_of, write},
    packet::PacketWriter,
    psi::{self, StreamEntry},
};
use crate::PackageError;
use millpond_media::{Movie, Track};
use std::sync::Arc;

/// Longest interval between two PAT and PMT on the 90 kHz clock: 100 ms (ETSI TR 101 290 5.2.1 allows 500 ms).
const TABLES: i64 = 9_000;
/// Time by which pictures may be behind sound: a PCR without a picture is not later than this behind the sound.
const BEHIND: i64 = 45_000;

/// Writes the samples of a running stream as they come. Streams have the PIDs and the order of their tracks.
///
/// Continuity counters go on from [write](Self::write) to write. PCRs are at most 100 ms apart, whatever the tracks give.
#[derive(Debug)]
pub struct Continuation {
    movie: Arc<Movie>,
    lanes: Vec<Waiting>,
    /// Place of the stream with the clock.
    clock: usize,
    table_counter: u8,
    /// Time of the last PAT and PMT.
    tables: Option<i64>,
    /// Time of the last PCR.
    last: Option<i64>,
}

/// Samples of one stream that are not written yet.
#[derive(Debug)]
struct Waiting {
    samples: Vec<Sample>,
    counter: u8,
    continuity: Continuity,
}

impl Continuation {
    /// Whether one programme map table lists tracks, all of which [fit](millpond_media::Codec::fits_ts) or are subtitles as they are. It has
    /// one packet.
    #[must_use]
    pub fn lists(tracks: &[&Track]) -> bool {
        let entry = |(pid, track): (u16, &&Track)| {
            let stream_type = carriage::stream_type(&track.codec)?;
            Some(StreamEntry::of(track, pid, stream_type))
        };
        let entries: Option<Vec<_>> = (FIRST_PID..).zip(tracks).map(entry).collect();
        entries.is_some_and(|entries| psi::tables(&entries, FIRST_PID, TableNumbers::default()).is_some())
    }

    /// Makes one of tracks, all of which [fit](millpond_media::Codec::fits_ts) or are subtitles as they are. The first video carries the clock; without
    /// video the first track.
    #[must_use]
    pub fn new(tracks: Vec<Track>) -> Self {
        let lane = |_: &Track| Waiting { samples: Vec::new(), counter: 0, continuity: Continuity::Written };
        let lanes = tracks.iter().map(lane).collect();
        let clock = tracks.iter().position(|track| carriage::is_video(&track.codec)).unwrap_or(0);
        Self { movie: movie_of(tracks), lanes, clock, table_counter: 0, tables: None, last: None }
    }

    /// Begins another time base, with other configurations of the tracks. What was not written is lost. Returns `false`
    /// where the tracks are not of the codecs that the program map table lists: another stream is needed.
    pub fn discontinue(&mut self, tracks: Vec<Track>) -> bool {
        let known = self.movie.tracks.iter().map(|track| carriage::stream_type(&track.codec));
        if !known.eq(tracks.iter().map(|track| carriage::stream_type(&track.codec))) {
            return false;
        }
        self.movie = movie_of(tracks);
        (self.tables, self.last) = (None, None);
        for lane in &mut self.lanes {
            lane.samples.clear();
            lane.continuity = Continuity::New;
        }
        true
    }

    /// Takes a sample of a track, by its place. Samples of one track must come in decoding order.
    pub fn push(&mut self, track: usize, sample: Sample) {
        if let Some(lane) = self.lanes.get_mut(track) {
            lane.samples.push(sample);
        }
    }

    /// Time between the first and the last sample that wait, on the 90 kHz clock.
    #[must_use]
    pub fn waiting(&self) -> i64 {
        let times = || self.lanes.iter().flat_map(|lane| &lane.samples).map(|sample| sample.dts);
        times().max().zip(times().min()).map_or(0, |(last, first)| last.saturating_sub(first))
    }

    /// Appends the packets of all samples that wait to `out`: nothing where there are none.
    ///
    /// # Errors
    /// A sample that its codec does not allow. Nothing is appended, and the samples are lost.
    pub fn write(&mut self, out: &mut Vec<u8>) -> Result<(), PackageError> {
        let begin = out.len();
        let result = self.append(out);
        if result.is_err() {
            out.truncate(begin);
        }
        self.lanes.iter_mut().for_each(|lane| lane.samples.clear());
        result
    }

    fn append(&mut self, out: &mut Vec<u8>) -> Result<(), PackageError> {
        let samples = || self.lanes.iter().flat_map(|lane| &lane.samples);
        let (Some(first), Some(last)) = (samples().map(|s| s.dts).min(), samples().map(|s| s.dts).max()) else {
            return Ok(());
        };
        let has_key = self.clock_lane().is_some_and(|lane| lane.samples.iter().any(|sample| sample.is_sync));
        let has_tables = has_key || self.tables.is_none_or(|at| first.saturating_sub(at) >= TABLES);
        let next = self.clock_lane().and_then(|lane| lane.samples.first()).map(|sample| sample.dts);
        let mut last_clock = self.write_clocks(next.unwrap_or(last.saturating_sub(BEHIND)), out);
        // A clock never goes back on its time base.
        let is_back = next.zip(last_clock).is_some_and(|(next, last)| next < last);
        let streams: Vec<_> =
            self.lanes.iter().enumerate().map(|(track, lane)| self.stream(track, lane, is_back)).collect();
        let table_counter = has_tables.then_some(self.table_counter);
        let written = write(&self.movie, &streams, (table_counter, self.clock), out)?;
        for (lane, counter) in self.lanes.iter_mut().zip(written.counters) {
            lane.counter = counter;
            if !lane.samples.is_empty() {
                lane.continuity = Continuity::Written;
            }
        }
        last_clock = written.clock.or(last_clock);
        self.last = last_clock;
        if has_tables {
            self.table_counter = self.table_counter.wrapping_add(1);
            self.tables = Some(first);
        }
        Ok(())
    }

    fn clock_lane(&self) -> Option<&Waiting> {
        self.lanes.get(self.clock)
    }

    fn stream<'a>(&self, track: usize, lane: &'a Waiting, is_back: bool) -> MemoryStream<'a> {
        let continuity = if is_back && track == self.clock { Continuity::New } else { lane.continuity };
        MemoryStream { track, samples: &lane.samples, first_counter: lane.counter, continuity, until: None }
    }

    /// Appends the PCRs that are missing before `next`. Returns the time of the last one.
    fn write_clocks(&self, next: i64, out: &mut Vec<u8>) -> Option<i64> {
        let from = self.last?;
        let missing = clock::between(from, next).min(clock::MOST_A_SEGMENT);
        let pid = FIRST_PID.saturating_add(u16::try_from(self.clock).unwrap_or(0));
        let writer = PacketWriter::new(pid, self.clock_lane().map_or(0, |lane| lane.counter));
        for number in 1..=missing {
            writer.clock(clock::at(from, number).saturating_sub(CLOCK_DELAY), out);
        }
        Some(clock::at(from, missing))
    }
}
