//! Extensions of handshakes (draft-sharabayko-srt-01 3.2.1.1 to 3.2.1.4).

use crate::packet::word;

/// Types of extensions.
const OPTIONS: u16 = 1;
const OPTIONS_ANSWER: u16 = 2;
const KEYS: u16 = 3;
const KEYS_ANSWER: u16 = 4;
const STREAM_ID: u16 = 5;
const CONGESTION: u16 = 6;
const FILTER: u16 = 7;
const GROUP: u16 = 8;

/// Longest stream id, in bytes.
pub(crate) const LONGEST_STREAM_ID: usize = 512;
/// The version of SRT that is told: 1.5.0, whose features are those of this crate.
const SRT_VERSION: u32 = 0x0001_0500;

/// Flags: payloads are sent, and delivered, at their time; encryption is known; packets that are too late are dropped; lost packets
/// are told again; packets tell whether they were sent before.
const TIMED_SEND: u32 = 1;
const TIMED_DELIVERY: u32 = 2;
const ENCRYPTION: u32 = 4;
const TOO_LATE_DROP: u32 = 8;
const PERIODIC_LOSSES: u32 = 0x10;
const TELLS_AGAIN: u32 = 0x20;
/// A stream of bytes instead of messages.
const BYTES: u32 = 0x40;

/// Options of one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) version: u32,
    pub(crate) flags: u32,
    /// Time that its receiver, and the receiver of its peer, holds payloads, in milliseconds.
    pub(crate) receiver_delay: u16,
    pub(crate) sender_delay: u16,
}

impl Options {
    /// Our options, with the delays of both directions in milliseconds.
    pub(crate) fn ours(receiver_delay: u16, sender_delay: u16) -> Self {
        let flags = TIMED_SEND | TIMED_DELIVERY | ENCRYPTION | TOO_LATE_DROP | PERIODIC_LOSSES | TELLS_AGAIN;
        Self { version: SRT_VERSION, flags, receiver_delay, sender_delay }
    }

    /// Whether the peer sends a stream of bytes instead of messages.
    pub(crate) fn is_bytes(&self) -> bool {
        self.flags & BYTES != 0
    }

    /// Whether the peer delivers payloads at their time.
    pub(crate) fn is_timed(&self) -> bool {
        self.flags & TIMED_SEND != 0
    }
}

/// The extensions of a handshake.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extensions {
    pub(crate) options: Option<Options>,
    pub(crate) keys: Option<Vec<u8>>,
    pub(crate) stream_id: Option<Vec<u8>>,
    pub(crate) congestion: Option<Vec<u8>>,
    pub(crate) has_filter: bool,
    pub(crate) has_group: bool,
}

impl Extensions {
    /// Reads extensions; `None` where one is cut, or longer than it may be.
    pub(crate) fn read(mut bytes: &[u8]) -> Option<Self> {
        let mut all = Self::default();
        while !bytes.is_empty() {
            let head = word(bytes, 0)?;
            let (kind, length) = ((head >> 16) as u16, usize::from(head as u16) * 4);
            let (content, rest) = bytes.get(4..)?.split_at_checked(length)?;
            bytes = rest;
            match kind {
                OPTIONS | OPTIONS_ANSWER => {
                    let [version, flags, delays] = [word(content, 0)?, word(content, 1)?, word(content, 2)?];
                    let (receiver_delay, sender_delay) = ((delays >> 16) as u16, delays as u16);
                    all.options = Some(Options { version, flags, receiver_delay, sender_delay });
                }
                KEYS | KEYS_ANSWER => all.keys = Some(content.to_vec()),
                STREAM_ID if length > LONGEST_STREAM_ID => return None,
                STREAM_ID => all.stream_id = Some(text(content)),
                CONGESTION => all.congestion = Some(text(content)),
                FILTER => all.has_filter = !content.is_empty(),
                GROUP => all.has_group = !content.is_empty(),
                _ => {}
            }
        }
        Some(all)
    }
}

/// A text: each of its words begins with the last byte, and zeros fill the last word.
fn text(content: &[u8]) -> Vec<u8> {
    let mut text = reversed(content);
    text.truncate(text.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1));
    text
}

fn reversed(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes.as_chunks_mut::<4>().0.iter_mut().for_each(|word| word.reverse());
    bytes
}

/// Writes extensions, one behind the other.
#[derive(Debug, Default)]
pub(crate) struct ExtensionWriter(pub(crate) Vec<u8>);

impl ExtensionWriter {
    fn put(&mut self, kind: u16, content: &[u8]) {
        let words = content.len().div_ceil(4);
        self.0.extend(kind.to_be_bytes());
        self.0.extend((words as u16).to_be_bytes());
        self.0.extend_from_slice(content);
        self.0.resize(self.0.len() + 4 * words - content.len(), 0);
    }

    pub(crate) fn options(&mut self, options: &Options, is_answer: bool) {
        let delays = u32::from(options.receiver_delay) << 16 | u32::from(options.sender_delay);
        let content = [options.version, options.flags, delays].map(u32::to_be_bytes).concat();
        self.put(if is_answer { OPTIONS_ANSWER } else { OPTIONS }, &content);
    }

    pub(crate) fn keys(&mut self, message: &[u8], is_answer: bool) {
        self.put(if is_answer { KEYS_ANSWER } else { KEYS }, message);
    }

    pub(crate) fn stream_id(&mut self, id: &str) {
        let mut content = id.as_bytes().to_vec();
        content.resize(content.len().next_multiple_of(4), 0);
        self.put(STREAM_ID, &reversed(&content));
    }
}
