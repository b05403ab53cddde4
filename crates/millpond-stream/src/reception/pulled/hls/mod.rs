//! HLS (RFC 8216bis): each rendition has a playlist, which it reads again and again.

mod decryption;
mod opening;
mod rendition;

pub(super) use rendition::HlsRendition;
