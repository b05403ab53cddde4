//! A plain HTTP server.

pub(crate) mod index_page;
pub(crate) mod reply;

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use futures_util::{StreamExt, stream};
use http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_TYPE, HeaderName, IF_MATCH, IF_UNMODIFIED_SINCE, LOCATION, RANGE,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use millpond_outbound::{Client, Options};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::Response;
use url::Url;

use crate::error::{At, OriginError};
use crate::freshness::Freshness;
use crate::origin::client_error::{self, broken};
use crate::origin::exact::exact;
use crate::origin::homes::{HOME_HEADER, HomeStep, Homes, PURGED_HEADER};
use crate::origin::http::reply::{Asked, Condition, SKIP};
use crate::origin::timed::{first_byte, stalling};
use crate::origin::{BoxFuture, Entry, Fetched, Listing, ObjectMeta, Origin, OriginBody, SentBy, Timeouts, shown};
use crate::path::ObjectPath;
use crate::trace;
use crate::url_text::{decoded, without_secrets};

/// Characters of a path that are not encoded: the unreserved ones of RFC 3986 2.3.
const PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Redirects followed for one request.
const HOPS: u32 = 5;

/// Largest index page read, in bytes.
const LARGEST_PAGE: usize = 8 << 20;

/// Longest index page that is parsed on a serving thread, in bytes.
const AT_ONCE: usize = 64 << 10;

/// Returns the name of this process in `CDN-Loop` (RFC 8586 2). A request that arrives with it has passed here before.
pub fn loop_id() -> &'static str {
    static ID: OnceLock<&'static str> = OnceLock::new();
    ID.get_or_init(|| format!("millpond-{:08x}", fastrand::u32(..)).leak())
}

/// Objects below a base URL, read by range requests (RFC 9110 14).
///
/// Redirects are followed to the same host, where `http` may become `https`, and to the hosts that the operator
/// allows; credentials go to the base's own host only.
#[derive(Clone)]
pub struct HttpOrigin(Arc<Inner>);

struct Inner {
    client: Client,
    base: Url,
    user: Option<(String, Option<String>)>,
    name: Arc<str>,
    timeouts: Timeouts,
    redirects: Vec<String>,
    /// Headers of every request.
    headers: HeaderMap,
    /// Most bytes before a range that are read and dropped, where the server sends the whole object.
    skip: u64,
    /// The homes of which the server is one.
    homes: Option<Arc<dyn Homes>>,
}

/// Creates the client of an origin.
fn client(timeouts: Timeouts) -> Result<Client, String> {
    Client::new(&Options { connect: timeouts.connect, ..Options::default() })
}

/// A path that a Millpond answers at once.
const SIGN_OF_LIFE: &str = "/.millpond/time";

impl HttpOrigin {
    pub(crate) fn new(base: &Url, timeouts: Timeouts, redirects: &[String]) -> Result<Self, String> {
        Self::with_headers(client(timeouts)?, base, timeouts, redirects, (HeaderMap::new(), SKIP, None))
    }

    /// Creates an origin that refuses whole objects in reply to ranges behind their first byte.
    pub(crate) fn requiring_ranges(base: &Url, timeouts: Timeouts, redirects: &[String]) -> Result<Self, String> {
        Self::with_headers(client(timeouts)?, base, timeouts, redirects, (HeaderMap::new(), 0, None))
    }

    /// Creates a sibling cache below a URL, which is told not to fetch objects that it does not have.
    pub(crate) fn sibling(base: &Url, timeouts: Timeouts) -> Result<Self, String> {
        let only = HeaderMap::from_iter([(CACHE_CONTROL, HeaderValue::from_static("only-if-cached"))]);
        Self::with_headers(client(timeouts)?, base, timeouts, &[], (only, SKIP, None))
    }

    /// Creates the cache of a home below a URL, which is asked by a client of nodes.
    pub(crate) fn home(
        client: Client,
        (base, step): (&Url, HomeStep),
        timeouts: Timeouts,
        homes: Arc<dyn Homes>,
    ) -> Result<Self, String> {
        let value = HeaderValue::from_static(step.as_str());
        let marks = HeaderMap::from_iter([(HeaderName::from_static(HOME_HEADER), value)]);
        Self::with_headers(client, base, timeouts, &[], (marks, SKIP, Some(homes)))
    }

