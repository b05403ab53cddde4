//! Which frames a slow viewer loses.

/// Rule by which the frames that wait for one viewer are dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dropping {
    /// Frames that no other frame needs are dropped first, then frames of higher temporal layers, then the end of a group of
    /// pictures. The remaining frames can be decoded.
    #[default]
    LeastNeeded,
    /// Frames that arrive while the queue is full are dropped, even if other frames need them. This rule is for comparisons.
    Blind,
}

impl Dropping {
    /// All rules, in the order of their names.
    const EACH: [Self; 2] = [Self::LeastNeeded, Self::Blind];
    /// Names of the rules.
    pub const NAMES: [&'static str; 2] = ["least-needed", "blind"];

    /// Finds a rule by its name.
    pub fn named(name: &str) -> Option<Self> {
        Self::EACH.into_iter().find(|rule| rule.name() == name)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}
