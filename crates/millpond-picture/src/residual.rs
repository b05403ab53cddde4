//! Coefficients of a macroblock, and its reconstruction: prediction, scaling and transforms (8.3 and 8.5).

use crate::{
    DecodeError,
    macroblock::{Kind, Macroblock},
    neighbours::Near,
    parameters::{PictureSet, Scaling},
    picture::Plane,
    predict::{self, Around},
    transform,
};

/// Places of the blocks of 4 by 4 in the order of decoding (6.4.3): column and row.
pub(crate) const PLACES: [(usize, usize); 16] = [
    (0, 0),
    (1, 0),
    (0, 1),
    (1, 1),
    (2, 0),
    (3, 0),
    (2, 1),
    (3, 1),
    (0, 2),
    (1, 2),
    (0, 3),
    (1, 3),
    (2, 2),
    (3, 2),
    (2, 3),
    (3, 3),
];
/// The zigzag scan of blocks of 4 by 4 (table 8-2): places row by row.
const ZIGZAG: [usize; 16] = [0, 1, 4, 8, 5, 2, 3, 6, 9, 12, 13, 10, 7, 11, 14, 15];
/// The same for blocks of 8 by 8 (table 8-3).
const ZIGZAG_8: [usize; 64] = [
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7, 14, 21,
    28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54,
    47, 55, 62, 63,
];
/// `normAdjust4x4` (8-315) by quantizer: for even places, odd places, and others.
const NORM: [[i64; 3]; 6] = [[10, 16, 13], [11, 18, 14], [13, 20, 16], [14, 23, 18], [16, 25, 20], [18, 29, 23]];
/// `normAdjust8x8` (8-318) by quantizer.
const NORM_8: [[i64; 6]; 6] = [
    [20, 18, 32, 19, 25, 24],
    [22, 19, 35, 21, 28, 26],
    [26, 23, 42, 24, 33, 31],
    [28, 25, 45, 26, 35, 33],
    [32, 28, 51, 30, 40, 38],
    [36, 32, 58, 34, 46, 43],
];
/// Quantizers of chroma from 30 on (table 8-15).
const CHROMA: [i32; 22] = [29, 30, 31, 32, 32, 33, 34, 34, 35, 35, 36, 36, 37, 37, 37, 38, 38, 38, 39, 39, 39, 39];
/// Bound of scaled coefficients: more than valid data has, and less than transforms can add up in 32 bits.
const MOST: i64 = 1 << 22;

/// Coefficients of a macroblock in the order of their scans, or its samples.
pub(crate) struct Coefficients {
    pub(crate) luma: [i32; 256],
    pub(crate) luma_dc: [i32; 16],
    pub(crate) chroma: [[[i32; 16]; 4]; 2],
    pub(crate) chroma_dc: [[i32; 4]; 2],
    pub(crate) samples: Vec<u8>,
}

impl Default for Coefficients {
    fn default() -> Self {
        Self {
            luma: [0; 256],
            luma_dc: [0; 16],
            chroma: [[[0; 16]; 4]; 2],
            chroma_dc: [[0; 4]; 2],
            samples: Vec::new(),
        }
    }
}

/// Puts macroblocks into a picture.
pub(crate) struct Reconstruction {
    scaling: Scaling,
    chroma_offsets: [i32; 2],
    has_chroma: bool,
}

/// A macroblock with its coefficients.
type Decoded<'d> = (&'d Macroblock, &'d Coefficients);

impl Reconstruction {
    pub(crate) fn new(set: &PictureSet, has_chroma: bool) -> Self {
        Self { scaling: set.scaling.clone(), chroma_offsets: set.chroma_offsets, has_chroma }
    }

