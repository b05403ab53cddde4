//! How far later frames depend on a frame: what can be dropped first.

use crate::{
    bits::BitReader,
    codec::{
        Codec,
        nal::{self, NalSyntax},
    },
};

/// Most NAL units or OBUs of a frame that are looked at: a frame with more counts as one that all others need.
const MOST_UNITS: usize = 1024;
/// OBU types (AV1 bitstream 6.2.2): frame headers, tile groups and frames.
const OBU_FRAMES: [u8; 4] = [3, 4, 6, 7];
/// A number above that of any temporal layer.
const NO_LAYER: u8 = u8::MAX;

/// The frames of its track that decoding loses with a frame.
///
/// A frame refers to frames of its own temporal layer and of lower ones only. Without layers all frames are of layer 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Importance {
    /// Whether the frame is a picture. Others, such as frames of sound, are decoded by themselves.
    pub is_picture: bool,
    /// Temporal layer, from 0.
    pub layer: u8,
    /// Lowest layer with later frames that may refer to this frame, up to the next key frame; 255 if no frame does.
    pub needed_by: u8,
    /// Lowest layer at which decoding can resume here. From this frame on, no frame of that layer or of higher layers refers to
    /// earlier frames of these layers. 255 if there is no such layer.
    pub resumes: u8,
}

impl Importance {
    /// A frame that is decoded independently, and is no picture.
    pub const SOUND: Self = Self { is_picture: false, layer: 0, needed_by: NO_LAYER, resumes: 0 };
    /// A picture to which all pictures may refer, up to the next key frame.
    pub const BASE: Self = Self { is_picture: true, layer: 0, needed_by: 0, resumes: NO_LAYER };
    /// A picture of the base layer to which no other one refers.
    pub const DISPOSABLE: Self = Self { needed_by: NO_LAYER, ..Self::BASE };

    /// A picture of a temporal layer to which pictures of that layer and of higher ones may refer.
    #[must_use]
    pub const fn of_layer(layer: u8) -> Self {
        Self { layer, needed_by: layer, ..Self::BASE }
    }

    /// Whether no other frame refers to it.
    #[must_use]
    pub const fn is_disposable(self) -> bool {
        self.needed_by == NO_LAYER
    }

    /// Returns the importance of a track's frame, as stored in MP4 files. A picture that can't be read counts as one that all
    /// others need.
    #[must_use]
    pub fn of(codec: &Codec, frame: &[u8]) -> Self {
        if let Some((syntax, length_size)) = NalSyntax::of(codec) {
            return Self::of_units(syntax, length_size, frame);
        }
        match codec {
            Codec::Av1(_) => Self::of_obus(frame),
            Codec::Vp9(config) if &config.fourcc == b"vp09" && vp9_is_disposable(frame) == Some(true) => {
                Self::DISPOSABLE
            }
            Codec::Vp9(_) => Self::BASE,
            _ => Self::SOUND,
        }
    }

    /// Returns the importance of a picture of NAL units, with lengths of `length_size` bytes.
    #[must_use]
    pub fn of_units(syntax: NalSyntax, length_size: u8, frame: &[u8]) -> Self {
        let mut found: Option<Self> = None;
        let mut layer = 0;
        let mut count = 0;
        for unit in nal::units(length_size, frame) {
            count += 1;
            if count > MOST_UNITS {
                return Self::BASE;
            }
            if syntax == NalSyntax::Avc
                && let Some(id) = prefix_layer(unit)
            {
                layer = id;
            }
            if syntax.is_slice(unit) {
                let of_slice = match syntax {
                    NalSyntax::Avc => of_avc_slice(unit, layer),
                    NalSyntax::Hevc => of_hevc_slice(unit),
                };
                found = Some(found.map_or(of_slice, |found| found.and(of_slice)));
            }
        }
        found.unwrap_or(Self::BASE)
    }

    /// Returns the importance of an AV1 temporal unit, by the temporal layer that the headers of its OBUs state (AV1
    /// bitstream 5.3.3).
    fn of_obus(mut unit: &[u8]) -> Self {
        for _ in 0..MOST_UNITS {
            let Some((kind, layer, rest)) = obu(unit) else { break };
            if OBU_FRAMES.contains(&kind) {
                return Self::of_layer(layer);
            }
            unit = rest;
        }
        Self::BASE
    }

