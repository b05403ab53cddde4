//! Boxes (ISO/IEC 14496-12 4.2): headers, children and fields, with their offsets in the object.

use crate::error::MediaError;

/// Longest header: 32-bit size, type, 64-bit size.
pub(crate) const HEADER: u64 = 16;

/// A four-character code.
pub(crate) type FourCc = [u8; 4];

/// Box types that a file may begin with.
pub(crate) const FIRST: [&[u8; 4]; 15] = [
    b"ftyp", b"moov", b"mdat", b"free", b"skip", b"wide", b"pnot", b"uuid", b"styp", b"sidx", b"moof", b"pdin",
    b"meta", b"udta", b"PICT",
];

/// Returns the code as text, with unprintable characters escaped.
pub(crate) fn show(code: FourCc) -> String {
    code.escape_ascii().to_string()
}

/// Size and type of a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BoxHeader {
    /// Box type.
    pub(crate) kind: FourCc,
    /// Length of the header: 8 or 16 bytes. The extended type of a `uuid` counts as body.
    pub(crate) header: u64,
    /// Length of the whole box; `None` for a box that extends to the end of its container.
    pub(crate) size: Option<u64>,
}

impl BoxHeader {
    /// Parses the header at the start of `bytes`; `None` where bytes are missing or the size is impossible.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let size = u32::from_be_bytes(*bytes.first_chunk()?);
        let kind = *bytes.get(4..)?.first_chunk()?;
        let (header, size) = match size {
            0 => (8, None),
            1 => (16, Some(u64::from_be_bytes(*bytes.get(8..)?.first_chunk()?))),
            size => (8, Some(u64::from(size))),
        };
        size.is_none_or(|size| size >= header).then_some(Self { kind, header, size })
    }
}

/// A full box (4.2): version and flags, and a reader of the fields behind them.
#[derive(Debug)]
pub(crate) struct FullBox<'a, 'p> {
    pub(crate) version: u8,
    /// Flags, in the low 24 bits.
    pub(crate) flags: u32,
    pub(crate) fields: Fields<'a, 'p>,
}

/// A box whose bytes are all in memory.
#[derive(Clone, Debug)]
pub(crate) struct Node<'a> {
    /// Box type.
    pub(crate) kind: FourCc,
    /// Path in the tree, such as `moov/trak[2]/mdia`.
    pub(crate) path: String,
    /// Offset of the header in the object.
    pub(crate) offset: u64,
    /// Bytes of the box with its header.
    pub(crate) whole: &'a [u8],
    /// Bytes after the header.
    pub(crate) body: &'a [u8],
}

impl<'a> Node<'a> {
    /// Parses the box at the start of `bytes`, which are at `offset` of the object. A longer box is cut to `bytes`.
    pub(crate) fn new(bytes: &'a [u8], offset: u64, path: impl Into<String>) -> Option<Self> {
        let header = BoxHeader::parse(bytes)?;
        let size = header.size.and_then(|s| usize::try_from(s).ok()).unwrap_or(bytes.len()).min(bytes.len());
        let whole = bytes.get(..size)?;
        let body = whole.get(header.header as usize..)?;
        Some(Self { kind: header.kind, path: path.into(), offset, whole, body })
    }

    /// Offset of the body in the object.
    pub(crate) fn body_offset(&self) -> u64 {
        self.offset + (self.whole.len() - self.body.len()) as u64
    }

