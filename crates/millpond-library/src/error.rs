//! Why an asset can't be had.

use crate::work::Refusal;
use millpond_media::{Foreign, MediaError};
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
    /// Its bytes are media in a format that is not read.
    #[error("{object}: {}", Self::explained(object.rsplit('/').next().unwrap_or(object), *format))]
    Foreign {
        /// Path of the object in its place.
        object: String,
        /// The format.
        format: Foreign,
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

impl IndexError {
    /// What a file is that has no index, and the command that makes one of it that has.
    #[must_use]
    pub fn explained(name: &str, format: Foreign) -> String {
        let made = format.command(name).map_or_else(String::new, |command| format!("; to make one: {command}"));
        format!("is {}, expected an ISO base media file (MP4, MOV, 3GP ...){made}", format.name())
    }

    /// Whether more bytes behind an object of `object_len` bytes could cure it.
    pub(crate) fn is_cut_short(&self, object_len: u64) -> bool {
        matches!(self, Self::Media { error, .. } if error.is_cut_short(object_len))
    }
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
    /// A folder holds several titles.
    #[error("{folder}: found {found}, expected one title in a folder that is an asset")]
    NotOneTitle { folder: String, found: String },
    /// A folder holds media that is not served, and no other.
    #[error("{folder}: found no media file but {found}")]
    OnlyForeign { folder: String, found: String },
    /// More bytes are on their way.
    #[error("{path}: still being copied: found {len} bytes so far, the last a moment ago")]
    BeingCopied { path: String, len: u64 },
    #[error("{0}: no such asset")]
    NoAsset(String),
    #[error("{asset}: {what}")]
    NoResource { asset: String, what: String },
    #[error("{path}: {why}")]
    BadPath { path: String, why: String },
    /// Its first bytes can't be read or made.
    #[error("{asset}: {why}")]
    Unreadable { asset: String, why: String },
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
    /// Whether there is nothing at the path.
    pub(super) fn is_not_found(&self) -> bool {
        matches!(self, Self::Index(IndexError::Origin(error)) if error.is_not_found())
    }

    /// Whether an object turned out to be another version than the one that was opened: the next attempt opens that.
    pub(crate) fn is_changed(&self) -> bool {
        matches!(self, Self::Index(IndexError::Origin(error)) if error.is_changed())
    }

    /// HTTP status that says it.
    pub(crate) fn status(&self) -> http::StatusCode {
        use http::StatusCode as S;
        match self {
            Self::Index(IndexError::Origin(error)) => S::from_u16(error.status()).unwrap_or(S::BAD_GATEWAY),
            // The client asked rightly; the stored media is at fault (RFC 9110 15.5.16 is about requests).
            Self::Index(IndexError::Media { .. } | IndexError::Foreign { .. })
            | Self::Package { .. }
            | Self::Manifest { .. }
            | Self::NotOneTitle { .. }
            | Self::OnlyForeign { .. }
            | Self::TooMany { .. } => S::UNPROCESSABLE_ENTITY,
            Self::BeingCopied { .. } => S::SERVICE_UNAVAILABLE,
            Self::Index(IndexError::Refused { refusal, .. }) | Self::Refused { refusal, .. } => refusal.status(),
            Self::NoAsset(_) | Self::NoResource { .. } => S::NOT_FOUND,
            Self::Unreadable { .. } => S::INTERNAL_SERVER_ERROR,
            Self::BadPath { .. } => S::BAD_REQUEST,
            Self::NotCached(_) => S::GATEWAY_TIMEOUT,
            Self::Loop(_) => S::LOOP_DETECTED,
        }
    }
}
