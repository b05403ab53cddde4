//! Writes the session description (RFC 8866) of an asset's tracks.

use crate::{key_management::carriage, payload::Packetizer, setup::RtpProfile};
use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use millpond_media::{
    codec::{AacConfig, AvcConfig, Codec, HevcConfig},
    movie::{Track, TrackKind},
};
use sdp_types::{AddrType, Attribute, Bandwidth, Connection, Media, NetType, Origin, Session};
use std::{fmt::Write as _, time::Duration};

/// Payload type of the first track. Tracks have dynamic payload types (RFC 3551 6).
pub const FIRST_PAYLOAD_TYPE: u8 = 96;

/// A track with its parameters for a session description.
#[derive(Clone, Copy, Debug)]
pub struct Described<'a> {
    /// Name of the track, at the end of its control URL.
    pub name: &'a str,
    /// Track in the index.
    pub track: &'a Track,
    /// Payload format.
    pub packetizer: Packetizer,
    /// Bits per second.
    pub bandwidth: u64,
    /// Payload type.
    pub payload_type: u8,
    /// Value of its `key-mgmt` attribute (RFC 4567 3.1); `None` where it can't be sent as SRTP.
    pub keys: Option<&'a str>,
    /// Retransmission that is offered; `None` where lost packets stay lost.
    pub repeats: Option<Repeats>,
}

/// An offer to send lost packets again (RFC 4588), by UDP with the profile AVPF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeats {
    /// Time for which packets are kept.
    pub time: Duration,
    /// Whether the stream is described with AVPF. Clients that know AVP only leave such a stream out.
    pub is_avpf: bool,
}

/// Returns the payload type of the packets that are sent again, beside `payload_type` of the others.
#[must_use]
pub fn repeat_type(payload_type: u8) -> u8 {
    if payload_type == LAST_PAYLOAD_TYPE { LAST_PAYLOAD_TYPE - 1 } else { LAST_PAYLOAD_TYPE }
}

/// Last dynamic payload type (RFC 3551 6).
const LAST_PAYLOAD_TYPE: u8 = 127;

/// Times of a session description.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SessionTimes<'a> {
    /// Seconds of the asset; `None` for one without an end.
    pub duration: Option<f64>,
    /// A second range of a live stream, such as the range of its past.
    pub kept: Option<&'a str>,
    /// The phase of a periodic broadcast that a receiver may join, as the attribute `x-phase` tells it.
    pub phase: Option<&'a str>,
}

/// Describes an asset. `number` is the version of the description.
#[must_use]
pub fn describe(title: &str, number: u64, times: &SessionTimes<'_>, tracks: &[Described<'_>]) -> String {
    let SessionTimes { duration, kept, phase } = *times;
    let any = Connection { nettype: NetType::In, addrtype: AddrType::Ip4, connection_address: "0.0.0.0".to_owned() };
    // RFC 2326 C.1.5.
    let range = duration.map_or_else(|| "npt=now-".to_owned(), |duration| format!("npt=0-{duration:.3}"));
    let ranges = [Some(&*range), kept].into_iter().flatten();
    let ranges = ranges.map(|range| Attribute::with_value("range", range));
    let phase = phase.map(|phase| Attribute::with_value("x-phase", phase));
    let session = Session {
        origin: Origin {
            username: None,
            sess_id: number.to_string(),
            sess_version: 1,
            nettype: any.nettype.clone(),
            addrtype: any.addrtype.clone(),
            unicast_address: "0.0.0.0".to_owned(),
        },
        session_name: title.chars().filter(|c| !c.is_control()).collect(),
        session_description: None,
        uri: None,
        emails: Vec::new(),
        phones: Vec::new(),
        connection: Some(any),
        bandwidths: Vec::new(),
        times: vec![sdp_types::Time { start_time: 0, stop_time: 0, repeats: Vec::new() }],
        time_zones: Vec::new(),
        key: None,
        attributes: std::iter::once(Attribute::with_value("control", "*")).chain(ranges).chain(phase).collect(),
        medias: tracks.iter().map(media).collect(),
    };
    let mut text = Vec::new();
    // Writing to memory never fails.
    let _ = session.write(&mut text);
    String::from_utf8_lossy(&text).into_owned()
}

