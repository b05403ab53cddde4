//! Requests that need a token or a password, and the replies to them.

use super::super::{Context, Reply, Target, reply::problem, target::TargetKind};
use crate::{library::LiveResource, problem::Problem};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use millpond_access::{AccessRefusal, AccessViewer, ClientHold, CorsOrigins, Decision, Limited, Pass, Sight, token};
use millpond_library::uri;
use millpond_logging::RequestId;
use millpond_store::HOME_HEADER;

/// Checks a request against the rules of its place. The data of the page is that of the path which it is about.
///
/// # Errors
/// The reason of a refusal.
pub(in crate::http::answer) async fn admit(context: &Context<'_>) -> Result<Pass, AccessRefusal> {
    let Context { front, request, target, .. } = *context;
    if is_open(target) {
        return Ok(Pass::default());
    }
    let Some(gate) = front.gates().of_place(target.rules()) else { return Ok(Pass::default()) };
    let written = request.written_target();
    let viewer = viewer(context, &written);
    let subject = target.subject();
    let path = subject.unwrap_or(target.path());
    let asset = if gate.asks_others() && subject.is_none() { target.asset() } else { path.into() };
    match gate.admit_http((path, &asset), &viewer, front.now())? {
        Decision::Admitted(pass) => Ok(pass),
        // The box keeps the task of other requests small.
        Decision::Ask(question) => Box::pin(question.answer()).await,
    }
}

/// Tells whether no rules hold: for the page, and for data of it that is about no path.
fn is_open(target: &Target) -> bool {
    target.is_page() && target.subject().is_none()
}

/// Whether a request is that of another node of the cluster: it came by the listener of nodes, or has a pass and is for a home or for the copy of a
/// window. The node has applied the rules to its viewer.
pub(in crate::http::answer) fn is_of_node(context: &Context<'_>) -> bool {
    let Context { front, request, viewers, .. } = *context;
    if viewers.is_of_node() {
        return true;
    }
    let is_copy = || context.target.live().is_some_and(|live| live.resource == Some(LiveResource::Copy));
    let is_for_nodes = request.headers.contains_key(HOME_HEADER) || is_copy();
    let Some(token) = request.token.as_deref().filter(|_| is_for_nodes) else {
        return false;
    };
    front.cluster().is_some_and(|cluster| cluster.admits_node(token))
}

/// Counts an admitted request among those of its token, and its response among those of its client.
///
/// # Errors
/// The client or the token has reached a limit.
pub(in crate::http::answer) fn count(context: &Context<'_>, pass: &Pass) -> Result<ClientHold, Limited> {
    let front = context.front;
    let Some(limits) = front.gates().limits() else { return Ok(ClientHold::default()) };
    limits.token_request(pass, front.now())?;
    limits.hold(context.client(), pass)
}

/// Answers a request of a client or a token that has reached a limit (RFC 6585 section 4).
pub(in crate::http::answer) fn limited(id: RequestId, limited: Limited) -> Reply {
    tracing::debug!(%id, why = %limited, "request refused");
    let mut reply = problem(id, Problem::new(StatusCode::TOO_MANY_REQUESTS).detail(limited.to_string()));
    reply.headers.insert(header::RETRY_AFTER, limited.retry_after().into());
    reply
}

/// Adds what pages of other origins need.
pub(in crate::http::answer) fn add_cors(context: &Context<'_>, headers: &mut HeaderMap) {
    cors(context).add(context.request.headers.get(header::ORIGIN), headers);
}

/// Web origins whose pages may play what a request is about.
pub(in crate::http::answer) fn cors<'a>(context: &Context<'a>) -> &'a CorsOrigins {
    context.front.gates().cors(context.target.rules())
}

/// Returns what the client may see of the names of each place; `None` where it is nothing.
pub(in crate::http::answer) fn sights(context: &Context<'_>) -> Vec<Option<Sight>> {
    let written = context.request.written_target();
    context.front.gates().sights(&viewer(context, &written), context.front.now())
}

