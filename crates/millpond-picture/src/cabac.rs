//! CABAC (9.3) for I slices.

use crate::{
    DecodeError,
    bits::BitReader,
    macroblock::{Block, Kind},
    neighbours::Near,
    tables::{AFTER_LEAST, CONTEXTS, RANGES},
};

/// Offsets of contexts by kind of block (table 9-34 and 9-40): coded block flag, significance, last, level.
const OFFSETS: [[usize; 4]; 6] = [
    [85, 105, 166, 227],
    [89, 120, 181, 237],
    [93, 134, 195, 247],
    [97, 149, 210, 257],
    [101, 152, 213, 266],
    [0, 402, 417, 426],
];
/// Contexts of significance and of the last coefficient of blocks of 8 by 8, by place (table 9-43).
const EIGHT: [u8; 63] = [
    0, 1, 2, 3, 4, 5, 5, 4, 4, 3, 3, 4, 4, 4, 5, 5, 4, 4, 4, 4, 3, 3, 6, 7, 7, 7, 8, 9, 10, 9, 8, 7, 7, 6, 11, 12, 13,
    11, 6, 7, 8, 9, 14, 10, 9, 8, 6, 11, 12, 13, 11, 6, 9, 14, 10, 9, 11, 12, 13, 11, 14, 10, 12,
];
const EIGHT_LAST: [u8; 63] = [
    0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3,
    3, 3, 4, 4, 4, 4, 4, 4, 4, 4, 5, 5, 5, 5, 6, 6, 6, 6, 7, 7, 7, 7, 8, 8, 8,
];
/// Bits past the end of the data that valid data may need.
const SLACK: usize = 32;
/// Ones before the suffix of a level (`uCoff`, 9.3.2.5), and most bits of that suffix.
const LEVEL_PREFIX: i32 = 14;
const MOST_SUFFIX: u32 = 20;

/// Decodes the bins of a slice.
pub(crate) struct Cabac<'a> {
    bits: BitReader<'a>,
    range: u32,
    offset: u32,
    /// Bits that were read past the end.
    past: usize,
    /// State and most probable symbol of each context.
    contexts: [(u8, bool); CONTEXTS.len()],
}

impl<'a> Cabac<'a> {
    /// Begins a slice at a byte.
    pub(crate) fn new(bits: BitReader<'a>, quantizer: i32) -> Self {
        let contexts = CONTEXTS.map(|(m, n)| {
            let state = ((i32::from(m) * quantizer) >> 4) + i32::from(n);
            let state = u8::try_from(state.clamp(1, 126)).unwrap_or(1);
            if state <= 63 { (63 - state, false) } else { (state - 64, true) }
        });
        let mut cabac = Self { bits, range: 0, offset: 0, past: 0, contexts };
        cabac.begin();
        cabac
    }

    fn begin(&mut self) {
        self.range = 510;
        self.offset = (0..9).fold(0, |value, _| value << 1 | self.bit());
    }

    fn bit(&mut self) -> u32 {
        if self.bits.left() == 0 {
            self.past += 1;
            return 0;
        }
        self.bits.bit_or_zero()
    }