fn media(described: &Described<'_>) -> Media {
    let Described { name, track, packetizer, bandwidth, payload_type, keys, repeats } = *described;
    let (kind, channels) = match track.kind {
        TrackKind::Audio { channels, .. } => ("audio", Some(channels)),
        _ => ("video", None),
    };
    // Before the format itself: FFmpeg takes every map for that of the stream, and the last one counts.
    let mut attributes =
        repeats.map_or_else(Vec::new, |repeats| repeat_format(repeats, payload_type, packetizer.clock_rate(track)));
    attributes
        .push(Attribute::with_value("rtpmap", format!("{payload_type} {}", encoding(packetizer, track, channels))));
    if let Some(parameters) = parameters(&track.codec) {
        attributes.push(Attribute::with_value("fmtp", format!("{payload_type} {parameters}")));
    }
    if repeats.is_some() {
        attributes.push(Attribute::with_value("rtcp-fb", format!("{payload_type} nack")));
    }
    attributes.extend(keys.map(|keys| Attribute::with_value(carriage::ATTRIBUTE, keys)));
    attributes.push(Attribute::with_value("control", name));
    let is_avpf = repeats.is_some_and(|repeats| repeats.is_avpf);
    let profile = match (keys, is_avpf) {
        (Some(_), _) => RtpProfile::Savp,
        (None, true) => RtpProfile::Avpf,
        (None, false) => RtpProfile::Avp,
    };
    Media {
        media: kind.to_owned(),
        port: 0,
        num_ports: None,
        proto: profile.name().to_owned(),
        fmt: if is_avpf { format!("{payload_type} {}", repeat_type(payload_type)) } else { payload_type.to_string() },
        media_title: None,
        connections: Vec::new(),
        bandwidths: vec![Bandwidth { bwtype: "AS".to_owned(), bandwidth: bandwidth.div_ceil(1000) }],
        key: None,
        attributes,
    }
}

/// Returns the format of packets that are sent again (RFC 4588 8.6).
fn repeat_format(repeats: Repeats, payload_type: u8, clock_rate: u32) -> Vec<Attribute> {
    let (number, time) = (repeat_type(payload_type), repeats.time.as_millis());
    vec![
        Attribute::with_value("rtpmap", format!("{number} rtx/{clock_rate}")),
        Attribute::with_value("fmtp", format!("{number} apt={payload_type};rtx-time={time}")),
    ]
}

/// Returns the `NAME/RATE[/CHANNELS]` of an `rtpmap`.
fn encoding(packetizer: Packetizer, track: &Track, channels: Option<u16>) -> String {
    let rate = packetizer.clock_rate(track);
    match packetizer {
        Packetizer::Avc(_) => format!("H264/{rate}"),
        Packetizer::Hevc(_) => format!("H265/{rate}"),
        Packetizer::Av1 => format!("AV1/{rate}"),
        Packetizer::Vp8 => format!("VP8/{rate}"),
        Packetizer::Vp9 => format!("VP9/{rate}"),
        Packetizer::Mpa => format!("MPA/{rate}"),
        // The channel count is always two (RFC 7587 7).
        Packetizer::Opus => format!("opus/{rate}/2"),
        Packetizer::Aac => format!("mpeg4-generic/{rate}/{}", channels.unwrap_or(2)),
        Packetizer::Ac3 => format!("ac3/{rate}/{}", channels.unwrap_or(2)),
        Packetizer::Eac3 => format!("eac3/{rate}/{}", channels.unwrap_or(2)),
        Packetizer::Pcm(pcm) if pcm.channels == 1 => format!("{}/{rate}", pcm.values.name()),
        Packetizer::Pcm(pcm) => format!("{}/{rate}/{}", pcm.values.name(), pcm.channels),
    }
}

