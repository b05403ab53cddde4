//! Aggregate messages (RTMP 1.0, 7.1.6): media messages in the form of FLV tags, one behind the other.

use crate::{
    RtmpError,
    message::{AGGREGATE, AUDIO, Message, TAG, VIDEO},
};
use bytes::{Buf as _, Bytes, BytesMut};

/// Bytes of the size that follows each tag.
const TAIL: usize = 4;

/// The tags of an aggregate message that were not taken yet.
#[derive(Debug)]
pub(crate) struct Aggregate {
    rest: BytesMut,
    /// Timestamp of the message: that of its first tag.
    timestamp: u32,
    /// Difference between the message's timestamps and those of the tags; `None` before the first tag.
    offset: Option<u32>,
}

impl Aggregate {
    pub(crate) fn new(message: Message) -> Self {
        Self { timestamp: message.timestamp, rest: message.into_body(), offset: None }
    }

    /// Removes and returns the next tag with pictures or sound, with its timestamp on the clock of messages.
    ///
    /// # Errors
    /// A tag is cut off.
    pub(crate) fn next(&mut self) -> Result<Option<Bytes>, RtmpError> {
        while let Some([kind, a, b, c, time @ .., upper, _, _, _]) = self.rest.first_chunk::<TAG>().copied() {
            let whole = TAG + u32::from_be_bytes([0, a, b, c]) as usize;
            let Some(tag) = self.rest.get(..whole) else {
                return Err(RtmpError::Message { kind: AGGREGATE, expected: "whole FLV tags" });
            };
            let stated = u32::from_be_bytes([upper, time[0], time[1], time[2]]);
            let offset = *self.offset.get_or_insert(self.timestamp.wrapping_sub(stated));
            // A part of the message would keep all of it in memory.
            let mut tag = BytesMut::from(tag);
            let [upper, time @ ..] = stated.wrapping_add(offset).to_be_bytes();
            tag[4..7].copy_from_slice(&time);
            tag[7] = upper;
            self.rest.advance(self.rest.len().min(whole + TAIL));
            if matches!(kind, AUDIO | VIDEO) {
                return Ok(Some(tag.freeze()));
            }
        }
        Ok(None)
    }
}
