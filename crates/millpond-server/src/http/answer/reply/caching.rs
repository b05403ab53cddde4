//! Values of `Cache-Control` (RFC 9111 section 5.2.2). They never permit more than the origin does.

use crate::http::Lifetimes;
use http::HeaderValue;
use millpond_store::{Permission, Storage};
use std::time::Duration;

/// Longest lifetime of resources of a file that is still scanned. Players load its playlists again after a segment's duration.
const GROWING: Duration = Duration::from_secs(1);

/// Values of `Cache-Control` for the replies of a place.
pub(in crate::http::answer) struct CacheControl {
    lifetimes: Lifetimes,
    /// Value for resources with a version in their path, if the origin states nothing.
    versioned: HeaderValue,
    /// Value for other resources of assets, if the origin states nothing.
    current: HeaderValue,
    /// Value for files, if the origin states nothing.
    file: HeaderValue,
}

impl CacheControl {
    /// Creates the values of a place with these lifetimes.
    pub(in crate::http::answer) fn new(lifetimes: Lifetimes) -> Self {
        let silent = Permission::default();
        Self {
            lifetimes,
            versioned: versioned(lifetimes.segments, &silent),
            current: made(lifetimes.playlists, &silent),
            file: passed(lifetimes.files, &silent),
        }
    }

    /// Returns the value for a resource of an asset, whose path may contain the version.
    pub(in crate::http::answer) fn made(&self, has_version: bool, said: &Permission) -> HeaderValue {
        let is_silent = *said == Permission::default();
        match has_version {
            true if is_silent => self.versioned.clone(),
            true => versioned(self.lifetimes.segments, said),
            false if is_silent => self.current.clone(),
            false => made(self.lifetimes.playlists, said),
        }
    }

    /// Returns the value for a resource of an asset whose file is still scanned: its playlists grow.
    pub(in crate::http::answer) fn growing(&self, said: &Permission) -> HeaderValue {
        made(self.lifetimes.playlists.min(GROWING), said)
    }

    /// Returns the value for an unchanged file: the rest of the origin's lifetime, or the configured one.
    pub(in crate::http::answer) fn passed(&self, said: &Permission) -> HeaderValue {
        if *said == Permission::default() { self.file.clone() } else { passed(self.lifetimes.files, said) }
    }
}

/// Returns the value for a path with a version. Its content never changes, so a fresh copy needs no validation (RFC
/// 8246).
fn versioned(usual: Duration, said: &Permission) -> HeaderValue {
    let (max_age, s_maxage) = bounded(usual, said);
    field(max_age, s_maxage, !said.no_cache, said)
}

/// Returns the value for a resource of an asset.
fn made(usual: Duration, said: &Permission) -> HeaderValue {
    let (max_age, s_maxage) = bounded(usual, said);
    field(max_age, s_maxage, false, said)
}

/// Returns the configured lifetime or the shorter one of the origin: for all caches, and for shared caches if that
/// differs.
fn bounded(usual: Duration, said: &Permission) -> (Duration, Option<Duration>) {
    let least = |said: Option<Duration>| said.map_or(usual, |said| said.min(usual));
    (least(said.max_age.or(said.s_maxage)), said.s_maxage.map(|said| said.min(usual)))
}

/// Returns the value for an unchanged file.
fn passed(usual: Duration, said: &Permission) -> HeaderValue {
    let max_age = said.max_age.unwrap_or(usual.min(said.s_maxage.unwrap_or(usual)));
    field(max_age, said.s_maxage, false, said)
}

/// Writes a value.
fn field(max_age: Duration, s_maxage: Option<Duration>, immutable: bool, said: &Permission) -> HeaderValue {
    let is_shared = said.storage == Storage::Shared;
    let mut text = match said.storage {
        Storage::Shared => "public".to_owned(),
        Storage::Private => "private".to_owned(),
        Storage::Never => return HeaderValue::from_static("no-store"),
    };
    if said.no_cache {
        text.push_str(", no-cache");
    } else {
        text.push_str(&format!(", max-age={}", max_age.as_secs()));
        if let Some(s_maxage) = s_maxage.filter(|_| is_shared) {
            text.push_str(&format!(", s-maxage={}", s_maxage.as_secs()));
        }
    }
    for (said, directive) in [
        (immutable, ", immutable"),
        (said.must_revalidate, ", must-revalidate"),
        (said.proxy_revalidate && is_shared, ", proxy-revalidate"),
        (said.no_transform, ", no-transform"),
    ] {
        if said {
            text.push_str(directive);
        }
    }
    // Digits and known words are always valid.
    HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("no-store"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_more_than_the_origin_permits() {
        let seconds = |n| Some(Duration::from_secs(n));
        let silent = Permission::default();
        let short = Permission { max_age: seconds(7), ..silent };
        let private = Permission { storage: Storage::Private, s_maxage: seconds(3), ..short };
        let shared = Permission { s_maxage: seconds(3), must_revalidate: true, proxy_revalidate: true, ..silent };
        for (said, playlist, segment, file) in [
            (silent, "public, max-age=10", "public, max-age=3600", "public, max-age=60"),
            (short, "public, max-age=7", "public, max-age=7", "public, max-age=7"),
            (private, "private, max-age=7", "private, max-age=7", "private, max-age=7"),
            (
                Permission { max_age: seconds(5000), no_transform: true, ..silent },
                "public, max-age=10, no-transform",
                "public, max-age=3600, no-transform",
                "public, max-age=5000, no-transform",
            ),
            (
                shared,
                "public, max-age=3, s-maxage=3, must-revalidate, proxy-revalidate",
                "public, max-age=3, s-maxage=3, must-revalidate, proxy-revalidate",
                "public, max-age=3, s-maxage=3, must-revalidate, proxy-revalidate",
            ),
            (Permission { no_cache: true, ..short }, "public, no-cache", "public, no-cache", "public, no-cache"),
            (Permission { storage: Storage::Never, ..short }, "no-store", "no-store", "no-store"),
        ] {
            let [usual, long] = [10, 3600].map(Duration::from_secs);
            assert_eq!((made(usual, &said), made(long, &said)), (playlist.parse().unwrap(), segment.parse().unwrap()));
            assert_eq!(passed(Duration::from_secs(60), &said), file, "{said:?}");
        }
    }

    #[test]
    fn versioned_paths_are_immutable_for_as_long_as_the_origin_permits() {
        let year = Lifetimes::default();
        let short = Lifetimes { playlists: Duration::from_secs(2), segments: Duration::from_secs(9), ..year };
        let silent = Permission::default();
        let private = Permission { storage: Storage::Private, max_age: Some(Duration::from_secs(7)), ..silent };
        let checked = Permission { no_cache: true, ..silent };
        let never = Permission { storage: Storage::Never, ..silent };
        for (lifetimes, said, versioned, current) in [
            (year, silent, "public, max-age=31536000, immutable", "public, max-age=10"),
            (short, silent, "public, max-age=9, immutable", "public, max-age=2"),
            (year, private, "private, max-age=7, immutable", "private, max-age=7"),
            (short, private, "private, max-age=7, immutable", "private, max-age=2"),
            (year, checked, "public, no-cache", "public, no-cache"),
            (year, never, "no-store", "no-store"),
        ] {
            let fields = CacheControl::new(lifetimes);
            assert_eq!(
                (fields.made(true, &said), fields.made(false, &said)),
                (versioned.parse().unwrap(), current.parse().unwrap())
            );
        }
    }
}
