//! FLAC (RFC 9639): encodes PCM without loss.
//!
//! [`FlacEncoder`] writes the frames of a [`FlacStream`]. A frame depends on its number and its values alone, so it has the same bytes
//! wherever it is made. Predictors are the fixed ones, which need no floating point. [`values`] reads the integers of PCM and G.711.

mod bits;
mod frame;
mod pcm;
mod predictor;
mod rice;
mod stream;
mod subframe;
#[cfg(test)]
mod tests;

pub(crate) use frame::FlacEncoder;
pub(crate) use pcm::is_rounded;
pub use pcm::{bits, values};
pub(crate) use stream::{FlacStream, Numbering};
