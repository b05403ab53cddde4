//! What a client reads in a session description (RFC 8866, RFC 2326 C): the streams there are, and where to ask for
//! them.

use crate::play::{self, NptRange};
use sdp_types::{Attribute, Media, ParserError, Session};
use std::collections::BTreeMap;

/// The most bytes of a description.
const MOST_BYTES: usize = 256 * 1024;
/// The most streams of a presentation.
const MOST_STREAMS: usize = 64;

/// Streams that are played together.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionDescription {
    /// URL of requests that mean all streams.
    pub control: String,
    /// What can be played of it, if that is said in npt.
    pub range: Option<NptRange>,
    /// Those that are sent as RTP, in order.
    pub streams: Vec<MediaDescription>,
}

/// One stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediaDescription {
    /// `video`, `audio`, ...
    pub media: String,
    /// URL of requests that mean this stream.
    pub control: String,
    /// Of its packets: 0 to 127.
    pub payload_type: u8,
    /// Name of its payload format, in lower case.
    pub encoding: String,
    /// Ticks a second of its timestamps.
    pub clock_rate: u32,
    /// Channels of sound, where that is said.
    pub channels: Option<u16>,
    /// What its `fmtp` says; names in lower case, the first of each name.
    pub parameters: BTreeMap<String, String>,
    /// Bits a second (`b=AS`).
    pub bandwidth: Option<u64>,
}

/// Why a description can't be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum SessionDescriptionError {
    /// Not of the form of RFC 8866.
    #[error("session description: {0}")]
    Malformed(ParserError),
    /// Longer than any sensible one.
    #[error("a session description of {found} {what}, expected at most {most}")]
    TooLong {
        /// How many there are.
        found: usize,
        /// Of what.
        what: &'static str,
        /// How many there may be.
        most: usize,
    },
    /// Something is wrong with one stream.
    #[error("stream {stream}: {line} is {found:?}, expected {expected}")]
    Stream {
        /// Which media section, from 0.
        stream: usize,
        /// Which line of it.
        line: &'static str,
        /// What it says.
        found: String,
        /// What it should.
        expected: &'static str,
    },
}

impl SessionDescription {
    /// Reads a description; [`base`] tells what its URLs are relative to. Streams that are not sent as RTP are left
    /// out.
    ///
    /// # Errors
    /// It is no description, or doesn't say what the packets of one of its streams are.
    pub fn read(description: &[u8], base: &str) -> Result<Self, SessionDescriptionError> {
        at_most(description.len(), "bytes", MOST_BYTES)?;
        // Titles come in all character sets; what matters here is ASCII.
        let text = String::from_utf8_lossy(description);
        let session = Session::parse(text.as_bytes()).map_err(SessionDescriptionError::Malformed)?;
        at_most(session.medias.len(), "streams", MOST_STREAMS)?;
        let control = resolve(base, value(&session.attributes, "control").unwrap_or("*"));
        let streams = session.medias.iter().enumerate().filter(|(_, media)| media.proto.starts_with("RTP/"));
        Ok(Self {
            range: value(&session.attributes, "range").and_then(|range| play::npt_range(range).ok()),
            streams: streams.map(|(place, media)| stream(place, media, base, &control)).collect::<Result<_, _>>()?,
            control,
        })
    }
}

fn at_most(found: usize, what: &'static str, most: usize) -> Result<(), SessionDescriptionError> {
    if found > most { Err(SessionDescriptionError::TooLong { found, what, most }) } else { Ok(()) }
}

/// What the URLs of a description are relative to (RFC 2326 C.1.1): the reply's `Content-Base`, else its
/// `Content-Location`, else the URL that was asked for. Headers that are no whole URLs are passed over.
#[must_use]
pub fn base<'a>(content_base: Option<&'a str>, content_location: Option<&'a str>, request: &'a str) -> &'a str {
    let headers = [content_base, content_location].into_iter().flatten().map(str::trim);
    headers.into_iter().find(|url| has_scheme(url)).unwrap_or(request)
}

/// A `control` attribute as a URL (RFC 2326 C.1.1).
///
/// Names of streams go behind the whole base, with a slash between if it has none, where RFC 3986 would put them in
/// place of its last part: servers that leave out the slash mean it so, and clients have come to do it.
#[must_use]
pub fn resolve(base: &str, control: &str) -> String {
    match control.trim() {
        "" | "*" => base.to_owned(),
        url if has_scheme(url) => url.to_owned(),
        path if path.starts_with('/') => format!("{}{path}", authority(base)),
        name if base.ends_with('/') => format!("{base}{name}"),
        name => format!("{base}/{name}"),
    }
}

