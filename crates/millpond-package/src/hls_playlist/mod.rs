//! HLS playlists that others have made, read for the places of their segments (RFC 8216).
//!
//! [`parse`] reads playlists that have ended. Encryption and other tags that stretches of segments can't express are refused by name.
//! [`live`] reads those of live sources.
//! Millpond's own playlists are written elsewhere.

mod attributes;
mod lines;
pub mod live;
mod multivariant;

use crate::PackageError;
use lines::Lines;
use millpond_media::ByteRange;

pub use multivariant::{Rendition, RenditionKind, StoredMultivariant, StoredVariant};

/// Most bytes of a playlist.
pub const MOST_BYTES: usize = 4 << 20;
/// Most segments of a playlist: three days in segments of four seconds.
const MOST_SEGMENTS: usize = 1 << 16;

/// Content of a playlist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoredPlaylist {
    /// Stretches of segments that play one after the other; at least one.
    Media(Vec<Stretch>),
    /// The media playlists that a multivariant playlist names.
    Multivariant(StoredMultivariant),
}

/// Segments without a discontinuity, and without another init section; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Bytes of `EXT-X-MAP`, which precede the segments; `None` for segments that need none.
    pub map: Option<SegmentRange>,
    /// Bytes of each segment, in order.
    pub segments: Vec<SegmentRange>,
}

/// Bytes that a playlist names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentRange {
    /// Line of the playlist, from 1.
    pub line: u32,
    /// URI as it stands in the playlist.
    pub uri: String,
    /// Bytes of the resource; `None` for all of them.
    pub bytes: Option<ByteRange>,
}

/// Whether a text has a tag of multivariant playlists. The text may be no valid playlist.
#[must_use]
pub fn is_multivariant(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("#EXT-X-STREAM-INF") || line.starts_with("#EXT-X-MEDIA:"))
}

/// Reads a playlist.
///
/// # Errors
/// The text is no playlist, is too long, has not ended, or has a tag that is not read. Each error names the line.
pub fn parse(text: &str) -> Result<StoredPlaylist, PackageError> {
    if text.len() > MOST_BYTES {
        return Err(refused(1, format!("{} bytes", text.len()), "at most 4 MiB"));
    }
    let text = text.trim_start_matches('\u{feff}');
    let mut lines = Lines::default();
    let mut last: u32 = 0;
    for (number, line) in (1..).zip(text.lines()) {
        last = number;
        let line = line.trim_end();
        if number == 1 {
            if line != "#EXTM3U" {
                return Err(refused(1, shown(line), "#EXTM3U, with which a playlist begins"));
            }
        } else if let Some(tag) = line.strip_prefix("#EXT") {
            let (name, value) = tag.split_once(':').unwrap_or((tag, ""));
            lines.tag(number, name, value)?;
        } else if !line.is_empty() && !line.starts_with('#') {
            lines.uri(number, line)?;
        }
    }
    lines.finish(last.max(1))
}

fn refused(line: u32, found: impl Into<String>, expected: &'static str) -> PackageError {
    PackageError::Text { format: "HLS playlist", line, found: found.into(), expected }
}

/// Returns the beginning of a text, for errors.
fn shown(text: &str) -> String {
    const MOST: usize = 80;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{:?}...", text.get(..end).unwrap_or_default()),
        None => format!("{text:?}"),
    }
}

#[cfg(test)]
mod tests;
