//! The tracks that are received of a publisher's offer.

use super::negotiation::list;
use millpond_rtp::{sdp_reader::SessionDescription, transport_cc};
use millpond_stream::reception::{AnnouncedMedia, ReceivedTrack, SourceError, described_section};
use millpond_webrtc::sdp::{AnsweredSection, OfferedFormat, PeerOffer, Section, received_format};

/// Nothing of an offer can be received.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoReception {
    #[error("{path}: the offer has no section that sends media, expected a=sendonly or a=sendrecv")]
    NothingSent { path: String },
    #[error("{path}: the offer sends {offered}, expected H264, H265, AV1, VP9 or VP8, and opus, PCMU or PCMA")]
    Formats { path: String, offered: String },
    #[error("{path}: {why}")]
    Media { path: String, why: SourceError },
}

/// The media that is received of an offer: one track of pictures and one of sound.
#[derive(Debug)]
pub(super) struct Acceptance<'a> {
    pub(super) tracks: Vec<ReceivedTrack>,
    pub(super) media: AnnouncedMedia,
    pub(super) sections: Vec<AnsweredSection<'a>>,
    /// Number of the header extension by which arrivals are reported.
    pub(super) arrivals: Option<u8>,
    /// Sections that are left out, for people.
    pub(super) note: Option<String>,
}

/// Chooses what is received of an offer for the stream of a path.
///
/// # Errors
/// Nothing can be received.
pub(super) fn accept<'a>(path: &str, offer: &'a PeerOffer) -> Result<Acceptance<'a>, NoReception> {
    let mut arrivals = None;
    let (mut tracks, mut streams, mut sections) = (Vec::new(), Vec::new(), Vec::new());
    let (mut kinds, mut left) = (Vec::new(), Vec::new());
    for (number, section) in offer.sections.iter().enumerate() {
        // Packets are told apart by their payload types.
        let format = received_format(section).filter(|_| !kinds.contains(&&section.kind));
        let format = format.filter(|format| {
            let types = [Some(format.payload_type), format.repeat_type];
            let is_taken = |track: &ReceivedTrack| types.iter().flatten().any(|number| track.has(*number));
            !tracks.iter().any(is_taken) && AnnouncedMedia::takes(&described_section(number, &section.kind, format))
        });
        let Some(format) = format else {
            left.extend(section.sends().then(|| section.kind.name()));
            sections.push(AnsweredSection::Rejected { section });
            continue;
        };
        kinds.push(&section.kind);
        let channel = 2 * tracks.len() as u8;
        let OfferedFormat { payload_type, repeat_type, .. } = *format;
        tracks.push(ReceivedTrack { payload_type, repeat_type, channel });
        streams.push(described_section(number, &section.kind, format));
        // One number for the whole connection (RFC 9143 7.1.3).
        let own = section.extension(transport_cc::URI).filter(|_| format.takes(transport_cc::FEEDBACK));
        arrivals = arrivals.or(own);
        sections.push(AnsweredSection::Receives {
            section,
            format,
            arrivals: own.filter(|own| arrivals == Some(*own)),
        });
    }
    if streams.is_empty() {
        return Err(nothing(path, offer));
    }
    let description = SessionDescription { control: String::new(), range: None, streams, skipped: Vec::new() };
    let media = AnnouncedMedia::new(description).map_err(|why| NoReception::Media { path: path.to_owned(), why })?;
    let note =
        (!left.is_empty()).then(|| format!("left out, because it can't be received beside the others: {}", list(left)));
    Ok(Acceptance { tracks, media, sections, arrivals, note })
}

fn nothing(path: &str, offer: &PeerOffer) -> NoReception {
    let path = path.to_owned();
    let sent: Vec<&Section> = offer.sections.iter().filter(|section| section.sends()).collect();
    if sent.is_empty() {
        return NoReception::NothingSent { path };
    }
    let offered = list(sent.iter().flat_map(|section| &section.formats).map(|format| format.encoding.as_str()));
    NoReception::Formats { path, offered }
}
