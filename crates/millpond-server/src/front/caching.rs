//! What `Cache-Control` says of a reply (RFC 9111 5.2.2): never more than the origin permits for what it is made of.

use http::HeaderValue;
use millpond_store::{Permission, Storage};
use std::time::Duration;

/// Lifetime of a file whose origin says nothing, in seconds.
pub(super) const FILE: u32 = 60;

/// The field of something made here: for `usual` seconds, or less where an origin says less.
pub(super) fn made(usual: u32, said: &Permission) -> HeaderValue {
    let usual = Duration::from_secs(usual.into());
    let least = |said: Option<Duration>| said.map_or(usual, |said| said.min(usual));
    field(least(said.max_age.or(said.s_maxage)), said.s_maxage.map(|said| said.min(usual)), said)
}

/// The field of a file as it is: the rest of the lifetime that its origin gives it, [`FILE`] where that says nothing.
pub(super) fn passed(said: &Permission) -> HeaderValue {
    let usual = Duration::from_secs(FILE.into());
    field(said.max_age.unwrap_or(usual.min(said.s_maxage.unwrap_or(usual))), said.s_maxage, said)
}

fn field(max_age: Duration, s_maxage: Option<Duration>, said: &Permission) -> HeaderValue {
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
        (said.must_revalidate, ", must-revalidate"),
        (said.proxy_revalidate && is_shared, ", proxy-revalidate"),
        (said.no_transform, ", no-transform"),
    ] {
        if said {
            text.push_str(directive);
        }
    }
    // Of digits and known words only.
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
            assert_eq!((made(10, &said), made(3600, &said)), (playlist.parse().unwrap(), segment.parse().unwrap()));
            assert_eq!(passed(&said), file, "{said:?}");
        }
    }
}
