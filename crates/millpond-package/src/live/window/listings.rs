//! Tracks of a window as manifests list them.

use super::{Window, WindowTrack};
use crate::{
    live::epoch::{LiveFormat, WindowEpoch},
    track::MediaKind,
    track_listing::TrackListing,
};
use millpond_media::codec::Codec;

impl Window {
    /// Returns the tracks of an epoch for manifests: those that fragmented MP4 can carry, except for PCM next to video.
    pub(crate) fn listings<'a>(&'a self, epoch: &'a WindowEpoch) -> Vec<TrackListing<'a>> {
        let tracks = || self.tracks.iter().zip(&epoch.formats).enumerate();
        let has_video = tracks().any(|(_, (track, format))| track.kind == MediaKind::Video && format.is_some());
        let listing = |(place, (of_track, format)): (usize, (&'a WindowTrack, &'a Option<LiveFormat>))| {
            let format = format.as_ref()?;
            let codec = &format.track.codec;
            let is_listed = codec.fits_fmp4() && !(has_video && matches!(codec, Codec::Pcm(_)));
            is_listed.then(|| TrackListing {
                name: &of_track.name,
                kind: of_track.kind,
                label: &format.label,
                language: format.language.as_deref(),
                is_default: format.is_default,
                is_forced: false,
                ladder: 0,
                bandwidth: self.bandwidth(place),
                track: Some(&format.track),
                frame_rate: format.frame_rate,
                // Long groups of pictures are cut without a key frame.
                sap_type: (of_track.kind != MediaKind::Video).then_some(1),
                headers: &[],
                source: None,
                place,
            })
        };
        tracks().filter_map(listing).collect()
    }
}
