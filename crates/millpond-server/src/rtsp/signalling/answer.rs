//! Replies to requests whose actions were performed.

use super::{action::Outcome, ask};
use crate::rtsp::reply::Reply;
use millpond_rtp::message::{
    Request, StatusCode,
    headers::{CONTENT_BASE, CONTENT_TYPE, RANGE, RTP_INFO, SCALE, SESSION, SPEED, TRANSPORT},
};
use millpond_stream::{Full, Played};
use std::time::Duration;

/// The URL of a request without its query and slashes at its end: clients append the names of tracks to it. A `token` that stands for
/// the credentials of the query goes into the path, so that the URLs of tracks have it.
fn base(request: &Request<Vec<u8>>, token: Option<&str>) -> Option<String> {
    let mut url = request.request_uri()?.clone();
    if let Some(token) = token {
        let path = format!("/~{token}{}", url.path());
        url.set_path(&path);
    }
    url.set_query(None);
    Some(url.as_str().trim_end_matches('/').to_owned())
}

/// The reply to a request, by the outcome of its action. URLs in it have the `token` that stands for the credentials of the request's
/// query.
pub(super) fn reply(
    request: &Request<Vec<u8>>,
    outcome: Outcome<'_>,
    session_timeout: Duration,
    token: Option<&str>,
) -> Reply {
    match outcome {
        Outcome::Described(text) => {
            let mut reply = Reply::ok().with(CONTENT_TYPE, "application/sdp");
            reply.headers.extend(base(request, token).map(|base| (CONTENT_BASE, format!("{base}/"))));
            reply.body = text.into_bytes();
            reply
        }
        Outcome::SetUp { name, transport } => {
            let named = format!("{name};timeout={}", session_timeout.as_secs());
            Reply::ok().with(SESSION, named).with(TRANSPORT, transport)
        }
        Outcome::Plays(played, range) => plays(request, (played, range), token),
        Outcome::Done => Reply::ok(),
        Outcome::Full(full) => Reply::refusal(StatusCode::NotEnoughBandwidth, setting(full)),
        Outcome::Refused(reply) => reply,
    }
}

fn plays(request: &Request<Vec<u8>>, (played, range): (&Played, String), token: Option<&str>) -> Reply {
    let base = base(request, token).unwrap_or_default();
    let each = played.tracks.iter();
    let info: Vec<String> =
        each.map(|(track, sequence, time)| format!("url={base}/{track};seq={sequence};rtptime={time}")).collect();
    let mut reply = Reply::ok().with(SESSION, ask::session(request).unwrap_or_default()).with(RANGE, range);
    if !info.is_empty() {
        reply = reply.with(RTP_INFO, info.join(","));
    }
    if request.header(&SCALE).is_some() {
        reply = reply.with(SCALE, format!("{}", played.scale));
    }
    if request.header(&SPEED).is_some() {
        reply = reply.with(SPEED, format!("{}", played.speed));
    }
    reply
}

/// The reason why a session is not admitted, with the setting's name if a setting is the limit.
fn setting(full: Full) -> &'static str {
    match full {
        Full::Sessions => "rtsp-sessions is reached",
        Full::Client => "rtsp-sessions-per-client is reached",
        Full::Waiting => "too many sessions that were set up and not played",
        Full::Bandwidth => "rtsp-mbps is reached",
        Full::Origin => "the origin is late or rtsp-origin-mbps is reached",
        Full::Memory => "sessions hold half of the memory",
        Full::Sending => "sending is late",
    }
}
