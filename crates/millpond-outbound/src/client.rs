//! The client.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::header::{ACCEPT, HeaderValue, PROXY_AUTHORIZATION, USER_AGENT};
use http::uri::Scheme;
use http::{Method, Request, Response};
use hyper::body::Incoming;
use hyper_util::client::legacy;
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use reqwest::ResponseBuilderExt as _;
use tokio_rustls::rustls::ClientConfig;
use url::Url;

use crate::connector::Connector;
use crate::error::SendError;
use crate::request::RequestBuilder;
use crate::tls;

/// The product of requests (RFC 9110 10.1.5).
const PRODUCT: HeaderValue = HeaderValue::from_static(concat!("millpond/", env!("CARGO_PKG_VERSION")));

/// Largest head of a reply, in bytes. Bodies are read by pieces of this length at most.
const BUFFER: usize = 256 << 10;

/// Time after which an unused connection is closed.
const IDLE: Duration = Duration::from_secs(30);

/// Most unused connections to one server.
const MOST_IDLE: usize = 64;

/// Properties of a client.
#[derive(Clone, Debug)]
pub struct Options {
    /// Time limit of connecting, TLS included.
    pub connect: Duration,
    /// Whether the variables of the environment (`HTTP_PROXY`, `HTTPS_PROXY`, `NO_PROXY`) name a proxy.
    pub uses_proxies: bool,
    /// Authorities in PEM whose certificates are trusted; `None` trusts those of the machine.
    pub authorities: Option<Vec<u8>>,
    /// The client's certificate and its key, in PEM.
    pub identity: Option<Vec<u8>>,
    /// A whole configuration of TLS, in place of `authorities` and `identity`.
    pub tls: Option<Arc<ClientConfig>>,
}

impl Default for Options {
    fn default() -> Self {
        let (authorities, identity, tls) = Default::default();
        Self { connect: Duration::from_secs(10), uses_proxies: true, authorities, identity, tls }
    }
}

/// A client of HTTP/1.1 and HTTP/2. Its clones share connections. It follows no redirects.
#[derive(Clone)]
pub struct Client {
    http: legacy::Client<Connector, reqwest::Body>,
    connector: Connector,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

impl Client {
    /// Creates a client. Nothing is connected yet.
    ///
    /// # Errors
    /// A certificate or key can't be read, in words.
    pub fn new(options: &Options) -> Result<Self, String> {
        let tls = match &options.tls {
            Some(config) => config.clone(),
            None => Arc::new(tls::config(options.authorities.as_deref(), options.identity.as_deref())?),
        };
        let proxies = options.uses_proxies.then(|| Arc::new(Matcher::from_env()));
        let connector = Connector::new(tls, proxies, options.connect);
        let http = legacy::Client::builder(TokioExecutor::new())
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(MOST_IDLE)
            .pool_timer(TokioTimer::new())
            .timer(TokioTimer::new())
            .http1_max_buf_size(BUFFER)
            .http2_adaptive_window(true)
            .build(connector.clone());
        Ok(Self { http, connector })
    }

    /// Begins a request. The user of the URL becomes its credentials.
    pub fn request(&self, method: Method, url: Url) -> RequestBuilder {
        RequestBuilder::new(self.clone(), method, url)
    }

    /// Sends a request and waits for the head of the reply. Cancellation ends the request.
    ///
    /// # Errors
    /// There is no reply.
    pub async fn send(&self, request: Request<reqwest::Body>) -> Result<reqwest::Response, SendError> {
        let url = Url::parse(&request.uri().to_string());
        let mut reply = self.exchange(request).await?.map(reqwest::Body::wrap);
        // Otherwise the reply names a made-up URL.
        if let Ok(url) = url
            && let Ok(named) = Response::builder().url(url).body(())
        {
            reply.extensions_mut().extend(named.into_parts().0.extensions);
        }
        Ok(reply.into())
    }

    /// Sends a request as [`send`](Self::send) does, and returns the reply as it arrives.
    ///
    /// # Errors
    /// There is no reply.
    pub async fn exchange(&self, mut request: Request<reqwest::Body>) -> Result<Response<Incoming>, SendError> {
        let proxy = self.connector.proxy(request.uri());
        let is_plain = request.uri().scheme() == Some(&Scheme::HTTP);
        let headers = request.headers_mut();
        headers.entry(USER_AGENT).or_insert(PRODUCT);
        headers.entry(ACCEPT).or_insert(HeaderValue::from_static("*/*"));
        if let Some(basic) = proxy.as_ref().filter(|_| is_plain).and_then(|proxy| proxy.basic_auth()) {
            headers.entry(PROXY_AUTHORIZATION).or_insert_with(|| basic.clone());
        }
        Ok(self.http.request(request).await?)
    }
}
