//! Paths of resources: an asset, its version, and a resource of it.
//!
//! Everything made of an asset lies below its path, so that every URI in a playlist is relative. The end of a path is
//! matched against the forms of [`Resource`]; the rest is the asset. The name of a track may have an [`AssetVersion`]
//! before it (`~0123456789abcdef/v1/12.m4s`).

pub(crate) mod live;
pub(crate) mod live_name;

use crate::{asset::Detail, version::AssetVersion};
use millpond_media::ImageKind;
use millpond_package::hls::Container;
use std::str::FromStr;

/// Something made of an asset. Tracks are named `v1`, `a1`, `s1`; segments are numbered from 1.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Resource {
    /// `index.m3u8`, `ts/index.m3u8`
    Multivariant(Container),
    /// `v1/index.m3u8`, `ts/v1/index.m3u8`
    Media(Container, String),
    /// `v1/iframes.m3u8`
    IFrames(String),
    /// `index.mpd`
    Mpd,
    /// `artwork.jpg`, `artwork.png`, `artwork.webp`: the picture that the file has beside its media.
    Artwork(ImageKind),
    /// `v1/init.mp4`
    Init(String),
    /// `v1/12.m4s`
    Segment(String, u32),
    /// `v1/i12.m4s`
    IFrame(String, u32),
    /// `v1/i12.mp4`: the same picture as a file of its own.
    Still(String, u32),
    /// `v1/i12.jpg`: the same picture as an image.
    Thumbnail(String, u32),
    /// `v1/poster.jpg`: a key frame as an image, which is neither black nor blank.
    Poster(String),
    /// `v1/sheet3.jpg`: thumbnails for seeking.
    Sheet(String, u32),
    /// `v1/thumbnails.vtt`: the times and places of thumbnails.
    Thumbnails(String),
    /// `v1/images.m3u8`: the same as a playlist.
    Images(String),
    /// `ts/v1/12.ts`
    TsSegment(String, u32),
    /// `s1/12.vtt`, `ts/s1/12.vtt`: the same text on the clock of its container.
    TextSegment(Container, String, u32),
    /// `s1/all.vtt`
    Text(String),
}

impl Resource {
    /// Returns the detail of the index that it is made of.
    #[must_use]
    pub fn detail(&self) -> Detail {
        match self {
            Self::Multivariant(Container::Fmp4)
            | Self::Media(Container::Fmp4, _)
            | Self::Mpd
            | Self::Artwork(_)
            | Self::Init(_)
            | Self::Segment(..)
            | Self::TextSegment(Container::Fmp4, ..)
            | Self::Text(_) => Detail::Outline,
            Self::Multivariant(Container::Ts)
            | Self::Media(Container::Ts, _)
            | Self::IFrames(_)
            | Self::IFrame(..)
            | Self::Still(..)
            | Self::Thumbnail(..)
            | Self::Poster(_)
            | Self::Sheet(..)
            | Self::Thumbnails(_)
            | Self::Images(_)
            | Self::TsSegment(..)
            | Self::TextSegment(Container::Ts, ..) => Detail::Samples,
        }
    }
}

/// A path that may name something made from an asset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The asset's path, without slashes at its ends.
    pub asset: String,
    /// The version of the asset; `None` for the current one.
    pub version: Option<AssetVersion>,
    /// The resource of it.
    pub resource: Resource,
}

impl Route {
    /// Whether the resource can be made of the beginning of a file that is still scanned, for players of HLS.
    ///
    /// The whole file may have another version than the beginning, and other bytes in a segment of the same number. So the
    /// multivariant playlist is made early, and other resources only below the version that it names.
    pub(crate) fn begins_early(&self) -> bool {
        match self.resource {
            Resource::Multivariant(_) => true,
            Resource::Media(..)
            | Resource::Init(_)
            | Resource::Segment(..)
            | Resource::TsSegment(..)
            | Resource::TextSegment(..) => self.version.is_some(),
            _ => false,
        }
    }

