//! A track that a peer sends, and its description.

use millpond_rtp::{
    sdp_reader::{FeedbackOffer, MediaDescription, RetransmissionOffer},
    setup::RtpProfile,
};
use millpond_webrtc::sdp::{OfferedFormat, SectionKind};

/// A track that is received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedTrack {
    /// Payload type of its packets.
    pub payload_type: u8,
    /// Payload type of packets that are sent again.
    pub repeat_type: Option<u8>,
    /// Channel of its packets at the reception: an even number. The next one is that of RTCP.
    pub channel: u8,
}

impl ReceivedTrack {
    /// Whether packets of a payload type are the track's.
    #[must_use]
    pub fn has(&self, payload_type: u8) -> bool {
        self.payload_type == payload_type || self.repeat_type == Some(payload_type)
    }
}

/// Describes the stream of a section, whose index is `number`, as one of RTSP.
#[must_use]
pub fn described_section(number: usize, kind: &SectionKind, format: &OfferedFormat) -> MediaDescription {
    let parameters = format.parameters.iter().rev();
    let repeats = RetransmissionOffer { payload_type: format.repeat_type, time: None };
    MediaDescription {
        section: number,
        media: match kind {
            SectionKind::Video => "video".to_owned(),
            SectionKind::Audio | SectionKind::Other(_) => "audio".to_owned(),
        },
        control: String::new(),
        payload_type: format.payload_type,
        encoding: format.encoding.to_ascii_lowercase(),
        clock_rate: format.clock_rate,
        channels: format.channels,
        // Of several with one name, the first counts.
        parameters: parameters.map(|(name, value)| (name.to_ascii_lowercase(), value.clone())).collect(),
        bandwidth: None,
        language: None,
        feedback: FeedbackOffer {
            profiles: vec![RtpProfile::Avpf],
            retransmission: format.takes("nack").then_some(repeats),
            takes_key_frames: format.takes("nack pli"),
        },
        is_send_only: false,
    }
}
