//! Intra prediction (8.3).

use crate::{DecodeError, picture::Plane};

/// Modes of blocks of 4 by 4 and 8 by 8 (tables 8-2 and 8-3).
const VERTICAL: u8 = 0;
const HORIZONTAL: u8 = 1;
const DC: u8 = 2;
const DOWN_LEFT: u8 = 3;
const DOWN_RIGHT: u8 = 4;
const VERTICAL_RIGHT: u8 = 5;
const HORIZONTAL_DOWN: u8 = 6;
const VERTICAL_LEFT: u8 = 7;
const HORIZONTAL_UP: u8 = 8;

/// The mode needs samples that are not there.
const ABSENT: DecodeError = DecodeError::Invalid("mode of prediction at an edge");

/// The samples around a block that are available.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Around {
    pub(crate) left: bool,
    pub(crate) above: bool,
    pub(crate) above_left: bool,
    pub(crate) above_right: bool,
}

impl Around {
    /// The same for a block inside of a macroblock. `last` is the number of the last column of blocks.
    pub(crate) fn of_block(self, column: usize, row: usize, last: usize) -> Self {
        let above_right = match (column, row) {
            (_, 0) if column == last => self.above_right,
            (_, 0) => self.above,
            _ if column == last => false,
            // Of blocks of 4 by 4, what lies in the next block of 8 by 8 is decoded later.
            _ => !(last == 3 && column == 1 && row % 2 == 1),
        };
        let above_left = match (column, row) {
            (0, 0) => self.above_left,
            (0, _) => self.left,
            (_, 0) => self.above,
            _ => true,
        };
        Self { left: column > 0 || self.left, above: row > 0 || self.above, above_left, above_right }
    }
}

/// Samples around a block of `N` by `N`: those to the left from below to above, the corner, those above and to the right.
struct Edge<const N: usize> {
    samples: [i32; 25],
}

impl<const N: usize> Edge<N> {
    /// Sample at a row left of the block; -1 is the corner.
    fn left(&self, y: isize) -> i32 {
        self.samples[N.wrapping_add_signed(-1 - y)]
    }

    /// Sample at a column above the block; -1 is the corner.
    fn above(&self, x: isize) -> i32 {
        self.samples[(N + 1).wrapping_add_signed(x)]
    }

    fn of(plane: &Plane, (x, y): (usize, usize), around: Around) -> Self {
        let mut samples = [128; 25];
        let at = |x: usize, y: usize| plane.samples.get(y * plane.width + x).map_or(128, |sample| i32::from(*sample));
        if around.left {
            for row in 0..N {
                samples[N - 1 - row] = at(x - 1, y + row);
            }
        }
        if around.above_left {
            samples[N] = at(x - 1, y - 1);
        }
        if around.above {
            for column in 0..N {
                samples[N + 1 + column] = at(x + column, y - 1);
            }
            for column in N..2 * N {
                samples[N + 1 + column] = if around.above_right { at(x + column, y - 1) } else { samples[2 * N] };
            }
        }
        Self { samples }
    }

    /// The filtered samples, for blocks of 8 by 8 (8.3.2.2.1).
    fn filtered(&self, around: Around) -> Self {
        let mut samples = self.samples;
        let mix = |a: i32, b: i32, c: i32| (a + 2 * b + c + 2) >> 2;
        let last = 2 * N as isize - 1;
        if around.above {
            let before = if around.above_left { self.above(-1) } else { self.above(0) };
            samples[N + 1] = mix(before, self.above(0), self.above(1));
            for x in 1..last {
                samples[(N + 1).wrapping_add_signed(x)] = mix(self.above(x - 1), self.above(x), self.above(x + 1));
            }
            samples[(N + 1).wrapping_add_signed(last)] = mix(self.above(last - 1), self.above(last), self.above(last));
        }
        if around.left {
            let before = if around.above_left { self.left(-1) } else { self.left(0) };
            samples[N - 1] = mix(before, self.left(0), self.left(1));
            for y in 1..N as isize - 1 {
                samples[N.wrapping_add_signed(-1 - y)] = mix(self.left(y - 1), self.left(y), self.left(y + 1));
            }
            let last = N as isize - 1;
            samples[0] = mix(self.left(last - 1), self.left(last), self.left(last));
        }
        if around.above_left {
            let corner = self.samples[N];
            samples[N] = match (around.left, around.above) {
                (true, true) => mix(self.above(0), corner, self.left(0)),
                (false, true) => mix(corner, corner, self.above(0)),
                (true, false) => mix(corner, corner, self.left(0)),
                (false, false) => corner,
            };
        }
        Self { samples }
    }

