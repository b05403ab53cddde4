//! The marking of reference pictures in the slices of H.264, as far as it changes picture order counts (7.3.3.3, 8.2.1).

use crate::bits::BitReader;

/// `slice_type` modulo 5 (table 7-6). The types of P and SP slices are 0 and 3, those of I and SI slices are 2 and 4.
const B: u32 = 1;
const INTRA: [u32; 2] = [2, 4];
/// `memory_management_control_operation` (table 7-9): the end of the list, and the reset.
const END: u32 = 0;
const RESET: u32 = 5;
/// `modification_of_pic_nums_idc` (table 7-7): the end of the list.
const END_OF_ORDER: u32 = 3;
/// Most entries of a list of reference pictures (7.4.3).
const MOST_REFERENCES: u32 = 32;

/// Fields of a picture parameter set that are needed to read slices up to the marking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MarkingSyntax {
    /// Whether slices of frames state the count of the bottom field (`bottom_field_pic_order_in_frame_present_flag`).
    has_bottom: bool,
    /// Entries of the two lists of reference pictures, if the slice states no other numbers.
    references: [u32; 2],
    /// `weighted_pred_flag`, and whether `weighted_bipred_idc` is 1.
    has_weights: bool,
    has_weights_of_b: bool,
    /// `redundant_pic_cnt_present_flag`.
    has_redundant: bool,
}

/// The part of a slice header that was read before the marking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SliceStart {
    /// `slice_type`.
    pub(super) kind: u32,
    pub(super) is_field: bool,
    /// Whether the pictures have chroma that is not coded in planes of its own (`ChromaArrayType`).
    pub(super) has_chroma: bool,
}

impl MarkingSyntax {
    /// Reads a picture parameter set (7.3.2.2) behind its identifiers. `None` with several slice groups, which only the Baseline and
    /// Extended profiles have.
    pub(super) fn read(bits: &mut BitReader<'_>) -> Option<Self> {
        // entropy_coding_mode_flag
        bits.skip(1)?;
        let has_bottom = bits.flag()?;
        if bits.golomb()? > 0 {
            return None;
        }
        let references = [entries(bits)?, entries(bits)?];
        let (has_weights, has_weights_of_b) = (bits.flag()?, bits.bits(2)? == 1);
        // Quantisers: pic_init_qp_minus26, pic_init_qs_minus26, chroma_qp_index_offset.
        for _ in 0..3 {
            bits.golomb()?;
        }
        // deblocking_filter_control_present_flag, constrained_intra_pred_flag
        bits.skip(2)?;
        Some(Self { has_bottom, references, has_weights, has_weights_of_b, has_redundant: bits.flag()? })
    }

    /// Reads the header of a slice of a reference picture that is no IDR picture, behind `pic_order_cnt_lsb`. If the slice resets all
    /// counts, returns the count of the picture's top field after the reset: that of the frame is 0 (8.2.1).
    pub(super) fn reset(&self, start: SliceStart, bits: &mut BitReader<'_>) -> Option<i64> {
        let (kind, is_intra) = (start.kind % 5, INTRA.contains(&(start.kind % 5)));
        let bottom = if self.has_bottom && !start.is_field { signed(bits)? } else { 0 };
        if self.has_redundant {
            bits.golomb()?;
        }
        if kind == B {
            // direct_spatial_mv_pred_flag
            bits.skip(1)?;
        }
        let lists = if is_intra { 0 } else { 1 + usize::from(kind == B) };
        let mut references = self.references;
        // num_ref_idx_active_override_flag
        if lists > 0 && bits.flag()? {
            for list in references.iter_mut().take(lists) {
                *list = entries(bits)?;
            }
        }
        for _ in 0..lists {
            skip_order(bits)?;
        }
        let has_weights = if kind == B { self.has_weights_of_b } else { self.has_weights && !is_intra };
        if has_weights {
            skip_weights(references.iter().take(lists), start.has_chroma, bits)?;
        }
        has_reset(bits)?.then_some(bottom.saturating_neg().max(0))
    }
}

/// Reads a number of entries minus 1.
fn entries(bits: &mut BitReader<'_>) -> Option<u32> {
    bits.golomb()?.checked_add(1).filter(|entries| *entries <= MOST_REFERENCES)
}

/// Reads a signed number (9.1.1).
fn signed(bits: &mut BitReader<'_>) -> Option<i64> {
    let code = i64::from(bits.golomb()?);
    Some(if code % 2 == 1 { (code + 1) / 2 } else { -(code / 2) })
}