/// Answers a request that is not admitted. The reply is the same whether there is such an asset or not.
pub(in crate::http::answer) fn turned_away(context: &Context<'_>, id: RequestId, refused: &AccessRefusal) -> Reply {
    let status = match refused {
        AccessRefusal::Network | AccessRefusal::Dots | AccessRefusal::Denied => StatusCode::FORBIDDEN,
        AccessRefusal::Token(error) if error.is_of_another() => StatusCode::FORBIDDEN,
        AccessRefusal::Token(_) | AccessRefusal::Credentials(_) => StatusCode::UNAUTHORIZED,
        AccessRefusal::Malformed(_) => StatusCode::BAD_REQUEST,
        // RFC 6585 section 4.
        AccessRefusal::Guesses(_) => StatusCode::TOO_MANY_REQUESTS,
        AccessRefusal::NoKeys | AccessRefusal::NoAnswer => StatusCode::SERVICE_UNAVAILABLE,
    };
    let path = context.target.subject().unwrap_or(context.target.path());
    let (client, rule) = (context.client(), refused.rule());
    // A challenge is no refusal yet.
    if status == StatusCode::FORBIDDEN {
        tracing::info!(%id, path, %client, rule, why = %refused, "request not admitted");
    } else {
        tracing::debug!(%id, path, %client, rule, why = %refused, "request not admitted");
    }
    let mut reply = problem(id, Problem::new(status).detail(refused.for_viewers()));
    match refused {
        AccessRefusal::Credentials(challenges) => {
            for value in challenges.iter().filter_map(|challenge| HeaderValue::from_str(challenge).ok()) {
                reply.headers.append(header::WWW_AUTHENTICATE, value);
            }
        }
        // RFC 6750 section 3.1.
        AccessRefusal::Token(_) if status == StatusCode::UNAUTHORIZED => {
            let value = HeaderValue::from_static("Bearer realm=\"millpond\", error=\"invalid_token\"");
            reply.headers.insert(header::WWW_AUTHENTICATE, value);
        }
        AccessRefusal::Guesses(many) => {
            reply.headers.insert(header::RETRY_AFTER, many.retry_after().into());
        }
        AccessRefusal::NoKeys | AccessRefusal::NoAnswer => {
            reply.headers.insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
        }
        _ => {}
    }
    reply
}

/// Sends a client with a token in its query to the same manifest with the token in the path. The relative URLs of
/// the manifest then have it too. The redirect is relative: a proxy may have removed a prefix of the path. `None` for all else.
pub(in crate::http::answer) fn with_token_in_path(context: &Context<'_>) -> Option<Reply> {
    let Context { front, request, target, .. } = *context;
    let (path, query) = (target.path(), context.query());
    if request.token.is_some() || !(path.ends_with(".m3u8") || path.ends_with(".mpd")) {
        return None;
    }
    let token = front.gates().of_place(target.rules())?.in_path(query)?;
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
pub(in crate::http::answer) fn keep_private(context: &Context<'_>, headers: &mut HeaderMap) {
    let Context { front, target, .. } = *context;
    let has_rules = front.gates().of_place(target.rules()).is_some();
    if !has_rules || is_open(target) || matches!(target.kind(), TargetKind::NoText) {
        return;
    }
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    let value = headers.get(header::CACHE_CONTROL).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if value.contains("no-store") || value.contains("private") {
        return;
    }
    // "private, max-age=10" of "public, max-age=10, s-maxage=5".
    let kept = value.split(", ").filter(|part| *part != "public" && !part.starts_with("s-maxage") && !part.is_empty());
    let private: Vec<&str> = std::iter::once("private").chain(kept).collect();
    if let Ok(value) = HeaderValue::from_str(&private.join(", ")) {
        headers.insert(header::CACHE_CONTROL, value);
    }
}

/// The client of a request, with its credentials. `written` is the target as the client wrote it.
fn viewer<'a>(context: &Context<'a>, written: &'a str) -> AccessViewer<'a> {
    let request = context.request;
    AccessViewer {
        address: context.client(),
        token: request.token.as_deref(),
        query: context.query(),
        is_secure: context.is_secure(),
        method: request.method.as_str(),
        target: written,
        is_forwarded: request.forwarded.is_some(),
        authorization: request.header(header::AUTHORIZATION),
        agent: request.header(header::USER_AGENT),
    }
}
