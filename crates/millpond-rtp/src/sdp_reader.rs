//! Reads session descriptions as a client (RFC 8866, RFC 2326 C): the streams, and the URLs for their requests.

mod configuration;
mod retransmission;

pub use retransmission::{FeedbackOffer, RetransmissionOffer};

use crate::play::{self, NptRange};
use sdp_types::{Attribute, Media, ParserError, Session};
use std::collections::BTreeMap;

/// Longest description in bytes.
const MOST_BYTES: usize = 256 * 1024;
/// Most streams of a description.
const MOST_STREAMS: usize = 64;

/// Content of a session description: streams that are played together.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionDescription {
    /// URL of requests for all streams.
    pub control: String,
    /// Time range of the presentation; `None` unless stated in npt.
    pub range: Option<NptRange>,
    /// Streams that are sent as RTP, in order.
    pub streams: Vec<MediaDescription>,
}

/// Description of one stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediaDescription {
    /// `video`, `audio`, ...
    pub media: String,
    /// URL of requests for this stream.
    pub control: String,
    /// Payload type: 0 to 127.
    pub payload_type: u8,
    /// Name of the payload format, in lower case.
    pub encoding: String,
    /// Timestamp ticks per second.
    pub clock_rate: u32,
    /// Audio channels; `None` where not stated.
    pub channels: Option<u16>,
    /// Parameters of its `fmtp`, with names in lower case; the first one of each name.
    pub parameters: BTreeMap<String, String>,
    /// Bits per second (`b=TIAS`, else `b=AS`).
    pub bandwidth: Option<u64>,
    /// Language of the stream, or else of the session: a BCP 47 tag (`a=lang`, RFC 8866 6.12).
    pub language: Option<String>,
    /// Early feedback and retransmission that the sender offers.
    pub feedback: FeedbackOffer,
}

/// The reason why a description is unusable.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum SessionDescriptionError {
    /// The text does not follow RFC 8866.
    #[error("session description: {0}")]
    Malformed(ParserError),
    /// The description is too long.
    #[error("a session description of {found} {what}, expected at most {most}")]
    TooLong {
        /// Count in the description.
        found: usize,
        /// Unit of the count.
        what: &'static str,
        /// Greatest count allowed.
        most: usize,
    },
    /// The description of one stream is invalid.
    #[error("stream {stream}: {line} is {found:?}, expected {expected}")]
    Stream {
        /// Number of the media section, from 0.
        stream: usize,
        /// Name of the line.
        line: &'static str,
        /// Value found.
        found: String,
        /// Value expected.
        expected: &'static str,
    },
}

impl SessionDescription {
    /// Reads a description. [`base`] returns the base of its URLs. Streams that are not sent as RTP are left out.
    ///
    /// # Errors
    /// The text is no description, or lacks the packet format of a stream.
    pub fn read(description: &[u8], base: &str) -> Result<Self, SessionDescriptionError> {
        at_most(description.len(), "bytes", MOST_BYTES)?;
        // Titles may have any character set; the rest is ASCII.
        let text = String::from_utf8_lossy(description);
        let session = Session::parse(text.as_bytes()).map_err(SessionDescriptionError::Malformed)?;
        at_most(session.medias.len(), "streams", MOST_STREAMS)?;
        let control = resolve(base, value(&session.attributes, "control").unwrap_or("*"));
        let language = value(&session.attributes, "lang");
        let streams = session.medias.iter().enumerate().filter(|(_, media)| media.proto.starts_with("RTP/"));
        let streams = streams.map(|(place, media)| stream(place, media, base, &control, language));
        Ok(Self {
            range: value(&session.attributes, "range").and_then(|range| play::npt_range(range).ok()),
            streams: retransmission::join_profiles(streams.collect::<Result<_, _>>()?),
            control,
        })
    }
}

fn at_most(found: usize, what: &'static str, most: usize) -> Result<(), SessionDescriptionError> {
    if found > most { Err(SessionDescriptionError::TooLong { found, what, most }) } else { Ok(()) }
}

/// Returns the base of a description's URLs (RFC 2326 C.1.1): the reply's `Content-Base`, else its `Content-Location`,
/// else the URL of the request. Headers without a whole URL are ignored.
#[must_use]
pub fn base<'a>(content_base: Option<&'a str>, content_location: Option<&'a str>, request: &'a str) -> &'a str {
    let headers = [content_base, content_location].into_iter().flatten().map(str::trim);
    headers.into_iter().find(|url| has_scheme(url)).unwrap_or(request)
}

/// Resolves a `control` attribute to a URL (RFC 2326 C.1.1).
///
/// Names of streams are appended to the whole base, with a slash between where needed, although RFC 3986 would replace
/// the last segment. Servers that omit the slash expect this, and clients do it.
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

/// Returns a URL up to its path.
fn authority(url: &str) -> &str {
    let start = url.find("://").map_or(0, |at| at + 3);
    let path = url[start..].find(['/', '?']).map_or(url.len(), |at| start + at);
    &url[..path]
}

fn value<'a>(attributes: &'a [Attribute], name: &str) -> Option<&'a str> {
    attributes.iter().find(|attribute| attribute.attribute == name)?.value.as_deref().map(str::trim)
}

fn stream(
    place: usize,
    media: &Media,
    base: &str,
    whole: &str,
    language: Option<&str>,
) -> Result<MediaDescription, SessionDescriptionError> {
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
        // A stream without a control attribute has the URL of the whole presentation (RFC 2326 C.3).
        control: value(&media.attributes, "control").map_or_else(|| whole.to_owned(), |control| resolve(base, control)),
        payload_type,
        encoding,
        clock_rate,
        channels,
        parameters: of_format(media, "fmtp", payload_type).map(parameters).unwrap_or_default(),
        bandwidth: bandwidth(media),
        language: value(&media.attributes, "lang").or(language).map(str::to_owned),
        feedback: FeedbackOffer::read(media, payload_type),
    })
}

/// Returns the bits per second: `TIAS` (RFC 3890), which counts no headers, or else `AS` in kilobits (RFC 8866 5.8).
fn bandwidth(media: &Media) -> Option<u64> {
    let of = |kind| media.bandwidths.iter().find(|line| line.bwtype == kind).map(|line| line.bandwidth);
    of("TIAS").or_else(|| of("AS").map(|kilobits| kilobits.saturating_mul(1000)))
}

/// Returns the attribute `name` for the payload type, without the latter.
fn of_format<'a>(media: &'a Media, name: &str, payload_type: u8) -> Option<&'a str> {
    let all = media.attributes.iter().filter(|attribute| attribute.attribute == name);
    all.filter_map(|attribute| attribute.value.as_deref()?.trim().split_once([' ', '\t']))
        .find(|(format, _)| format.parse() == Ok(payload_type))
        .map(|(_, rest)| rest.trim())
}

/// Parses `NAME/RATE[/CHANNELS]` (RFC 8866 6.6).
fn rtpmap(text: &str) -> Option<(String, u32, Option<u16>)> {
    let mut fields = text.split('/').map(str::trim);
    let name = fields.next().filter(|name| !name.is_empty())?;
    let rate = fields.next()?.parse().ok().filter(|rate| *rate > 0)?;
    let channels = fields.next().and_then(|channels| channels.parse().ok());
    Some((name.to_ascii_lowercase(), rate, channels))
}

/// Returns the format of the static payload types, which need no `rtpmap` (RFC 3551 6).
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

/// Parses `name=value;name=value`. Values may contain `=`, as in base64.
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
