//! Sections (ISO/IEC 13818-1 2.4.4), assembled from the packets of one PID.

use super::packet::Packet;

/// Longest section in bytes (2.4.4.11).
const LONGEST: usize = 4096;
/// Bytes of a section up to its length field's end.
const HEADER: usize = 3;
/// Bytes of the CRC at the end.
const CHECKSUM: usize = 4;
/// Value of stuffing bytes after the last section of a packet.
const STUFFING: u8 = 0xff;

/// Assembles sections.
#[derive(Debug, Default)]
pub(super) struct Sections {
    buffer: Vec<u8>,
    /// Whether `buffer` begins with a section's beginning.
    is_open: bool,
}

impl Sections {
    /// Takes a packet, and appends the sections that end in it. After a gap the open section is dropped.
    pub(super) fn packet(&mut self, packet: &Packet<'_>, is_after_gap: bool, sections: &mut Vec<Vec<u8>>) {
        if is_after_gap {
            self.close();
        }
        let Some(payload) = packet.payload else { return };
        if !packet.starts_unit {
            return self.append(payload, sections);
        }
        // `pointer_field` is the number of bytes before the first section that begins here.
        let Some((pointer, rest)) = payload.split_first() else { return };
        let Some((before, after)) = rest.split_at_checked(usize::from(*pointer)) else { return self.close() };
        self.append(before, sections);
        self.close();
        self.is_open = true;
        self.append(after, sections);
    }

    fn close(&mut self) {
        self.buffer.clear();
        self.is_open = false;
    }

    fn append(&mut self, bytes: &[u8], sections: &mut Vec<Vec<u8>>) {
        if !self.is_open {
            return;
        }
        self.buffer.extend_from_slice(bytes);
        let mut at = 0;
        loop {
            let rest = self.buffer.get(at..).unwrap_or_default();
            let length = match rest {
                [] | [STUFFING, ..] => return self.close(),
                [_, high, low, ..] => HEADER + usize::from(u16::from_be_bytes([high & 0x0f, *low])),
                _ => break,
            };
            if length > LONGEST {
                return self.close();
            }
            let Some(section) = rest.get(..length) else { break };
            sections.push(section.to_vec());
            at += length;
        }
        self.buffer.drain(..at);
    }
}

/// Fields that all sections with the long syntax share (2.4.4.10), whose checksum is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LongSection<'a> {
    /// `table_id`.
    pub(super) table: u8,
    /// `table_id_extension`: the number of a programme, in its map.
    pub(super) extension: u16,
    /// `version_number`.
    pub(super) version: u8,
    /// `current_next_indicator`: whether the table applies now.
    pub(super) is_current: bool,
    /// `section_number`.
    pub(super) number: u8,
    /// `last_section_number`.
    pub(super) last: u8,
    /// Bytes between `last_section_number` and the checksum.
    pub(super) body: &'a [u8],
}

impl<'a> LongSection<'a> {
    /// Reads a section with the long syntax whose checksum is right.
    pub(super) fn parse(section: &'a [u8]) -> Option<Self> {
        let end = section.len().checked_sub(CHECKSUM)?;
        let [table, syntax, _, high, low, version, number, last, body @ ..] = section.get(..end)? else { return None };
        (syntax & 0x80 != 0 && checksum(section) == 0).then_some(Self {
            table: *table,
            extension: u16::from_be_bytes([*high, *low]),
            version: version >> 1 & 0x1f,
            is_current: version & 1 != 0,
            number: *number,
            last: *last,
            body,
        })
    }
}

/// Returns the CRC of a section (Annex A). Over a section with its CRC it is 0.
#[must_use]
pub fn checksum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(u32::MAX, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte) << 24, |crc, _| crc << 1 ^ if crc >> 31 == 1 { 0x04c1_1db7 } else { 0 })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ts::packet::SIZE;

    fn section(len: usize) -> Vec<u8> {
        let mut section = vec![2, 0xb0 | ((len - 3) >> 8) as u8, (len - 3) as u8];
        section.resize(len, 7);
        section
    }

    fn packets(payload: &[u8], pointers: &[Option<u8>]) -> Vec<Vec<u8>> {
        let mut rest = payload;
        let (mut sections, mut found) = (Sections::default(), Vec::new());
        for pointer in pointers {
            let mut bytes = [STUFFING; SIZE];
            bytes[..4].copy_from_slice(&[0x47, if pointer.is_some() { 0x40 } else { 0 }, 0x20, 0x10]);
            let start = 4 + usize::from(pointer.is_some());
            if let Some(pointer) = pointer {
                bytes[4] = *pointer;
            }
            let (now, later) = rest.split_at(rest.len().min(SIZE - start));
            bytes[start..start + now.len()].copy_from_slice(now);
            rest = later;
            sections.packet(&Packet::parse(&bytes), false, &mut found);
        }
        found
    }

    #[test]
    fn sections_end_anywhere_in_packets() {
        let (first, second, third) = (section(300), section(20), section(100));
        let all = [&first[..], &second, &third].concat();
        // The second begins in the second packet, and so does the third.
        let found = packets(&all, &[Some(0), Some((300 - 183) as u8), None]);
        assert_eq!(found, [first.clone(), second, third]);
        // Without the pointer, what follows a section is no section.
        assert_eq!(packets(&all[..300], &[Some(0), None, None]), [first]);
    }

    #[test]
    fn impossible_sections_are_dropped() {
        assert!(packets(&[2, 0xbf, 0xff, 1, 2], &[Some(0), None, None]).is_empty());
        assert!(packets(&section(30), &[None, None]).is_empty());
        assert!(packets(&section(30), &[Some(184)]).is_empty());
        assert!(packets(&section(300), &[Some(0), Some(0)]).is_empty());
    }

    #[test]
    fn checksum_of_the_known_vector() {
        assert_eq!(checksum(b"123456789"), 0x0376_e6e7);
    }

    #[test]
    fn a_wrong_checksum_is_found() {
        let mut section = vec![0, 0xb0, 13, 0, 1, 0xc1, 0, 0, 0, 1, 0xf0, 0];
        section.extend(checksum(&section).to_be_bytes());
        let found = LongSection::parse(&section).unwrap();
        assert_eq!((found.table, found.extension, found.is_current, found.body), (0, 1, true, &[0, 1, 0xf0, 0][..]));
        section[9] ^= 1;
        assert_eq!(LongSection::parse(&section), None);
        assert_eq!(LongSection::parse(&section[..7]), None);
    }
}
