//! Picture order counts: the order in which pictures of H.264 (8.2.1) and H.265 (8.3.1) are shown.
//!
//! Containers without times of presentation, such as AVI, leave the order to the slices.

use super::{
    NalSyntax,
    reference_marking::{MarkingSyntax, SliceStart},
    set_kind::SetKind,
    unescaped, units,
};
use crate::{
    bits::BitReader,
    codec::{
        PictureSequence,
        video::sps::{OrderCount, OrderSyntax},
    },
};
use std::collections::BTreeMap;

/// Bytes of a slice that hold all fields read here. Weights of prediction take up to 13 bytes for each of 64 reference pictures.
const SLICE_HEADER: usize = 1024;
/// Bytes of a picture parameter set that hold all fields read here.
const PICTURE_SET: usize = 16;
/// Most bits of a field: 16, as the standards state.
const MOST_BITS: u32 = 16;
/// Pictures whose order [`PictureOrder`] does not know, as errors name them.
pub(crate) const UNKNOWN_ORDER: &str =
    "H.264 whose picture order counts follow from frame numbers (pic_order_cnt_type 1), with B-frames,";

/// Place of a picture in the order of presentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PicturePlace {
    /// Whether counts begin anew with the picture, so that all earlier pictures are shown before it.
    pub(crate) begins: bool,
    /// Picture order count. Pictures are shown in the order of their counts, up to the next picture that begins anew.
    pub(crate) count: i64,
}

/// Reads the order counts of pictures, which arrive in the order of decoding.
#[derive(Debug)]
pub(crate) struct PictureOrder {
    syntax: NalSyntax,
    length_size: u8,
    sequences: BTreeMap<u8, PictureSequence>,
    pictures: BTreeMap<u32, PictureSet>,
    /// Most and least significant part of the count of the last anchor (`prevPicOrderCntMsb`, `prevPicOrderCntLsb`).
    before: (i64, i64),
    /// Count of the last picture; `None` before the first one.
    last: Option<i64>,
}

/// The fields of a picture parameter set that are needed to read slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PictureSet {
    sequence: u8,
    /// Bits before the type in a slice of H.265 (`num_extra_slice_header_bits`).
    extra_bits: usize,
    /// Whether slices of H.265 state if their picture is shown (`output_flag_present_flag`).
    has_output_flag: bool,
    /// Fields of slices of H.264 before the marking of reference pictures; `None` if these can't be read.
    marking: Option<MarkingSyntax>,
}

/// The fields of a slice that lead to the count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slice {
    /// Whether counts begin anew.
    begins: bool,
    /// Whether the next counts are derived from the count of this slice's picture.
    is_anchor: bool,
    /// Least significant bits of the count and their number; `None` if pictures are shown in the order of decoding.
    stated: Option<(i64, u32)>,
    /// Count of the picture's top field after the picture has reset all counts (`memory_management_control_operation` 5 of H.264).
    reset: Option<i64>,
}

impl PictureOrder {
    /// Creates the reader of pictures whose NAL units have lengths of `length_size` bytes.
    pub(crate) fn new(syntax: NalSyntax, length_size: u8) -> Self {
        let (sequences, pictures) = (BTreeMap::new(), BTreeMap::new());
        Self { syntax, length_size, sequences, pictures, before: (0, 0), last: None }
    }

