//! `onMetaData`: the properties of a stream, in AMF 0 (Video File Format 10, E.5; Enhanced RTMP 2, "Enhancing onMetaData").

use super::{FlvMessage, HEADER, SCRIPT};
use bytes::Bytes;

/// Bytes of metadata in which the names of properties are looked for: senders write less.
const LOOKED_AT: usize = 4096;

/// The number 0 as a value.
const NONE: [u8; 9] = [0; 9];

/// The kinds of tracks that the metadata of a stream announce.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlvAnnouncement {
    /// Whether there will be pictures.
    pub pictures: bool,
    /// Whether there will be sound.
    pub sound: bool,
}

impl FlvAnnouncement {
    /// Reads a tag; `None` where it has no metadata. A property `videocodecid` announces pictures, and `audiocodecid` sound, unless
    /// it is the number 0.
    #[must_use]
    pub fn read(tag: &[u8]) -> Option<Self> {
        let body = tag.get(HEADER..).filter(|_| tag.first() == Some(&SCRIPT))?;
        let body = body.get(..LOOKED_AT).unwrap_or(body);
        // The bytes behind a name.
        let behind = |name: &str| {
            let mut written = Vec::new();
            text(&mut written, name);
            let at = body.windows(written.len()).position(|part| part == written)?;
            body.get(at + written.len()..)
        };
        let announces = |name: &str| behind(name).is_some_and(|value| !value.starts_with(&NONE));
        behind("onMetaData").map(|_| Self { pictures: announces("videocodecid"), sound: announces("audiocodecid") })
    }
}

/// A value of a property.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FlvValue<'a> {
    /// A number.
    Number(f64),
    /// A truth value.
    Boolean(bool),
    /// A text.
    Text(&'a str),
}

/// Properties that are written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlvMetadata {
    count: u32,
    bytes: Vec<u8>,
}

impl FlvMetadata {
    /// Adds a property.
    pub fn set(&mut self, name: &str, value: FlvValue<'_>) {
        self.count += 1;
        text(&mut self.bytes, name);
        match value {
            FlvValue::Number(number) => {
                self.bytes.push(0);
                self.bytes.extend_from_slice(&number.to_be_bytes());
            }
            FlvValue::Boolean(value) => self.bytes.extend_from_slice(&[1, value.into()]),
            FlvValue::Text(value) => {
                self.bytes.push(2);
                text(&mut self.bytes, value);
            }
        }
    }

    /// Adds an object of properties.
    pub fn set_object(&mut self, name: &str, properties: &Self) {
        self.count += 1;
        text(&mut self.bytes, name);
        self.bytes.push(3);
        self.bytes.extend_from_slice(&properties.bytes);
        self.bytes.extend_from_slice(&END);
    }

    /// Returns the message that states them.
    #[must_use]
    pub fn message(&self, timestamp: u32) -> FlvMessage {
        let mut head = vec![2];
        text(&mut head, "onMetaData");
        // An associative array.
        head.push(8);
        head.extend_from_slice(&self.count.to_be_bytes());
        head.extend_from_slice(&self.bytes);
        head.extend_from_slice(&END);
        FlvMessage { kind: SCRIPT, timestamp, head, data: Bytes::new() }
    }
}

/// The end of an object: an empty name, and a marker.
const END: [u8; 3] = [0, 0, 9];

/// Appends a text behind its length. Its end is left out where it is too long.
fn text(bytes: &mut Vec<u8>, text: &str) {
    let length = u16::try_from(text.len()).unwrap_or(u16::MAX);
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes.extend_from_slice(text.as_bytes().get(..length.into()).unwrap_or_default());
}
