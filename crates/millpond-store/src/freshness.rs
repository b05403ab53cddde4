//! How long an object's metadata is trusted and may be kept (RFC 9111).

use std::time::Duration;

use http::HeaderMap;
use http::header::{AGE, CACHE_CONTROL, DATE, EXPIRES, HeaderName, PRAGMA, VARY};

/// Freshness of a reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Freshness {
    /// Time for which the metadata is trusted without asking; `None` where the origin does not state it.
    pub fresh: Option<Duration>,
    /// Further time for which the reply may be used while the origin fails (RFC 5861 4); `None` if the origin does not state it.
    pub stale_if_error: Option<Duration>,
    /// Permissions for caches at the time of the reply.
    pub permission: Permission,
}

/// Caches that may store a response, the freest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Storage {
    /// Any cache.
    #[default]
    Shared,
    /// Caches of one user only (`private`).
    Private,
    /// None (`no-store`): it never reaches a disk here.
    Never,
}

/// Permissions of an origin for caches, for an object and for responses made of it (RFC 9111 5.2.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Permission {
    /// The caches that may store it.
    pub storage: Storage,
    /// Rest of its lifetime, `Age` subtracted; `None` where the origin does not state it.
    pub max_age: Option<Duration>,
    /// Rest of its lifetime in shared caches, if the origin states another one (`s-maxage`).
    pub s_maxage: Option<Duration>,
    /// Whether it must be validated before each use.
    pub no_cache: bool,
    /// Whether it may not be used stale.
    pub must_revalidate: bool,
    /// As `must_revalidate`, for shared caches.
    pub proxy_revalidate: bool,
    /// Whether intermediaries must leave the content as it is.
    pub no_transform: bool,
}

impl Permission {
    /// Returns the permissions that both grant.
    #[must_use]
    pub fn strictest(self, other: Self) -> Self {
        let shared = |of: &Self| of.s_maxage.or(of.max_age);
        let differs = self.s_maxage.is_some() || other.s_maxage.is_some();
        Self {
            storage: self.storage.max(other.storage),
            max_age: shorter(self.max_age, other.max_age),
            s_maxage: shorter(shared(&self), shared(&other)).filter(|_| differs),
            no_cache: self.no_cache || other.no_cache,
            must_revalidate: self.must_revalidate || other.must_revalidate,
            proxy_revalidate: self.proxy_revalidate || other.proxy_revalidate,
            no_transform: self.no_transform || other.no_transform,
        }
    }

    /// Returns the permissions after a time.
    #[must_use]
    pub(crate) fn after(self, elapsed: Duration) -> Self {
        let rest = |lifetime: Option<Duration>| lifetime.map(|lifetime| lifetime.saturating_sub(elapsed));
        Self { max_age: rest(self.max_age), s_maxage: rest(self.s_maxage), ..self }
    }

    /// Returns whether bytes may be written to a disk.
    pub fn is_storable(&self) -> bool {
        self.storage < Storage::Never
    }
}

fn shorter(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// Longest time for which metadata is trusted without asking.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

impl Freshness {
    /// Evaluates `Cache-Control`, `Expires`, `Vary` and `Age`. Directives for shared caches come first (RFC 9111
    /// 5.2.2.10). The strictest of contradictory or invalid directives counts (4.2.1).
    ///
    /// `Vary` names fields of our requests, which are the same for every client. Only `*` has an effect here: no
    /// response matches another request (4.1).
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let mut said = Permission::default();
        let mut stale_if_error = None;
        let mut fields = texts(headers, &CACHE_CONTROL).peekable();
        if fields.peek().is_none() {
            said.no_cache = texts(headers, &PRAGMA).any(|text| text.to_ascii_lowercase().contains("no-cache"));
        }
        for text in fields {
            for (name, value) in directives(&text) {
                match name.as_str() {
                    "no-store" => said.storage = Storage::Never,
                    "private" => said.storage = said.storage.max(Storage::Private),
                    "no-cache" => said.no_cache = true,
                    "max-age" => said.max_age = shorter(said.max_age, Some(seconds(&value).unwrap_or_default())),
                    "s-maxage" => said.s_maxage = shorter(said.s_maxage, Some(seconds(&value).unwrap_or_default())),
                    "must-revalidate" => said.must_revalidate = true,
                    "proxy-revalidate" => said.proxy_revalidate = true,
                    "no-transform" => said.no_transform = true,
                    "stale-if-error" => stale_if_error = shorter(stale_if_error, seconds(&value)),
                    _ => {}
                }
            }
        }
        said.no_cache |= texts(headers, &VARY).any(|text| text.split(',').any(|name| name.trim() == "*"));
        said.max_age = said.max_age.or_else(|| expires(headers).filter(|_| said.s_maxage.is_none()));
        let age = texts(headers, &AGE).find_map(|text| seconds(&text)).unwrap_or_default();
        let said = said.after(age);
        if said.must_revalidate || said.proxy_revalidate {
            stale_if_error = Some(Duration::ZERO);
        }
        let ours = said.s_maxage.or(said.max_age).map(|fresh| fresh.min(LONGEST));
        let asks = said.no_cache || said.storage > Storage::Shared;
        Self { fresh: if asks { Some(Duration::ZERO) } else { ours }, stale_if_error, permission: said }
    }
}

/// Returns the values of a field. Bytes that are not text are replaced, so that the rest still counts.
fn texts<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = String> + use<'a> {
    headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
}

/// Returns the lifetime by `Expires` and `Date`. An invalid date counts as past (RFC 9111 5.3).
fn expires(headers: &HeaderMap) -> Option<Duration> {
    let until = texts(headers, &EXPIRES).next()?;
    let from = texts(headers, &DATE).next().and_then(|text| httpdate::parse_http_date(&text).ok());
    let from = from.unwrap_or_else(std::time::SystemTime::now);
    let until = httpdate::parse_http_date(&until).ok();
    Some(until.and_then(|until| until.duration_since(from).ok()).unwrap_or_default())
}

