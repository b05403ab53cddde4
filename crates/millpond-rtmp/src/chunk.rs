//! Chunks (RTMP 1.0, 5.3): bytes in, messages out.

use crate::{
    RtmpError,
    message::{Message, Partial},
};
use bytes::{Buf as _, BytesMut};

/// Bytes of a chunk before another size is set (5.4.1).
pub(crate) const CHUNK: usize = 128;
/// Most chunk streams. Senders have up to six.
const MOST_STREAMS: usize = 32;
/// Timestamp that tells that one of 32 bits follows (5.3.1.3).
const EXTENDED: u32 = 0x00ff_ffff;
/// Bytes of the message header, by format (5.3.1.2).
const HEADERS: [usize; 4] = [11, 7, 3, 0];

/// Splits the bytes of a connection into messages. It holds no more than the bytes of messages that have arrived, and those
/// are bounded together.
#[derive(Debug)]
pub(crate) struct ChunkReader {
    /// Most bytes of a chunk's body.
    chunk: usize,
    /// Most bytes of all messages that are under way.
    most: usize,
    /// Bytes of those messages.
    held: usize,
    streams: Vec<ChunkStream>,
    /// The chunk whose body arrives: index of its stream, and bytes that are missing.
    open: Option<(usize, usize)>,
}

/// A chunk stream: the header of its last message, and what has arrived of the body.
#[derive(Debug)]
struct ChunkStream {
    id: u32,
    header: Header,
    body: Partial,
}

/// The header of a message.
#[derive(Clone, Copy, Debug, Default)]
struct Header {
    timestamp: u32,
    /// Time since the message before. It is 0 after a full header.
    delta: u32,
    /// The extended timestamp, where the header has one.
    extended: Option<u32>,
    length: usize,
    kind: u8,
}

/// A parsed header of a chunk.
struct Parsed {
    /// Index of the stream; `None` for a new one.
    stream: Option<usize>,
    id: u32,
    header: Header,
    /// Bytes of it.
    bytes: usize,
}

impl ChunkReader {
    /// Creates it. All messages under way may have `most` bytes together.
    pub(crate) fn new(most: usize) -> Self {
        Self { chunk: CHUNK, most, held: 0, streams: Vec::new(), open: None }
    }

    /// Sets the most bytes of all messages under way.
    pub(crate) fn allow(&mut self, most: usize) {
        self.most = most;
    }

    /// Sets the size of chunks (5.4.1).
    ///
    /// # Errors
    /// It is 0.
    pub(crate) fn set_chunk_size(&mut self, size: u32) -> Result<(), RtmpError> {
        // The first bit is 0.
        self.chunk = (size & 0x7fff_ffff) as usize;
        if self.chunk > 0 { Ok(()) } else { Err(RtmpError::ChunkSize) }
    }

    /// Forgets the message of a chunk stream that is under way (5.4.2).
    pub(crate) fn abort(&mut self, id: u32) {
        if let Some(stream) = self.streams.iter_mut().find(|stream| stream.id == id) {
            self.held -= stream.body.len();
            stream.body.clear();
        }
    }

    /// Takes bytes from the front, up to the end of the next message. Returns `None` when all are taken but the beginning of a
    /// header.
    ///
    /// # Errors
    /// The bytes are no chunks, or messages are too large.
    pub(crate) fn read(&mut self, input: &mut BytesMut) -> Result<Option<Message>, RtmpError> {
        loop {
            let (place, missing) = match self.open {
                Some(open) => open,
                None => match self.header(input)? {
                    Some(open) => open,
                    None => return Ok(None),
                },
            };
            let stream = &mut self.streams[place];
            let part = missing.min(input.len());
            if part > 0 {
                self.held += part;
                if self.held > self.most {
                    return Err(RtmpError::TooMuch(self.most));
                }
                stream.body.push(&input[..part]);
                input.advance(part);
            }
            if part < missing {
                self.open = Some((place, missing - part));
                return Ok(None);
            }
            self.open = None;
            if stream.body.len() == stream.header.length {
                self.held -= stream.header.length;
                return Ok(Some(stream.body.finish(stream.header.kind, stream.header.timestamp)));
            }
        }
    }

