//! Clips in live streams: `/insert` lists insertions, asks for them (POST) and cancels them (DELETE).

use super::{AdminState, Reply, refuse, reply};
use crate::{
    config::value,
    problem::{self, Problem},
};
use http::{Method, StatusCode, header::ALLOW, header::HeaderValue};
use millpond_package::utc;
use millpond_stream::{CannotInsert, InsertionEnd, InsertionReport, graph::NodeId};
use serde_json::{Value, json};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Longest time from now to an insertion.
const LATEST: Duration = Duration::from_secs(7 * 86_400);

/// Answers a request to `/insert`.
pub(super) async fn answer(method: &Method, query: &str, state: &AdminState) -> Reply {
    match *method {
        Method::GET | Method::HEAD => {
            let all: Vec<Value> = state.manager.insertions().iter().map(shown).collect();
            super::show(&json!(all))
        }
        Method::POST => insert(query, state).await,
        Method::DELETE => cancel(query, state),
        _ => {
            let problem = Problem::new(StatusCode::METHOD_NOT_ALLOWED).detail("GET, POST and DELETE are answered here");
            let mut response = refuse(problem);
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD, POST, DELETE"));
            response
        }
    }
}

async fn insert(query: &str, state: &AdminState) -> Reply {
    let (Some(path), Some(clip)) = (super::parameter(query, "path"), super::parameter(query, "clip")) else {
        return super::bad(
            "?path=PATH&clip=CLIP name a live stream or channel and a stored asset by their paths in URLs",
        );
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let at = super::parameter(query, "at").map(|text| time(&text, now));
    let Ok(at) = at.map(|at| at.ok_or(())).transpose() else {
        return super::bad("at: a time such as 2026-11-22T10:00:00Z, or one from now such as 90s, within a week");
    };
    let session = super::parameter(query, "session").map(|text| text.parse().ok());
    let Ok(session) = session.map(|session| session.ok_or(())).transpose() else {
        return super::bad("session: the number of a viewer's module: /graph lists them");
    };
    match state.sources.stream(&path).await {
        Ok(Some(_)) => {}
        Ok(None) => {
            let why = format!("{path} is not a live stream or channel: clips can't be inserted into stored assets");
            return refuse(Problem::new(StatusCode::CONFLICT).detail(why));
        }
        Err(error) => return refuse(Problem::new(problem::status(&error)).detail(error.to_string())),
    }
    let media = match state.sources.open(clip.trim_matches('/')).await {
        Ok((asset, _)) => state.sources.media(&asset),
        Err(error) => return refuse(Problem::new(problem::status(&error)).detail(format!("the clip {clip}: {error}"))),
    };
    match state.manager.insert(&path, media, (at, session)) {
        Ok(report) => {
            let mut response = reply(super::JSON, format!("{:#}\n", shown(&report)));
            *response.status_mut() = StatusCode::CREATED;
            response
        }
        Err(error) => {
            let status = match &error {
                CannotInsert::NotRunning(_) | CannotInsert::NoViewer { .. } => StatusCode::CONFLICT,
                CannotInsert::NoSession { .. } => StatusCode::NOT_FOUND,
                CannotInsert::TooMany(_) => StatusCode::SERVICE_UNAVAILABLE,
                CannotInsert::Unfit(_) => StatusCode::UNPROCESSABLE_ENTITY,
            };
            tracing::warn!(path, clip, %error, status = status.as_u16(), "no insertion");
            refuse(Problem::new(status).detail(error.to_string()))
        }
    }
}

fn cancel(query: &str, state: &AdminState) -> Reply {
    let Some(id) = super::parameter(query, "id").and_then(|id| id.parse().ok()) else {
        return super::bad("?id=NUMBER says which insertion: /insert lists them");
    };
    match state.manager.cancel_insertion(id) {
        Some(report) => super::show(&shown(&report)),
        None => refuse(Problem::new(StatusCode::NOT_FOUND).detail(format!("there is no insertion {id}"))),
    }
}

/// Reads a time since the Unix epoch, or from `now`.
fn time(text: &str, now: Duration) -> Option<Duration> {
    let at = utc::parse(text).or_else(|| value::duration(text).ok()?.checked_add(now))?;
    (at <= now.saturating_add(LATEST)).then_some(at)
}

fn shown(report: &InsertionReport) -> Value {
    let InsertionReport { id, path, clip, duration, at, session, has_begun, end, frames, replaced } = report;
    let error = match end {
        Some(InsertionEnd::Failed(error)) => Some(error),
        _ => None,
    };
    let state = match end {
        Some(end) => end.name(),
        None if *has_begun => "playing",
        None => "waiting",
    };
    json!({
        "id": id, "path": &**path, "clip": clip, "seconds": duration, "at": at.map(|at| at.as_secs_f64()), "state": state,
        "session": session.map(NodeId::number),
        "frames": frames, "replaced-frames": replaced, "error": error,
    })
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
