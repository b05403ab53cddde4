//! PES packets (ISO/IEC 13818-1 2.4.3.6), assembled from the packets of one PID.

use super::{
    event::{PesUnit, TsFaultKind},
    packet::Packet,
};
use bytes::Bytes;

/// Bytes of a header up to its length field's end.
const START: usize = 6;
/// Bytes of a header up to its optional fields.
const FIXED: usize = 9;
/// Stream ids of packets without optional fields, which carry no media: program stream map, padding, navigation, ECM,
/// EMM, program stream directory, DSM-CC, H.222.1 type E (table 2-21).
const BARE: [u8; 8] = [0xbc, 0xbe, 0xbf, 0xf0, 0xf1, 0xff, 0xf2, 0xf8];

/// Assembles the PES packets of one PID.
#[derive(Debug)]
pub(super) struct PesAssembler {
    pid: u16,
    buffer: Vec<u8>,
    /// Offsets of the first and the last transport packet with bytes of `buffer`.
    packets: (u64, u64),
    /// Whether `buffer` begins with a PES packet's beginning and is not complete.
    is_open: bool,
    /// Whether bytes are missing since the last unit.
    has_lost: bool,
    /// Whether scrambling was reported since the last clear unit.
    is_scrambled: bool,
}

/// Outcome of a packet.
pub(super) type Outcome = (Option<PesUnit>, Option<TsFaultKind>);

impl PesAssembler {
    pub(super) fn new(pid: u16) -> Self {
        Self { pid, buffer: Vec::new(), packets: (0, 0), is_open: false, has_lost: false, is_scrambled: false }
    }

    /// Number of bytes held.
    pub(super) fn held(&self) -> usize {
        self.buffer.len()
    }

    /// Returns the open unit as broken: bytes after it are missing.
    pub(super) fn break_off(&mut self) -> Outcome {
        let broken = self.close(true);
        self.has_lost = true;
        broken
    }

    /// Ends the open unit because the next one begins, or because the stream ends.
    pub(super) fn end(&mut self) -> Outcome {
        if !self.is_open {
            return (None, None);
        }
        match self.length() {
            Some(None) => self.close(false),
            _ => {
                let (unit, fault) = self.break_off();
                (unit, fault.or(Some(TsFaultKind::ShortUnit)))
            }
        }
    }

    /// Takes the payload of a packet at `offset` that continues the previous packet. No unit begins in it, except the next unit
    /// after [`end`](Self::end). At most `most` bytes are held.
    pub(super) fn append(&mut self, packet: &Packet<'_>, offset: u64, most: usize) -> Outcome {
        let Some(payload) = packet.payload else { return (None, None) };
        if packet.starts_unit {
            self.is_open = true;
            self.buffer.clear();
            self.packets.0 = offset;
        }
        if !self.is_open {
            return (None, None);
        }
        if self.buffer.len() + payload.len() > most {
            self.drop_open();
            return (None, Some(TsFaultKind::UnitTooLarge));
        }
        self.buffer.extend_from_slice(payload);
        self.packets.1 = offset;
        if !self.begins_well() {
            self.drop_open();
            return (None, Some(TsFaultKind::BadUnit));
        }
        match self.length() {
            Some(Some(length)) if self.buffer.len() >= length => {
                self.buffer.truncate(length);
                self.close(false)
            }
            _ => (None, None),
        }
    }

    /// Takes note of a scrambled packet. The open unit is broken by it.
    pub(super) fn scrambled(&mut self) -> Outcome {
        let (unit, fault) = self.break_off();
        let is_new = !std::mem::replace(&mut self.is_scrambled, true);
        (unit, fault.or(is_new.then_some(TsFaultKind::Scrambled)))
    }

    fn drop_open(&mut self) {
        self.buffer = Vec::new();
        self.is_open = false;
        self.has_lost = true;
    }

    /// Whether the first bytes are, as far as they have arrived, `packet_start_code_prefix`.
    fn begins_well(&self) -> bool {
        self.buffer.iter().zip([0, 0, 1]).all(|(found, expected)| *found == expected)
    }

    /// Length of the whole packet; `Some(None)` where it is unbounded, `None` where the field has not arrived.
    fn length(&self) -> Option<Option<usize>> {
        let length = u16::from_be_bytes(*self.buffer.get(4..START)?.first_chunk()?);
        Some((length > 0).then_some(START + usize::from(length)))
    }

    /// Returns the open unit.
    fn close(&mut self, is_broken: bool) -> Outcome {
        if !std::mem::take(&mut self.is_open) {
            return (None, None);
        }
        let is_unbounded = self.length() == Some(None);
        let bytes = Bytes::from(std::mem::take(&mut self.buffer));
        if bytes.get(3).is_some_and(|id| BARE.contains(id)) {
            return (None, None);
        }
        let follows_loss = std::mem::take(&mut self.has_lost);
        let header = Header::read(&bytes);
        match header {
            Some(Header { is_scrambled: false, pts, dts, length }) => {
                let data = bytes.slice(length..);
                self.is_scrambled &= is_broken;
                let (pid, (first_packet, last_packet)) = (self.pid, self.packets);
                let unit =
                    PesUnit { pid, pts, dts, data, first_packet, last_packet, is_broken, follows_loss, is_unbounded };
                (Some(unit), None)
            }
            Some(_) => {
                self.has_lost = true;
                let is_new = !std::mem::replace(&mut self.is_scrambled, true);
                (None, is_new.then_some(TsFaultKind::Scrambled))
            }
            None => {
                self.has_lost = true;
                (None, (!is_broken).then_some(TsFaultKind::BadUnit))
            }
        }
    }
}