/// Skips the changes of a list's order (`ref_pic_list_modification`, 7.3.3.1).
fn skip_order(bits: &mut BitReader<'_>) -> Option<()> {
    if bits.flag()? {
        while bits.golomb()? != END_OF_ORDER {
            bits.golomb()?;
        }
    }
    Some(())
}

/// Skips the weights of prediction (`pred_weight_table`, 7.3.3.2).
fn skip_weights<'a>(
    references: impl Iterator<Item = &'a u32>,
    has_chroma: bool,
    bits: &mut BitReader<'_>,
) -> Option<()> {
    let planes: &[u32] = if has_chroma { &[1, 2] } else { &[1] };
    for _ in planes {
        bits.golomb()?;
    }
    for _ in 0..references.sum::<u32>() {
        for colors in planes {
            if bits.flag()? {
                for _ in 0..2 * colors {
                    bits.golomb()?;
                }
            }
        }
    }
    Some(())
}

/// Whether the operations of a slice have a reset (`dec_ref_pic_marking`, 7.3.3.3).
fn has_reset(bits: &mut BitReader<'_>) -> Option<bool> {
    // adaptive_ref_pic_marking_mode_flag
    if !bits.flag()? {
        return Some(false);
    }
    loop {
        let fields = match bits.golomb()? {
            END => return Some(false),
            RESET => return Some(true),
            3 => 2,
            _ => 1,
        };
        for _ in 0..fields {
            bits.golomb()?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::packed;

    const ONE: (u32, u32) = (1, 1);
    const ZERO: (u32, u32) = (1, 0);

    fn syntax(flags: [u32; 5]) -> MarkingSyntax {
        let [bottom, weights, weights_of_b, control, redundant] = flags;
        // One slice group, two entries in the first list, one in the second, quantisers.
        let groups = [ZERO, (1, bottom), ONE, (3, 0b010), ONE];
        let rest = [(1, weights), (2, weights_of_b), ONE, ONE, ONE, (1, control), ZERO, (1, redundant)];
        let bytes = packed(&[&groups[..], &rest, &[(8, 0xff)]].concat());
        MarkingSyntax::read(&mut BitReader::new(&bytes)).unwrap()
    }

    #[test]
    fn resets_are_found_behind_all_fields() {
        let plain = syntax([0, 0, 0, 1, 0]);
        let reset = |syntax: MarkingSyntax, kind, is_field, fields: &[(u32, u32)]| {
            let bytes = packed(&[fields, &[(16, 0xffff)]].concat());
            syntax.reset(SliceStart { kind, is_field, has_chroma: true }, &mut BitReader::new(&bytes))
        };
        // The operations 5 and 0.
        let marks = [ONE, (5, 0b00110), ONE];
        assert_eq!(reset(plain, 7, false, &marks), Some(0));
        assert_eq!(reset(plain, 7, false, &[ZERO]), None, "a sliding window");
        assert_eq!(reset(plain, 7, false, &[ONE, (3, 0b010), (3, 0b011), ONE]), None, "another operation");
        // Other operations precede the reset: 1 with a number, 3 with two.
        let others = [ONE, (3, 0b010), ONE, (5, 0b00100), (3, 0b010), (3, 0b010), (5, 0b00110), ONE];
        assert_eq!(reset(plain, 7, false, &others), Some(0));
        // P: no other number of entries, a changed order (0, 1, then 3).
        let order = [ZERO, ONE, ONE, (3, 0b010), (5, 0b00100)];
        assert_eq!(reset(plain, 5, false, &[&order[..], &marks].concat()), Some(0));
        // B: direct prediction, one entry in each list, both orders unchanged.
        let lists = [ONE, ONE, ONE, ONE, ZERO, ZERO];
        assert_eq!(reset(plain, 6, false, &[&lists[..], &marks].concat()), Some(0));
        // P with weights: denominators, luma of the first entry, chroma of the second one.
        let (luma, chroma) = ([ONE, ONE, ONE, ZERO], [ZERO, ONE, ONE, ONE, ONE, ONE]);
        let weights = [&[ZERO, ZERO, ONE, ONE][..], &luma, &chroma].concat();
        assert_eq!(reset(syntax([0, 1, 0, 1, 0]), 0, false, &[&weights[..], &marks].concat()), Some(0));
        // The bottom field is shown two units before the top field; a redundant count.
        let bottom = [(5, 0b00101), ONE];
        assert_eq!(reset(syntax([1, 0, 0, 1, 1]), 7, false, &[&bottom[..], &marks].concat()), Some(2));
        assert_eq!(reset(syntax([1, 0, 0, 1, 0]), 7, true, &marks), Some(0), "fields have no other count");
    }
}
