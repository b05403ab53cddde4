//! Payload formats of the server's own offers.

use super::{Section, avc_profile::AvcProfile, matching::encoding};
use millpond_media::codec::{AvcConfig, Codec};
use millpond_rtp::payload::Packetizer;

/// Payload type of the first format of pictures. Odd numbers are those of packets that are sent again.
pub(super) const PICTURES: u8 = 96;
/// Payload type of Opus, as browsers number it.
pub(super) const OPUS: u8 = 111;
/// Static payload types and the clock rate of G.711 (RFC 3551 6).
pub(super) const PCMU: u8 = 0;
pub(super) const PCMA: u8 = 8;
pub(super) const G711_RATE: u32 = 8000;
/// The format of H.264 that all peers of WebRTC know (RFC 7742 6.2): Constrained Baseline of level 3.1.
const USUAL_PROFILE: &str = "42e01f";

/// A format in which a track is offered to a peer, or asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentFormat {
    /// Payload type: 0 to 127.
    pub payload_type: u8,
    /// Payload type of its packets that are sent again (RFC 4588); `None` for sound.
    pub repeat_type: Option<u8>,
    /// Name of the format.
    pub encoding: &'static str,
    /// Timestamp ticks per second.
    pub clock_rate: u32,
    /// Audio channels as they are stated; `None` where they are not.
    pub channels: Option<u16>,
    /// Value of its `fmtp`; empty without one.
    pub parameters: String,
}

/// The format that an answer has chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AcceptedFormat {
    /// Payload type of the packets.
    pub payload_type: u8,
    /// Payload type of packets that are sent again; `None` where they are sent again as they were.
    pub repeat_type: Option<u8>,
}

impl SentFormat {
    /// Returns the formats in which a track can be offered, the exact one first. None where WebRTC peers know no format of it.
    ///
    /// Of H.264 a second format has the profile that all peers know. Many servers know no other one, and pass the pictures on as they
    /// are: decoders read the profile from the pictures.
    #[must_use]
    pub fn all_of(codec: &Codec, packetizer: Packetizer, clock_rate: u32, channels: u16) -> Vec<Self> {
        let Some(encoding) = encoding(codec, packetizer) else { return Vec::new() };
        let pictures = |payload_type: u8, parameters: String| Self {
            payload_type,
            repeat_type: Some(payload_type + 1),
            encoding,
            clock_rate,
            channels: None,
            parameters,
        };
        let sound = |payload_type, channels, parameters: &str| Self {
            payload_type,
            repeat_type: None,
            encoding,
            clock_rate,
            channels,
            parameters: parameters.to_owned(),
        };
        match (encoding, codec) {
            ("opus", _) => {
                let stereo = if channels > 1 { ";stereo=1;sprop-stereo=1" } else { "" };
                // RFC 7587 7: the stated channels are always two.
                vec![sound(OPUS, Some(2), &format!("minptime=10;useinbandfec=1{stereo}"))]
            }
            ("PCMU", _) if clock_rate == G711_RATE && channels == 1 => vec![sound(PCMU, None, "")],
            ("PCMA", _) if clock_rate == G711_RATE && channels == 1 => vec![sound(PCMA, None, "")],
            (_, Codec::Avc(config)) => {
                let all = avc_profiles(config).into_iter();
                all.zip((PICTURES..).step_by(2)).map(|(profile, number)| pictures(number, avc(&profile))).collect()
            }
            (_, Codec::Hevc(config)) => {
                let (level, profile, tier) = (config.level, config.profile, u8::from(config.high_tier));
                let text = format!("level-id={level};profile-id={profile};tier-flag={tier};tx-mode=SRST");
                vec![pictures(PICTURES, text)]
            }
            (_, Codec::Av1(config)) => {
                let (level, profile, tier) = (config.level, config.profile, u8::from(config.high_tier));
                vec![pictures(PICTURES, format!("level-idx={level};profile={profile};tier={tier}"))]
            }
            ("VP9", Codec::Vp9(config)) => vec![pictures(PICTURES, format!("profile-id={}", config.profile))],
            ("VP8", _) => vec![pictures(PICTURES, String::new())],
            // Linear PCM is none of the formats that peers know.
            _ => Vec::new(),
        }
    }

    /// Finds the first format of an answer's section that was offered. `None` where the section takes none of them.
    #[must_use]
    pub fn accepted(offered: &[Self], section: &Section) -> Option<AcceptedFormat> {
        if !section.receives() {
            return None;
        }
        section.formats.iter().find_map(|format| {
            let is_it = |sent: &&Self| sent.payload_type == format.payload_type && format.is(sent.encoding);
            let sent = offered.iter().find(is_it)?;
            let repeat_type = sent.repeat_type.filter(|number| format.repeat_type == Some(*number));
            Some(AcceptedFormat { payload_type: sent.payload_type, repeat_type })
        })
    }
}

/// The `profile-level-id` of a track, and the usual one where that is of another profile.
fn avc_profiles(config: &AvcConfig) -> Vec<String> {
    let AvcConfig { profile, compatibility, level, .. } = config;
    let exact = format!("{profile:02x}{compatibility:02x}{level:02x}");
    let is_usual = AvcProfile::of(*profile, *compatibility) == AvcProfile::ConstrainedBaseline;
    if is_usual { vec![exact] } else { vec![exact, USUAL_PROFILE.to_owned()] }
}

/// Parameters of H.264 in packets that may hold parts of a picture (RFC 6184 8.1).
fn avc(profile: &str) -> String {
    format!("level-asymmetry-allowed=1;packetization-mode=1;profile-level-id={profile}")
}