/// Optional fields of a header that are read.
struct Header {
    /// `PES_scrambling_control` is not 0.
    is_scrambled: bool,
    pts: Option<u64>,
    dts: Option<u64>,
    /// Length of the whole header in bytes.
    length: usize,
}

impl Header {
    fn read(bytes: &[u8]) -> Option<Self> {
        let [_, _, _, _, _, _, first, flags, length, rest @ ..] = bytes else { return None };
        let fields = rest.get(..usize::from(*length))?;
        // The two bits `10` tell the header from that of MPEG-1.
        if first & 0xc0 != 0x80 {
            return None;
        }
        let pts = (flags & 0x80 != 0).then(|| timestamp(fields)).flatten();
        let dts = (flags & 0xc0 == 0xc0).then(|| timestamp(fields.get(5..)?)).flatten();
        Some(Self { is_scrambled: first & 0x30 != 0, pts, dts, length: FIXED + usize::from(*length) })
    }
}

/// Reads a timestamp: 4 bits of prefix, then 3, 15 and 15 bits with a marker bit after each.
fn timestamp(bytes: &[u8]) -> Option<u64> {
    let [b0, b1, b2, b3, b4] = *bytes.first_chunk()?;
    Some(
        u64::from(b0 >> 1 & 7) << 30
            | u64::from(b1) << 22
            | u64::from(b2 >> 1) << 15
            | u64::from(b3) << 7
            | u64::from(b4 >> 1),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ts::packet::SIZE;

    const HEAD: [u8; 14] = [0, 0, 1, 0xe0, 0, 0, 0x84, 0x80, 5, 0x21, 0, 1, 0, 1];

    /// A packet whose payload is `payload`, behind stuffing.
    fn packet(starts: bool, payload: &[u8]) -> [u8; SIZE] {
        let mut bytes = [0xff; SIZE];
        bytes[..4].copy_from_slice(&[0x47, if starts { 0x40 } else { 0 }, 0x20, 0x30]);
        bytes[4] = (SIZE - 5 - payload.len()) as u8;
        if bytes[4] > 0 {
            bytes[5] = 0;
        }
        bytes[SIZE - payload.len()..].copy_from_slice(payload);
        bytes
    }

    fn push(pes: &mut PesAssembler, starts: bool, payload: &[u8]) -> Outcome {
        let bytes = packet(starts, payload);
        let ended = if starts { pes.end() } else { (None, None) };
        let (unit, fault) = pes.append(&Packet::parse(&bytes), 0, 1000);
        (ended.0.or(unit), ended.1.or(fault))
    }

    fn data(outcome: Outcome) -> (Vec<u8>, bool, bool) {
        let unit = outcome.0.unwrap();
        (unit.data.to_vec(), unit.is_broken, unit.follows_loss)
    }

    #[test]
    fn unbounded_units_end_with_the_next() {
        let mut pes = PesAssembler::new(0x20);
        // The header is cut.
        assert_eq!(push(&mut pes, true, &HEAD[..4]), (None, None));
        assert_eq!(push(&mut pes, false, &[&HEAD[4..], &[7, 8][..]].concat()), (None, None));
        let outcome = push(&mut pes, true, &HEAD);
        assert_eq!(outcome.0.as_ref().unwrap().pts, Some(0));
        assert_eq!(data(outcome), (vec![7, 8], false, false));
        assert_eq!(data(pes.end()), (vec![], false, false));
    }

    #[test]
    fn bounded_units_end_by_their_length() {
        let mut pes = PesAssembler::new(0x20);
        let mut head = HEAD;
        head[5] = 10;
        assert_eq!(push(&mut pes, true, &[&head[..], &[1]].concat()), (None, None));
        assert_eq!(data(push(&mut pes, false, &[2, 3, 4])), (vec![1, 2], false, false));
        assert_eq!(push(&mut pes, false, &[5]), (None, None), "bytes of no unit");
        push(&mut pes, true, &[&head[..], &[1]].concat());
        let short = push(&mut pes, true, &head);
        assert_eq!(short.1, Some(TsFaultKind::ShortUnit));
        assert_eq!(data(short), (vec![1], true, false));
        assert_eq!(data(push(&mut pes, false, &[5, 6])), (vec![5, 6], false, true));
    }

    #[test]
    fn broken_and_impossible_units() {
        let mut pes = PesAssembler::new(0x20);
        push(&mut pes, true, &[&HEAD[..], &[1]].concat());
        assert_eq!(data(pes.break_off()), (vec![1], true, false));
        assert_eq!(push(&mut pes, true, &[0, 0, 2]).1, Some(TsFaultKind::BadUnit));
        push(&mut pes, true, &HEAD);
        assert_eq!(data(push(&mut pes, true, &HEAD)), (vec![], false, true));
        let full = [9; 180];
        for _ in 0..5 {
            assert_eq!(push(&mut pes, false, &full), (None, None));
        }
        assert_eq!(push(&mut pes, false, &full), (None, Some(TsFaultKind::UnitTooLarge)));
        assert_eq!(pes.held(), 0);
        // Fields beyond the packet; padding.
        push(&mut pes, true, &[0, 0, 1, 0xe0, 0, 0, 0x80, 0x80, 200, 1]);
        assert_eq!(pes.end(), (None, Some(TsFaultKind::BadUnit)));
        push(&mut pes, true, &[0, 0, 1, 0xbe, 0, 0, 0xff, 0xff]);
        assert_eq!(pes.end(), (None, None));
    }
}
