//! Early feedback and retransmission in descriptions (RFC 4585 4.2, RFC 4588 8).

use super::{MediaDescription, format, section::Section};
use crate::setup::RtpProfile;
use std::time::Duration;

/// Most payload types of a stream that are looked at.
const MOST_FORMATS: usize = 32;

/// Feedback and retransmission that the sender of a stream offers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeedbackOffer {
    /// Profiles that SETUP may name, the preferred one first.
    pub profiles: Vec<RtpProfile>,
    /// Retransmission of packets that a receiver asks for; `None` where lost packets stay lost.
    pub retransmission: Option<RetransmissionOffer>,
    /// Whether the sender takes requests for key frames (`nack pli`).
    pub takes_key_frames: bool,
}

/// Retransmission that a sender offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetransmissionOffer {
    /// Payload type of retransmitted packets (RFC 4588); `None` where packets are repeated as they were.
    pub payload_type: Option<u8>,
    /// Time for which the sender keeps packets, if stated (`rtx-time`).
    pub time: Option<Duration>,
}

impl FeedbackOffer {
    /// Reads the offer for the format `payload_type` of a stream. A stream of plain AVP that accepts NACK can be set up with
    /// AVPF too: descriptions name one profile only, and older clients know no other.
    pub(super) fn read(section: &Section<'_>, payload_type: u8) -> Self {
        let is_avpf = section.protocol.eq_ignore_ascii_case(RtpProfile::Avpf.name());
        let is_plain = is_avpf || section.protocol.eq_ignore_ascii_case(RtpProfile::Avp.name());
        let found = retransmission(section, payload_type);
        // GStreamer's server states no `nack` beside `rtx`.
        let is_offered =
            is_plain && (accepts(section, payload_type, &["nack"]) || (is_avpf && found.payload_type.is_some()));
        let profiles = match (is_avpf, is_offered) {
            (true, _) => vec![RtpProfile::Avpf],
            (false, true) => vec![RtpProfile::Avpf, RtpProfile::Avp],
            (false, false) => vec![RtpProfile::Avp],
        };
        let takes_key_frames = is_plain && accepts(section, payload_type, &["nack", "pli"]);
        Self { profiles, retransmission: is_offered.then_some(found), takes_key_frames }
    }
}

/// Whether the stream accepts feedback of a kind: `a=rtcp-fb:96 nack` or `a=rtcp-fb:* nack pli`.
fn accepts(section: &Section<'_>, payload_type: u8, kind: &[&str]) -> bool {
    section.values("rtcp-fb").any(|value| {
        let mut words = value.split_ascii_whitespace();
        let is_ours = words.next().is_some_and(|format| format == "*" || format.parse() == Ok(payload_type));
        is_ours && words.map(str::to_ascii_lowercase).eq(kind.iter().copied())
    })
}

/// Finds the retransmissions of a format: `a=rtpmap:98 rtx/90000`, `a=fmtp:98 apt=96;rtx-time=2000`.
fn retransmission(section: &Section<'_>, payload_type: u8) -> RetransmissionOffer {
    let is_rtx = |number: &u8| {
        *number != payload_type
            && section.of_format("rtpmap", *number).and_then(format::name).is_some_and(|name| name == "rtx")
    };
    // Not all senders list the number in the `m=` line.
    let maps = section.values("rtpmap").take(MOST_FORMATS);
    let numbers = maps.filter_map(|map| map.split_ascii_whitespace().next()?.parse().ok());
    for number in numbers.filter(|number| *number < 128).filter(is_rtx) {
        let all = section.of_format("fmtp", number).map(format::parameters).unwrap_or_default();
        if all.get("apt").is_some_and(|apt| apt.parse() == Ok(payload_type)) {
            let time = all.get("rtx-time").and_then(|time| time.parse().ok()).map(Duration::from_millis);
            return RetransmissionOffer { payload_type: Some(number), time };
        }
    }
    RetransmissionOffer { payload_type: None, time: None }
}

/// Joins streams that are one with different profiles: some servers describe each with AVP and again with AVPF. The one with
/// retransmission remains, at the place of the first one.
pub(super) fn join_profiles(streams: Vec<MediaDescription>) -> Vec<MediaDescription> {
    let mut joined: Vec<MediaDescription> = Vec::with_capacity(streams.len());
    for mut stream in streams {
        let is_same = |other: &&mut MediaDescription| {
            (&other.control, &other.media, &other.encoding) == (&stream.control, &stream.media, &stream.encoding)
                && other.feedback.profiles != stream.feedback.profiles
        };
        match joined.iter_mut().find(is_same) {
            None => joined.push(stream),
            Some(other) => {
                if stream.feedback.retransmission.is_some() && other.feedback.retransmission.is_none() {
                    std::mem::swap(other, &mut stream);
                }
                let profiles = &mut other.feedback.profiles;
                let more = stream.feedback.profiles.iter().filter(|profile| !profiles.contains(profile)).copied();
                let more: Vec<_> = more.collect();
                profiles.extend(more);
            }
        }
    }
    joined
}
