//! Decoded pictures.

/// Most samples of a side that scaling makes.
const MOST_SIDE: usize = 4096;

/// A picture in YCbCr 4:2:0 with 8 bits a sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// Luma and both parts of chroma.
    pub(crate) planes: [Plane; 3],
}

/// Samples of one kind, row by row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plane {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) samples: Vec<u8>,
}

impl Picture {
    /// Makes a black picture.
    #[must_use]
    pub fn black(width: usize, height: usize) -> Self {
        let (half_width, half_height) = (width.div_ceil(2), height.div_ceil(2));
        let chroma = || Plane::of(half_width, half_height, 128);
        Self { planes: [Plane::of(width, height, 16), chroma(), chroma()] }
    }

    /// Width in pixels.
    #[must_use]
    pub fn width(&self) -> usize {
        self.planes[0].width
    }

    /// Height in pixels.
    #[must_use]
    pub fn height(&self) -> usize {
        self.planes[0].height
    }

    /// Samples of luma, row by row.
    #[must_use]
    pub fn luma(&self) -> &[u8] {
        &self.planes[0].samples
    }

    /// Returns the variance of luma: 0 for a blank picture, some thousands for one of strong contrasts.
    #[must_use]
    pub fn variance(&self) -> u64 {
        let (mut count, mut sum, mut squares) = (0_u128, 0_u128, 0_u128);
        for sample in self.luma() {
            let sample = u128::from(*sample);
            (count, sum, squares) = (count + 1, sum + sample, squares + sample * sample);
        }
        let variance = (squares * count - sum * sum) / (count * count).max(1);
        u64::try_from(variance).unwrap_or(u64::MAX)
    }

    /// Returns the picture in another size, from 1 to 4096 pixels a side. Each sample is the mean of those that it covers.
    #[must_use]
    pub fn scaled(&self, width: usize, height: usize) -> Self {
        let (width, height) = (width.clamp(1, MOST_SIDE), height.clamp(1, MOST_SIDE));
        let [luma, blue, red] = &self.planes;
        let (half_width, half_height) = (width.div_ceil(2), height.div_ceil(2));
        let planes =
            [luma.scaled(width, height), blue.scaled(half_width, half_height), red.scaled(half_width, half_height)];
        Self { planes }
    }

    /// Returns the picture mirrored from left to right.
    #[must_use]
    pub fn mirrored(self) -> Self {
        Self { planes: self.planes.map(|plane| plane.mirrored()) }
    }

    /// Returns the picture turned clockwise by quarters.
    #[must_use]
    pub fn turned(self, quarters: u8) -> Self {
        (0..quarters % 4).fold(self, |picture, _| Self { planes: picture.planes.map(|plane| plane.turned()) })
    }

    /// Puts a picture over this one. The place of its upper left corner is even; what lies outside is cut off.
    pub fn put(&mut self, picture: &Self, (left, top): (usize, usize)) {
        for (number, (to, from)) in self.planes.iter_mut().zip(&picture.planes).enumerate() {
            let part = if number == 0 { 1 } else { 2 };
            to.put(from, left / part, top / part);
        }
    }
}

impl Plane {
    pub(crate) fn of(width: usize, height: usize, value: u8) -> Self {
        Self { width, height, samples: vec![value; width * height] }
    }

    /// Returns a part of the plane, which lies within it.
    pub(crate) fn part(&self, (left, top): (usize, usize), width: usize, height: usize) -> Self {
        let rows = self.samples.chunks_exact(self.width.max(1)).skip(top).take(height);
        let samples = rows.flat_map(|row| row.get(left..left + width).unwrap_or_default()).copied().collect();
        Self { width, height, samples }
    }

    fn mirrored(mut self) -> Self {
        self.samples.chunks_exact_mut(self.width.max(1)).for_each(<[u8]>::reverse);
        self
    }

    /// Returns the plane turned clockwise by a quarter.
    fn turned(&self) -> Self {
        let column =
            |x: usize| (0..self.height).rev().map(move |y| self.samples.get(y * self.width + x).copied().unwrap_or(0));
        let samples = (0..self.width).flat_map(column).collect();
        Self { width: self.height, height: self.width, samples }
    }

    fn scaled(&self, width: usize, height: usize) -> Self {
        let mut samples = Vec::with_capacity(width * height);
        let mut sums = vec![0_u32; width];
        for y in 0..height {
            let rows = span(y, height, self.height);
            sums.fill(0);
            for row in rows.clone() {
                let row = self.samples.get(row * self.width..(row + 1) * self.width).unwrap_or_default();
                for (x, sum) in sums.iter_mut().enumerate() {
                    let columns = row.get(span(x, width, self.width)).unwrap_or_default();
                    let total: u32 = columns.iter().map(|sample| u32::from(*sample)).sum();
                    *sum += (total << 4) / u32::try_from(columns.len().max(1)).unwrap_or(1);
                }
            }
            let count = u32::try_from(rows.len().max(1)).unwrap_or(1) << 4;
            samples.extend(sums.iter().map(|sum| u8::try_from((sum + count / 2) / count).unwrap_or(u8::MAX)));
        }
        Self { width, height, samples }
    }

    fn put(&mut self, from: &Self, left: usize, top: usize) {
        let width = from.width.min(self.width.saturating_sub(left));
        let rows = self.samples.chunks_exact_mut(self.width.max(1)).skip(top);
        for (to, from) in rows.zip(from.samples.chunks_exact(from.width.max(1))) {
            if let (Some(to), Some(from)) = (to.get_mut(left..left + width), from.get(..width)) {
                to.copy_from_slice(from);
            }
        }
    }
}

/// The samples of a side of `from` that sample `n` of `to` covers: at least one.
fn span(n: usize, to: usize, from: usize) -> std::ops::Range<usize> {
    let start = (n * from / to).min(from.saturating_sub(1));
    let end = ((n + 1) * from / to).clamp(start + 1, from.max(start + 1));
    start..end
}
