//! Fragmented MP4 as CMAF (ISO/IEC 23000-19): one track per file, an init segment, and one fragment per segment.
//!
//! Decode times are never after presentation times, so composition offsets are not negative. Media time is presentation
//! time plus the track's *early* time: how long before presentation time 0 its first samples are decoded (picture
//! reordering) or presented (encoder priming). Where that isn't 0, an edit list in the init segment (14496-12 8.6.6)
//! subtracts it. Negative composition offsets would need none, but then FFmpeg and players built on it present pictures
//! late by the reorder time. Only tracks of periods have them: hls.js counts the first composition offset of a period as time
//! that passed. [`crate::timeline`] defines decode and presentation times.

mod boxes;
mod clock;
mod encoded;
mod fragment;
mod init;
mod loaded;
mod protection;
mod segment;
mod still;

#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use boxes::BoxWriter;
pub use fragment::{FragmentSample, TrackRun, fragment_head};
pub use init::{TrackHeader, clip_init, init, live_init};
pub use loaded::{LoadedError, loaded_segment};
pub use segment::{iframe, segment};
pub use still::still;
