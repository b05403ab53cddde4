//! Slices: their headers (7.3.3), and the macroblocks in them (7.3.4).

use crate::{
    DecodeError, IDR_SLICE,
    bits::BitReader,
    macroblock::{Macroblock, Reader},
    neighbours::Near,
    parameters::{ParameterSets, PictureSet, SequenceSet},
    picture::{Picture, Plane},
    residual::{Coefficients, Reconstruction},
};

/// `slice_type` of I slices (table 7-6), and with 5 more where all slices of the picture are of that type.
const INTRA: [u32; 2] = [2, 7];
/// Most operations on reference pictures that a header may have.
const MOST_OPERATIONS: usize = 66;

/// Head of a slice.
pub(crate) struct Header<'s> {
    first: usize,
    pub(crate) is_redundant: bool,
    quantizer: i32,
    picture: &'s PictureSet,
    pub(crate) sequence: &'s SequenceSet,
}

impl<'s> Header<'s> {
    /// Reads the head of a slice. `head` is the head of its NAL unit.
    pub(crate) fn read(bits: &mut BitReader<'_>, head: &u8, sets: &'s ParameterSets) -> Result<Self, DecodeError> {
        let (is_idr, is_reference) = (head & 0x1f == IDR_SLICE, head & 0x60 != 0);
        let first = bits.ue_at_most(1 << 24, "macroblock")?;
        if !INTRA.contains(&bits.ue()?) {
            return Err(DecodeError::Unsupported("a slice with inter prediction"));
        }
        let number = bits.ue_at_most(255, "number of a picture parameter set")?;
        let picture = sets.picture(number).ok_or(DecodeError::Invalid("number of a picture parameter set"))?;
        let sequence =
            sets.sequence(picture.sequence).ok_or(DecodeError::Invalid("number of a sequence parameter set"))?;
        bits.bits(sequence.frame_number_bits)?;
        if !sequence.frames_only && bits.flag()? {
            return Err(DecodeError::Unsupported("a field"));
        }
        if is_idr {
            bits.ue()?;
        }
        order(bits, sequence, picture)?;
        let is_redundant = picture.has_redundant && bits.ue()? > 0;
        if is_reference {
            marking(bits, is_idr)?;
        }
        let quantizer = picture.quantizer + bits.se_within(-51, 51, "quantizer")?;
        if !(0..52).contains(&quantizer) {
            return Err(DecodeError::Invalid("quantizer"));
        }
        if picture.has_filter_fields && bits.ue()? != 1 {
            bits.se()?;
            bits.se()?;
        }
        Ok(Self { first, is_redundant, quantizer, picture, sequence })
    }
}

/// Skips the fields of the picture order.
fn order(bits: &mut BitReader<'_>, sequence: &SequenceSet, picture: &PictureSet) -> Result<(), DecodeError> {
    if sequence.order_type == 0 {
        bits.bits(sequence.order_bits)?;
        if picture.has_order_of_bottom {
            bits.se()?;
        }
    } else if sequence.order_type == 1 && !sequence.order_is_always_zero {
        bits.se()?;
        if picture.has_order_of_bottom {
            bits.se()?;
        }
    }
    Ok(())
}

/// Skips the marking of reference pictures (7.3.3.3).
fn marking(bits: &mut BitReader<'_>, is_idr: bool) -> Result<(), DecodeError> {
    if is_idr {
        bits.bits(2)?;
    } else if bits.flag()? {
        for _ in 0..MOST_OPERATIONS {
            match bits.ue()? {
                0 => return Ok(()),
                3 => {
                    bits.ue()?;
                    bits.ue()?;
                }
                1 | 2 | 4 | 6 => {
                    bits.ue()?;
                }
                5 => {}
                _ => return Err(DecodeError::Invalid("marking of reference pictures")),
            }
        }
        return Err(DecodeError::Invalid("marking of reference pictures"));
    }
    Ok(())
}

/// Decodes the slices of one picture.
pub(crate) struct SliceDecoder {
    set: SequenceSet,
    planes: [Plane; 3],
    macroblocks: Vec<Macroblock>,
    /// Number of slices that were begun.
    slices: u32,
    decoded: usize,
}

impl SliceDecoder {
    /// Makes the memory of a picture of at most `most` macroblocks.
    pub(crate) fn new(set: SequenceSet, most: usize) -> Result<Self, DecodeError> {
        let (wide, high) = set.size;
        let found = wide * high;
        if found > most {
            return Err(DecodeError::TooLarge { found, most });
        }
        let planes = [
            Plane::of(wide * 16, high * 16, 128),
            Plane::of(wide * 8, high * 8, 128),
            Plane::of(wide * 8, high * 8, 128),
        ];
        Ok(Self { set, planes, macroblocks: vec![Macroblock::default(); found], slices: 0, decoded: 0 })
    }

    /// Decodes a slice, whose head was read. A redundant one repeats others, and only counts.
    pub(crate) fn slice(&mut self, header: &Header<'_>, bits: BitReader<'_>) -> Result<(), DecodeError> {
        if header.sequence.size != self.set.size || header.sequence.has_chroma != self.set.has_chroma {
            return Err(DecodeError::Invalid("size of a slice"));
        }
        self.slices += 1;
        // Each slice has a macroblock, and redundant ones are few.
        let most = 2 * self.macroblocks.len();
        if self.slices as usize > most {
            return Err(DecodeError::TooMany { what: "slices", most });
        }
        if header.is_redundant {
            return Ok(());
        }
        let mut reader = Reader::new(bits, header.picture, header.quantizer);
        let mut reconstruction = Reconstruction::new(header.picture, header.sequence.has_chroma);
        let (wide, _) = self.set.size;
        for place in header.first..self.macroblocks.len() {
            if !reader.has_more() {
                return Ok(());
            }
            // Each macroblock is decoded once, whatever the slices say.
            if self.macroblocks.get(place).is_none_or(|known| known.slice != 0) {
                return Err(DecodeError::Invalid("place of a slice"));
            }
            let mut coefficients = Coefficients::default();
            let near = Near::of(&self.macroblocks, place, wide, self.slices);
            let has_chroma = self.set.has_chroma;
            let macroblock = reader.macroblock(&near, has_chroma, self.slices, &mut coefficients)?;
            reconstruction.put(&mut self.planes, (place % wide, place / wide), &near, (&macroblock, &coefficients))?;
            if let Some(known) = self.macroblocks.get_mut(place) {
                *known = macroblock;
            }
            self.decoded += 1;
            if reader.ends()? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Returns the picture, cropped.
    pub(crate) fn finish(self) -> Result<Picture, DecodeError> {
        let all = self.macroblocks.len();
        if self.decoded < all {
            return Err(DecodeError::Incomplete { found: self.decoded, all });
        }
        let [left, right, above, below] = self.set.crop;
        let [luma, blue, red] = &self.planes;
        let (width, height) = (luma.width - left - right, luma.height - above - below);
        let part = |plane: &Plane| plane.part((left / 2, above / 2), width.div_ceil(2), height.div_ceil(2));
        Ok(Picture { planes: [luma.part((left, above), width, height), part(blue), part(red)] })
    }
}