/// Returns the parameters of an `fmtp`.
fn parameters(codec: &Codec) -> Option<String> {
    match codec {
        Codec::Avc(config) => Some(avc(config)),
        Codec::Hevc(config) => Some(hevc(config)),
        Codec::Aac(config) => Some(aac(config)),
        Codec::Av1(config) => {
            Some(format!("profile={};level-idx={};tier={}", config.profile, config.level, u8::from(config.high_tier)))
        }
        Codec::Vp9(config) if config.fourcc != *b"vp08" => Some(format!("profile-id={}", config.profile)),
        Codec::Opus(config) => Some(format!("sprop-stereo={}", u8::from(config.channels > 1))),
        _ => None,
    }
}

fn sets(sets: &[Vec<u8>]) -> String {
    sets.iter().map(|set| BASE64.encode(set)).collect::<Vec<_>>().join(",")
}

/// Returns the parameters of RFC 6184 8.1.
fn avc(config: &AvcConfig) -> String {
    let AvcConfig { profile, compatibility, level, .. } = config;
    let mut text = format!("packetization-mode=1;profile-level-id={profile:02X}{compatibility:02X}{level:02X}");
    let all: Vec<Vec<u8>> = config.parameter_sets().map(<[u8]>::to_vec).collect();
    if !all.is_empty() {
        let _ = write!(text, ";sprop-parameter-sets={}", sets(&all));
    }
    text
}

/// Returns the parameters of RFC 7798 7.1.
fn hevc(config: &HevcConfig) -> String {
    let HevcConfig { profile_space, profile, high_tier, level, .. } = config;
    let tier = u8::from(*high_tier);
    let mut text = format!("profile-space={profile_space};profile-id={profile};tier-flag={tier};level-id={level}");
    for (name, all) in [("vps", &config.vps), ("sps", &config.sps), ("pps", &config.pps)] {
        if !all.is_empty() {
            let _ = write!(text, ";sprop-{name}={}", sets(all));
        }
    }
    text
}

