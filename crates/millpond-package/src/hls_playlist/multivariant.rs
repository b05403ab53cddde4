//! Multivariant playlists: variants, and renditions beside them (RFC 8216 4.3.4).

use super::{attributes::value, refused, shown};
use crate::PackageError;

/// Most variants and renditions of a playlist.
const MOST: usize = 4096;
/// Beginnings of the codecs of pictures in `CODECS` (RFC 6381).
const PICTURES: [&str; 13] =
    ["avc1", "avc3", "hvc1", "hev1", "dvh1", "dvhe", "dva1", "dvav", "av01", "vp09", "vp08", "mp4v", "vvc1"];

/// The playlists that a multivariant playlist names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredMultivariant {
    /// Variants, in the order of the playlist.
    pub variants: Vec<StoredVariant>,
    /// Renditions, in the order of the playlist.
    pub renditions: Vec<Rendition>,
}

/// A variant: `EXT-X-STREAM-INF` and its URI.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredVariant {
    /// Line of the URI, from 1.
    pub line: u32,
    /// URI as it stands in the playlist.
    pub uri: String,
    /// Peak bits per second, `BANDWIDTH`.
    pub bandwidth: u64,
    /// Group of its audio renditions.
    pub audio: Option<String>,
    /// Whether it may have pictures: `CODECS` has a codec of pictures or is absent, or there is a `RESOLUTION`.
    pub has_pictures: bool,
}

/// A rendition: `EXT-X-MEDIA`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendition {
    /// Line of the tag, from 1.
    pub line: u32,
    /// Kind of media.
    pub kind: RenditionKind,
    /// Group that it belongs to.
    pub group: String,
    /// URI of its playlist as it stands there; `None` for sound within the variants.
    pub uri: Option<String>,
    /// Language, a BCP 47 tag.
    pub language: Option<String>,
    /// Name for menus.
    pub name: String,
    /// Whether players choose it unless the viewer does otherwise.
    pub is_default: bool,
    /// Whether it has forced subtitles only.
    pub is_forced: bool,
}

/// Kind of a rendition, `TYPE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenditionKind {
    /// Sound.
    Audio,
    /// Subtitles.
    Subtitles,
    /// Other pictures, such as those of a second camera.
    Video,
}

impl StoredMultivariant {
    /// Takes the attributes of `EXT-X-MEDIA`. Captions within pictures are no playlist, and are not noted.
    pub(super) fn media(&mut self, line: u32, list: &str) -> Result<(), PackageError> {
        let kind = match value(list, "TYPE") {
            Some("AUDIO") => RenditionKind::Audio,
            Some("SUBTITLES") => RenditionKind::Subtitles,
            Some("VIDEO") => RenditionKind::Video,
            Some("CLOSED-CAPTIONS") => return Ok(()),
            found => {
                let found = format!("EXT-X-MEDIA with the TYPE {}", shown(found.unwrap_or_default()));
                return Err(refused(line, found, "AUDIO, VIDEO, SUBTITLES or CLOSED-CAPTIONS"));
            }
        };
        let text = |name: &str| value(list, name).filter(|text| !text.is_empty()).map(str::to_owned);
        let Some(group) = text("GROUP-ID") else {
            return Err(refused(line, shown("#EXT-X-MEDIA"), "the attribute GROUP-ID"));
        };
        let is = |name: &str| value(list, name) == Some("YES");
        self.renditions.push(Rendition {
            line,
            kind,
            group,
            uri: text("URI"),
            language: text("LANGUAGE"),
            name: text("NAME").unwrap_or_default(),
            is_default: is("DEFAULT"),
            is_forced: is("FORCED"),
        });
        self.bounded(line)
    }

    /// Takes a URI behind `EXT-X-STREAM-INF` with these attributes.
    pub(super) fn variant(&mut self, line: u32, uri: &str, list: &str) -> Result<(), PackageError> {
        let codecs = value(list, "CODECS");
        let is_picture = |codec: &str| PICTURES.iter().any(|known| codec.trim().starts_with(known));
        self.variants.push(StoredVariant {
            line,
            uri: uri.to_owned(),
            bandwidth: value(list, "BANDWIDTH").and_then(|rate| rate.parse().ok()).unwrap_or(0),
            audio: value(list, "AUDIO").map(str::to_owned),
            has_pictures: value(list, "RESOLUTION").is_some()
                || codecs.is_none_or(|codecs| codecs.split(',').any(is_picture)),
        });
        self.bounded(line)
    }

    fn bounded(&self, line: u32) -> Result<(), PackageError> {
        match self.variants.len() + self.renditions.len() > MOST {
            true => Err(refused(line, format!("more than {MOST} variants and renditions"), "at most that")),
            false => Ok(()),
        }
    }
}
