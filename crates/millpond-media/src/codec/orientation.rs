//! Orientation of pictures: how a player rotates and mirrors decoded pictures.

use serde::{Deserialize, Serialize};

/// How pictures are turned for display: mirrored from left to right, then rotated clockwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Orientation {
    is_mirrored: bool,
    quarters: u8,
}

impl Orientation {
    /// Pictures that are shown as they are.
    pub const UPRIGHT: Self = Self { is_mirrored: false, quarters: 0 };

    /// Returns the orientation of pictures that are rotated clockwise by a multiple of 90 degrees.
    #[must_use]
    pub const fn rotated(degrees: u16) -> Self {
        Self { is_mirrored: false, quarters: (degrees / 90 % 4) as u8 }
    }

    /// Returns the orientation of pictures that are mirrored before they are rotated.
    #[must_use]
    pub const fn mirrored(self) -> Self {
        Self { is_mirrored: true, ..self }
    }

    /// Returns the nearest one of a matrix (ISO/IEC 14496-12 6.2.2) with the rows `a`, `b` and `c`, `d`: a point on the right
    /// moves to (a, b), and one below to (c, d), with y pointing down.
    pub(crate) fn of_matrix([a, b, c, d]: [i32; 4]) -> Self {
        let product = |x: i32, y: i32| i64::from(x) * i64::from(y);
        let is_mirrored = product(a, d) < product(b, c);
        // The point that is on the right once the picture is mirrored.
        let (a, b) = if is_mirrored { (a.saturating_neg(), b.saturating_neg()) } else { (a, b) };
        let (wide, high) = (a.unsigned_abs(), b.unsigned_abs());
        let quarters = match (wide >= high, a < 0, b < 0) {
            (true, false, _) => 0,
            (true, true, _) => 2,
            (false, _, false) => 1,
            (false, _, true) => 3,
        };
        Self { is_mirrored, quarters }
    }

    /// The matrix without its last row and column: a, b, c and d, each -1, 0 or 1.
    #[must_use]
    pub const fn matrix(self) -> [i32; 4] {
        let [a, b, c, d] = match self.quarters {
            1 => [0, 1, -1, 0],
            2 => [-1, 0, 0, -1],
            3 => [0, -1, 1, 0],
            _ => [1, 0, 0, 1],
        };
        if self.is_mirrored { [-a, -b, c, d] } else { [a, b, c, d] }
    }

    /// Number of clockwise quarter turns, below 4.
    #[must_use]
    pub const fn quarters(self) -> u8 {
        self.quarters
    }

    /// Clockwise rotation in degrees.
    #[must_use]
    pub const fn degrees(self) -> u16 {
        self.quarters as u16 * 90
    }

    /// Whether pictures are mirrored.
    #[must_use]
    pub const fn is_mirrored(self) -> bool {
        self.is_mirrored
    }

    /// Whether width and height change places.
    #[must_use]
    pub const fn is_sideways(self) -> bool {
        self.quarters % 2 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_clockwise() {
        let degrees = |matrix| Orientation::of_matrix(matrix).degrees();
        assert_eq!([[1, 0, 0, 1], [0, 1, -1, 0], [-1, 0, 0, -1], [0, -1, 1, 0]].map(degrees), [0, 90, 180, 270]);
        assert_eq!(degrees([i32::MIN, i32::MIN, 0, 0]), 180);
    }

    #[test]
    fn matrices_come_back() {
        for turned in [0, 90, 180, 270].map(Orientation::rotated) {
            for orientation in [turned, turned.mirrored()] {
                let matrix = orientation.matrix().map(|number| number << 16);
                assert_eq!(Orientation::of_matrix(matrix), orientation, "{matrix:?}");
            }
        }
        let upside_down = Orientation::of_matrix([1, 0, 0, -1]);
        assert_eq!(upside_down, Orientation::rotated(180).mirrored(), "mirrored from top to bottom");
    }
}
