//! Errors of packaging.

pub(crate) mod exclusions;

use crate::object::ObjectIndex;
use exclusions::Exclusions;
use millpond_media::{units::ByteRange, work::WorkError};

/// The reason why an asset, a segment or a text file can't be packaged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PackageError {
    /// No source has a playable track that is selected.
    #[error("no playable track in {sources}: expected video, audio or subtitles{}", reasons(.skipped))]
    NoTracks {
        /// Labels of the sources.
        sources: String,
        /// Reasons for skipped tracks.
        skipped: Vec<String>,
    },
    /// The asset exceeds a limit of names, boxes, memory or work.
    #[error("{what}: found {found}, expected at most {limit}")]
    TooMany {
        /// Unit of the count.
        what: &'static str,
        /// Count in the asset.
        found: u64,
        /// Greatest count allowed.
        limit: u64,
    },
    /// The presentation was not completed: it was cancelled, or ran out of steps of its [`Work`](millpond_media::Work).
    #[error("presentation: {0}")]
    Work(#[from] WorkError),
    /// An option is out of range.
    #[error("option {name}: found {found}, expected {expected}")]
    Option {
        /// Name of the option.
        name: &'static str,
        /// Value of the option.
        found: String,
        /// Values allowed.
        expected: &'static str,
    },
    /// The container can carry no track of the asset.
    #[error("{container} can carry none of the tracks: found {found}, expected {expected}")]
    Container {
        /// Name of the container.
        container: &'static str,
        /// Codecs of the asset.
        found: String,
        /// Codecs that the container carries.
        expected: &'static str,
    },
    /// A filter of a manifest excludes all pictures and all sound.
    #[error("the filter leaves nothing to play: {excluded}")]
    Filtered {
        /// Tracks that each parameter excludes.
        excluded: Exclusions,
    },
    /// The manifest format can't tell players where the key of a track is.
    #[error("{output}: track {track} is encrypted: found {found}, expected {expected}")]
    Encrypted {
        /// Manifest format.
        output: &'static str,
        /// Name of the track.
        track: String,
        /// Scheme and key of the track.
        found: String,
        /// Schemes and keys that the manifest format supports.
        expected: &'static str,
    },
    /// A track index exceeds the tracks of its movie.
    #[error("object {}: no track with index {track}: the movie has {found} tracks", .object.0)]
    Track {
        /// Object of the movie.
        object: ObjectIndex,
        /// Index of the track in the movie.
        track: usize,
        /// Number of tracks in the movie.
        found: usize,
    },
    /// A sample's bytes contradict the index or the codec configuration.
    #[error("object {}, sample at bytes {range}: found {found} at byte {offset} of the sample, expected {expected}", .object.0)]
    Sample {
        /// The object.
        object: ObjectIndex,
        /// Byte range of the sample in the object.
        range: ByteRange,
        /// Offset within the sample.
        offset: u64,
        /// Value found.
        found: String,
        /// Value expected.
        expected: &'static str,
    },
    /// A rewriter was given other bytes than it requested, or was called out of order.
    #[error("rewriter was given {found}, expected {expected}")]
    Call {
        /// Bytes or call that were given.
        found: String,
        /// Bytes or call that were expected.
        expected: String,
    },
    /// A text file (WebVTT, SubRip, server manifest) is invalid.
    #[error("{format}, line {line}: found {found}, expected {expected}")]
    Text {
        /// Format of the file.
        format: &'static str,
        /// Line number, from 1.
        line: u32,
        /// Text found.
        found: String,
        /// Text expected.
        expected: &'static str,
    },
}

fn reasons(skipped: &[String]) -> String {
    if skipped.is_empty() { String::new() } else { format!(" ({})", skipped.join("; ")) }
}
