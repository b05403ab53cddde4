//! The serving side of Millpond: assets opened from places, HTTP front end, configuration, logs and metrics.
//!
//! It joins the pure crates to the world: [`serve::Server`] is the one place where a server is put together.
//! Inside, `library` turns a path into an asset (objects, indexes, presentation), `front` turns a request into a
//! reply, and `delivery` moves the reply's bytes; `rtsp` is the other front end, with sessions and threads that send. It knows
//! no box layouts and no caching policy.

mod admin;
pub mod config;
mod delivery;
pub mod escape;
mod files;
mod front;
#[cfg(feature = "fuzz")]
#[doc(hidden)]
pub mod fuzzing;
mod library;
pub mod logging;
pub mod metrics;
pub mod priority;
pub mod problem;
mod rtsp;
pub mod serve;
pub mod tls;
mod work;

pub use front::encode;
pub use library::{Container, FolderContent, IndexError, LeftOut, Resource, Route, Survey, Title, Version};
pub use millpond_stream::{Bounds, Groups, Lateness, NoGroups};
pub use rtsp::{BadLine, Users, UsersError};
pub use work::Refusal;
