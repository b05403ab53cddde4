//! HLS playlists (RFC 8216 and its successor draft-pantos-hls-rfc8216bis).
//!
//! Two flavours of one asset: fragmented MP4 at the asset's root, and MPEG-2 TS in `ts/` for players that want it.
//! Subtitles are WebVTT and common to both.

mod keys;
mod media;
mod multivariant;

#[cfg(test)]
mod tests;

pub use media::{iframes, media};
pub use multivariant::multivariant;

/// What segments are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Container {
    /// Fragmented MP4 (CMAF).
    Fmp4,
    /// MPEG-2 transport streams.
    Ts,
}
