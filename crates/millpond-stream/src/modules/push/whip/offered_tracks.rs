//! The tracks of a stream that are offered to a server, and those that it takes.

use super::{error::WhipError, media_track::MediaTrack};
use crate::{Format, live::Program};
use millpond_media::movie::TrackKind;
use millpond_package::MediaKind;
use millpond_webrtc::{
    SrtpKeys,
    sdp::{AcceptedFormat, OfferedMedia, ReceivedAnswer, SectionKind, SentFormat, SentSection},
};

/// A track that is offered: its index in the feed, its codec for people, and its section.
#[derive(Debug)]
struct OfferedTrack {
    track: u16,
    codec: String,
    section: SentSection,
}

/// One track of pictures and one of sound.
#[derive(Debug)]
pub(super) struct OfferedTracks(Vec<OfferedTrack>);

/// The tracks that a server takes: places in the offer, with the formats that were chosen.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TakenTracks(Vec<(usize, AcceptedFormat)>);

impl OfferedTracks {
    /// Chooses those of a program: the default one of its kind, else the first one that WebRTC can carry. The log tells which codecs are
    /// left out.
    ///
    /// # Errors
    /// WebRTC can't carry the pictures, or no track at all.
    pub(super) fn of(program: &Program) -> Result<Self, WhipError> {
        let kinds = [(MediaKind::Video, SectionKind::Video), (MediaKind::Audio, SectionKind::Audio)];
        let mut offered = Vec::new();
        for (kind, section) in kinds {
            let mut all: Vec<(u16, &Format)> =
                program.formats().filter(|(_, format)| format.kind == kind && !format.is_alternative).collect();
            // The sort is stable.
            all.sort_by_key(|(_, format)| !format.is_default);
            let found = all.iter().find_map(|(track, format)| of_format(*track, format, section.clone()));
            if found.is_none() && !all.is_empty() {
                let codecs = list(all.iter().map(|(_, format)| codec(format)));
                if kind == MediaKind::Video {
                    return Err(WhipError::Pictures(codecs));
                }
                let stream = program.path();
                tracing::warn!(stream, codecs, "sound is left out of the push by WHIP: WebRTC carries Opus and G.711");
            }
            offered.extend(found);
        }
        if offered.is_empty() {
            return Err(WhipError::Tracks(list(program.formats().map(|(_, format)| codec(format)))));
        }
        Ok(Self(offered))
    }

    /// The sections of the offer.
    pub(super) fn sections(&self) -> Vec<SentSection> {
        self.0.iter().map(|offered| offered.section.clone()).collect()
    }

    /// Returns the tracks that an answer takes. The log tells whether sound is refused.
    ///
    /// # Errors
    /// It takes no pictures where they are offered, or nothing.
    pub(super) fn taken(&self, answer: &ReceivedAnswer, stream: &str) -> Result<TakenTracks, WhipError> {
        let mut taken = Vec::new();
        for (at, OfferedTrack { codec, section, .. }) in self.0.iter().enumerate() {
            match answer.section(at).and_then(|answered| SentFormat::accepted(&section.formats, answered)) {
                Some(accepted) => taken.push((at, accepted)),
                None if section.kind == SectionKind::Video => return Err(WhipError::Refused(codec.clone())),
                None => tracing::warn!(stream, codec, "sound is left out of the push by WHIP: the server refuses it"),
            }
        }
        if taken.is_empty() {
            return Err(WhipError::RefusedAll(list(self.0.iter().map(|offered| offered.codec.clone()))));
        }
        Ok(TakenTracks(taken))
    }

    /// Makes the tracks of a connection with keys.
    pub(super) fn media(&self, taken: &TakenTracks, program: &Program, keys: &SrtpKeys) -> Vec<MediaTrack> {
        let of = |(at, accepted): &(usize, AcceptedFormat)| {
            let OfferedTrack { track, section, .. } = self.0.get(*at)?;
            let OfferedMedia::Sends { ssrc, repeat_ssrc, .. } = section.media else { return None };
            let described = program.feed().format(*track)?.described(usize::from(*track))?;
            Some(MediaTrack::new((*track, &described), (ssrc, repeat_ssrc), *accepted, keys))
        };
        taken.0.iter().filter_map(of).collect()
    }
}

/// Offers a track. `None` where WebRTC can't carry it.
fn of_format(track: u16, format: &Format, kind: SectionKind) -> Option<OfferedTrack> {
    let described = format.described(usize::from(track))?;
    let channels = match format.track.kind {
        TrackKind::Audio { channels, .. } => channels,
        _ => 1,
    };
    let clock_rate = described.packetizer.clock_rate(&format.track);
    let formats = SentFormat::all_of(&format.track.codec, described.packetizer, clock_rate, channels);
    if formats.is_empty() {
        return None;
    }
    let ssrc = fastrand::u32(1..);
    // Another one.
    let repeat_ssrc = ssrc ^ fastrand::u32(1..);
    let media = OfferedMedia::Sends { ssrc, repeat_ssrc, track: format.name.clone() };
    let section = SentSection { kind, formats, media };
    Some(OfferedTrack { track, codec: codec(format), section })
}

fn codec(format: &Format) -> String {
    format.track.codec.parameter().to_string()
}

fn list(codecs: impl Iterator<Item = String>) -> String {
    codecs.collect::<Vec<_>>().join(", ")
}
