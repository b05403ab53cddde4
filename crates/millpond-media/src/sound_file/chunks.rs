//! Chunks of WAVE and AIFF files: a type, a size, and a body that is padded to an even length.

use crate::{boxes::FourCc, error::MediaError, window::Window};

/// Bytes of the header of a file.
pub(super) const FILE_HEADER: u64 = 12;
/// Bytes of the header of a chunk.
pub(super) const CHUNK_HEADER: u64 = 8;
/// Most chunks of a file that are read.
const MOST_CHUNKS: u32 = 1024;

/// The walk over the chunks of a file.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    is_open: bool,
    /// Chunks that were counted.
    count: u32,
}

impl Chunks {
    /// Passes the header of the file. Returns `false` while its bytes are missing.
    pub(super) fn open(&mut self, window: &mut Window) -> bool {
        if !self.is_open && window.bytes(FILE_HEADER).is_some() {
            window.advance(FILE_HEADER);
            self.is_open = true;
        }
        self.is_open
    }

    /// Counts a chunk at `at`.
    ///
    /// # Errors
    /// The file has too many. `path` is that of the error.
    pub(super) fn count(&mut self, path: &str, at: u64) -> Result<(), MediaError> {
        self.count += 1;
        if self.count > MOST_CHUNKS {
            return Err(MediaError::too_large(path, at, self.count.into(), MOST_CHUNKS.into(), "chunks"));
        }
        Ok(())
    }
}

/// Returns type and size of the chunk at the position, whose size `number` reads; `None` while its header is missing.
pub(super) fn header(window: &Window, number: fn([u8; 4]) -> u32) -> Option<(FourCc, u64)> {
    let bytes = window.bytes(CHUNK_HEADER)?;
    let (kind, size) = bytes.split_first_chunk::<4>()?;
    Some((*kind, number(*size.first_chunk()?).into()))
}
