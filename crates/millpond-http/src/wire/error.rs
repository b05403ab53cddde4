//! The reason for which a reply ended early.

use crate::body::BodyError;
use std::io;

/// An error that ended a reply early.
#[derive(Debug, thiserror::Error)]
pub enum ReplyError {
    /// A failure of the connection, or a client that takes too little.
    #[error("client: {0}")]
    Client(#[from] io::Error),
    /// The token of the request has ended.
    #[error("the token of the request has ended")]
    Expired,
    /// A failure of the storage or the media.
    #[error("{0}")]
    Body(#[from] BodyError),
    /// An operator ended the reply.
    #[error("ended by an operator")]
    Kicked,
}

impl ReplyError {
    /// Converts the error for the end of a connection.
    pub(super) fn into_io(self) -> io::Error {
        match self {
            Self::Client(error) => error,
            error @ Self::Expired => io::Error::other(error),
            Self::Body(error) => io::Error::other(error),
            Self::Kicked => io::ErrorKind::ConnectionAborted.into(),
        }
    }
}
