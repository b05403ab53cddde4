//! Why an asset can't be had.

use crate::work::Refusal;
use millpond_media::MediaError;
use millpond_package::PackageError;
use millpond_store::OriginError;

/// Why an object has no index.
#[derive(Clone, Debug, thiserror::Error)]
pub enum IndexError {
    /// Its bytes can't be read.
    #[error("{0}")]
    Origin(#[from] OriginError),
    /// Its bytes are not playable media.
    #[error("{object}: {error}")]
    Media {
        /// Path of the object in its place.
        object: String,
        /// What is wrong, and where.
        error: MediaError,
    },
    /// The server has no room for the work now.
    #[error("{object}: {refusal}")]
    Refused {
        /// Path of the object in its place.
        object: String,
        /// What there is no room for.
        refusal: Refusal,
    },
}

/// Why an asset can't be opened, or has no such resource.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum LibraryError {
    #[error("{0}")]
    Index(#[from] IndexError),
    #[error("{asset}: {error}")]
    Package { asset: String, error: std::sync::Arc<PackageError> },
    /// The server has no room for the work now.
    #[error("{asset}: {refusal}")]
    Refused { asset: String, refusal: Refusal },
    /// A folder is too large to be one title.
    #[error("{folder}: found {found} {what} files, expected at most {most} in a folder that is one asset")]
    TooMany { folder: String, what: &'static str, found: usize, most: usize },
    #[error("{0}: no such asset")]
    NoAsset(String),
    #[error("{asset}: {what}")]
    NoResource { asset: String, what: String },
    #[error("{path}: {why}")]
    BadPath { path: String, why: String },
    #[error("{manifest}: {why}")]
    Manifest { manifest: String, why: String },
    /// The client wants only what is cached (RFC 9111 5.2.1.7).
    #[error("{0}: not all of it is cached")]
    NotCached(String),
    /// The request went out from here and came back (RFC 8586).
    #[error("{0}: the request has been here before: places of caches lead in a circle")]
    Loop(String),
}

impl From<OriginError> for LibraryError {
    fn from(error: OriginError) -> Self {
        Self::Index(error.into())
    }
}

impl LibraryError {
    /// HTTP status that says it.
    pub(crate) fn status(&self) -> http::StatusCode {
        use http::StatusCode as S;
        match self {
            Self::Index(IndexError::Origin(error)) => S::from_u16(error.status()).unwrap_or(S::BAD_GATEWAY),
            // The client asked rightly; the stored media is at fault (RFC 9110 15.5.16 is about requests).
            Self::Index(IndexError::Media { .. })
            | Self::Package { .. }
            | Self::Manifest { .. }
            | Self::TooMany { .. } => S::UNPROCESSABLE_ENTITY,
            Self::Index(IndexError::Refused { refusal, .. }) | Self::Refused { refusal, .. } => refusal.status(),
            Self::NoAsset(_) | Self::NoResource { .. } => S::NOT_FOUND,
            Self::BadPath { .. } => S::BAD_REQUEST,
            Self::NotCached(_) => S::GATEWAY_TIMEOUT,
            Self::Loop(_) => S::LOOP_DETECTED,
        }
    }
}
