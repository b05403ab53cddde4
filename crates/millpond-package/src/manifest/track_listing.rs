//! Tracks as multivariant playlists and MPDs list them: of stored assets, and of live streams.

use crate::{
    delivery::{container::Container, transport},
    presentation::{
        Presentation,
        period::Period,
        track::{MediaKind, PresentedTrack, StreamAccess, displayed},
    },
    timeline::bandwidth::Bandwidth,
};
use millpond_media::{
    CaptionChannels, Purposes,
    codec::Codec,
    movie::{Track, TrackKind},
    protection::{Protection, SystemHeader},
};

/// One track in a manifest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TrackListing<'a> {
    /// Name in URLs, such as `v1`.
    pub(crate) name: &'a str,
    /// Kind of the track.
    pub(crate) kind: MediaKind,
    /// Name for menus.
    pub(crate) label: &'a str,
    /// BCP 47 tag; `None` where the language is unknown.
    pub(crate) language: Option<&'a str>,
    /// Whether players should start with this track of its kind.
    pub(crate) is_default: bool,
    /// Whether players show it even with subtitles off.
    pub(crate) is_forced: bool,
    /// Ladder of a video: 0 for the main one.
    pub(crate) ladder: u16,
    /// Bits per second in the container of the manifest.
    pub(crate) bandwidth: Bandwidth,
    /// Codec, sample entry and picture; `None` for sidecars.
    pub(crate) track: Option<&'a Track>,
    /// Frames per second as a fraction; `None` except for video, and where unknown.
    pub(crate) frame_rate: Option<(u32, u32)>,
    /// Greatest type of stream access point among the segments' starts (ISO/IEC 14496-12 I.2); `None` where a start is
    /// no access point.
    pub(crate) sap_type: Option<u8>,
    /// Protection system headers of its file.
    pub(crate) headers: &'a [SystemHeader],
    /// The stored track that it lists; `None` for live ones.
    pub(crate) source: Option<&'a PresentedTrack>,
    /// Channels of captions within the pictures of a live track; `None` for stored ones, and where they are not known.
    pub(crate) shown_captions: Option<CaptionChannels>,
    /// Index in the presentation or window.
    pub(crate) place: usize,
    /// Periods of the asset in the container; none where it has one.
    pub(crate) periods: &'a [Period],
}

impl<'a> TrackListing<'a> {
    /// Returns the listing of track `place` of a presentation for one container.
    pub(crate) fn stored(presentation: &'a Presentation, place: usize, container: Container) -> Option<Self> {
        let track = presentation.tracks.get(place)?;
        let media = track.media();
        Some(Self {
            name: &track.name,
            kind: track.kind,
            label: &track.label,
            language: track.language.as_deref(),
            is_default: track.default,
            is_forced: track.forced,
            ladder: track.ladder,
            bandwidth: bandwidth(presentation, track, container),
            track: track.delivered(),
            frame_rate: track.frame_rate(),
            sap_type: media.map_or(Some(1), |media| media.access.sap_type()),
            periods: match container {
                Container::Fmp4 => &presentation.periods,
                Container::Ts => transport::periods(presentation),
            },
            headers: media.map_or(&[], |media| &media.movie.system_headers),
            source: Some(track),
            shown_captions: None,
            place,
        })
        .map(|listing| listing.across(container))
    }

    /// Returns the listing with the largest values of all its periods.
    fn across(mut self, container: Container) -> Self {
        let Some(track) = self.source else { return self };
        let value = |rate: &(u32, u32)| f64::from(rate.0) / f64::from(rate.1.max(1));
        for period in self.periods {
            let Some(part) = period.part_of(track) else { continue };
            self.bandwidth = self.bandwidth.larger(bandwidth(&period.presentation, part, container));
            let rates = self.frame_rate.into_iter().chain(part.frame_rate());
            self.frame_rate = rates.max_by(|a, b| value(a).total_cmp(&value(b)));
            let access = part.media().map_or(Some(1), |media| media.access.sap_type());
            self.sap_type = self.sap_type.zip(access).map(|(a, b)| a.max(b));
        }
        self
    }