    /// Takes the header of a chunk. Returns the index of its stream and the bytes of its body.
    fn header(&mut self, input: &mut BytesMut) -> Result<Option<(usize, usize)>, RtmpError> {
        let Some(Parsed { stream, id, header, bytes }) = self.parse(input)? else { return Ok(None) };
        if header.length > self.most {
            return Err(RtmpError::TooLarge { found: header.length, most: self.most });
        }
        input.advance(bytes);
        let place = match stream {
            Some(place) => place,
            None if self.streams.len() == MOST_STREAMS => return Err(RtmpError::ChunkStreams(MOST_STREAMS)),
            None => {
                self.streams.push(ChunkStream { id, header, body: Partial::default() });
                self.streams.len() - 1
            }
        };
        let stream = &mut self.streams[place];
        stream.header = header;
        Ok(Some((place, self.chunk.min(header.length - stream.body.len()))))
    }

    /// Parses the header of a chunk; `None` while it is incomplete.
    fn parse(&self, input: &[u8]) -> Result<Option<Parsed>, RtmpError> {
        let Some((format, id, start)) = basic(input) else { return Ok(None) };
        let stream = self.streams.iter().position(|stream| stream.id == id);
        let known = stream.map(|place| &self.streams[place]);
        let is_within = known.is_some_and(|known| known.body.len() > 0);
        if format < 3 && is_within {
            return Err(RtmpError::Unfinished(id));
        }
        let mut header = match (format, known) {
            // Some senders begin with a time since nothing.
            (0, _) | (1, None) => Header::default(),
            (_, Some(known)) => known.header,
            (_, None) => return Err(RtmpError::NoHeader(id)),
        };
        let mut at = start + HEADERS[format];
        let Some(fields) = input.get(start..at) else { return Ok(None) };
        if let Some((length, rest)) = fields.get(3..).and_then(<[u8]>::split_first_chunk::<3>) {
            header.length = number(*length) as usize;
            header.kind = rest[0];
        }
        if let Some(time) = fields.first_chunk::<3>() {
            let time = number(*time);
            header.extended = None;
            let time = if time == EXTENDED {
                let Some(extended) = extended(input, at) else { return Ok(None) };
                at += 4;
                header.extended = Some(extended);
                extended
            } else {
                time
            };
            (header.timestamp, header.delta) =
                if format == 0 { (time, 0) } else { (header.timestamp.wrapping_add(time), time) };
        } else {
            if let Some(expected) = header.extended {
                // Some senders leave it out where a message goes on.
                let Some(found) = extended(input, at) else { return Ok(None) };
                at += if found == expected { 4 } else { 0 };
            }
            if !is_within {
                header.timestamp = header.timestamp.wrapping_add(header.delta);
            }
        }
        Ok(Some(Parsed { stream, id, header, bytes: at }))
    }
}

/// Reads a basic header (5.3.1.1): the format, the chunk stream, and the number of its bytes.
fn basic(input: &[u8]) -> Option<(usize, u32, usize)> {
    let first = *input.first()?;
    let (id, bytes) = match first & 0x3f {
        0 => (64 + u32::from(*input.get(1)?), 2),
        1 => (64 + u32::from(*input.get(1)?) + (u32::from(*input.get(2)?) << 8), 3),
        id => (id.into(), 1),
    };
    Some((usize::from(first >> 6), id, bytes))
}

/// Reads an extended timestamp.
fn extended(input: &[u8], at: usize) -> Option<u32> {
    input.get(at..)?.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}

fn number([a, b, c]: [u8; 3]) -> u32 {
    u32::from_be_bytes([0, a, b, c])
}
