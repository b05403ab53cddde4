//! Requests to web servers with live sources, and messages to those that streams are pushed to.

use futures_util::{FutureExt as _, StreamExt as _, future::BoxFuture};
use http::{
    HeaderValue, Method,
    header::{ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE, DATE, LOCATION, RANGE, RETRY_AFTER},
};
use millpond_outbound::{Client, Options, RequestBuilder, chain};
use millpond_stream::reception::{Web, WebMessage, WebMethod, WebReply, WebRequest};
use std::{
    sync::OnceLock,
    time::{Duration, UNIX_EPOCH},
};

/// Sends requests for live media to web servers, by a proxy where the environment names one.
///
/// Certificates must be trusted by the system, or listed in the file that the environment variable `SSL_CERT_FILE` names.
#[derive(Debug, Default)]
pub(crate) struct SourceWeb {
    /// Made at the first request: it reads the certificates of the machine.
    client: OnceLock<Result<Client, String>>,
}

impl SourceWeb {
    fn client(&self) -> Result<Client, String> {
        self.client.get_or_init(|| Client::new(&Options::default())).clone()
    }
}

impl Web for SourceWeb {
    fn get(&self, request: WebRequest) -> BoxFuture<'static, Result<WebReply, String>> {
        let client = self.client();
        async move {
            let WebRequest { url, range } = request;
            let mut request = client?.request(Method::GET, url).header(ACCEPT_ENCODING, "identity");
            if let Some(range) = range {
                request = request.header(RANGE, format!("bytes={}-{}", range.start, range.end.saturating_sub(1)));
            }
            reply(request).await
        }
        .boxed()
    }

    fn send(&self, message: WebMessage) -> BoxFuture<'static, Result<WebReply, String>> {
        let client = self.client();
        async move {
            let WebMessage { method, url, bearer, body } = message;
            let method = match method {
                WebMethod::Post => Method::POST,
                WebMethod::Delete => Method::DELETE,
            };
            let mut request = client?.request(method, url).header(ACCEPT_ENCODING, "identity");
            if let Some(token) = bearer {
                let value = HeaderValue::try_from(format!("Bearer {token}"));
                let mut value = value.map_err(|_| "the token has characters that no field may have".to_owned())?;
                value.set_sensitive(true);
                request = request.header(AUTHORIZATION, value);
            }
            if let Some((media_type, bytes)) = body {
                request = request.header(CONTENT_TYPE, media_type).header(ACCEPT, media_type).body(bytes);
            }
            reply(request).await
        }
        .boxed()
    }
}

/// Sends a request, and waits for the head of the reply.
async fn reply(request: RequestBuilder) -> Result<WebReply, String> {
    let reply = request.send().await.map_err(|error| chain(&error))?;
    let field = |name| reply.headers().get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let location = field(LOCATION).map(str::to_owned);
    // A date is not read: it is of no use where clocks differ.
    let retry_after = field(RETRY_AFTER).and_then(|seconds| seconds.trim().parse().ok()).map(Duration::from_secs);
    let date = field(DATE).and_then(|date| httpdate::parse_http_date(date).ok());
    let date = date.and_then(|date| date.duration_since(UNIX_EPOCH).ok());
    let status = reply.status().as_u16();
    let body = reply.bytes_stream().map(|piece| piece.map_err(|error| chain(&error.without_url()))).boxed();
    Ok(WebReply { status, location, retry_after, date, body })
}