    /// Takes parameter sets. Returns `false` if their pictures have counts that follow from a cycle of frame numbers, which is not
    /// supported.
    pub(crate) fn describe<'a>(&mut self, sets: impl IntoIterator<Item = &'a [u8]>) -> bool {
        let mut is_known = true;
        for set in sets {
            match SetKind::of(self.syntax, set) {
                Some(SetKind::Sequence) => {
                    let Ok(sequence) = PictureSequence::read(self.syntax, set) else { continue };
                    let is_cycle = sequence.order.is_some_and(|order| order.count == OrderCount::Cycle);
                    is_known &= !is_cycle || sequence.reorder_depth == Some(0);
                    self.sequences.insert(sequence.id, sequence);
                }
                Some(SetKind::Picture) => {
                    if let Some((id, read)) = picture_set(self.syntax, set) {
                        self.pictures.insert(id, read);
                    }
                }
                Some(SetKind::Video) | None => {}
            }
        }
        is_known
    }

    /// Returns the place of the next picture. A picture whose slices can't be read is shown after the picture decoded before it.
    pub(crate) fn next(&mut self, picture: &[u8]) -> PicturePlace {
        let slice = units(self.length_size, picture).find(|unit| self.syntax.is_slice(unit));
        let read = slice.and_then(|slice| match self.syntax {
            NalSyntax::Avc => self.avc(slice),
            NalSyntax::Hevc => self.hevc(slice),
        });
        let Some(Slice { begins, is_anchor, stated, reset }) = read else { return self.following(false) };
        let begins = begins || self.last.is_none();
        let Some((low, bits)) = stated else { return self.following(begins) };
        if let Some(count) = reset {
            // All earlier pictures are shown first (C.4.4), as before an IDR picture.
            (self.before, self.last) = ((0, count), Some(count));
            return PicturePlace { begins: true, count };
        }
        if begins {
            self.before = (0, 0);
        }
        let high = if begins { 0 } else { high_part(self.before, low, 1 << bits) };
        if is_anchor {
            self.before = (high, low);
        }
        let count = high.saturating_add(low);
        self.last = Some(count);
        PicturePlace { begins, count }
    }

    fn following(&mut self, begins: bool) -> PicturePlace {
        let count = self.last.filter(|_| !begins).map_or(0, |last| last.saturating_add(1));
        let begins = begins || self.last.is_none();
        self.last = Some(count);
        PicturePlace { begins, count }
    }

    /// Returns the syntax of slices under a sequence parameter set, and whether pictures are shown in the order of decoding.
    fn order(&self, sequence: u8) -> Option<(OrderSyntax, bool)> {
        let sequence = self.sequences.get(&sequence)?;
        let order = sequence.order?;
        Some((order, sequence.reorder_depth == Some(0) || !matches!(order.count, OrderCount::Stated(_))))
    }

    /// Reads the header of a slice of H.264 (7.3.3).
    fn avc(&self, slice: &[u8]) -> Option<Slice> {
        let first = *slice.first()?;
        let bytes = unescaped(slice.get(..SLICE_HEADER).unwrap_or(slice));
        let mut bits = BitReader::new(&bytes);
        bits.skip(8)?;
        // First macroblock, type of the slice.
        bits.golomb()?;
        let kind = bits.golomb()?;
        let set = self.pictures.get(&bits.golomb()?)?;
        let (order, is_as_decoded) = self.order(set.sequence)?;
        let (begins, is_anchor) = (first & 0x1f == 5, first & 0x60 != 0);
        let OrderCount::Stated(width) = order.count else {
            return Some(Slice { begins, is_anchor, stated: None, reset: None });
        };
        if is_as_decoded {
            return Some(Slice { begins, is_anchor, stated: None, reset: None });
        }
        bits.skip(if order.has_planes { 2 } else { 0 })?;
        bits.bits(width_of(order.number_bits)?)?;
        let is_field = order.has_fields && bits.flag()?;
        bits.skip(usize::from(is_field))?;
        if begins {
            // idr_pic_id
            bits.golomb()?;
        }
        let low = bits.bits(width_of(width)?)?;
        let marking = set.marking.filter(|_| is_anchor && !begins);
        let has_chroma = self.sequences.get(&set.sequence).is_some_and(|sequence| sequence.chroma_format > 0);
        let start = SliceStart { kind, is_field, has_chroma: has_chroma && !order.has_planes };
        let reset = marking.and_then(|marking| marking.reset(start, &mut bits));
        Some(Slice { begins, is_anchor, stated: Some((i64::from(low), width)), reset })
    }

    /// Reads the header of the first slice of a picture of H.265 (7.3.6.1).
    fn hevc(&self, slice: &[u8]) -> Option<Slice> {
        let (first, second) = (*slice.first()?, *slice.get(1)?);
        let (kind, layer) = (first >> 1 & 0x3f, second & 7);
        let bytes = unescaped(slice.get(..SLICE_HEADER).unwrap_or(slice));
        let mut bits = BitReader::new(&bytes);
        bits.skip(16 + 1)?;
        bits.skip(if (16..=23).contains(&kind) { 1 } else { 0 })?;
        let set = self.pictures.get(&bits.golomb()?)?;
        let (order, is_as_decoded) = self.order(set.sequence)?;
        // Counts begin anew at IDR and BLA pictures. Leading pictures and sub-layer non-reference pictures are no anchors (8.3.1).
        let is_idr = matches!(kind, 19 | 20);
        let begins = is_idr || matches!(kind, 16..=18);
        let is_anchor = layer == 1 && !matches!(kind, 6..=9) && !(kind <= 14 && kind.is_multiple_of(2));
        let OrderCount::Stated(width) = order.count else { return None };
        if is_as_decoded || is_idr {
            let stated = (!is_as_decoded).then_some((0, width));
            return Some(Slice { begins, is_anchor, stated, reset: None });
        }
        bits.skip(set.extra_bits)?;
        bits.golomb()?;
        bits.skip(usize::from(set.has_output_flag))?;
        bits.skip(if order.has_planes { 2 } else { 0 })?;
        let low = bits.bits(width_of(width)?)?;
        Some(Slice { begins, is_anchor, stated: Some((i64::from(low), width)), reset: None })
    }
}

