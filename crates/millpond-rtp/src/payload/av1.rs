//! AV1 (RTP Payload Format For AV1, version 1.0.0).

use super::{
    PayloadError, Piece,
    building::{Building, Content, Join, Progress, Start, head},
};
use bytes::Bytes;

const TEMPORAL_DELIMITER: u8 = 2;
const TILE_LIST: u8 = 8;
const SEQUENCE_HEADER: u8 = 1;

/// Most OBUs of a packet: W has two bits (4.4).
const MOST_ELEMENTS: u8 = 3;
/// Least room for the beginning of an OBU behind others.
const LEAST_ROOM: usize = 16;

/// Makes packets of all OBUs of a frame together: receivers such as browsers take a packet that begins with a new OBU for the beginning of
/// a frame. OBUs are sent without their size field (4.5). Temporal delimiters and tile lists are not sent (5).
pub(super) fn cut(frame: &[u8], most: usize, pieces: &mut Vec<Piece>) -> Result<(), PayloadError> {
    let mut obus = Vec::new();
    let mut at = 0;
    while at < frame.len() {
        let obu = Obu::read(frame, at)?;
        at = obu.body.end;
        if !matches!(obu.kind, TEMPORAL_DELIMITER | TILE_LIST) {
            obus.push(obu);
        }
    }
    let mut filling = Filling::new(starts_sequence(frame));
    let last = obus.len().saturating_sub(1);
    for (number, obu) in obus.into_iter().enumerate() {
        let (mut head, mut body) = (&obu.header[..obu.header_len], obu.body);
        loop {
            let (room, length) = (most - filling.bytes.len(), head.len() + body.len());
            if length > room {
                let part = body.start..body.start + (room - head.len());
                body.start = part.end;
                filling.send(std::mem::take(&mut head), part, true, pieces);
                continue;
            }
            let with_length = leb128_length(length) + length;
            let is_joined = number < last && filling.count + 1 < MOST_ELEMENTS && with_length + LEAST_ROOM <= room;
            match is_joined {
                true => filling.join(head, &frame[body]),
                false => filling.send(head, body, false, pieces),
            }
            break;
        }
    }
    Ok(())
}

/// The packet that is being filled: its aggregation header, and whole OBUs with their lengths (4.4).
struct Filling {
    bytes: Vec<u8>,
    count: u8,
}

impl Filling {
    fn new(new_sequence: bool) -> Self {
        Self { bytes: vec![u8::from(new_sequence) << 3], count: 0 }
    }

    /// Adds an OBU, or the rest of one, behind which others follow in the packet.
    fn join(&mut self, head: &[u8], body: &[u8]) {
        write_leb128(head.len() + body.len(), &mut self.bytes);
        self.bytes.extend_from_slice(head);
        self.bytes.extend_from_slice(body);
        self.count += 1;
    }

    /// Ends the packet with an OBU, or a part of one that goes on in the next packet.
    fn send(&mut self, head: &[u8], body: std::ops::Range<usize>, goes_on: bool, pieces: &mut Vec<Piece>) {
        self.bytes.extend_from_slice(head);
        self.bytes[0] |= u8::from(goes_on) << 6 | (self.count + 1) << 4;
        pieces.push(Piece::new(&self.bytes, body));
        self.bytes.clear();
        self.bytes.push(u8::from(goes_on) << 7);
        self.count = 0;
    }
}

/// Whether a sequence header precedes all frames, which begins a new coded video sequence.
fn starts_sequence(frame: &[u8]) -> bool {
    let mut at = 0;
    while let Ok(obu) = Obu::read(frame, at) {
        match obu.kind {
            SEQUENCE_HEADER => return true,
            TEMPORAL_DELIMITER => at = obu.body.end,
            _ => return false,
        }
    }
    false
}

/// An OBU (AV1 bitstream 5.3).
struct Obu {
    kind: u8,
    /// Header without the size field.
    header: [u8; 2],
    header_len: usize,
    body: std::ops::Range<usize>,
}

impl Obu {
    fn read(frame: &[u8], at: usize) -> Result<Self, PayloadError> {
        let truncated = || PayloadError::new(at, "the end", "an OBU");
        let first = *frame.get(at).ok_or_else(truncated)?;
        if first & 0x80 != 0 {
            return Err(PayloadError::new(at, "the forbidden bit", "an OBU header"));
        }
        let (has_extension, has_size) = (first & 4 != 0, first & 2 != 0);
        let mut next = at + 1;
        let mut header = [first & !2, 0];
        if has_extension {
            header[1] = *frame.get(next).ok_or_else(truncated)?;
            next += 1;
        }
        let size = if has_size { leb128(frame, &mut next).ok_or_else(truncated)? } else { frame.len() - next };
        let end = next.checked_add(size).filter(|end| *end <= frame.len());
        let end = end.ok_or_else(|| PayloadError::new(at, format!("an OBU of {size} bytes"), "one that fits"))?;
        let header_len = 1 + usize::from(has_extension);
        Ok(Self { kind: first >> 3 & 0xf, header, header_len, body: next..end })
    }
}

