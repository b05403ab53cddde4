//! Requests to web servers: to those with live sources, and to those that are called by WebRTC.

use bytes::Bytes;
use futures_util::{future::BoxFuture, stream::BoxStream};
use millpond_media::ByteRange;
use std::{fmt, time::Duration};
use url::Url;

/// Sends requests to web servers. Redirects are not followed.
pub trait Web: fmt::Debug + Send + Sync {
    /// Requests a resource, and waits for the head of the reply. Cancel safe: dropping the future, or the reply, ends the request.
    ///
    /// # Errors
    /// There is no reply, in words without URLs.
    fn get(&self, request: WebRequest) -> BoxFuture<'static, Result<WebReply, String>>;

    /// Sends a message, and waits for the head of the reply. Cancel safe, as [`get`](Self::get).
    ///
    /// # Errors
    /// There is no reply, in words without URLs.
    fn send(&self, message: WebMessage) -> BoxFuture<'static, Result<WebReply, String>>;
}

/// Method of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebMethod {
    /// POST.
    Post,
    /// DELETE.
    Delete,
}

/// A message for a web server.
#[derive(Clone)]
pub struct WebMessage {
    /// Method.
    pub method: WebMethod,
    /// URL of `http` or `https`, without a user.
    pub url: Url,
    /// Token of the field `Authorization` (RFC 6750 2.1).
    pub bearer: Option<String>,
    /// Media type of the body and of the wanted reply, and the body.
    pub body: Option<(&'static str, Bytes)>,
}

impl fmt::Debug for WebMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebMessage").field("method", &self.method).finish_non_exhaustive()
    }
}

/// A request for a resource, or for a range of its bytes.
#[derive(Clone, Debug)]
pub struct WebRequest {
    /// URL of `http` or `https`. It may have a user and a password, which become credentials of the request.
    pub url: Url,
    /// Bytes; `None` for all of them.
    pub range: Option<ByteRange>,
}

/// A reply, whose body arrives.
pub struct WebReply {
    /// Status.
    pub status: u16,
    /// Target of a redirect, or the resource that was made: `Location`.
    pub location: Option<String>,
    /// Time after which another request may succeed, `Retry-After` in seconds (RFC 9110 10.2.3).
    pub retry_after: Option<Duration>,
    /// Time of the server, `Date`, since the Unix epoch. It has whole seconds.
    pub date: Option<Duration>,
    /// Body, by pieces. Errors are words without URLs.
    pub body: BoxStream<'static, Result<Bytes, String>>,
}

impl fmt::Debug for WebReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebReply").field("status", &self.status).finish_non_exhaustive()
    }
}

/// Why a URL is no web resource.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected}, such as {expected}://media.example/live")]
pub struct WebUrlError {
    /// The schemes that fit.
    pub expected: &'static str,
}

/// Returns the URL of `http` or `https` behind a prefix of its scheme.
pub(crate) fn inner_url(url: &str, prefix: &str) -> Option<Url> {
    let start = url.get(..prefix.len())?;
    let url = Url::parse(url.get(prefix.len()..)?).ok().filter(|_| start.eq_ignore_ascii_case(prefix))?;
    (matches!(url.scheme(), "http" | "https") && url.has_host()).then_some(url)
}
