//! A request in the making.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{AUTHORIZATION, InvalidHeaderValue};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request};
use percent_encoding::percent_decode_str;
use reqwest::Response;
use url::Url;

use crate::client::Client;
use crate::error::SendError;

/// A request that is not sent yet.
#[derive(Debug)]
#[must_use = "a request is sent by `send`"]
pub struct RequestBuilder {
    client: Client,
    request: http::request::Builder,
    body: Bytes,
}

impl RequestBuilder {
    pub(crate) fn new(client: Client, method: Method, mut url: Url) -> Self {
        let user = percent_decode_str(url.username()).decode_utf8_lossy().into_owned();
        let password = url.password().map(|password| percent_decode_str(password).decode_utf8_lossy().into_owned());
        // Neither call fails for a URL with a host.
        let _ = (url.set_username(""), url.set_password(None));
        url.set_fragment(None);
        let request = Request::builder().method(method).uri(url.as_str());
        let this = Self { client, request, body: Bytes::new() };
        if user.is_empty() && password.is_none() { this } else { this.basic_auth(&user, password.as_ref()) }
    }

    /// Adds a field. A value that is no field value is an error of [`send`](Self::send).
    pub fn header<V>(mut self, name: impl Into<HeaderName>, value: V) -> Self
    where
        V: TryInto<HeaderValue>,
        V::Error: Into<http::Error>,
    {
        self.request = self.request.header(name.into(), value);
        self
    }

    /// Replaces fields by those of a map.
    pub fn headers(mut self, headers: HeaderMap) -> Self {
        if let Some(own) = self.request.headers_mut() {
            own.extend(headers);
        }
        self
    }

    /// Adds the credentials of a user (RFC 7617 2).
    pub fn basic_auth(self, user: &str, password: Option<&String>) -> Self {
        let pair = format!("{user}:{}", password.map_or("", String::as_str));
        let value: Result<HeaderValue, InvalidHeaderValue> = format!("Basic {}", STANDARD.encode(pair)).parse();
        match value {
            Ok(mut value) => {
                value.set_sensitive(true);
                self.header(AUTHORIZATION, value)
            }
            // Base64 is a field value.
            Err(_) => self,
        }
    }

    /// Sets the body.
    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    /// Sends the request and waits for the head of the reply. Cancellation ends the request.
    ///
    /// # Errors
    /// There is no reply.
    pub async fn send(self) -> Result<Response, SendError> {
        let request = self.request.body(reqwest::Body::from(self.body))?;
        self.client.send(request).await
    }
}
