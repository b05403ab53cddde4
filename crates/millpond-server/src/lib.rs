//! The serving side of Millpond: assets opened from places, HTTP front end, configuration, logs and metrics.
//!
//! It joins the pure crates to the world: [`serve::Server`] is the one place where a server is put together.
//! Inside, `library` turns a path into an asset (objects, indexes, presentation). [`http`] turns a request into a reply and
//! moves its bytes. `rtsp` is the other front end, with sessions and threads that send. The crate knows no box layouts and no
//! caching policy.

mod admin;
pub mod config;
pub mod escape;
mod files;
#[cfg(feature = "fuzz")]
#[doc(hidden)]
pub mod fuzzing;
pub mod http;
mod library;
pub mod logging;
pub mod metrics;
pub mod priority;
pub mod problem;
mod rtsp;
pub mod serve;
pub mod tls;
mod work;

pub use self::http::request::uri::encode;
pub use library::{Container, FolderContent, IndexError, LeftOut, Resource, Route, Survey, Title, Version};
pub use rtsp::{BadLine, Bounds, Groups, Lateness, NoGroups, Users, UsersError};
pub use work::Refusal;
