//! Resources of an asset: what is known of each before it is made, and how it is made.
//!
//! Each form of a resource is one row of the table in [`form`]. All else reads the facts of that row.

mod form;

pub(super) use form::Image;
pub(crate) use form::Role;
#[cfg(feature = "pictures")]
pub(super) use form::of_track;

use crate::{
    http::Kind,
    library::{Asset, Lazy, LibraryError, Resource},
    work::FEW_SAMPLES,
};
use bytes::Bytes;
use form::{Form, MediaType, Weight};
use millpond_package::{Plan, TrackFilter, hls::Container};

/// Most segments of a track whose playlist a serving thread makes: some microseconds of work.
const FEW_SEGMENTS: u32 = 4096;

/// Facts of a resource that are known before its content is made.
#[derive(Clone, Copy)]
pub(crate) struct ResourceProfile<'a> {
    form: &'static Form,
    container: Container,
    /// Name of its track; empty for a resource of all tracks.
    pub(crate) track: &'a str,
    /// Number of a segment, picture or sheet; 0 for other resources.
    pub(crate) number: u32,
    /// Filter of a playlist or manifest of the whole asset; empty for other resources.
    filter: &'a TrackFilter,
}

/// The result of making a resource.
pub(super) enum Output {
    /// A playlist or manifest.
    Text(String),
    /// An init segment.
    Bytes(Bytes),
    /// The recipe of a segment or a text track.
    Plan(Plan),
}

/// Returns the profile of a resource.
pub(crate) fn profile(resource: &Resource) -> ResourceProfile<'_> {
    form::row(resource)
}

/// Returns the error of a resource that an asset does not have.
pub(super) fn no_resource(asset: &Asset, what: String) -> LibraryError {
    LibraryError::NoResource { asset: asset.path.clone(), what }
}

impl<'a> ResourceProfile<'a> {
    /// Returns the profile of the resource that lists the tracks which a filter keeps.
    pub(super) fn filtered(self, filter: &'a TrackFilter) -> Self {
        Self { filter, ..self }
    }