    /// Puts a macroblock into the planes, at a column and row of macroblocks.
    pub(crate) fn put(
        &mut self,
        planes: &mut [Plane; 3],
        (x, y): (usize, usize),
        near: &Near<'_>,
        (own, coefficients): Decoded<'_>,
    ) -> Result<(), DecodeError> {
        let [luma, chroma @ ..] = planes;
        let around = Around {
            left: near.left.is_some(),
            above: near.above.is_some(),
            above_left: near.has_above_left,
            above_right: near.has_above_right,
        };
        let place = (x * 16, y * 16);
        match own.kind {
            Kind::Samples => {
                self.samples(luma, chroma, (x, y), &coefficients.samples);
                return Ok(());
            }
            Kind::Four => self.four(luma, place, around, (own, coefficients))?,
            Kind::Eight => self.eight(luma, place, around, (own, coefficients))?,
            Kind::Sixteen(mode) => self.sixteen(luma, place, (around, mode), (own, coefficients))?,
        }
        if self.has_chroma {
            for (part, plane) in chroma.iter_mut().enumerate() {
                predict::chroma(plane, (x * 8, y * 8), around, own.chroma_mode)?;
                self.chroma(plane, (x * 8, y * 8), part, (own, coefficients));
            }
        }
        Ok(())
    }

    fn samples(&self, luma: &mut Plane, chroma: &mut [Plane], (x, y): (usize, usize), samples: &[u8]) {
        let (of_luma, of_chroma) = samples.split_at(samples.len().min(256));
        luma.put_block((x * 16, y * 16), 16, of_luma);
        for (plane, samples) in chroma.iter_mut().zip(of_chroma.chunks_exact(64)) {
            plane.put_block((x * 8, y * 8), 8, samples);
        }
    }

    fn four(
        &self,
        plane: &mut Plane,
        (x, y): (usize, usize),
        around: Around,
        (own, all): Decoded<'_>,
    ) -> Result<(), DecodeError> {
        for (block, (column, row)) in PLACES.into_iter().enumerate() {
            let place = (x + 4 * column, y + 4 * row);
            predict::block::<4>(plane, place, around.of_block(column, row, 3), own.modes[row * 4 + column])?;
            if own.counts[0][row * 4 + column] > 0 {
                let mut values = scaled(&all.luma[block * 16..][..16], &self.scaling.four[0], own.quantizer, None);
                transform::four(&mut values);
                plane.add(place, 4, &values);
            }
        }
        Ok(())
    }

    fn eight(
        &self,
        plane: &mut Plane,
        (x, y): (usize, usize),
        around: Around,
        (own, all): Decoded<'_>,
    ) -> Result<(), DecodeError> {
        for block in 0..4 {
            let (column, row) = (block % 2, block / 2);
            let place = (x + 8 * column, y + 8 * row);
            predict::block::<8>(plane, place, around.of_block(column, row, 1), own.modes[row * 8 + column * 2])?;
            if own.pattern >> block & 1 == 1 {
                let mut values = scaled_8(&all.luma[block * 64..][..64], &self.scaling.eight, own.quantizer);
                transform::eight(&mut values);
                plane.add(place, 8, &values);
            }
        }
        Ok(())
    }

    fn sixteen(
        &self,
        plane: &mut Plane,
        (x, y): (usize, usize),
        (around, mode): (Around, u8),
        (own, all): Decoded<'_>,
    ) -> Result<(), DecodeError> {
        predict::sixteen(plane, (x, y), around, mode)?;
        let mut dc = [0; 16];
        for (level, place) in all.luma_dc.iter().zip(ZIGZAG) {
            dc[place] = *level;
        }
        transform::hadamard(&mut dc);
        let weights = &self.scaling.four[0];
        let (scale, sixth) = (level_scale(weights, 0, own.quantizer), own.quantizer / 6);
        for (block, (column, row)) in PLACES.into_iter().enumerate() {
            let value = i64::from(dc[row * 4 + column]) * scale;
            let value = if sixth >= 6 { value << (sixth - 6) } else { (value + (1 << (5 - sixth))) >> (6 - sixth) };
            let mut values = scaled(&all.luma[block * 16..][..16], weights, own.quantizer, Some(bounded(value)));
            transform::four(&mut values);
            plane.add((x + 4 * column, y + 4 * row), 4, &values);
        }
        Ok(())
    }

