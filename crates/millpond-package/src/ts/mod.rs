//! MPEG-2 transport streams (ISO/IEC 13818-1) out of samples, rewritten while they are read.
//!
//! [`segment`] takes one [`ElementaryStream`] for each track with the [`Unit`]s that fall into the segment and
//! gives a plan: PAT and PMT, then the units as PES packets in the order of their decoding times. How many
//! packets a unit takes follows from its size alone, so that the length of a segment and the continuity
//! counters of the next one are known before any media is read; see [`packets`] and [`stream_packets`]. Where
//! the media turns out smaller than that (a sample that has its access unit delimiter already), the difference
//! goes into adaptation field stuffing.
//!
//! Media bytes are copied once, from the sample into the 188-byte packets of the output.

mod carriage;
mod grouping;
mod lane;
mod mux;
mod nal;
mod packet;
mod pes;
mod psi;
pub(crate) mod reads;

#[cfg(test)]
mod tests;

use crate::{ObjectIndex, PackageError, Plan};
use millpond_media::{Codec, Movie, units::ByteRange};
use std::sync::Arc;

/// One access unit of a segment: a coded picture or an audio frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit {
    /// Where its bytes are in the object.
    pub range: ByteRange,
    /// Decoding time on the 90 kHz clock, the base of 10 s added; cut to 33 bits where it is written.
    pub dts: i64,
    /// Presentation time on the same clock.
    pub pts: i64,
    /// Whether decoding can begin here.
    pub sync: bool,
}

/// What one track gives to a segment.
#[derive(Clone, Debug)]
pub struct ElementaryStream {
    /// The index the track is in.
    pub movie: Arc<Movie>,
    /// Place of the track in [`Movie::tracks`].
    pub track: usize,
    /// The object that has the bytes.
    pub object: ObjectIndex,
    /// The units in decoding order.
    pub units: Vec<Unit>,
    /// Continuity counter of the stream's first packet; only the low 4 bits count.
    pub first_counter: u8,
}

/// A transport stream segment of the given streams; the first video stream (or the first stream where there is
/// no video) carries the clock. `table_counter` is the continuity counter of PAT and PMT, one packet each.
///
/// The plan's length is known, except where a video stream has NAL unit lengths of 1 or 2 bytes: start codes
/// are longer than those, and how many there are is only seen in the media. The stream's first packet
/// has the discontinuity indicator then, as its counter can't be right.
///
/// # Errors
/// A track that isn't there, a codec that a transport stream doesn't carry, too many streams, or an audio frame
/// beyond the size that ADTS or a PES packet can state.
pub fn segment(streams: Vec<ElementaryStream>, table_counter: u8) -> Result<Plan, PackageError> {
    Ok(Plan::Rewrite(Box::new(mux::Muxer::new(streams, table_counter)?)))
}

/// Transport packets that a unit of `unit_size` bytes takes when it is alone in its PES packet, as every
/// video unit is.
///
/// Exact, except for video with NAL unit lengths of 1 or 2 bytes (see [`segment`]).
#[must_use]
pub fn packets(codec: &Codec, unit_size: u32, sync: bool) -> u32 {
    let payload = carriage::payload_size(codec, u64::from(unit_size), sync);
    packet::count(pes::header_len(codec) + payload)
}

/// Transport packets that a stream's units take in one segment, PAT and PMT not counted: the continuity counter
/// moves by as many. Audio frames share PES packets, but never across segments.
#[must_use]
pub fn stream_packets(codec: &Codec, units: &[Unit]) -> u64 {
    grouping::groups(codec, units).map(|group| u64::from(carriage::group_packets(codec, &units[group]))).sum()
}
