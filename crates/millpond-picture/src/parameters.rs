//! Parameter sets (7.3.2.1 and 7.3.2.2), with scaling lists (7.3.2.1.1.1).

use crate::{DecodeError, MOST_SETS, bits::BitReader};

/// Profiles whose sequence parameter sets have a chroma format.
const HIGH: [u32; 13] = [100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135];
/// Greatest width and height in macroblocks (table A-1: 16,880 samples).
const MOST_SIDE: u32 = 1055;

/// Default lists of intra prediction, in the order of the zigzag scan (tables 7-3 and 7-4).
const DEFAULT_4: [u8; 16] = [6, 13, 13, 20, 20, 20, 28, 28, 28, 28, 32, 32, 32, 37, 37, 42];
const DEFAULT_8: [u8; 64] = [
    6, 10, 10, 13, 11, 13, 16, 16, 16, 16, 18, 18, 18, 18, 18, 23, 23, 23, 23, 23, 23, 25, 25, 25, 25, 25, 25, 25, 27,
    27, 27, 27, 27, 27, 27, 27, 29, 29, 29, 29, 29, 29, 29, 31, 31, 31, 31, 31, 31, 33, 33, 33, 33, 33, 36, 36, 36, 36,
    38, 38, 38, 40, 40, 42,
];

/// Scaling lists of intra prediction in the order of the zigzag scan: of luma and both parts of chroma with blocks of 4 by 4, and of luma with
/// those of 8 by 8.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Scaling {
    pub(crate) four: [[u8; 16]; 3],
    pub(crate) eight: [u8; 64],
}

/// A sequence parameter set.
#[derive(Clone, Debug)]
pub(crate) struct SequenceSet {
    pub(crate) id: usize,
    /// Whether there is chroma (4:2:0).
    pub(crate) has_chroma: bool,
    pub(crate) frame_number_bits: usize,
    pub(crate) order_type: usize,
    pub(crate) order_bits: usize,
    pub(crate) order_is_always_zero: bool,
    /// Width and height in macroblocks.
    pub(crate) size: (usize, usize),
    /// Whether all pictures are frames.
    pub(crate) frames_only: bool,
    /// Samples that are cut off: left, right, above, below.
    pub(crate) crop: [usize; 4],
    pub(crate) scaling: Option<Scaling>,
}

/// A picture parameter set.
#[derive(Clone, Debug)]
pub(crate) struct PictureSet {
    pub(crate) id: usize,
    pub(crate) sequence: usize,
    pub(crate) is_cabac: bool,
    pub(crate) has_order_of_bottom: bool,
    pub(crate) quantizer: i32,
    /// Offsets of the quantizers of both parts of chroma.
    pub(crate) chroma_offsets: [i32; 2],
    pub(crate) has_filter_fields: bool,
    pub(crate) has_redundant: bool,
    pub(crate) has_transform_8: bool,
    pub(crate) scaling: Scaling,
}

/// The parameter sets that were read, by their numbers. A later set replaces one of the same number.
#[derive(Default)]
pub(crate) struct ParameterSets {
    sequences: Vec<Option<SequenceSet>>,
    pictures: Vec<Option<PictureSet>>,
    read: usize,
}

impl ParameterSets {
    /// Reads a sequence parameter set behind the head of its NAL unit.
    pub(crate) fn add_sequence(&mut self, bits: &mut BitReader<'_>) -> Result<(), DecodeError> {
        self.count()?;
        let set = SequenceSet::read(bits)?;
        put(&mut self.sequences, set.id, set);
        Ok(())
    }

    /// Reads a picture parameter set behind the head of its NAL unit.
    pub(crate) fn add_picture(&mut self, bits: &mut BitReader<'_>) -> Result<(), DecodeError> {
        self.count()?;
        let set = PictureSet::read(bits, self)?;
        put(&mut self.pictures, set.id, set);
        Ok(())
    }

    pub(crate) fn sequence(&self, id: usize) -> Option<&SequenceSet> {
        self.sequences.get(id)?.as_ref()
    }

    pub(crate) fn picture(&self, id: usize) -> Option<&PictureSet> {
        self.pictures.get(id)?.as_ref()
    }

    fn count(&mut self) -> Result<(), DecodeError> {
        self.read += 1;
        if self.read > MOST_SETS {
            return Err(DecodeError::TooMany { what: "parameter sets", most: MOST_SETS });
        }
        Ok(())
    }
}

/// Puts a set at its number, which is small.
fn put<T>(sets: &mut Vec<Option<T>>, id: usize, set: T) {
    if sets.len() <= id {
        sets.resize_with(id + 1, || None);
    }
    if let Some(place) = sets.get_mut(id) {
        *place = Some(set);
    }
}

impl Scaling {
    /// All weights are 16.
    const FLAT: Self = Self { four: [[16; 16]; 3], eight: [16; 64] };
    const DEFAULT: Self = Self { four: [DEFAULT_4; 3], eight: DEFAULT_8 };

    /// Reads lists. Those that are left out are taken of `fallback` (tables 7-2: rules A and B).
    fn read(bits: &mut BitReader<'_>, count: usize, fallback: &Self) -> Result<Self, DecodeError> {
        let mut lists = fallback.clone();
        for list in 0..count {
            if !bits.flag()? {
                // The list before it, for the parts of chroma.
                if let 1 | 2 = list {
                    lists.four[list] = lists.four[list - 1];
                }
                continue;
            }
            match list {
                0..3 => read_list(bits, &mut lists.four[list], &DEFAULT_4)?,
                3..6 => read_list(bits, &mut [0; 16], &DEFAULT_4)?,
                6 => read_list(bits, &mut lists.eight, &DEFAULT_8)?,
                _ => read_list(bits, &mut [0; 64], &DEFAULT_8)?,
            }
        }
        Ok(lists)
    }
}

