//! The part of the file before the media: the list `hdrl` with the streams' headers, and the place of the list `movi`.

use super::{
    PATH,
    chunk::{self, CHUNK_HEADER, LIST_HEADER, chunks, u16_at, u32_at},
};
use crate::{
    boxes::{FourCc, show},
    error::MediaError,
    units::ByteRange,
    window::Window,
    work::Work,
};
use bytes::Bytes;

/// Most bytes of `hdrl` that are read. Its super indexes (OpenDML) have a few KiB for each stream, but padding may follow the indexes.
const MOST_HEADER: u64 = 4 << 20;
/// Most chunks before the media.
const MOST_CHUNKS: u32 = 1024;
/// Most streams: the type of a chunk has two digits for the stream's number.
pub(super) const MOST_STREAMS: usize = 100;
/// Most bytes of a stream's name that are read.
const MOST_NAME: usize = 256;

/// The streams of a file, and its first list of media.
#[derive(Clone, Debug)]
pub(super) struct Header {
    pub(super) streams: Vec<Stream>,
    /// Body of the first `movi`, behind the list's type. The range ends with the file at the latest.
    pub(super) movi: ByteRange,
    /// Whether the file ends within the first `movi`.
    pub(super) is_cut_short: bool,
}

/// A stream: `strh`, `strf`, `strn` and `indx` of a list `strl`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stream {
    pub(super) number: usize,
    /// `fccType`: `vids` or `auds`.
    pub(super) kind: FourCc,
    /// `fccHandler`, which names the codec if the format does not.
    pub(super) handler: FourCc,
    /// Duration of a unit: `scale / rate` seconds.
    pub(super) scale: u32,
    pub(super) rate: u32,
    /// Units from the beginning of the file to the first chunk.
    pub(super) start: u32,
    /// `strf`, and its offset in the file.
    pub(super) format: (u64, Bytes),
    pub(super) name: Option<String>,
    /// `indx`; empty if the stream has none.
    pub(super) super_index: Bytes,
}

/// Result of reading as far as the bytes allow.
#[derive(Debug)]
pub(super) enum Read {
    /// Number of bytes that are needed from the position of the window on.
    Needs(u64),
    Done(Header),
}

/// The walk to the media.
#[derive(Debug, Default)]
pub(super) struct HeaderReader {
    is_open: bool,
    chunks: u32,
    streams: Option<Vec<Stream>>,
}

impl HeaderReader {
    /// Reads as far as the bytes allow.
    ///
    /// # Errors
    /// The header is damaged, or there is no list of media.
    pub(super) fn read(&mut self, window: &mut Window, work: &Work) -> Result<Read, MediaError> {
        if !self.is_open {
            if window.bytes(LIST_HEADER).is_none() {
                return Ok(Read::Needs(LIST_HEADER));
            }
            window.advance(LIST_HEADER);
            self.is_open = true;
        }
        loop {
            let at = window.at();
            work.spend(1).map_err(|error| MediaError::work(PATH, at, error))?;
            self.chunks += 1;
            if self.chunks > MOST_CHUNKS {
                let (found, most) = (self.chunks.into(), MOST_CHUNKS.into());
                return Err(MediaError::too_large(PATH, at, found, most, "chunks before the media"));
            }
            if window.left() < LIST_HEADER {
                return Err(MediaError::invalid(PATH, at, "the end of the file", "a list movi"));
            }
            let Some(bytes) = window.bytes(LIST_HEADER) else { return Ok(Read::Needs(LIST_HEADER)) };
            let Some((kind, size)) = chunk::header(&bytes) else { return Ok(Read::Needs(LIST_HEADER)) };
            let list = (&kind == b"LIST").then(|| bytes.get(CHUNK_HEADER as usize..).unwrap_or_default());
            let whole = CHUNK_HEADER + chunk::padded(size);
            match list {
                Some(b"movi") => return self.finish(at, size, window.end()),
                Some(b"hdrl") if self.streams.is_none() => {
                    let length = CHUNK_HEADER + size;
                    if length > window.left() {
                        return Err(MediaError::truncated("hdrl", at, window.left(), length));
                    }
                    let read = length.min(MOST_HEADER);
                    let Some(bytes) = window.bytes(read) else { return Ok(Read::Needs(read)) };
                    self.streams = Some(streams(&bytes, at));
                }
                _ => {}
            }
            if whole > window.left() {
                return Err(MediaError::truncated(show(kind), at, window.left(), whole));
            }
            window.advance(whole);
        }
    }

