//! HTTP requests, timed and counted. Bodies are counted as they arrive and dropped; only manifests are kept.

use std::cell::{OnceCell, RefCell};
use std::error::Error as _;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use reqwest::header::{CACHE_CONTROL, HeaderValue, RANGE};
use reqwest::{Response, StatusCode};
use url::Url;

use crate::options::{HttpVersion, LoadOptions};
use crate::resource::{ByteSpan, Resource};
use crate::tally::{Answered, Counters, ErrorKind, Failure, RequestKind, Tally};

/// The longest manifest that is taken; a day of 1-second segments has about 4 MB.
const MANIFEST_LIMIT: usize = 32 << 20;
/// Most bytes read from the body of an error response, so that its connection can be used again.
const DRAIN_LIMIT: u64 = 64 << 10;
/// The wait before the first retry; each further one is twice as long.
const RETRY_AFTER: Duration = Duration::from_millis(200);

/// Where the players of one thread write down what they measure. A thread has one and shares it with no other.
#[derive(Debug)]
pub(crate) struct Meter {
    pub(crate) tally: RefCell<Tally>,
    pub(crate) counters: Arc<Counters>,
}

/// A connection pool and the rules for using it.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    pool: Rc<Pool>,
    meter: Rc<Meter>,
    verify: bool,
    retries: u32,
}

/// Where a response came from, and how long caches may keep it.
#[derive(Debug)]
struct Provenance {
    location: Url,
    max_age: Option<Duration>,
}

/// A text, with its final URL.
#[derive(Debug)]
pub(crate) struct Text {
    pub(crate) body: Vec<u8>,
    pub(crate) location: Url,
    /// `max-age` of `Cache-Control`.
    pub(crate) max_age: Option<Duration>,
}

/// Connections of one player, or of a few. A pool that can speak TLS takes milliseconds to make, because it
/// reads the system's certificates, so each half is made when it is first needed.
#[derive(Debug)]
pub(crate) struct Pool {
    options: Rc<LoadOptions>,
    plain: OnceCell<reqwest::Client>,
    secure: OnceCell<reqwest::Client>,
}

impl Pool {
    pub(crate) fn new(options: Rc<LoadOptions>) -> Self {
        Self { options, plain: OnceCell::new(), secure: OnceCell::new() }
    }

    /// The half that a URL needs.
    fn half(&self, url: &Url) -> Result<&reqwest::Client, reqwest::Error> {
        let is_secure = url.scheme() == "https";
        let half = if is_secure { &self.secure } else { &self.plain };
        if let Some(made) = half.get() {
            return Ok(made);
        }
        let builder = builder(&self.options);
        // Without any certificate a redirect from http to https fails; only the run's URL may have one.
        let builder = if is_secure { builder } else { builder.tls_certs_only([]) };
        let made = builder.build()?;
        Ok(half.get_or_init(|| made))
    }
}

/// A client as the options ask for it.
pub(crate) fn builder(options: &LoadOptions) -> reqwest::ClientBuilder {
    let builder = reqwest::Client::builder()
        .no_proxy()
        .timeout(options.timeout)
        .user_agent(concat!("millpond-load/", env!("CARGO_PKG_VERSION")))
        .tls_danger_accept_invalid_certs(options.insecure);
    match options.http {
        HttpVersion::Http1 => builder.http1_only(),
        HttpVersion::Http2 => builder.http2_prior_knowledge().http2_adaptive_window(true),
    }
}

impl Client {
    pub(crate) fn new(pool: Rc<Pool>, meter: Rc<Meter>) -> Self {
        let LoadOptions { verify, retries, .. } = *pool.options;
        Self { pool, meter, verify, retries }
    }

    /// Fetches a manifest. Returns it with its final URL.
    pub(crate) async fn manifest(&self, url: &Url) -> Result<(Vec<u8>, Url), Failure> {
        self.text(RequestKind::Manifest, url).await.map(|text| (text.body, text.location))
    }

    /// Fetches and keeps a text, or media as short as one.
    pub(crate) async fn text(&self, kind: RequestKind, url: &Url) -> Result<Text, Failure> {
        let mut attempt = 0;
        loop {
            let mut body = Vec::new();
            let keep = |chunk: &[u8]| {
                let fits = body.len() + chunk.len() <= MANIFEST_LIMIT;
                if fits {
                    body.extend_from_slice(chunk);
                }
                fits
            };
            let result = self.attempt(url, None, keep).await;
            match self.counted(kind, result, |(answered, _)| *answered) {
                Ok((_, Provenance { location, max_age })) => return Ok(Text { body, location, max_age }),
                Err(failure) => attempt = self.after(failure, attempt).await?,
            }
        }
    }

    /// Fetches and drops an init or media segment.
    pub(crate) async fn resource(&self, kind: RequestKind, resource: &Resource) -> Result<Answered, Failure> {
        let mut attempt = 0;
        loop {
            let result = self.attempt(&resource.url, resource.range, |_| true).await;
            let result = result.and_then(|(answered, _)| self.consistent(resource, answered));
            match self.counted(kind, result, |answered| *answered) {
                Ok(answered) => return Ok(answered),
                Err(failure) => attempt = self.after(failure, attempt).await?,
            }
        }
    }

    /// Fetches and drops what is at a URL, once.
    pub(crate) async fn plain(&self, url: &Url, range: Option<ByteSpan>) -> Result<(), Failure> {
        let result = self.attempt(url, range, |_| true).await;
        self.counted(RequestKind::Plain, result, |(answered, _)| *answered).map(|_| ())
    }