    /// Returns the boxes in the body. Garbage after the last box is skipped.
    pub(crate) fn children(&self) -> Children<'a> {
        self.children_after(0)
    }

    /// Returns the boxes in the body after its first `skip` bytes.
    pub(crate) fn children_after(&self, skip: usize) -> Children<'a> {
        let rest = self.body.get(skip..).unwrap_or_default();
        let (offset, path) = (self.body_offset() + skip as u64, self.path.clone());
        Children { rest, offset, path, only: None, numbers: [0; NUMBERED.len()] }
    }

    /// Returns the children of type `kind`. Others are skipped without building their paths.
    pub(crate) fn children_of(&self, kind: &FourCc) -> Children<'a> {
        Children { only: Some(*kind), ..self.children() }
    }

    /// The first child of type `kind`.
    pub(crate) fn child(&self, kind: &FourCc) -> Option<Self> {
        self.children_of(kind).next()
    }

    /// The first child of type `kind` after the first `skip` bytes of the body.
    pub(crate) fn child_after(&self, skip: usize, kind: &FourCc) -> Option<Self> {
        Children { only: Some(*kind), ..self.children_after(skip) }.next()
    }

    /// Returns the first child of type `kind`, or an error that names the missing box.
    pub(crate) fn need(&self, kind: &FourCc) -> Result<Self, MediaError> {
        self.child(kind).ok_or_else(|| self.invalid(format!("no {} box", show(*kind)), "one"))
    }

    /// A reader of the body's fields.
    pub(crate) fn fields(&self) -> Fields<'a, '_> {
        Fields { bytes: self.body, position: 0, offset: self.body_offset(), path: &self.path }
    }

    /// Reads the head of a full box (4.2).
    pub(crate) fn full(&self) -> Result<FullBox<'a, '_>, MediaError> {
        let mut fields = self.fields();
        let word = fields.u32()?;
        Ok(FullBox { version: (word >> 24) as u8, flags: word & 0x00ff_ffff, fields })
    }

    /// An error about this box.
    pub(crate) fn invalid(&self, found: impl Into<String>, expected: impl Into<String>) -> MediaError {
        MediaError::invalid(self.path.clone(), self.offset, found, expected)
    }

    /// Returns an error that names an unsupported property of this box.
    pub(crate) fn unsupported(&self, what: impl Into<String>) -> MediaError {
        MediaError::unsupported(self.path.clone(), self.offset, what)
    }
}

/// Box types that occur several times: their paths carry a number.
const NUMBERED: [&FourCc; 3] = [b"trak", b"traf", b"trun"];

/// The boxes inside a box.
#[derive(Debug)]
pub(crate) struct Children<'a> {
    rest: &'a [u8],
    offset: u64,
    path: String,
    /// The only type to return.
    only: Option<FourCc>,
    /// Number of boxes seen, for each type of [`NUMBERED`].
    numbers: [u32; NUMBERED.len()],
}

impl<'a> Children<'a> {
    /// Returns the next box, without its path.
    fn step(&mut self) -> Option<Node<'a>> {
        let node = Node::new(self.rest, self.offset, String::new())?;
        if let Some(number) = NUMBERED.iter().position(|kind| **kind == node.kind) {
            self.numbers[number] += 1;
        }
        self.rest = self.rest.get(node.whole.len()..)?;
        self.offset += node.whole.len() as u64;
        Some(node)
    }

    fn named(&self, mut node: Node<'a>) -> Node<'a> {
        let name = show(node.kind);
        let number = NUMBERED.iter().position(|kind| **kind == node.kind).map(|place| self.numbers[place]);
        node.path = match (&*self.path, number) {
            ("", _) => name,
            (path, Some(number)) => format!("{path}/{name}[{number}]"),
            (path, None) => format!("{path}/{name}"),
        };
        node
    }
}

impl<'a> Iterator for Children<'a> {
    type Item = Node<'a>;

    fn next(&mut self) -> Option<Node<'a>> {
        let node = loop {
            let node = self.step()?;
            if self.only.is_none_or(|only| only == node.kind) {
                break node;
            }
        };
        Some(self.named(node))
    }

    fn nth(&mut self, n: usize) -> Option<Node<'a>> {
        let mut left = n;
        while left > 0 {
            let node = self.step()?;
            left -= usize::from(self.only.is_none_or(|only| only == node.kind));
        }
        self.next()
    }
}

/// Reads big-endian fields one after the other.
#[derive(Clone, Debug)]
pub(crate) struct Fields<'a, 'p> {
    bytes: &'a [u8],
    position: usize,
    offset: u64,
    path: &'p str,
}

impl<'a> Fields<'a, '_> {
    /// Returns the next `count` bytes.
    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], MediaError> {
        let rest = self.rest();
        let taken = rest
            .get(..count)
            .ok_or_else(|| MediaError::truncated(self.path, self.at(), rest.len() as u64, count as u64))?;
        self.position += count;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], MediaError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    /// Skips `count` bytes.
    pub(crate) fn skip(&mut self, count: usize) -> Result<(), MediaError> {
        self.take(count).map(|_| ())
    }

    /// An unsigned byte.
    pub(crate) fn u8(&mut self) -> Result<u8, MediaError> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// An unsigned 16-bit field.
    pub(crate) fn u16(&mut self) -> Result<u16, MediaError> {
        self.array().map(u16::from_be_bytes)
    }

    /// An unsigned 32-bit field.
    pub(crate) fn u32(&mut self) -> Result<u32, MediaError> {
        self.array().map(u32::from_be_bytes)
    }

    /// A signed 32-bit field.
    pub(crate) fn i32(&mut self) -> Result<i32, MediaError> {
        self.array().map(i32::from_be_bytes)
    }

    /// An unsigned 64-bit field.
    pub(crate) fn u64(&mut self) -> Result<u64, MediaError> {
        self.array().map(u64::from_be_bytes)
    }

    /// A 64-bit field in version 1 of a box, a 32-bit one in version 0.
    pub(crate) fn versioned(&mut self, version: u8) -> Result<u64, MediaError> {
        if version == 1 { self.u64() } else { self.u32().map(u64::from) }
    }

    /// A four-character code.
    pub(crate) fn four_cc(&mut self) -> Result<FourCc, MediaError> {
        self.array()
    }

    /// Returns all unread bytes.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.position..).unwrap_or_default()
    }

    /// Returns the offset of the next field in the object.
    pub(crate) fn at(&self) -> u64 {
        self.offset + self.position as u64
    }
}

