//! The serving side of Millpond: HTTP and RTSP front ends, configuration, logs and metrics.
//!
//! It joins the pure crates to the world: [`serve::Server`] is the one place where a server is put together.
//! `millpond_library` turns a path into an asset (objects, indexes, presentation). Inside, [`http`] turns a request into a reply
//! and moves its bytes. `rtsp` is the other front end, with sessions and threads that send; `rtmp` takes streams. The crate knows no box layouts and no
//! caching policy.

mod admin;
mod announce;
mod audience;
mod bit_rate;
mod cluster;
pub mod config;
pub mod doctor;
mod doubts;
mod engine;
mod events;
pub mod failover;
mod hooks;
pub mod http;
pub mod intercept;
pub mod interfaces;
pub mod lab;
mod limits;
mod live;
pub mod metrics;
mod minutely;
pub mod modules;
#[cfg(feature = "transcode-sound")]
mod opus;
mod own_streams;
pub mod priority;
pub mod problem;
pub mod recordings;
pub mod reload;
mod rtmp;
mod rtsp;
pub mod schedule;
pub mod serve;
mod srt;
mod statistics;
pub mod storage;
pub mod upgrade;
#[cfg(test)]
mod walls;
mod webrtc;
mod week;
mod wire;

pub(crate) use millpond_library as library;
pub(crate) use millpond_library::work;

pub use doubts::doubts;
pub use millpond_stream::{Bounds, Groups, Lateness, NoGroups};