/// Returns the most significant part of a count (H.264 8-3, H.265 8-1). The first argument has both parts of the anchor's count.
/// `most` is the number of values of the least significant part.
fn high_part((high, before): (i64, i64), low: i64, most: i64) -> i64 {
    match low.saturating_sub(before) {
        step if step <= -most / 2 => high.saturating_add(most),
        step if step > most / 2 => high.saturating_sub(most),
        _ => high,
    }
}

fn width_of(bits: u32) -> Option<usize> {
    usize::try_from(bits).ok().filter(|_| bits <= MOST_BITS)
}

/// Reads a picture parameter set (H.264 7.3.2.2, H.265 7.3.2.3.1). Returns its identifier and fields.
fn picture_set(syntax: NalSyntax, set: &[u8]) -> Option<(u32, PictureSet)> {
    let bytes = unescaped(set.get(..PICTURE_SET).unwrap_or(set));
    let mut bits = BitReader::new(&bytes);
    bits.skip(if syntax == NalSyntax::Avc { 8 } else { 16 })?;
    let (id, sequence) = (bits.golomb()?, u8::try_from(bits.golomb()?).ok()?);
    if syntax == NalSyntax::Avc {
        let marking = MarkingSyntax::read(&mut bits);
        return Some((id, PictureSet { sequence, extra_bits: 0, has_output_flag: false, marking }));
    }
    // dependent_slice_segments_enabled_flag
    bits.skip(1)?;
    let has_output_flag = bits.flag()?;
    Some((id, PictureSet { sequence, extra_bits: bits.bits(3)? as usize, has_output_flag, marking: None }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{hex, packed};

    #[test]
    fn counts_wrap() {
        assert_eq!(high_part((0, 14), 2, 16), 16);
        assert_eq!(high_part((16, 2), 14, 16), 0);
        assert_eq!(high_part((16, 2), 6, 16), 16);
    }

    /// The order of libx264 with two B-frames: I, P, b, b.
    #[test]
    fn b_frames_are_shown_before_the_picture_that_they_follow() {
        let mut order = PictureOrder::new(NalSyntax::Avc, 4);
        // High profile without constraints, 16 x 16: chroma 4:2:0, 8 bits, frame_num of 4 bits, counts of 6 bits.
        let sps = packed(&[
            (8, 0x67),
            (8, 100),
            (8, 0),
            (8, 10),
            (1, 1),
            (3, 0b010),
            (1, 1),
            (1, 1),
            (1, 0),
            (1, 0),
            (1, 1),
            (1, 1),
            (3, 0b011),
            (3, 0b011),
            (1, 0),
            (1, 1),
            (1, 1),
            (1, 1),
            (1, 1),
            (1, 0),
            (1, 0),
            (1, 1),
        ]);
        let pps = packed(&[(8, 0x68), (1, 1), (1, 1), (8, 0xff)]);
        assert!(order.describe([&sps[..], &pps]));
        // First macroblock 0, slice type 0, set 0, frame_num, (idr_pic_id 0), count.
        let mut slice = |kind: u32, number: u32, count: u32| {
            let idr: &[(u32, u32)] = if kind & 0x1f == 5 { &[(1, 1)] } else { &[] };
            let head = [(8, kind), (1, 1), (1, 1), (1, 1), (4, number)];
            let unit = packed(&[&head[..], idr, &[(6, count), (8, 0xff)]].concat());
            let picture = [&(unit.len() as u32).to_be_bytes()[..], &unit].concat();
            let PicturePlace { begins, count } = order.next(&picture);
            (begins, count)
        };
        assert_eq!(slice(0x65, 0, 0), (true, 0));
        assert_eq!(slice(0x41, 1, 6), (false, 6));
        assert_eq!([slice(0x01, 2, 2), slice(0x01, 2, 4)], [(false, 2), (false, 4)]);
        assert_eq!(slice(0x41, 2, 38), (false, 38));
        assert_eq!(slice(0x41, 3, 2), (false, 66), "the count has wrapped");
        assert_eq!(slice(0x65, 0, 0), (true, 0));
        assert_eq!(order.next(b"\0\0\0\x01\x41"), PicturePlace { begins: false, count: 1 }, "a damaged slice");
    }

    #[test]
    fn sets_without_reordering_need_no_counts() {
        let mut order = PictureOrder::new(NalSyntax::Avc, 4);
        // Baseline: no B slices.
        let sps = hex("6742c01ed903c56840000003004000000c03c58b92");
        order.describe([&sps[..], &hex("68cb8cb2")[..]]);
        let first = order.next(b"\0\0\0\x02\x65\x88");
        let second = order.next(b"\0\0\0\x02\x41\x9a");
        assert_eq!((first.begins, first.count, second.begins, second.count), (true, 0, false, 1));
    }
}