    fn with_headers(
        client: Client,
        base: &Url,
        timeouts: Timeouts,
        redirects: &[String],
        (mut headers, skip, homes): (HeaderMap, u64, Option<Arc<dyn Homes>>),
    ) -> Result<Self, String> {
        headers.insert(HeaderName::from_static("cdn-loop"), HeaderValue::from_static(loop_id()));
        let user = (!base.username().is_empty() || base.password().is_some()).then(|| {
            let password = base.password().map(decoded);
            (decoded(base.username()), password)
        });
        let mut bare = base.clone();
        // Neither call fails for a URL with a host, as HTTP URLs have.
        let _ = bare.set_username("");
        let _ = bare.set_password(None);
        Ok(Self(Arc::new(Inner {
            client,
            user,
            name: Arc::from(without_secrets(base)),
            base: bare,
            timeouts,
            redirects: redirects.iter().map(|host| host.to_ascii_lowercase()).collect(),
            headers,
            skip,
            homes,
        })))
    }

    fn at(&self, path: &ObjectPath) -> At {
        At { origin: self.0.name.clone(), path: Arc::from(path.as_str()) }
    }

    /// Returns the URL of an object: the base URL with its query, and the object's path appended to its path.
    fn url(&self, path: &ObjectPath) -> Url {
        let mut whole = self.0.base.path().trim_end_matches('/').to_owned();
        for component in path.components() {
            whole.push('/');
            whole.extend(utf8_percent_encode(component, PATH));
        }
        let mut url = self.0.base.clone();
        url.set_path(&whole);
        url
    }

    /// Sends a request and follows permitted redirects.
    async fn send(
        &self,
        at: &At,
        method: Method,
        mut url: Url,
        range: Option<&Range<u64>>,
        condition: Option<Condition>,
    ) -> Result<Response, OriginError> {
        for _ in 0..=HOPS {
            let mut request = self.0.client.request(method.clone(), url.clone()).header(ACCEPT_ENCODING, "identity");
            request = request.headers(self.0.headers.clone());
            if let Some(purged) = self.0.homes.as_ref().and_then(|homes| homes.purged()) {
                request = request.header(HeaderName::from_static(PURGED_HEADER), purged);
            }
            if let Some(range) = range {
                let last = range.end.saturating_sub(1);
                request = request.header(RANGE, format!("bytes={}-{last}", range.start));
            }
            request = match &condition {
                Some(Condition::Match(etag)) => request.header(IF_MATCH, etag),
                Some(Condition::UnmodifiedSince(time)) => {
                    request.header(IF_UNMODIFIED_SINCE, httpdate::fmt_http_date(*time))
                }
                None => request,
            };
            if let Some(parent) = trace::parent() {
                request = request.header(HeaderName::from_static("traceparent"), parent);
            }
            if let Some((user, password)) = &self.0.user
                && is_same_host(&self.0.base, &url)
            {
                request = request.basic_auth(user, password.as_ref());
            }
            let Timeouts { connect, first_byte: reply, .. } = self.0.timeouts;
            let response = first_byte(request.send(), at, connect, reply)
                .await?
                .map_err(|error| client_error::error(at, &error, connect))?;
            match self.target(at, &url, &response)? {
                Some(next) => url = next,
                None => return Ok(response),
            }
        }
        Err(OriginError::Redirect { at: at.clone(), to: format!("{} (after {HOPS} redirects)", without_secrets(&url)) })
    }

