//! Decides when to fetch the slices that viewers will need: pure, on any clock.
//!
//! A [`Course`] tells a [`Viewer`] when it will read which byte. A [`Planner`] holds all viewers of one origin. It
//! returns the slices to fetch now, and the time of its next call. Windows follow the viewer's position.
//! [`Mode::Active`] fetches each slice at the last moment at which it still arrives in time; the slices of all viewers
//! share one link by earliest deadline. A [`Meter`] measures that link. The simulator drives the same [`Planner`] and
//! [`Meter`] on a virtual clock.

mod course;
mod link;
mod mode;
mod planner;
mod start;
mod viewer;

pub use course::Course;
pub(crate) use course::CoursePart;
pub use link::{LinkEstimate, LinkLanes, LinkState, Meter};
pub use mode::{BadMode, Mode};
pub use planner::{Fetch, Planner, SPACING, ViewerId};
pub(crate) use start::Beginning;
pub use start::PlaySpan;
pub use viewer::Viewer;

/// Seconds since a fixed moment, or between two moments.
pub type Seconds = f64;

#[cfg(test)]
mod thin;
