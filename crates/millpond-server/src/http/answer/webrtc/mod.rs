//! WHEP (draft-ietf-wish-whep) and WHIP (RFC 9725): peers of WebRTC begin and end their sessions by HTTP.
//!
//! `POST /cams/door/whep` has the offer of a viewer, `POST /live/door/whip` that of a publisher. The reply is the answer with the address
//! of the session; `DELETE` of that address ends it. The server needs no candidates of its peers, which it learns from their checks:
//! `PATCH` takes and ignores them (RFC 9725 4.3).

mod body;
mod created;
mod error;
mod play;
mod publish;

use super::{
    Context, Front, Reply, ReplyInfo, Target, client,
    reply::{add_common_fields, put_page},
    target::TargetKind,
};
use crate::{
    http::Kind,
    library::{LiveResource, WebRtcUse},
};
use error::SignallingError;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use millpond_http::{request::Request, wire::Upload};
use std::time::Instant;

/// Methods of the endpoint, and of a session.
const OF_ENDPOINT: HeaderValue = HeaderValue::from_static("GET, HEAD, OPTIONS, POST");
const OF_SESSION: HeaderValue = HeaderValue::from_static("DELETE, GET, HEAD, OPTIONS, PATCH");

/// The resource of WebRTC that a request names: an address to which offers are sent, or a session, by its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Subject<'a> {
    of: WebRtcUse,
    session: Option<&'a str>,
}

impl<'a> Subject<'a> {
    /// Returns the subject of a target; `None` where it is no address of WebRTC.
    fn of(target: &'a Target) -> Option<Self> {
        match target.kind() {
            TargetKind::Live(live) => match live.resource.as_ref()? {
                LiveResource::WebRtc(of, session) => Some(Self { of: *of, session: session.as_deref() }),
                _ => None,
            },
            _ => None,
        }
    }

    fn methods(self) -> HeaderValue {
        if self.session.is_some() { OF_SESSION } else { OF_ENDPOINT }
    }
}

/// Returns the methods of an address of WebRTC; `None` for other targets.
pub(super) fn methods(target: &Target) -> Option<HeaderValue> {
    Subject::of(target).map(Subject::methods)
}

/// Tells whether the body of a request must be read for WebRTC.
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

async fn of_subject(
    context: &Context<'_>,
    upload: &mut impl Upload,
    info: &mut ReplyInfo,
) -> Result<Reply, SignallingError> {
    let Context { request, target, .. } = *context;
    match (Subject::of(target), &request.method) {
        (Some(Subject { of: WebRtcUse::Play, session: None }), &Method::POST) => {
            play::answer(context, upload, info).await
        }
        (Some(Subject { of: WebRtcUse::Publish, session: None }), &Method::POST) => {
            publish::answer(context, upload, info).await
        }
        (Some(Subject { session: Some(id), .. }), &Method::PATCH) => {
            body::read(context, upload, body::FRAGMENT).await?;
            patch(context, id)
        }
        _ => Err(SignallingError::Method),
    }
}

/// Answers a request without a body: the end of a session, a look whether there is WebRTC, or an unsupported method. The id of a session,
/// which only its client knows, is the right to end it.
pub(super) fn without_body(context: &Context<'_>, info: &ReplyInfo) -> Reply {
    let Context { front, request, target, .. } = *context;
    let result = match (Subject::of(target), &request.method) {
        (Some(Subject { session: Some(id), .. }), &Method::DELETE) => end(front, id, target),
        (Some(Subject { session: Some(id), .. }), &Method::GET | &Method::HEAD) if tag(front, id, target).is_none() => {
            Err(SignallingError::NoSession)
        }
        (_, &Method::GET | &Method::HEAD) => front.webrtc().map(|_| found()).ok_or(SignallingError::Off),
        _ => Err(SignallingError::Method),
    };
    result.unwrap_or_else(|error| error.reply(context, info.id))
}

/// Answers a look: there is WebRTC (draft-ietf-wish-whep 4.1 and 4.2).
fn found() -> Reply {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(body::SDP));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Reply::without_body(StatusCode::OK, headers)
}

/// The entity tag of a session of the target's stream; `None` where there is no such session.
fn tag(front: &Front, id: &str, target: &Target) -> Option<String> {
    front.webrtc()?.tag(id, stream(target))
}

/// Path of the stream of an address of WebRTC.
fn stream(target: &Target) -> &str {
    match target.kind() {
        TargetKind::Live(live) => &live.stream,
        _ => "",
    }
}

/// Ends a session.
fn end(front: &Front, id: &str, target: &Target) -> Result<Reply, SignallingError> {
    let is_ended = front.webrtc().is_some_and(|webrtc| webrtc.end(id, stream(target)));
    if is_ended { Ok(Reply::without_body(StatusCode::OK, HeaderMap::new())) } else { Err(SignallingError::NoSession) }
}

/// Takes candidates of a session's client. The server needs none, and restarts no ICE (RFC 9725 4.3.3).
fn patch(context: &Context<'_>, id: &str) -> Result<Reply, SignallingError> {
    let Context { front, request, target, .. } = *context;
    let tag = tag(front, id, target).ok_or(SignallingError::NoSession)?;
    match request.headers.get(header::IF_MATCH) {
        Some(asked) if asked == "*" => return Err(SignallingError::NoRestart),
        Some(asked) if asked != tag.as_str() => return Err(SignallingError::OtherTag(tag)),
        _ => {}
    }
    Ok(Reply::without_body(StatusCode::NO_CONTENT, HeaderMap::new()))
}