    fn chroma(&self, plane: &mut Plane, (x, y): (usize, usize), part: usize, (own, all): Decoded<'_>) {
        if own.chroma == 0 {
            return;
        }
        let wanted = (own.quantizer + self.chroma_offsets[part]).clamp(0, 51);
        let quantizer =
            usize::try_from(wanted - 30).ok().and_then(|place| CHROMA.get(place)).map_or(wanted, |known| *known);
        let weights = &self.scaling.four[part + 1];
        let scale = level_scale(weights, 0, quantizer);
        let [a, b, c, d] = all.chroma_dc[part].map(i64::from);
        let dc = [a + b + c + d, a - b + c - d, a + b - c - d, a - b - c + d];
        for (block, value) in dc.into_iter().enumerate() {
            let value = ((value * scale) << (quantizer / 6)) >> 5;
            let mut values = scaled(&all.chroma[part][block], weights, quantizer, Some(bounded(value)));
            transform::four(&mut values);
            plane.add((x + 4 * (block % 2), y + 4 * (block / 2)), 4, &values);
        }
    }
}

/// `LevelScale4x4` at a place of the zigzag scan.
fn level_scale(weights: &[u8; 16], scan: usize, quantizer: i32) -> i64 {
    let place = ZIGZAG[scan];
    let (x, y) = (place % 4, place / 4);
    let class = match (x % 2, y % 2) {
        (0, 0) => 0,
        (1, 1) => 1,
        _ => 2,
    };
    i64::from(weights[scan]) * NORM[sixth_rest(quantizer)][class]
}

fn sixth_rest(quantizer: i32) -> usize {
    usize::try_from(quantizer % 6).unwrap_or(0)
}

fn bounded(value: i64) -> i32 {
    i32::try_from(value.clamp(-MOST, MOST)).unwrap_or(0)
}

/// Scales a block of 4 by 4 (8.5.12.1). `dc` is the first value, where that is scaled already. Returns values row by row.
fn scaled(levels: &[i32], weights: &[u8; 16], quantizer: i32, dc: Option<i32>) -> [i32; 16] {
    let mut values = [0; 16];
    let sixth = quantizer / 6;
    for (scan, level) in levels.iter().enumerate().skip(usize::from(dc.is_some())) {
        if *level == 0 {
            continue;
        }
        let value = i64::from(*level) * level_scale(weights, scan, quantizer);
        let value = if sixth >= 4 { value << (sixth - 4) } else { (value + (1 << (3 - sixth))) >> (4 - sixth) };
        values[ZIGZAG[scan]] = bounded(value);
    }
    values[0] = dc.unwrap_or(values[0]);
    values
}

/// Scales a block of 8 by 8 (8.5.13.1).
fn scaled_8(levels: &[i32], weights: &[u8; 64], quantizer: i32) -> [i32; 64] {
    let mut values = [0; 64];
    let sixth = quantizer / 6;
    let norms = NORM_8[sixth_rest(quantizer)];
    for (scan, level) in levels.iter().enumerate() {
        if *level == 0 {
            continue;
        }
        let place = ZIGZAG_8[scan];
        let class = match (place % 8 % 4, place / 8 % 4) {
            (0, 0) => 0,
            (1 | 3, 1 | 3) => 1,
            (2, 2) => 2,
            (0, 1 | 3) | (1 | 3, 0) => 3,
            (0, 2) | (2, 0) => 4,
            _ => 5,
        };
        let value = i64::from(*level) * i64::from(weights[scan]) * norms[class];
        let value = if sixth >= 6 { value << (sixth - 6) } else { (value + (1 << (5 - sixth))) >> (6 - sixth) };
        values[place] = bounded(value);
    }
    values
}

impl Plane {
    /// Adds the result of a transform, `side` values a side, to the prediction.
    fn add(&mut self, (x, y): (usize, usize), side: usize, values: &[i32]) {
        let width = self.width;
        let rows = self.samples.chunks_exact_mut(width).skip(y);
        for (row, values) in rows.zip(values.chunks_exact(side)) {
            let samples = row.get_mut(x..x + side).unwrap_or_default();
            for (sample, value) in samples.iter_mut().zip(values) {
                let sum = i32::from(*sample) + ((value + 32) >> 6);
                *sample = sum.clamp(0, 255) as u8;
            }
        }
    }

    /// Replaces a block of `side` samples a side.
    pub(crate) fn put_block(&mut self, (x, y): (usize, usize), side: usize, samples: &[u8]) {
        let width = self.width;
        let rows = self.samples.chunks_exact_mut(width).skip(y);
        for (row, samples) in rows.zip(samples.chunks_exact(side)) {
            if let Some(row) = row.get_mut(x..x + side) {
                row.copy_from_slice(samples);
            }
        }
    }
}
