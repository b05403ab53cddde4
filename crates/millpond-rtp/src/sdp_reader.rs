//! Reads session descriptions as a client (RFC 8866, RFC 2326 C): the streams, and the URLs for their requests.
//!
//! Devices write what they like, and their other clients never look at it. Only the lines `m=`, `a=` and `b=` are read, and only
//! the fields that a stream needs are required. A section that lacks it is skipped, and told.

mod configuration;
mod format;
mod retransmission;
mod section;
mod skipped;

pub use retransmission::{FeedbackOffer, RetransmissionOffer};
pub use skipped::SkippedSection;

use crate::play::{self, NptRange};
use format::PayloadFormat;
use section::Section;
use std::collections::BTreeMap;

/// Longest description in bytes.
const MOST_BYTES: usize = 256 * 1024;
/// Most streams of a description.
const MOST_STREAMS: usize = 64;
/// Longest part of a description in an error, in characters.
const MOST_SHOWN: usize = 100;

/// Content of a session description: streams that are played together.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionDescription {
    /// URL of requests for all streams.
    pub control: String,
    /// Time range of the presentation; `None` unless stated in npt.
    pub range: Option<NptRange>,
    /// Streams that are sent as RTP, in order.
    pub streams: Vec<MediaDescription>,
    /// Sections that are no such streams, in order.
    pub skipped: Vec<SkippedSection>,
}

/// Description of one stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediaDescription {
    /// Number of its section, from 0.
    pub section: usize,
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
    /// Parameters of its `fmtp`, with names in lower case. Of several with one name, the first counts.
    pub parameters: BTreeMap<String, String>,
    /// Bits per second (`b=TIAS`, else `b=AS`).
    pub bandwidth: Option<u64>,
    /// Language of the stream, or else of the session: a BCP 47 tag (`a=lang`, RFC 8866 6.12).
    pub language: Option<String>,
    /// Early feedback and retransmission that the sender offers.
    pub feedback: FeedbackOffer,
    /// Whether the section has `a=sendonly`. In a server's description that is a stream that the client may send, such as
    /// the speaker of a camera.
    pub is_send_only: bool,
}

/// The reason why a description is unusable.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum SessionDescriptionError {
    /// The text has no line of RFC 8866.
    #[error("a session description that begins with {found:?}, expected lines such as \"m=video 0 RTP/AVP 96\"")]
    Foreign {
        /// Beginning of the text.
        found: String,
    },
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
}

impl SessionDescription {
    /// Reads a description. [`base`] returns the base of its URLs. Sections that are not sent as RTP, or whose packet format
    /// is not stated, are skipped.
    ///
    /// # Errors
    /// The text is no description, or too long.
    pub fn read(description: &[u8], base: &str) -> Result<Self, SessionDescriptionError> {
        at_most(description.len(), "bytes", MOST_BYTES)?;
        // Titles may have any character set; the rest is ASCII.
        let text = String::from_utf8_lossy(description);
        let Some((session, media)) = section::split(&text) else {
            return Err(SessionDescriptionError::Foreign { found: shown(&text) });
        };
        at_most(media.len(), "streams", MOST_STREAMS)?;
        let control = resolve(base, session.value("control").unwrap_or("*"));
        let language = session.value("lang");
        let (mut streams, mut skipped) = (Vec::new(), Vec::new());
        for (place, section) in media.iter().enumerate() {
            // A stream without a control attribute has the URL of the whole presentation (RFC 2326 C.3).
            let url = section.value("control").map_or_else(|| control.clone(), |control| resolve(base, control));
            match PayloadFormat::of(section) {
                Ok(format) => streams.push(stream((place, section), format, url, language)),
                Err(why) => {
                    skipped.push(SkippedSection { section: place, media: section.media.into(), control: url, why })
                }
            }
        }
        let range = session.value("range").and_then(|range| play::npt_range(range).ok());
        Ok(Self { range, streams: retransmission::join_profiles(streams), control, skipped })
    }

    /// Skips the streams that the client of a server may send, such as the speaker of a camera. Where all are said to be such
    /// streams the server means its own direction.
    pub fn skip_back_channels(&mut self) {
        if self.streams.iter().all(|stream| stream.is_send_only) {
            return;
        }
        let back = self.streams.extract_if(.., |stream| stream.is_send_only);
        self.skipped.extend(back.map(SkippedSection::back_channel));
    }
}

/// The beginning of a text, for an error.
fn shown(text: &str) -> String {
    text.chars().take(MOST_SHOWN).collect()
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

fn stream(
    (place, section): (usize, &Section<'_>),
    format: PayloadFormat,
    control: String,
    language: Option<&str>,
) -> MediaDescription {
    let PayloadFormat { payload_type, encoding, clock_rate, channels, parameters } = format;
    MediaDescription {
        section: place,
        media: section.media.to_ascii_lowercase(),
        control,
        payload_type,
        encoding,
        clock_rate,
        channels,
        parameters,
        bandwidth: section.bandwidth(),
        language: section.value("lang").or(language).map(str::to_owned),
        feedback: FeedbackOffer::read(section, payload_type),
        is_send_only: section.has("sendonly"),
    }
}

#[cfg(test)]
mod tests;
