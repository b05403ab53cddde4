//! Access for fuzz targets: the counters of one connection.

use crate::error::Excess;
use crate::frames::{FRAMES_A_REQUEST, Frames, HEADS_A_REQUEST, SPARE_FRAMES, SPARE_HEADS};
use crate::heads::{Heads, MOST_BYTES, MOST_INTERIM};

/// Most interim replies of HTTP/1 before a reply.
pub const INTERIM: u32 = MOST_INTERIM;
/// Most bytes of interim replies of HTTP/1 before a reply.
pub const INTERIM_BYTES: usize = MOST_BYTES;

/// Bytes on a connection.
#[derive(Clone, Copy, Debug)]
pub enum Part<'a> {
    /// From this side.
    Sent(&'a [u8]),
    /// From the server.
    Received(&'a [u8]),
}

/// Counts the interim replies of HTTP/1.
///
/// # Errors
/// They exceed a bound.
pub fn heads<'a>(parts: impl IntoIterator<Item = Part<'a>>) -> Result<(), Excess> {
    let mut heads = Heads::default();
    parts.into_iter().try_for_each(|part| match part {
        Part::Sent(_) => {
            heads.wrote();
            Ok(())
        }
        Part::Received(bytes) => heads.read(bytes),
    })
}

/// Counts the frames of HTTP/2.
///
/// # Errors
/// They exceed a bound.
pub fn frames<'a>(parts: impl IntoIterator<Item = Part<'a>>) -> Result<(), Excess> {
    let mut frames = Frames::default();
    parts.into_iter().try_for_each(|part| match part {
        Part::Sent(bytes) => {
            frames.wrote(bytes);
            Ok(())
        }
        Part::Received(bytes) => frames.read(bytes),
    })
}

/// Returns the bounds of HTTP/2 after some requests: heads, and frames without content.
#[must_use]
pub fn bounds(requests: u64) -> (u64, u64) {
    (SPARE_HEADS + HEADS_A_REQUEST * requests, SPARE_FRAMES + FRAMES_A_REQUEST * requests)
}
