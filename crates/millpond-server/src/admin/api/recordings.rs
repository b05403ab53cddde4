//! Recordings of channels and live streams.

use super::{
    super::AdminState,
    Outcome, Reply, absent,
    modules::{configured, detail, status},
    request::ApiRequest,
    show, shown,
};
use crate::{
    problem::Problem,
    recordings::{Listed, Recordings},
};
use http::StatusCode;
use millpond_stream::RecordingEnd;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A recording.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct ListedRecording {
    /// Its number.
    id: u64,
    /// Path of the stream.
    path: String,
    /// Name of the first file.
    file: String,
    /// Number of files. A change of formats begins another one, with `-2`, `-3` and so on at the end of its name.
    files: u32,
    bytes: u64,
    frames: u64,
    /// Frames that were left out because the disk was slow.
    lost_frames: u64,
    /// Duration, gaps included.
    seconds: f64,
    /// Reason of the end; null while the recording runs.
    ended: Option<&'static str>,
    /// The failure that ended the recording.
    error: Option<String>,
}

/// All recordings.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct RecordingList {
    /// Running recordings, and the last recordings that ended.
    items: Vec<ListedRecording>,
    /// Whether there is a folder for recordings (`record-folder`).
    is_on: bool,
}

/// The recording to start.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewRecording {
    /// Path of a channel or live stream.
    path: String,
    /// Most bytes, such as 10GiB.
    size: Option<String>,
    /// Longest duration, such as 1h.
    duration: Option<String>,
}

impl ListedRecording {
    fn of(listed: &Listed) -> Self {
        let Listed { id, path, file, state } = listed;
        let error = match &state.end {
            Some(RecordingEnd::Failed(error)) => Some(error.to_string()),
            _ => None,
        };
        Self {
            id: *id,
            path: path.clone(),
            file: file.clone(),
            files: state.files,
            bytes: state.bytes,
            frames: state.frames,
            lost_frames: state.lost,
            seconds: state.duration.as_secs_f64(),
            ended: state.end.as_ref().map(RecordingEnd::name),
            error,
        }
    }
}

fn recordings(state: &AdminState) -> Result<&Recordings, Problem> {
    let why = "recording is off: set record-folder, the folder of recordings";
    state.recordings.as_deref().ok_or_else(|| Problem::new(StatusCode::FORBIDDEN).detail(why))
}

/// Lists the running recordings, and the last recordings that ended.
#[utoipa::path(get, path = "/api/v1/recordings", tag = "streams", responses((status = 200, body = RecordingList)))]
pub(super) fn list_recordings(state: &AdminState) -> Reply {
    let all = state.recordings.as_ref().map(|recordings| recordings.list());
    let is_on = all.is_some();
    show(&RecordingList { items: all.unwrap_or_default().iter().map(ListedRecording::of).collect(), is_on })
}

/// Starts to record a channel or live stream.
#[utoipa::path(post, path = "/api/v1/recordings", tag = "streams", request_body = NewRecording,
    responses((status = 201, body = ListedRecording)))]
pub(super) async fn start_recording(request: &ApiRequest, state: &AdminState) -> Outcome {
    let recordings = recordings(state)?;
    let NewRecording { path, size, duration } = request.json()?;
    let limits = [("size", size), ("duration", duration)];
    let limits = limits.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    match recordings.start(&path, limits).await {
        Ok(Some(listed)) => Ok(shown(StatusCode::CREATED, &ListedRecording::of(&listed))),
        Ok(None) => Err(absent("the recording has ended already")),
        Err(error) => {
            let status = status(&error);
            tracing::warn!(path, %error, status = status.as_u16(), "no recording");
            Err(Problem::new(status).detail(detail(&error)))
        }
    }
}

/// Shows a recording.
#[utoipa::path(get, path = "/api/v1/recordings/{id}", tag = "streams", params(("id" = u64, Path, description = "Number of the recording")),
    responses((status = 200, body = ListedRecording)))]
pub(super) fn get_recording(request: &ApiRequest, state: &AdminState) -> Outcome {
    let id = request.number()?;
    let found = recordings(state)?.list().iter().find(|listed| listed.id == id).map(ListedRecording::of);
    found.map(|recording| show(&recording)).ok_or_else(|| no_recording(id))
}

/// Stops a recording and completes its file.
#[utoipa::path(delete, path = "/api/v1/recordings/{id}", tag = "streams", params(("id" = u64, Path, description = "Number of the recording")),
    responses((status = 200, body = ListedRecording)))]
pub(super) async fn stop_recording(request: &ApiRequest, state: &AdminState) -> Outcome {
    let id = request.number()?;
    let stopped = recordings(state)?.stop(id).await.map_err(|_| configured())?;
    stopped.map(|listed| show(&ListedRecording::of(&listed))).ok_or_else(|| no_recording(id))
}

fn no_recording(id: u64) -> Problem {
    absent(format!("there is no recording {id}: `millpond record ls` and GET /api/v1/recordings list the numbers"))
}
