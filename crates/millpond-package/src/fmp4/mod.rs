//! Fragmented MP4 as CMAF wants it (ISO/IEC 23000-19): one track a file, an init segment, a fragment a segment.
//!
//! Decode times are never after presentation times: composition offsets are not negative. Media time is presentation
//! time plus the track's *early* time: how far its first samples are decoded (picture reordering) or presented
//! (encoder priming) before presentation time 0. Where that isn't 0, the init segment has an edit list
//! (14496-12 8.6.6) that takes it off again. Negative composition offsets would do without one, but FFmpeg and the
//! players built on it then show pictures late by the reorder time. See [`crate::timeline`] for what decode and
//! presentation times are.

mod boxes;
mod init;
mod protection;
mod segment;

#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use boxes::BoxWriter;
pub use init::init;
pub(crate) use protection::added as added_by_encryption;
pub use segment::{iframe, segment};
