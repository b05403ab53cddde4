//! Resources of an asset: media type, cost and the function that makes each.

use crate::{
    http::Kind,
    library::{Asset, Lazy, LibraryError, Resource},
};
use bytes::Bytes;
use millpond_package::{
    PackageError, Plan, PlanItem, PresentedTrack, dash, fmp4, hls, text_track,
    thumbnails::{self, Thumbnails},
    transport,
};

/// Properties of a resource that are known before it is made.
pub(crate) struct ResourceProfile {
    /// Value of `Content-Type`.
    pub(crate) content_type: &'static str,
    /// Label in metrics.
    pub(crate) kind: Kind,
    /// Whether it is text, which is cached and compressed.
    pub(crate) is_text: bool,
}

/// Most samples of a segment that is planned on the serving threads: a hundred microseconds of work.
const FEW_SAMPLES: u32 = 2048;

/// Returns the profile of a resource.
pub(crate) fn profile(resource: &Resource) -> ResourceProfile {
    let profile = |content_type, kind, is_text| ResourceProfile { content_type, kind, is_text };
    match resource {
        Resource::Multivariant(c) | Resource::Media(c, _) => {
            let kind = if *c == hls::Container::Ts { Kind::HlsTs } else { Kind::Hls };
            profile("application/vnd.apple.mpegurl", kind, true)
        }
        Resource::IFrames(_) | Resource::Images(_) => profile("application/vnd.apple.mpegurl", Kind::Hls, true),
        Resource::Thumbnail(..) | Resource::Sheet(..) => profile("image/jpeg", Kind::Other, false),
        Resource::Mpd => profile("application/dash+xml", Kind::Dash, true),
        Resource::Init(name) | Resource::Segment(name, _) | Resource::IFrame(name, _) | Resource::Still(name, _) => {
            let content_type = match name.as_bytes().first() {
                Some(b'a') => "audio/mp4",
                Some(b's') => "application/mp4",
                _ => "video/mp4",
            };
            profile(content_type, Kind::Segment, false)
        }
        Resource::TsSegment(..) => profile("video/mp2t", Kind::Segment, false),
        Resource::TextSegment(..) | Resource::Text(_) | Resource::Thumbnails(_) => {
            profile("text/vtt; charset=utf-8", Kind::Subtitle, true)
        }
    }
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

/// Tells whether making a resource is light enough for a serving thread.
pub(super) fn is_light(asset: &Asset, resource: &Resource) -> bool {
    let few = |name: &str, number| {
        let segment = asset.presentation.track(name).and_then(|track| track.segment(number));
        segment.is_none_or(|segment| segment.samples.end.saturating_sub(segment.samples.start) <= FEW_SAMPLES)
    };
    match resource {
        Resource::Init(_) => true,
        Resource::Segment(name, number) => few(name, *number),
        Resource::TsSegment(name, number) => asset.has_made(name, Lazy::Ts) && few(name, *number),
        Resource::IFrame(name, _) | Resource::Still(name, _) => asset.has_made(name, Lazy::IFrames),
        Resource::Thumbnail(name, _) | Resource::Sheet(name, _) => asset.has_made(name, Lazy::IFrames),
        _ => false,
    }
}

/// Tells whether a resource is an image.
pub(super) fn is_picture(resource: &Resource) -> bool {
    matches!(resource, Resource::Thumbnail(..) | Resource::Sheet(..))
}

/// Tells whether a resource is an image, or says where images are.
pub(super) fn is_of_thumbnails(resource: &Resource) -> bool {
    is_picture(resource) || matches!(resource, Resource::Thumbnails(_) | Resource::Images(_))
}

/// Returns the lazy part of a track that making a resource completes.
pub(super) fn lazy(resource: &Resource) -> Option<(&str, Lazy)> {
    match resource {
        Resource::TsSegment(name, _) => Some((name, Lazy::Ts)),
        Resource::IFrame(name, _) | Resource::IFrames(name) | Resource::Still(name, _) => Some((name, Lazy::IFrames)),
        Resource::Thumbnail(name, _) | Resource::Sheet(name, _) => Some((name, Lazy::IFrames)),
        _ => None,
    }
}

/// Returns an upper estimate of the memory that making a resource takes, in bytes.
pub(super) fn memory(asset: &Asset, resource: &Resource) -> u64 {
    const FIXED: u64 = 64 << 10;
    let segments = |track: &PresentedTrack| u64::from(track.segment_count());
    let samples = |track: &PresentedTrack| u64::from(track.sample_count());
    let of = |name: &str, size: &dyn Fn(&PresentedTrack) -> u64| asset.presentation.track(name).map_or(0, size);
    let keys = |track: &PresentedTrack| track.key_bytes();
    let tracks = || asset.presentation.all_tracks();
    FIXED
        + match resource {
            Resource::Init(_) | Resource::TextSegment(..) => 0,
            Resource::Images(_) | Resource::Thumbnails(_) => asset.presentation.duration() as u64 * 64,
            Resource::Thumbnail(name, _) | Resource::Sheet(name, _) => of(name, &|track| samples(track) * 16),
            // Lines of each track, group and key. The MPD also addresses each segment.
            Resource::Multivariant(_) => tracks().map(|track| 2048 + keys(track)).sum(),
            Resource::Mpd => tracks().map(|track| 2048 + keys(track) + segments(track) * 96).sum(),
            Resource::Media(_, name) => of(name, &|track| keys(track) + segments(track) * 160),
            Resource::IFrames(name) => of(name, &|track| keys(track) + segments(track) * 1024 + samples(track) * 4),
            Resource::IFrame(name, _) | Resource::Still(name, _) | Resource::TsSegment(name, _) => {
                of(name, &|track| samples(track) * 16)
            }
            Resource::Text(name) => of(name, &|track| samples(track) * 64),
            Resource::Segment(name, number) => of(name, &|track| {
                let range = track.segment(*number).map(|segment| segment.samples);
                let row = 128 + track.encryption_bytes();
                range.map_or(0, |range| u64::from(range.end.saturating_sub(range.start)) * row)
            }),
        }
}

/// Returns the error of a resource that an asset does not have.
pub(super) fn no_resource(asset: &Asset, what: String) -> LibraryError {
    LibraryError::NoResource { asset: asset.path.clone(), what }
}

/// Returns the track of a name.
fn track<'a>(asset: &'a Asset, name: &str) -> Result<&'a PresentedTrack, LibraryError> {
    asset.presentation.track(name).ok_or_else(|| {
        let names: Vec<&str> = asset.presentation.tracks().iter().map(PresentedTrack::name).collect();
        no_resource(asset, format!("no track {name}: it has {}", names.join(", ")))
    })
}

