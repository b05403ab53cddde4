//! Which track goes to which section of an offer.

use millpond_media::movie::TrackKind;
use millpond_package::MediaKind;
use millpond_stream::{Format, Program};
use millpond_webrtc::sdp::{
    AnsweredSection, MediaDirection, OfferedFormat, PeerOffer, Section, SectionKind, format_for,
};

/// Name of the stream of media in answers: sound and pictures belong together.
const STREAM: &str = "millpond";

/// No track of a stream can be sent to a client.
#[derive(Debug, thiserror::Error)]
#[error("{path}: WebRTC can't send it to this client: the stream has {found}, the offer takes {offered}")]
pub(crate) struct NoAnswer {
    path: String,
    found: String,
    offered: String,
}

/// A track that is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SentTrack {
    /// Index in the feed of the program.
    pub(super) track: u16,
    pub(super) payload_type: u8,
    pub(super) ssrc: u32,
    /// Payload type and SSRC of packets that are sent again; `None` where the client asks for none.
    pub(super) repeats: Option<(u8, u32)>,
}

/// A section of an offer, and what becomes of it.
#[derive(Debug)]
pub(super) struct AgreedSection<'a> {
    section: &'a Section,
    sent: Option<(SentTrack, &'a OfferedFormat, String)>,
}

/// The result of a negotiation.
#[derive(Debug)]
pub(super) struct Negotiated<'a> {
    pub(super) tracks: Vec<SentTrack>,
    pub(super) sections: Vec<AgreedSection<'a>>,
    /// Codecs of tracks that are not sent, with the reason, for people; `None` if all kinds are sent.
    pub(super) note: Option<String>,
}

/// Finds the tracks that are sent to the sections of an offer: one of pictures and one of sound, those that other players begin with
/// where the client takes them. `path` is that of the stream that was asked for.
///
/// # Errors
/// No track can be sent.
pub(super) fn negotiate<'a>(program: &Program, path: &str, offer: &'a PeerOffer) -> Result<Negotiated<'a>, NoAnswer> {
    let mut taken: Vec<u16> = Vec::new();
    let mut sections = Vec::new();
    for section in &offer.sections {
        let kind = match section.kind {
            SectionKind::Video => Some(MediaKind::Video),
            SectionKind::Audio => Some(MediaKind::Audio),
            SectionKind::Other(_) => None,
        };
        let takes = matches!(section.direction, MediaDirection::RecvOnly | MediaDirection::SendRecv);
        let wanted = kind.filter(|_| takes);
        // One track of a kind: another section would get the same pictures again.
        let wanted = wanted.filter(|kind| !taken.iter().any(|track| kind_of(program, *track) == Some(*kind)));
        let found = wanted.and_then(|kind| choose(program, kind, section));
        let sent = found.map(|(track, format, name)| {
            taken.push(track);
            let ssrc = fastrand::u32(1..);
            // The SSRC of packets that are sent again is another one.
            let repeats = format.repeat_type.map(|payload_type| (payload_type, ssrc ^ fastrand::u32(1..)));
            (SentTrack { track, payload_type: format.payload_type, ssrc, repeats }, format, name)
        });
        sections.push(AgreedSection { section, sent });
    }
    let tracks: Vec<SentTrack> =
        sections.iter().filter_map(|agreed| agreed.sent.as_ref().map(|(track, ..)| track.clone())).collect();
    if tracks.is_empty() {
        let codecs = program.formats().map(|(_, format)| format.track.codec.parameter());
        let taken = offer.sections.iter().filter(|section| section.is_usable && section.receives());
        let offered = taken.flat_map(|section| &section.formats).map(|format| format.encoding.as_str());
        return Err(NoAnswer { path: path.to_owned(), found: list(codecs), offered: list(offered) });
    }
    let is_left = |kind| !tracks.iter().any(|sent| kind_of(program, sent.track) == Some(kind));
    let left = program.formats().filter(|(_, format)| is_left(format.kind));
    let left: Vec<String> = left.map(|(_, format)| format.track.codec.parameter().to_string()).collect();
    let note = (!left.is_empty()).then(|| format!("left out, because the client does not take it: {}", list(left)));
    Ok(Negotiated { tracks, sections, note })
}

/// Whether a client that takes Opus would get no sound of a stream.
pub(super) fn lacks_sound(program: &Program, offer: &PeerOffer) -> bool {
    let is_audio = |section: &&Section| matches!(section.kind, SectionKind::Audio) && section.receives();
    let sections = || offer.sections.iter().filter(is_audio);
    let has_opus = |section: &Section| section.formats.iter().any(|format| format.is("opus"));
    sections().any(has_opus) && !sections().any(|section| choose(program, MediaKind::Audio, section).is_some())
}

/// Returns the answers to the sections.
pub(super) fn answered<'a>(sections: &'a [AgreedSection<'a>]) -> Vec<AnsweredSection<'a>> {
    let of = |AgreedSection { section, sent }: &'a AgreedSection<'a>| match sent {
        Some((SentTrack { ssrc, repeats, .. }, format, name)) => AnsweredSection::Sends {
            section,
            format,
            ssrc: *ssrc,
            repeat_ssrc: repeats.map(|(_, ssrc)| ssrc),
            track: name,
            stream: STREAM,
        },
        None => AnsweredSection::Rejected { section },
    };
    sections.iter().map(of).collect()
}

fn kind_of(program: &Program, track: u16) -> Option<MediaKind> {
    program.feed().format(track).map(|format| format.kind)
}

/// Chooses a track of a kind for a section: the default one, else the first one that the client takes.
fn choose<'a>(program: &Program, kind: MediaKind, section: &'a Section) -> Option<(u16, &'a OfferedFormat, String)> {
    let mut all: Vec<(u16, &Format)> =
        program.formats().filter(|(_, format)| format.kind == kind && !format.is_alternative).collect();
    // The sort is stable.
    all.sort_by_key(|(_, format)| !format.is_default);
    all.into_iter().find_map(|(track, format)| {
        let described = format.described(track.into())?;
        let channels = match format.track.kind {
            TrackKind::Audio { channels, .. } => channels,
            _ => 1,
        };
        let clock_rate = described.packetizer.clock_rate(&format.track);
        let offered = format_for(section, &format.track.codec, described.packetizer, clock_rate, channels)?;
        Some((track, offered, format.name.clone()))
    })
}

/// Most texts of a list: offers of browsers have fewer codecs.
const MOST_LISTED: usize = 24;

/// Lists texts, each once. Of very many, the first ones.
pub(super) fn list(texts: impl IntoIterator<Item = impl ToString>) -> String {
    let mut all: Vec<String> = Vec::new();
    for text in texts {
        let text = text.to_string();
        if all.len() < MOST_LISTED && !all.contains(&text) {
            all.push(text);
        }
    }
    if all.is_empty() { "nothing".to_owned() } else { all.join(", ") }
}