    /// Parses a decoded path. Returns `None` where its end has no form of a resource.
    #[must_use]
    pub fn parse(path: &str) -> Option<Self> {
        let path = path.strip_prefix('/').unwrap_or(path);
        let (rest, name) = split(path);
        match name {
            "index.mpd" => return Some(Self::now(rest, Resource::Mpd)),
            "index.m3u8" => return Some(Self::playlist(rest)),
            _ => {}
        }
        if let Some(kind) = artwork(name) {
            let (asset, version) = versioned(rest);
            return Some(Self { asset: asset.to_owned(), version, resource: Resource::Artwork(kind) });
        }
        let (above, track) = split(rest);
        if !is_track(track) {
            return None;
        }
        let (above, version) = versioned(above);
        let route = |asset: &str, resource| Some(Self { asset: asset.to_owned(), version, resource });
        let track_name = track.to_owned();
        let (stem, extension) = name.rsplit_once('.')?;
        let resource = match (stem, extension) {
            ("init", "mp4") => Resource::Init(track_name),
            ("iframes", "m3u8") => Resource::IFrames(track_name),
            ("thumbnails", "vtt") => Resource::Thumbnails(track_name),
            ("images", "m3u8") => Resource::Images(track_name),
            ("poster", "jpg") => Resource::Poster(track_name),
            (stem, "jpg") => match stem.strip_prefix("sheet") {
                Some(n) => Resource::Sheet(track_name, number(n)?),
                None => Resource::Thumbnail(track_name, number(stem.strip_prefix('i')?)?),
            },
            ("all", "vtt") => Resource::Text(track_name),
            (stem, "vtt") => {
                let n = number(stem)?;
                return match split(above) {
                    (above, "ts") => route(above, Resource::TextSegment(Container::Ts, track_name, n)),
                    _ => route(above, Resource::TextSegment(Container::Fmp4, track_name, n)),
                };
            }
            (stem, "m4s") => match stem.strip_prefix('i') {
                Some(n) => Resource::IFrame(track_name, number(n)?),
                None => Resource::Segment(track_name, number(stem)?),
            },
            (stem, "mp4") => Resource::Still(track_name, number(stem.strip_prefix('i')?)?),
            (stem, "ts") => {
                let (above, ts) = split(above);
                if ts != "ts" {
                    return None;
                }
                return route(above, Resource::TsSegment(track_name, number(stem)?));
            }
            _ => return None,
        };
        route(above, resource)
    }

    fn playlist(rest: &str) -> Self {
        let (above, last) = split(rest);
        if last == "ts" {
            return Self::now(above, Resource::Multivariant(Container::Ts));
        }
        if !is_track(last) {
            return Self::now(rest, Resource::Multivariant(Container::Fmp4));
        }
        let (above, version) = versioned(above);
        let (asset, container) = match split(above) {
            (asset, "ts") => (asset, Container::Ts),
            _ => (above, Container::Fmp4),
        };
        Self { asset: asset.to_owned(), version, resource: Resource::Media(container, last.to_owned()) }
    }

    fn now(asset: &str, resource: Resource) -> Self {
        Self { asset: asset.to_owned(), version: None, resource }
    }
}

/// Splits a version off the end of a path.
fn versioned(path: &str) -> (&str, Option<AssetVersion>) {
    let (above, last) = split(path);
    match AssetVersion::parse(last) {
        Some(version) => (above, Some(version)),
        None => (path, None),
    }
}

/// Returns the format of the artwork that a name stands for.
fn artwork(name: &str) -> Option<ImageKind> {
    let extension = name.strip_prefix("artwork.")?;
    ImageKind::ALL.into_iter().find(|kind| kind.extension() == extension)
}

/// Splits the last component off a path.
pub(crate) fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// `v1`, `a2`, `s3`: a letter for the kind and a number from 1; `v1p2`: the same in the second period.
pub(crate) fn is_track(name: &str) -> bool {
    let numbers = |rest: &str| match rest.split_once('p') {
        Some((track, period)) => number::<u32>(track).is_some() && number::<u32>(period).is_some(),
        None => number::<u32>(rest).is_some(),
    };
    name.strip_prefix(['v', 'a', 's']).is_some_and(numbers)
}

