//! Types of NAL units, and the messages (SEI) about entry points, closed captions and display orientation.

pub mod parameter_sets;
pub(crate) mod picture_order;
mod reference_marking;
pub(crate) mod set_kind;

use crate::codec::{Codec, orientation::Orientation};

/// Payload type of a recovery point message (H.264 D.1.8).
const RECOVERY_POINT: u32 = 6;
/// Payload type of a message with user data by ITU-T T.35 (H.264 D.1.6, H.265 D.2.6).
const USER_DATA: u32 = 4;
/// Beginning of user data with closed captions by ATSC A/53 part 4 (6.2.3): the country code of the USA, the provider's code, and the
/// type of the user data. `cc_data()` follows.
pub(crate) const ATSC_CAPTIONS: &[u8] = &[0xb5, 0, 0x31, b'G', b'A', b'9', b'4', 3];
/// The same in the form of DirecTV.
const DIRECTV_CAPTIONS: &[u8] = &[0xb5, 0, 0x2f, 3];
/// Payload type of a display orientation message (H.264 D.1.27, H.265 D.2.17).
const DISPLAY_ORIENTATION: u8 = 47;
/// Most bytes of supplemental information that are read.
const MOST_SUPPLEMENT: usize = 4096;

/// The standard that NAL units follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NalSyntax {
    /// H.264.
    Avc,
    /// H.265.
    Hevc,
}

impl NalSyntax {
    /// Returns the syntax of a codec's samples and the length in bytes of the NAL unit length field; `None` for other
    /// codecs.
    #[must_use]
    pub fn of(codec: &Codec) -> Option<(Self, u8)> {
        match codec {
            Codec::Avc(config) => Some((Self::Avc, config.nal_length_size)),
            Codec::Hevc(config) => Some((Self::Hevc, config.nal_length_size)),
            _ => None,
        }
    }

    /// `nal_unit_type` (table 7-1 of both standards); `None` for an empty unit.
    pub(crate) fn kind(self, unit: &[u8]) -> Option<u8> {
        let first = unit.first()?;
        Some(match self {
            Self::Avc => first & 0x1f,
            Self::Hevc => first >> 1 & 0x3f,
        })
    }

    /// Whether the unit is a slice of a picture, or a data partition of one.
    #[must_use]
    pub fn is_slice(self, unit: &[u8]) -> bool {
        self.kind(unit).is_some_and(|kind| match self {
            Self::Avc => (1..=5).contains(&kind),
            Self::Hevc => kind < 32,
        })
    }

    /// Whether the unit is a slice of a picture with which decoding can begin: IDR of H.264, IRAP of H.265.
    #[must_use]
    pub fn is_entry_slice(self, unit: &[u8]) -> bool {
        self.kind(unit).is_some_and(|kind| match self {
            Self::Avc => kind == 5,
            Self::Hevc => (16..=21).contains(&kind),
        })
    }

    /// Whether the unit is a sequence parameter set.
    #[must_use]
    pub fn is_sequence_set(self, unit: &[u8]) -> bool {
        self.kind(unit)
            == Some(match self {
                Self::Avc => 7,
                Self::Hevc => 33,
            })
    }

    /// Whether the unit is an access unit delimiter, which samples of MP4 files don't need.
    #[must_use]
    pub fn is_delimiter(self, unit: &[u8]) -> bool {
        self.kind(unit)
            == Some(match self {
                Self::Avc => 9,
                Self::Hevc => 35,
            })
    }

    /// Whether the unit, which may be truncated, announces that decoding can begin with its picture though that is no
    /// IDR. This is a recovery point message of H.264 with a `recovery_frame_cnt` of 0. H.265 has NAL unit types
    /// instead.
    #[must_use]
    pub fn is_recovery_point(self, unit: &[u8]) -> bool {
        if self != Self::Avc || self.kind(unit) != Some(6) {
            return false;
        }
        let payload = unescaped(unit.get(1..).unwrap_or_default());
        let point = messages(&payload).find(|(kind, _)| *kind == RECOVERY_POINT);
        // In ue(v), a first bit of 1 codes the value 0.
        point.and_then(|(_, body)| body.first()).is_some_and(|byte| byte & 0x80 != 0)
    }

    /// Whether the unit, which may be truncated, has closed captions of its picture (CEA-608 or CEA-708).
    #[must_use]
    pub fn has_captions(self, unit: &[u8]) -> bool {
        let mut has_some = false;
        self.for_captions(unit, |_| has_some = true);
        has_some
    }

