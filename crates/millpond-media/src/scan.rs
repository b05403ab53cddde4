//! Reads a file from its beginning to its end, without I/O: formats whose places of frames no table states.
//!
//! A [`FileReader`] walks over the bytes of a [`Window`]. [`FileScan`] drives it, and names the ranges that are needed next.

use crate::{error::MediaError, movie::Movie, units::ByteRange, window::Window, work::Work};
use bytes::Bytes;
use std::fmt::Debug;

/// Bytes of a request for headers.
const HEADERS: u64 = 64 << 10;
/// Bytes of a request for frames, which follow one another.
const FRAMES: u64 = 1 << 20;

/// A reader of one format.
pub(crate) trait FileReader: Debug + Send {
    /// Reads as far as the bytes of the window allow.
    fn read(&mut self, window: &mut Window, work: &Work) -> Result<Progress, MediaError>;

    /// Bytes of heap that its sample tables hold so far.
    fn heap_bytes(&self) -> usize;
}

/// Result of a call of a [`FileReader`].
#[derive(Debug)]
pub(crate) enum Progress {
    /// A header of this many bytes from the position on is needed.
    Needs(u64),
    /// This many bytes from the position on are needed, and others behind them.
    Scans(u64),
    /// The finished index.
    Done(Box<Movie>),
}

/// Result of one step of a [`FileScan`].
#[derive(Debug)]
pub(crate) enum ScanStep {
    Needs(ByteRange),
    Done(Box<Movie>),
}

/// The reading of one file.
#[derive(Debug)]
pub(crate) struct FileScan {
    window: Window,
    reader: Box<dyn FileReader>,
    work: Work,
}

impl FileScan {
    /// Begins to read an object of `object_len` bytes, whose first bytes are `head`.
    pub(crate) fn new(object_len: u64, head: Bytes, reader: Box<dyn FileReader>, work: Work) -> Self {
        let mut window = Window::new(0, object_len, HEADERS);
        window.append(head);
        Self { window, reader, work }
    }

    /// Takes the bytes of the range that was needed.
    pub(crate) fn supply(&mut self, bytes: Bytes) {
        self.window.append(bytes);
    }

    /// Bytes of heap that the sample tables hold so far.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.reader.heap_bytes()
    }

    /// Reads as far as the bytes allow.
    ///
    /// # Errors
    /// The file is damaged beyond reading, or nothing of it can be played.
    pub(crate) fn step(&mut self) -> Result<ScanStep, MediaError> {
        let (size, read_size) = match self.reader.read(&mut self.window, &self.work)? {
            Progress::Done(movie) => return Ok(ScanStep::Done(movie)),
            Progress::Needs(size) => (size, HEADERS),
            Progress::Scans(size) => (size, FRAMES),
        };
        self.window.set_read_size(read_size);
        let range = self.window.want(size);
        if range.is_empty() || self.window.bytes(size).is_some() {
            return Err(MediaError::truncated("the file", self.window.at(), self.window.left(), size));
        }
        Ok(ScanStep::Needs(range))
    }
}
