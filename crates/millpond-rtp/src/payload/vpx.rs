//! VP8 (RFC 7741) and VP9 (RFC 9628).

use super::{PayloadError, Piece, parts};

/// RFC 7741 4.2: the descriptor's one required byte; S at the start of the frame's one partition.
pub(super) fn cut_vp8(frame: &[u8], most: usize, pieces: &mut Vec<Piece>) {
    for part in parts(0..frame.len(), most - 1) {
        let start = u8::from(part.start == 0) << 4;
        pieces.push(Piece::new(&[start], part));
    }
}

/// RFC 9628 4.2: no layers, no picture ID; P on pictures predicted from others, B and E at the ends of the frame. A
/// superframe's last frame is the one that shows; the others go with it, in the same picture.
pub(super) fn cut_vp9(frame: &[u8], most: usize, pieces: &mut Vec<Piece>) -> Result<(), PayloadError> {
    let Some(&first) = frame.first() else {
        return Err(PayloadError::new(0, "no bytes", "a frame"));
    };
    if first >> 6 != 2 {
        return Err(PayloadError::new(0, format!("frame marker {}", first >> 6), "2"));
    }
    // profile 3 has one bit more before show_existing_frame (VP9 bitstream 6.2).
    let shift = if first & 0x30 == 0x30 { 2 } else { 3 };
    let predicted = first >> (shift - 1) & 1 == 1;
    let flags = u8::from(predicted) << 6;
    for part in parts(0..frame.len(), most - 1) {
        let ends = u8::from(part.start == 0) << 3 | u8::from(part.end == frame.len()) << 2;
        pieces.push(Piece::new(&[flags | ends], part));
    }
    Ok(())
}
