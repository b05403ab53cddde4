//! Program association and program map tables (ISO/IEC 13818-1, 2.4.4).

use super::{carriage, packet::SIZE};
use crate::language;
use millpond_media::{Track, ts::checksum};

/// PID of the program map table.
const PMT_PID: u16 = 0x1000;
/// Most bytes of a section in one packet, after its header and the pointer field.
const MAX_SECTION: usize = SIZE - 5;

/// Numbers in PAT and PMT.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableNumbers {
    /// Continuity counter of both, one packet each; only the low 4 bits count.
    pub counter: u8,
    /// `version_number` of both (2.4.4.5), by which demultiplexers see other streams; only the low 5 bits count.
    pub version: u8,
}

/// A stream's entry in the program map table.
#[derive(Clone, Debug)]
pub(super) struct StreamEntry {
    /// PID of the stream.
    pub(super) pid: u16,
    /// `stream_type` (Table 2-34 and registrations of ATSC and Apple).
    pub(super) stream_type: u8,
    /// Format identifier of a registration descriptor (2.6.8).
    pub(super) registration: Option<[u8; 4]>,
    /// Three-letter code of an ISO 639 language descriptor (2.6.18).
    pub(super) language: Option<[u8; 3]>,
    /// Further descriptors.
    pub(super) stated: Vec<u8>,
}

impl StreamEntry {
    /// Returns the entry of a track.
    pub(super) fn of(track: &Track, pid: u16, stream_type: u8) -> Self {
        Self {
            pid,
            stream_type,
            registration: carriage::registration(&track.codec),
            language: language_code(track),
            stated: carriage::stated_descriptors(&track.codec).to_vec(),
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        let mut descriptors = Vec::with_capacity(12);
        if let Some(format) = self.registration {
            descriptors.extend_from_slice(&[0x05, 4]);
            descriptors.extend_from_slice(&format);
        }
        if let Some(code) = self.language {
            descriptors.extend_from_slice(&[0x0a, 4]);
            descriptors.extend_from_slice(&code);
            descriptors.push(0);
        }
        descriptors.extend_from_slice(&self.stated);
        out.push(self.stream_type);
        out.extend_from_slice(&(0xe000 | self.pid).to_be_bytes());
        out.extend_from_slice(&(0xf000 | descriptors.len() as u16).to_be_bytes());
        out.extend_from_slice(&descriptors);
    }
}

/// Returns the packets of both tables; `None` where one packet can't list all streams.
pub(super) fn tables(entries: &[StreamEntry], clock_pid: u16, numbers: TableNumbers) -> Option<[[u8; SIZE]; 2]> {
    let TableNumbers { counter, version } = numbers;
    let mut association = 1_u16.to_be_bytes().to_vec();
    association.extend_from_slice(&(0xe000 | PMT_PID).to_be_bytes());
    let mut map = (0xe000 | clock_pid).to_be_bytes().to_vec();
    map.extend_from_slice(&0xf000_u16.to_be_bytes());
    for entry in entries {
        entry.write(&mut map);
        if map.len() > MAX_SECTION {
            return None;
        }
    }
    Some([
        packet(0, counter, &section(0x00, version, &association))?,
        packet(PMT_PID, counter, &section(0x02, version, &map))?,
    ])
}

/// Returns the only section of a table, for transport stream 1 or program 1 (2.4.4.3 and 2.4.4.8).
fn section(table_id: u8, version: u8, body: &[u8]) -> Vec<u8> {
    let mut section = vec![table_id];
    section.extend_from_slice(&(0xb000 | (body.len() + 9) as u16).to_be_bytes());
    section.extend_from_slice(&[0, 1, 0xc1 | (version & 0x1f) << 1, 0, 0]);
    section.extend_from_slice(body);
    let crc = checksum(&section);
    section.extend_from_slice(&crc.to_be_bytes());
    section
}

/// Returns the language code of an audio track for its ISO 639 descriptor; `None` where unknown.
fn language_code(track: &Track) -> Option<[u8; 3]> {
    if carriage::stands_alone(&track.codec) {
        return None;
    }
    let code = language::iso_639_2(&language::tag(&track.language)?);
    (code != *b"und").then_some(code)
}

fn packet(pid: u16, counter: u8, section: &[u8]) -> Option<[u8; SIZE]> {
    let mut packet = [0xff; SIZE];
    packet[..5].copy_from_slice(&[0x47, 0x40 | (pid >> 8) as u8, pid as u8, 0x10 | counter & 0x0f, 0]);
    packet.get_mut(5..5 + section.len())?.copy_from_slice(section);
    Some(packet)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(pid: u16) -> StreamEntry {
        StreamEntry {
            pid,
            stream_type: 0x87,
            registration: Some(*b"EAC3"),
            language: Some(*b"deu"),
            stated: Vec::new(),
        }
    }

    #[test]
    fn sections_end_in_their_crc() {
        let [pat, pmt] = tables(&[entry(0x101)], 0x101, TableNumbers { counter: 0x15, version: 0 }).unwrap();
        for (packet, pid) in [(pat, 0), (pmt, PMT_PID)] {
            assert_eq!(u16::from_be_bytes([packet[1], packet[2]]), 0x4000 | pid);
            assert_eq!(packet[3], 0x15);
            let len = usize::from(u16::from_be_bytes([packet[6], packet[7]]) & 0x0fff) + 3;
            assert_eq!(checksum(&packet[5..5 + len]), 0);
            assert!(packet[5 + len..].iter().all(|&b| b == 0xff));
        }
    }

    #[test]
    fn the_map_lists_descriptors() {
        let [_, pmt] = tables(&[entry(0x101)], 0x101, TableNumbers::default()).unwrap();
        assert_eq!(pmt[13..34], *b"\xe1\x01\xf0\x00\x87\xe1\x01\xf0\x0c\x05\x04EAC3\x0a\x04deu\x00");
    }

    #[test]
    fn other_streams_have_another_version() {
        let version =
            |version| tables(&[entry(0x101)], 0x101, TableNumbers { counter: 0, version }).unwrap().map(|t| t[10]);
        assert_eq!((version(0), version(1), version(33)), ([0xc1; 2], [0xc3; 2], [0xc3; 2]));
    }

    #[test]
    fn more_than_a_packet_lists_is_refused() {
        let entries = |n: u16| (0..n).map(entry).collect::<Vec<_>>();
        assert!(tables(&entries(9), 0, TableNumbers::default()).is_some());
        assert!(tables(&entries(10), 0, TableNumbers::default()).is_none());
    }
}
