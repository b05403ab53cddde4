//! When to send for what a viewer will need next: pure, on any clock.
//!
//! A [`Viewer`] knows by its [`Course`] when it will read which byte. A [`Planner`] says, of all viewers of one origin,
//! which slices are to be sent for now and when to ask again. Windows go by the viewer's position; [`Mode::Active`] asks
//! for each slice at the last moment at which it still comes in time, all viewers' slices being sent over one [`Link`]
//! by earliest deadline. The simulator runs the same code.

mod course;
mod link;
mod mode;
mod planner;
mod viewer;

pub use course::Course;
pub use link::{Link, Meter};
pub use mode::{BadMode, Mode};
pub use planner::{Fetch, Planner, Room, ViewerId};
pub use viewer::{Viewer, Wish, latest};

/// Seconds since any fixed moment, or between two.
pub type Seconds = f64;

#[cfg(test)]
mod thin;
