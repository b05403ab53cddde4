//! Viewers and sessions: listing, ending and refusing them.

use super::{
    super::AdminState,
    Outcome, absent, bad,
    page::{Page, PageQuery, fits, page},
    request::ApiRequest,
    show,
};
use crate::{
    audience::{BlockReport, ViewerReport},
    problem::Problem,
    rtmp,
    rtsp::{SessionKind, SessionReport},
    srt, webrtc,
};
use millpond_settings::value;
use serde::{Deserialize, Serialize};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use utoipa::{IntoParams, ToSchema};

/// Bounds and default of the time for which viewers are refused.
const BLOCK: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(86_400));
const DEFAULT_BLOCK: Duration = Duration::from_secs(60);
/// Kinds of viewers and sessions.
const KINDS: [&str; 7] = ["http", "long", "rtsp", "webrtc", "srt", "rtmp", "publish"];

/// A viewer, a long response or a session.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Session {
    /// Its id.
    id: String,
    /// `http`, `long`, `rtsp`, `webrtc`, `srt`, `rtmp` or `publish`.
    kind: &'static str,
    /// Address of the client, with the port of RTSP, SRT and RTMP.
    client: String,
    /// User agent.
    agent: Option<String>,
    /// Session of CMCD, or subject of the token.
    subject: Option<String>,
    /// Path of the asset or stream.
    asset: String,
    /// `active`, `idle`, `sending`, `ready`, `playing`, `paused` or `publishing`.
    state: &'static str,
    /// `http`, `tcp`, `udp` or `multicast`; null before the first PLAY.
    transport: Option<&'static str>,
    /// Time of the first request, in seconds since the Unix epoch.
    started: f64,
    /// Time at which the client was last heard, in seconds since the Unix epoch.
    last: Option<f64>,
    /// Requests of a viewer of HTTP.
    requests: Option<u64>,
    /// Bytes of media.
    bytes: u64,
    /// Bits a second.
    bps: Option<u64>,
}

/// A viewer that is refused.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Block {
    /// Id of the viewer.
    id: String,
    /// Address of the client.
    client: String,
    /// User agent.
    agent: String,
    /// Path of the asset.
    asset: String,
    /// End of the block, in seconds since the Unix epoch.
    until: f64,
}

/// The end of a session.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct EndedSession {
    /// Its id.
    id: String,
    /// Whether the session was ended.
    is_ended: bool,
    /// End of the time for which a viewer of HTTP is refused.
    blocked_until: Option<f64>,
}

/// A block that was ended.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct EndedBlock {
    /// Id of the viewer.
    id: String,
}

/// Filters of sessions.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct SessionQuery {
    /// `http`, `long`, `rtsp`, `webrtc`, `srt`, `rtmp` or `publish`.
    kind: Option<String>,
    /// Name of a place.
    place: Option<String>,
    /// Part of client, agent, subject, asset or id.
    q: Option<String>,
    /// Most items, 1 to 1000.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<usize>,
    /// `next-cursor` of the page before.
    cursor: Option<String>,
}

/// Time for which a viewer is refused.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct EndQuery {
    /// A time from 1s to 24h, such as 10m. Default: 60s.
    block: Option<String>,
}

impl Session {
    fn of_viewer(report: ViewerReport) -> Self {
        let ViewerReport { id, is_long, about, state, started, last, requests, bytes, bps, .. } = report;
        Self {
            id,
            kind: if is_long { "long" } else { "http" },
            client: about.client.to_string(),
            agent: Some(about.agent.into_string()).filter(|agent| !agent.is_empty()),
            subject: about.subject.map(str::into_string),
            asset: about.asset.into_string(),
            state: state.name(),
            transport: Some("http"),
            started,
            last: Some(last),
            requests,
            bytes,
            bps: Some(bps),
        }
    }

    fn of_rtsp(report: SessionReport, now: f64) -> Self {
        Self {
            id: report.id(),
            kind: match report.kind {
                SessionKind::Viewer => "rtsp",
                SessionKind::Publisher => "publish",
            },
            client: report.peer.to_string(),
            started: report.started(),
            agent: report.agent,
            subject: None,
            asset: report.asset,
            state: report.state,
            transport: report.transport,
            last: report.silence.map(|silence| now - silence.as_secs_f64()),
            requests: None,
            bytes: report.bytes,
            bps: report.bps,
        }
    }

    fn of_webrtc(report: webrtc::SessionReport) -> Self {
        Self {
            id: report.id(),
            kind: if report.is_publisher { "publish" } else { "webrtc" },
            client: report.client.ip().to_string(),
            started: report.started(),
            agent: report.agent,
            subject: None,
            asset: report.asset,
            state: report.state,
            transport: report.transport,
            last: None,
            requests: None,
            bytes: report.bytes,
            bps: report.bps,
        }
    }

    fn of_srt(report: srt::SessionReport) -> Self {
        let (kind, state) = if report.publishes { ("publish", "publishing") } else { ("srt", "playing") };
        Self {
            id: report.id(),
            kind,
            client: report.client.to_string(),
            started: report.started(),
            agent: Some(report.agent),
            subject: None,
            asset: report.asset,
            state,
            transport: Some("udp"),
            last: None,
            requests: None,
            bytes: report.bytes,
            bps: Some(report.bps),
        }
    }

    fn of_rtmp(report: rtmp::SessionReport) -> Self {
        let (kind, state) = if report.publishes { ("publish", "publishing") } else { ("rtmp", "playing") };
        Self {
            id: report.id(),
            kind,
            client: report.client.to_string(),
            started: report.started(),
            agent: None,
            subject: None,
            asset: report.asset,
            state,
            transport: Some("tcp"),
            last: None,
            requests: None,
            bytes: report.bytes,
            bps: Some(report.bps),
        }
    }

