//! The half of the protocol that servers and clients share: it reads messages, and sends acknowledgements and answers to pings.

use crate::{
    RtmpError,
    aggregate::Aggregate,
    chunk::ChunkReader,
    chunk_writer::ChunkWriter,
    message::{self, Message},
};
use bytes::{Bytes, BytesMut};

/// Most bytes of messages under way before media flow.
const MOST_BEFORE: usize = 64 << 10;
/// The same while they flow: a key frame, and messages beside it.
const MOST_MEDIA: usize = 8 << 20;
/// Bytes after which both ends acknowledge.
pub(crate) const WINDOW: u32 = 2_500_000;
/// Least bytes between two acknowledgements.
const LEAST_WINDOW: u32 = 4096;
/// Events of user control messages (RTMP 1.0, 7.1.7): the end of a stream, a ping and its answer.
pub(crate) const STREAM_EOF: u16 = 1;
const PING: u16 = 6;
const PONG: u16 = 7;

/// A message that is no protocol control message.
#[derive(Debug)]
pub(crate) enum Inbound {
    /// Pictures or sound, as an FLV tag.
    Media(Bytes),
    /// A command.
    Command(Message),
    /// A stream has ended.
    StreamEof,
}

/// A connection after its handshake.
#[derive(Debug)]
pub(crate) struct Link {
    chunks: ChunkReader,
    pub(crate) writer: ChunkWriter,
    /// Bytes for the peer.
    pub(crate) output: Vec<u8>,
    /// Media of an aggregate message that follow.
    aggregate: Option<Aggregate>,
    /// Bytes of chunks that were received, modulo 2^32.
    received: u32,
    acknowledged: u32,
    window: u32,
}

impl Default for Link {
    fn default() -> Self {
        Self {
            chunks: ChunkReader::new(MOST_BEFORE),
            writer: ChunkWriter::default(),
            output: Vec::new(),
            aggregate: None,
            received: 0,
            acknowledged: 0,
            window: WINDOW,
        }
    }
}

impl Link {
    /// Lets messages be as large as media are.
    pub(crate) fn allow_media(&mut self) {
        self.chunks.allow(MOST_MEDIA);
    }

    /// Takes bytes from the front. Returns the next message; `None` when more bytes are needed.
    ///
    /// # Errors
    /// The peer violates the protocol.
    pub(crate) fn receive(&mut self, input: &mut BytesMut) -> Result<Option<Inbound>, RtmpError> {
        loop {
            if let Some(aggregate) = &mut self.aggregate {
                if let Some(tag) = aggregate.next()? {
                    return Ok(Some(Inbound::Media(tag)));
                }
                self.aggregate = None;
            }
            let before = input.len();
            let message = self.chunks.read(input)?;
            self.received = self.received.wrapping_add((before - input.len()) as u32);
            if self.received.wrapping_sub(self.acknowledged) >= self.window {
                self.acknowledged = self.received;
                let received = self.received.to_be_bytes();
                self.writer.control(&mut self.output, message::ACKNOWLEDGEMENT, &[&received]);
            }
            let Some(message) = message else { return Ok(None) };
            if let Some(inbound) = self.message(message)? {
                return Ok(Some(inbound));
            }
        }
    }

    fn message(&mut self, message: Message) -> Result<Option<Inbound>, RtmpError> {
        let kind = message.kind;
        let number = || message.number().ok_or(RtmpError::Message { kind, expected: "a number of 32 bits" });
        match kind {
            message::SET_CHUNK_SIZE => self.chunks.set_chunk_size(number()?)?,
            message::ABORT => self.chunks.abort(number()?),
            message::WINDOW_SIZE => self.window = (number()? / 2).clamp(LEAST_WINDOW, WINDOW),
            message::USER_CONTROL => return Ok(self.user_control(message.body())),
            message::AUDIO | message::VIDEO => return Ok(Some(Inbound::Media(message.into_tag()))),
            // Metadata tell which tracks will come.
            message::DATA if message.has_metadata() => return Ok(Some(Inbound::Media(message.into_tag()))),
            message::COMMAND | message::COMMAND_AMF3 => return Ok(Some(Inbound::Command(message))),
            message::AGGREGATE => self.aggregate = Some(Aggregate::new(message)),
            _ => {}
        }
        Ok(None)
    }

    fn user_control(&mut self, body: &[u8]) -> Option<Inbound> {
        let (event, data) = body.split_first_chunk::<2>()?;
        match (u16::from_be_bytes(*event), data.first_chunk::<4>()) {
            (PING, Some(time)) => {
                self.writer.control(&mut self.output, message::USER_CONTROL, &[&PONG.to_be_bytes(), time]);
                None
            }
            (STREAM_EOF, _) => Some(Inbound::StreamEof),
            _ => None,
        }
    }
}
