//! RTSP signalling as state machines: no sockets, no clock. Bytes and times come in; replies and actions go out.
//!
//! An [`Arrival`] tells what a connection begins with. A [`Dialogue`] is one RTSP connection: it splits bytes into requests,
//! gives [`Action`]s for those that need the library or the stream engine, and writes replies. [`Sessions`] has the sessions of
//! all connections and decides when they end. A [`Course`] is the state of one session between PLAY, PAUSE and the end.
//!
//! Times are durations since one moment, which is the same for all of them.

#![cfg_attr(not(test), forbid(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types))]

mod action;
mod answer;
mod arrival;
mod ask;
mod channels;
mod course;
mod dialogue;
mod sessions;
mod time_range;

#[cfg(test)]
mod tests;

pub(super) use action::{Action, Announce, Asked, Ended, Named, Outcome, SetUp, Step};
pub(super) use arrival::{Arrival, Kind};
#[cfg(feature = "intercept")]
pub(super) use ask::path as path_of;
pub(super) use course::Course;
pub(super) use dialogue::{Dialogue, Terms};
pub(super) use sessions::{Sessions, Signs, Viewer};
pub(super) use time_range::{TimeRange, clock};