    /// Returns the parts of the track in the periods; none where the asset has one.
    fn parts(&self) -> impl Iterator<Item = &'a PresentedTrack> {
        let source = self.source;
        self.periods.iter().filter_map(move |period| period.part_of(source?))
    }

    /// Bits per second as fragmented MP4, whatever the container of the manifest is: the largest of all periods.
    pub(crate) fn fragment_rate(&self) -> Bandwidth {
        let own = self.source.map_or(self.bandwidth, |source| source.bandwidth);
        self.parts().map(|part| part.bandwidth).fold(own, Bandwidth::larger)
    }

    /// Returns the codecs of all periods, that of most samples first; none for sidecars.
    pub(crate) fn codecs(&self) -> impl Iterator<Item = &'a Codec> {
        // The track of a stitched title may announce more than each item needs.
        let is_stitched = self.source.and_then(PresentedTrack::movie).is_some_and(|movie| movie.stitched.is_some());
        let own = self.codec().filter(|_| !is_stitched || self.periods.is_empty());
        own.into_iter().chain(self.parts().filter_map(PresentedTrack::delivered_codec))
    }

    /// Returns the listings of the tracks of a presentation that `is_listed` chooses.
    pub(crate) fn of_presentation(
        presentation: &'a Presentation,
        container: Container,
        is_listed: impl Fn(&PresentedTrack) -> bool,
    ) -> Vec<Self> {
        let places = presentation.tracks.iter().enumerate().filter(|(_, track)| is_listed(track));
        places.filter_map(|(place, _)| Self::stored(presentation, place, container)).collect()
    }

    /// The track's codec; `None` for sidecars.
    pub(crate) fn codec(&self) -> Option<&'a Codec> {
        self.track.map(|track| &track.codec)
    }

    /// Codec parameter of RFC 6381; `wvtt` for sidecars, which are delivered as WebVTT.
    pub(crate) fn codec_parameter(&self) -> String {
        self.codec().map_or_else(|| "wvtt".to_owned(), Codec::parameter)
    }

    /// Purposes that its file states.
    pub(crate) fn purposes(&self) -> Purposes {
        self.track.map_or_else(Purposes::default, |track| track.purposes)
    }

    /// Channels of captions within its pictures, of all periods; `None` where they are not known.
    pub(crate) fn captions(&self) -> Option<CaptionChannels> {
        if self.source.is_none() {
            return self.shown_captions;
        }
        let parts = self.parts().filter_map(PresentedTrack::source_track);
        CaptionChannels::joined(self.track.into_iter().chain(parts).map(|track| track.captions))
    }

    /// Whether it is delivered as WebVTT: sidecars, `tx3g` and `wvtt`.
    pub(crate) fn is_webvtt(&self) -> bool {
        self.kind == MediaKind::Text && !matches!(self.codec(), Some(Codec::Stpp(_)))
    }

    /// Whether MPDs name it as a file of WebVTT. Live subtitles have segments of MP4 there.
    pub(crate) fn is_vtt_file(&self) -> bool {
        self.is_webvtt() && self.source.is_some()
    }

    /// Encryption of the samples; `None` where they are clear.
    pub(crate) fn protection(&self) -> Option<&'a Protection> {
        self.track?.protection.as_deref()
    }

    /// Whether each segment can be decoded without others (RFC 8216 4.3.5.1).
    pub(crate) fn is_independent(&self) -> bool {
        self.track.is_some() && self.sap_type == StreamAccess::Closed.sap_type()
    }

    /// Bits per second of its pictures for trick play, where it is a video that has some.
    pub(crate) fn iframes(&self) -> Option<Bandwidth> {
        let source = self.source.filter(|source| source.kind == MediaKind::Video)?;
        let rate = |track: &PresentedTrack| Some(track.media()?.iframe_rate(track.segments.end(), track.bandwidth));
        let rates = self.parts().filter_map(rate);
        Some(rates.fold(rate(source)?, Bandwidth::larger))
    }

    /// Channels; `None` except for audio.
    pub(crate) fn channels(&self) -> Option<u16> {
        match self.track?.kind {
            TrackKind::Audio { channels, .. } => Some(channels),
            _ => None,
        }
    }

    /// Number of objects of Dolby Atmos in E-AC-3 (JOC); `None` where the sound has none.
    pub(crate) fn joc_complexity(&self) -> Option<u8> {
        match self.codec()? {
            Codec::Eac3(config) => config.joc_complexity.filter(|objects| *objects > 0),
            _ => None,
        }
    }

    /// Width and height in square pixels as displayed; `None` where unknown, and except for video.
    pub(crate) fn display_size(&self) -> Option<(u32, u32)> {
        let sizes = self.parts().filter_map(|part| displayed(part.source_track()?));
        sizes.chain(displayed(self.track?)).max_by_key(|(width, height)| u64::from(*width) * u64::from(*height))
    }
}

fn bandwidth(presentation: &Presentation, track: &PresentedTrack, container: Container) -> Bandwidth {
    match container {
        Container::Ts if track.kind != MediaKind::Text => transport::bandwidth(presentation, track),
        _ => track.bandwidth,
    }
}