    /// Returns the target of a reply's redirect, if it is permitted.
    fn target(&self, at: &At, url: &Url, response: &Response) -> Result<Option<Url>, OriginError> {
        if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
            return Ok(None);
        }
        let location = response.headers().get(LOCATION);
        let text = location.and_then(|value| value.to_str().ok());
        let Some(next) = text.and_then(|text| url.join(text).ok()) else {
            return Err(OriginError::BadReply {
                at: at.clone(),
                expected: "a URL in Location".into(),
                found: shown(text.unwrap_or("none")),
            });
        };
        let listed = is_listed(&self.0.redirects, &next);
        let downgraded = self.0.base.scheme() == "https" && next.scheme() != "https";
        let web = matches!(next.scheme(), "http" | "https");
        if web && !downgraded && (listed || is_same_host(&self.0.base, &next)) {
            return Ok(Some(next));
        }
        Err(OriginError::Redirect { at: at.clone(), to: without_secrets(&next) })
    }

    async fn head_now(&self, path: &ObjectPath) -> Result<ObjectMeta, OriginError> {
        let at = self.at(path);
        let response = self.send(&at, Method::HEAD, self.url(path), None, None).await?;
        let status = response.status();
        let len = reply::content_length(response.headers());
        if let (StatusCode::OK, Some(len)) = (status, len) {
            return Ok(reply::meta(response.headers(), len));
        }
        // Some servers do not support HEAD, sign GET only, or omit the length. A read of one byte tells as much.
        if status.is_success() || matches!(status.as_u16(), 400 | 403 | 405 | 501) {
            let fetched = self.get(&at, path, 0..1, None).await?;
            return Ok(fetched.meta);
        }
        Err(status_error(&at, status, None))
    }

    async fn read_now(
        &self,
        path: &ObjectPath,
        range: Range<u64>,
        expected: Option<&ObjectMeta>,
    ) -> Result<Fetched, OriginError> {
        let at = self.at(path);
        if range.is_empty() {
            return self.nothing(&at, path, range.start, expected).await;
        }
        self.get(&at, path, range, expected).await
    }

    /// Sends a GET of a range that is not empty.
    async fn get(
        &self,
        at: &At,
        path: &ObjectPath,
        range: Range<u64>,
        expected: Option<&ObjectMeta>,
    ) -> Result<Fetched, OriginError> {
        let condition = expected.and_then(Condition::of);
        let response = self.send(at, Method::GET, self.url(path), Some(&range), condition).await?;
        let status = response.status();
        match status.as_u16() {
            200 | 206 => {}
            // The range has no byte (RFC 9110 15.5.17), which is correct at the end of an object.
            416 => return self.nothing(at, path, range.start, expected).await,
            _ => return Err(status_error(at, status, expected)),
        }
        let asked = Asked { at, start: range.start, end: range.end, expected, skip: self.0.skip };
        let taken = asked.judge(status.as_u16(), response.headers())?;
        let count = taken.range.end - taken.range.start;
        let body = stalling(pieces(response, at.clone()), at.clone(), self.0.timeouts.stall);
        Ok(Fetched {
            meta: taken.meta,
            range: taken.range,
            body: exact(body, at.clone(), taken.skip, count),
            sender: SentBy::Origin,
        })
    }

    /// Returns no bytes at the end of the object, and an error elsewhere.
    async fn nothing(
        &self,
        at: &At,
        path: &ObjectPath,
        start: u64,
        expected: Option<&ObjectMeta>,
    ) -> Result<Fetched, OriginError> {
        let response = self.send(at, Method::HEAD, self.url(path), None, None).await?;
        let len = reply::content_length(response.headers());
        let (StatusCode::OK, Some(len)) = (response.status(), len) else {
            return Err(OriginError::OutOfRange { at: at.clone(), start, len: None });
        };
        let asked = Asked { at, start, end: start, expected, skip: self.0.skip };
        let meta = asked.checked(reply::meta(response.headers(), len))?;
        if start > len {
            return Err(OriginError::OutOfRange { at: at.clone(), start, len: Some(len) });
        }
        Ok(Fetched { meta, range: start..start, body: stream::empty().boxed(), sender: SentBy::Origin })
    }
}

impl HttpOrigin {
    /// Returns the links of the server's index page of a folder, or [`OriginError::Unsupported`] where it makes none.
    async fn list_now(&self, folder: &ObjectPath) -> Result<Listing, OriginError> {
        let at = self.at(folder);
        let unsupported = || OriginError::Unsupported { at: at.clone(), what: "listing a folder" };
        let mut url = self.url(folder);
        url.set_path(&format!("{}/", url.path().trim_end_matches('/')));
        let response = self.send(&at, Method::GET, url.clone(), None, None).await?;
        let status = response.status();
        let is_page = response.headers().get(CONTENT_TYPE).is_some_and(|v| v.as_bytes().starts_with(b"text/html"));
        match status.as_u16() {
            200 if is_page => {}
            404 | 410 if !folder.is_root() => return Err(OriginError::NotFound { at }),
            401 | 500.. => return Err(status_error(&at, status, None)),
            _ => return Err(unsupported()),
        }
        let headers = response.headers().clone();
        let mut page = Vec::new();
        let mut body = stalling(pieces(response, at.clone()), at.clone(), self.0.timeouts.stall);
        while let Some(piece) = body.next().await {
            page.extend_from_slice(&piece?);
            if page.len() > LARGEST_PAGE {
                return Err(unsupported());
            }
        }
        let freshness = Freshness::of(&headers);
        let names = if page.len() > AT_ONCE {
            let work = tokio::task::spawn_blocking(move || index_page::entries(&url, &page));
            work.await.map_err(|error| OriginError::Io {
                at: at.clone(),
                kind: std::io::ErrorKind::Other,
                detail: error.to_string(),
            })?
        } else {
            index_page::entries(&url, &page)
        };
        let entry = |(name, folder)| Entry { name, folder, len: 0, modified: None };
        Ok(Listing { entries: names.into_iter().map(entry).collect(), freshness })
    }
}

/// Maps status codes to errors (RFC 9110 15.5).
fn status_error(at: &At, status: StatusCode, expected: Option<&ObjectMeta>) -> OriginError {
    let at = at.clone();
    let detail = status.canonical_reason().unwrap_or_default().to_owned();
    match (status.as_u16(), expected) {
        (404 | 410, _) => OriginError::NotFound { at },
        (401, _) => OriginError::Unauthorized { at, detail },
        (403, _) => OriginError::Forbidden { at, detail },
        (412, Some(expected)) => OriginError::Changed { at, expected: expected.version.clone(), found: None },
        (code, _) => OriginError::Status { at, code, detail },
    }
}

