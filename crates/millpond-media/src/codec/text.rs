//! Timed text: `wvtt` (ISO/IEC 14496-30 7.5), `stpp` (ISO/IEC 14496-30 6.5, ISO/IEC 14496-12 12.6.3.2), `tx3g` (3GPP
//! TS 26.245 5.16), text of Matroska (Matroska Codec Specifications, "Subtitles"), and subtitles in private data of transport streams.

use super::{Codec, SampleEntry};
use crate::{
    boxes::{Node, text},
    codec::TrackKind,
    error::MediaError,
    teletext::TeletextPage,
};
use serde::{Deserialize, Serialize};

/// Length in bytes of the fields of every sample entry.
const FIELDS: usize = 8;
/// Length in bytes of the fields of a `tx3g` sample entry before its boxes.
const TX3G_FIELDS: usize = 38;

/// `WVTTSampleEntry`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WvttConfig {
    /// WebVTT header (`vttC`): `WEBVTT` and everything up to the first cue.
    pub header: String,
    /// Source label (`vlab`); `None` where there is none.
    pub source_label: Option<String>,
}

/// `XMLSubtitleSampleEntry`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StppConfig {
    /// `namespace`: XML namespaces of the documents, separated by spaces.
    pub namespace: String,
    /// `schema_location`.
    pub schema_location: String,
    /// `auxiliary_mime_types`: media types of the resources, such as images.
    pub auxiliary_mime_types: String,
    /// TTML processor profile (W3C TTML Media Type Definition and Profile Registry), such as `im1t`; `None` where the
    /// entry states none.
    pub profile: Option<String>,
}

/// Text in blocks of Matroska.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MatroskaText {
    /// Form of the text.
    pub form: TextForm,
    /// Number of the track, by which its blocks are recognised.
    pub track: u64,
    /// Header of the script, with its styles (SSA and ASS); empty for the other forms.
    pub header: String,
    /// Encoding of the text in its blocks.
    pub encoding: BlockEncoding,
}

/// Subtitles in private data of a transport stream, whose frames are payloads of PES packets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrivateText {
    /// Form of the data.
    pub form: PrivateForm,
    /// Descriptors of the stream, as in the programme map.
    pub descriptors: Vec<u8>,
    /// Pages of subtitles that the descriptors announce; none for DVB subtitles.
    pub pages: Vec<TeletextPage>,
}

/// Form of subtitles in private data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PrivateForm {
    /// Teletext (ETSI EN 300 472).
    Teletext,
    /// Pictures of text (ETSI EN 300 743).
    DvbSubtitles,
}

/// Encoding of frames in blocks of Matroska (RFC 9559 5.1.4.1.31.5).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum BlockEncoding {
    /// Frames are stored as they are.
    #[default]
    Plain,
    /// Each frame is compressed (RFC 1950).
    Zlib,
    /// The common beginning of all frames is not stored (header stripping).
    Stripped(Vec<u8>),
}

/// Form of the text in blocks of Matroska.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TextForm {
    /// Lines of SubRip without number and times (`S_TEXT/UTF8`).
    SubRip,
    /// The fields of an event of SSA or ASS (`S_TEXT/SSA`, `S_TEXT/ASS`).
    Ssa,
    /// The text of a WebVTT cue; its settings are in block additions (`S_TEXT/WEBVTT`).
    WebVtt,
    /// Identifier, settings and text of a WebVTT cue, a line each for the first two (`D_WEBVTT/...` of WebM).
    WebmVtt,
}

impl MatroskaText {
    pub(super) fn heap_bytes(&self) -> usize {
        let prefix = if let BlockEncoding::Stripped(prefix) = &self.encoding { prefix.capacity() } else { 0 };
        self.header.capacity() + prefix
    }
}

impl PrivateText {
    pub(super) fn heap_bytes(&self) -> usize {
        self.descriptors.capacity() + self.pages.capacity() * size_of::<TeletextPage>()
    }
}

impl PrivateForm {
    /// Usual name of the form.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Teletext => "teletext",
            Self::DvbSubtitles => "DVB subtitles",
        }
    }
}

impl TextForm {
    /// Usual name of the form.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::SubRip => "SubRip",
            Self::Ssa => "SSA",
            Self::WebVtt | Self::WebmVtt => "WebVTT",
        }
    }
}

