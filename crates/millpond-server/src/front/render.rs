//! Resources of an asset: which function makes each, its media type and how long it may be kept.

use crate::{
    delivery::Body,
    library::{Asset, Container, LibraryError, Resource},
    metrics::Kind,
};
use bytes::Bytes;
use millpond_package::{PackageError, Plan, PresentedTrack, dash, delivery, fmp4, hls, transport};
use millpond_store::Store;

/// What kind of response a resource is.
pub(crate) struct Form {
    pub(crate) content_type: &'static str,
    pub(crate) kind: Kind,
    /// Rendered text that is worth keeping.
    pub(crate) keep: bool,
    /// Usual lifetime in caches, in seconds: less where an origin says less.
    pub(crate) max_age: u32,
}

/// Manifests change when a file is replaced: players and caches ask again soon.
const MANIFEST: u32 = 10;
/// Segments have an entity tag that changes with their file.
const SEGMENT: u32 = 3600;

/// Largest text or rare TS segment that is made in memory to learn its length.
const MOST_COLLECTED: usize = 64 << 20;

/// The form of a resource, before anything is made.
pub(crate) fn form(resource: &Resource) -> Form {
    let form = |content_type, kind, keep, max_age| Form { content_type, kind, keep, max_age };
    match resource {
        Resource::Multivariant(c) | Resource::Media(c, _) => {
            let kind = if *c == Container::Ts { Kind::HlsTs } else { Kind::Hls };
            form("application/vnd.apple.mpegurl", kind, true, MANIFEST)
        }
        Resource::IFrames(_) => form("application/vnd.apple.mpegurl", Kind::Hls, true, MANIFEST),
        Resource::Mpd => form("application/dash+xml", Kind::Dash, true, MANIFEST),
        Resource::Init(name) | Resource::Segment(name, _) | Resource::IFrame(name, _) => {
            let content_type = match name.as_bytes().first() {
                Some(b'a') => "audio/mp4",
                Some(b's') => "application/mp4",
                _ => "video/mp4",
            };
            form(content_type, Kind::Segment, false, SEGMENT)
        }
        Resource::TsSegment(..) => form("video/mp2t", Kind::Segment, false, SEGMENT),
        Resource::TextSegment(..) | Resource::Text(_) => form("text/vtt; charset=utf-8", Kind::Subtitle, true, SEGMENT),
    }
}

/// Makes a resource.
pub(crate) async fn render(store: &Store, asset: &Asset, resource: &Resource) -> Result<Body, LibraryError> {
    let failed = |error: PackageError| LibraryError::Package { asset: asset.path.clone(), error: error.into() };
    let body = match make(asset, resource)? {
        Made::Text(text) => return Ok(Body::bytes(Bytes::from(text))),
        Made::Bytes(bytes) => return Ok(Body::bytes(bytes)),
        Made::Plan(plan) => Body::plan(store, &asset.objects, plan),
    };
    if body.len().is_some() {
        return Ok(body);
    }
    match body.collect(MOST_COLLECTED).await {
        Ok(Some(bytes)) => Ok(Body::bytes(bytes)),
        Ok(None) => Err(nothing(asset, format!("the segment has more than {MOST_COLLECTED} bytes"))),
        Err(crate::delivery::BodyError::Origin(error)) => Err(error.into()),
        Err(crate::delivery::BodyError::Package(error)) => Err(failed(error)),
        Err(error) => Err(LibraryError::Manifest { manifest: asset.path.clone(), why: error.to_string() }),
    }
}

enum Made {
    Text(String),
    Bytes(Bytes),
    Plan(Plan),
}

fn nothing(asset: &Asset, what: String) -> LibraryError {
    LibraryError::NoResource { asset: asset.path.clone(), what }
}

fn track<'a>(asset: &'a Asset, name: &str) -> Result<&'a PresentedTrack, LibraryError> {
    asset.presentation.track(name).ok_or_else(|| {
        let names: Vec<&str> = asset.presentation.tracks().iter().map(PresentedTrack::name).collect();
        nothing(asset, format!("no track {name}: it has {}", names.join(", ")))
    })
}

fn make(asset: &Asset, resource: &Resource) -> Result<Made, LibraryError> {
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
        Resource::Multivariant(c) => hls::multivariant(p, container(*c)).map(Made::Text).map_err(failed),
        Resource::Media(c, name) => text(hls::media(p, track(asset, name)?, container(*c)), name),
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
            numbered(delivery::segment(p, track(asset, name)?, *n, container(*c)).map_err(failed)?, name, *n)
        }
        Resource::Text(name) => match delivery::whole(p, track(asset, name)?).map_err(failed)? {
            Some(plan) => Ok(Made::Plan(plan)),
            None => Err(nothing(asset, format!("track {name} is not text"))),
        },
    }
}

fn container(container: Container) -> hls::Container {
    match container {
        Container::Fmp4 => hls::Container::Fmp4,
        Container::Ts => hls::Container::Ts,
    }
}