    /// Notes that something fetched well was of no use.
    pub(crate) fn count(&self, failure: &Failure) {
        self.meter.tally.borrow_mut().failed(failure, &self.meter.counters);
    }

    /// Waits before the next attempt, or gives the failure back when there have been enough.
    async fn after(&self, failure: Failure, attempt: u32) -> Result<u32, Failure> {
        if attempt >= self.retries {
            return Err(failure);
        }
        tokio::time::sleep(RETRY_AFTER * 2_u32.pow(attempt.min(5))).await;
        Ok(attempt + 1)
    }

    /// A segment is never empty and never changes.
    fn consistent(&self, resource: &Resource, answered: Answered) -> Result<Answered, Failure> {
        if !self.verify {
            return Ok(answered);
        }
        let what = match resource.other_length(answered.bytes) {
            _ if answered.bytes == 0 => "an empty segment".to_owned(),
            Some(first) => format!("{} bytes, but {first} when first fetched", answered.bytes),
            None => return Ok(answered),
        };
        let detail = format!("{}: {what}", resource.url);
        Err(Failure { kind: ErrorKind::Length, detail })
    }

    /// Counts an attempt, whichever way it went.
    fn counted<T>(
        &self,
        kind: RequestKind,
        result: Result<T, Failure>,
        answered: impl Fn(&T) -> Answered,
    ) -> Result<T, Failure> {
        match &result {
            Ok(value) => {
                let mut tally = self.meter.tally.borrow_mut();
                tally.answered(kind, answered(value), &self.meter.counters);
            }
            Err(failure) => self.count(failure),
        }
        result
    }

    /// One request.
    async fn attempt(
        &self,
        url: &Url,
        range: Option<ByteSpan>,
        mut keep: impl FnMut(&[u8]) -> bool,
    ) -> Result<(Answered, Provenance), Failure> {
        let asked = Instant::now();
        let failed = |error: reqwest::Error| failure_of(url, &error, ErrorKind::Request);
        let mut request = self.pool.half(url).map_err(failed)?.get(url.clone());
        if let Some(range) = range {
            let value = HeaderValue::from_str(&format!("bytes={range}"));
            request = request.header(RANGE, value.unwrap_or(HeaderValue::from_static("bytes=0-")));
        }
        let mut response = request.send().await.map_err(failed)?;
        let first_byte = asked.elapsed();
        self.check_status(url, range, &mut response).await?;

        let promised = response.content_length();
        let mut bytes = 0_u64;
        while let Some(chunk) = next_chunk(url, &mut response).await? {
            bytes += chunk.len() as u64;
            self.meter.counters.received(chunk.len() as u64);
            if !keep(&chunk) {
                let detail = format!("{url}: more than {MANIFEST_LIMIT} bytes");
                return Err(Failure { kind: ErrorKind::TooLong, detail });
            }
        }
        let answered = Answered { bytes, first_byte, total: asked.elapsed() };
        let expected = range.map(ByteSpan::length).or(promised);
        if let Some(expected) = expected.filter(|&expected| self.verify && expected != bytes) {
            let detail = format!("{url}: {bytes} bytes, expected {expected}");
            return Err(Failure { kind: ErrorKind::Length, detail });
        }
        let max_age = response.headers().get(CACHE_CONTROL).and_then(|value| max_age(value.to_str().ok()?));
        Ok((answered, Provenance { location: response.url().clone(), max_age }))
    }

    async fn check_status(&self, url: &Url, range: Option<ByteSpan>, response: &mut Response) -> Result<(), Failure> {
        let status = response.status();
        if status == StatusCode::PARTIAL_CONTENT && range.is_some() {
            return Ok(());
        }
        if status == StatusCode::OK {
            return match range {
                Some(range) if self.verify => {
                    let detail = format!("{url}: status 200 with the whole, asked for bytes {range}");
                    Err(Failure { kind: ErrorKind::Length, detail })
                }
                _ => Ok(()),
            };
        }
        let mut drained = 0;
        while drained < DRAIN_LIMIT {
            let Some(chunk) = next_chunk(url, response).await? else { break };
            drained += chunk.len() as u64;
        }
        Err(Failure { kind: ErrorKind::Status(status.as_u16()), detail: format!("{url}: status {status}") })
    }
}

/// Returns `max-age` of a `Cache-Control` field (RFC 9111 5.2.2.1).
fn max_age(field: &str) -> Option<Duration> {
    let seconds = field.split(',').find_map(|directive| directive.trim().strip_prefix("max-age="))?;
    seconds.parse().ok().map(Duration::from_secs)
}

async fn next_chunk(url: &Url, response: &mut Response) -> Result<Option<bytes::Bytes>, Failure> {
    response.chunk().await.map_err(|error| failure_of(url, &error, ErrorKind::Body))
}

/// Returns what went wrong, with `otherwise` where reqwest does not say.
fn failure_of(url: &Url, error: &reqwest::Error, otherwise: ErrorKind) -> Failure {
    let kind = if error.is_timeout() {
        ErrorKind::Timeout
    } else if error.is_dns() {
        ErrorKind::Dns
    } else if error.is_connect() {
        ErrorKind::Connect
    } else {
        otherwise
    };
    Failure { kind, detail: format!("{url}: {}", cause(error)) }
}

/// The innermost cause: the outer ones only repeat that a request failed.
pub(crate) fn cause(error: &reqwest::Error) -> String {
    let mut innermost = error.source();
    while let Some(next) = innermost.and_then(std::error::Error::source) {
        innermost = Some(next);
    }
    innermost.map_or_else(|| error.to_string(), ToString::to_string)
}
