//! Frames, the pipes that they go through, and the graph of the modules between which those lie (AMPS, rows A2 and A3).
//!
//! A [`Frame`] is one access unit, passed by reference. A [`pipe`](pipe()) takes frames from one module to the next, by
//! the run, a bounded number of them; who sends waits while it is full. A [`Fork`] gives the same frames to all who join,
//! and waits for nobody. A [`Graph`] knows which modules and pipes there
//! are, for whoever asks, and forgets them when they are dropped.
//!
//! What it does not know: signalling protocols, payload formats, where frames come from and go to.
#![cfg_attr(not(test), forbid(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types))]

mod fork;
mod frame;
mod graph;
mod pipe;

pub use fork::{Branch, Fork};
pub use frame::Frame;
pub use graph::{Edge, Graph, Member, Node, NodeId, Picture};
pub use pipe::{Gone, Inlet, Outlet, Room, Run, pipe};
