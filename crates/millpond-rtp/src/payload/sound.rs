//! AAC (RFC 3640), MPEG audio (RFC 2250), AC-3 (RFC 4184) and E-AC-3 (RFC 4598).

use super::{PayloadError, Piece, parts};

/// One access unit a packet (RFC 3640 3.3.6, AAC-hbr: 13 bits of size, 3 of index); large ones in fragments.
pub(super) fn cut_aac(frame: &[u8], most: usize, pieces: &mut Vec<Piece>) -> Result<(), PayloadError> {
    let Some(size) = u16::try_from(frame.len()).ok().filter(|size| *size < 1 << 13) else {
        return Err(PayloadError::new(0, format!("an access unit of {} bytes", frame.len()), "fewer than 8192"));
    };
    let [high, low] = (size << 3).to_be_bytes();
    // Every fragment has the size of the whole (RFC 3640 3.2.3.2).
    for part in parts(0..frame.len(), most - 4) {
        pieces.push(Piece::new(&[0, 16, high, low], part));
    }
    Ok(())
}

/// RFC 2250 3.5: the offset of the fragment in the frame.
pub(super) fn cut_mpa(frame: &[u8], most: usize, pieces: &mut Vec<Piece>) {
    for part in parts(0..frame.len(), most - 4) {
        let [high, low] = (part.start as u16).to_be_bytes();
        pieces.push(Piece::new(&[0, 0, high, low], part));
    }
}

/// RFC 4184 4.1 and RFC 4598 4.1: a frame, or a fragment of one; the other bytes are reserved.
pub(super) fn cut_ac3(frame: &[u8], most: usize, pieces: &mut Vec<Piece>, enhanced: bool) {
    let room = most - 2;
    let count = frame.len().div_ceil(room).max(1);
    for part in parts(0..frame.len(), room) {
        let kind = match (count, part.start) {
            (1, _) => 0,
            // E-AC-3 doesn't tell how much of the frame the first fragment has.
            (_, 0) if enhanced => 1,
            (_, 0) => {
                let five_eighths = room * 8 >= frame.len() * 5;
                if five_eighths { 1 } else { 2 }
            }
            _ if enhanced => 1,
            _ => 3,
        };
        pieces.push(Piece::new(&[kind, count.min(255) as u8], part));
    }
}
