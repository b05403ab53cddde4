//! The part of a file that an item shows.

use std::{fmt, time::Duration};

/// A part of a file's presentation; all of it by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct StitchClip {
    /// Time at which the part begins.
    pub from: Duration,
    /// Time at which the part ends; `None` for the end of the file.
    pub to: Option<Duration>,
}

impl fmt::Display for StitchClip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}s-", self.from.as_secs_f64())?;
        self.to.map_or(Ok(()), |to| write!(f, "{}s", to.as_secs_f64()))
    }
}
