//! Why a stream can't be pushed.

use millpond_rtmp::RtmpError;
use std::{io, time::Duration};

/// Why a stream can't be pushed, or not any longer. The words contain neither the key of the stream nor any query.
#[derive(Debug, thiserror::Error)]
pub enum PushError {
    /// No connection was possible, or it ended.
    #[error("{0}")]
    Connection(#[from] io::Error),
    /// The server closed the connection.
    #[error("the server closed the connection")]
    Closed,
    /// The server refuses the stream, or violates the protocol.
    #[error("{0}")]
    Protocol(#[from] RtmpError),
    /// The server ends the stream, for the reason in these words.
    #[error("{0}")]
    Ended(&'static str),
    /// The server did not answer, or took nothing, for this long.
    #[error("{what}: waited for {:.1} s", after.as_secs_f64())]
    TimedOut {
        /// The event that did not come.
        what: &'static str,
        /// For how long.
        after: Duration,
    },
    /// RTMP can't carry the leading track, or tracks that changed their codecs.
    #[error("RTMP can't carry the tracks of this stream")]
    Unfit,
}

impl PushError {
    /// Whether another attempt can succeed while neither the stream nor the URL changes.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        !matches!(self, Self::Unfit)
    }
}
