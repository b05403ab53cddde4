//! WHEP (draft-ietf-wish-whep): viewers by WebRTC begin and end their sessions by HTTP.
//!
//! `POST /cams/door/whep` has an offer, and gets the answer with the address of the session; `DELETE` of that address ends it. The server
//! needs no candidates of its peers, which it learns from their checks: `PATCH` takes and ignores them (RFC 9725 4.3).

mod error;
mod offer;

use super::{
    Context, Front, Reply, ReplyInfo, Target, client,
    reply::{add_common_fields, put_page},
    target::TargetKind,
};
use crate::{http::Kind, library::LiveResource};
use error::WhepError;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use millpond_http::{request::Request, wire::Upload};
use std::time::Instant;

/// Methods of the endpoint, and of a session.
const OF_ENDPOINT: HeaderValue = HeaderValue::from_static("GET, HEAD, OPTIONS, POST");
const OF_SESSION: HeaderValue = HeaderValue::from_static("DELETE, GET, HEAD, OPTIONS, PATCH");

/// What a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subject<'a> {
    /// The address to which offers are sent.
    Endpoint,
    /// A session, by its id.
    Session(&'a str),
}

impl<'a> Subject<'a> {
    /// Returns the subject of a target; `None` where it is no address of WHEP.
    fn of(target: &'a Target) -> Option<Self> {
        match target.kind() {
            TargetKind::Live(live) => match live.resource.as_ref()? {
                LiveResource::Whep => Some(Self::Endpoint),
                LiveResource::WhepSession(id) => Some(Self::Session(id)),
                _ => None,
            },
            _ => None,
        }
    }

    fn methods(self) -> HeaderValue {
        match self {
            Self::Endpoint => OF_ENDPOINT,
            Self::Session(_) => OF_SESSION,
        }
    }
}

/// Returns the methods of an address of WHEP; `None` for other targets.
pub(super) fn methods(target: &Target) -> Option<HeaderValue> {
    Subject::of(target).map(Subject::methods)
}

/// Tells whether the body of a request must be read for WHEP.
pub(super) fn takes_body(request: &Request, target: &Target) -> bool {
    let has_body = matches!(request.method, Method::POST | Method::PATCH);
    has_body && Subject::of(target).is_some()
}

/// Answers a request with a body.
pub(super) async fn answer(context: &Context<'_>, upload: &mut impl Upload) -> (Reply, ReplyInfo) {
    let Context { front, request, .. } = *context;
    let mut info = front.info(Kind::Stream);
    let began = Instant::now();
    let result = match front.gates().count_request(context.client(), front.now()) {
        Err(limited) => Ok(client::limited(info.id, limited)),
        Ok(()) => of_subject(context, upload, &mut info).await,
    };
    let mut reply = result.unwrap_or_else(|error| error.reply(context, info.id));
    // The time in which a live source begins is not the server's.
    info.waited = began.elapsed();
    put_page(request, &mut reply);
    client::keep_private(context, &mut reply.headers);
    client::add_cors(context, &mut reply.headers);
    add_common_fields(&mut reply.headers, info.id);
    (reply, info)
}

async fn of_subject(context: &Context<'_>, upload: &mut impl Upload, info: &mut ReplyInfo) -> Result<Reply, WhepError> {
    let Context { request, target, .. } = *context;
    match (Subject::of(target), &request.method) {
        (Some(Subject::Endpoint), &Method::POST) => offer::answer(context, upload, info).await,
        (Some(Subject::Session(id)), &Method::PATCH) => {
            offer::read_body(context, upload, offer::FRAGMENT).await?;
            patch(context, id)
        }
        _ => Err(WhepError::Method),
    }
}

/// Answers a request without a body: the end of a session, a look whether there is WHEP, or an unsupported method. The id of a session,
/// which only its client knows, is the right to end it.
pub(super) fn without_body(context: &Context<'_>, info: &ReplyInfo) -> Reply {
    let Context { front, request, target, .. } = *context;
    let result = match (Subject::of(target), &request.method) {
        (Some(Subject::Session(id)), &Method::DELETE) => end(front, id),
        (Some(Subject::Session(id)), &Method::GET | &Method::HEAD) if !has(front, id) => Err(WhepError::NoSession),
        (_, &Method::GET | &Method::HEAD) => front.webrtc().map(|_| found()).ok_or(WhepError::Off),
        _ => Err(WhepError::Method),
    };
    result.unwrap_or_else(|error| error.reply(context, info.id))
}

/// Answers a look: there is WHEP (draft-ietf-wish-whep 4.1 and 4.2).
fn found() -> Reply {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(offer::SDP));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Reply::without_body(StatusCode::OK, headers)
}

/// Whether there is a session.
fn has(front: &Front, id: &str) -> bool {
    front.webrtc().is_some_and(|webrtc| webrtc.has(id))
}

/// Ends a session.
fn end(front: &Front, id: &str) -> Result<Reply, WhepError> {
    let is_ended = front.webrtc().is_some_and(|webrtc| webrtc.end(id));
    if is_ended { Ok(Reply::without_body(StatusCode::OK, HeaderMap::new())) } else { Err(WhepError::NoSession) }
}

/// Takes candidates of a session's client. The server needs none, and restarts no ICE (RFC 9725 4.3.3).
fn patch(context: &Context<'_>, id: &str) -> Result<Reply, WhepError> {
    let Context { front, request, .. } = *context;
    if !has(front, id) {
        return Err(WhepError::NoSession);
    }
    if request.headers.get(header::IF_MATCH).is_some_and(|tag| tag == "*") {
        return Err(WhepError::NoRestart);
    }
    Ok(Reply::without_body(StatusCode::NO_CONTENT, HeaderMap::new()))
}
