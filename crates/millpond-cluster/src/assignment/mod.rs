//! Assignment of objects to dispensers.

mod answer;
mod best;
mod round_robin;
mod sosd;
#[cfg(test)]
mod tests;

pub use answer::{Answer, Candidate, Standing};
pub(crate) use best::Best;
pub use round_robin::RoundRobin;
pub use sosd::Sosd;

use super::{Bitrate, Loads, NodeName, ObjectKey, loads::Dispenser};
use std::{fmt, str::FromStr};

/// A stream that needs a dispenser.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The object that the stream plays.
    pub key: &'a ObjectKey,
    /// Its bandwidth.
    pub rate: Bitrate,
    /// Number of the request at its manager, for round robin.
    pub turn: u64,
    /// The book of the dispensers; `None` where measured loads alone tell whether a dispenser is full.
    pub rooms: Option<&'a dyn Rooms>,
}

/// Tells whether a stream fits a dispenser for its whole playback.
pub trait Rooms: fmt::Debug {
    /// Whether a dispenser has the stream's bandwidth until it ends.
    fn has_room(&self, dispenser: &NodeName) -> bool;
}

impl Request<'_> {
    /// Whether the stream is more than a dispenser has.
    fn is_too_much(&self, dispenser: &Dispenser) -> bool {
        match self.rooms {
            Some(rooms) => !rooms.has_room(&dispenser.name),
            None => dispenser.load.plus(self.rate) > dispenser.capacity,
        }
    }
}

/// A rule that assigns streams to dispensers. It has no state: all nodes get the same answer from the same loads.
pub trait Assignment: fmt::Debug + Send + Sync {
    /// Its name.
    fn name(&self) -> AssignmentName;

    /// The dispensers for a stream, the best first. Nodes that drain are not among them, nor those that [differ](crate::View::seen_by) in its place. `loads` may remember what it found on the way;
    /// that changes no answer.
    fn assign(&self, loads: &mut Loads, request: &Request<'_>) -> Answer;
}

/// The rules by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, PartialOrd, Ord, Hash)]
pub enum AssignmentName {
    /// [`Sosd`].
    #[default]
    Sosd,
    /// [`RoundRobin`].
    RoundRobin,
}

impl AssignmentName {
    /// All rules.
    pub const ALL: [Self; 2] = [Self::Sosd, Self::RoundRobin];

    /// The name as text.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sosd => "sosd",
            Self::RoundRobin => "rr",
        }
    }

    /// The rule, with its defaults.
    pub fn rule(self) -> Box<dyn Assignment> {
        match self {
            Self::Sosd => Box::new(Sosd::default()),
            Self::RoundRobin => Box::new(RoundRobin),
        }
    }
}

impl fmt::Display for AssignmentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for AssignmentName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|name| name.as_str() == text);
        found.ok_or_else(|| format!("{text:?}: expected sosd or rr"))
    }
}
