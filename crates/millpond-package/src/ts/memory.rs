//! Transport streams of samples that are in memory.

use super::{Continuity, ElementaryStream, TableNumbers, Unit, mux::Muxer};
use crate::{ObjectIndex, PackageError, Rewrite, ts::BASE};
use bytes::Bytes;
use millpond_media::{
    Movie, Tags, Track,
    units::{ByteRange, Timescale},
};
use std::sync::Arc;

/// A sample in memory. Times are on the 90 kHz clock of a transport stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Decoding time, not after `pts`.
    pub dts: i64,
    /// Presentation time.
    pub pts: i64,
    /// Whether decoding can begin here. Parameter sets are inserted then.
    pub is_sync: bool,
    /// Its bytes as in the samples of an MP4 file.
    pub data: Bytes,
}

/// One track's samples.
#[derive(Debug)]
pub(crate) struct MemoryStream<'a> {
    /// Index of the track in the movie.
    pub(crate) track: usize,
    /// Samples in decoding order.
    pub(crate) samples: &'a [Sample],
    /// As in [`ElementaryStream`].
    pub(crate) first_counter: u8,
    /// As in [`ElementaryStream`].
    pub(crate) continuity: Continuity,
    /// As in [`ElementaryStream`].
    pub(crate) until: Option<i64>,
}

/// State of the streams after the written packets.
#[derive(Debug)]
pub(crate) struct Written {
    /// Continuity counter of each stream's next packet.
    pub(crate) counters: Vec<u8>,
    /// Time of the last PCR; `None` where none was written.
    pub(crate) clock: Option<i64>,
}

/// Returns the time of a track on the clock of transport streams. Time 0 is 10 s there, as in segments of stored media.
#[must_use]
pub fn clock_of(ticks: i64, scale: Timescale) -> i64 {
    scale.convert(ticks, Timescale::MPEG).saturating_add(BASE)
}

/// Returns an index of tracks without samples.
pub(crate) fn movie_of(tracks: Vec<Track>) -> Arc<Movie> {
    Arc::new(Movie {
        timescale: Timescale::MPEG,
        duration: 0,
        fragmented: true,
        tracks,
        clips: Vec::new(),
        chapters: Vec::new(),
        artwork: None,
        tags: Tags::default(),
        programmes: Vec::new(),
        skipped: Vec::new(),
        external_media: None,
        system_headers: Vec::new(),
        fragment_headers: Vec::new(),
        cut_short: false,
        outline: None,
        is_indivisible: false,
        stitched: None,
        extraction: None,
    })
}

/// Returns the units of samples, without empty ones. No two of them are neighbours, so that each is a read of its own.
pub(crate) fn units(samples: &[Sample]) -> Vec<Unit> {
    let mut next = 0;
    let filled = samples.iter().filter(|sample| !sample.data.is_empty());
    let unit = |sample: &Sample| {
        let range = ByteRange::at(next, sample.data.len() as u64);
        next = range.end + 1;
        let sets = sample.is_sync.then_some(0);
        Unit { range, dts: sample.dts.min(sample.pts), pts: sample.pts, sync: sample.is_sync, sets }
    };
    filled.map(unit).collect()
}

/// Appends the packets of streams to `out`, as [`super::segment`] plans them. Without a `table_counter` they have no PAT and
/// PMT. `clock` is the place of the stream with the clock.
///
/// # Errors
/// As [`super::segment`], a damaged sample, and a sound frame that is too long. `out` then has some of the packets.
pub(crate) fn write(
    movie: &Arc<Movie>,
    streams: &[MemoryStream<'_>],
    (table_counter, clock): (Option<u8>, usize),
    out: &mut Vec<u8>,
) -> Result<Written, PackageError> {
    let stream = |(place, stream): (usize, &MemoryStream<'_>)| ElementaryStream {
        movie: movie.clone(),
        track: stream.track,
        object: ObjectIndex(u16::try_from(place).unwrap_or(u16::MAX)),
        units: units(stream.samples),
        first_counter: stream.first_counter,
        continuity: stream.continuity,
        until: stream.until,
    };
    let numbers = table_counter.map(|counter| TableNumbers { counter, version: 0 });
    let mut muxer = Muxer::new(streams.iter().enumerate().map(stream).collect(), numbers)?;
    let clock = muxer.last_clock(clock);
    out.reserve(muxer.len().and_then(|len| usize::try_from(len).ok()).unwrap_or(0));
    let mut samples: Vec<_> =
        streams.iter().map(|stream| stream.samples.iter().filter(|sample| !sample.data.is_empty())).collect();
    while let Some(read) = muxer.next_read() {
        let sample = samples.get_mut(usize::from(read.object.0)).and_then(Iterator::next);
        muxer.push(sample.map_or(&[], |sample| &sample.data), out)?;
        // Samples of live sources are whole: one that is not has other bytes than its source sent.
        if let Some(damage) = muxer.damage() {
            return Err(damage.first.clone());
        }
    }
    muxer.finish(out)?;
    Ok(Written { counters: muxer.counters().collect(), clock })
}
