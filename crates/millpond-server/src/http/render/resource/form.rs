//! The table of forms: each form of a resource has one row. A new one takes a row, and its arm in [`row`].

use super::{Output, ResourceProfile, no_resource};
use crate::library::{Asset, Lazy, LibraryError, Resource};
use bytes::Bytes;
use millpond_media::ImageKind;
use millpond_package::{
    PackageError, Plan, PlanItem, PresentedTrack, TrackFilter, dash, fmp4,
    hls::{self, Container},
    text_track,
    thumbnails::{self, Thumbnails},
    transport,
};

/// The facts of a form.
pub(super) struct Form {
    pub(super) media_type: MediaType,
    pub(super) role: Role,
    pub(super) weight: Weight,
    /// The lazy part of its track that making it completes.
    pub(super) lazy: Option<Lazy>,
    /// How its image is made; `None` for what is no image.
    pub(super) image: Option<Image>,
    /// Whether it says where images are.
    pub(super) is_of_thumbnails: bool,
    /// Returns an upper estimate of the memory that making it takes, in bytes.
    pub(super) memory: fn(&Asset, &ResourceProfile<'_>) -> u64,
    /// Makes it.
    pub(super) make: Make,
}

/// Media type of a body.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum MediaType {
    /// A playlist of HLS.
    Playlist,
    /// A manifest of DASH.
    Manifest,
    Mp4,
    TransportStream,
    WebVtt,
    Image(ImageKind),
}

/// Use that a player makes of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The playlist or manifest of the asset, with which a player begins.
    Start,
    /// The playlist of one track.
    TrackPlaylist,
    /// A media segment, which tells how far a viewer is.
    Segment,
    /// All else.
    Other,
}

/// The work of making a resource whose lazy part is made.
#[derive(Clone, Copy, Debug)]
pub(super) enum Weight {
    /// A serving thread may do it.
    Light,
    /// A serving thread may do it for a segment of few samples.
    OfSamples,
    /// A serving thread may do it for a track of few segments. The list of transport stream segments needs their layout.
    OfSegments,
    /// The worker pool does it.
    Heavy,
}

/// How an image is made.
#[derive(Clone, Copy, Debug)]
pub(in crate::http::render) enum Image {
    /// One picture.
    Picture,
    /// The first of several pictures that is not blank.
    Poster,
    /// A sheet of pictures.
    Sheet,
}

/// The filter of resources that have none.
static ALL_TRACKS: TrackFilter = TrackFilter::ALL;

/// Finds the row of a resource, and what its path names.
pub(super) fn row(resource: &Resource) -> ResourceProfile<'_> {
    use Container::Fmp4;
    let filter = &ALL_TRACKS;
    let profile = |form, container, track, number| ResourceProfile { form, container, track, number, filter };
    match resource {
        Resource::Multivariant(container) => profile(&MULTIVARIANT, *container, "", 0),
        Resource::Media(container, track) => profile(&MEDIA, *container, track, 0),
        Resource::IFrames(track) => profile(&IFRAMES, Fmp4, track, 0),
        Resource::Mpd => profile(&MPD, Fmp4, "", 0),
        Resource::Artwork(ImageKind::Jpeg) => profile(&JPEG_ARTWORK, Fmp4, "", 0),
        Resource::Artwork(ImageKind::Png) => profile(&PNG_ARTWORK, Fmp4, "", 0),
        Resource::Artwork(ImageKind::Webp) => profile(&WEBP_ARTWORK, Fmp4, "", 0),
        Resource::Init(track) => profile(&INIT, Fmp4, track, 0),
        Resource::Segment(track, number) => profile(&SEGMENT, Fmp4, track, *number),
        Resource::IFrame(track, number) => profile(&IFRAME, Fmp4, track, *number),
        Resource::Still(track, number) => profile(&STILL, Fmp4, track, *number),
        Resource::Thumbnail(track, number) => profile(&THUMBNAIL, Fmp4, track, *number),
        Resource::Poster(track) => profile(&POSTER, Fmp4, track, 0),
        Resource::Sheet(track, number) => profile(&SHEET, Fmp4, track, *number),
        Resource::Thumbnails(track) => profile(&THUMBNAILS, Fmp4, track, 0),
        Resource::Images(track) => profile(&IMAGES, Fmp4, track, 0),
        Resource::TsSegment(track, number) => profile(&TS_SEGMENT, Container::Ts, track, *number),
        Resource::TextSegment(container, track, number) => profile(&TEXT_SEGMENT, *container, track, *number),
        Resource::Text(track) => profile(&TEXT, Fmp4, track, 0),
    }
}

