//! Media playlists of live sources, as a client reads them again and again (RFC 8216bis).
//!
//! [`LivePlaylist`] is one reading. A [`Follower`] decides what is requested next: a segment, a part or the playlist.

mod follower;
mod lines;
#[cfg(test)]
mod tests;

pub use follower::{Follower, Next, Piece, PlaylistRequest, Turn};

use super::{MOST_BYTES, SegmentRange, refused, shown};
use crate::PackageError;
use lines::Lines;
use std::{sync::Arc, time::Duration};

/// A media playlist of a live source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LivePlaylist {
    /// Upper bound of the durations of segments, `EXT-X-TARGETDURATION`; from 100 ms to 10 minutes.
    pub target: Duration,
    /// Segments with consecutive numbers. The last one may be unfinished: it has parts only.
    pub segments: Vec<LiveSegment>,
    /// Number of the first segment, `EXT-X-MEDIA-SEQUENCE`.
    pub first: u64,
    /// Whether no segment follows, `EXT-X-ENDLIST`.
    pub has_ended: bool,
    /// Delivery directives that the server supports, `EXT-X-SERVER-CONTROL` and `EXT-X-PART-INF`.
    pub delivery: Delivery,
}

/// Delivery directives and hold-back times of a live playlist (RFC 8216bis 4.4.3.7, 4.4.3.8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delivery {
    /// Whether a request may wait for a segment or a part, `CAN-BLOCK-RELOAD`.
    pub can_block: bool,
    /// Distance from the end at which playback begins, `HOLD-BACK`.
    pub hold_back: Option<Duration>,
    /// The same with parts, `PART-HOLD-BACK`.
    pub part_hold_back: Option<Duration>,
    /// Upper bound of the durations of parts, `PART-TARGET`.
    pub part_target: Option<Duration>,
}

/// A segment of a live playlist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveSegment {
    /// Number, counted from `EXT-X-MEDIA-SEQUENCE`.
    pub number: u64,
    /// Number of discontinuities before it, counted from `EXT-X-DISCONTINUITY-SEQUENCE`.
    pub discontinuities: u64,
    /// Whether a discontinuity precedes it.
    pub begins: bool,
    /// Init section; `None` for segments that need none.
    pub map: Option<Arc<SegmentRange>>,
    /// Key that decrypts it; `None` for a clear segment.
    pub key: Option<Arc<SegmentKey>>,
    /// Time of its first frame since the Unix epoch, `EXT-X-PROGRAM-DATE-TIME`; `None` where the segment states none.
    pub date: Option<Duration>,
    /// The segment as a whole; `None` for an unfinished one.
    pub whole: Option<LivePart>,
    /// Parts that are listed.
    pub parts: Vec<LivePart>,
}

/// A segment or a part of one, as a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LivePart {
    /// Its bytes.
    pub range: SegmentRange,
    /// Duration.
    pub duration: Duration,
    /// Whether it begins with a frame that needs no other one. Segments do not tell.
    pub is_independent: bool,
    /// Whether its bytes are missing, `EXT-X-GAP`.
    pub is_gap: bool,
}

/// A key of the method AES-128 (RFC 8216 4.3.2.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentKey {
    /// Line of the playlist, from 1.
    pub line: u32,
    /// URI of the 16 bytes.
    pub uri: String,
    /// Initialization vector; `None` for the number of the segment.
    pub iv: Option<[u8; 16]>,
}

impl LivePlaylist {
    /// Reads a playlist.
    ///
    /// # Errors
    /// The text is no media playlist, is too long, or has a tag that is not read. Each error names the line.
    pub fn parse(text: &str) -> Result<Self, PackageError> {
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

    /// Returns the segment of a number.
    fn segment(&self, number: u64) -> Option<&LiveSegment> {
        let place = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.segments.get(place)
    }

    /// Returns the number behind the last segment.
    fn end(&self) -> u64 {
        self.first.saturating_add(self.segments.len() as u64)
    }
}

impl LiveSegment {
    /// Returns the duration of what is listed of it.
    fn duration(&self) -> Duration {
        match &self.whole {
            Some(whole) => whole.duration,
            None => self.parts.iter().map(|part| part.duration).sum(),
        }
    }
}
