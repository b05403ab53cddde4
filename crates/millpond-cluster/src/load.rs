//! The load that a node publishes.

use super::Bitrate;

/// The load of a node, as the node published it last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Bandwidth of all streams and responses that are under way.
    pub rate: Bitrate,
    /// Number of sessions.
    pub sessions: u32,
}
