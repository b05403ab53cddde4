//! What players get of a presentation: its segments, and what a server must know about them.

pub(crate) mod container;
mod opening;
pub(crate) mod stretch;
pub mod text_track;
pub mod thumbnails;
pub mod transport;