    fn finish(&mut self, at: u64, size: u64, end: u64) -> Result<Read, MediaError> {
        let streams = self.streams.take();
        let streams = streams.ok_or_else(|| MediaError::invalid(PATH, at, "a list movi first", "a list hdrl first"))?;
        // The size is 0 if the writer was ended before it knew the size.
        let stated = if size < 4 { end } else { (at + CHUNK_HEADER).saturating_add(size) };
        let movi = ByteRange::new(at + LIST_HEADER, stated.min(end));
        Ok(Read::Done(Header { streams, movi, is_cut_short: stated > end }))
    }
}

/// Reads the streams in the list `hdrl`, whose offset in the file is `at`.
fn streams(list: &Bytes, at: u64) -> Vec<Stream> {
    let body = list.get(LIST_HEADER as usize..).unwrap_or_default();
    let lists =
        chunks(body, at + LIST_HEADER).filter(|chunk| &chunk.kind == b"LIST" && chunk.body.starts_with(b"strl"));
    let lists = lists.take(MOST_STREAMS).enumerate();
    lists.map(|(number, list)| stream(number, list.body.get(4..).unwrap_or_default(), list.at + 4)).collect()
}

/// Reads a list `strl`. Missing fields are 0.
fn stream(number: usize, body: &[u8], at: u64) -> Stream {
    let mut stream = Stream {
        number,
        kind: [0; 4],
        handler: [0; 4],
        scale: 0,
        rate: 0,
        start: 0,
        format: (at, Bytes::new()),
        name: None,
        super_index: Bytes::new(),
    };
    for chunk in chunks(body, at) {
        let field = |place: usize| u32_at(chunk.body, place).unwrap_or(0);
        match &chunk.kind {
            b"strh" => {
                (stream.kind, stream.handler) = (field(0).to_le_bytes(), field(4).to_le_bytes());
                (stream.scale, stream.rate, stream.start) = (field(20), field(24), field(28));
            }
            b"strf" => stream.format = (chunk.at, Bytes::copy_from_slice(chunk.body)),
            b"strn" => stream.name = name(chunk.body),
            b"indx" => stream.super_index = Bytes::copy_from_slice(chunk.body),
            _ => {}
        }
    }
    stream
}

/// Reads a name up to the first zero byte.
fn name(body: &[u8]) -> Option<String> {
    let end = body.iter().take(MOST_NAME).position(|byte| *byte == 0).unwrap_or(body.len().min(MOST_NAME));
    let name = String::from_utf8_lossy(body.get(..end).unwrap_or_default()).trim().to_owned();
    (!name.is_empty() && !name.chars().any(char::is_control)).then_some(name)
}

impl Stream {
    /// Whether the stream has pictures.
    pub(super) fn is_video(&self) -> bool {
        &self.kind == b"vids"
    }

    /// Identifier of the stream's track.
    pub(super) fn id(&self) -> u32 {
        self.number as u32 + 1
    }

    /// Returns the field of 16 bits at `at` of the format.
    pub(super) fn short(&self, at: usize) -> Option<u16> {
        u16_at(&self.format.1, at)
    }

    /// Returns the field of 32 bits at `at` of the format.
    pub(super) fn long(&self, at: usize) -> Option<u32> {
        u32_at(&self.format.1, at)
    }
}
