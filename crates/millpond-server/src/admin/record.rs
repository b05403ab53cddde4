//! Recordings: `/record` lists, starts (POST) and stops (DELETE) them.

use super::{AdminState, Reply, refuse, reply};
use crate::{
    config::value,
    problem::{self, Problem},
    recordings::{Listed, RecordError, Recordings},
};
use http::{Method, StatusCode, header::ALLOW, header::HeaderValue};
use millpond_stream::{CannotRecord, RecordingEnd, reception::SourceErrorKind};
use serde_json::{Value, json};
use std::{io, time::Duration};

/// Shortest duration that a client may set.
const SHORTEST: Duration = Duration::from_secs(1);

/// Answers a request to `/record`.
pub(super) async fn answer(method: &Method, query: &str, state: &AdminState) -> Reply {
    let Some(recordings) = &state.recordings else {
        let why = "recording is off: the setting record-folder names its folder";
        return refuse(Problem::new(StatusCode::FORBIDDEN).detail(why));
    };
    match *method {
        Method::GET | Method::HEAD => {
            let all: Vec<Value> = recordings.list().iter().map(shown).collect();
            super::show(&json!(all))
        }
        Method::POST => start(query, recordings).await,
        Method::DELETE => stop(query, recordings).await,
        _ => {
            let problem = Problem::new(StatusCode::METHOD_NOT_ALLOWED).detail("GET, POST and DELETE are answered here");
            let mut response = refuse(problem);
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD, POST, DELETE"));
            response
        }
    }
}

async fn start(query: &str, recordings: &Recordings) -> Reply {
    let Some(path) = super::parameter(query, "path") else {
        return super::bad("?path=PATH names a channel or live stream by its path in URLs");
    };
    let Ok(size) = super::parameter(query, "size").map(|text| value::size(&text)).transpose() else {
        return super::bad("size: a number of bytes such as 10GiB");
    };
    let duration = |text: String| value::duration_in(&text, SHORTEST, Duration::MAX);
    let Ok(duration) = super::parameter(query, "duration").map(duration).transpose() else {
        return super::bad("duration: a time of 1s or more, such as 90s, 5m or 1h");
    };
    match recordings.start(&path, size, duration).await {
        Ok(listed) => {
            let mut response = reply(super::JSON, format!("{:#}\n", shown(&listed)));
            *response.status_mut() = StatusCode::CREATED;
            response
        }
        Err(error) => {
            let status = status(&error);
            tracing::warn!(path, %error, status = status.as_u16(), "no recording");
            refuse(Problem::new(status).detail(detail(&error)))
        }
    }
}

async fn stop(query: &str, recordings: &Recordings) -> Reply {
    let Some(id) = super::parameter(query, "id").and_then(|id| id.parse().ok()) else {
        return super::bad("?id=NUMBER says which recording: /record lists them");
    };
    match recordings.stop(id).await {
        Some(listed) => super::show(&shown(&listed)),
        None => refuse(Problem::new(StatusCode::NOT_FOUND).detail(format!("there is no recording {id}"))),
    }
}

fn status(error: &RecordError) -> StatusCode {
    match error {
        RecordError::Library(error) => problem::status(error),
        RecordError::NoChannel(_) => StatusCode::CONFLICT,
        RecordError::Source(error) => match error.kind {
            SourceErrorKind::NotFound => StatusCode::NOT_FOUND,
            SourceErrorKind::TimedOut => StatusCode::GATEWAY_TIMEOUT,
            _ => StatusCode::BAD_GATEWAY,
        },
        RecordError::Stream(CannotRecord::NoTracks { .. }) => StatusCode::UNPROCESSABLE_ENTITY,
        RecordError::Stream(CannotRecord::File { error, .. }) => match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StatusCode::INSUFFICIENT_STORAGE,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        },
        RecordError::Stream(CannotRecord::Open(_) | CannotRecord::Thread(_)) | RecordError::TooMany(_) => {
            StatusCode::SERVICE_UNAVAILABLE
        }
    }
}

/// The client's share of an error: the log has the folder.
fn detail(error: &RecordError) -> String {
    match error {
        RecordError::Stream(CannotRecord::File { error, .. }) => format!("the file can't be made: {error}"),
        error => error.to_string(),
    }
}

fn shown(listed: &Listed) -> Value {
    let Listed { id, path, file, state } = listed;
    let error = match &state.end {
        Some(RecordingEnd::Failed(error)) => Some(error),
        _ => None,
    };
    json!({
        "id": id, "path": path, "file": file, "bytes": state.bytes, "frames": state.frames, "lost-frames": state.lost,
        "seconds": state.duration.as_secs_f64(), "ended": state.end.as_ref().map(RecordingEnd::name), "error": error,
    })
}
