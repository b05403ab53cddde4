//! Stored AVI files (Multimedia Programming Interface and Data Specifications 1.0, OpenDML AVI File Format Extensions 1.02).
//!
//! [`header`] reads the streams' headers. If each chunk is one sample in every track, an [`index`] lists all samples. Otherwise
//! [`walk`] reads all chunks, and frames are found within them: H.264 and HEVC are byte streams (Annex B) there, and a frame of MP3
//! or AC-3 may continue in the next chunk. Such samples have places in an extracted object.

mod chunk;
mod format;
mod framed;
mod gaps;
mod header;
mod index;
mod index_search;
mod indexer;
mod key_frame;
mod lane;
mod named;
mod pace;
mod parameter_sets;
mod picture_table;
mod walk;
mod whole;

#[cfg(test)]
mod tests;

pub(crate) use indexer::{AviIndexer, AviStep};

/// Box path in errors about the whole file.
const PATH: &str = "AVI";

/// Whether an object that begins with `head` is an AVI file.
pub(crate) fn is_avi(head: &[u8]) -> bool {
    head.starts_with(b"RIFF") && head.get(8..).is_some_and(|kind| kind.starts_with(b"AVI "))
}
