//! Periodic broadcast: a title that loops in several phases, and viewers that catch up with one of them.
//!
//! [`Stagger`] tells when phases begin, and [`nearest`] chooses the phase of a viewer. A [`Patch`] is the beginning that the viewer
//! missed. These three are pure. The engine keeps a `Broadcast` for each channel: it knows where the phases are.

mod broadcasts;
mod patch;
mod running;
mod stagger;

pub(crate) use broadcasts::Broadcasts;
pub(crate) use patch::CatchUp;
pub use patch::{JOINED, Patch};
pub(crate) use running::{Broadcast, PhaseSeat};
pub use stagger::{Ahead, BroadcastPhase, MOST_PHASES, PHASES, Stagger, nearest};
