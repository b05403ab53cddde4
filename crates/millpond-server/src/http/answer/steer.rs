//! Requests that another node of the cluster serves.

use super::{Front, Reply, live::LivePath};
use crate::{
    cluster::{MARK, Protocol, Start, marked},
    http::request::{Request, uri},
    library::{LiveResource, Resource, Route},
};
use http::{HeaderMap, HeaderValue, StatusCode, header};
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

    /// Returns the object that a path's request is assigned by; `None` for requests that each node serves itself.
    pub(crate) fn object_key(&self, path: &str) -> Option<(ObjectKey, Start)> {
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
