//! Macroblocks of I slices (7.3.5).

use crate::{
    DecodeError,
    bits::BitReader,
    cabac::Cabac,
    cavlc,
    neighbours::Near,
    parameters::PictureSet,
    residual::{Coefficients, PLACES},
};

/// Bytes of the samples of a macroblock with chroma.
const SAMPLES: usize = 384;

/// `coded_block_pattern` of intra macroblocks by code number (table 9-4), with and without chroma.
const PATTERNS: [u8; 48] = [
    47, 31, 15, 0, 23, 27, 29, 30, 7, 11, 13, 14, 39, 43, 45, 46, 16, 3, 5, 10, 12, 19, 21, 26, 28, 35, 37, 42, 44, 1,
    2, 4, 8, 17, 18, 20, 24, 6, 9, 22, 25, 32, 33, 34, 36, 40, 38, 41,
];
const GREY_PATTERNS: [u8; 16] = [15, 0, 7, 11, 13, 14, 3, 5, 10, 12, 1, 2, 4, 8, 6, 9];

/// How luma is predicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Kind {
    /// By blocks of 4 by 4.
    #[default]
    Four,
    /// By blocks of 8 by 8.
    Eight,
    /// As a whole, by a mode.
    Sixteen(u8),
    /// Not at all: the samples are coded as they are.
    Samples,
}

/// The fields of a macroblock that later macroblocks and the reconstruction need.
#[derive(Clone, Debug, Default)]
pub(crate) struct Macroblock {
    /// Number of its slice, from 1; 0 before it is decoded.
    pub(crate) slice: u32,
    pub(crate) kind: Kind,
    /// Modes of its blocks of 4 by 4, row by row.
    pub(crate) modes: [u8; 16],
    /// Numbers of coefficients of its blocks, row by row: 4 by 4 of luma, 2 by 2 of each part of chroma.
    pub(crate) counts: [[u8; 16]; 3],
    /// Blocks of 8 by 8 with coefficients, a bit each.
    pub(crate) pattern: u8,
    /// Coefficients of chroma: 0 none, 1 DC, 2 all.
    pub(crate) chroma: u8,
    pub(crate) chroma_mode: u8,
    /// Whether DC coefficients are coded, of luma as a whole and of each part of chroma.
    pub(crate) dc: [bool; 3],
    /// Quantizer of luma.
    pub(crate) quantizer: i32,
}

/// Kind of a block of coefficients (table 9-42).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Block {
    LumaDc,
    /// Luma without DC.
    LumaAc,
    Luma,
    ChromaDc,
    ChromaAc,
    /// Luma of 8 by 8, by CABAC.
    Eight,
}

