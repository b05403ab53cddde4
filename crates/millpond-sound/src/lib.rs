//! Sound of live streams as Opus (RFC 6716), which every peer of WebRTC decodes (RFC 7874 3).
//!
//! [`OpusTranscoder`] takes the access units of a track with AAC, PCM or G.711, and gives packets of Opus of 20 ms. It has no clock and
//! does no input or output: times are those of the units.

mod decoder;
mod resampler;
#[cfg(test)]
mod tests;
mod transcoder;

pub use transcoder::{OpusPacket, OpusTranscoder};
