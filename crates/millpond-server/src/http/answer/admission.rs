//! Requests that need a token or a password, and the replies to them.

use super::{Front, Reply, viewers::ConnectionViewers};
use crate::{
    access::{CorsOrigins, Decision, Hold, Limited, Pass, Refusal, Sight, Viewer, token},
    http::request::Request,
    logging::RequestId,
    problem::Problem,
    uri,
};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use millpond_store::HOME_HEADER;
use std::net::IpAddr;

impl Front {
    /// Checks a request against the rules of its place. The data of the page is that of the path which it is about.
    ///
    /// # Errors
    /// The reason of a refusal.
    pub(super) async fn admit(
        &self,
        (asked, query): (&str, &str),
        request: &Request,
        viewers: &ConnectionViewers,
    ) -> Result<Pass, Refusal> {
        let about = asked_about(asked, query);
        if about.is_none() && is_page(asked) {
            return Ok(Pass::default());
        }
        let path = about.as_deref().unwrap_or(asked);
        let Some(gate) = self.gates().of(path) else { return Ok(Pass::default()) };
        let target = request.written_target();
        let viewer = viewer(request, viewers, (query, &target));
        let asset = if gate.asks_others() && about.is_none() { self.asset_of(path) } else { path.to_owned() };
        match gate.admit_http((path, &asset), &viewer, self.now())? {
            Decision::Admitted(pass) => Ok(pass),
            // The box keeps the task of other requests small.
            Decision::Ask(question) => Box::pin(question.answer()).await,
        }
    }

    /// Whether a request is that of another node of the cluster to a home. The node has applied the rules to its viewer.
    pub(super) fn is_of_node(&self, request: &Request) -> bool {
        let Some(token) = request.token.as_deref().filter(|_| request.headers.contains_key(HOME_HEADER)) else {
            return false;
        };
        self.cluster().is_some_and(|cluster| cluster.admits_node(token))
    }

    /// Counts an admitted request among those of its token, and its response among those of its client.
    ///
    /// # Errors
    /// The client or the token has reached a limit.
    pub(super) fn count(&self, pass: &Pass, client: IpAddr) -> Result<Hold, Limited> {
        let Some(limits) = self.gates().limits() else { return Ok(Hold::default()) };
        limits.token_request(pass, self.now())?;
        limits.hold(client, pass)
    }

    /// Answers a request of a client or a token that has reached a limit (RFC 6585 section 4).
    pub(super) fn limited(&self, id: RequestId, limited: Limited) -> Reply {
        tracing::debug!(%id, why = %limited, "request refused");
        let mut reply = self.problem(id, Problem::new(StatusCode::TOO_MANY_REQUESTS).detail(limited.to_string()));
        reply.headers.insert(header::RETRY_AFTER, limited.retry_after().into());
        reply
    }

    /// Adds what pages of other origins need.
    pub(super) fn add_cors(&self, request: &Request, headers: &mut HeaderMap) {
        self.cors(request).add(request.headers.get(header::ORIGIN), headers);
    }

    /// Web origins whose pages may play what a request is about.
    pub(super) fn cors(&self, request: &Request) -> &CorsOrigins {
        let (raw, query) = request.split();
        let path = uri::decode_path(raw).unwrap_or_default();
        let about = asked_about(&path, query);
        self.gates().cors(about.as_deref().unwrap_or(&path))
    }

    /// Returns what the client may see of the names of each place; `None` where it is nothing.
    pub(super) fn sights(&self, request: &Request, viewers: &ConnectionViewers) -> Vec<Option<Sight>> {
        let target = request.written_target();
        let viewer = viewer(request, viewers, (request.split().1, &target));
        self.gates().sights(&viewer, self.now())
    }

    /// Answers a request that is not admitted. The reply is the same whether there is such an asset or not.
    pub(super) fn turned_away(&self, id: RequestId, path: &str, refused: &Refusal) -> Reply {
        tracing::debug!(%id, path, why = %refused, "request not admitted");
        let status = match refused {
            Refusal::Network | Refusal::Dots | Refusal::Denied => StatusCode::FORBIDDEN,
            Refusal::Token(error) if error.is_of_another() => StatusCode::FORBIDDEN,
            Refusal::Token(_) | Refusal::Credentials(_) => StatusCode::UNAUTHORIZED,
            Refusal::Malformed(_) => StatusCode::BAD_REQUEST,
            // RFC 6585 section 4.
            Refusal::Guesses(_) => StatusCode::TOO_MANY_REQUESTS,
            Refusal::NoKeys | Refusal::NoAnswer => StatusCode::SERVICE_UNAVAILABLE,
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
            Refusal::Guesses(many) => {
                reply.headers.insert(header::RETRY_AFTER, many.retry_after().into());
            }
            Refusal::NoKeys | Refusal::NoAnswer => {
                reply.headers.insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
            }
            _ => {}
        }
        reply
    }

    /// Sends a client with a token in its query to the same manifest with the token in the path. The relative URLs of
    /// the manifest then have it too. The redirect is relative: a proxy may have removed a prefix of the path. `None` for all else.
    pub(super) fn with_token_in_path(&self, path: &str, query: &str, request: &Request) -> Option<Reply> {
        if request.token.is_some() || !(path.ends_with(".m3u8") || path.ends_with(".mpd")) {
            return None;
        }
        let token = self.gates().of(path)?.in_path(query)?;
        let is_secret = |pair: &&str| token::is_parameter(pair) || pair.starts_with("user=");
        let rest: Vec<&str> = query.split('&').filter(|pair| !is_secret(pair)).collect();
        let mark = if rest.is_empty() { "" } else { "?" };
        let location = format!("{}~{token}{}{mark}{}", request.root(), uri::encode(path), rest.join("&"));
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

/// The client of a request, with its credentials.
fn viewer<'a>(request: &'a Request, viewers: &ConnectionViewers, (query, target): (&'a str, &'a str)) -> Viewer<'a> {
    Viewer {
        address: request.client(viewers.address()),
        token: request.token.as_deref(),
        query,
        is_secure: request.is_secure(viewers.is_secure()),
        method: request.method.as_str(),
        target,
        is_forwarded: request.forwarded.is_some(),
        authorization: request.header(header::AUTHORIZATION),
        agent: request.header(header::USER_AGENT),
    }
}

/// Tells whether a path is that of the page or of its data.
pub(super) fn is_page(path: &str) -> bool {
    path == "/" || path.starts_with("/.millpond/")
}

/// The path that a request for data of the page is about.
fn asked_about(path: &str, query: &str) -> Option<String> {
    match path {
        "/.millpond/assets" => Some(uri::parameter(query, "folder").trim_matches('/').to_owned()),
        "/.millpond/asset" | "/.millpond/brief" => Some(uri::parameter(query, "path").trim_matches('/').to_owned()),
        _ => None,
    }
}
