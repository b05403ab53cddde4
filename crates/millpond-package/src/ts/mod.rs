//! MPEG-2 transport streams (ISO/IEC 13818-1) from samples, which are rewritten as they are read.
//!
//! [`segment`] takes one [`ElementaryStream`] per track, with the [`Unit`]s of the segment, and returns a plan: PAT and PMT, then
//! the units as PES packets in the order of their decoding times. The number of packets of a unit follows from its size alone. So
//! the length of a segment and the continuity counters of the next segment are known before any media is read; see
//! [`stream_packets`]. Where the media needs less (a sample that already has its access unit delimiter), adaptation fields are
//! stuffed. From a damaged NAL unit length on, zeros replace the rest of the picture.
//!
//! Media bytes are copied once, from the sample into the 188-byte packets of the output.

mod carriage;
mod clock;
mod continuation;
mod grouping;
mod lane;
mod memory;
mod mux;
mod nal;
mod packet;
mod pes;
mod psi;
mod sizes;

#[cfg(test)]
mod tests;

pub use continuation::Continuation;
pub use memory::Sample;
pub use memory::clock_of;
pub(crate) use memory::{MemoryStream, movie_of, units, write};
pub use psi::TableNumbers;

use crate::{ObjectIndex, PackageError, Plan};
use millpond_media::{Movie, Track, units::ByteRange};
use std::sync::Arc;

/// Presentation time 0 on the 90 kHz clock: 10 s, so that priming and preroll before 0 have positive times.
pub(crate) const BASE: i64 = 900_000;

/// One access unit of a segment: a coded picture or an audio frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit {
    /// Byte range in the object.
    pub range: ByteRange,
    /// Decoding time on the 90 kHz clock, plus the base of 10 s; cut to 33 bits when written.
    pub dts: i64,
    /// Presentation time on the same clock.
    pub pts: i64,
    /// Whether decoding can begin here.
    pub sync: bool,
    /// Place of the sample description ([`millpond_media::Descriptions`]) whose parameter sets are inserted: where decoding may begin, and
    /// at the start of each segment.
    pub sets: Option<usize>,
}

/// One track's share of a segment.
#[derive(Clone, Debug)]
pub struct ElementaryStream {
    /// Index that describes the track.
    pub movie: Arc<Movie>,
    /// Place of the track in the index ([`Movie::track`]).
    pub track: usize,
    /// Object that contains the bytes.
    pub object: ObjectIndex,
    /// Units in decoding order.
    pub units: Vec<Unit>,
    /// Continuity counter of the stream's first packet; only the low 4 bits count.
    pub first_counter: u8,
    /// What `first_counter` follows.
    pub continuity: Continuity,
    /// Decoding time of the unit after the last one, up to which the clock continues; `None` if no unit follows.
    pub until: Option<i64>,
}

/// What the first continuity counter of a stream follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Continuity {
    /// Packets that were counted by [`stream_packets`]. Where those can't be counted exactly, the first packet has the
    /// discontinuity indicator.
    Counted,
    /// Packets that were written.
    Written,
    /// Nothing: the first packet has the discontinuity indicator, because another time base begins (2.4.3.5).
    New,
}

/// Transport packets of a stream in one segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packets {
    /// Packets with payload, by which the continuity counter advances.
    pub payload: u64,
    /// Packets with only a PCR.
    pub clocks: u64,
}

/// Returns a transport stream segment of the given streams. The first video stream, or the first stream if there is no video,
/// carries the clock: a PCR at least every 100 ms (ISO/IEC 13818-1 2.7.2).
///
/// The plan's length is known, except where a video stream has NAL unit lengths of 1 or 2 bytes. Start codes are longer
/// than those, and the number of NAL units is only known from the media. A [counted](Continuity::Counted) counter may then
/// be wrong.
///
/// # Errors
/// A track that doesn't exist, a codec that transport streams don't carry, too many streams, or an audio frame beyond
/// the size limits of ADTS or PES packets.
pub fn segment(streams: Vec<ElementaryStream>, numbers: TableNumbers) -> Result<Plan, PackageError> {
    Ok(Plan::Rewrite(Box::new(mux::Muxer::new(streams, Some(numbers))?)))
}

/// Returns the number of transport packets of a track's units in one segment, without PAT and PMT. Audio frames share
/// PES packets, but never across segments. `until` is as in [`ElementaryStream`]; `has_clock` marks the stream that
/// carries the clock.
///
/// The number is exact, except for video with NAL unit lengths of 1 or 2 bytes (see [`segment`]).
#[must_use]
pub fn stream_packets(track: &Track, units: &[Unit], has_clock: bool, until: Option<i64>) -> Packets {
    let planned = sizes::Sizes::of(track, has_clock).plan(units, until);
    planned.fold(Packets::default(), |sum, planned| match planned.units.is_empty() {
        true => Packets { clocks: sum.clocks + 1, ..sum },
        false => Packets { payload: sum.payload + u64::from(planned.packets), ..sum },
    })
}