    /// Calls `take` with the user data of each message with closed captions in the unit, which may be truncated. Other bytes may
    /// follow the user data.
    pub(crate) fn for_captions(self, unit: &[u8], mut take: impl FnMut(&[u8])) {
        let (kinds, header): (&[u8], _) = match self {
            Self::Avc => (&[6], 1),
            Self::Hevc => (&[39, 40], 2),
        };
        if !self.kind(unit).is_some_and(|kind| kinds.contains(&kind)) {
            return;
        }
        let payload = unescaped(unit.get(header..).unwrap_or_default());
        let captions = messages(&payload).filter(|(kind, body)| {
            *kind == USER_DATA && [ATSC_CAPTIONS, DIRECTV_CAPTIONS].iter().any(|form| body.starts_with(form))
        });
        captions.for_each(|(_, body)| take(body));
    }

    /// Returns a NAL unit that tells decoders how to turn pictures, until the next such unit. `None` for upright pictures.
    #[must_use]
    pub fn orientation(self, orientation: Orientation) -> Option<Vec<u8>> {
        // `anticlockwise_rotation`, in 65,536ths of a full turn.
        let turn: u32 = match orientation.quarters() {
            0 if !orientation.is_mirrored() => return None,
            0 => 0,
            quarters => 0x1_0000 - (u32::from(quarters) << 14),
        };
        let flip = u32::from(orientation.is_mirrored()) << 22;
        // No cancel flag, `hor_flip`, no `ver_flip`, the rotation that follows, then the persistence fields and alignment (D.1.1, D.2.1).
        let (header, validity): (&[u8], u32) = match self {
            // `display_orientation_repetition_period` 1 as ue(v), no extension.
            Self::Avc => (&[0x06], 0b0_1001),
            // `display_orientation_persistence_flag`.
            Self::Hevc => (&[0x4e, 0x01], 0b1_1000),
        };
        let [_, payload @ ..] = (flip | turn << 5 | validity).to_be_bytes();
        let mut unit = header.to_vec();
        unit.extend([DISPLAY_ORIENTATION, payload.len() as u8]);
        unit.extend(payload);
        // `rbsp_trailing_bits`. No three bytes in a row need emulation prevention.
        unit.push(0x80);
        Some(unit)
    }
}

/// Returns the messages of supplemental information (7.3.2.3): the type of each, and the bytes from its payload on.
fn messages(payload: &[u8]) -> impl Iterator<Item = (u32, &[u8])> {
    let mut rest = Some(payload);
    std::iter::from_fn(move || {
        let (kind, after) = message_field(rest.take()?)?;
        let (size, body) = message_field(after)?;
        // The stop bit of the unit.
        rest = body.get(size as usize..).filter(|next| *next != [0x80]);
        Some((kind, body))
    })
}

/// Reads a payload type or size (7.3.2.3.1), and returns the bytes after it.
fn message_field(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let full = bytes.iter().take_while(|byte| **byte == 0xff).count();
    let (last, rest) = bytes.get(full..)?.split_first()?;
    Some((u32::try_from(full).ok()?.saturating_mul(255).saturating_add(u32::from(*last)), rest))
}

/// Returns the NAL units of a frame, each after its length in `length_size` bytes, up to the first unit that is cut off.
pub(crate) fn units(length_size: u8, frame: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = frame;
    std::iter::from_fn(move || {
        let (length, after) =
            rest.split_at_checked(usize::from(length_size)).filter(|(length, _)| !length.is_empty())?;
        let length = length.iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
        let (unit, after) = after.split_at_checked(length)?;
        rest = after;
        Some(unit)
    })
}

