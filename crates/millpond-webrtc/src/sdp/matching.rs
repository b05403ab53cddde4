//! Finds the format of a section for a track.

use super::{OfferedFormat, Section, SectionKind, avc_profile::AvcProfile};
use millpond_media::codec::{AvcConfig, Codec};
use millpond_rtp::payload::Packetizer;

/// Finds the format of a section in which a track's packets can be sent to the offerer. `None` where it can't receive them.
///
/// Of several formats the one whose parameters fit best is found, then the one that the offerer names first.
#[must_use]
pub fn format_for<'a>(
    section: &'a Section,
    codec: &Codec,
    packetizer: Packetizer,
    clock_rate: u32,
    channels: u16,
) -> Option<&'a OfferedFormat> {
    if !section.receives() {
        return None;
    }
    let encoding = encoding(codec, packetizer)?;
    let has_channels =
        |format: &OfferedFormat| !matches!(packetizer, Packetizer::Pcm(_)) || format.channels.unwrap_or(1) == channels;
    let named = section
        .formats
        .iter()
        .filter(|format| format.is(encoding) && format.clock_rate == clock_rate && has_channels(format));
    let fitting = named.filter_map(|format| Some((misfit(format, codec)?, format)));
    // Of equal ones it is the first.
    fitting.min_by_key(|(misfit, _)| *misfit).map(|(_, format)| format)
}

/// Formats that are received, the preferred one first: what most players of all protocols can play. Each with its clock rate, and the
/// channels of sound that are stated.
const VIDEO: [(&str, u32, &[Option<u16>]); 5] = [
    ("H264", 90_000, &[None]),
    ("H265", 90_000, &[None]),
    ("AV1", 90_000, &[None]),
    ("VP9", 90_000, &[None]),
    ("VP8", 90_000, &[None]),
];
const AUDIO: [(&str, u32, &[Option<u16>]); 3] = [
    // RFC 7587 7.
    ("opus", 48_000, &[Some(2)]),
    ("PCMU", 8000, &[None, Some(1), Some(2)]),
    ("PCMA", 8000, &[None, Some(1), Some(2)]),
];

/// Finds the format in which the offerer is to send a section. `None` where the server can't receive it.
///
/// Of several formats with one name the first one is found whose packets may hold parts of a frame (RFC 6184 6.3), else the first.
#[must_use]
pub fn received_format(section: &Section) -> Option<&OfferedFormat> {
    if !section.sends() {
        return None;
    }
    let known: &[(&str, u32, &[Option<u16>])] = match section.kind {
        SectionKind::Video => &VIDEO,
        SectionKind::Audio => &AUDIO,
        SectionKind::Other(_) => &[],
    };
    let ranked = section.formats.iter().filter_map(|format| {
        let is = |(name, rate, channels): &(&str, u32, &[Option<u16>])| {
            format.is(name) && format.clock_rate == *rate && channels.contains(&format.channels)
        };
        let rank = known.iter().position(is)?;
        let mode = format.parameter("packetization-mode").unwrap_or("0");
        match format.is("H264") {
            true if mode != "0" && mode != "1" => None,
            is_avc => Some(((rank, is_avc && mode == "0"), format)),
        }
    });
    // Of equal ones it is the first.
    ranked.min_by_key(|(rank, _)| *rank).map(|(_, format)| format)
}

/// Returns the name of a packet format; `None` where WebRTC peers don't know it.
pub(super) fn encoding(codec: &Codec, packetizer: Packetizer) -> Option<&'static str> {
    match packetizer {
        Packetizer::Avc(_) => Some("H264"),
        Packetizer::Hevc(_) => Some("H265"),
        Packetizer::Av1 => Some("AV1"),
        Packetizer::Vp8 => Some("VP8"),
        Packetizer::Vp9 => Some("VP9"),
        // Packets with several streams are none of RFC 7587: that is for mono and stereo.
        Packetizer::Opus => match codec {
            Codec::Opus(config) if config.mapping.first().is_some_and(|streams| *streams != 1) => None,
            _ => Some("opus"),
        },
        Packetizer::Pcm(pcm) => Some(pcm.values.name()),
        Packetizer::Aac | Packetizer::Mpa | Packetizer::Ac3 | Packetizer::Eac3 => None,
    }
}

/// Returns how badly the parameters of a format fit a track: 0 is a perfect fit, `None` none at all.
fn misfit(format: &OfferedFormat, codec: &Codec) -> Option<u8> {
    let number = |name: &str| format.parameter(name).map(|value| value.parse::<u8>().ok());
    // A format without the parameter has this value.
    let is = |name: &str, usual: u8, value: u8| number(name).unwrap_or(Some(usual)) == Some(value);
    match codec {
        Codec::Avc(config) => is("packetization-mode", 0, 1).then(|| avc_misfit(format, config)),
        Codec::Hevc(config) => match number("profile-id") {
            Some(profile) => (profile == Some(config.profile)).then_some(0),
            None => Some(1),
        },
        Codec::Vp9(config) if config.fourcc != *b"vp08" => is("profile-id", 0, config.profile).then_some(0),
        Codec::Av1(config) => is("profile", 0, config.profile).then_some(0),
        _ => Some(0),
    }
}

/// Returns how badly a format of H.264 fits a track. Decoders of browsers decode more than their formats tell, and read the level
/// from the stream: no format is left out.
fn avc_misfit(format: &OfferedFormat, config: &AvcConfig) -> u8 {
    let stream = AvcProfile::of(config.profile, config.compatibility);
    // RFC 6184 8.1.
    let offered = format.parameter("profile-level-id").map_or(Some(AvcProfile::Baseline), AvcProfile::read);
    match offered {
        Some(offered) if offered == stream => 0,
        Some(offered) if offered.decodes(stream) => 1,
        Some(AvcProfile::ConstrainedBaseline) => 2,
        _ => 3,
    }
}