/// Makes a resource.
type Make = fn(&Asset, &ResourceProfile<'_>) -> Result<Output, LibraryError>;

impl Form {
    /// Returns the row of a form that is heavy work on the index alone. A row says what else is so.
    const fn new(media_type: MediaType, make: Make) -> Self {
        Self {
            media_type,
            role: Role::Other,
            weight: Weight::Heavy,
            lazy: None,
            image: None,
            is_of_thumbnails: false,
            memory: |_, _| 0,
            make,
        }
    }

    /// Returns the row of a picture of a key frame, whose list is made of all samples.
    const fn of_key_frame(media_type: MediaType, make: Make) -> Self {
        let (weight, lazy) = (Weight::Light, Some(Lazy::IFrames));
        Self {
            weight,
            lazy,
            memory: |asset, of| of_named(asset, of, |track| samples(track) * 16),
            ..Self::new(media_type, make)
        }
    }

    /// Returns the row of artwork. The asset's index has its place.
    const fn of_artwork(kind: ImageKind, make: Make) -> Self {
        Self { weight: Weight::Light, ..Self::new(MediaType::Image(kind), make) }
    }
}

const MULTIVARIANT: Form = Form {
    role: Role::Start,
    // Lines of each track, group and key.
    memory: |asset, _| asset.presentation.all_tracks().map(|track| 2048 + track.key_bytes()).sum(),
    ..Form::new(MediaType::Playlist, |asset, of| {
        let text = hls::filtered_multivariant(&asset.presentation, of.container, of.filter);
        text.map(Output::Text).map_err(|error| failed(asset, error))
    })
};

const MPD: Form = Form {
    role: Role::Start,
    // As a multivariant playlist, and the addresses of each segment.
    memory: |asset, _| {
        asset.presentation.all_tracks().map(|track| 2048 + track.key_bytes() + segments(track) * 96).sum()
    },
    ..Form::new(MediaType::Manifest, |asset, of| {
        let text = dash::filtered_mpd(&asset.presentation, of.filter);
        text.map(Output::Text).map_err(|error| failed(asset, error))
    })
};

const MEDIA: Form = Form {
    role: Role::TrackPlaylist,
    weight: Weight::OfSegments,
    memory: |asset, of| of_named(asset, of, |track| track.key_bytes() + segments(track) * 160),
    ..Form::new(MediaType::Playlist, |asset, of| {
        let presentation = asset.presentation.of_track(of.track);
        playlist(asset, of, hls::media(presentation, track(asset, of)?, of.container))
    })
};

const IFRAMES: Form = Form {
    role: Role::TrackPlaylist,
    lazy: Some(Lazy::IFrames),
    memory: |asset, of| of_named(asset, of, |track| track.key_bytes() + segments(track) * 1024 + samples(track) * 4),
    ..Form::new(MediaType::Playlist, |asset, of| {
        let presentation = asset.presentation.of_track(of.track);
        playlist(asset, of, hls::iframes(presentation, track(asset, of)?, of.container))
    })
};

const JPEG_ARTWORK: Form = Form::of_artwork(ImageKind::Jpeg, |asset, _| artwork(asset, ImageKind::Jpeg));
const PNG_ARTWORK: Form = Form::of_artwork(ImageKind::Png, |asset, _| artwork(asset, ImageKind::Png));
const WEBP_ARTWORK: Form = Form::of_artwork(ImageKind::Webp, |asset, _| artwork(asset, ImageKind::Webp));

const INIT: Form = Form {
    weight: Weight::Light,
    ..Form::new(MediaType::Mp4, |asset, of| {
        let init = fmp4::init(&asset.presentation, track(asset, of)?);
        if init.is_empty() {
            return Err(no_resource(asset, format!("track {} has no init segment", of.track)));
        }
        Ok(Output::Bytes(init))
    })
};

const SEGMENT: Form = Form {
    role: Role::Segment,
    weight: Weight::OfSamples,
    memory: |asset, of| {
        of_named(asset, of, |track| {
            let range = track.segment(of.number).map(|segment| segment.samples);
            let row = 128 + track.encryption_bytes();
            range.map_or(0, |range| u64::from(range.end.saturating_sub(range.start)) * row)
        })
    },
    ..Form::new(MediaType::Mp4, |asset, of| {
        segment(asset, of, fmp4::segment(&asset.presentation, track(asset, of)?, of.number))
    })
};

const IFRAME: Form = Form::of_key_frame(MediaType::Mp4, |asset, of| {
    match fmp4::iframe(&asset.presentation, track(asset, of)?, of.number) {
        Some(plan) => Ok(Output::Plan(plan)),
        None => Err(no_picture(asset, of)),
    }
});

const STILL: Form = Form::of_key_frame(MediaType::Mp4, |asset, of| {
    match fmp4::still(&asset.presentation, track(asset, of)?, of.number) {
        Some(plan) => Ok(Output::Plan(plan)),
        None => Err(no_picture(asset, of)),
    }
});

/// Media type of images that are made here.
const JPEG: MediaType = MediaType::Image(ImageKind::Jpeg);

/// The image itself is made by [`Pictures`](super::super::pictures::Pictures), of what is made here.
const THUMBNAIL: Form = Form {
    image: Some(Image::Picture),
    ..Form::of_key_frame(JPEG, |asset, of| match thumbnails::key_frame(track(asset, of)?, of.number) {
        Some(frame) => Ok(Output::Plan(Plan::Items(vec![PlanItem::Object(frame.place)]))),
        None => Err(no_picture(asset, of)),
    })
};

/// The image itself is made as for [`THUMBNAIL`].
const POSTER: Form = Form {
    image: Some(Image::Poster),
    ..Form::of_key_frame(JPEG, |asset, of| match of_track(asset, of.track)?.posters().first() {
        Some(_) => Ok(Output::Bytes(Bytes::new())),
        None => Err(no_picture(asset, of)),
    })
};

/// The image itself is made as for [`THUMBNAIL`].
const SHEET: Form = Form {
    image: Some(Image::Sheet),
    ..Form::of_key_frame(JPEG, |asset, of| {
        let made = of_track(asset, of.track)?;
        let none = || no_resource(asset, format!("no sheet {} of thumbnails: there are {}", of.number, made.sheets()));
        made.pictures(of.number).map(|_| Output::Bytes(Bytes::new())).ok_or_else(none)
    })
};

const THUMBNAILS: Form = Form {
    is_of_thumbnails: true,
    memory: of_thumbnails,
    ..Form::new(MediaType::WebVtt, |asset, of| Ok(Output::Text(of_track(asset, of.track)?.webvtt())))
};

const IMAGES: Form = Form {
    is_of_thumbnails: true,
    memory: of_thumbnails,
    ..Form::new(MediaType::Playlist, |asset, of| Ok(Output::Text(of_track(asset, of.track)?.playlist())))
};

const TS_SEGMENT: Form = Form {
    role: Role::Segment,
    weight: Weight::OfSamples,
    lazy: Some(Lazy::Ts),
    memory: |asset, of| of_named(asset, of, |track| samples(track) * 16),
    ..Form::new(MediaType::TransportStream, |asset, of| {
        let plan = transport::segment(asset.presentation.of_track(of.track), track(asset, of)?, of.number);
        segment(asset, of, plan.map_err(|error| failed(asset, error))?)
    })
};

const TEXT_SEGMENT: Form = Form::new(MediaType::WebVtt, |asset, of| {
    let plan = text_track::segment(&asset.presentation, track(asset, of)?, of.number, of.container);
    segment(asset, of, plan.map_err(|error| failed(asset, error))?)
});

const TEXT: Form = Form {
    memory: |asset, of| of_named(asset, of, |track| samples(track) * 64),
    ..Form::new(MediaType::WebVtt, |asset, of| {
        let plan = text_track::whole(asset.presentation.of_track(of.track), track(asset, of)?);
        match plan.map_err(|error| failed(asset, error))? {
            Some(plan) => Ok(Output::Plan(plan)),
            None => Err(no_resource(asset, format!("track {} is not text", of.track))),
        }
    })
};

/// Returns the memory of a list of thumbnails.
fn of_thumbnails(asset: &Asset, _: &ResourceProfile<'_>) -> u64 {
    asset.presentation.duration() as u64 * 64
}

fn segments(track: &PresentedTrack) -> u64 {
    u64::from(track.segment_count())
}

fn samples(track: &PresentedTrack) -> u64 {
    u64::from(track.sample_count())
}

/// Returns a size of the track of a resource; 0 where there is no such track.
fn of_named(asset: &Asset, of: &ResourceProfile<'_>, size: impl Fn(&PresentedTrack) -> u64) -> u64 {
    asset.presentation.track(of.track).map_or(0, size)
}

/// Returns the track of a resource.
fn track<'a>(asset: &'a Asset, of: &ResourceProfile<'_>) -> Result<&'a PresentedTrack, LibraryError> {
    asset.presentation.track(of.track).ok_or_else(|| {
        let names: Vec<&str> = asset.presentation.tracks().iter().map(PresentedTrack::name).collect();
        no_resource(asset, format!("no track {}: it has {}", of.track, names.join(", ")))
    })
}

/// Returns the thumbnails of an asset, which are those of the track of a name.
pub(in crate::http::render) fn of_track<'a>(asset: &'a Asset, name: &str) -> Result<Thumbnails<'a>, LibraryError> {
    let thumbnails = Thumbnails::of(&asset.presentation).filter(|thumbnails| thumbnails.track() == name);
    thumbnails.ok_or_else(|| {
        no_resource(asset, format!("track {name} has no thumbnails: they are made of clear H.264 up to 1920x1088"))
    })
}

