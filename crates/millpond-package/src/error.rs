//! What can go wrong in packaging.

use crate::plan::ObjectIndex;
use millpond_media::{units::ByteRange, work::WorkError};

/// Why an asset, a segment or a text file can't be packaged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PackageError {
    /// No source has a track that is wanted and playable.
    #[error("no playable track in {sources}: expected video, audio or subtitles{}", reasons(.skipped))]
    NoTracks {
        /// Labels of the sources.
        sources: String,
        /// Why tracks were left out, where any were.
        skipped: Vec<String>,
    },
    /// The asset has more of something than names or boxes can count.
    #[error("{what}: found {found}, expected at most {limit}")]
    TooMany {
        /// What there is too much of.
        what: &'static str,
        /// How many there are.
        found: u64,
        /// How many there may be.
        limit: u64,
    },
    /// The presentation was not completed: cancelled, or more steps than its [`Work`](millpond_media::Work) had.
    #[error("presentation: {0}")]
    Work(#[from] WorkError),
    /// An option is outside of what makes sense.
    #[error("option {name}: found {found}, expected {expected}")]
    Option {
        /// The option.
        name: &'static str,
        /// Its value.
        found: String,
        /// What it may be.
        expected: &'static str,
    },
    /// No track has a codec that the container carries.
    #[error("{container} can carry none of the tracks: found {found}, expected {expected}")]
    Container {
        /// The container.
        container: &'static str,
        /// Codecs of the asset.
        found: String,
        /// Codecs that the container carries.
        expected: &'static str,
    },
    /// The manifest can't tell players how to get the key of a track.
    #[error("{output}: track {track} is encrypted: found {found}, expected {expected}")]
    Encrypted {
        /// The kind of manifest.
        output: &'static str,
        /// Name of the track.
        track: String,
        /// Scheme and key of the track.
        found: String,
        /// What the manifest can say.
        expected: &'static str,
    },
    /// A track named in a call isn't in the movie it was said to be in.
    #[error("object {}: no track at place {track}: the movie has {found}", .object.0)]
    Track {
        /// The object.
        object: ObjectIndex,
        /// Place of the track in the movie's list.
        track: usize,
        /// Tracks in the movie.
        found: usize,
    },
    /// A sample's bytes are not what the index or the codec configuration promised.
    #[error("object {}, sample at bytes {range}: found {found} at byte {offset} of the sample, expected {expected}", .object.0)]
    Sample {
        /// The object.
        object: ObjectIndex,
        /// Where the sample is in the object.
        range: ByteRange,
        /// Offset within the sample.
        offset: u64,
        /// What is there.
        found: String,
        /// What should be.
        expected: &'static str,
    },
    /// A rewriter was handed other bytes than it asked for, or was called out of order.
    #[error("rewriter was handed {found}, expected {expected}")]
    Call {
        /// What it was handed.
        found: String,
        /// What it asked for.
        expected: String,
    },
    /// A text file (WebVTT, SubRip, server manifest) can't be read.
    #[error("{format}, line {line}: found {found}, expected {expected}")]
    Text {
        /// Format of the file.
        format: &'static str,
        /// Line, from 1.
        line: u32,
        /// What is there.
        found: String,
        /// What should be.
        expected: &'static str,
    },
}

fn reasons(skipped: &[String]) -> String {
    if skipped.is_empty() { String::new() } else { format!(" ({})", skipped.join("; ")) }
}
