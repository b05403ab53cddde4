//! Payload formats in which the server asks a peer for media.

use super::{
    OfferedFormat, Section, SectionKind, SentFormat,
    sent_format::{G711_RATE, OPUS, PCMA, PCMU, PICTURES},
};

/// Formats of pictures and their parameters, the preferred one first: what most players of all protocols can play.
///
/// H.264 is asked for by each profile, because peers compare its first two bytes. HEVC is asked for without a level, because peers
/// compare that too.
const VIDEO: [(&str, &str); 10] = [
    ("H264", "level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f"),
    ("H264", "level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42001f"),
    ("H264", "level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=4d001f"),
    ("H264", "level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=64001f"),
    ("H265", "profile-id=1;tier-flag=0;tx-mode=SRST"),
    ("H265", "profile-id=2;tier-flag=0;tx-mode=SRST"),
    ("AV1", "profile=0"),
    ("VP9", "profile-id=0"),
    ("VP9", "profile-id=2"),
    ("VP8", ""),
];
/// Clock rate of pictures, and of Opus (RFC 7587 4.1).
const VIDEO_RATE: u32 = 90_000;
const OPUS_RATE: u32 = 48_000;
/// Stereo is played where the peer sends it (RFC 7587 6.1).
const OPUS_PARAMETERS: &str = "minptime=10;stereo=1;useinbandfec=1";

/// Returns the formats of a kind in which the server can receive media, the preferred one first.
#[must_use]
pub fn receivable_formats(kind: &SectionKind) -> Vec<SentFormat> {
    match kind {
        SectionKind::Video => {
            // The number behind that of a format is that of its packets that are sent again.
            let numbers = (PICTURES..).step_by(2).filter(|number| *number != OPUS - 1);
            let of = |((encoding, parameters), number): (&(&'static str, &str), u8)| SentFormat {
                payload_type: number,
                repeat_type: Some(number + 1),
                encoding,
                clock_rate: VIDEO_RATE,
                channels: None,
                parameters: (*parameters).to_owned(),
            };
            VIDEO.iter().zip(numbers).map(of).collect()
        }
        SectionKind::Audio => {
            vec![
                sound(OPUS, "opus", (OPUS_RATE, Some(2)), OPUS_PARAMETERS),
                sound(PCMU, "PCMU", (G711_RATE, None), ""),
                sound(PCMA, "PCMA", (G711_RATE, None), ""),
            ]
        }
        SectionKind::Other(_) => Vec::new(),
    }
}

fn sound(
    payload_type: u8,
    encoding: &'static str,
    (clock_rate, channels): (u32, Option<u16>),
    parameters: &str,
) -> SentFormat {
    let parameters = parameters.to_owned();
    SentFormat { payload_type, repeat_type: None, encoding, clock_rate, channels, parameters }
}

/// Returns the formats of an answer's section in which the peer may send, in its order: those that were offered. None where it sends
/// nothing.
#[must_use]
pub fn answered_formats(offered: &[SentFormat], section: &Section) -> Vec<OfferedFormat> {
    if !section.sends() {
        return Vec::new();
    }
    let of = |format: &OfferedFormat| {
        let is_it = |sent: &&SentFormat| {
            sent.payload_type == format.payload_type && format.is(sent.encoding) && format.clock_rate == sent.clock_rate
        };
        let sent = offered.iter().find(is_it)?;
        let repeat_type = format.repeat_type.filter(|number| sent.repeat_type == Some(*number));
        Some(OfferedFormat { repeat_type, ..format.clone() })
    };
    section.formats.iter().filter_map(of).collect()
}
