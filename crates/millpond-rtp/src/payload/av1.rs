//! AV1 (RTP Payload Format For AV1, version 1.0.0).

use super::{PayloadError, Piece, parts};

const TEMPORAL_DELIMITER: u8 = 2;
const TILE_LIST: u8 = 8;
const SEQUENCE_HEADER: u8 = 1;

/// One OBU, or a fragment of one, a packet: W is 1, so that no length stands before it (4.4). OBUs are sent without
/// their size field (4.5); temporal delimiters and tile lists are not sent (5).
pub(super) fn cut(frame: &[u8], most: usize, pieces: &mut Vec<Piece>) -> Result<(), PayloadError> {
    let mut at = 0;
    let mut new_sequence = starts_sequence(frame);
    while at < frame.len() {
        let obu = Obu::read(frame, at)?;
        at = obu.body.end;
        if matches!(obu.kind, TEMPORAL_DELIMITER | TILE_LIST) {
            continue;
        }
        let head = &obu.header[..obu.header_len];
        // The first fragment has the OBU's header.
        let first = obu.body.start..(obu.body.start + (most - 1 - head.len())).min(obu.body.end);
        let rest = first.end..obu.body.end;
        let aggregation = |z: bool, y: bool, n: bool| u8::from(z) << 7 | u8::from(y) << 6 | 1 << 4 | u8::from(n) << 3;
        let mut bytes = vec![aggregation(false, !rest.is_empty(), std::mem::take(&mut new_sequence))];
        bytes.extend_from_slice(head);
        pieces.push(Piece::new(&bytes, first));
        for part in parts(rest.clone(), most - 1) {
            let more = part.end < rest.end;
            pieces.push(Piece::new(&[aggregation(true, more, false)], part));
        }
    }
    Ok(())
}

/// Whether a sequence header comes before any frame: a new coded video sequence.
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
    /// Its header without the size field.
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