fn leb128(bytes: &[u8], at: &mut usize) -> Option<usize> {
    let mut value = 0_u64;
    for place in 0..8 {
        let byte = *bytes.get(*at)?;
        *at += 1;
        value |= u64::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            return usize::try_from(value).ok();
        }
    }
    None
}

/// Joins OBUs, and adds their size fields again.
#[derive(Debug, Default)]
pub(super) struct Av1Join {
    /// Offset in the unit of the OBU whose rest is to follow.
    fragmented: Option<usize>,
}

/// One element of a packet (4.3): an OBU, or a fragment of one.
struct Element {
    body: std::ops::Range<usize>,
    /// Whether the rest follows in the next packet.
    goes_on: bool,
}

/// Returns the elements of a packet: W elements, where the last has no length field, or each with a length field where
/// W is 0 (4.4).
fn elements(payload: &[u8]) -> Result<Vec<Element>, PayloadError> {
    let [aggregation] = head(payload, "an aggregation header")?;
    let (count, goes_on) = (usize::from(aggregation >> 4 & 3), aggregation & 0x40 != 0);
    let (mut at, mut all) = (1, Vec::new());
    while at < payload.len() {
        let start = at;
        let length = if all.len() + 1 == count { Some(payload.len() - at) } else { leb128(payload, &mut at) };
        let end = length.and_then(|length| at.checked_add(length)).filter(|end| *end <= payload.len() && *end > at);
        let end = end.ok_or_else(|| {
            let found = format!("an OBU of {length:?} bytes, {} are left", payload.len() - start);
            PayloadError::packet(start, found, "one that fits in the packet")
        })?;
        all.push(Element { body: at..end, goes_on: goes_on && end == payload.len() });
        at = end;
    }
    if all.is_empty() || count > 0 && all.len() != count {
        let found = format!("{} OBUs", all.len());
        return Err(PayloadError::packet(0, found, "as many as the aggregation header states"));
    }
    Ok(all)
}

impl Av1Join {
    /// Inserts the size of the OBU that begins at `at` (AV1 bitstream 5.3), or removes the OBU if files don't contain
    /// its type.
    fn end(at: usize, unit: &mut Building) -> Result<(), PayloadError> {
        let obu = Obu::read(&unit.bytes, at)?;
        if obu.body.end != unit.bytes.len() {
            let found = format!("a size field of {}", obu.body.len());
            return Err(PayloadError::packet(0, found, "the size of the OBU in the packets"));
        }
        if matches!(obu.kind, TEMPORAL_DELIMITER | TILE_LIST) {
            unit.bytes.truncate(at);
            return Ok(());
        }
        let mut front = obu.header[..obu.header_len].to_vec();
        front[0] |= 2;
        write_leb128(obu.body.len(), &mut front);
        let room = obu.body.start - at;
        unit.extend(&[0; 10][..front.len().saturating_sub(room)])?;
        let length = at + front.len() + obu.body.len();
        unit.bytes.copy_within(obu.body, at + front.len());
        unit.bytes[at..at + front.len()].copy_from_slice(&front);
        unit.bytes.truncate(length);
        Ok(())
    }
}

/// Bytes of a number in LEB128.
fn leb128_length(value: usize) -> usize {
    1 + (0..).take_while(|more| value >> (7 * (more + 1)) > 0).count()
}

fn write_leb128(mut value: usize, into: &mut Vec<u8>) {
    while value > 0x7f {
        into.push(value as u8 & 0x7f | 0x80);
        value >>= 7;
    }
    into.push(value as u8);
}

impl Join for Av1Join {
    fn start(&self, payload: &[u8]) -> Result<Start, PayloadError> {
        let [aggregation] = head(payload, "an aggregation header")?;
        // N: the first packet of a coded video sequence (4.4).
        let (continues, new_sequence) = (aggregation & 0x80 != 0, aggregation & 8 != 0);
        Ok(match (continues, new_sequence) {
            (true, _) => Start::No,
            (_, true) => Start::Yes,
            _ => Start::Unknown,
        })
    }

    fn join(&mut self, payload: &[u8], unit: &mut Building) -> Result<Progress, PayloadError> {
        let elements = elements(payload)?;
        let continues = payload[0] & 0x80 != 0;
        if continues != self.fragmented.is_some() {
            let found = if continues { "the rest of an OBU" } else { "a new OBU" };
            let expected = if continues { "a new OBU" } else { "the rest of the last OBU" };
            return Err(PayloadError::packet(0, found, expected));
        }
        for element in elements {
            let at = self.fragmented.take().unwrap_or(unit.bytes.len());
            unit.extend(&payload[element.body])?;
            if element.goes_on {
                self.fragmented = Some(at);
            } else {
                Self::end(at, unit)?;
            }
        }
        Ok(Progress::Open)
    }

    fn is_whole(&self, _unit: &Building) -> bool {
        self.fragmented.is_none()
    }

    fn forget(&mut self) {
        self.fragmented = None;
    }

    fn content(&self, unit: &Bytes) -> Content {
        Content::picture(starts_sequence(unit))
    }
}
