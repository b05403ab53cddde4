//! Pushing of streams to other servers, by RTMP.

mod error;
mod pusher;
#[cfg(test)]
mod tests;

pub use error::PushError;
pub use millpond_rtmp::{RtmpUrl, RtmpUrlError};
pub use pusher::RtmpPusher;
