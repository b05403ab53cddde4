//! Supplemental codecs of representations: Dolby Vision, beside the base codec that other decoders play (ANSI/SCTE 214-1;
//! DASH-IF IOP part 9).

use crate::{manifest::track_listing::TrackListing, writing::xml::Writer};
use millpond_media::codec::Codec;

/// Declares the name space of the attributes in an adaptation set that has them, stored or live.
pub(super) fn name_space(w: &mut Writer, tracks: &[TrackListing<'_>]) {
    if tracks.iter().any(|track| of(track).is_some()) {
        w.attribute("xmlns:scte214", "urn:scte:dash:scte214-extensions");
    }
}

/// Writes the attributes of a representation.
pub(super) fn attributes(w: &mut Writer, track: &TrackListing<'_>) {
    if let Some((codec, brand)) = of(track) {
        w.attribute("scte214:supplementalCodecs", &codec).attribute("scte214:supplementalProfiles", brand);
    }
}

fn of(track: &TrackListing<'_>) -> Option<(String, &'static str)> {
    track.codec().and_then(Codec::supplement)
}
