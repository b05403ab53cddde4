//! Macroblocks next to another one in the same slice (6.4.9 and 6.4.11).

use crate::macroblock::{Kind, Macroblock};

/// The macroblocks around one, where they belong to its slice.
pub(crate) struct Near<'m> {
    pub(crate) left: Option<&'m Macroblock>,
    pub(crate) above: Option<&'m Macroblock>,
    /// Whether those above to the left and to the right are there.
    pub(crate) has_above_left: bool,
    pub(crate) has_above_right: bool,
}

impl<'m> Near<'m> {
    pub(crate) fn of(all: &'m [Macroblock], place: usize, wide: usize, slice: u32) -> Self {
        let of_slice = |place: Option<usize>| all.get(place?).filter(|other| other.slice == slice);
        let (is_first, is_last) = (place.is_multiple_of(wide), place % wide == wide - 1);
        let above = place.checked_sub(wide);
        Self {
            left: of_slice(place.checked_sub(1).filter(|_| !is_first)),
            above: of_slice(above),
            has_above_left: of_slice(above.and_then(|above| above.checked_sub(1)).filter(|_| !is_first)).is_some(),
            has_above_right: of_slice(above.map(|above| above + 1).filter(|_| !is_last)).is_some(),
        }
    }

    /// Numbers of coefficients of the blocks to the left of and above a block, `side` blocks a side. `None` outside of the slice.
    pub(crate) fn counts(
        &self,
        own: &Macroblock,
        plane: usize,
        (x, y): (usize, usize),
        side: usize,
    ) -> [Option<u8>; 2] {
        let of = |macroblock: &Macroblock, x: usize, y: usize| macroblock.counts[plane][y * side + x];
        let left = if x > 0 { Some(of(own, x - 1, y)) } else { self.left.map(|left| of(left, side - 1, y)) };
        let above = if y > 0 { Some(of(own, x, y - 1)) } else { self.above.map(|above| of(above, x, side - 1)) };
        [left, above]
    }

    /// Modes of intra prediction of the blocks to the left of and above a block of 4 by 4. `None` outside of the slice.
    pub(crate) fn modes(&self, own: &Macroblock, (x, y): (usize, usize)) -> [Option<u8>; 2] {
        let left = if x > 0 { Some(own.modes[y * 4 + x - 1]) } else { self.left.map(|left| left.modes[y * 4 + 3]) };
        let above = if y > 0 { Some(own.modes[y * 4 + x - 4]) } else { self.above.map(|above| above.modes[12 + x]) };
        [left, above]
    }

    /// A value of both neighbours; `None` outside of the slice.
    pub(crate) fn each<T>(&self, of: impl Fn(&Macroblock) -> T) -> [Option<T>; 2] {
        [self.left.map(&of), self.above.map(&of)]
    }

    /// Number of neighbours for which something is true, the one above counted `weight` times.
    pub(crate) fn sum(&self, weight: usize, of: impl Fn(&Macroblock) -> bool) -> usize {
        let [left, above] = self.each(of).map(|is| usize::from(is.unwrap_or(false)));
        left + weight * above
    }

    /// Whether the DC coefficients of a plane of both neighbours are coded. Outside of the slice counts as coded.
    pub(crate) fn dc(&self, plane: usize) -> [bool; 2] {
        let coded = |other: &Macroblock| match other.kind {
            Kind::Samples => true,
            Kind::Sixteen(_) => other.dc[plane],
            _ => plane > 0 && other.dc[plane],
        };
        self.each(coded).map(|is| is.unwrap_or(true))
    }
}