enum Entropy<'a> {
    Cavlc(BitReader<'a>),
    Cabac(Box<Cabac<'a>>),
}

/// Reads the macroblocks of a slice.
pub(crate) struct Reader<'a> {
    entropy: Entropy<'a>,
    has_transform_8: bool,
    quantizer: i32,
    /// Whether the macroblock before changed the quantizer.
    has_changed: bool,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(mut bits: BitReader<'a>, set: &PictureSet, quantizer: i32) -> Self {
        let entropy = if set.is_cabac {
            bits.align();
            Entropy::Cabac(Box::new(Cabac::new(bits, quantizer)))
        } else {
            Entropy::Cavlc(bits)
        };
        Self { entropy, has_transform_8: set.has_transform_8, quantizer, has_changed: false }
    }

    /// Whether there is a macroblock. With CABAC each one says whether it is the last.
    pub(crate) fn has_more(&self) -> bool {
        match &self.entropy {
            Entropy::Cavlc(bits) => bits.has_more(),
            Entropy::Cabac(_) => true,
        }
    }

    /// Whether the macroblock that was read is the last one.
    pub(crate) fn ends(&mut self) -> Result<bool, DecodeError> {
        match &mut self.entropy {
            Entropy::Cavlc(_) => Ok(false),
            Entropy::Cabac(cabac) => {
                let ends = cabac.terminates();
                if cabac.is_exhausted() { Err(DecodeError::Truncated("a macroblock")) } else { Ok(ends) }
            }
        }
    }

    /// Reads a macroblock.
    pub(crate) fn macroblock(
        &mut self,
        near: &Near<'_>,
        has_chroma: bool,
        slice: u32,
        coefficients: &mut Coefficients,
    ) -> Result<Macroblock, DecodeError> {
        let mut own = Macroblock { slice, modes: [2; 16], ..Macroblock::default() };
        let kind = match &mut self.entropy {
            Entropy::Cavlc(bits) => bits.ue_at_most(25, "kind of a macroblock")?,
            Entropy::Cabac(cabac) => cabac.kind(near),
        };
        match kind {
            0 => self.blocks(&mut own, near)?,
            25 => return self.samples(own, has_chroma, coefficients),
            _ => {
                let kind = u8::try_from(kind - 1).unwrap_or(0);
                own.kind = Kind::Sixteen(kind % 4);
                own.chroma = kind / 4 % 3;
                own.pattern = if kind >= 12 { 15 } else { 0 };
            }
        }
        if has_chroma {
            own.chroma_mode = match &mut self.entropy {
                Entropy::Cavlc(bits) => bits.ue_at_most(3, "mode of chroma")? as u8,
                Entropy::Cabac(cabac) => cabac.chroma_mode(near),
            };
        }
        let is_whole = matches!(own.kind, Kind::Sixteen(_));
        if !is_whole {
            self.pattern(&mut own, near, has_chroma)?;
        } else if !has_chroma && own.chroma > 0 {
            return Err(DecodeError::Invalid("chroma of a grey picture"));
        }
        let has_residual = is_whole || own.pattern > 0 || own.chroma > 0;
        self.change_quantizer(has_residual)?;
        own.quantizer = self.quantizer;
        if has_residual {
            self.residual(&mut own, near, coefficients)?;
        }
        Ok(own)
    }

    /// Reads the modes of blocks.
    fn blocks(&mut self, own: &mut Macroblock, near: &Near<'_>) -> Result<(), DecodeError> {
        let is_eight = self.has_transform_8
            && match &mut self.entropy {
                Entropy::Cavlc(bits) => bits.flag()?,
                Entropy::Cabac(cabac) => cabac.is_transform_8(near),
            };
        own.kind = if is_eight { Kind::Eight } else { Kind::Four };
        for block in (0..16).step_by(if is_eight { 4 } else { 1 }) {
            let (x, y) = PLACES[block];
            let stated = match &mut self.entropy {
                Entropy::Cavlc(bits) => {
                    if bits.flag()? {
                        None
                    } else {
                        Some(bits.bits(3)? as u8)
                    }
                }
                Entropy::Cabac(cabac) => cabac.mode(),
            };
            let predicted = match near.modes(own, (x, y)) {
                [Some(left), Some(above)] => left.min(above),
                _ => 2,
            };
            let mode = stated.map_or(predicted, |mode| mode + u8::from(mode >= predicted));
            let side = if is_eight { 2 } else { 1 };
            for (dx, dy) in [(0, 0), (1, 0), (0, 1), (1, 1)].into_iter().take(side * side) {
                own.modes[(y + dy) * 4 + x + dx] = mode;
            }
        }
        Ok(())
    }

    /// Reads the samples of a macroblock that has no prediction.
    fn samples(
        &mut self,
        mut own: Macroblock,
        has_chroma: bool,
        coefficients: &mut Coefficients,
    ) -> Result<Macroblock, DecodeError> {
        let count = if has_chroma { SAMPLES } else { 256 };
        let samples = match &mut self.entropy {
            Entropy::Cavlc(bits) => bits.aligned_bytes(count)?,
            Entropy::Cabac(cabac) => cabac.samples(count)?,
        };
        coefficients.samples.extend_from_slice(samples);
        self.has_changed = false;
        own.kind = Kind::Samples;
        own.counts = [[16; 16]; 3];
        (own.pattern, own.chroma, own.dc) = (15, 2, [true; 3]);
        Ok(own)
    }

    fn pattern(&mut self, own: &mut Macroblock, near: &Near<'_>, has_chroma: bool) -> Result<(), DecodeError> {
        let pattern = match &mut self.entropy {
            Entropy::Cavlc(bits) if has_chroma => PATTERNS[bits.ue_at_most(47, "coded block pattern")?],
            Entropy::Cavlc(bits) => GREY_PATTERNS[bits.ue_at_most(15, "coded block pattern")?],
            Entropy::Cabac(cabac) => cabac.pattern(near, has_chroma),
        };
        (own.pattern, own.chroma) = (pattern & 15, pattern >> 4);
        Ok(())
    }

    fn change_quantizer(&mut self, has_residual: bool) -> Result<(), DecodeError> {
        let mut change = 0;
        if has_residual {
            change = match &mut self.entropy {
                Entropy::Cavlc(bits) => bits.se_within(-26, 25, "change of the quantizer")?,
                Entropy::Cabac(cabac) => cabac.quantizer(self.has_changed)?,
            };
        }
        self.has_changed = change != 0;
        self.quantizer = (self.quantizer + change + 52).rem_euclid(52);
        Ok(())
    }

    /// Reads the coefficients (7.3.5.3).
    fn residual(&mut self, own: &mut Macroblock, near: &Near<'_>, to: &mut Coefficients) -> Result<(), DecodeError> {
        let is_whole = matches!(own.kind, Kind::Sixteen(_));
        if is_whole {
            let dc = &mut to.luma_dc;
            own.dc[0] = self.block(Block::LumaDc, (own, near), (0, (0, 0)), dc)? > 0;
        }
        for (block, (x, y)) in PLACES.into_iter().enumerate() {
            if own.pattern >> (block / 4) & 1 == 0 {
                continue;
            }
            let at = block * 16;
            if own.kind == Kind::Eight {
                self.eight(own, near, block, to)?;
                continue;
            }
            let (kind, skipped) = if is_whole { (Block::LumaAc, 1) } else { (Block::Luma, 0) };
            let out = &mut to.luma[at + skipped..at + 16];
            own.counts[0][y * 4 + x] = self.block(kind, (own, near), (0, (x, y)), out)?;
        }
        if own.chroma == 0 {
            return Ok(());
        }
        for part in 0..2 {
            let dc = &mut to.chroma_dc[part];
            own.dc[part + 1] = self.block(Block::ChromaDc, (own, near), (part + 1, (0, 0)), dc)? > 0;
        }
        if own.chroma < 2 {
            return Ok(());
        }
        for part in 0..2 {
            for block in 0..4 {
                let place = (block % 2, block / 2);
                let out = &mut to.chroma[part][block][1..];
                own.counts[part + 1][block] = self.block(Block::ChromaAc, (own, near), (part + 1, place), out)?;
            }
        }
        Ok(())
    }

    /// Reads a block of 8 by 8: as a whole by CABAC, as four interleaved ones by CAVLC.
    fn eight(
        &mut self,
        own: &mut Macroblock,
        near: &Near<'_>,
        block: usize,
        to: &mut Coefficients,
    ) -> Result<(), DecodeError> {
        let (x, y) = PLACES[block];
        match &mut self.entropy {
            Entropy::Cabac(cabac) => {
                if block.is_multiple_of(4) {
                    let out = &mut to.luma[block * 16..block * 16 + 64];
                    let count = cabac.coefficients(Block::Eight, out)?.max(1);
                    for (dx, dy) in [(0, 0), (1, 0), (0, 1), (1, 1)] {
                        own.counts[0][(y + dy) * 4 + x + dx] = count;
                    }
                }
            }
            Entropy::Cavlc(_) => {
                let mut levels = [0; 16];
                own.counts[0][y * 4 + x] = self.block(Block::Luma, (own, near), (0, (x, y)), &mut levels)?;
                let at = block / 4 * 64 + block % 4;
                for (n, level) in levels.into_iter().enumerate() {
                    to.luma[at + 4 * n] = level;
                }
            }
        }
        Ok(())
    }

    /// Reads a block into `out`, in the order of its scan. Returns the number of its coefficients.
    fn block(
        &mut self,
        kind: Block,
        (own, near): (&Macroblock, &Near<'_>),
        (plane, place): (usize, (usize, usize)),
        out: &mut [i32],
    ) -> Result<u8, DecodeError> {
        let side = if plane == 0 { 4 } else { 2 };
        let around = || near.counts(own, plane, place, side);
        match &mut self.entropy {
            Entropy::Cavlc(bits) => {
                let context = match (kind, around()) {
                    (Block::ChromaDc, _) => None,
                    (_, [Some(left), Some(above)]) => Some((left + above).div_ceil(2)),
                    (_, [one, other]) => Some(one.or(other).unwrap_or(0)),
                };
                cavlc::coefficients(bits, context, out)
            }
            Entropy::Cabac(cabac) => {
                let [left, above] = match kind {
                    Block::LumaDc | Block::ChromaDc => near.dc(plane),
                    // Outside of the slice counts as coded.
                    _ => around().map(|count| count.is_none_or(|count| count > 0)),
                };
                if cabac.is_coded(kind, usize::from(left) + 2 * usize::from(above)) {
                    cabac.coefficients(kind, out)
                } else {
                    Ok(0)
                }
            }
        }
    }
}
