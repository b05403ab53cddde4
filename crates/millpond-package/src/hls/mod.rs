//! HLS playlists (RFC 8216 and its successor draft-pantos-hls-rfc8216bis).
//!
//! An asset has two flavours: fragmented MP4 at the asset's root, and MPEG-2 TS in `ts/` for players that need it. Both
//! share subtitles as WebVTT.

mod date_ranges;
mod entries;
mod groups;
mod keys;
pub mod live;
mod media;
mod multivariant;
mod periods;

#[cfg(test)]
mod tests;

/// The container whose segments a playlist lists.
pub use crate::delivery::container::Container;
pub use media::{iframes, media};
pub use multivariant::{absence, filtered_multivariant, ladder_multivariant, live_multivariant, multivariant};