fn read_list<const N: usize>(
    bits: &mut BitReader<'_>,
    list: &mut [u8; N],
    default: &[u8; N],
) -> Result<(), DecodeError> {
    let (mut last, mut next) = (8_i32, 8_i32);
    for (place, weight) in list.iter_mut().enumerate() {
        if next != 0 {
            next = (last + bits.se_within(-128, 127, "scaling list")?).rem_euclid(256);
            if next == 0 && place == 0 {
                *list = *default;
                return Ok(());
            }
        }
        last = if next == 0 { last } else { next };
        *weight = u8::try_from(last).map_err(|_| DecodeError::Invalid("scaling list"))?;
    }
    Ok(())
}

impl SequenceSet {
    /// Reads a set behind the head of its NAL unit.
    fn read(bits: &mut BitReader<'_>) -> Result<Self, DecodeError> {
        let profile = bits.bits(8)?;
        bits.bits(16)?;
        let id = bits.ue_at_most(31, "number of a sequence parameter set")?;
        let (mut has_chroma, mut scaling) = (true, None);
        if HIGH.contains(&profile) {
            has_chroma = match bits.ue()? {
                0 => false,
                1 => true,
                _ => return Err(DecodeError::Unsupported("chroma of 4:2:2 or 4:4:4")),
            };
            if bits.ue()? != 0 || bits.ue()? != 0 {
                return Err(DecodeError::Unsupported("more than 8 bits a sample"));
            }
            if bits.flag()? {
                return Err(DecodeError::Unsupported("lossless coding"));
            }
            scaling = if bits.flag()? { Some(Scaling::read(bits, 8, &Scaling::DEFAULT)?) } else { None };
        }
        let frame_number_bits = 4 + bits.ue_at_most(12, "length of frame numbers")?;
        let order_type = bits.ue_at_most(2, "type of picture order")?;
        let (mut order_bits, mut order_is_always_zero) = (0, false);
        if order_type == 0 {
            order_bits = 4 + bits.ue_at_most(12, "length of picture order")?;
        } else if order_type == 1 {
            order_is_always_zero = bits.flag()?;
            bits.se()?;
            bits.se()?;
            for _ in 0..bits.ue_at_most(255, "cycle of picture order")? {
                bits.se()?;
            }
        }
        bits.ue()?;
        bits.flag()?;
        let width = bits.ue_at_most(MOST_SIDE - 1, "width")? + 1;
        let units = bits.ue_at_most(MOST_SIDE - 1, "height")? + 1;
        let frames_only = bits.flag()?;
        if !frames_only && bits.flag()? {
            return Err(DecodeError::Unsupported("macroblocks of fields and frames"));
        }
        bits.flag()?;
        let rows = if frames_only { 1 } else { 2 };
        let mut crop = [0; 4];
        if bits.flag()? {
            let unit = if has_chroma { 2 } else { 1 };
            for (side, crop) in crop.iter_mut().enumerate() {
                let unit = if side < 2 { unit } else { unit * rows };
                *crop = unit * bits.ue_at_most(MOST_SIDE * 16, "crop")?;
            }
        }
        let size = (width, units * rows);
        if crop[0] + crop[1] >= 16 * size.0 || crop[2] + crop[3] >= 16 * size.1 {
            return Err(DecodeError::Invalid("crop"));
        }
        Ok(Self {
            id,
            has_chroma,
            frame_number_bits,
            order_type,
            order_bits,
            order_is_always_zero,
            size,
            frames_only,
            crop,
            scaling,
        })
    }
}

impl PictureSet {
    /// Reads a set behind the head of its NAL unit.
    fn read(bits: &mut BitReader<'_>, sets: &ParameterSets) -> Result<Self, DecodeError> {
        let id = bits.ue_at_most(255, "number of a picture parameter set")?;
        let sequence = bits.ue_at_most(31, "number of a sequence parameter set")?;
        let is_cabac = bits.flag()?;
        let has_order_of_bottom = bits.flag()?;
        if bits.ue()? != 0 {
            return Err(DecodeError::Unsupported("slice groups"));
        }
        bits.ue()?;
        bits.ue()?;
        bits.bits(3)?;
        let quantizer = 26 + bits.se_within(-26, 25, "quantizer")?;
        bits.se()?;
        let first = bits.se_within(-12, 12, "chroma quantizer")?;
        let has_filter_fields = bits.flag()?;
        bits.flag()?;
        let has_redundant = bits.flag()?;
        let (mut has_transform_8, mut second) = (false, first);
        let stated = sets.sequence(sequence).and_then(|set| set.scaling.clone());
        let mut scaling = stated.clone().unwrap_or(Scaling::FLAT);
        if bits.has_more() {
            has_transform_8 = bits.flag()?;
            if bits.flag()? {
                let count = if has_transform_8 { 8 } else { 6 };
                scaling = Scaling::read(bits, count, &stated.unwrap_or(Scaling::DEFAULT))?;
            }
            second = bits.se_within(-12, 12, "chroma quantizer")?;
        }
        Ok(Self {
            id,
            sequence,
            is_cabac,
            has_order_of_bottom,
            quantizer,
            chroma_offsets: [first, second],
            has_filter_fields,
            has_redundant,
            has_transform_8,
            scaling,
        })
    }
}
