//! Which tracks of an asset a client is told of, and how they are sent.

use crate::library::Asset;
use millpond_package::{Kind, PresentedTrack};
use millpond_rtp::{
    description::{Described, FIRST_PAYLOAD_TYPE},
    payload::Packetizer,
};

/// The tracks that are described: pictures of the rendition that is named, else the best one that needs no more than `most` bits a
/// second together with the sound, or the least; sound of the default language.
pub(super) fn chosen<'a>(
    asset: &'a Asset,
    rendition: Option<&str>,
    most: Option<u64>,
) -> Vec<(usize, &'a PresentedTrack)> {
    let tracks: Vec<_> = asset.presentation.tracks().iter().enumerate().collect();
    let fits = |track: &PresentedTrack| track.source_track().and_then(Packetizer::of).is_some();
    let of = |kind| tracks.iter().copied().filter(move |(_, track)| track.kind() == kind && fits(track));
    let named = rendition.and_then(|name| tracks.iter().copied().find(|(_, track)| track.name() == name));
    let audio = named.filter(|(_, track)| track.kind() == Kind::Audio);
    if audio.is_some() {
        return audio.into_iter().collect();
    }
    let audio = of(Kind::Audio).find(|(_, track)| track.is_default()).or_else(|| of(Kind::Audio).next());
    let bits = |track: &PresentedTrack| track.bandwidth().average;
    let left = most.map(|most| most.saturating_sub(audio.map_or(0, |(_, track)| bits(track))));
    let main = of(Kind::Video).filter(|(_, track)| !track.is_alternative());
    let best = main.rev().find(|(_, track)| left.is_none_or(|left| bits(track) <= left));
    let video = named.filter(|(_, track)| track.kind() == Kind::Video);
    let video = video.or(best).or_else(|| of(Kind::Video).next());
    video.into_iter().chain(audio).collect()
}

/// How a track of a presentation is sent; nothing where it can't be.
pub(super) fn described(number: usize, track: &PresentedTrack) -> Option<Described<'_>> {
    let source = track.source_track()?;
    let packetizer = Packetizer::of(source)?;
    let payload_type = packetizer.payload_type(source).unwrap_or(FIRST_PAYLOAD_TYPE + (number % 32) as u8);
    Some(Described {
        name: track.name(),
        track: source,
        packetizer,
        bandwidth: track.bandwidth().average,
        payload_type,
        keys: None,
    })
}
