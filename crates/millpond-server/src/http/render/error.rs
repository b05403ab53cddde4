//! Why a resource or file can't be the answer to a request.

use crate::{http::body::BodyError, library::LibraryError, problem};
use http::StatusCode;
use millpond_store::OriginError;

/// Why a resource or file can't be the answer to a request.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum AnswerError {
    /// The asset can't be opened, or has no such resource.
    #[error(transparent)]
    Library(#[from] LibraryError),
    /// The first bytes of a resource can't be read or made.
    #[error("{asset}: {why}")]
    Unreadable {
        /// Path of the asset with its place.
        asset: String,
        /// The fault.
        why: String,
    },
    /// Only cached bytes were asked for, and some are not cached.
    #[error("{0}: not all of it is cached")]
    NotCached(String),
    /// A request of this server came back to it through another cache.
    #[error("{0}: the request has been here before: places of caches lead in a circle")]
    Loop(String),
}

impl From<OriginError> for AnswerError {
    fn from(error: OriginError) -> Self {
        Self::Library(error.into())
    }
}

impl AnswerError {
    /// Converts the error of a body. `asset` is the path of the asset or file.
    pub(crate) fn of_body(asset: &str, error: BodyError) -> Self {
        let asset = asset.to_owned();
        match error {
            BodyError::Origin(error) => error.into(),
            BodyError::Package(error) => LibraryError::Package { asset, error: error.into() }.into(),
            error => Self::Unreadable { asset, why: error.to_string() },
        }
    }

    /// Returns the status code of the reply.
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::Library(error) => problem::status(error),
            Self::Unreadable { .. } => StatusCode::INTERNAL_SERVER_ERROR,
            // `only-if-cached` (RFC 9111 5.2.1.7).
            Self::NotCached(_) => StatusCode::GATEWAY_TIMEOUT,
            // `CDN-Loop` (RFC 8586).
            Self::Loop(_) => StatusCode::LOOP_DETECTED,
        }
    }

    /// Returns whether an object changed after it was opened. The next attempt opens the new version.
    pub(crate) fn is_changed(&self) -> bool {
        matches!(self, Self::Library(error) if error.is_changed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_of_requests_and_media_have_their_status() {
        let path = || "films/a.mp4".to_owned();
        for (error, expected) in [
            (AnswerError::NotCached(path()), 504),
            (AnswerError::Loop(path()), 508),
            (AnswerError::Unreadable { asset: path(), why: "the file ended".to_owned() }, 500),
            (LibraryError::NoAsset(path()).into(), 404),
        ] {
            assert_eq!(error.status().as_u16(), expected, "{error}");
        }
    }
}
