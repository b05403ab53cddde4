//! An answer, and its reasons.

use crate::{Bitrate, NodeName, loads::Dispenser};
use std::fmt;

/// The dispensers for a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// Dispensers, the best first: those with room, then those above their bound, then full ones.
    pub candidates: Vec<Candidate>,
    /// Number of dispensers that were compared.
    pub compared: usize,
}

/// A dispenser of an [`Answer`].
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// Its name.
    pub name: NodeName,
    /// Its score for the object, of which the largest wins; 0 with round robin.
    pub score: f64,
    /// Whether the stream fits.
    pub standing: Standing,
    /// Load that it was counted with.
    pub load: Bitrate,
    /// Load up to which it gets streams; its capacity with round robin.
    pub bound: Bitrate,
}

/// Whether a stream fits a dispenser.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Standing {
    /// It has room.
    Room,
    /// It would have more than its bound, while others have less.
    AboveBound,
    /// It would have more than its capacity.
    Full,
}

impl Answer {
    /// The best dispenser, if it is not full.
    pub fn best(&self) -> Option<&Candidate> {
        self.candidates.first().filter(|first| first.standing != Standing::Full)
    }
}

impl Candidate {
    pub(super) fn new(dispenser: &Dispenser, score: f64, standing: Standing, bound: Bitrate) -> Self {
        Self { name: dispenser.name.clone(), score, standing, load: dispenser.load, bound }
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Room => "has room",
            Self::AboveBound => "above its bound",
            Self::Full => "full",
        })
    }
}

impl fmt::Display for Answer {
    /// A line for each dispenser: name, standing, load and bound. Scores compare dispensers of one standing only, so they are left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (rank, candidate) in self.candidates.iter().enumerate() {
            let Candidate { name, standing, load, bound, .. } = candidate;
            writeln!(f, "{}. {name}: {standing}, load {load} of at most {bound}", rank + 1)?;
        }
        match (self.candidates.is_empty(), self.compared) {
            (true, _) => f.write_str("no dispenser takes streams"),
            (false, 1) => f.write_str("of 1 dispenser"),
            (false, compared) => write!(f, "of {compared} dispensers"),
        }
    }
}
