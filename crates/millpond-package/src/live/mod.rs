//! Live media: samples of a running stream become parts, segments and a window that playlists list.
//!
//! A [`Cutter`] takes the samples of all tracks of a stream and gives [`Cut`]s. A [`Window`] keeps the cut segments, and answers
//! look-ups. [`crate::hls::live`] and [`crate::dash::live`] render it. Nothing here reads a clock: times are stream times, which
//! are common to all tracks of a stream and never fall.
//!
//! A [`Part`] is one `moof` and one `mdat` of one track (a CMAF chunk, ISO/IEC 23000-19 7.3.2.3). Partial segments of
//! HLS, chunks of DASH and whole segments share the bytes of the same parts.

mod boundary;
mod copy;
mod cutter;
mod directives;
mod epoch;
mod flac_units;
mod ladder;
mod lane;
mod measure;
mod part;
mod segment;
mod subtitles;
#[cfg(test)]
pub(crate) mod testing;
mod texts;
mod transport;
mod window;

pub(crate) use boundary::{ticks, time};
pub use copy::{CopyCursor, CopyError, CopyHead, CopyReader, CopyRecord};
pub use cutter::{Cut, CutRules, CutTrack, Cutter};
pub use directives::{BadDirectives, Directives, Reload};
pub use epoch::{LiveFormat, WindowEpoch};
pub use flac_units::FlacUnits;
pub use ladder::Rung;
pub(crate) use ladder::Tracks;
pub use measure::{TargetDuration, Targets};
pub use part::{LiveSample, Part, SegmentNumber, TRACK_ID};
pub use segment::{Segment, TrackSegment};
pub use subtitles::{TextSample, live_webvtt};
pub use texts::{TEXT_CLOCK, TEXT_DELAY, TextCutter};
pub use transport::{TransportCounters, TransportSegment};
pub use window::{
    Continuation, Cue, Edge, Extent, PartLookUp, PastCue, PastSegment, PastTrack, Window, WindowLimits, WindowTrack,
};
pub(crate) use window::{CueAttribute, CuePoint, CueRange};
