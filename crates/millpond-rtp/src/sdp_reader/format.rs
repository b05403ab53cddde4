//! The payload format of a section.

use super::{MediaDescription, section::Section};
use std::collections::BTreeMap;

/// Sample rates of an AudioSpecificConfig by their index (ISO/IEC 14496-3 1.6.3.4).
const AAC_RATES: [u32; 13] =
    [96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8000, 7350];

/// A payload format, as a section states it.
pub(super) struct PayloadFormat {
    /// Payload type: 0 to 127.
    pub(super) payload_type: u8,
    /// Name, in lower case.
    pub(super) encoding: String,
    /// Timestamp ticks per second.
    pub(super) clock_rate: u32,
    /// Audio channels; `None` where not stated.
    pub(super) channels: Option<u16>,
    /// Parameters.
    pub(super) parameters: BTreeMap<String, String>,
}

impl PayloadFormat {
    /// Reads the format of a section: the first known format of the `m=` line.
    ///
    /// # Errors There is no known format. The text has the stated and the expected value.
    pub(super) fn of(section: &Section<'_>) -> Result<Self, String> {
        let line = super::shown(section.line);
        if section.protocol.is_empty() {
            return Err(format!("m= is {line:?}, expected RTP/AVP or another profile of RTP"));
        }
        let stated = section.formats.iter().filter_map(|format| format.parse().ok()).filter(|number| *number < 128_u8);
        let stated: Vec<u8> = stated.collect();
        let of = |number: &u8| Self::mapped(section, *number, *number).or_else(|| Self::fixed(section, *number));
        if let Some(format) = stated.iter().find_map(of) {
            return Ok(format);
        }
        // Devices that number their only format in two ways mean the same one. Without a payload type in the `m=` line it
        // is that of the first format.
        let mut maps = section.by_format("rtpmap").map(|(number, _)| number).filter(|number| *number < 128);
        match (stated.first(), maps.next(), maps.next()) {
            (Some(number), Some(map), None) => Self::mapped(section, *number, map),
            (None, Some(map), _) => Self::mapped(section, map, map),
            _ => None,
        }
        .ok_or_else(|| match section.value("rtpmap") {
            Some(map) => format!("a=rtpmap is {:?} and m= is {line:?}, expected \"96 NAME/RATE\"", super::shown(map)),
            None => format!("m= is {line:?}, expected a payload type from 0 to 127 with a=rtpmap"),
        })
    }

    /// The format `payload_type` with the `rtpmap` of a number (RFC 8866 6.6).
    fn mapped(section: &Section<'_>, payload_type: u8, map: u8) -> Option<Self> {
        let text = section.of_format("rtpmap", map)?;
        let encoding = name(text)?;
        let mut fields = text.split('/').map(str::trim).skip(1);
        let rate = fields.next().and_then(|rate| rate.parse().ok()).filter(|rate| *rate > 0);
        let channels = fields.next().and_then(|channels| channels.parse().ok());
        let fmtp = section.of_format("fmtp", payload_type).or_else(|| section.of_format("fmtp", map));
        let parameters = fmtp.map(parameters).unwrap_or_default();
        let clock_rate = rate.or_else(|| usual_rate(section.media, &encoding, &parameters))?;
        Some(Self { payload_type, encoding, clock_rate, channels, parameters })
    }

    /// The format of a payload type that needs no `rtpmap`.
    fn fixed(section: &Section<'_>, payload_type: u8) -> Option<Self> {
        let (encoding, clock_rate, channels) = known(payload_type)?;
        let parameters = section.of_format("fmtp", payload_type).map(parameters).unwrap_or_default();
        Some(Self { payload_type, encoding: encoding.to_owned(), clock_rate, channels, parameters })
    }
}

/// The name of an `rtpmap`, in lower case. H.264 and H.265 have the names of their RFCs.
pub(super) fn name(map: &str) -> Option<String> {
    let name = map.split(['/', ' ', '\t']).next().filter(|name| !name.is_empty())?.to_ascii_lowercase();
    Some(match name.as_str() {
        "h.264" | "avc" => "h264".to_owned(),
        "h.265" | "hevc" => "h265".to_owned(),
        _ => name,
    })
}

/// Parses `name=value;name=value`. Values may contain `=`, as in base64.
pub(super) fn parameters(text: &str) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for field in text.split(';').map(str::trim).filter(|field| !field.is_empty()) {
        let (name, value) = field.split_once('=').unwrap_or((field, ""));
        all.entry(name.trim().to_ascii_lowercase()).or_insert_with(|| value.trim().to_owned());
    }
    all
}

/// The clock of a format whose `rtpmap` states none: all formats of pictures count 90 kHz.
fn usual_rate(media: &str, encoding: &str, parameters: &BTreeMap<String, String>) -> Option<u32> {
    if media.eq_ignore_ascii_case("video") {
        return Some(90_000);
    }
    match encoding {
        "opus" => Some(48_000),
        "mpa" => Some(90_000),
        "pcmu" | "pcma" => Some(8000),
        "mpeg4-generic" => {
            let config = MediaDescription::hexadecimal(parameters.get("config")?)?;
            let index = (config.first()? & 7) << 1 | config.get(1)? >> 7;
            AAC_RATES.get(usize::from(index)).copied()
        }
        _ => None,
    }
}

/// The formats of the static payload types (RFC 3551 6).
fn known(payload_type: u8) -> Option<(&'static str, u32, Option<u16>)> {
    Some(match payload_type {
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
    })
}