fn pieces(response: Response, at: At) -> OriginBody {
    response
        .bytes_stream()
        .map(move |item| item.map_err(|error| broken(&at, client_error::chain(&error.without_url()))))
        .boxed()
}

/// Returns whether a URL has the same server: equal host and port, or the default port of `https` instead of that of
/// `http`.
fn is_same_host(base: &Url, other: &Url) -> bool {
    if base.host_str() != other.host_str() {
        return false;
    }
    let ports = (base.port_or_known_default(), other.port_or_known_default());
    let upgraded = base.scheme() == "http" && other.scheme() == "https";
    if upgraded {
        return ports == (Some(80), Some(443));
    }
    base.scheme() == other.scheme() && ports.0 == ports.1
}

/// Returns whether a URL's host is listed as `host` (with a default port) or `host:port`.
fn is_listed(list: &[String], url: &Url) -> bool {
    let Some(host) = url.host_str() else {
        return false;
    };
    let name = match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    };
    list.contains(&name)
}

impl fmt::Debug for HttpOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HttpOrigin").field(&self.0.name).finish()
    }
}

impl Origin for HttpOrigin {
    fn describe(&self) -> String {
        self.0.name.to_string()
    }

    fn head<'a>(&'a self, path: &'a ObjectPath) -> BoxFuture<'a, Result<ObjectMeta, OriginError>> {
        Box::pin(self.head_now(path))
    }

    fn read<'a>(
        &'a self,
        path: &'a ObjectPath,
        range: Range<u64>,
        expected: Option<&'a ObjectMeta>,
    ) -> BoxFuture<'a, Result<Fetched, OriginError>> {
        Box::pin(self.read_now(path, range, expected))
    }

    fn list<'a>(&'a self, folder: &'a ObjectPath) -> BoxFuture<'a, Result<Listing, OriginError>> {
        Box::pin(self.list_now(folder))
    }

    fn is_alive(&self) -> BoxFuture<'_, bool> {
        let mut url = self.0.base.clone();
        url.set_path(SIGN_OF_LIFE);
        // Any reply is one.
        let request = self.0.client.request(Method::HEAD, url).headers(self.0.headers.clone());
        Box::pin(async move { request.send().await.is_ok() })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn origin(base: &str, redirects: &[&str]) -> HttpOrigin {
        let second = Duration::from_secs(1);
        let timeouts = Timeouts { connect: second, first_byte: second, stall: second };
        let redirects: Vec<_> = redirects.iter().map(ToString::to_string).collect();
        HttpOrigin::new(&Url::parse(base).unwrap(), timeouts, &redirects).unwrap()
    }

    #[test]
    fn urls_are_encoded_and_credentials_kept_apart() {
        let origin = origin("http://user:pa%20ss@host.example/base%20x/?token=1", &[]);
        let path = ObjectPath::parse("a b/100%#?+/ä.mp4").unwrap();
        assert_eq!(origin.url(&path).as_str(), "http://host.example/base%20x/a%20b/100%25%23%3F%2B/%C3%A4.mp4?token=1");
        let tricky = ObjectPath::parse("%2e%2e/..;").unwrap();
        assert_eq!(origin.url(&tricky).path(), "/base%20x/%252e%252e/..%3B");
        assert_eq!(origin.0.user, Some(("user".into(), Some("pa ss".into()))));
        assert_eq!(origin.describe(), "http://host.example/base%20x");
        assert!(!format!("{origin:?}").contains("pa"));
    }

    #[test]
    fn same_host_may_upgrade_only() {
        let same = |a: &str, b: &str| is_same_host(&Url::parse(a).unwrap(), &Url::parse(b).unwrap());
        assert!(same("http://a.example/x", "http://a.example/y"));
        assert!(same("http://a.example/x", "https://a.example/x"));
        assert!(same("http://a.example:8080/", "http://a.example:8080/z"));
        assert!(!same("http://a.example/", "http://a.example:22/"));
        assert!(!same("http://a.example:8080/", "https://a.example:9090/"));
        assert!(!same("https://a.example/", "http://a.example/"));
        assert!(!same("http://a.example/", "http://b.example/"));
    }

    #[test]
    fn listed_hosts_name_their_port() {
        let list = ["cdn.example".to_owned(), "other.example:8080".to_owned()];
        let listed = |url: &str| is_listed(&list, &Url::parse(url).unwrap());
        assert!(listed("https://cdn.example/x"));
        assert!(!listed("https://cdn.example:8443/x"));
        assert!(listed("http://other.example:8080/"));
        assert!(!listed("http://other.example/"));
    }
}
