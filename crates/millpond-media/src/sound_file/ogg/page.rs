//! Pages of Ogg (RFC 3533 6).

/// First bytes of a page.
pub(super) const CAPTURE: &[u8] = b"OggS";
/// Bytes of a header before its table of segments.
const HEADER: usize = 27;
/// Bytes of a segment that a packet goes on behind.
const FULL: u8 = 255;

/// Header of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Page {
    /// Whether it begins with the rest of a packet.
    pub(super) is_continued: bool,
    /// Whether it is the first of its stream, or the last.
    pub(super) is_first: bool,
    pub(super) is_last: bool,
    /// Granule position at the end of the last packet that ends here; `None` where none does.
    pub(super) granule: Option<i64>,
    pub(super) serial: u32,
    /// Bytes of the page.
    pub(super) length: usize,
    pub(super) pieces: Vec<Piece>,
}

/// A packet, or the part of one that lies in a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// Place in the page.
    pub(super) start: usize,
    pub(super) length: usize,
    pub(super) begins: bool,
    pub(super) ends: bool,
}

/// Result of reading a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Read {
    Page(Page),
    /// The header has this many bytes.
    Short(usize),
    Garbage,
}

impl Page {
    /// Reads the header of a page.
    pub(super) fn read(bytes: &[u8]) -> Read {
        let Some(head) = bytes.get(..HEADER) else { return Read::Short(HEADER) };
        let (&[a, b, c, d, version, flags, ..], &[.., segments]) = (head, head) else { return Read::Garbage };
        if [a, b, c, d] != CAPTURE || version != 0 {
            return Read::Garbage;
        }
        let end = HEADER + usize::from(segments);
        let Some(table) = bytes.get(HEADER..end) else { return Read::Short(end) };
        let granule = head.get(6..).and_then(|rest| rest.first_chunk()).map_or(-1, |bytes| i64::from_le_bytes(*bytes));
        let serial = head.get(14..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| u32::from_le_bytes(*bytes));
        let is_continued = flags & 1 != 0;
        let (pieces, length) = pieces(table, end, is_continued);
        Read::Page(Self {
            is_continued,
            is_first: flags & 2 != 0,
            is_last: flags & 4 != 0,
            granule: Some(granule).filter(|granule| *granule >= 0),
            serial,
            length,
            pieces,
        })
    }
}

/// Returns the pieces of packets of a page whose body begins at `start`, and its length.
fn pieces(table: &[u8], start: usize, is_continued: bool) -> (Vec<Piece>, usize) {
    let (mut pieces, mut at) = (Vec::new(), start);
    let mut open = Piece { start, length: 0, begins: !is_continued, ends: false };
    for segment in table {
        at += usize::from(*segment);
        open.length += usize::from(*segment);
        if *segment != FULL {
            pieces.push(Piece { ends: true, ..open });
            open = Piece { start: at, length: 0, begins: true, ends: false };
        }
    }
    if open.length > 0 {
        pieces.push(open);
    }
    (pieces, at)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Returns a page of these segments.
    pub(crate) fn page(flags: u8, granule: i64, serial: u32, table: &[u8], body: &[u8]) -> Vec<u8> {
        let mut bytes = [CAPTURE, &[0, flags], &granule.to_le_bytes(), &serial.to_le_bytes()].concat();
        bytes.extend([0; 8]);
        bytes.push(table.len() as u8);
        [&bytes, table, body].concat()
    }

    #[test]
    fn packets_are_cut_by_their_segments() {
        let bytes = page(5, 960, 7, &[10, 255, 0, 255, 20, 255], &[0; 1000]);
        let Read::Page(read) = Page::read(&bytes) else { panic!("a page") };
        assert_eq!((read.is_continued, read.is_first, read.is_last), (true, false, true));
        assert_eq!((read.granule, read.serial, read.length), (Some(960), 7, 33 + 795));
        let pieces: Vec<_> = read.pieces.iter().map(|p| (p.start, p.length, p.begins, p.ends)).collect();
        let expected = [(33, 10, false, true), (43, 255, true, true), (298, 275, true, true), (573, 255, true, false)];
        assert_eq!(pieces, expected);
        assert_eq!(Page::read(&bytes[..30]), Read::Short(33));
        assert_eq!(Page::read(&bytes[..3]), Read::Short(27));
        assert_eq!(Page::read(&bytes[1..]), Read::Garbage);
        let Read::Page(none) = Page::read(&page(0, -1, 7, &[], &[])) else { panic!("a page") };
        assert_eq!((none.granule, none.pieces), (None, Vec::new()));
    }
}
