//! Payload formats of a section.

use super::lines::Lines;

/// Number of payload types.
const PAYLOAD_TYPES: usize = 128;
/// Payload types whose packets can't be told from RTCP at one port (RFC 5761 4).
const RTCP_TYPES: std::ops::RangeInclusive<u8> = 64..=95;
/// Longest name of a format in bytes.
const MOST_NAME: usize = 40;
/// Most kinds of feedback of a format that are kept.
const MOST_FEEDBACK: usize = 16;

/// A payload format that the offerer can receive, or wants to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfferedFormat {
    /// Payload type: 0 to 127.
    pub payload_type: u8,
    /// Name of the format, as it is written.
    pub encoding: String,
    /// Timestamp ticks per second.
    pub clock_rate: u32,
    /// Audio channels; `None` where not stated.
    pub channels: Option<u16>,
    /// Names and values of its `fmtp`, in order. The value of a word without `=` is empty.
    pub parameters: Vec<(String, String)>,
    /// Feedback that it takes, such as `nack pli`, with one space between words.
    pub feedback: Vec<String>,
    /// Payload type of its packets that are sent again (RFC 4588); `None` where the offerer would not ask for them by `nack`.
    pub repeat_type: Option<u8>,
}

impl OfferedFormat {
    /// Reads the formats of a section, in the order of its `m=` line. Formats without a name are left out.
    pub(super) fn read_all(lines: &Lines<'_>, payload_types: &[&str]) -> Vec<Self> {
        let mut places = [None; PAYLOAD_TYPES];
        let mut formats: Vec<Self> = Vec::new();
        for number in payload_types.iter().filter_map(|text| payload_type(text)) {
            let place = &mut places[usize::from(number)];
            if place.is_none() {
                *place = Some(formats.len());
                formats.push(Self::fixed(number));
            }
        }
        for attribute in &lines.attributes {
            let Some((number, rest)) = attribute.value.split_once([' ', '\t']) else { continue };
            let place = payload_type(number).and_then(|number| places[usize::from(number)]);
            match place {
                Some(at) if attribute.is("rtpmap") => formats[at].read_map(rest),
                Some(at) if attribute.is("fmtp") => formats[at].parameters.extend(parameters(rest)),
                _ if attribute.is("rtcp-fb") => {
                    let takers = if number == "*" { 0..formats.len() } else { place.map_or(0..0, |at| at..at + 1) };
                    formats[takers].iter_mut().for_each(|format| format.add_feedback(rest));
                }
                _ => {}
            }
        }
        formats.retain(|format| !format.encoding.is_empty());
        link_repeats(&mut formats);
        formats
    }

    /// The format of a payload type without an `rtpmap` (RFC 3551 6). Formats that no WebRTC peer sends have no name.
    fn fixed(payload_type: u8) -> Self {
        let (encoding, clock_rate) = match payload_type {
            0 => ("PCMU", 8000),
            8 => ("PCMA", 8000),
            _ => ("", 0),
        };
        Self {
            payload_type,
            encoding: encoding.to_owned(),
            clock_rate,
            channels: None,
            parameters: Vec::new(),
            feedback: Vec::new(),
            repeat_type: None,
        }
    }

    /// Takes `NAME/RATE[/CHANNELS]` of an `rtpmap`. Others are ignored.
    fn read_map(&mut self, map: &str) {
        let mut fields = map.split('/').map(str::trim);
        let name = fields.next().and_then(|name| name.split_ascii_whitespace().next());
        let name = name.filter(|name| name.len() <= MOST_NAME);
        let rate = fields.next().and_then(|rate| rate.parse().ok()).filter(|rate| *rate > 0);
        if let (Some(name), Some(rate)) = (name, rate) {
            self.encoding = name.to_owned();
            self.clock_rate = rate;
            self.channels = fields.next().and_then(|channels| channels.parse().ok());
        }
    }

    fn add_feedback(&mut self, text: &str) {
        let kind = text.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
        if self.feedback.len() < MOST_FEEDBACK && !self.takes(&kind) {
            self.feedback.push(kind);
        }
    }

    /// Whether the format has a name, which is written in any case.
    #[must_use]
    pub fn is(&self, encoding: &str) -> bool {
        self.encoding.eq_ignore_ascii_case(encoding)
    }

    /// Returns the value of a parameter, whose name is written in any case.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// Whether the format takes a kind of feedback, such as `nack pli`.
    #[must_use]
    pub fn takes(&self, feedback: &str) -> bool {
        self.feedback.iter().any(|found| found.eq_ignore_ascii_case(feedback))
    }
}

fn payload_type(text: &str) -> Option<u8> {
    text.parse().ok().filter(|number| usize::from(*number) < PAYLOAD_TYPES && !RTCP_TYPES.contains(number))
}

/// Splits `name=value;name=value`. Values may contain `=`, as in base64.
fn parameters(text: &str) -> impl Iterator<Item = (String, String)> {
    text.split(';').map(str::trim).filter(|field| !field.is_empty()).map(|field| {
        let (name, value) = field.split_once('=').unwrap_or((field, ""));
        (name.trim().to_owned(), value.trim().to_owned())
    })
}

/// Finds the formats of packets that are sent again: `a=rtpmap:97 rtx/90000`, `a=fmtp:97 apt=96`.
fn link_repeats(formats: &mut [OfferedFormat]) {
    let repeats = formats.iter().filter(|format| format.is("rtx"));
    let repeats = repeats.filter_map(|format| Some((payload_type(format.parameter("apt")?)?, format.payload_type)));
    let repeats: Vec<(u8, u8)> = repeats.collect();
    for format in formats.iter_mut().filter(|format| format.takes("nack") && !format.is("rtx")) {
        let found = repeats.iter().find(|(repeated, _)| *repeated == format.payload_type);
        format.repeat_type = found.map(|(_, repeat)| *repeat);
    }
}