fn playlist(asset: &Asset, of: &ResourceProfile<'_>, text: Option<String>) -> Result<Output, LibraryError> {
    let none = || no_resource(asset, format!("track {} has no such playlist", of.track));
    text.map(Output::Text).ok_or_else(none)
}

fn segment(asset: &Asset, of: &ResourceProfile<'_>, plan: Option<Plan>) -> Result<Output, LibraryError> {
    let none = || {
        let count = asset.presentation.track(of.track).map_or(0, PresentedTrack::segment_count);
        no_resource(asset, format!("no segment {} in track {}: it has {count}", of.number, of.track))
    };
    plan.map(Output::Plan).ok_or_else(none)
}

fn no_picture(asset: &Asset, of: &ResourceProfile<'_>) -> LibraryError {
    let count = asset.presentation.track(of.track).map_or(0, thumbnails::key_frames);
    no_resource(asset, format!("no picture {} in track {}: it has {count}", of.number, of.track))
}

/// Returns the bytes of the picture that the file of an asset has beside its media, if the picture has this format.
fn artwork(asset: &Asset, kind: ImageKind) -> Result<Output, LibraryError> {
    match asset.presentation.artwork() {
        Some(found) if found.kind() == kind => Ok(Output::Plan(found.plan())),
        found => {
            let found =
                found.map_or_else(|| "none".to_owned(), |found| format!("artwork.{}", found.kind().extension()));
            Err(no_resource(asset, format!("no artwork.{}: the file has {found} beside its media", kind.extension())))
        }
    }
}

fn failed(asset: &Asset, error: PackageError) -> LibraryError {
    LibraryError::Package { asset: asset.path.clone(), error: error.into() }
}
