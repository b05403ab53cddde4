//! Converts channel layouts of PCM from QuickTime's `chan` (QuickTime File Format, "Audio Channel Layout Atom") to
//! ISO's `chnl` (ISO/IEC 14496-12 12.2.4), with the loudspeakers of ISO/IEC 23001-8 table 7.

use crate::boxes::{FullBox, Node};

/// Loudspeakers: left, right, centre, low frequency, left and right surround, left and right of centre, left and right
/// rear surround, centre surround.
const L: u8 = 0;
const R: u8 = 1;
const C: u8 = 2;
const LFE: u8 = 3;
const LS: u8 = 4;
const RS: u8 = 5;
const LC: u8 = 6;
const RC: u8 = 7;
const LSR: u8 = 8;
const RSR: u8 = 9;
const CS: u8 = 10;

/// Layout tags without their channel count, which is the lower half of the field.
const TAGS: [(u16, &[u8]); 13] = [
    (108, &[L, R, LS, RS]),
    (113, &[L, R, C]),
    (114, &[C, L, R]),
    (115, &[L, R, C, CS]),
    (117, &[L, R, C, LS, RS]),
    (118, &[L, R, LS, RS, C]),
    (121, &[L, R, C, LFE, LS, RS]),
    (122, &[L, R, LS, RS, C, LFE]),
    (123, &[L, C, R, LS, RS, LFE]),
    (124, &[C, L, R, LS, RS, LFE]),
    (126, &[L, R, C, LFE, LS, RS, LC, RC]),
    (127, &[C, LC, RC, L, R, LS, RS, LFE]),
    (128, &[L, R, C, LFE, LS, RS, LSR, RSR]),
];
/// Tag of layouts that are stated as a bit mask of loudspeakers.
const BITMAP: u16 = 1;
/// Loudspeakers of the mask bits, from the lowest bit up.
const BITS: [u8; 9] = [L, R, C, LFE, LS, RS, LC, RC, CS];
/// Order of six and of eight channels where a file states none (SMPTE ST 2036-2, and the assumption of ffmpeg).
const USUAL: [&[u8]; 2] = [&[L, R, C, LFE, LS, RS], &[L, R, C, LFE, LSR, RSR, LS, RS]];

/// Returns the body of `chnl` (version 0): a defined layout for one and two channels, else the loudspeaker of each
/// channel. `None` where the loudspeakers are unknown.
pub(in crate::codec) fn layout(chan: Option<&Node<'_>>, channels: u16) -> Option<Vec<u8>> {
    // Version and flags, then `channelStructured`.
    let mut body = vec![0, 0, 0, 0, 1];
    match channels {
        // `ChannelConfiguration` 1 and 2 (ISO/IEC 23001-8 table 8) omit no channel.
        1 | 2 => body.extend([channels as u8, 0, 0, 0, 0, 0, 0, 0, 0]),
        _ => {
            let stated = chan.and_then(speakers).filter(|stated| stated.len() == usize::from(channels));
            let usual = || USUAL.iter().find(|usual| usual.len() == usize::from(channels)).map(|usual| usual.to_vec());
            let speakers = stated.or_else(|| usual().filter(|_| chan.is_none()))?;
            body.push(0);
            body.extend(speakers);
        }
    }
    Some(body)
}

/// Returns the loudspeakers that a `chan` box states.
fn speakers(chan: &Node<'_>) -> Option<Vec<u8>> {
    let FullBox { mut fields, .. } = chan.full().ok()?;
    let (tag, bitmap) = (fields.u32().ok()?, fields.u32().ok()?);
    match (tag >> 16) as u16 {
        BITMAP if bitmap >> BITS.len() == 0 => {
            let set = (0_u32..).zip(BITS).filter(|(bit, _)| bitmap >> bit & 1 == 1);
            Some(set.map(|(_, speaker)| speaker).collect())
        }
        tag => TAGS.iter().find(|(known, _)| *known == tag).map(|(_, speakers)| speakers.to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::fields;

    fn of(tag: u32, bitmap: u32, channels: u16) -> Option<Vec<u8>> {
        let bytes = fields(b"chan", &[0, tag, bitmap, 0]);
        layout(Node::new(&bytes, 0, "chan").as_ref(), channels).map(|body| body[5..].to_vec())
    }

    #[test]
    fn layouts_are_those_of_the_tag_or_the_bits() {
        assert_eq!(of(101 << 16 | 2, 0, 2), Some(vec![2, 0, 0, 0, 0, 0, 0, 0, 0]));
        assert_eq!(of(124 << 16 | 6, 0, 6), Some(vec![0, C, L, R, LS, RS, LFE]));
        assert_eq!(of(1 << 16, 0x3f, 6), Some(vec![0, L, R, C, LFE, LS, RS]));
        assert_eq!(of(1 << 16, 0x103, 3), Some(vec![0, L, R, CS]));
        assert_eq!(of(1 << 16, 0x3f, 5), None, "as many loudspeakers as channels");
        assert_eq!(of(1 << 16, 1 << 12 | 7, 4), None, "a loudspeaker without a number");
        assert_eq!(of(147 << 16 | 6, 0, 6), None, "channels without places");
    }

    #[test]
    fn without_a_box_the_usual_order_counts() {
        assert_eq!(layout(None, 1).map(|body| body[4..6].to_vec()), Some(vec![1, 1]));
        assert_eq!(layout(None, 6).map(|body| body[5..].to_vec()), Some(vec![0, L, R, C, LFE, LS, RS]));
        assert_eq!(layout(None, 5), None);
    }
}
