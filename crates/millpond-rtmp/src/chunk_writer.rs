//! Chunks that are written (RTMP 1.0, 5.3): messages in, bytes out.

use crate::{chunk::CHUNK, message};

/// Size of chunks with media, in bytes: one byte of header follows each.
const MEDIA_CHUNK: u32 = 4096;
/// Chunk streams of protocol control messages (5.4), commands, data, sound and pictures.
const CONTROL_STREAM: u8 = 2;
const COMMAND_STREAM: u8 = 3;
const DATA_STREAM: u8 = 5;
const AUDIO_STREAM: u8 = 4;
const VIDEO_STREAM: u8 = 6;
/// Least timestamp that follows the header in 32 bits (5.3.1.3).
const EXTENDED: u32 = 0x00ff_ffff;
/// Most bytes of a message: lengths have 24 bits.
const MOST: usize = 0x00ff_ffff;

/// A message with media that is to be sent: an FLV tag in parts.
#[derive(Clone, Copy, Debug)]
pub struct RtmpMedia<'a> {
    /// Type of the tag: 8 is sound, 9 pictures, 18 metadata.
    pub kind: u8,
    /// Milliseconds. They wrap.
    pub timestamp: u32,
    /// The first bytes of the body.
    pub head: &'a [u8],
    /// The other bytes of the body.
    pub data: &'a [u8],
}

/// Cuts messages into chunks.
#[derive(Debug)]
pub(crate) struct ChunkWriter {
    /// Most bytes of a chunk's body.
    chunk: usize,
}

impl Default for ChunkWriter {
    fn default() -> Self {
        Self { chunk: CHUNK }
    }
}

impl ChunkWriter {
    /// Appends a message that sets the size of all chunks after it (5.4.1).
    pub(crate) fn enlarge(&mut self, output: &mut Vec<u8>) {
        self.control(output, message::SET_CHUNK_SIZE, &[&MEDIA_CHUNK.to_be_bytes()]);
        self.chunk = MEDIA_CHUNK as usize;
    }

    /// Appends a protocol control message.
    pub(crate) fn control(&self, output: &mut Vec<u8>, kind: u8, body: &[&[u8]]) {
        self.write(output, (CONTROL_STREAM, kind, 0, 0), body);
    }

    /// Appends a command for a message stream.
    pub(crate) fn command(&self, output: &mut Vec<u8>, stream: u32, body: &[u8]) {
        self.write(output, (COMMAND_STREAM, message::COMMAND, stream, 0), &[body]);
    }

    /// Appends media for a message stream. `prefix` precedes the body.
    pub(crate) fn media(&self, output: &mut Vec<u8>, stream: u32, prefix: &[u8], media: &RtmpMedia<'_>) {
        let chunk_stream = match media.kind {
            message::AUDIO => AUDIO_STREAM,
            message::VIDEO => VIDEO_STREAM,
            _ => DATA_STREAM,
        };
        self.write(output, (chunk_stream, media.kind, stream, media.timestamp), &[prefix, media.head, media.data]);
    }

    /// Appends a message with a full header. One that is longer than lengths can tell is left out.
    fn write(
        &self,
        output: &mut Vec<u8>,
        (chunk_stream, kind, stream, timestamp): (u8, u8, u32, u32),
        parts: &[&[u8]],
    ) {
        let length = parts.iter().map(|part| part.len()).sum::<usize>();
        if length > MOST {
            return;
        }
        let extended = (timestamp >= EXTENDED).then(|| timestamp.to_be_bytes());
        output.reserve(length + length / self.chunk * 5 + 16);
        output.push(chunk_stream);
        output.extend_from_slice(&timestamp.min(EXTENDED).to_be_bytes()[1..]);
        output.extend_from_slice(&(length as u32).to_be_bytes()[1..]);
        output.push(kind);
        output.extend_from_slice(&stream.to_le_bytes());
        output.extend(extended.iter().flatten());
        let mut room = self.chunk;
        for part in parts {
            let mut rest = *part;
            while !rest.is_empty() {
                if room == 0 {
                    output.push(0xc0 | chunk_stream);
                    output.extend(extended.iter().flatten());
                    room = self.chunk;
                }
                let (written, left) = rest.split_at(rest.len().min(room));
                output.extend_from_slice(written);
                (room, rest) = (room - written.len(), left);
            }
        }
    }
}
