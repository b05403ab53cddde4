//! Sections of an offer or answer.

use super::{
    OfferedFormat,
    fault::{Fault, at_most},
    lines::Lines,
};

/// Most formats of a section.
const MOST_FORMATS: usize = 128;
/// The form of an `m=` line.
const EXPECTED: &str = "\"m=video 9 UDP/TLS/RTP/SAVPF 96\"";
/// Profiles of RTP. The names say little: answerers take all of them for SAVPF over DTLS (RFC 8829 5.1.3).
const PROFILES: [&str; 4] = ["RTP/SAVPF", "RTP/SAVP", "RTP/AVPF", "RTP/AVP"];

/// Kind of a section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SectionKind {
    /// Pictures.
    Video,
    /// Sound.
    Audio,
    /// Another one, such as `application`.
    Other(String),
}

impl SectionKind {
    fn of(media: &str) -> Self {
        match media {
            _ if media.eq_ignore_ascii_case("video") => Self::Video,
            _ if media.eq_ignore_ascii_case("audio") => Self::Audio,
            _ => Self::Other(media.to_owned()),
        }
    }

    /// Returns the word of the `m=` line.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Video => "video",
            Self::Audio => "audio",
            Self::Other(media) => media,
        }
    }
}

/// Direction of media, as the side that wrote the description sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediaDirection {
    /// The side sends and receives.
    SendRecv,
    /// The side sends.
    SendOnly,
    /// The side receives.
    RecvOnly,
    /// No media flows.
    Inactive,
}

impl MediaDirection {
    /// Reads the direction of the session or of a section. `None` where it is not stated.
    fn of(lines: &Lines<'_>) -> Option<Self> {
        lines.attributes.iter().find_map(|attribute| match attribute {
            _ if attribute.is("sendrecv") => Some(Self::SendRecv),
            _ if attribute.is("sendonly") => Some(Self::SendOnly),
            _ if attribute.is("recvonly") => Some(Self::RecvOnly),
            _ if attribute.is("inactive") => Some(Self::Inactive),
            _ => None,
        })
    }
}

/// A section of an offer or answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Kind of its media.
    pub kind: SectionKind,
    /// Its name (RFC 5888 4); empty where not stated.
    pub mid: String,
    /// Transport, such as `UDP/TLS/RTP/SAVPF`.
    pub proto: String,
    /// The formats of its `m=` line, as they are written.
    pub format_list: String,
    /// Payload formats in the writer's order of preference; empty unless it is sound or pictures.
    pub formats: Vec<OfferedFormat>,
    /// Direction of its media.
    pub direction: MediaDirection,
    /// Numbers and URIs of header extensions (RFC 8285 5).
    pub extensions: Vec<(u16, String)>,
    /// Whether it belongs to the group of one transport (RFC 9143).
    pub is_bundled: bool,
    /// Whether it can be accepted: it is RTP, not turned off, and uses the transport of the other accepted ones.
    pub is_usable: bool,
}

impl Section {
    /// Reads a section. `session` has what counts for all sections, `group` the names of those with one transport.
    ///
    /// # Errors
    /// The `m=` line is unreadable, or has too many formats.
    pub(super) fn read(lines: &Lines<'_>, session: &Lines<'_>, group: &[&str]) -> Result<Self, Fault> {
        let mut words = lines.media.split_ascii_whitespace();
        let (media, port, proto) = (words.next(), words.next().and_then(port), words.next());
        let formats: Vec<&str> = words.collect();
        let (Some(media), Some(port), Some(proto), [_, ..]) = (media, port, proto, &formats[..]) else {
            return Err(Fault::line(lines.number, &format!("m={}", lines.media), EXPECTED));
        };
        at_most(formats.len(), "formats in a section", MOST_FORMATS)?;
        let kind = SectionKind::of(media);
        let is_rtp = !matches!(kind, SectionKind::Other(_)) && is_rtp(proto);
        let mid = lines.first("mid").and_then(|mid| mid.value.split_ascii_whitespace().next()).unwrap_or_default();
        let direction =
            MediaDirection::of(lines).or_else(|| MediaDirection::of(session)).unwrap_or(MediaDirection::SendRecv);
        // A port of 0 turns a section off, or says that it has no transport of its own (RFC 9143 6).
        let is_on = port != 0 || lines.has("bundle-only");
        Ok(Self {
            kind,
            mid: mid.to_owned(),
            proto: proto.to_owned(),
            format_list: formats.join(" "),
            formats: if is_rtp { OfferedFormat::read_all(lines, &formats) } else { Vec::new() },
            direction,
            extensions: lines.all("extmap").filter_map(|attribute| extension(attribute.value)).collect(),
            is_bundled: group.contains(&mid),
            is_usable: is_rtp && is_on && direction != MediaDirection::Inactive,
        })
    }

    /// Whether the side that wrote the section can receive media in it.
    #[must_use]
    pub fn receives(&self) -> bool {
        self.is_usable && matches!(self.direction, MediaDirection::SendRecv | MediaDirection::RecvOnly)
    }

    /// Whether the side that wrote the section wants to send media in it.
    #[must_use]
    pub fn sends(&self) -> bool {
        self.is_usable && matches!(self.direction, MediaDirection::SendRecv | MediaDirection::SendOnly)
    }

    /// Returns the number of a header extension whose element fits the short form (RFC 8285 4.2).
    #[must_use]
    pub fn extension(&self, uri: &str) -> Option<u8> {
        let (number, _) = self.extensions.iter().find(|(_, found)| found == uri)?;
        u8::try_from(*number).ok().filter(|number| (1..15).contains(number))
    }

    /// Returns the format of a payload type.
    #[must_use]
    pub fn format(&self, payload_type: u8) -> Option<&OfferedFormat> {
        self.formats.iter().find(|format| format.payload_type == payload_type)
    }
}

/// Reads the port of an `m=` line: `9` or `9/2`.
fn port(text: &str) -> Option<u16> {
    text.split('/').next()?.parse().ok()
}

/// Whether a transport carries RTP: `UDP/TLS/RTP/SAVPF`, `RTP/SAVPF`.
fn is_rtp(proto: &str) -> bool {
    let proto = proto.to_ascii_uppercase();
    PROFILES
        .iter()
        .any(|profile| proto.strip_suffix(*profile).is_some_and(|over| over.is_empty() || over.ends_with('/')))
}

/// Reads `NUMBER[/DIRECTION] URI`.
fn extension(value: &str) -> Option<(u16, String)> {
    let mut words = value.split_ascii_whitespace();
    let number = words.next()?.split('/').next()?.parse().ok()?;
    Some((number, words.next()?.to_owned()))
}
