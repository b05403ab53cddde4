//! Tracks of a window as manifests list them.

use super::Window;
use crate::{live::epoch::WindowEpoch, manifest::track_listing::TrackListing, presentation::track::MediaKind};
use millpond_media::codec::Codec;

impl Window {
    /// Returns the tracks of an epoch for manifests: tracks that fragmented MP4 can carry, and that fit beside video.
    pub(crate) fn listings<'a>(&'a self, epoch: &'a WindowEpoch) -> Vec<TrackListing<'a>> {
        let listings = || (0..self.tracks.len()).filter_map(|place| self.listing(epoch, place));
        let has_video = listings().any(|listing| listing.kind == MediaKind::Video);
        let is_listed = |codec: &Codec| codec.fits_fmp4() && (!has_video || codec.fits_beside_video());
        listings().filter(|listing| listing.codec().is_some_and(is_listed)).collect()
    }

    /// Returns the tracks of an epoch that have their own segments beside transport streams, and the sound track in the segments of each
    /// video.
    pub(crate) fn transport_listings<'a>(
        &'a self,
        epoch: &'a WindowEpoch,
    ) -> (Vec<TrackListing<'a>>, Option<TrackListing<'a>>) {
        let sharing = self.sharing(epoch);
        let own = |place: usize| {
            let listing = self.listing(epoch, place)?;
            Some(TrackListing { bandwidth: self.transport_bandwidth(epoch, place), ..listing })
        };
        let carried = (0..self.tracks.len()).filter(|place| sharing.is_own(*place)).filter_map(own);
        let texts = (0..self.tracks.len()).filter(|place| self.is_text(*place));
        // Subtitles are WebVTT beside any container.
        let tracks = carried.chain(texts.filter_map(|place| self.listing(epoch, place))).collect();
        (tracks, sharing.muxed.and_then(|place| self.listing(epoch, place)))
    }

    fn listing<'a>(&'a self, epoch: &'a WindowEpoch, place: usize) -> Option<TrackListing<'a>> {
        let (of_track, format) = (self.tracks.get(place)?, epoch.formats.get(place)?.as_ref()?);
        Some(TrackListing {
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
            shown_captions: self.captions(place),
            place,
            periods: &[],
        })
    }
}
