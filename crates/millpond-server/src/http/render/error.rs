//! Why a resource or file can't be the answer to a request.

use crate::{
    library::{IndexError, LibraryError, Unplayable},
    live::NoTitle,
    problem,
};
use http::StatusCode;
use millpond_http::body::BodyError;
use millpond_media::MediaError;
use millpond_package::{BadTrackFilter, PackageError, live::BadDirectives};
use millpond_settings::value::show_duration;
use millpond_store::OriginError;
use millpond_stream::{
    CannotOpen,
    reception::{SourceError, SourceErrorKind},
};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

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
    /// A stream can't be started or joined.
    #[error("{path}: {error}")]
    NotStarted {
        /// Path of the stream with its place.
        path: String,
        /// The reason.
        error: CannotOpen,
    },
    /// The source of a live stream gives no media.
    #[error("{path}: {error}")]
    Source {
        /// Path of the stream with its place.
        path: String,
        /// What the source did.
        error: Arc<SourceError>,
    },
    /// A container can't carry the media of a stream.
    #[error("{path}: no track that {container} can carry (found {found})")]
    Unfit {
        /// Path of the stream with its place.
        path: String,
        /// Name of the container.
        container: &'static str,
        /// Codecs of its tracks.
        found: String,
    },
    /// The newest key frame of a stream can't be made an image.
    #[error("{path}: {why}")]
    NoSnapshot {
        /// Path of the stream with its place.
        path: String,
        /// Reason why the key frame can't be decoded, such as its codec.
        why: String,
    },
    /// Delivery directives of a playlist request are invalid.
    #[error("{path}: {error}")]
    Directives {
        /// Path of the stream with its place.
        path: String,
        /// The fault.
        error: BadDirectives,
    },
    /// A filter of a manifest is invalid.
    #[error("{asset}: {place}: {error}")]
    Filter {
        /// Path of the asset with its place.
        asset: String,
        /// Where the filter is: `query` or `token`.
        place: &'static str,
        /// The fault.
        error: Box<BadTrackFilter>,
    },
    /// A playlist request is ahead of the stream by more than may be waited for (rfc8216bis 6.2.5.2).
    #[error("{0}: the segment or part lies too far ahead of the end of the playlist")]
    TooFar(String),
    /// The query asks for a time in a form that is not known, or one that is not kept.
    #[error("{path}: {why}")]
    Past {
        /// Path of the stream.
        path: String,
        /// What is wrong.
        why: String,
    },
    /// There is no memory or no thread for a segment now.
    #[error("{path}: {why}")]
    Busy {
        /// Path of the stream with its place.
        path: String,
        /// Reason: memory, or a thread, that is not free.
        why: String,
    },
    /// A live stream did not get what was asked for.
    #[error("{path}: nothing new for {}", show_duration(*.waited))]
    Stalled {
        /// Path of the stream with its place.
        path: String,
        /// Time that was waited.
        waited: Duration,
    },
    /// A live stream, or the server, stopped while a request waited for it.
    #[error("{0}: the stream stopped")]
    Stopped(String),
    /// Another node of the cluster has the live stream, and this one has not, or not yet, what was asked for.
    #[error("{0}: another node of the cluster has the stream, and this one does not have that yet: ask again")]
    Moved(String),
    /// Only cached bytes were asked for, and some are not cached.
    #[error("{0}: not all of it is cached")]
    NotCached(String),
    /// A request of this server came back to it through another cache.
    #[error("{0}: the request has been here before: places of caches lead in a circle")]
    Loop(String),
    /// A node asked this one as a home, and has to ask the origin itself.
    #[error("{path}: {why}: the node that asks reads from the origin")]
    NoHome {
        /// Path of the file with its place.
        path: String,
        /// Reason: another home, or a purge that is not applied yet.
        why: String,
    },
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
            BodyError::Node(why) => Self::Busy { path: asset, why },
            error => Self::Unreadable { asset, why: error.to_string() },
        }
    }

    /// Converts the error of what an RTSP server has at a path.
    pub(crate) fn of_title(path: &str, error: NoTitle) -> Self {
        match error {
            NoTitle::Library(error) => error.into(),
            NoTitle::Source(error) => Self::Source { path: path.to_owned(), error },
        }
    }

    /// Describes the error for viewers. Addresses of sources and origins are for operators.
    pub(crate) fn for_viewers(&self) -> String {
        match self {
            Self::Library(error) => error.for_viewers(),
            Self::Source { error, .. } => error.for_viewers(),
            error => error.to_string(),
        }
    }

    /// Returns why the title can't be played at all, for programs. `None` for other errors.
    pub(crate) fn unplayable(&self) -> Option<Unplayable> {
        match self {
            Self::Library(error) => error.unplayable(),
            _ => None,
        }
    }

    /// Returns the status code of the reply.
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::Library(error) => problem::status(error),
            Self::Unreadable { .. } => StatusCode::INTERNAL_SERVER_ERROR,
            Self::NotStarted { .. } | Self::Busy { .. } | Self::Stalled { .. } | Self::Stopped(_) | Self::Moved(_) => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            Self::Directives { .. } | Self::Filter { .. } | Self::TooFar(_) | Self::Past { .. } => {
                StatusCode::BAD_REQUEST
            }
            Self::Source { error, .. } => match error.kind {
                SourceErrorKind::NotFound | SourceErrorKind::Unpublished => StatusCode::NOT_FOUND,
                SourceErrorKind::TimedOut => StatusCode::GATEWAY_TIMEOUT,
                SourceErrorKind::NotBegun { .. } => StatusCode::SERVICE_UNAVAILABLE,
                _ => StatusCode::BAD_GATEWAY,
            },
            Self::Unfit { .. } => StatusCode::UNPROCESSABLE_ENTITY,
            Self::NoSnapshot { .. } => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            // `only-if-cached` (RFC 9111 5.2.1.7).
            Self::NotCached(_) => StatusCode::GATEWAY_TIMEOUT,
            // `CDN-Loop` (RFC 8586). Nodes of all versions take it as the answer of no home.
            Self::Loop(_) | Self::NoHome { .. } => StatusCode::LOOP_DETECTED,
        }
    }

    /// Returns the seconds after which the request can succeed; `None` where the status code is none of a server that is busy.
    pub(crate) fn retry_after(&self, now: Instant) -> Option<u64> {
        let begins = match self {
            Self::Source { error, .. } => error.kind.retry_after(now),
            _ => None,
        };
        begins.or_else(|| (self.status() == StatusCode::SERVICE_UNAVAILABLE).then_some(1))
    }

    /// Returns whether the server or its storage is at fault, not the request or the file.
    pub(crate) fn is_fault(&self) -> bool {
        match self {
            // Files of other formats are no damage, and a folder of several titles is none of one.
            Self::Library(
                LibraryError::Index(IndexError::Foreign { .. })
                | LibraryError::OnlyForeign { .. }
                | LibraryError::NotOneTitle { .. },
            )
            | Self::Unfit { .. }
            | Self::NoSnapshot { .. }
            | Self::NotCached(_)
            | Self::Moved(_)
            | Self::NoHome { .. } => false,
            // The media is right, and the viewer's filter too narrow.
            Self::Library(LibraryError::Package { error, .. }) if matches!(**error, PackageError::Filtered { .. }) => {
                false
            }
            Self::Source { error, .. } if matches!(error.kind, SourceErrorKind::NotBegun { .. }) => false,
            error if error.is_of_file() => false,
            error => error.status().is_server_error() || error.status() == StatusCode::UNPROCESSABLE_ENTITY,
        }
    }

    /// Returns whether the content of the title's files is the reason, such as damage, or a copy that is not complete yet.
    pub(crate) fn is_of_file(&self) -> bool {
        let Self::Library(error) = self else { return false };
        match error {
            // Work may also end for a reason of the server.
            LibraryError::Index(IndexError::Media { error, .. }) => !matches!(error, MediaError::Work { .. }),
            LibraryError::Package { error, .. } => matches!(
                **error,
                PackageError::NoTracks { .. }
                    | PackageError::TooMany { .. }
                    | PackageError::Container { .. }
                    | PackageError::Encrypted { .. }
                    | PackageError::Sample { .. }
                    | PackageError::Text { .. }
            ),
            LibraryError::Manifest { .. } | LibraryError::TooMany { .. } | LibraryError::BeingCopied { .. } => true,
            _ => false,
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
    fn mistakes_of_clients_and_files_are_no_faults() {
        let object = || "films/a.wmv".to_owned();
        let foreign = IndexError::Foreign { object: object(), format: millpond_media::Foreign::Asf };
        let (path, offset, found, expected) = ("moov".to_owned(), 8, 1, 2);
        let cut = MediaError::Truncated { path, offset, found, expected };
        let media = IndexError::Media { object: object(), error: cut };
        let filtered = PackageError::Filtered { excluded: millpond_package::Exclusions::default() };
        let filtered = LibraryError::Package { asset: object(), error: Arc::new(filtered) };
        let unpackaged = PackageError::NoTracks { sources: object(), skipped: Vec::new() };
        let unpackaged = LibraryError::Package { asset: object(), error: Arc::new(unpackaged) };
        let container = PackageError::Container { container: "MPEG-2 TS", found: object(), expected: "avc1" };
        let container = LibraryError::Package { asset: object(), error: Arc::new(container) };
        let misused = PackageError::Call { found: "1 byte".to_owned(), expected: "2".to_owned() };
        let misused = LibraryError::Package { asset: object(), error: Arc::new(misused) };
        let cancelled = MediaError::work("moov", 8, millpond_media::WorkError::Cancelled);
        let cancelled = IndexError::Media { object: object(), error: cancelled };
        for (error, is_fault) in [
            (filtered.into(), false),
            (unpackaged.into(), false),
            (container.into(), false),
            (misused.into(), true),
            (LibraryError::BeingCopied { path: object(), len: 1 }.into(), false),
            (LibraryError::from(foreign).into(), false),
            (LibraryError::NoAsset(object()).into(), false),
            (
                LibraryError::NotOneTitle { folder: object(), found: "2 titles".to_owned(), cure: String::new() }
                    .into(),
                false,
            ),
            (AnswerError::NotCached(object()), false),
            (AnswerError::NoHome { path: object(), why: "it is behind".to_owned() }, false),
            (AnswerError::Loop(object()), true),
            (AnswerError::TooFar(object()), false),
            (LibraryError::from(media).into(), false),
            (LibraryError::from(cancelled).into(), true),
            (AnswerError::Unreadable { asset: object(), why: "no".to_owned() }, true),
        ] {
            assert_eq!(error.is_fault(), is_fault, "{error}");
        }
    }

    #[test]
    fn viewers_read_no_location() {
        let origin = || OriginError::NotFound { at: millpond_store::At::new("/srv/films", "a.mp4") };
        let (kind, address) = (SourceErrorKind::NotFound, "rtsp://secret".to_owned());
        let error = SourceError { kind, address, words: "no".to_owned() };
        for (error, expected) in [
            (AnswerError::from(origin()), "no such file"),
            (AnswerError::of_body("films/a.mp4", BodyError::Origin(origin())), "no such file"),
            (LibraryError::NoAsset("films/a.mp4".to_owned()).into(), "films/a.mp4: no such asset"),
            (
                AnswerError::Source { path: "cams/a".to_owned(), error: Arc::new(error) },
                "the source of the stream failed: no",
            ),
        ] {
            assert_eq!(error.for_viewers(), expected);
        }
    }

    #[test]
    fn a_phase_that_has_not_begun_is_no_fault_and_is_worth_another_request() {
        let now = Instant::now();
        let kind = SourceErrorKind::NotBegun { begins: now + Duration::from_secs(75) };
        let error = SourceError { kind, address: "channel:a.mp4".to_owned(), words: "phase 2 of 4".to_owned() };
        let error = AnswerError::Source { path: "movie/phase-2".to_owned(), error: Arc::new(error) };
        assert_eq!((error.status().as_u16(), error.is_fault(), error.retry_after(now)), (503, false, Some(75)));
        assert_eq!(AnswerError::Stopped("cams/door".to_owned()).retry_after(now), Some(1));
        let moved = AnswerError::Moved("cams/door".to_owned());
        assert_eq!((moved.retry_after(now), moved.is_fault()), (Some(1), false), "players ask again");
        assert_eq!(AnswerError::TooFar("cams/door".to_owned()).retry_after(now), None);
    }

    #[test]
    fn faults_of_requests_and_media_have_their_status() {
        let path = || "films/a.mp4".to_owned();
        let source = |kind| {
            let error = Arc::new(SourceError { kind, address: "rtsp://h".to_owned(), words: "no".to_owned() });
            AnswerError::Source { path: path(), error }
        };
        let bad_filter = || Box::new(millpond_package::TrackFilter::parse("max-height=x").unwrap_err());
        for (error, expected) in [
            (source(SourceErrorKind::NotFound), 404),
            (source(SourceErrorKind::Unauthorized), 502),
            (source(SourceErrorKind::Refused(503)), 502),
            (source(SourceErrorKind::Unreachable), 502),
            (source(SourceErrorKind::TimedOut), 504),
            (AnswerError::NotCached(path()), 504),
            (AnswerError::Loop(path()), 508),
            (AnswerError::NoHome { path: path(), why: "it is behind".to_owned() }, 508),
            (AnswerError::Unreadable { asset: path(), why: "the file ended".to_owned() }, 500),
            (AnswerError::NotStarted { path: path(), error: CannotOpen::Ended }, 503),
            (AnswerError::Directives { path: path(), error: BadDirectives::PartAlone }, 400),
            (AnswerError::TooFar(path()), 400),
            (AnswerError::Filter { asset: path(), place: "query", error: bad_filter() }, 400),
            (AnswerError::Stalled { path: path(), waited: Duration::from_secs(9) }, 503),
            (AnswerError::Stopped(path()), 503),
            (AnswerError::Busy { path: path(), why: "no memory".to_owned() }, 503),
            (AnswerError::Unfit { path: path(), container: "MPEG-2 TS", found: "ipcm".to_owned() }, 422),
            (AnswerError::NoSnapshot { path: path(), why: "found hvc1".to_owned() }, 415),
            (LibraryError::NoAsset(path()).into(), 404),
        ] {
            assert_eq!(error.status().as_u16(), expected, "{error}");
        }
    }
}
