//! How long what an origin says of an object is trusted (RFC 9111), and what is done when it says nothing.

use std::time::Duration;

use http::HeaderMap;
use http::header::{AGE, CACHE_CONTROL};

/// What a reply says of its own freshness.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Freshness {
    /// For how long the metadata may be trusted without asking; `None` where the origin leaves it to us.
    pub fresh: Option<Duration>,
    /// For how long afterwards it may be used where the origin fails (RFC 5861 4); `None` where it is left to us.
    pub stale_if_error: Option<Duration>,
}

/// Nobody's metadata is trusted longer than this without asking.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

impl Freshness {
    /// What `Cache-Control` and `Age` say; a shared cache's own directive goes first (RFC 9111 5.2.2.10).
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let mut said = Self::default();
        let mut shared = None;
        let directives = headers.get_all(CACHE_CONTROL).iter().filter_map(|value| value.to_str().ok());
        for directive in directives.flat_map(|value| value.split(',')) {
            let (name, value) = directive.split_once('=').unwrap_or((directive, ""));
            let seconds = value.trim().trim_matches('"').parse().ok().map(Duration::from_secs);
            match name.trim().to_ascii_lowercase().as_str() {
                "no-cache" | "no-store" | "private" => shared = Some(Duration::ZERO),
                "s-maxage" => shared = shared.or(seconds),
                "max-age" => said.fresh = seconds.or(said.fresh),
                "must-revalidate" | "proxy-revalidate" => said.stale_if_error = Some(Duration::ZERO),
                "stale-if-error" => said.stale_if_error = said.stale_if_error.or(seconds),
                _ => {}
            }
        }
        let age = headers.get(AGE).and_then(|value| value.to_str().ok()?.trim().parse().ok());
        let age = Duration::from_secs(age.unwrap_or(0));
        said.fresh = shared.or(said.fresh).map(|fresh| fresh.saturating_sub(age).min(LONGEST));
        said
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directives_are_read_and_the_strictest_counts() {
        let seconds = |n| Some(Duration::from_secs(n));
        for (headers, fresh, stale) in [
            (&[][..], None, None),
            (&[("cache-control", "public, max-age=60")], seconds(60), None),
            (&[("cache-control", "max-age=60, s-maxage=\"10\""), ("age", "4")], seconds(6), None),
            (&[("cache-control", "max-age=60"), ("age", "90")], seconds(0), None),
            (&[("cache-control", "No-Cache, max-age=60")], seconds(0), None),
            (&[("cache-control", "max-age=1, stale-if-error=300")], seconds(1), seconds(300)),
            (&[("cache-control", "must-revalidate"), ("cache-control", "stale-if-error=9")], None, seconds(0)),
            (&[("cache-control", "max-age=x, =, ,,")], None, None),
            (&[("cache-control", "max-age=99999999999")], Some(LONGEST), None),
        ] {
            let mut map = HeaderMap::new();
            for (name, value) in headers {
                map.append(*name, value.parse().unwrap());
            }
            assert_eq!(Freshness::of(&map), Freshness { fresh, stale_if_error: stale }, "{headers:?}");
        }
    }
}
