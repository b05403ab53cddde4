//! Requests for a title that plays in phases: HTTP clients get the stored title.
//!
//! A playlist lets each viewer begin at the beginning. So the patch of a viewer is the title's first segments, and caches between server
//! and viewers share them. The title's own path makes all channels and caches agree on one URL for each segment.

use super::Reply;
use crate::{
    http::{AnswerError, answer::target::LiveTarget},
    library::LiveResource,
};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use millpond_http::request::Request;
use millpond_library::uri;

/// Redirects a request for a playlist to that of the title at `asset`.
///
/// # Errors
/// A title has no such resource.
pub(super) fn answer(request: &Request, live: &LiveTarget, asset: &str) -> Result<Reply, AnswerError> {
    match live.resource {
        Some(LiveResource::Multivariant(_) | LiveResource::Mpd | LiveResource::Media(..)) => {}
        _ => {
            return Err(live.without(format!(
                "it plays in phases: index.m3u8 and index.mpd are there, and {}/phase-1",
                &*live.stream
            )));
        }
    }
    let (path, query) = request.split();
    let mut headers = HeaderMap::with_capacity(4);
    if let Ok(title) = HeaderValue::from_str(&location(path, query, &live.stream, asset)) {
        headers.insert(header::LOCATION, title);
    }
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(Reply::without_body(StatusCode::TEMPORARY_REDIRECT, headers))
}

/// Returns a reference from a resource of a channel to the same resource of its asset. It is relative, because a proxy may have taken a prefix
/// off the path.
fn location(path: &str, query: &str, channel: &str, asset: &str) -> String {
    let path = path.trim_start_matches('/');
    let depth = path.matches('/').count();
    let parts = channel.split('/').count();
    let resource: Vec<&str> = path.split('/').skip(parts).collect();
    let mark = if query.is_empty() { "" } else { "?" };
    format!("{}{}/{}{mark}{query}", "../".repeat(depth), uri::encode(asset), resource.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_title_has_the_same_resource() {
        let at = |path, query| location(path, query, "movies/a", "films/b c.mp4");
        assert_eq!(at("/movies/a/index.m3u8", ""), "../../films/b%20c.mp4/index.m3u8");
        assert_eq!(at("/movies/a/ts/index.m3u8", "token=7"), "../../../films/b%20c.mp4/ts/index.m3u8?token=7");
    }
}