    fn texts(&self) -> impl Iterator<Item = &str> {
        let optional = [&self.agent, &self.subject].into_iter().filter_map(|text| text.as_deref());
        [&*self.id, &*self.client, &*self.asset].into_iter().chain(optional)
    }

    fn is_in(&self, place: &str) -> bool {
        place.is_empty() || self.asset.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

/// All viewers and sessions.
fn all(state: &AdminState) -> impl Iterator<Item = Session> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    let viewers = state.front.audience().reports().into_iter().map(Session::of_viewer);
    let rtsp = state.rtsp.reports().into_iter().map(move |report| Session::of_rtsp(report, now));
    let webrtc = state.front.webrtc().map(|webrtc| webrtc.reports()).unwrap_or_default();
    let srt = state.srt.as_ref().map(|srt| srt.reports()).unwrap_or_default();
    let webrtc = webrtc.into_iter().map(Session::of_webrtc);
    let rtmp = state.rtmp.reports().into_iter().map(Session::of_rtmp);
    viewers.chain(rtsp).chain(webrtc).chain(srt.into_iter().map(Session::of_srt)).chain(rtmp)
}

/// Lists HTTP viewers, long responses, and sessions of RTSP, WebRTC, SRT and RTMP.
#[utoipa::path(get, path = "/api/v1/sessions", tag = "sessions", params(SessionQuery),
    responses((status = 200, body = Page<Session>)))]
pub(super) fn list_sessions(request: &ApiRequest, state: &AdminState) -> Outcome {
    let SessionQuery { kind, place, q, limit, cursor } = request.query()?;
    if let Some(kind) = kind.as_deref().filter(|kind| !KINDS.contains(kind)) {
        return Err(bad(format!("kind: {kind:?} is none of {}", KINDS.join(", "))));
    }
    let is_wanted = |session: &Session| {
        kind.as_deref().is_none_or(|kind| session.kind == kind)
            && place.as_deref().is_none_or(|place| session.is_in(place))
            && fits(q.as_deref(), session.texts())
    };
    let sessions = all(state).filter(is_wanted).collect();
    Ok(show(&page(sessions, |session: &Session| session.id.clone(), (limit, cursor.as_deref()))?))
}

/// Shows a viewer or session.
#[utoipa::path(get, path = "/api/v1/sessions/{id}", tag = "sessions", params(("id" = String, Path, description = "Id of the session")),
    responses((status = 200, body = Session)))]
pub(super) fn get_session(request: &ApiRequest, state: &AdminState) -> Outcome {
    let id = request.parameter(0);
    all(state).find(|session| session.id == id).map(|session| show(&session)).ok_or_else(|| no_session(id))
}

fn no_session(id: &str) -> Problem {
    absent(format!("there is no session {id}"))
}

/// Ends a session or long response, and refuses a viewer of HTTP for a time.
#[utoipa::path(delete, path = "/api/v1/sessions/{id}", tag = "sessions",
    params(("id" = String, Path, description = "Id of the session"), EndQuery), responses((status = 200, body = EndedSession)))]
pub(super) fn end_session(request: &ApiRequest, state: &AdminState) -> Outcome {
    let (id, EndQuery { block }) = (request.parameter(0), request.query()?);
    let block = match block {
        Some(text) => {
            value::duration_in(&text, BLOCK.0, BLOCK.1).map_err(|_| bad("block: a time from 1s to 24h such as 10m"))?
        }
        None => DEFAULT_BLOCK,
    };
    let blocked_until = match state.front.audience().kick(id, block) {
        Some(kicked) => Some(kicked.until.as_secs_f64()),
        None if state.rtsp.kick(id) => None,
        None if state.front.webrtc().is_some_and(|webrtc| webrtc.kick(id)) => None,
        None if state.srt.as_ref().is_some_and(|srt| srt.kick(id)) => None,
        None if state.rtmp.kick(id) => None,
        None => return Err(no_session(id)),
    };
    tracing::info!(id, blocked_seconds = blocked_until.map(|_| block.as_secs()), "session ended by an operator");
    Ok(show(&EndedSession { id: id.to_owned(), is_ended: true, blocked_until }))
}

/// Lists the viewers that are refused.
#[utoipa::path(get, path = "/api/v1/blocks", tag = "sessions", params(PageQuery), responses((status = 200, body = Page<Block>)))]
pub(super) fn list_blocks(request: &ApiRequest, state: &AdminState) -> Outcome {
    let PageQuery { limit, cursor, q } = request.query()?;
    let block = |BlockReport { id, about, until }| Block {
        id,
        client: about.client.to_string(),
        agent: about.agent.into_string(),
        asset: about.asset.into_string(),
        until: until.as_secs_f64(),
    };
    let all = state.front.audience().blocks().into_iter().map(block);
    let wanted = |block: &Block| fits(q.as_deref(), [&*block.id, &*block.client, &*block.agent, &*block.asset]);
    let blocks = all.filter(wanted).collect();
    Ok(show(&page(blocks, |block: &Block| block.id.clone(), (limit, cursor.as_deref()))?))
}

/// Refuses a viewer no longer.
#[utoipa::path(delete, path = "/api/v1/blocks/{id}", tag = "sessions", params(("id" = String, Path, description = "Id of the viewer")),
    responses((status = 200, body = EndedBlock)))]
pub(super) fn end_block(request: &ApiRequest, state: &AdminState) -> Outcome {
    let id = request.parameter(0);
    match state.front.audience().unblock(id) {
        true => Ok(show(&EndedBlock { id: id.to_owned() })),
        false => Err(absent(format!("{id} is not refused"))),
    }
}