/// Returns the thumbnails of an asset, which are those of the track of a name.
pub(super) fn of_track<'a>(asset: &'a Asset, name: &str) -> Result<Thumbnails<'a>, LibraryError> {
    let thumbnails = Thumbnails::of(&asset.presentation).filter(|thumbnails| thumbnails.track() == name);
    thumbnails.ok_or_else(|| {
        no_resource(asset, format!("track {name} has no thumbnails: they are made of clear H.264 up to 1920x1088"))
    })
}

/// Makes a resource or its plan. Heavy work, unless [`is_light`] is true.
pub(super) fn make(asset: &Asset, resource: &Resource) -> Result<Output, LibraryError> {
    let p = &*asset.presentation;
    // That of a period has its own muxed sound.
    let of = |name: &str| p.of_track(name);
    let failed = |error: PackageError| LibraryError::Package { asset: asset.path.clone(), error: error.into() };
    let text = |playlist: Option<String>, name: &str| match playlist {
        Some(text) => Ok(Output::Text(text)),
        None => Err(no_resource(asset, format!("track {name} has no such playlist"))),
    };
    let numbered = |plan: Option<Plan>, name: &str, n: u32| match plan {
        Some(plan) => Ok(Output::Plan(plan)),
        None => Err(no_resource(asset, format!("no segment {n} in track {name}"))),
    };
    match resource {
        Resource::Multivariant(c) => hls::multivariant(p, *c).map(Output::Text).map_err(failed),
        Resource::Media(c, name) => text(hls::media(of(name), track(asset, name)?, *c), name),
        Resource::IFrames(name) => text(hls::iframes(of(name), track(asset, name)?, hls::Container::Fmp4), name),
        Resource::Mpd => dash::mpd(p).map(Output::Text).map_err(failed),
        Resource::Init(name) => {
            let init = fmp4::init(p, track(asset, name)?);
            if init.is_empty() {
                return Err(no_resource(asset, format!("track {name} has no init segment")));
            }
            Ok(Output::Bytes(init))
        }
        Resource::Segment(name, n) => numbered(fmp4::segment(p, track(asset, name)?, *n), name, *n),
        Resource::IFrame(name, n) => numbered(fmp4::iframe(p, track(asset, name)?, *n), name, *n),
        Resource::Still(name, n) => match fmp4::still(p, track(asset, name)?, *n) {
            Some(plan) => Ok(Output::Plan(plan)),
            None => Err(no_resource(asset, format!("no picture {n} in track {name}"))),
        },
        // The images themselves are made by [`Pictures`](super::pictures::Pictures), of what is made here.
        Resource::Thumbnail(name, n) => match thumbnails::key_frame(track(asset, name)?, *n) {
            Some(frame) => Ok(Output::Plan(Plan::Items(vec![PlanItem::Object(frame.place)]))),
            None => Err(no_resource(asset, format!("no picture {n} in track {name}"))),
        },
        Resource::Sheet(name, n) => match of_track(asset, name)?.pictures(*n) {
            Some(_) => Ok(Output::Bytes(Bytes::new())),
            None => Err(no_resource(asset, format!("no sheet {n} of thumbnails"))),
        },
        Resource::Thumbnails(name) => Ok(Output::Text(of_track(asset, name)?.webvtt())),
        Resource::Images(name) => Ok(Output::Text(of_track(asset, name)?.playlist())),
        Resource::TsSegment(name, n) => {
            numbered(transport::segment(of(name), track(asset, name)?, *n).map_err(failed)?, name, *n)
        }
        Resource::TextSegment(c, name, n) => {
            numbered(text_track::segment(p, track(asset, name)?, *n, *c).map_err(failed)?, name, *n)
        }
        Resource::Text(name) => match text_track::whole(of(name), track(asset, name)?).map_err(failed)? {
            Some(plan) => Ok(Output::Plan(plan)),
            None => Err(no_resource(asset, format!("track {name} is not text"))),
        },
    }
}
