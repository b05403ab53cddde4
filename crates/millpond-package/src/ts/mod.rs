//! MPEG-2 transport streams (ISO/IEC 13818-1) out of samples, rewritten while they are read.
//!
//! [`segment`] takes one [`ElementaryStream`] for each track with the [`Unit`]s that fall into the segment and
//! gives a plan: PAT and PMT, then the units as PES packets in the order of their decoding times. How many
//! packets a unit takes follows from its size alone, so that the length of a segment and the continuity
//! counters of the next one are known before any media is read; see [`stream_packets`]. Where
//! the media turns out smaller than that (a sample that has its access unit delimiter already), the difference
//! goes into adaptation field stuffing.
//!
//! Media bytes are copied once, from the sample into the 188-byte packets of the output.

mod carriage;
mod clock;
mod grouping;
mod lane;
mod mux;
mod nal;
mod packet;
mod pes;
mod psi;
pub(crate) mod reads;
mod sizes;

#[cfg(test)]
mod tests;

use crate::{ObjectIndex, PackageError, Plan};
use millpond_media::{Movie, Track, units::ByteRange};
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
    /// Whether parameter sets go in front: where decoding may begin, and at the start of each segment.
    pub sets: bool,
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
    /// When the unit behind the last is decoded, up to which the clock goes on; `None` where there is none.
    pub until: Option<i64>,
}

/// Transport packets of a stream in one segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packets {
    /// Packets with payload: the continuity counter moves by as many.
    pub payload: u64,
    /// Packets with nothing but the clock.
    pub clocks: u64,
}

/// A transport stream segment of the given streams; the first video stream (or the first stream where there is
/// no video) carries the clock, which is said every 100 ms at least (ISO/IEC 13818-1 2.7.2). `table_counter` is the continuity counter of PAT and PMT, one packet each.
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

/// Transport packets that a track's units take in one segment, PAT and PMT not counted. Audio frames share PES packets,
/// but never across segments. `until` is as in [`ElementaryStream`]; `has_clock` says whether the stream carries the
/// clock.
///
/// Exact, except for video with NAL unit lengths of 1 or 2 bytes (see [`segment`]).
#[must_use]
pub fn stream_packets(track: &Track, units: &[Unit], has_clock: bool, until: Option<i64>) -> Packets {
    let planned = sizes::Sizes::of(track, has_clock).plan(units, until);
    planned.fold(Packets::default(), |sum, planned| match planned.units.is_empty() {
        true => Packets { clocks: sum.clocks + 1, ..sum },
        false => Packets { payload: sum.payload + u64::from(planned.packets), ..sum },
    })
}
