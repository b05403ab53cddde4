//! The serving side of Millpond: HTTP and RTSP front ends, configuration, logs and metrics.
//!
//! It joins the pure crates to the world: [`serve::Server`] is the one place where a server is put together.
//! `millpond_library` turns a path into an asset (objects, indexes, presentation). Inside, [`http`] turns a request into a reply
//! and moves its bytes. `rtsp` is the other front end, with sessions and threads that send; `rtmp` takes streams. The crate knows no box layouts and no
//! caching policy.

pub mod access;
mod admin;
mod audience;
mod buckets;
mod cluster;
pub mod config;
pub mod doctor;
mod doubts;
mod engine;
pub mod escape;
mod files;
pub mod http;
pub mod intercept;
pub mod interfaces;
mod kernel_pipe;
pub mod lab;
mod limits;
mod listeners;
mod live;
pub mod logging;
pub mod metrics;
pub mod network;
pub mod priority;
pub mod problem;
pub mod proxies;
mod random;
pub mod recordings;
pub mod reload;
mod rtmp;
mod rtsp;
pub mod serve;
pub mod settings;
mod slots;
pub mod storage;
mod tally;
pub mod tls;
pub mod traces;
pub mod upgrade;
pub mod uri;
#[cfg(test)]
mod walls;

pub(crate) use millpond_library as library;
pub(crate) use millpond_library::work;

pub use access::{BadLine, Users, UsersError};
pub use doubts::doubts;
pub use listeners::{BindError, Inherited};
pub use millpond_stream::{Bounds, Groups, Lateness, NoGroups};
pub use uri::encode;
