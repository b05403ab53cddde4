//! Reads sequence parameter sets (H.264 7.3.2.1.1 and H.265 7.3.2.2.1).

mod avc;
mod golomb;
mod hevc;
mod sequence;
#[cfg(test)]
mod tests;
mod usability;
mod vui;

pub(in crate::codec) use avc::HIGH;
pub use sequence::PictureSequence;
pub(crate) use sequence::{OrderCount, OrderSyntax};
pub(crate) use usability::{fill_usability, scale};

use crate::{
    codec::{
        Codec, TrackKind,
        fields::FieldReader,
        nal::{NalSyntax, unescaped},
    },
    error::MediaError,
};
use golomb::{ue, ue_at_most};

/// Path in errors.
const PATH: &str = "sequence parameter set";
/// Greatest `bit_depth_luma_minus8` (H.265 7.4.3.2.1); H.264 allows 6.
const MOST_DEPTH: u32 = 8;

/// Most bytes of an identifier in Exp-Golomb code, of at most 17 bits, with emulation prevention.
const MOST_ID_BYTES: usize = 4;

/// Position of width and height in a visual sample entry, header included (ISO/IEC 14496-12 12.1.3.2).
const SIZE_PLACE: std::ops::Range<usize> = 32..36;

impl PictureSequence {
    /// Reads a sequence parameter set: a NAL unit without start code or length.
    ///
    /// # Errors
    /// The set ends before the fields that every set has, or violates its standard there. Later violations only leave
    /// out what they concern.
    pub fn read(syntax: NalSyntax, unit: &[u8]) -> Result<Self, MediaError> {
        let bytes = unescaped(unit);
        let mut fields = FieldReader::new(&bytes, 0, PATH);
        match syntax {
            NalSyntax::Avc => avc::read(&mut fields),
            NalSyntax::Hevc => hevc::read(&mut fields),
        }
    }

    /// Reads the first readable sequence parameter set in a codec's configuration; `None` for codecs without any.
    #[must_use]
    pub fn of(codec: &Codec) -> Option<Self> {
        let (syntax, sets) = sets(codec)?;
        sets.iter().find_map(|set| Self::read(syntax, set).ok())
    }
}

/// Returns the sequence parameter sets in a codec's configuration.
fn sets(codec: &Codec) -> Option<(NalSyntax, &[Vec<u8>])> {
    match codec {
        Codec::Avc(config) => Some((NalSyntax::Avc, &config.sps)),
        Codec::Hevc(config) => Some((NalSyntax::Hevc, &config.sps)),
        _ => None,
    }
}

/// Returns width and height from the parameter sets in a codec's configuration.
pub(crate) fn configured_size(codec: &Codec) -> Option<(u16, u16)> {
    let (syntax, sets) = sets(codec)?;
    sets.iter().find_map(|set| picture_size(syntax, set))
}

/// Whether a video track states no size.
pub(crate) fn lacks_size(kind: &TrackKind) -> bool {
    matches!(kind, TrackKind::Video { width, height, .. } if *width == 0 || *height == 0)
}

/// Sets the size of a track and its sample entry if they state none. Players take the sample entry's size for the pictures' size.
pub(crate) fn fill_size(kind: &mut TrackKind, sample_entry: &mut [u8], size: (u16, u16)) {
    if !lacks_size(kind) {
        return;
    }
    if let TrackKind::Video { width, height, .. } = kind {
        (*width, *height) = size;
    }
    if let Some(place) = sample_entry.get_mut(SIZE_PLACE) {
        let (width, height) = (size.0.to_be_bytes(), size.1.to_be_bytes());
        place.copy_from_slice(&[width[0], width[1], height[0], height[1]]);
    }
}

/// Returns the cropped width and height in pixels from a sequence parameter set (a NAL unit without start code). `None`
/// where it can't be read, or its sizes exceed 16 bits.
pub(crate) fn picture_size(syntax: NalSyntax, unit: &[u8]) -> Option<(u16, u16)> {
    PictureSequence::read(syntax, unit).ok()?.size
}

/// Returns the identifier of a picture parameter set, given the bytes after its NAL unit header: its first number (H.264
/// 7.3.2.2, H.265 7.3.2.3.1). `None` where it can't be read.
pub(crate) fn picture_set_id(body: &[u8]) -> Option<u8> {
    let start = unescaped(body.get(..MOST_ID_BYTES).unwrap_or(body));
    ue(&mut FieldReader::new(&start, 0, PATH)).ok()?.try_into().ok()
}

struct Size {
    width: u32,
    height: u32,
    /// Cropping at left and right, top and bottom, in units of `unit`.
    crop: (u32, u32),
    /// Pixels per unit of cropping.
    unit: (u32, u32),
}

impl Size {
    fn cropped(&self) -> Option<(u32, u32)> {
        let width = self.width.checked_sub(self.crop.0.checked_mul(self.unit.0)?)?;
        Some((width, self.height.checked_sub(self.crop.1.checked_mul(self.unit.1)?)?))
    }
}

/// Returns the pixels per chroma sample (table 6-1 of both standards); 1 where there is no chroma.
const fn chroma(format: u32, separate: bool) -> (u32, u32) {
    match (format, separate) {
        (1, false) => (2, 2),
        (2, false) => (2, 1),
        _ => (1, 1),
    }
}

/// Reads the bits per sample value of luma and chroma.
fn bit_depths(fields: &mut FieldReader<'_, '_>) -> Result<(u8, u8), MediaError> {
    let mut depth = || ue_at_most(fields, MOST_DEPTH, "bits beyond 8").map(|more| 8 + more as u8);
    Ok((depth()?, depth()?))
}

/// Returns the sums of offsets from left and right, and from top and bottom.
fn crop(fields: &mut FieldReader<'_, '_>) -> Result<(u32, u32), MediaError> {
    let across = ue(fields)?.saturating_add(ue(fields)?);
    Ok((across, ue(fields)?.saturating_add(ue(fields)?)))
}
