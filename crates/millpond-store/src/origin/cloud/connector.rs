//! The requests of the clouds' client library, with bounds on their replies.

use std::error::Error;
use std::pin::Pin;
use std::time::Duration;

use http::header::{AUTHORIZATION, LOCATION, RANGE};
use http::{HeaderMap, Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use millpond_outbound::{Client, Options, SendError};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody, HttpService,
};
use url::Url;

use crate::origin::odd_keys::{OddKeys, without_odd_keys};

/// Longest page of a listing, in bytes: as that of an index page of a web server.
const LONGEST_PAGE: usize = 8 << 20;

/// Longest reply that is neither a page nor an object, in bytes: a refusal, a token.
const LONGEST_REPLY: usize = 1 << 20;

/// Redirects followed for one request.
const HOPS: u32 = 5;

/// A reply that is longer than its kind may be. The library reads such replies whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a reply of more than {most} bytes")]
pub(in crate::origin) struct TooLong {
    /// Bound in bytes.
    pub(in crate::origin) most: usize,
    /// Whether it is a page of a listing.
    pub(in crate::origin) is_listing: bool,
}

/// Sends the requests of one bucket.
#[derive(Clone, Debug)]
pub(in crate::origin) struct CloudConnector {
    client: Client,
    odd_keys: OddKeys,
}

impl CloudConnector {
    /// Creates it. `connect` is the time limit of connecting.
    pub(in crate::origin) fn new(connect: Duration) -> Result<Self, String> {
        let client = Client::new(&Options { connect, ..Options::default() })?;
        Ok(Self { client, odd_keys: OddKeys::default() })
    }

    /// Returns a page of a listing without the keys that the library can't read.
    async fn page(&self, response: HttpResponse, from: &Uri) -> Result<HttpResponse, HttpError> {
        let (parts, body) = response.into_parts();
        let (page, odd) = without_odd_keys(body.bytes().await?);
        self.odd_keys.tell(from.host().unwrap_or_default(), &odd);
        Ok(HttpResponse::from_parts(parts, page.into()))
    }

    /// Sends a request and follows redirects of requests without a body.
    async fn exchange(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let bound = bound(&request);
        let (mut parts, body) = request.into_parts();
        let body = body.as_bytes().cloned().map_or_else(|| reqwest::Body::wrap(body), reqwest::Body::from);
        let can_follow = matches!(parts.method, Method::GET | Method::HEAD);
        let mut body = Some(body);
        for _ in 0..HOPS {
            let request = Request::from_parts(parts.clone(), body.take().unwrap_or_default());
            let response = self.client.exchange(request).await.map_err(failure)?;
            let target = can_follow.then(|| target(&parts.uri, response.status(), response.headers())).flatten();
            let Some(target) = target else {
                let refusal = TooLong { most: LONGEST_REPLY, is_listing: false };
                let is_success = response.status().is_success();
                let bound = if is_success { bound } else { refusal };
                let response = response.map(|body| limited(body, bound));
                return if is_success && bound.is_listing {
                    self.page(response, &parts.uri).await
                } else {
                    Ok(response)
                };
            };
            if target.authority() != parts.uri.authority() {
                parts.headers.remove(AUTHORIZATION);
            }
            parts.uri = target;
        }
        let error = std::io::Error::other(format!("more than {HOPS} redirects"));
        Err(HttpError::new(HttpErrorKind::Unknown, error))
    }
}

impl HttpConnector for CloudConnector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

impl HttpService for CloudConnector {
    fn call<'life0, 'async_trait>(
        &'life0 self,
        request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'async_trait>>
    where
        'life0: 'async_trait,
        Self: 'async_trait,
    {
        Box::pin(self.exchange(request))
    }
}

/// Returns the bound of the reply to a request, where that is a success. Reads of objects have a range, and none: their
/// readers count the bytes.
fn bound(request: &HttpRequest) -> TooLong {
    let query = request.uri().query().unwrap_or_default();
    let is_listing = query.split('&').any(|part| matches!(part, "list-type=2" | "comp=list"));
    let most = match (request.headers().contains_key(RANGE), is_listing) {
        (true, _) => usize::MAX,
        (false, true) => LONGEST_PAGE,
        (false, false) => LONGEST_REPLY,
    };
    TooLong { most, is_listing }
}

/// Returns a body with a bound.
fn limited<B>(body: B, bound: TooLong) -> HttpResponseBody
where
    B: http_body_util::BodyExt<Data = bytes::Bytes> + Send + Sync + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let told = move |error: Box<dyn Error + Send + Sync>| match error.downcast::<LengthLimitError>() {
        Ok(_) => HttpError::new(HttpErrorKind::Decode, bound),
        Err(error) => HttpError::new_boxed(HttpErrorKind::Interrupted, error),
    };
    HttpResponseBody::new(Limited::new(body, bound.most).map_err(told))
}

/// Returns the target of a redirect.
fn target(from: &Uri, status: StatusCode, headers: &HeaderMap) -> Option<Uri> {
    if !matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    let location = headers.get(LOCATION)?.to_str().ok()?;
    let base = Url::parse(&from.to_string()).ok()?;
    let target = base.join(location).ok()?;
    let is_downgrade = base.scheme() == "https" && target.scheme() != "https";
    if is_downgrade { None } else { target.as_str().parse().ok() }
}

fn failure(error: SendError) -> HttpError {
    let kind = match error {
        SendError::ConnectTimeout => HttpErrorKind::Timeout,
        SendError::Connect(_) => HttpErrorKind::Connect,
        SendError::Excess(_) | SendError::Request(_) => HttpErrorKind::Decode,
        SendError::Broken(_) => HttpErrorKind::Interrupted,
    };
    HttpError::new(kind, error)
}