    /// The mean of the samples to the left and above, as far as they are there.
    fn mean(&self, around: Around) -> i32 {
        let sum = |samples: &[i32]| samples.iter().sum::<i32>();
        let (left, above) = (sum(&self.samples[..N]), sum(&self.samples[N + 1..=2 * N]));
        let n = N as i32;
        match (around.left, around.above) {
            (true, true) => (left + above + n) / (2 * n),
            (true, false) => (left + n / 2) / n,
            (false, true) => (above + n / 2) / n,
            (false, false) => 128,
        }
    }

    /// A sample of the directional modes.
    fn directed(&self, mode: u8, x: isize, y: isize) -> i32 {
        let two = |a: i32, b: i32| (a + b + 1) >> 1;
        let three = |a: i32, b: i32, c: i32| (a + 2 * b + c + 2) >> 2;
        let n = N as isize;
        // Along the edge, from below on the left (0) over the corner (N) to the right above.
        let along = |place: isize| self.samples[0_usize.saturating_add_signed(place)];
        match mode {
            DOWN_LEFT if x + y == 2 * n - 2 => {
                three(self.above(2 * n - 2), self.above(2 * n - 1), self.above(2 * n - 1))
            }
            DOWN_LEFT => three(self.above(x + y), self.above(x + y + 1), self.above(x + y + 2)),
            DOWN_RIGHT => three(along(n + x - y - 1), along(n + x - y), along(n + x - y + 1)),
            VERTICAL_RIGHT => {
                let (place, column) = (2 * x - y, x - (y >> 1));
                match place {
                    ..-1 => three(self.left(y - 2 * x - 1), self.left(y - 2 * x - 2), self.left(y - 2 * x - 3)),
                    -1 => three(self.left(0), self.left(-1), self.above(0)),
                    _ if place % 2 == 0 => two(self.above(column - 1), self.above(column)),
                    _ => three(self.above(column - 2), self.above(column - 1), self.above(column)),
                }
            }
            HORIZONTAL_DOWN => {
                let (place, row) = (2 * y - x, y - (x >> 1));
                match place {
                    ..-1 => three(self.above(x - 2 * y - 1), self.above(x - 2 * y - 2), self.above(x - 2 * y - 3)),
                    -1 => three(self.left(0), self.left(-1), self.above(0)),
                    _ if place % 2 == 0 => two(self.left(row - 1), self.left(row)),
                    _ => three(self.left(row - 2), self.left(row - 1), self.left(row)),
                }
            }
            VERTICAL_LEFT => {
                let column = x + (y >> 1);
                if y % 2 == 0 {
                    two(self.above(column), self.above(column + 1))
                } else {
                    three(self.above(column), self.above(column + 1), self.above(column + 2))
                }
            }
            _ => {
                let (place, row) = (x + 2 * y, y + (x >> 1));
                let last = 2 * n - 3;
                if place > last {
                    self.left(n - 1)
                } else if place == last {
                    three(self.left(n - 2), self.left(n - 1), self.left(n - 1))
                } else if place % 2 == 0 {
                    two(self.left(row), self.left(row + 1))
                } else {
                    three(self.left(row), self.left(row + 1), self.left(row + 2))
                }
            }
        }
    }
}

/// Predicts a block of `N` by `N`, which is 4 or 8.
pub(crate) fn block<const N: usize>(
    plane: &mut Plane,
    place: (usize, usize),
    around: Around,
    mode: u8,
) -> Result<(), DecodeError> {
    let is_possible = match mode {
        VERTICAL | DOWN_LEFT | VERTICAL_LEFT => around.above,
        HORIZONTAL | HORIZONTAL_UP => around.left,
        DC => true,
        _ => around.left && around.above && around.above_left,
    };
    if !is_possible || mode > HORIZONTAL_UP {
        return Err(ABSENT);
    }
    let edge = Edge::<N>::of(plane, place, around);
    let edge = if N == 8 { edge.filtered(around) } else { edge };
    let mean = edge.mean(around);
    fill(plane, place, N, |x, y| match mode {
        VERTICAL => edge.above(x),
        HORIZONTAL => edge.left(y),
        DC => mean,
        _ => edge.directed(mode, x, y),
    });
    Ok(())
}