    /// The importance of a frame of two parts.
    fn and(self, other: Self) -> Self {
        Self {
            is_picture: self.is_picture,
            layer: self.layer.max(other.layer),
            needed_by: self.needed_by.min(other.needed_by),
            resumes: self.resumes.max(other.resumes),
        }
    }
}

/// `nal_ref_idc` is 0 where no picture refers to the slice's one (H.264 7.4.1).
fn of_avc_slice(slice: &[u8], layer: u8) -> Importance {
    let is_referenced = slice.first().is_none_or(|first| first & 0x60 != 0);
    let importance = Importance::of_layer(layer);
    if is_referenced { importance } else { Importance { needed_by: NO_LAYER, ..importance } }
}

/// Only higher layers refer to pictures of a sub-layer non-reference type. From a TSA picture on, no picture of its layer or of
/// higher layers refers to earlier pictures (H.265 table 7-1 and 7.4.2.2).
fn of_hevc_slice(slice: &[u8]) -> Importance {
    let [first, second, ..] = *slice else { return Importance::BASE };
    let (kind, layer) = (first >> 1 & 0x3f, (second & 7).saturating_sub(1));
    let needed_by = if kind <= 14 && kind % 2 == 0 { layer + 1 } else { layer };
    let resumes = if matches!(kind, 2 | 3) { layer } else { NO_LAYER };
    Importance { layer, needed_by, resumes, ..Importance::BASE }
}

/// The temporal layer in a prefix NAL unit of scalable streams (H.264 G.7.3.1.1, type 14).
fn prefix_layer(unit: &[u8]) -> Option<u8> {
    match unit {
        [first, flags, _, ids, ..] if first & 0x1f == 14 && flags & 0x80 != 0 => Some(ids >> 5),
        _ => None,
    }
}

/// Returns the type and the temporal layer of the first OBU, and the bytes after it.
fn obu(bytes: &[u8]) -> Option<(u8, u8, &[u8])> {
    let (&first, mut rest) = bytes.split_first()?;
    let mut layer = 0;
    if first & 4 != 0 {
        let (&extension, after) = rest.split_first()?;
        (layer, rest) = (extension >> 5, after);
    }
    let mut length = rest.len() as u64;
    if first & 2 != 0 {
        length = 0;
        for place in 0..8 {
            let (&byte, after) = rest.split_first()?;
            rest = after;
            length |= u64::from(byte & 0x7f) << (7 * place);
            if byte & 0x80 == 0 {
                break;
            }
        }
    }
    Some((first >> 3 & 15, layer, rest.get(usize::try_from(length).ok()?..)?))
}

/// Whether a VP9 frame changes nothing that later frames use: no reference frame, and no saved probabilities (VP9 bitstream
/// 6.2, `refresh_frame_flags` and `refresh_frame_context`). `None` where that can't be told.
fn vp9_is_disposable(frame: &[u8]) -> Option<bool> {
    // A superframe has more frames than the first one (annex B).
    if frame.last()? & 0xe0 == 0xc0 {
        return None;
    }
    let mut bits = BitReader::new(frame);
    if bits.bits(2)? != 2 {
        return None;
    }
    let profile = bits.bits(1)? | bits.bits(1)? << 1;
    bits.skip(usize::from(profile == 3))?;
    if bits.flag()? {
        // An old frame is shown.
        return Some(true);
    }
    let is_predicted = bits.flag()?;
    let (is_shown, is_resilient) = (bits.flag()?, bits.flag()?);
    let is_intra = !is_shown && bits.flag()?;
    if !is_predicted || is_intra {
        return Some(false);
    }
    bits.skip(if is_resilient { 0 } else { 2 })?;
    if bits.bits(8)? != 0 {
        return Some(false);
    }
    if is_resilient {
        return Some(true);
    }
    bits.skip(3 * (3 + 1))?;
    let mut has_size_of = false;
    for _ in 0..3 {
        has_size_of = has_size_of || bits.flag()?;
    }
    bits.skip(if has_size_of { 0 } else { 32 })?;
    if bits.flag()? {
        bits.skip(32)?;
    }
    bits.skip(1)?;
    if !bits.flag()? {
        bits.skip(2)?;
    }
    Some(!bits.flag()?)
}

#[cfg(test)]
mod tests;