/// Returns the first bytes of a unit without `emulation_prevention_three_byte` (7.4.1).
pub(crate) fn unescaped(unit: &[u8]) -> Vec<u8> {
    let unit = &unit[..unit.len().min(MOST_SUPPLEMENT)];
    let mut bytes = Vec::with_capacity(unit.len());
    let mut zeros = 0;
    for &byte in unit {
        if zeros >= 2 && byte == 3 {
            zeros = 0;
            continue;
        }
        zeros = if byte == 0 { zeros + 1 } else { 0 };
        bytes.push(byte);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_told_from_what_stands_before_them() {
        let avc = |kind: u8| [0x60 | kind, 0x88];
        for kind in 0..32 {
            assert_eq!(NalSyntax::Avc.is_slice(&avc(kind)), (1..=5).contains(&kind), "{kind}");
            assert_eq!(NalSyntax::Avc.is_entry_slice(&avc(kind)), kind == 5, "{kind}");
        }
        let hevc = |kind: u8| [kind << 1, 1];
        assert!([0, 1, 9, 16, 19, 21, 31].iter().all(|kind| NalSyntax::Hevc.is_slice(&hevc(*kind))));
        assert!([32, 33, 34, 35, 39, 40, 63].iter().all(|kind| !NalSyntax::Hevc.is_slice(&hevc(*kind))));
        // TRAIL, RADL, RASL; BLA, IDR, CRA; reserved.
        assert!([1, 7, 9, 22, 23, 33].iter().all(|kind| !NalSyntax::Hevc.is_entry_slice(&hevc(*kind))));
        assert!([16, 17, 18, 19, 20, 21].iter().all(|kind| NalSyntax::Hevc.is_entry_slice(&hevc(*kind))));
        assert!(!NalSyntax::Avc.is_slice(&[]) && !NalSyntax::Hevc.is_sequence_set(&[]));
        assert!(NalSyntax::Avc.is_sequence_set(&[0x67]) && NalSyntax::Hevc.is_sequence_set(&[0x42, 1]));
    }

    #[test]
    fn recovery_points_are_found_among_messages() {
        let point = |bytes: &[u8]| NalSyntax::Avc.is_recovery_point(bytes);
        assert!(point(&[6, 6, 1, 0xc4, 0x80]));
        // A buffering period message first; user data of 300 bytes first.
        assert!(point(&[6, 0, 2, 0x11, 0x22, 6, 1, 0x84, 0x80]));
        assert!(point(&[&[6, 5, 0xff, 45][..], &[7; 300], &[6, 1, 0x84, 0x80]].concat()));
        // The picture is complete only ten frames later; not a recovery point; truncated; another codec.
        assert!(!point(&[6, 6, 1, 0x16, 0x80]));
        assert!(!point(&[6, 1, 1, 0x84, 0x80]));
        assert!(!point(&[6, 5, 0xff, 45, 7]) && !point(&[6, 6]) && !point(&[6]) && !point(&[]));
        assert!(!NalSyntax::Hevc.is_recovery_point(&[0x4e, 1, 6, 1, 0x80, 0x80]));
    }

    #[test]
    fn captions_are_found_among_messages() {
        let atsc = [4, 11, 0xb5, 0, 0x31, b'G', b'A', b'9', b'4', 3, 0xc0, 0xff, 0xff, 0x80];
        let direct = [4, 5, 0xb5, 0, 0x2f, 3, 0xc0, 0x80];
        for captions in [&atsc[..], &direct] {
            assert!(NalSyntax::Avc.has_captions(&[&[6], captions].concat()));
            assert!(NalSyntax::Avc.has_captions(&[&[6, 6, 1, 0x84], captions].concat()));
            assert!(NalSyntax::Hevc.has_captions(&[&[0x4e, 1], captions].concat()));
            assert!(!NalSyntax::Avc.has_captions(&[&[0x65], captions].concat()));
            // Another type of message.
            assert!(!NalSyntax::Avc.has_captions(&[&[6, 5], &captions[1..]].concat()));
        }
        // Bar data (type 6) of ATSC, active format description, and truncated units.
        assert!(!NalSyntax::Avc.has_captions(&[6, 4, 8, 0xb5, 0, 0x31, b'G', b'A', b'9', b'4', 6, 0x80]));
        assert!(!NalSyntax::Avc.has_captions(&[6, 4, 8, 0xb5, 0, 0x31, b'D', b'T', b'G', b'1', 0x41, 0x80]));
        assert!((0..10).all(|len| !NalSyntax::Avc.has_captions(&[&[6][..], &atsc[..len]].concat()[..=len])));
    }

    #[test]
    fn orientation_is_the_turn_back() {
        assert_eq!(NalSyntax::Avc.orientation(Orientation::rotated(90)).unwrap(), [6, 47, 3, 0x18, 0, 9, 0x80]);
        assert_eq!(NalSyntax::Avc.orientation(Orientation::rotated(180)).unwrap(), [6, 47, 3, 0x10, 0, 9, 0x80]);
        assert_eq!(
            NalSyntax::Hevc.orientation(Orientation::rotated(270)).unwrap(),
            [0x4e, 1, 47, 3, 0x08, 0, 0x18, 0x80]
        );
        let mirrored = Orientation::UPRIGHT.mirrored();
        assert_eq!(NalSyntax::Avc.orientation(mirrored).unwrap(), [6, 47, 3, 0x40, 0, 9, 0x80]);
        assert_eq!(NalSyntax::Avc.orientation(Orientation::UPRIGHT), None);
    }

    #[test]
    fn emulation_prevention_is_taken_out() {
        assert_eq!(unescaped(&[1, 0, 0, 3, 1, 0, 0, 3, 0, 0, 3]), [1, 0, 0, 1, 0, 0, 0, 0]);
    }
}
