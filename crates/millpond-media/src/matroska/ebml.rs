//! Elements of EBML (RFC 8794): an identifier, a size, and a body.

use crate::{error::MediaError, window::Window};

/// First bytes of a file.
pub(crate) const MAGIC: [u8; 4] = [0x1a, 0x45, 0xdf, 0xa3];
/// Longest header of an element: an identifier of four bytes, a size of eight.
pub(super) const LONGEST_HEADER: u64 = 12;
/// Longest text that is kept, in bytes.
const LONGEST_TEXT: usize = 4096;

/// Header of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// Identifier with its length marker.
    pub(super) id: u32,
    /// Bytes of the header itself.
    pub(super) length: u64,
    /// Bytes of the body; `None` where the size is unknown (6.2).
    pub(super) body: Option<u64>,
}

/// Result of reading a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Read {
    Header(Header),
    /// The bytes end within it.
    Short,
    /// The bytes are no header: an identifier or a size begins with a zero byte.
    Garbage,
}

impl Header {
    /// Reads the header at the beginning of `bytes`.
    pub(super) fn read(bytes: &[u8]) -> Read {
        let Some(&first) = bytes.first() else { return Read::Short };
        let id_length = first.leading_zeros() as usize + 1;
        if id_length > 4 {
            return Read::Garbage;
        }
        let Some(id) = bytes.get(..id_length) else { return Read::Short };
        let id = id.iter().fold(0, |id, byte| id << 8 | u32::from(*byte));
        match number(&bytes[id_length..]) {
            Number::Value { value, length } => {
                let is_unknown = value == unknown(length);
                Read::Header(Self { id, length: (id_length + length) as u64, body: (!is_unknown).then_some(value) })
            }
            Number::Short => Read::Short,
            Number::Garbage => Read::Garbage,
        }
    }

    /// Bytes of header and body; `None` where the size is unknown.
    pub(super) fn whole(&self) -> Option<u64> {
        self.body?.checked_add(self.length)
    }
}

/// Content of a window at its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Here {
    End,
    /// Too few bytes to decide.
    Unknown,
    /// Bytes that are no header.
    Garbage,
    Element(Header),
}

impl Here {
    /// The content at the position of a window.
    pub(super) fn of(window: &Window) -> Self {
        if window.left() == 0 {
            return Self::End;
        }
        match Header::read(window.held()) {
            Read::Header(header) => Self::Element(header),
            Read::Short if (window.held().len() as u64) < LONGEST_HEADER.min(window.left()) => Self::Unknown,
            Read::Short | Read::Garbage => Self::Garbage,
        }
    }
}

/// A variable-size integer (4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Number {
    Value {
        value: u64,
        /// Bytes that it takes.
        length: usize,
    },
    /// The bytes end within it.
    Short,
    Garbage,
}

/// Reads the integer at the beginning of `bytes`, without its length marker.
pub(super) fn number(bytes: &[u8]) -> Number {
    let Some(&first) = bytes.first() else { return Number::Short };
    let length = first.leading_zeros() as usize + 1;
    if length > 8 {
        return Number::Garbage;
    }
    let Some(rest) = bytes.get(1..length) else { return Number::Short };
    let start = u64::from(first) & ((1 << (8 - length)) - 1);
    Number::Value { value: rest.iter().fold(start, |value, byte| value << 8 | u64::from(*byte)), length }
}

/// The value of `length` bytes that stands for an unknown size (6.2): all bits are set.
const fn unknown(length: usize) -> u64 {
    (1 << (7 * length)) - 1
}

/// An element whose body is in memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Element<'a> {
    pub(super) id: u32,
    pub(super) body: &'a [u8],
    /// Offset of the body in the object.
    pub(super) offset: u64,
}

