//! Messages (RTMP 1.0, 5.4, 6 and 7.1).

use bytes::{Buf as _, Bytes, BytesMut};

/// Types of messages.
pub(crate) const SET_CHUNK_SIZE: u8 = 1;
pub(crate) const ABORT: u8 = 2;
pub(crate) const ACKNOWLEDGEMENT: u8 = 3;
pub(crate) const USER_CONTROL: u8 = 4;
pub(crate) const WINDOW_SIZE: u8 = 5;
pub(crate) const PEER_BANDWIDTH: u8 = 6;
pub(crate) const AUDIO: u8 = 8;
pub(crate) const VIDEO: u8 = 9;
pub(crate) const COMMAND_AMF3: u8 = 17;
pub(crate) const DATA: u8 = 18;
pub(crate) const COMMAND: u8 = 20;
pub(crate) const AGGREGATE: u8 = 22;

/// Name of the properties of a stream, and bytes in which it stands.
const METADATA: &[u8] = b"onMetaData";
const HEAD: usize = 64;

/// Bytes of the header of an FLV tag, for which each message has room.
pub(crate) const TAG: usize = 11;

/// A message whose bytes arrive.
#[derive(Debug, Default)]
pub(crate) struct Partial {
    /// Room for the header of a tag, then the body. Empty before the first byte of the body.
    bytes: BytesMut,
}

/// A whole message.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) kind: u8,
    /// Milliseconds. They wrap.
    pub(crate) timestamp: u32,
    bytes: BytesMut,
}

impl Partial {
    /// Bytes of the body that have arrived.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len().saturating_sub(TAG)
    }

    /// Appends bytes of the body.
    pub(crate) fn push(&mut self, body: &[u8]) {
        if self.bytes.is_empty() {
            self.bytes.reserve(TAG + body.len());
            self.bytes.extend_from_slice(&[0; TAG]);
        }
        self.bytes.extend_from_slice(body);
    }

    /// Takes the message out, which is whole.
    pub(crate) fn finish(&mut self, kind: u8, timestamp: u32) -> Message {
        self.push(&[]);
        Message { kind, timestamp, bytes: std::mem::take(&mut self.bytes) }
    }

    /// Forgets what has arrived.
    pub(crate) fn clear(&mut self) {
        self.bytes = BytesMut::new();
    }
}

impl Message {
    pub(crate) fn body(&self) -> &[u8] {
        &self.bytes[TAG..]
    }

    /// The body, as one that may be changed.
    pub(crate) fn into_body(mut self) -> BytesMut {
        self.bytes.advance(TAG);
        self.bytes
    }

    /// The body of a command, in AMF 0. Commands of the other type begin with a byte that tells it, but some senders leave it out.
    pub(crate) fn command(&self) -> &[u8] {
        match self.body() {
            [0, rest @ ..] if self.kind == COMMAND_AMF3 => rest,
            body => body,
        }
    }

    /// The number of 32 bits with which the body begins.
    pub(crate) fn number(&self) -> Option<u32> {
        self.body().first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
    }

    /// Whether it has the properties of a stream: `onMetaData`, behind `@setDataFrame` where an encoder sends it.
    pub(crate) fn has_metadata(&self) -> bool {
        let body = self.body();
        let head = body.get(..HEAD).unwrap_or(body);
        head.windows(METADATA.len()).any(|part| part == METADATA)
    }

    /// Returns the message as an FLV tag (Video File Format 10, E.4.1), without the length that follows tags in files.
    pub(crate) fn into_tag(mut self) -> Bytes {
        let [_, size @ ..] = ((self.bytes.len() - TAG) as u32).to_be_bytes();
        let [upper, time @ ..] = self.timestamp.to_be_bytes();
        self.bytes[0] = self.kind;
        self.bytes[1..4].copy_from_slice(&size);
        self.bytes[4..7].copy_from_slice(&time);
        self.bytes[7] = upper;
        self.bytes.freeze()
    }
}
