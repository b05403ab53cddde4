//! Requests that need a token or a password, and the replies to them.

use super::{Front, Reply, viewers::ConnectionViewers};
use crate::{
    access::{Refusal, Viewer, query_token, token},
    http::request::{Request, uri},
    logging::RequestId,
    problem::Problem,
};
use http::{HeaderMap, HeaderValue, StatusCode, header};

impl Front {
    /// Checks a request against the rules of its place. The data of the page is that of the path which it is about.
    ///
    /// # Errors
    /// The reason of a refusal.
    pub(super) fn admit(
        &self,
        asked: &str,
        query: &str,
        request: &Request,
        viewers: &ConnectionViewers,
    ) -> Result<(), Refusal> {
        let about = asked_about(asked, query);
        if about.is_none() && is_page(asked) {
            return Ok(());
        }
        let path = about.as_deref().unwrap_or(asked);
        let Some(gate) = self.gates().of(path) else { return Ok(()) };
        let target = request.written_target();
        let viewer = Viewer {
            address: viewers.address(),
            token: request.token.as_deref(),
            query,
            is_secure: viewers.is_secure(),
            method: request.method.as_str(),
            target: &target,
            authorization: request.header(header::AUTHORIZATION),
        };
        gate.admit_http(path, &viewer, self.sources.manager().clock().elapsed())
    }

    /// Answers a request that is not admitted. The reply is the same whether there is such an asset or not.
    pub(super) fn turned_away(&self, id: RequestId, path: &str, refused: &Refusal) -> Reply {
        tracing::debug!(%id, path, why = %refused, "request not admitted");
        let status = match refused {
            Refusal::Network | Refusal::Dots => StatusCode::FORBIDDEN,
            Refusal::Token(error) if error.is_of_another() => StatusCode::FORBIDDEN,
            Refusal::Token(_) | Refusal::Credentials(_) => StatusCode::UNAUTHORIZED,
            Refusal::Malformed(_) => StatusCode::BAD_REQUEST,
            Refusal::NoKeys => StatusCode::SERVICE_UNAVAILABLE,
        };
        let mut reply = self.problem(id, Problem::new(status).detail(refused.to_string()));
        match refused {
            Refusal::Credentials(challenges) => {
                for value in challenges.iter().filter_map(|challenge| HeaderValue::from_str(challenge).ok()) {
                    reply.headers.append(header::WWW_AUTHENTICATE, value);
                }
            }
            // RFC 6750 section 3.1.
            Refusal::Token(_) if status == StatusCode::UNAUTHORIZED => {
                let value = HeaderValue::from_static("Bearer realm=\"millpond\", error=\"invalid_token\"");
                reply.headers.insert(header::WWW_AUTHENTICATE, value);
            }
            Refusal::NoKeys => {
                reply.headers.insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
            }
            _ => {}
        }
        reply
    }

    /// Sends a client with a token in its query to the same manifest with the token in the path. The relative URLs of
    /// the manifest then have it too. `None` for all else.
    pub(super) fn with_token_in_path(&self, path: &str, query: &str, request: &Request) -> Option<Reply> {
        if request.token.is_some() || !(path.ends_with(".m3u8") || path.ends_with(".mpd")) {
            return None;
        }
        self.gates().of(path)?;
        let token = query_token(query).filter(|token| token.starts_with("eyJ") && !token.contains('/'))?;
        let rest: Vec<&str> = query.split('&').filter(|pair| !token::is_parameter(pair)).collect();
        let mark = if rest.is_empty() { "" } else { "?" };
        let location = format!("/~{token}{}{mark}{}", uri::encode(path), rest.join("&"));
        let mut headers = HeaderMap::new();
        headers.insert(header::LOCATION, HeaderValue::from_str(&location).ok()?);
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        Some(Reply::without_body(StatusCode::TEMPORARY_REDIRECT, headers))
    }

    /// Forbids shared caches to give the reply to others, where its place has rules of access. Tokens in URLs don't go to
    /// other sites.
    pub(super) fn keep_private(&self, request: &Request, headers: &mut HeaderMap) {
        let (raw, query) = request.split();
        let Some(path) = uri::decode_path(raw) else { return };
        let about = asked_about(&path, query);
        let is_open = || self.gates().of(about.as_deref().unwrap_or(&path)).is_none();
        if (about.is_none() && is_page(&path)) || is_open() {
            return;
        }
        headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
        let value = headers.get(header::CACHE_CONTROL).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if value.contains("no-store") || value.contains("private") {
            return;
        }
        // "private, max-age=10" of "public, max-age=10, s-maxage=5".
        let kept =
            value.split(", ").filter(|part| *part != "public" && !part.starts_with("s-maxage") && !part.is_empty());
        let private: Vec<&str> = std::iter::once("private").chain(kept).collect();
        if let Ok(value) = HeaderValue::from_str(&private.join(", ")) {
            headers.insert(header::CACHE_CONTROL, value);
        }
    }
}

fn is_page(path: &str) -> bool {
    path == "/" || path.starts_with("/.millpond/")
}

/// The path that a request for data of the page is about.
fn asked_about(path: &str, query: &str) -> Option<String> {
    match path {
        "/.millpond/assets" => Some(uri::parameter(query, "folder").trim_matches('/').to_owned()),
        "/.millpond/asset" | "/.millpond/duration" => Some(uri::parameter(query, "path").trim_matches('/').to_owned()),
        _ => None,
    }
}