impl<'a> Element<'a> {
    /// Elements of the body.
    pub(super) fn children(&self) -> Elements<'a> {
        Elements { rest: self.body, offset: self.offset }
    }

    /// The first child of this identifier.
    pub(super) fn child(&self, id: u32) -> Option<Self> {
        self.children().find(|child| child.id == id)
    }

    /// The body as an unsigned integer (7.2); no bytes are 0.
    pub(super) fn unsigned(&self) -> Result<u64, MediaError> {
        if self.body.len() > 8 {
            let found = format!("an integer of {} bytes", self.body.len());
            return Err(MediaError::invalid(name(self.id), self.offset, found, "at most 8"));
        }
        Ok(self.body.iter().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    /// The body as a floating-point number (7.3).
    pub(super) fn float(&self) -> Result<f64, MediaError> {
        match *self.body {
            [] => Ok(0.0),
            [a, b, c, d] => Ok(f64::from(f32::from_be_bytes([a, b, c, d]))),
            [a, b, c, d, e, f, g, h] => Ok(f64::from_be_bytes([a, b, c, d, e, f, g, h])),
            _ => {
                let found = format!("a number of {} bytes", self.body.len());
                Err(MediaError::invalid(name(self.id), self.offset, found, "0, 4 or 8"))
            }
        }
    }

    /// The body as text (7.4, 7.5), which a zero byte may end; at most 4 KiB of it.
    pub(super) fn text(&self) -> String {
        let end = self.body.iter().position(|byte| *byte == 0).unwrap_or(self.body.len());
        String::from_utf8_lossy(&self.body[..end.min(LONGEST_TEXT)]).into_owned()
    }
}

/// The elements of a body, up to the first one that is no element or exceeds the body.
#[derive(Clone, Debug)]
pub(super) struct Elements<'a> {
    rest: &'a [u8],
    offset: u64,
}

impl<'a> Elements<'a> {
    /// Creates an iterator over `bytes`, which are at `offset` of the object.
    pub(super) fn new(bytes: &'a [u8], offset: u64) -> Self {
        Self { rest: bytes, offset }
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Element<'a>;

    fn next(&mut self) -> Option<Element<'a>> {
        let Read::Header(header) = Header::read(self.rest) else { return None };
        let start = usize::try_from(header.length).ok()?;
        let body = match header.body {
            None => self.rest.get(start..)?,
            Some(body) => self.rest.get(start..)?.get(..usize::try_from(body).ok()?)?,
        };
        let element = Element { id: header.id, body, offset: self.offset + header.length };
        self.rest = &self.rest[start + body.len()..];
        self.offset = element.offset + body.len() as u64;
        Some(element)
    }
}

/// An identifier in the form of the standard, for errors.
pub(super) fn name(id: u32) -> String {
    format!("element 0x{id:X}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_have_identifiers_and_sizes_of_several_lengths() {
        let header = |id, length, body| Read::Header(Header { id, length, body });
        assert_eq!(Header::read(&[0xa3, 0x82, 9, 9]), header(0xa3, 2, Some(2)));
        assert_eq!(Header::read(&[0x1f, 0x43, 0xb6, 0x75, 1, 0, 0, 0, 0, 0, 0, 7]), header(0x1f43_b675, 12, Some(7)));
        assert_eq!(Header::read(&[0xe7, 0xff]), header(0xe7, 2, None));
        assert_eq!(Header::read(&[0xe7, 1, 255, 255, 255, 255, 255, 255, 255]), header(0xe7, 9, None));
        assert_eq!([Header::read(&[0x1f, 0x43]), Header::read(&[0xe7]), Header::read(&[])], [Read::Short; 3]);
        assert_eq!([Header::read(&[0x08, 1]), Header::read(&[0xe7, 0])], [Read::Garbage; 2]);
    }

    #[test]
    fn elements_end_at_the_first_that_does_not_fit() {
        let bytes = [0xd7, 0x81, 5, 0xec, 0x80, 0x83, 0x84, 1];
        let found: Vec<_> =
            Elements::new(&bytes, 100).map(|element| (element.id, element.body, element.offset)).collect();
        assert_eq!(found, [(0xd7, &[5][..], 102), (0xec, &[][..], 105)]);
    }

    #[test]
    fn numbers_and_texts() {
        let element = |body| Element { id: 0x4489, body, offset: 0 };
        assert_eq!(element(&[1, 0]).unsigned(), Ok(256));
        assert!(element(&[0; 9]).unsigned().is_err());
        assert_eq!(element(&[0x3f, 0x80, 0, 0]).float(), Ok(1.0));
        assert!(element(&[0; 3]).float().is_err());
        assert_eq!(element(b"eng\0\0").text(), "eng");
    }
}
