//! Fields of interlaced H.264: two of them are one frame.

use crate::{bits::BitReader, codec::nal::unescaped};

/// Profiles of H.264 whose parameter sets state a chroma format (7.3.2.1.1).
const HIGH: [u32; 13] = [100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135];
/// Greatest `num_ref_frames_in_pic_order_cnt_cycle` (7.4.2.1.1).
const MOST_CYCLE: u32 = 255;
/// Bytes of a slice that hold the fields that are read.
const SLICE_HEADER: usize = 24;

/// Properties of a sequence parameter set that allows fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FieldSyntax {
    /// Bits of `frame_num`.
    number_bits: usize,
    /// `separate_colour_plane_flag`.
    has_planes: bool,
}

impl FieldSyntax {
    /// Reads a sequence parameter set without emulation prevention (7.3.2.1.1); `None` where all pictures are frames.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let mut bits = BitReader::new(bytes);
        bits.skip(8)?;
        let profile = bits.bits(8)?;
        bits.skip(16)?;
        bits.golomb()?;
        let mut has_planes = false;
        if HIGH.contains(&profile) {
            let chroma = bits.golomb()?;
            has_planes = chroma == 3 && bits.flag()?;
            // Bit depths, lossless coding flag.
            bits.golomb()?;
            bits.golomb()?;
            bits.skip(1)?;
            if bits.flag()? {
                scaling_lists(&mut bits, if chroma == 3 { 12 } else { 8 })?;
            }
        }
        let number_bits = bits.golomb()? as usize + 4;
        match bits.golomb()? {
            0 => drop(bits.golomb()?),
            1 => {
                bits.skip(1)?;
                bits.golomb()?;
                bits.golomb()?;
                for _ in 0..bits.golomb().filter(|cycle| *cycle <= MOST_CYCLE)? {
                    bits.golomb()?;
                }
            }
            _ => {}
        }
        // Number of reference frames, gaps allowed in frame numbers, size in macroblocks.
        bits.golomb()?;
        bits.skip(1)?;
        bits.golomb()?;
        bits.golomb()?;
        let has_only_frames = bits.flag()?;
        (!has_only_frames && number_bits <= 16).then_some(Self { number_bits, has_planes })
    }
}

/// Skips scaling lists (7.3.2.1.1.1).
fn scaling_lists(bits: &mut BitReader<'_>, count: u32) -> Option<()> {
    for list in 0..count {
        if !bits.flag()? {
            continue;
        }
        let (mut last, mut next) = (8_i64, 8_i64);
        for _ in 0..if list < 6 { 16 } else { 64 } {
            if next != 0 {
                let code = i64::from(bits.golomb()?);
                let delta = if code % 2 == 1 { (code + 1) / 2 } else { -(code / 2) };
                next = (last + delta).rem_euclid(256);
            }
            last = if next == 0 { last } else { next };
        }
    }
    Some(())
}

/// A picture that is one field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Field {
    /// `frame_num`.
    number: u32,
    is_bottom: bool,
}

impl Field {
    /// Reads the header of a slice (7.3.3). `syntax` returns the syntax of the sequence parameter set to which a picture
    /// parameter set refers.
    pub(super) fn read(slice: &[u8], syntax: impl FnOnce(u32) -> Option<FieldSyntax>) -> Option<Self> {
        let bytes = unescaped(slice.get(..SLICE_HEADER).unwrap_or(slice));
        let mut bits = BitReader::new(&bytes);
        bits.skip(8)?;
        // First macroblock, type of the slice.
        bits.golomb()?;
        bits.golomb()?;
        let syntax = syntax(bits.golomb()?)?;
        bits.skip(if syntax.has_planes { 2 } else { 0 })?;
        let number = bits.bits(syntax.number_bits)?;
        let is_field = bits.flag()?;
        Some(Self { number, is_bottom: bits.flag()? }).filter(|_| is_field)
    }

    /// Whether `next` is the other field of the same frame.
    pub(super) fn is_completed_by(self, next: Self) -> bool {
        self.number == next.number && self.is_bottom != next.is_bottom
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::hex;

    #[test]
    fn sets_of_frames_and_of_fields() {
        let read = |digits: &str| FieldSyntax::read(&unescaped(&hex(digits)));
        assert_eq!(read("6764000cacd941419f9f011000000300100000030320f1429960"), None);
        let interlaced = read("67640015acd941533c45e022000003000200000300643e28532c");
        assert_eq!(interlaced, Some(FieldSyntax { number_bits: 4, has_planes: false }));
        assert_eq!(read("6742"), None);
    }

    #[test]
    fn fields_of_a_frame_have_its_number() {
        let syntax = Some(FieldSyntax { number_bits: 4, has_planes: false });
        // First macroblock 0, type 7, set 0, number 5, a field, its parity.
        let slice = |tail: u8| [0x65, 0b1000_1000, 0b1010_1000 | tail];
        let read = |tail| Field::read(&slice(tail), |id| syntax.filter(|_| id == 0));
        let (top, bottom) = (read(0b100).unwrap(), read(0b110).unwrap());
        assert!(top.is_completed_by(bottom) && bottom.is_completed_by(top) && !top.is_completed_by(top));
        assert_eq!(read(0b010), None, "a frame");
    }
}
