//! The HTTP client of the exporter: the one of the server, on a runtime that only the exporter's thread drives.

use super::metrics;
use bytes::Bytes;
use http::{Request, Response};
use millpond_outbound::{Client, Options};
use opentelemetry_http::{HttpClient, HttpError};
use std::{future::Future, io, pin::Pin, time::Duration};
use tokio::runtime::Runtime;
use url::Url;

/// Longest time of one request to the collector.
const PATIENCE: Duration = Duration::from_secs(10);

/// Largest reply that is read: it may say which spans were refused.
const MOST_REPLY: usize = 64 << 10;

/// Sends batches of spans to the collector.
#[derive(Debug)]
pub(super) struct CollectorClient {
    client: Client,
    runtime: Runtime,
}

impl CollectorClient {
    /// Creates a client. Nothing is sent yet.
    ///
    /// # Errors
    /// The system has no descriptors, or TLS can't be set up.
    pub(super) fn new() -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let client = Client::new(&Options { connect: PATIENCE, ..Options::default() }).map_err(io::Error::other)?;
        Ok(Self { client, runtime })
    }

    async fn exchange(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (parts, body) = request.into_parts();
        let url = Url::parse(&parts.uri.to_string())?;
        let request = self.client.request(parts.method, url).headers(parts.headers).body(body);
        let mut reply = request.send().await?;
        let mut body = Vec::new();
        while let Some(piece) = reply.chunk().await? {
            if body.len() + piece.len() > MOST_REPLY {
                return Err("the collector's reply is too long".into());
            }
            body.extend_from_slice(&piece);
        }
        let mut response = Response::new(Bytes::from(body));
        *response.status_mut() = reply.status();
        *response.headers_mut() = reply.headers().clone();
        Ok(response)
    }
}

impl HttpClient for CollectorClient {
    /// Blocks the calling thread, which is that of the SDK's batches. Another runtime need not run for it.
    fn send_bytes<'life0, 'async_trait>(
        &'life0 self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'async_trait>>
    where
        'life0: 'async_trait,
        Self: 'async_trait,
    {
        let sent = self.runtime.block_on(async {
            let late = |_| HttpError::from(format!("no answer within {} s", PATIENCE.as_secs()));
            tokio::time::timeout(PATIENCE, self.exchange(request)).await.map_err(late)?
        });
        metrics::count(sent.as_ref().is_ok_and(|reply| reply.status().is_success()));
        Box::pin(std::future::ready(sent))
    }
}