    /// Returns the value of `Content-Type`.
    pub(crate) fn content_type(&self) -> &'static str {
        match self.form.media_type {
            MediaType::Playlist => "application/vnd.apple.mpegurl",
            MediaType::Manifest => "application/dash+xml",
            MediaType::Mp4 => match self.track.as_bytes().first() {
                Some(b'a') => "audio/mp4",
                Some(b's') => "application/mp4",
                _ => "video/mp4",
            },
            MediaType::TransportStream => "video/mp2t",
            MediaType::WebVtt => "text/vtt; charset=utf-8",
            MediaType::Image(kind) => kind.media_type(),
        }
    }

    /// Returns the label in metrics.
    pub(crate) fn kind(&self) -> Kind {
        match self.form.media_type {
            MediaType::Playlist if self.container == Container::Ts => Kind::HlsTs,
            MediaType::Playlist => Kind::Hls,
            MediaType::Manifest => Kind::Dash,
            MediaType::Mp4 | MediaType::TransportStream => Kind::Segment,
            MediaType::WebVtt => Kind::Subtitle,
            MediaType::Image(_) => Kind::Other,
        }
    }

    /// Tells whether it is text, which is cached and compressed.
    pub(crate) fn is_text(&self) -> bool {
        matches!(self.form.media_type, MediaType::Playlist | MediaType::Manifest | MediaType::WebVtt)
    }

    /// Tells whether it is a transport stream.
    pub(crate) fn is_transport_stream(&self) -> bool {
        self.form.media_type == MediaType::TransportStream
    }

    /// Returns what it is to a player.
    pub(crate) fn role(&self) -> Role {
        self.form.role
    }

    /// Tells whether it is an image. Browsers must not take it for anything else.
    pub(crate) fn is_image(&self) -> bool {
        matches!(self.form.media_type, MediaType::Image(_))
    }

    /// Returns how its image is made, if it is made here.
    pub(super) fn image(&self) -> Option<Image> {
        self.form.image
    }

    /// Tells whether it is an image, or says where images are.
    pub(super) fn is_of_thumbnails(&self) -> bool {
        self.form.is_of_thumbnails || self.form.image.is_some()
    }

    /// Returns the lazy part of its track that making it completes.
    pub(super) fn lazy(&self) -> Option<Lazy> {
        self.form.lazy
    }

    /// Tells whether making it is light enough for a serving thread.
    pub(super) fn is_light(&self, asset: &Asset) -> bool {
        let has_few_samples = || {
            let segment = asset.presentation.track(self.track).and_then(|track| track.segment(self.number));
            segment.is_none_or(|segment| segment.samples.end.saturating_sub(segment.samples.start) <= FEW_SAMPLES)
        };
        let has_few_segments = || {
            let track = asset.presentation.track(self.track);
            track.is_none_or(|track| track.segment_count() <= FEW_SEGMENTS)
        };
        let has_layout = || self.container == Container::Fmp4 || asset.has_made(self.track, Lazy::Ts);
        let is_prepared = self.form.lazy.is_none_or(|part| asset.has_made(self.track, part));
        match self.form.weight {
            Weight::Heavy => false,
            Weight::Light => is_prepared,
            Weight::OfSamples => is_prepared && has_few_samples(),
            Weight::OfSegments => is_prepared && has_few_segments() && has_layout(),
        }
    }

    /// Returns an upper estimate of the memory that making it takes, in bytes.
    pub(super) fn memory(&self, asset: &Asset) -> u64 {
        const FIXED: u64 = 64 << 10;
        FIXED + (self.form.memory)(asset, self)
    }

    /// Returns the most bytes that its body may have for each byte that is read for it.
    pub(super) fn growth(&self) -> u64 {
        // Text grows by a line of times per cue and by boxes in MP4, TS by the headers of its packets.
        match self.form.media_type {
            MediaType::TransportStream => 2,
            MediaType::Mp4 => 3,
            _ => 16,
        }
    }

    /// Makes it or its plan. Heavy work, unless [`is_light`](Self::is_light) is true.
    pub(super) fn make(&self, asset: &Asset) -> Result<Output, LibraryError> {
        (self.form.make)(asset, self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_media::ImageKind;

    /// Returns the facts of a resource as words.
    fn facts(resource: &Resource) -> String {
        let profile = profile(resource);
        let mut words = vec![format!("{:?}", profile.kind()), profile.content_type().to_owned()];
        words.push(format!("{:?}", profile.role()));
        words.extend(profile.is_text().then(|| "text".to_owned()));
        words.extend(profile.is_of_thumbnails().then(|| "thumbnails".to_owned()));
        words.extend(profile.image().map(|image| format!("{image:?}")));
        words.extend(profile.lazy().map(|part| format!("makes {part:?}")));
        words.push(format!("{:?}", profile.form.weight));
        words.join(", ")
    }

    #[test]
    fn facts_of_every_form() {
        use Container::{Fmp4, Ts};
        use Resource::*;
        let (video, sound, text) = (|| "v1".to_owned(), || "a1".to_owned(), || "s1".to_owned());
        for (resource, expected) in [
            (Multivariant(Fmp4), "Hls, application/vnd.apple.mpegurl, Start, text, Heavy"),
            (Multivariant(Ts), "HlsTs, application/vnd.apple.mpegurl, Start, text, Heavy"),
            (Media(Fmp4, video()), "Hls, application/vnd.apple.mpegurl, TrackPlaylist, text, OfSegments"),
            (Media(Ts, video()), "HlsTs, application/vnd.apple.mpegurl, TrackPlaylist, text, OfSegments"),
            (IFrames(video()), "Hls, application/vnd.apple.mpegurl, TrackPlaylist, text, makes IFrames, Heavy"),
            (Mpd, "Dash, application/dash+xml, Start, text, Heavy"),
            (Init(video()), "Segment, video/mp4, Other, Light"),
            (Init(sound()), "Segment, audio/mp4, Other, Light"),
            (Init(text()), "Segment, application/mp4, Other, Light"),
            (Segment(video(), 2), "Segment, video/mp4, Segment, OfSamples"),
            (IFrame(video(), 2), "Segment, video/mp4, Other, makes IFrames, Light"),
            (Still(video(), 2), "Segment, video/mp4, Other, makes IFrames, Light"),
            (Thumbnail(video(), 2), "Other, image/jpeg, Other, thumbnails, Picture, makes IFrames, Light"),
            (Poster(video()), "Other, image/jpeg, Other, thumbnails, Poster, makes IFrames, Light"),
            (Artwork(ImageKind::Png), "Other, image/png, Other, Light"),
            (Artwork(ImageKind::Webp), "Other, image/webp, Other, Light"),
            (Sheet(video(), 2), "Other, image/jpeg, Other, thumbnails, Sheet, makes IFrames, Light"),
            (Thumbnails(video()), "Subtitle, text/vtt; charset=utf-8, Other, text, thumbnails, Heavy"),
            (Images(video()), "Hls, application/vnd.apple.mpegurl, Other, text, thumbnails, Heavy"),
            (TsSegment(video(), 2), "Segment, video/mp2t, Segment, makes Ts, OfSamples"),
            (TextSegment(Ts, text(), 2), "Subtitle, text/vtt; charset=utf-8, Other, text, Heavy"),
            (Text(text()), "Subtitle, text/vtt; charset=utf-8, Other, text, Heavy"),
        ] {
            assert_eq!(facts(&resource), expected, "{resource:?}");
        }
    }

    #[test]
    fn what_a_path_names_is_in_the_profile() {
        use Resource::*;
        let named = |resource: &Resource| {
            let profile = profile(resource);
            (profile.track.to_owned(), profile.number)
        };
        assert_eq!(named(&Mpd), (String::new(), 0));
        assert_eq!(named(&IFrames("v2".to_owned())), ("v2".to_owned(), 0));
        assert_eq!(named(&TsSegment("v2".to_owned(), 7)), ("v2".to_owned(), 7));
        assert_eq!(named(&TextSegment(Container::Ts, "s2".to_owned(), 7)), ("s2".to_owned(), 7));
    }
}