impl StppConfig {
    /// Returns `stpp.ttml.im1t` (ISO/IEC 14496-30 Annex A), or `stpp` without a profile.
    pub(super) fn parameter(&self) -> String {
        match &self.profile {
            Some(profile) => format!("stpp.ttml.{profile}"),
            None => "stpp".to_owned(),
        }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        let strings = [&self.namespace, &self.schema_location, &self.auxiliary_mime_types];
        strings.iter().map(|string| string.capacity()).sum::<usize>()
            + self.profile.as_ref().map_or(0, String::capacity)
    }
}

impl WvttConfig {
    pub(super) fn heap_bytes(&self) -> usize {
        self.header.capacity() + self.source_label.as_ref().map_or(0, String::capacity)
    }
}

fn entry(codec: Codec) -> SampleEntry {
    SampleEntry { codec, kind: TrackKind::Text }
}

/// Reads a `tx3g` sample entry. Fonts and styles are not parsed; only the length is checked.
pub(super) fn tx3g(node: &Node<'_>) -> Result<SampleEntry, MediaError> {
    node.fields().skip(TX3G_FIELDS)?;
    Ok(entry(Codec::Tx3g))
}

/// Reads a `wvtt` sample entry.
pub(super) fn wvtt(node: &Node<'_>) -> Result<SampleEntry, MediaError> {
    node.fields().skip(FIELDS)?;
    let string = |kind: &[u8; 4]| {
        let found = node.children_after(FIELDS).find(|child| child.kind == *kind);
        found.map(|child| text(child.body))
    };
    let header = string(b"vttC").ok_or_else(|| super::missing(node, b"vttC"))?;
    Ok(entry(Codec::Wvtt(WvttConfig { header, source_label: string(b"vlab") })))
}

/// Reads an `stpp` sample entry.
pub(super) fn stpp(node: &Node<'_>) -> Result<SampleEntry, MediaError> {
    let mut fields = node.fields();
    fields.skip(FIELDS)?;
    let mut position = FIELDS;
    let mut string = |required: bool| {
        let rest = node.body.get(position..).unwrap_or_default();
        match rest.iter().position(|&byte| byte == 0) {
            // Some writers omit the last strings with their terminators; then a box starts here.
            Some(0) | None if !required && (rest.is_empty() || starts_a_box(rest)) => Ok(String::new()),
            Some(end) => {
                position += end + 1;
                Ok(text(rest))
            }
            None => Err(node.invalid("a string without its end", "a zero byte")),
        }
    };
    let (namespace, schema_location, auxiliary_mime_types) = (string(true)?, string(false)?, string(false)?);
    let mime = node.children_after(position).find(|child| child.kind == *b"mime");
    let profile = mime
        .and_then(|mime| profile_of_mime(&text(mime.body.get(4..).unwrap_or_default())))
        .or_else(|| profile_of_namespace(&namespace))
        .or_else(|| profile_of_namespace(&schema_location));
    Ok(entry(Codec::Stpp(StppConfig { namespace, schema_location, auxiliary_mime_types, profile })))
}

/// Whether a box of a type that may follow the strings starts here. The size of a box begins with a zero byte, which
/// would otherwise be an empty string.
fn starts_a_box(bytes: &[u8]) -> bool {
    matches!(bytes.get(4..8), Some(b"mime" | b"btrt" | b"sinf"))
}

/// Returns the first profile in the `codecs` parameter of a media type, such as `application/ttml+xml;codecs=im1t`
/// (ISO/IEC 14496-12 12.6.3.2), that needs no escaping in manifests.
fn profile_of_mime(media_type: &str) -> Option<String> {
    let parameters = media_type.split(';').skip(1).filter_map(|parameter| parameter.split_once('='));
    let (_, value) = parameters.into_iter().find(|(name, _)| name.trim().eq_ignore_ascii_case("codecs"))?;
    let first = value.trim().trim_matches('"').split(['|', '+', ',']).next()?.trim();
    let plain = !first.is_empty() && first.len() <= 16 && first.bytes().all(|byte| byte.is_ascii_alphanumeric());
    plain.then(|| first.to_owned())
}

/// Returns the IMSC profile designator among namespaces (TTML Profiles for Internet Media Subtitles and Captions, 6.2).
fn profile_of_namespace(namespaces: &str) -> Option<String> {
    namespaces.split_ascii_whitespace().find_map(|namespace| {
        let designator = namespace.trim_end_matches('/').strip_prefix("http://www.w3.org/ns/ttml/profile/")?;
        let profile = match designator {
            "imsc1/text" => "im1t",
            "imsc1/image" => "im1i",
            "imsc1.1/text" => "im2t",
            "imsc1.1/image" => "im2i",
            "imsc1.2/text" => "im3t",
            "imsc1.2/image" => "im3i",
            _ => return None,
        };
        Some(profile.to_owned())
    })
}
