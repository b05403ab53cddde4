//! Clips in live streams.

use super::{super::AdminState, Outcome, Reply, absent, bad, page::Items, request::ApiRequest, show, shown};
use crate::problem::{self, Problem};
use http::StatusCode;
use millpond_settings::value;
use millpond_stream::{CannotInsert, InsertionEnd, InsertionReport, registry::NodeId};
use serde::{Deserialize, Serialize};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use utoipa::ToSchema;

/// Longest time from now to an insertion.
const LATEST: Duration = Duration::from_secs(7 * 86_400);

/// A clip that waits, plays or has ended.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct ListedInsertion {
    /// Its number.
    id: u64,
    /// Path of the stream.
    path: String,
    /// Path of the clip.
    clip: String,
    /// Duration of the clip.
    seconds: f64,
    /// Earliest time, in seconds since the Unix epoch.
    at: Option<f64>,
    /// `waiting`, `playing`, or the name of its end.
    state: &'static str,
    /// Module of the viewer that alone gets the clip; null for all viewers.
    session: Option<u64>,
    frames: u64,
    /// Frames of the stream that the clip replaced.
    replaced_frames: u64,
    /// The failure that ended the clip.
    error: Option<String>,
}

/// The clip to insert.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewInsertion {
    /// Path of the live stream or channel.
    path: String,
    /// Path of the clip, a stored asset.
    clip: String,
    /// Earliest time: 2026-11-22T10:00:00Z, or 90s from now, within a week.
    at: Option<String>,
    /// Module of the viewer that alone gets the clip. `GET /api/v1/graph` lists modules.
    session: Option<u64>,
}

impl ListedInsertion {
    fn of(report: &InsertionReport) -> Self {
        let InsertionReport { id, path, clip, duration, at, session, has_begun, end, frames, replaced } = report;
        let error = match end {
            Some(InsertionEnd::Failed(error)) => Some(error.to_string()),
            _ => None,
        };
        let state = match end {
            Some(end) => end.name(),
            None if *has_begun => "playing",
            None => "waiting",
        };
        Self {
            id: *id,
            path: path.to_string(),
            clip: clip.to_string(),
            seconds: *duration,
            at: at.map(|at| at.as_secs_f64()),
            state,
            session: session.map(NodeId::number),
            frames: *frames,
            replaced_frames: *replaced,
            error,
        }
    }
}

/// Lists the clips that wait or play, and the last clips that ended.
#[utoipa::path(get, path = "/api/v1/insertions", tag = "streams", responses((status = 200, body = Items<ListedInsertion>)))]
pub(super) fn list_insertions(state: &AdminState) -> Reply {
    show(&Items { items: state.manager.insertions().iter().map(ListedInsertion::of).collect() })
}

/// Puts a clip into a live stream, at a key frame.
#[utoipa::path(post, path = "/api/v1/insertions", tag = "streams", request_body = NewInsertion,
    responses((status = 201, body = ListedInsertion)))]
pub(super) async fn insert(request: &ApiRequest, state: &AdminState) -> Outcome {
    let NewInsertion { path, clip, at, session } = request.json()?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let forms = "at: a time such as 2026-11-22T10:00:00Z, or one from now such as 90s, within a week";
    let at = at.map(|text| time(&text, now).ok_or_else(|| bad(forms))).transpose()?;
    match state.sources.stream(&state.sources.find(&path)).await {
        Ok(Some(_)) => {}
        Ok(None) => {
            let why = format!("{path} is not a live stream or channel: clips can't be inserted into stored assets");
            return Err(Problem::new(StatusCode::CONFLICT).detail(why));
        }
        Err(error) => return Err(Problem::new(problem::status(&error)).detail(error.to_string())),
    }
    let media = match state.sources.open(clip.trim_matches('/')).await {
        Ok((asset, _)) => state.sources.media(&asset),
        Err(error) => return Err(Problem::new(problem::status(&error)).detail(format!("the clip {clip}: {error}"))),
    };
    match state.manager.insert(&path, media, (at, session)) {
        Ok(report) => Ok(shown(StatusCode::CREATED, &ListedInsertion::of(&report))),
        Err(error) => {
            let status = match &error {
                CannotInsert::NotRunning(_) | CannotInsert::NoViewer { .. } => StatusCode::CONFLICT,
                CannotInsert::NoSession { .. } => StatusCode::NOT_FOUND,
                CannotInsert::TooMany(_) => StatusCode::SERVICE_UNAVAILABLE,
                CannotInsert::Unfit(_) => StatusCode::UNPROCESSABLE_ENTITY,
            };
            tracing::warn!(path, clip, %error, status = status.as_u16(), "no insertion");
            Err(Problem::new(status).detail(error.to_string()))
        }
    }
}

/// Shows an insertion.
#[utoipa::path(get, path = "/api/v1/insertions/{id}", tag = "streams", params(("id" = u64, Path, description = "Number of the insertion")),
    responses((status = 200, body = ListedInsertion)))]
pub(super) fn get_insertion(request: &ApiRequest, state: &AdminState) -> Outcome {
    let id = request.number()?;
    let found = state.manager.insertions().iter().find(|report| report.id == id).map(ListedInsertion::of);
    found.map(|insertion| show(&insertion)).ok_or_else(|| no_insertion(id))
}

/// Cancels a clip. If the clip plays, the stream returns at its next key frame.
#[utoipa::path(delete, path = "/api/v1/insertions/{id}", tag = "streams", params(("id" = u64, Path, description = "Number of the insertion")),
    responses((status = 200, body = ListedInsertion)))]
pub(super) fn cancel_insertion(request: &ApiRequest, state: &AdminState) -> Outcome {
    let id = request.number()?;
    let cancelled = state.manager.cancel_insertion(id);
    cancelled.map(|report| show(&ListedInsertion::of(&report))).ok_or_else(|| no_insertion(id))
}

fn no_insertion(id: u64) -> Problem {
    absent(format!("there is no insertion {id}: `millpond insert --list` and GET /api/v1/insertions list the numbers"))
}

/// Reads a time since the Unix epoch, or from `now`.
fn time(text: &str, now: Duration) -> Option<Duration> {
    let at = millpond_utc::parse(text).or_else(|| value::duration(text).ok()?.checked_add(now))?;
    (at <= now.saturating_add(LATEST)).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_clocks_or_from_now() {
        let now = Duration::from_secs(1_795_341_600);
        let seconds = |text: &str| time(text, now).map(|at| at.as_secs() as i64 - now.as_secs() as i64);
        assert_eq!(seconds("2026-11-22T10:01:30Z"), Some(90));
        assert_eq!(seconds("90s"), Some(90));
        assert_eq!(seconds("2026-11-22T09:59:59Z"), Some(-1), "at once");
        for text in ["2026-12-22T10:01:30Z", "8d", "soon", "", "-5s"] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }
}
