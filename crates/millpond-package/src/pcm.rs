//! Values of PCM and G.711.

pub use crate::flac::{bits, values};
