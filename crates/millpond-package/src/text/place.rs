//! Places of texts on the screen, as SSA numbers them.

/// One of nine places: a key of the number pad.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place(u8);

impl Default for Place {
    /// At the bottom, in the middle.
    fn default() -> Self {
        Self(2)
    }
}

impl Place {
    /// Returns the place of a key (`\an`, ASS styles): 1 to 3 at the bottom, 7 to 9 at the top.
    pub(super) fn of_keypad(key: u8) -> Option<Self> {
        (1..=9).contains(&key).then_some(Self(key))
    }

    /// Returns the place of a number of SSA (`\a`): 1 to 3 at the bottom, 5 to 7 at the top, 9 to 11 in the middle.
    pub(super) fn of_ssa(number: u8) -> Option<Self> {
        match number {
            1..=3 => Some(Self(number)),
            5..=7 => Some(Self(number + 2)),
            9..=11 => Some(Self(number - 5)),
            _ => None,
        }
    }

    /// Returns the cue settings (WebVTT 4.4); empty for the default position.
    pub(super) const fn settings(self) -> &'static str {
        match self.0 {
            1 => "position:0% align:left",
            3 => "position:100% align:right",
            4 => "line:50% position:0% align:left",
            5 => "line:50%",
            6 => "line:50% position:100% align:right",
            7 => "line:0 position:0% align:left",
            8 => "line:0",
            9 => "line:0 position:100% align:right",
            _ => "",
        }
    }

    /// Alignment of the text at its anchor.
    pub(super) const fn align(self) -> &'static str {
        match self.0 % 3 {
            1 => "left",
            2 => "center",
            _ => "right",
        }
    }

    /// Part of the text above its anchor.
    pub(super) const fn part_above(self) -> f64 {
        match self.0 {
            1..=3 => 1.0,
            4..=6 => 0.5,
            _ => 0.0,
        }
    }
}
