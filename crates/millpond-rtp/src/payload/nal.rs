//! H.264 (RFC 6184) and HEVC (RFC 7798): NAL units one by one, large ones in fragments.

use super::{PayloadError, Piece, parts};
use std::ops::Range;

/// What differs between the two.
pub(super) trait Nal {
    /// Bytes of a NAL unit's header.
    const HEADER: usize;

    /// The header of a fragment: that of a fragmentation unit, then what kind of unit it is part of.
    fn fragment(header: &[u8], first: bool, last: bool) -> ([u8; 3], usize);
}

pub(super) struct Avc;

impl Nal for Avc {
    const HEADER: usize = 1;

    /// FU-A (RFC 6184 5.8).
    fn fragment(header: &[u8], first: bool, last: bool) -> ([u8; 3], usize) {
        let indicator = header[0] & 0xe0 | 28;
        ([indicator, ends(first, last) | header[0] & 0x1f, 0], 2)
    }
}

pub(super) struct Hevc;

impl Nal for Hevc {
    const HEADER: usize = 2;

    /// RFC 7798 4.4.3.
    fn fragment(header: &[u8], first: bool, last: bool) -> ([u8; 3], usize) {
        let kind = header[0] >> 1 & 0x3f;
        ([header[0] & 0x81 | 49 << 1, header[1], ends(first, last) | kind], 3)
    }
}

fn ends(first: bool, last: bool) -> u8 {
    u8::from(first) << 7 | u8::from(last) << 6
}

/// A frame of NAL units, each with its length in front of it (ISO/IEC 14496-15 5.3.3.1).
pub(super) fn cut<N: Nal>(
    frame: &[u8],
    length_size: u8,
    most: usize,
    pieces: &mut Vec<Piece>,
) -> Result<(), PayloadError> {
    let mut at = 0;
    while at < frame.len() {
        let unit = unit(frame, at, usize::from(length_size), N::HEADER)?;
        at = unit.end;
        if unit.len() <= most {
            pieces.push(Piece::new(&[], unit));
            continue;
        }
        let header = &frame[unit.start..unit.start + N::HEADER];
        let body = unit.start + N::HEADER..unit.end;
        let room = most - N::fragment(header, true, true).1;
        for part in parts(body.clone(), room) {
            let (head, length) = N::fragment(header, part.start == body.start, part.end == body.end);
            pieces.push(Piece::new(&head[..length], part));
        }
    }
    Ok(())
}

fn unit(frame: &[u8], at: usize, length_size: usize, header: usize) -> Result<Range<usize>, PayloadError> {
    let start = at + length_size;
    let Some(length) = frame.get(at..start) else {
        return Err(PayloadError::new(at, format!("{} bytes", frame.len() - at), "the length of a NAL unit"));
    };
    let length = length.iter().fold(0_usize, |length, byte| length << 8 | usize::from(*byte));
    let end = start.checked_add(length).filter(|end| *end <= frame.len());
    match end {
        Some(end) if length >= header => Ok(start..end),
        _ => Err(PayloadError::new(at, format!("a NAL unit of {length} bytes"), "one that fits in the frame")),
    }
}
