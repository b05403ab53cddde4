//! Resources of an asset: which function makes each, its media type, and what making it takes.

use crate::{
    library::{Asset, Lazy, LibraryError, Resource},
    metrics::Kind,
};
use bytes::Bytes;
use millpond_package::{PackageError, Plan, PresentedTrack, dash, delivery, fmp4, hls, transport};

/// What kind of response a resource is.
pub(crate) struct Form {
    pub(crate) content_type: &'static str,
    pub(crate) kind: Kind,
    /// Rendered text that is worth keeping.
    pub(crate) keep: bool,
}

/// Segments of at most so many samples are planned on the serving threads: a hundred microseconds of work.
const FEW_SAMPLES: u32 = 2048;

/// The form of a resource, before anything is made.
pub(crate) fn form(resource: &Resource) -> Form {
    let form = |content_type, kind, keep| Form { content_type, kind, keep };
    match resource {
        Resource::Multivariant(c) | Resource::Media(c, _) => {
            let kind = if *c == hls::Container::Ts { Kind::HlsTs } else { Kind::Hls };
            form("application/vnd.apple.mpegurl", kind, true)
        }
        Resource::IFrames(_) => form("application/vnd.apple.mpegurl", Kind::Hls, true),
        Resource::Mpd => form("application/dash+xml", Kind::Dash, true),
        Resource::Init(name) | Resource::Segment(name, _) | Resource::IFrame(name, _) => {
            let content_type = match name.as_bytes().first() {
                Some(b'a') => "audio/mp4",
                Some(b's') => "application/mp4",
                _ => "video/mp4",
            };
            form(content_type, Kind::Segment, false)
        }
        Resource::TsSegment(..) => form("video/mp2t", Kind::Segment, false),
        Resource::TextSegment(..) | Resource::Text(_) => form("text/vtt; charset=utf-8", Kind::Subtitle, true),
    }
}

/// What a resource is made as.
pub(super) enum Made {
    Text(String),
    Bytes(Bytes),
    Plan(Plan),
}

/// Whether making a resource takes so little that a serving thread may do it.
pub(super) fn is_light(asset: &Asset, resource: &Resource) -> bool {
    let few = |name: &str, number| {
        let segment = asset.presentation.track(name).and_then(|track| track.segment(number));
        segment.is_none_or(|segment| segment.samples.end.saturating_sub(segment.samples.start) <= FEW_SAMPLES)
    };
    match resource {
        Resource::Init(_) => true,
        Resource::Segment(name, number) => few(name, *number),
        Resource::TsSegment(name, number) => asset.has_made(name, Lazy::Ts) && few(name, *number),
        Resource::IFrame(name, _) => asset.has_made(name, Lazy::IFrames),
        _ => false,
    }
}

/// The part of a track that is made with the resource where nothing asked for it before.
pub(super) fn lazy(resource: &Resource) -> Option<(&str, Lazy)> {
    match resource {
        Resource::TsSegment(name, _) => Some((name, Lazy::Ts)),
        Resource::IFrame(name, _) | Resource::IFrames(name) => Some((name, Lazy::IFrames)),
        _ => None,
    }
}

/// Upper estimate of the memory that making a resource takes, in bytes.
pub(super) fn memory(asset: &Asset, resource: &Resource) -> u64 {
    const FIXED: u64 = 64 << 10;
    let segments = |track: &PresentedTrack| u64::from(track.segment_count());
    let samples = |track: &PresentedTrack| u64::from(track.sample_count());
    let of = |name: &str, size: &dyn Fn(&PresentedTrack) -> u64| asset.presentation.track(name).map_or(0, size);
    let keys = |track: &PresentedTrack| track.key_bytes();
    let tracks = asset.presentation.tracks();
    FIXED
        + match resource {
            Resource::Init(_) | Resource::TextSegment(..) => 0,
            // A line for each track and a rendition of each group; addressing of each segment; keys.
            Resource::Multivariant(_) => tracks.iter().map(|track| 2048 + keys(track)).sum(),
            Resource::Mpd => tracks.iter().map(|track| 2048 + keys(track) + segments(track) * 96).sum(),
            Resource::Media(_, name) => of(name, &|track| keys(track) + segments(track) * 160),
            Resource::IFrames(name) => of(name, &|track| keys(track) + segments(track) * 1024 + samples(track) * 4),
            Resource::IFrame(name, _) | Resource::TsSegment(name, _) => of(name, &|track| samples(track) * 16),
            Resource::Text(name) => of(name, &|track| samples(track) * 64),
            Resource::Segment(name, number) => of(name, &|track| {
                let range = track.segment(*number).map(|segment| segment.samples);
                let row = 128 + track.encryption_bytes();
                range.map_or(0, |range| u64::from(range.end.saturating_sub(range.start)) * row)
            }),
        }
}

pub(super) fn nothing(asset: &Asset, what: String) -> LibraryError {
    LibraryError::NoResource { asset: asset.path.clone(), what }
}

fn track<'a>(asset: &'a Asset, name: &str) -> Result<&'a PresentedTrack, LibraryError> {
    asset.presentation.track(name).ok_or_else(|| {
        let names: Vec<&str> = asset.presentation.tracks().iter().map(PresentedTrack::name).collect();
        nothing(asset, format!("no track {name}: it has {}", names.join(", ")))
    })
}

/// Makes a resource, or the plan of one. Heavy unless [`is_light`] says otherwise.
pub(super) fn make(asset: &Asset, resource: &Resource) -> Result<Made, LibraryError> {
    let p = &*asset.presentation;
    let failed = |error: PackageError| LibraryError::Package { asset: asset.path.clone(), error: error.into() };
    let text = |made: Option<String>, name: &str| match made {
        Some(text) => Ok(Made::Text(text)),
        None => Err(nothing(asset, format!("track {name} has no such playlist"))),
    };
    let numbered = |plan: Option<Plan>, name: &str, n: u32| match plan {
        Some(plan) => Ok(Made::Plan(plan)),
        None => Err(nothing(asset, format!("no segment {n} in track {name}"))),
    };
    match resource {
        Resource::Multivariant(c) => hls::multivariant(p, *c).map(Made::Text).map_err(failed),
        Resource::Media(c, name) => text(hls::media(p, track(asset, name)?, *c), name),
        Resource::IFrames(name) => text(hls::iframes(p, track(asset, name)?, hls::Container::Fmp4), name),
        Resource::Mpd => dash::mpd(p).map(Made::Text).map_err(failed),
        Resource::Init(name) => {
            let init = fmp4::init(p, track(asset, name)?);
            if init.is_empty() {
                return Err(nothing(asset, format!("track {name} has no init segment")));
            }
            Ok(Made::Bytes(init))
        }
        Resource::Segment(name, n) => numbered(fmp4::segment(p, track(asset, name)?, *n), name, *n),
        Resource::IFrame(name, n) => numbered(fmp4::iframe(p, track(asset, name)?, *n), name, *n),
        Resource::TsSegment(name, n) => {
            numbered(transport::segment(p, track(asset, name)?, *n).map_err(failed)?, name, *n)
        }
        Resource::TextSegment(c, name, n) => {
            numbered(delivery::segment(p, track(asset, name)?, *n, *c).map_err(failed)?, name, *n)
        }
        Resource::Text(name) => match delivery::whole(p, track(asset, name)?).map_err(failed)? {
            Some(plan) => Ok(Made::Plan(plan)),
            None => Err(nothing(asset, format!("track {name} is not text"))),
        },
    }
}