/// Returns the parameters of RFC 3640 4.1 and 3.3.6.
fn aac(config: &AacConfig) -> String {
    let config = config.audio_specific_config.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02X}");
        text
    });
    format!(
        "streamtype=5;profile-level-id=1;mode=AAC-hbr;sizelength=13;indexlength=3;indexdeltalength=3;config={config}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{payload::Depacketizer, sdp_reader::SessionDescription};
    use millpond_media::{SampleTable, codec::OpusConfig, units::Timescale};

    const WHOLE: SessionTimes<'_> = SessionTimes { duration: Some(12.5), kept: None, phase: None };

    fn sound(codec: Codec, channels: u16, sample_rate: u32) -> Track {
        Track {
            id: 1,
            kind: TrackKind::Audio { channels, sample_rate },
            timescale: Timescale::MILLIS,
            language: "und".into(),
            name: None,
            enabled: true,
            alternate_group: 0,
            purposes: Default::default(),
            captions: None,
            codec,
            sample_entry: Vec::new(),
            edits: Vec::new(),
            samples: SampleTable::builder().finish(),
            descriptions: None,
            protection: None,
        }
    }

    #[test]
    fn pcm_is_read_as_it_is_described() {
        use millpond_media::codec::{ByteOrder::Little, PcmCoding, PcmConfig};
        for (coding, channels, sample_rate, payload_type, expected) in [
            (PcmCoding::Signed16(Little), 2, 48_000, 97, "L16/48000/2"),
            (PcmCoding::Signed24(Little), 6, 96_000, 97, "L24/96000/6"),
            (PcmCoding::Signed8, 1, 22_050, 97, "L8/22050"),
            (PcmCoding::MuLaw, 1, 8000, 0, "PCMU/8000"),
            (PcmCoding::ALaw, 1, 8000, 8, "PCMA/8000"),
            (PcmCoding::ALaw, 2, 8000, 97, "PCMA/8000/2"),
        ] {
            let config = PcmConfig { fourcc: *b"test", coding, channels, sample_rate };
            let track = sound(Codec::Pcm(config), channels, sample_rate);
            let packetizer = Packetizer::of(&track).unwrap();
            assert_eq!(packetizer.payload_type(&track).unwrap_or(97), payload_type, "{expected}");
            let described = Described {
                name: "a1",
                track: &track,
                packetizer,
                bandwidth: 64_000,
                payload_type,
                keys: None,
                repeats: None,
            };
            let text = describe("a.mov", 7, &WHOLE, &[described]);
            assert!(text.contains(&format!("a=rtpmap:{payload_type} {expected}\r\n")), "{text}");
            let read = SessionDescription::read(text.as_bytes(), "rtsp://host/a.mov/").unwrap();
            let stream = &read.streams[0];
            assert_eq!((stream.clock_rate, stream.channels.unwrap_or(1)), (sample_rate, channels));
            assert!(Depacketizer::of(stream).is_ok(), "{stream:?}");
        }
    }

    #[test]
    fn what_is_described_parses() {
        let config = OpusConfig {
            channels: 2,
            pre_skip: 312,
            input_sample_rate: 48_000,
            output_gain: 0,
            mapping_family: 0,
            mapping: Vec::new(),
        };
        let track = sound(Codec::Opus(config), 2, 48_000);
        let described = Described {
            name: "a1",
            track: &track,
            packetizer: Packetizer::Opus,
            bandwidth: 64_500,
            payload_type: 97,
            keys: None,
            repeats: None,
        };
        let text = describe("films/a\r\nb.mp4", 7, &WHOLE, &[described]);
        let session = Session::parse(text.as_bytes()).unwrap();
        assert_eq!(session.session_name, "films/ab.mp4", "no line of its own");
        let media = &session.medias[0];
        assert_eq!((media.media.as_str(), media.fmt.as_str()), ("audio", "97"));
        assert_eq!(media.get_first_attribute_value("rtpmap"), Some(Some("97 opus/48000/2")));
        assert_eq!(media.get_first_attribute_value("fmtp"), Some(Some("97 sprop-stereo=1")));
        assert_eq!(media.get_first_attribute_value("control"), Some(Some("a1")));
        assert!(text.contains("a=range:npt=0-12.500\r\n") && text.contains("b=AS:65\r\n"), "{text}");
        assert!(describe("a", 7, &SessionTimes::default(), &[described]).contains("a=range:npt=now-\r\n"));
        let phased = describe("a", 7, &SessionTimes { phase: Some("/a/phase-2"), ..WHOLE }, &[described]);
        assert!(phased.contains("a=range:npt=0-12.500\r\na=x-phase:/a/phase-2\r\n"), "{phased}");
        let read = SessionDescription::read(text.as_bytes(), "rtsp://host/films/a.mp4/").unwrap();
        let stream = &read.streams[0];
        assert_eq!((stream.control.as_str(), stream.bandwidth), ("rtsp://host/films/a.mp4/a1", Some(65_000)));
        assert!(Depacketizer::of(stream).is_ok(), "{stream:?}");
        assert_eq!(stream.feedback.retransmission, None);
        for is_avpf in [false, true] {
            let repeats = Some(Repeats { time: Duration::from_millis(1500), is_avpf });
            let text = describe("a", 7, &SessionTimes::default(), &[Described { repeats, ..described }]);
            let read = SessionDescription::read(text.as_bytes(), "rtsp://host/films/a.mp4/").unwrap();
            let feedback = &read.streams[0].feedback;
            let offer = feedback.retransmission.unwrap();
            assert_eq!((offer.payload_type, offer.time), (Some(127), Some(Duration::from_millis(1500))));
            assert_eq!(
                (feedback.profiles[0], feedback.profiles.len()),
                (RtpProfile::Avpf, if is_avpf { 1 } else { 2 })
            );
        }
        assert_eq!((repeat_type(97), repeat_type(127)), (127, 126));
    }
}
