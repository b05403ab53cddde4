//! The lines of a playlist, one after the other.

use super::{
    MOST_SEGMENTS, SegmentRange, StoredPlaylist, Stretch, attributes, multivariant::StoredMultivariant, refused, shown,
};
use crate::PackageError;
use millpond_media::ByteRange;

/// Expectation of a playlist that is still written.
const ENDED: &str =
    "#EXT-X-ENDLIST: live playlists are not read. Try again when it has ended, or publish the stream to Millpond";
/// Expectation of segments that need a key.
const CLEAR: &str = "segments that are not encrypted: Millpond decrypts nothing. To make a film of them: ffmpeg -i PLAYLIST -c copy film.mp4";
/// Expectation of a range of bytes.
const RANGE: &str =
    "a number of bytes above 0, and the offset of the first one where no range of the same file precedes it";

/// State of a playlist after some of its lines.
#[derive(Debug, Default)]
pub(super) struct Lines {
    stretches: Vec<Stretch>,
    multivariant: StoredMultivariant,
    /// Attributes of `EXT-X-STREAM-INF`, of which the URI follows.
    variant: Option<String>,
    /// `EXT-X-MAP` in force.
    map: Option<SegmentRange>,
    /// `EXT-X-BYTERANGE` of the next segment: its length, and its offset if stated.
    next_range: Option<(u64, Option<u64>)>,
    is_multivariant: bool,
    has_target: bool,
    has_ended: bool,
    segments: usize,
    /// Whether the next segment begins a stretch.
    begins: bool,
}

impl Lines {
    /// Takes a tag. `name` is without `#EXT`.
    pub(super) fn tag(&mut self, line: u32, name: &str, value: &str) -> Result<(), PackageError> {
        let named = || shown(&format!("#EXT{name}"));
        match name {
            "-X-TARGETDURATION" => self.has_target = true,
            "-X-ENDLIST" => self.has_ended = true,
            "-X-MAP" => self.map(line, value)?,
            "-X-BYTERANGE" => self.next_range = Some(length_and_offset(value).ok_or_else(|| bad_range(line, value))?),
            "-X-KEY" | "-X-SESSION-KEY" => match attributes::value(value, "METHOD") {
                Some("NONE") => {}
                Some(method) => return Err(refused(line, format!("encryption with {}", shown(method)), CLEAR)),
                None => return Err(refused(line, named(), "the attribute METHOD")),
            },
            "-X-DISCONTINUITY" => self.begins = true,
            "-X-GAP" => return Err(refused(line, named(), "a segment that is there")),
            "-X-I-FRAMES-ONLY" => return Err(refused(line, named(), "a playlist of whole segments")),
            "-X-SKIP" => return Err(refused(line, named(), "a playlist with all of its segments")),
            "-X-DEFINE" => return Err(refused(line, named(), "URIs without variables")),
            // Trick play is made of key frames of the variants.
            "-X-I-FRAME-STREAM-INF" => self.is_multivariant = true,
            "-X-STREAM-INF" => {
                self.is_multivariant = true;
                self.variant = Some(value.to_owned());
            }
            "-X-MEDIA" => {
                self.is_multivariant = true;
                self.multivariant.media(line, value)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Takes the URI of a segment or of a variant.
    pub(super) fn uri(&mut self, line: u32, uri: &str) -> Result<(), PackageError> {
        if self.is_multivariant {
            let list = self.variant.take();
            let list =
                list.ok_or_else(|| refused(line, shown(uri), "#EXT-X-STREAM-INF before the URI of a variant"))?;
            return self.multivariant.variant(line, uri, &list);
        }
        if self.segments >= MOST_SEGMENTS {
            return Err(refused(line, format!("more than {MOST_SEGMENTS} segments"), "at most that"));
        }
        let bytes = match self.next_range.take() {
            None => None,
            Some((length, offset)) => {
                let last = self.stretches.last().and_then(|stretch| stretch.segments.last());
                let followed = last.filter(|last| last.uri == uri).and_then(|last| last.bytes);
                let start = offset.or_else(|| followed.map(|bytes| bytes.end));
                let range = start.and_then(|start| range(start, length));
                Some(range.ok_or_else(|| bad_range(line, &length.to_string()))?)
            }
        };
        self.segments += 1;
        if std::mem::take(&mut self.begins) || self.stretches.is_empty() {
            self.stretches.push(Stretch { map: self.map.clone(), segments: Vec::new() });
        }
        if let Some(stretch) = self.stretches.last_mut() {
            stretch.segments.push(SegmentRange { line, uri: uri.to_owned(), bytes });
        }
        Ok(())
    }

    fn map(&mut self, line: u32, value: &str) -> Result<(), PackageError> {
        let uri = attributes::value(value, "URI").filter(|uri| !uri.is_empty());
        let uri = uri.ok_or_else(|| refused(line, shown(value), "the attribute URI of EXT-X-MAP"))?.to_owned();
        let bytes = attributes::value(value, "BYTERANGE");
        let wrong = || bad_range(line, bytes.unwrap_or_default());
        let bytes = match bytes.map(length_and_offset) {
            None => None,
            Some(None) => return Err(wrong()),
            Some(Some((length, offset))) => Some(range(offset.unwrap_or(0), length).ok_or_else(wrong)?),
        };
        if self.map.as_ref().is_none_or(|known| (&known.uri, known.bytes) != (&uri, bytes)) {
            self.map = Some(SegmentRange { line, uri, bytes });
            // Segments behind it need another init section.
            self.begins = true;
        }
        Ok(())
    }

    /// Returns the content, after the line `last`.
    pub(super) fn finish(self, last: u32) -> Result<StoredPlaylist, PackageError> {
        let end = "the end of the playlist";
        if self.is_multivariant {
            if self.segments > 0 {
                return Err(refused(last, "segments and variants", "a playlist of either"));
            }
            if self.multivariant.variants.is_empty() {
                return Err(refused(last, end, "#EXT-X-STREAM-INF and the URI of a variant"));
            }
            return Ok(StoredPlaylist::Multivariant(self.multivariant));
        }
        if !self.has_target {
            return Err(refused(last, end, "#EXT-X-TARGETDURATION, which every HLS playlist has"));
        }
        if !self.has_ended {
            return Err(refused(last, end, ENDED));
        }
        if self.segments == 0 {
            return Err(refused(last, end, "a segment"));
        }
        Ok(StoredPlaylist::Media(self.stretches))
    }
}

pub(super) fn bad_range(line: u32, found: &str) -> PackageError {
    refused(line, format!("EXT-X-BYTERANGE {}", shown(found)), RANGE)
}

/// Returns the range of some bytes; `None` if it is empty or ends beyond all offsets.
pub(super) fn range(start: u64, length: u64) -> Option<ByteRange> {
    let end = start.checked_add(length)?;
    (length > 0).then_some(ByteRange::new(start, end))
}

/// Reads `LENGTH@OFFSET` or `LENGTH`.
pub(super) fn length_and_offset(text: &str) -> Option<(u64, Option<u64>)> {
    let number = |text: &str| text.trim().parse::<u64>().ok();
    match text.split_once('@') {
        Some((length, offset)) => Some((number(length)?, Some(number(offset)?))),
        None => Some((number(text)?, None)),
    }
}