/// A number from 1 in its only form: no sign, no leading zero.
pub(crate) fn number<T: FromStr>(text: &str) -> Option<T> {
    let plain = !text.is_empty() && !text.starts_with('0') && text.bytes().all(|b| b.is_ascii_digit());
    if plain { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asset(path: &str) -> Option<(String, Resource)> {
        Route::parse(path).map(|r| (r.asset, r.resource))
    }

    #[test]
    fn early_resources_are_named_by_the_multivariant_playlist_or_have_a_version() {
        let begins = |path: &str| Route::parse(&format!("/films/a.ts/{path}")).unwrap().begins_early();
        for path in ["index.m3u8", "ts/index.m3u8"] {
            assert!(begins(path), "{path}");
        }
        for (path, other) in [("", "v1/1.m4s"), ("ts/", "v1/1.ts"), ("", "s1/1.vtt"), ("", "v1/init.mp4")] {
            let (list, folder) = ("v1/index.m3u8", "~0123456789abcdef/");
            let late = [list, other].into_iter().find(|name| begins(&format!("{path}{name}")));
            assert_eq!(late, None, "segments of the whole file may have other bytes");
            assert!([list, other].iter().all(|name| begins(&format!("{path}{folder}{name}"))), "{path}{other}");
        }
        for path in ["index.mpd", "v1/iframes.m3u8", "v1/i1.jpg", "~0123456789abcdef/v1/iframes.m3u8"] {
            assert!(!begins(path), "{path}");
        }
    }

    #[test]
    fn every_form() {
        use Container::{Fmp4, Ts};
        use Resource::*;
        let film = |r| Some(("films/a.mp4".to_owned(), r));
        let v1 = || "v1".to_owned();
        assert_eq!(asset("/films/a.mp4/index.m3u8"), film(Multivariant(Fmp4)));
        assert_eq!(asset("/films/a.mp4/ts/index.m3u8"), film(Multivariant(Ts)));
        assert_eq!(asset("/films/a.mp4/index.mpd"), film(Mpd));
        assert_eq!(asset("/films/a.mp4/v1/index.m3u8"), film(Media(Fmp4, v1())));
        assert_eq!(asset("/films/a.mp4/ts/v1/index.m3u8"), film(Media(Ts, v1())));
        assert_eq!(asset("/films/a.mp4/artwork.jpg"), film(Artwork(ImageKind::Jpeg)));
        assert_eq!(asset("/films/a.mp4/artwork.webp"), film(Artwork(ImageKind::Webp)));
        assert_eq!(asset("/films/a.mp4/v1/init.mp4"), film(Init(v1())));
        assert_eq!(asset("/films/a.mp4/v1/12.m4s"), film(Segment(v1(), 12)));
        assert_eq!(asset("/films/a.mp4/v1/i12.m4s"), film(IFrame(v1(), 12)));
        assert_eq!(asset("/films/a.mp4/v1/i12.mp4"), film(Still(v1(), 12)));
        assert_eq!(asset("/films/a.mp4/v1/i12.jpg"), film(Thumbnail(v1(), 12)));
        assert_eq!(asset("/films/a.mp4/v1/poster.jpg"), film(Poster(v1())));
        assert_eq!(asset("/films/a.mp4/v1/sheet3.jpg"), film(Sheet(v1(), 3)));
        assert_eq!(asset("/films/a.mp4/v1/thumbnails.vtt"), film(Thumbnails(v1())));
        assert_eq!(asset("/films/a.mp4/v1/images.m3u8"), film(Images(v1())));
        assert_eq!(asset("/films/a.mp4/v1/iframes.m3u8"), film(IFrames(v1())));
        assert_eq!(asset("/films/a.mp4/ts/v1/12.ts"), film(TsSegment(v1(), 12)));
        assert_eq!(asset("/films/a.mp4/s1/3.vtt"), film(TextSegment(Fmp4, "s1".to_owned(), 3)));
        assert_eq!(asset("/films/a.mp4/ts/s1/3.vtt"), film(TextSegment(Ts, "s1".to_owned(), 3)));
        assert_eq!(asset("/films/a.mp4/s1/all.vtt"), film(Text("s1".to_owned())));
        assert_eq!(asset("/films/a.mp4/v1p2/12.m4s"), film(Segment("v1p2".to_owned(), 12)));
        assert_eq!(asset("/index.m3u8"), Some((String::new(), Multivariant(Fmp4))));
    }

    #[test]
    fn versions_stand_before_the_track() {
        let version = || AssetVersion::parse("~0123456789abcdef");
        for (path, ts) in [
            ("~0123456789abcdef/v1/index.m3u8", false),
            ("~0123456789abcdef/v1/iframes.m3u8", false),
            ("~0123456789abcdef/v1/init.mp4", false),
            ("~0123456789abcdef/v1/12.m4s", false),
            ("~0123456789abcdef/v1/i12.m4s", false),
            ("~0123456789abcdef/s1/all.vtt", false),
            ("~0123456789abcdef/s1/1.vtt", false),
            ("~0123456789abcdef/v1/index.m3u8", true),
            ("~0123456789abcdef/v1/1.ts", true),
            ("~0123456789abcdef/s1/1.vtt", true),
        ] {
            let below = |tail: &str| format!("/films/a.mp4/{}{tail}", if ts { "ts/" } else { "" });
            let route = Route::parse(&below(path)).unwrap();
            assert_eq!((route.asset.as_str(), route.version), ("films/a.mp4", version()), "{path}");
            let (_, tail) = path.split_once('/').unwrap();
            let now = Route::parse(&below(tail)).unwrap();
            assert_eq!((route.resource, None), (now.resource, now.version), "{path}");
        }
        let artwork = Route::parse("/films/a.mp4/~0123456789abcdef/artwork.png").unwrap();
        assert_eq!((artwork.asset.as_str(), artwork.version), ("films/a.mp4", version()));
        let list = Route::parse("/a/~0123456789abcdef/index.m3u8").unwrap();
        assert_eq!((list.asset.as_str(), list.version), ("a/~0123456789abcdef", None), "lists of tracks have none");
    }

    #[test]
    fn what_is_no_form_is_a_file() {
        for path in [
            "/films/a.mp4",
            "/a/v1/0.m4s",
            "/a/v1/01.m4s",
            "/a/v1/+1.m4s",
            "/a/v1/4294967296.m4s",
            "/a/x1/1.m4s",
            "/a/v1/1.ts",
            "/a/v1/1.mp4",
            "/a/v1/i0.mp4",
            "/a/artwork.gif",
            "/a/artwork",
            "/a/poster.jpg",
            "/a/v1p0/1.m4s",
            "/a/v1p/1.m4s",
            "/a/vp1/1.m4s",
        ] {
            assert_eq!(asset(path), None, "{path}");
        }
    }
}
