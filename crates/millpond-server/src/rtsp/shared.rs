//! The stream of a connection that can play no other.

use millpond_stream::Program;

/// The one stream that a connection can play.
#[derive(Clone, Debug)]
pub(crate) struct SharedStream {
    /// Decoded path of its URL, without slashes at its ends.
    pub(crate) path: String,
    pub(crate) program: Program,
}