/// Predicts luma of 16 by 16 (8.3.3).
pub(crate) fn sixteen(plane: &mut Plane, place: (usize, usize), around: Around, mode: u8) -> Result<(), DecodeError> {
    let sides = Sides::<16>::of(plane, place, around);
    match mode {
        0 if around.above => fill(plane, place, 16, |x, _| sides.above[x.unsigned_abs()]),
        1 if around.left => fill(plane, place, 16, |_, y| sides.left[y.unsigned_abs()]),
        2 => {
            let mean = mean(around.left.then_some(&sides.left[..]), around.above.then_some(&sides.above[..]));
            fill(plane, place, 16, |_, _| mean);
        }
        3 if around.left && around.above && around.above_left => sides.slope(plane, place, 5, 6),
        _ => return Err(ABSENT),
    }
    Ok(())
}

/// Predicts chroma of 8 by 8 (8.3.4).
pub(crate) fn chroma(plane: &mut Plane, place: (usize, usize), around: Around, mode: u8) -> Result<(), DecodeError> {
    let sides = Sides::<8>::of(plane, place, around);
    match mode {
        0 => {
            for (column, row) in [(0, 0), (1, 0), (0, 1), (1, 1)] {
                let left = around.left.then_some(&sides.left[4 * row..4 * row + 4]);
                let above = around.above.then_some(&sides.above[4 * column..4 * column + 4]);
                let mean = match (column, row) {
                    (1, 0) => mean(left.filter(|_| above.is_none()), above),
                    (0, 1) => mean(left, above.filter(|_| left.is_none())),
                    _ => mean(left, above),
                };
                fill(plane, (place.0 + 4 * column, place.1 + 4 * row), 4, |_, _| mean);
            }
        }
        1 if around.left => fill(plane, place, 8, |_, y| sides.left[y.unsigned_abs()]),
        2 if around.above => fill(plane, place, 8, |x, _| sides.above[x.unsigned_abs()]),
        3 if around.left && around.above && around.above_left => sides.slope(plane, place, 34, 6),
        _ => return Err(ABSENT),
    }
    Ok(())
}

/// The mean of samples; 128 without any.
fn mean(left: Option<&[i32]>, above: Option<&[i32]>) -> i32 {
    let (mut sum, mut count) = (0, 0);
    for samples in [left, above].into_iter().flatten() {
        sum += samples.iter().sum::<i32>();
        count += samples.len() as i32;
    }
    if count == 0 { 128 } else { (sum + count / 2) / count }
}

/// Samples to the left of, above and at the corner of a block of `N` by `N`.
struct Sides<const N: usize> {
    left: [i32; N],
    above: [i32; N],
    corner: i32,
}

impl<const N: usize> Sides<N> {
    fn of(plane: &Plane, (x, y): (usize, usize), around: Around) -> Self {
        let at = |x: usize, y: usize| plane.samples.get(y * plane.width + x).map_or(128, |sample| i32::from(*sample));
        Self {
            left: std::array::from_fn(|row| if around.left { at(x - 1, y + row) } else { 128 }),
            above: std::array::from_fn(|column| if around.above { at(x + column, y - 1) } else { 128 }),
            corner: if around.above_left { at(x - 1, y - 1) } else { 128 },
        }
    }

    /// Predicts a plane through the sides (8.3.3.4 and 8.3.4.4).
    fn slope(&self, plane: &mut Plane, place: (usize, usize), factor: i32, shift: i32) {
        let half = N / 2;
        let along = |side: &[i32; N]| -> i32 {
            let differences = (0..half).map(|n| {
                let before = if n + 1 == half { self.corner } else { side[half - 2 - n] };
                (n as i32 + 1) * (side[half + n] - before)
            });
            differences.sum()
        };
        let half_step = 1 << (shift - 1);
        let b = (factor * along(&self.above) + half_step) >> shift;
        let c = (factor * along(&self.left) + half_step) >> shift;
        let a = 16 * (self.left[N - 1] + self.above[N - 1]);
        let middle = half as i32 - 1;
        fill(plane, place, N, |x, y| (a + b * (x as i32 - middle) + c * (y as i32 - middle) + 16) >> 5);
    }
}

/// Fills a block of `side` samples a side.
fn fill(plane: &mut Plane, (x, y): (usize, usize), side: usize, value: impl Fn(isize, isize) -> i32) {
    let width = plane.width;
    let rows = plane.samples.chunks_exact_mut(width).skip(y).take(side);
    for (row, samples) in rows.enumerate() {
        let samples = samples.get_mut(x..x + side).unwrap_or_default();
        for (column, sample) in samples.iter_mut().enumerate() {
            *sample = value(column as isize, row as isize).clamp(0, 255) as u8;
        }
    }
}