/// Parses a number of seconds (RFC 9111 1.2.2). One that is too large counts as very long.
fn seconds(text: &str) -> Option<Duration> {
    let digits = text.trim();
    let all = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    // The largest number that a cache must support.
    all.then(|| Duration::from_secs(digits.parse().unwrap_or(u64::MAX).min(1 << 31)))
}

/// Returns directives with their unquoted values. A comma in quotes separates nothing (RFC 9111 5.2).
fn directives(text: &str) -> Vec<(String, String)> {
    let mut found = vec![(String::new(), String::new())];
    let (mut is_quoted, mut is_escaped, mut has_value) = (false, false, false);
    for c in text.chars() {
        let Some((name, value)) = found.last_mut() else { break };
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => {
                has_value = false;
                found.push(Default::default());
            }
            '=' if !has_value => has_value = true,
            c if has_value => value.push(c),
            c if !c.is_whitespace() => name.push(c.to_ascii_lowercase()),
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(headers: &[(&str, &str)]) -> Freshness {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(HeaderName::try_from(*name).unwrap(), value.parse().unwrap());
        }
        Freshness::of(&map)
    }

    const fn seconds_of(n: u64) -> Option<Duration> {
        Some(Duration::from_secs(n))
    }

    #[test]
    fn directives_are_read_and_the_strictest_counts() {
        let seconds = seconds_of;
        for (headers, fresh, stale) in [
            (&[][..], None, None),
            (&[("cache-control", "public, max-age=60")], seconds(60), None),
            (&[("cache-control", "max-age=60, s-maxage=\"10\""), ("age", "4")], seconds(6), None),
            (&[("cache-control", "max-age=60"), ("age", "90")], seconds(0), None),
            (&[("cache-control", "No-Cache, max-age=60")], seconds(0), None),
            (&[("cache-control", "max-age=1, stale-if-error=300")], seconds(1), seconds(300)),
            (&[("cache-control", "must-revalidate"), ("cache-control", "stale-if-error=9")], None, seconds(0)),
            (&[("cache-control", "max-age=x, =, ,,")], seconds(0), None),
            (&[("cache-control", "max-age=60, max-age=5, max-age=50")], seconds(5), None),
            (&[("cache-control", "ext=\"a\\\", max-age=1\", max-age=9")], seconds(9), None),
            (&[("cache-control", "max-age=99999999999999999999999")], Some(LONGEST), None),
            (&[("expires", "0")], seconds(0), None),
            (&[("pragma", "no-cache")], seconds(0), None),
            (&[("pragma", "no-cache"), ("cache-control", "max-age=3")], seconds(3), None),
            (&[("vary", "accept-encoding, origin"), ("cache-control", "max-age=3")], seconds(3), None),
            (&[("vary", "*"), ("cache-control", "max-age=3")], seconds(0), None),
        ] {
            let Freshness { fresh: found, stale_if_error, .. } = of(headers);
            assert_eq!((found, stale_if_error), (fresh, stale), "{headers:?}");
        }
        let dates = [("date", "Sun, 06 Nov 1994 08:49:37 GMT"), ("expires", "Sun, 06 Nov 1994 08:50:37 GMT")];
        assert_eq!(of(&dates).fresh, seconds(60));
        let [date, expires] = dates;
        assert_eq!(of(&[date, expires, ("age", "20")]).permission.max_age, seconds(40));
        assert_eq!(of(&[date, expires, ("cache-control", "max-age=5")]).fresh, seconds(5));
    }

    #[test]
    fn what_caches_may_do_is_kept() {
        let said = |text: &str| of(&[("cache-control", text)]).permission;
        let private = said("private=\"set-cookie, x\", max-age=7");
        assert_eq!((private.storage, private.max_age), (Storage::Private, seconds_of(7)));
        assert!(!said("private, no-store").is_storable() && private.is_storable());
        assert_eq!(said("\u{e9}, no-store").storage, Storage::Never, "beside bytes that are no ASCII");
        let own = said("s-maxage=3, max-age=9, must-revalidate, no-transform");
        assert_eq!((own.s_maxage, own.max_age), (seconds_of(3), seconds_of(9)));
        assert!(own.must_revalidate && own.no_transform && !own.no_cache && !own.proxy_revalidate);
        assert_eq!(own.after(Duration::from_secs(4)).max_age, seconds_of(5));
        assert_eq!(own.after(Duration::from_secs(4)).s_maxage, seconds_of(0));
        assert_eq!(
            of(&[("cache-control", "private, max-age=7")]).fresh,
            seconds_of(0),
            "a shared cache asks each time"
        );
    }

    #[test]
    fn the_strictest_of_two_is_what_both_permit() {
        let said = |text: &str| of(&[("cache-control", text)]).permission;
        let both = |one: &str, other: &str| {
            let both = said(one).strictest(said(other));
            assert_eq!(both, said(other).strictest(said(one)));
            both
        };
        assert_eq!(both("max-age=9", "private").storage, Storage::Private);
        assert_eq!(both("max-age=9", "private").max_age, seconds_of(9));
        assert_eq!(both("private", "no-store").storage, Storage::Never);
        let mixed = both("s-maxage=100, max-age=9", "max-age=5, no-cache");
        assert_eq!((mixed.max_age, mixed.s_maxage, mixed.no_cache), (seconds_of(5), seconds_of(5), true));
        assert_eq!(Permission::default().strictest(said("max-age=1")), said("max-age=1"));
    }
}