    /// Whether more was read than there is.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.past > SLACK
    }

    fn decide(&mut self, context: usize) -> bool {
        let Some(known) = self.contexts.get_mut(context) else { return false };
        let (state, most) = *known;
        let least = u32::from(RANGES[usize::from(state & 63)][(self.range >> 6 & 3) as usize]);
        self.range -= least;
        let is_most = self.offset < self.range;
        if is_most {
            *known = (state.saturating_add(1).min(62), most);
        } else {
            self.offset -= self.range;
            self.range = least;
            *known = (AFTER_LEAST[usize::from(state & 63)], most ^ (state == 0));
        }
        while self.range < 256 {
            self.range <<= 1;
            self.offset = self.offset << 1 | self.bit();
        }
        most == is_most
    }

    fn bypass(&mut self) -> bool {
        self.offset = self.offset << 1 | self.bit();
        let is_one = self.offset >= self.range;
        if is_one {
            self.offset -= self.range;
        }
        is_one
    }

    /// Decodes the bin that ends slices, and comes before samples.
    pub(crate) fn terminates(&mut self) -> bool {
        self.range -= 2;
        if self.offset >= self.range {
            return true;
        }
        while self.range < 256 {
            self.range <<= 1;
            self.offset = self.offset << 1 | self.bit();
        }
        false
    }

    /// Returns the samples of a macroblock without prediction, and begins anew behind them.
    pub(crate) fn samples(&mut self, count: usize) -> Result<&'a [u8], DecodeError> {
        let samples = self.bits.aligned_bytes(count)?;
        self.begin();
        Ok(samples)
    }

    /// Decodes `mb_type` (9.3.3.1.1.3 and table 9-36).
    pub(crate) fn kind(&mut self, near: &Near<'_>) -> usize {
        let is_other = |kind: Kind| !matches!(kind, Kind::Four | Kind::Eight);
        if !self.decide(3 + near.sum(1, |other| is_other(other.kind))) {
            return 0;
        }
        if self.terminates() {
            return 25;
        }
        let mut kind = 1 + 12 * usize::from(self.decide(6));
        if self.decide(7) {
            kind += 4 + 4 * usize::from(self.decide(8));
        }
        kind += 2 * usize::from(self.decide(9));
        kind + usize::from(self.decide(10))
    }

    /// Decodes `transform_size_8x8_flag`.
    pub(crate) fn is_transform_8(&mut self, near: &Near<'_>) -> bool {
        self.decide(399 + near.sum(1, |other| other.kind == Kind::Eight))
    }

    /// Decodes the mode of a block; `None` where it is the predicted one.
    pub(crate) fn mode(&mut self) -> Option<u8> {
        if self.decide(68) {
            return None;
        }
        Some((0..3).fold(0, |mode, bit| mode | u8::from(self.decide(69)) << bit))
    }

    /// Decodes `intra_chroma_pred_mode`.
    pub(crate) fn chroma_mode(&mut self, near: &Near<'_>) -> u8 {
        if !self.decide(64 + near.sum(1, |other| other.chroma_mode != 0)) {
            return 0;
        }
        if !self.decide(67) {
            return 1;
        }
        2 + u8::from(self.decide(67))
    }

    /// Decodes `coded_block_pattern`.
    pub(crate) fn pattern(&mut self, near: &Near<'_>, has_chroma: bool) -> u8 {
        let mut pattern = 0_u8;
        let around = near.each(|other| other.pattern);
        for block in 0..4 {
            let (x, y) = (block % 2, block / 2);
            let is_empty = |pattern: u8, block: usize| usize::from(pattern >> block & 1 == 0);
            let left =
                if x == 1 { is_empty(pattern, block - 1) } else { around[0].map_or(0, |p| is_empty(p, block + 1)) };
            let above =
                if y == 1 { is_empty(pattern, block - 2) } else { around[1].map_or(0, |p| is_empty(p, block + 2)) };
            pattern |= u8::from(self.decide(73 + left + 2 * above)) << block;
        }
        if has_chroma && self.decide(77 + near.sum(2, |other| other.chroma != 0)) {
            let is_whole = self.decide(81 + near.sum(2, |other| other.chroma == 2));
            pattern |= if is_whole { 32 } else { 16 };
        }
        pattern
    }

    /// Decodes `mb_qp_delta`.
    pub(crate) fn quantizer(&mut self, has_changed: bool) -> Result<i32, DecodeError> {
        let mut context = usize::from(has_changed);
        let mut value = 0;
        while self.decide(60 + context) {
            context = 2 + (context >> 1);
            value += 1;
            if value > 104 {
                return Err(DecodeError::Invalid("change of the quantizer"));
            }
        }
        Ok(if value % 2 == 1 { (value + 1) / 2 } else { -(value / 2) })
    }

    /// Decodes `coded_block_flag`.
    pub(crate) fn is_coded(&mut self, kind: Block, context: usize) -> bool {
        self.decide(OFFSETS[kind as usize][0] + context)
    }

    /// Decodes a block of which some coefficients are not 0 (7.3.5.3.3). Returns their number.
    pub(crate) fn coefficients(&mut self, kind: Block, out: &mut [i32]) -> Result<u8, DecodeError> {
        let [_, significance, last, level] = OFFSETS[kind as usize];
        let mut places = [0_u8; 64];
        let mut count = 0;
        let end = out.len() - 1;
        let mut place = 0;
        while place < end {
            let (of_place, of_last) = match kind {
                Block::Eight => (usize::from(EIGHT[place]), usize::from(EIGHT_LAST[place])),
                Block::ChromaDc => (place.min(2), place.min(2)),
                _ => (place, place),
            };
            if self.decide(significance + of_place) {
                places[count] = place as u8;
                count += 1;
                if self.decide(last + of_last) {
                    break;
                }
            }
            place += 1;
        }
        if place == end {
            places[count] = end as u8;
            count += 1;
        }
        let (mut ones, mut larger) = (0, 0);
        let most_larger = if kind == Block::ChromaDc { 3 } else { 4 };
        for place in places.iter().take(count).rev() {
            let first = if larger > 0 { 0 } else { 4.min(1 + ones) };
            let mut value = 1;
            if self.decide(level + first) {
                let context = level + 5 + most_larger.min(larger);
                value += 1;
                while value <= LEVEL_PREFIX && self.decide(context) {
                    value += 1;
                }
                if value > LEVEL_PREFIX {
                    value += self.suffix()?;
                }
                larger += 1;
            } else {
                ones += 1;
            }
            let is_negative = self.bypass();
            if let Some(out) = out.get_mut(usize::from(*place)) {
                *out = if is_negative { -value } else { value };
            }
        }
        if self.is_exhausted() {
            return Err(DecodeError::Truncated("coefficients"));
        }
        Ok(count as u8)
    }

    /// Decodes the suffix of a level, by Exp-Golomb code of order 0.
    fn suffix(&mut self) -> Result<i32, DecodeError> {
        let (mut value, mut length) = (0, 0);
        while self.bypass() {
            value += 1 << length;
            length += 1;
            if length > MOST_SUFFIX {
                return Err(DecodeError::Invalid("level of a coefficient"));
            }
        }
        for bit in (0..length).rev() {
            value += i32::from(self.bypass()) << bit;
        }
        Ok(value)
    }
}