fn has_scheme(url: &str) -> bool {
    ["rtsp://", "rtsps://", "rtspu://"]
        .iter()
        .any(|scheme| url.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme)))
}

/// A URL up to its path.
fn authority(url: &str) -> &str {
    let start = url.find("://").map_or(0, |at| at + 3);
    let path = url[start..].find(['/', '?']).map_or(url.len(), |at| start + at);
    &url[..path]
}

fn value<'a>(attributes: &'a [Attribute], name: &str) -> Option<&'a str> {
    attributes.iter().find(|attribute| attribute.attribute == name)?.value.as_deref().map(str::trim)
}

fn stream(place: usize, media: &Media, base: &str, whole: &str) -> Result<MediaDescription, SessionDescriptionError> {
    let wrong = |line, found: &str, expected| SessionDescriptionError::Stream {
        stream: place,
        line,
        found: found.to_owned(),
        expected,
    };
    let format = media.fmt.split_ascii_whitespace().next().unwrap_or_default();
    let payload_type = format.parse().ok().filter(|number| *number < 128_u8);
    let payload_type = payload_type.ok_or_else(|| wrong("m=", &media.fmt, "a payload type from 0 to 127"))?;
    let (encoding, clock_rate, channels) = match of_format(media, "rtpmap", payload_type) {
        Some(map) => rtpmap(map).ok_or_else(|| wrong("a=rtpmap", map, "NAME/RATE or NAME/RATE/CHANNELS"))?,
        None => known(payload_type).ok_or_else(|| wrong("m=", format, "a payload type with a=rtpmap"))?,
    };
    Ok(MediaDescription {
        media: media.media.clone(),
        // One that has none is asked for by the URL of the whole (RFC 2326 C.3).
        control: value(&media.attributes, "control").map_or_else(|| whole.to_owned(), |control| resolve(base, control)),
        payload_type,
        encoding,
        clock_rate,
        channels,
        parameters: of_format(media, "fmtp", payload_type).map(parameters).unwrap_or_default(),
        bandwidth: media
            .bandwidths
            .iter()
            .find(|bandwidth| bandwidth.bwtype == "AS")
            .map(|bandwidth| bandwidth.bandwidth.saturating_mul(1000)),
    })
}

/// The attribute `name` that begins with the payload type, without that.
fn of_format<'a>(media: &'a Media, name: &str, payload_type: u8) -> Option<&'a str> {
    let all = media.attributes.iter().filter(|attribute| attribute.attribute == name);
    all.filter_map(|attribute| attribute.value.as_deref()?.trim().split_once([' ', '\t']))
        .find(|(format, _)| format.parse() == Ok(payload_type))
        .map(|(_, rest)| rest.trim())
}

/// `NAME/RATE[/CHANNELS]` (RFC 8866 6.6).
fn rtpmap(text: &str) -> Option<(String, u32, Option<u16>)> {
    let mut fields = text.split('/').map(str::trim);
    let name = fields.next().filter(|name| !name.is_empty())?;
    let rate = fields.next()?.parse().ok().filter(|rate| *rate > 0)?;
    let channels = fields.next().and_then(|channels| channels.parse().ok());
    Some((name.to_ascii_lowercase(), rate, channels))
}

/// What is sent under the payload types that need no `rtpmap` (RFC 3551 6).
fn known(payload_type: u8) -> Option<(String, u32, Option<u16>)> {
    let (name, rate, channels) = match payload_type {
        0 => ("pcmu", 8000, Some(1)),
        3 => ("gsm", 8000, Some(1)),
        8 => ("pcma", 8000, Some(1)),
        9 => ("g722", 8000, Some(1)),
        10 => ("l16", 44_100, Some(2)),
        11 => ("l16", 44_100, Some(1)),
        14 => ("mpa", 90_000, None),
        26 => ("jpeg", 90_000, None),
        32 => ("mpv", 90_000, None),
        33 => ("mp2t", 90_000, None),
        _ => return None,
    };
    Some((name.to_owned(), rate, channels))
}

/// `name=value;name=value`: values may have `=` in them, as base64 has.
fn parameters(text: &str) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for field in text.split(';').map(str::trim).filter(|field| !field.is_empty()) {
        let (name, value) = field.split_once('=').unwrap_or((field, ""));
        all.entry(name.trim().to_ascii_lowercase()).or_insert_with(|| value.trim().to_owned());
    }
    all
}

#[cfg(test)]
mod tests;
