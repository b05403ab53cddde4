//! Requests that another node of the cluster serves.

use super::{Front, Reply, ReplyInfo, live::LivePath, viewers::ConnectionViewers};
use crate::{
    cluster::{MARK, PassedBytes, Protocol, Start, marked},
    http::{
        Kind,
        body::{Body, BodyError, ChunkStream},
        render,
        request::Request,
    },
    library::{LiveResource, Resource, Route},
    proxies::Forwarded,
    uri,
};
use bytes::Bytes;
use futures_util::{FutureExt as _, future::BoxFuture};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use millpond_cluster::ObjectKey;

impl Front {
    /// Returns the redirect to the node that serves a request; `None` where that is this one.
    ///
    /// Manifests and long responses are redirected. All else is relative to them, and is served where it is asked for.
    pub(super) async fn redirect(&self, path: &str, request: &Request, is_secure: bool) -> Option<Reply> {
        let cluster = self.cluster()?;
        let (_, query) = request.split();
        if marked(query) {
            return None;
        }
        let (key, start) = self.object_key(path)?;
        let base = cluster.elsewhere(&key, start, (Protocol::Http, is_secure)).await?;
        let query = if query.is_empty() { String::new() } else { format!("{query}&") };
        let (token, path) = (request.prefix(), uri::encode(path));
        let location = format!("{base}{token}{path}?{query}{MARK}={}", cluster.name());
        let mut headers = HeaderMap::new();
        headers.insert(header::LOCATION, HeaderValue::from_str(&location).ok()?);
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        Some(Reply::without_body(StatusCode::TEMPORARY_REDIRECT, headers))
    }

    /// Passes a request on to the node that serves it; `None` where that is this one.
    pub(super) async fn pass(
        &self,
        path: &str,
        (request, viewers): (&Request, &ConnectionViewers),
        info: &mut ReplyInfo,
    ) -> Option<Reply> {
        let cluster = self.cluster().filter(|cluster| cluster.passes())?;
        if marked(request.split().1) {
            return None;
        }
        let (key, start) = self.passed_key(path, info)?;
        let target = request.target.split('#').next().unwrap_or("");
        let target = format!("{}{target}", request.prefix());
        let client =
            Forwarded { address: request.client(viewers.address()), is_secure: request.is_secure(viewers.is_secure()) };
        let asked = (&request.method, target.as_str(), &request.headers);
        let mut passage = cluster.passage((key, start), asked, client)?;
        let passed = passage.begin().await?;
        let (status, headers, length) = (passed.status, passed.headers.clone(), passed.length);
        let has_body = request.method != Method::HEAD && status != StatusCode::NOT_MODIFIED;
        let body = match length {
            Some(0) => Body::empty(),
            None if !has_body => Body::unmade(),
            _ => Body::passed(Box::new(PassedBytes::new(passage, passed)), length),
        };
        Some(Reply::new(status, headers, body))
    }

    /// Returns the object of a request that may be passed on. Files are served where they are asked for.
    fn passed_key(&self, path: &str, info: &mut ReplyInfo) -> Option<(ObjectKey, Start)> {
        if let Some(live) = self.live_path(path) {
            self.attribute(live.place, Kind::Stream, info);
            return self.sources.object_key(live.stream);
        }
        let (index, place, inside) = self.place(path)?;
        let route = Route::parse(inside)?;
        self.attribute(index, render::profile(&route.resource).kind, info);
        let start = match route.resource {
            Resource::Multivariant(_) | Resource::Mpd => Start::Stored,
            _ => Start::Follows,
        };
        Some((ObjectKey::new(place, &route.asset), start))
    }

    /// Returns the object that a path belongs to, also where each node serves that path itself.
    pub(crate) fn asset_key(&self, path: &str) -> Option<(ObjectKey, Start)> {
        if let Some(live) = self.live_path(path) {
            return self.sources.object_key(live.stream);
        }
        let (_, place, inside) = self.place(path)?;
        Some((ObjectKey::new(place, &Route::parse(inside)?.asset), Start::Stored))
    }

    /// Returns the object that a path's request is assigned by; `None` for requests that each node serves itself.
    fn object_key(&self, path: &str) -> Option<(ObjectKey, Start)> {
        if let Some(live) = self.live_path(path) {
            return self.sources.object_key(live.stream).filter(|_| is_begun(&live));
        }
        let (_, place, inside) = self.place(path)?;
        let route = Route::parse(inside)?;
        let start = match route.resource {
            Resource::Multivariant(_) | Resource::Mpd => Start::Stored,
            Resource::Media(..) | Resource::IFrames(_) => Start::Follows,
            _ => return None,
        };
        Some((ObjectKey::new(place, &route.asset), start))
    }
}

/// Whether a request begins to play a stream, or reads its playlist.
fn is_begun(live: &LivePath<'_>) -> bool {
    !matches!(live.resource(), None | Some(LiveResource::OfRun { .. }))
}

impl ChunkStream for PassedBytes {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Bytes>, BodyError>> {
        Self::next(self).map(|read| read.map_err(BodyError::Node)).boxed()
    }
}
