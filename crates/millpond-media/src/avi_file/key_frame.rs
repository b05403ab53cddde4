//! Recognition of key frames by their headers, for files without an index.

use super::format::SelfDescribed;
use crate::bits::BitReader;

/// OBU types of AV1 (bitstream 6.2.2): sequence headers, temporal delimiters, frame headers and frames.
const SEQUENCE: u8 = 1;
const DELIMITER: u8 = 2;
const FRAMES: [u8; 2] = [3, 6];
/// Most OBUs of a temporal unit up to its first frame.
const MOST_OBUS: usize = 64;

/// Whether decoding can begin with a frame.
pub(super) fn is_key(codec: SelfDescribed, frame: &[u8]) -> bool {
    match codec {
        // RFC 6386 9.1.
        SelfDescribed::Vp8 => frame.first().is_some_and(|first| first & 1 == 0),
        SelfDescribed::Vp9 => vp9(frame).unwrap_or(false),
        SelfDescribed::Av1 => av1(frame),
    }
}

/// Size of the temporal delimiter at the beginning of a frame; 0 without one. Samples of AV1 don't hold delimiters (AV1 Codec ISO
/// Media File Format Binding 2.4).
pub(super) fn delimiter(codec: SelfDescribed, frame: &[u8]) -> u64 {
    let is_delimiter = matches!(frame, [first, 0, ..] if first & 0x86 == 2 && first >> 3 & 15 == DELIMITER);
    if codec == SelfDescribed::Av1 && is_delimiter { 2 } else { 0 }
}

/// Reads `frame_type` of VP9 (bitstream 6.2).
fn vp9(frame: &[u8]) -> Option<bool> {
    let mut bits = BitReader::new(frame);
    let marker = bits.bits(2)?;
    let profile = bits.bits(1)? | bits.bits(1)? << 1;
    bits.skip(usize::from(profile == 3))?;
    let (shows_other, is_predicted) = (bits.flag()?, bits.flag()?);
    Some(marker == 2 && !shows_other && !is_predicted)
}

/// Whether a temporal unit has a sequence header, and its first frame is a key frame (AV1 bitstream 5.9.2).
fn av1(unit: &[u8]) -> bool {
    let (mut rest, mut has_sequence) = (unit, false);
    for _ in 0..MOST_OBUS {
        let Some((kind, body, after)) = obu(rest) else { return false };
        match kind {
            SEQUENCE => has_sequence = true,
            // show_existing_frame and frame_type are 0.
            kind if FRAMES.contains(&kind) => {
                return has_sequence && body.first().is_some_and(|first| first & 0xe0 == 0);
            }
            _ => {}
        }
        rest = after;
    }
    false
}

/// Returns type and body of the first OBU, and the bytes after it (5.3).
fn obu(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let first = *bytes.first()?;
    let header = if first & 4 != 0 { 2 } else { 1 };
    let mut rest = bytes.get(header..)?;
    let mut length = rest.len();
    if first & 2 != 0 {
        length = 0;
        for place in 0..4 {
            let (byte, after) = rest.split_first()?;
            (rest, length) = (after, length | usize::from(byte & 0x7f) << (7 * place));
            if byte & 0x80 == 0 {
                break;
            }
        }
    }
    let (body, after) = rest.split_at_checked(length)?;
    Some((first >> 3 & 15, body, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_frames_are_told_by_their_bits() {
        assert!(is_key(SelfDescribed::Vp8, &[0x10]) && !is_key(SelfDescribed::Vp8, &[0x11]));
        assert!(is_key(SelfDescribed::Vp9, &[0b1000_0010]) && !is_key(SelfDescribed::Vp9, &[0b1000_0110]));
        let (sequence, key, other) = ([0x0a, 1, 0], [0x32, 1, 0x10], [0x32, 1, 0x30]);
        let unit = |frame: [u8; 3]| [&[0x12, 0][..], &sequence, &frame].concat();
        assert!(is_key(SelfDescribed::Av1, &unit(key)) && !is_key(SelfDescribed::Av1, &unit(other)));
        assert!(!is_key(SelfDescribed::Av1, &key) && !is_key(SelfDescribed::Av1, &[]));
        assert_eq!((delimiter(SelfDescribed::Av1, &unit(key)), delimiter(SelfDescribed::Av1, &key)), (2, 0));
        assert_eq!(delimiter(SelfDescribed::Vp8, &[0x12, 0]), 0);
    }
}