/// A table of `count` entries of `N` bytes each. A count beyond the bytes is cut.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entries<'a, const N: usize> {
    entries: &'a [[u8; N]],
}

impl<'a, const N: usize> Entries<'a, N> {
    /// An empty table.
    pub(crate) const EMPTY: Self = Self { entries: &[] };

    /// The entries in `bytes`.
    pub(crate) fn new(bytes: &'a [u8], count: u32) -> Self {
        let (entries, _) = bytes.as_chunks::<N>();
        Self { entries: entries.get(..count as usize).unwrap_or(entries) }
    }

    /// Number of entries that the bytes hold.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns entry `index`.
    pub(crate) fn get(&self, index: usize) -> Option<&'a [u8; N]> {
        self.entries.get(index)
    }

    /// All entries.
    pub(crate) fn iter(&self) -> std::slice::Iter<'a, [u8; N]> {
        self.entries.iter()
    }
}

/// Returns the text up to the first NUL. Invalid UTF-8 is replaced.
pub(crate) fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_all_three_forms() {
        let small = BoxHeader::parse(b"\0\0\0\x10free").map(|h| (h.header, h.size));
        assert_eq!(small, Some((8, Some(16))));
        let large = BoxHeader::parse(b"\0\0\0\x01mdat\0\0\0\x01\0\0\0\0").map(|h| (h.header, h.size));
        assert_eq!(large, Some((16, Some(1 << 32))));
        let open = BoxHeader::parse(b"\0\0\0\0mdat").map(|h| (h.header, h.size));
        assert_eq!(open, Some((8, None)));
    }

    #[test]
    fn impossible_sizes_are_no_headers() {
        assert_eq!(BoxHeader::parse(b"\0\0\0\x07free"), None);
        assert_eq!(BoxHeader::parse(b"\0\0\0\x01mdat\0\0\0\0\0\0\0\x0f"), None);
        assert_eq!(BoxHeader::parse(b"\0\0\0\x01mdat\0\0"), None);
        assert_eq!(BoxHeader::parse(b"\0\0\0"), None);
    }

    #[test]
    fn children_know_their_place_and_pass_over_garbage() {
        let bytes = b"\0\0\0\x27moov\0\0\0\x0ctrak1234\0\0\0\x09free!\0\0\0\x08trak??";
        let moov = Node::new(bytes, 1000, "moov").unwrap();
        let children: Vec<_> = moov.children().map(|c| (c.path, c.offset, c.body.len())).collect();
        assert_eq!(
            children,
            [
                ("moov/trak[1]".to_owned(), 1008, 4),
                ("moov/free".to_owned(), 1020, 1),
                ("moov/trak[2]".to_owned(), 1029, 0)
            ]
        );
    }

    #[test]
    fn a_child_that_claims_too_much_is_cut_and_its_fields_say_so() {
        let moov = Node::new(b"\0\0\0\x12moov\0\0\x10\0mvhd\0\0", 0, "moov").unwrap();
        let error = moov.need(b"mvhd").unwrap().full().unwrap_err();
        assert_eq!(error, MediaError::truncated("moov/mvhd", 16, 2, 4));
        let error = moov.need(b"trak").unwrap_err();
        assert_eq!(error.to_string(), "moov at byte 0: found no trak box, expected one");
    }

    #[test]
    fn entries_are_those_that_are_there() {
        let table = Entries::<4>::new(&[0; 11], u32::MAX);
        assert_eq!(table.len(), 2);
        assert_eq!(Entries::<4>::new(&[0; 11], 1).len(), 1);
    }
}
