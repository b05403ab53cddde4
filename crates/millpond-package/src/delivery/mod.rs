//! Segments and texts of a presentation for players, and the facts by which a server opens and reads them.

pub(crate) mod container;
mod opening;
pub(crate) mod stretch;
pub mod text_track;
pub mod thumbnails;
pub mod transport;
