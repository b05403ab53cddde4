//! Files of continuous recordings, and the times that they hold.

use super::{super::AdminState, Outcome, bad, page::limit, request::ApiRequest, show};
use crate::{
    problem::Problem,
    recordings::{Covered, ShelvedFile, timeline},
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, time::Duration};
use utoipa::{IntoParams, ToSchema};

/// A complete file of a continuous recording.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct ListedFile {
    /// Its path below `record-folder`, and below the prefix of `record-to`.
    file: String,
    /// Path of the stream.
    stream: String,
    /// Time of the first frame.
    from: String,
    /// Duration, gaps included.
    seconds: f64,
    bytes: u64,
    /// Number of frames; 0 where the server was killed before the file was complete.
    frames: u64,
    /// Frames that were left out because the disk was slow.
    lost_frames: u64,
    /// `kept`, `waiting` (for its upload) or `uploaded`.
    state: &'static str,
}

/// A time of a stream without a gap.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct ListedTime {
    /// Beginning.
    from: String,
    /// End.
    to: String,
    seconds: f64,
}

/// The times that the files hold of a stream.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct RecordedStream {
    /// Path of the stream.
    stream: String,
    /// Bytes of its files.
    bytes: u64,
    /// Times without a gap of more than a second, in order.
    times: Vec<ListedTime>,
}

/// Files of continuous recordings, and the times that they hold.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct RecordedFileList {
    /// Complete files, by streams and times.
    items: Vec<ListedFile>,
    /// Files that fit the filters.
    total: usize,
    /// The times of all files that fit the filters, by streams.
    streams: Vec<RecordedStream>,
}

/// Filters of recorded files.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct RecordedFileQuery {
    /// Path of the stream.
    stream: Option<String>,
    /// Files that end after this time, such as 2026-11-22T10:00:00Z.
    from: Option<String>,
    /// Files that begin before this time.
    to: Option<String>,
    /// Most items, 1 to 1000.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<usize>,
    /// Number of items before the first one that is listed.
    #[param(default = 0)]
    skip: Option<usize>,
}

fn time(wall: Duration) -> String {
    let mut text = String::new();
    millpond_utc::push(&mut text, wall);
    text
}

fn moment(name: &str, text: Option<&str>) -> Result<Option<Duration>, Problem> {
    let parse = |text: &str| {
        millpond_utc::parse(text)
            .ok_or_else(|| bad(format!("{name}: {text:?} is no time such as 2026-11-22T10:00:00Z")))
    };
    text.map(parse).transpose()
}

fn listed(ShelvedFile { file, state }: &ShelvedFile) -> ListedFile {
    ListedFile {
        file: file.name.clone(),
        stream: file.stream.clone(),
        from: time(file.began),
        seconds: file.tail.duration.as_secs_f64(),
        bytes: file.bytes,
        frames: file.tail.frames,
        lost_frames: file.tail.lost,
        state,
    }
}

fn streams(files: &[ShelvedFile]) -> Vec<RecordedStream> {
    let mut by_stream: BTreeMap<&str, Vec<&ShelvedFile>> = BTreeMap::new();
    for shelved in files {
        by_stream.entry(&shelved.file.stream).or_default().push(shelved);
    }
    let of = |(stream, files): (&str, Vec<&ShelvedFile>)| {
        let parts = files.iter().map(|shelved| {
            let file = &shelved.file;
            (file.began, file.tail.duration, &*file.tail.gaps)
        });
        let times = timeline(parts).into_iter().map(|Covered { from, to }| ListedTime {
            from: time(from),
            to: time(to),
            seconds: to.saturating_sub(from).as_secs_f64(),
        });
        let bytes = files.iter().map(|shelved| shelved.file.bytes).sum();
        RecordedStream { stream: stream.to_owned(), bytes, times: times.collect() }
    };
    by_stream.into_iter().map(of).collect()
}

/// Lists the files of continuous recordings, and the times that they hold.
#[utoipa::path(get, path = "/api/v1/recorded-files", tag = "streams", params(RecordedFileQuery),
    responses((status = 200, body = RecordedFileList)))]
pub(super) fn list_recorded_files(request: &ApiRequest, state: &AdminState) -> Outcome {
    let RecordedFileQuery { stream, from, to, limit: given, skip } = request.query()?;
    let (from, to) = (moment("from", from.as_deref())?, moment("to", to.as_deref())?);
    let (limit, skip) = (limit(given)?, skip.unwrap_or(0));
    let mut files = state.shelf.as_ref().map(|shelf| shelf.list()).unwrap_or_default();
    let stream = stream.as_deref().map(|stream| stream.trim_matches('/'));
    files.retain(|shelved| {
        let file = &shelved.file;
        stream.is_none_or(|stream| file.stream == stream)
            && from.is_none_or(|from| file.ended() > from)
            && to.is_none_or(|to| file.began < to)
    });
    let items = files.iter().skip(skip).take(limit).map(listed).collect();
    Ok(show(&RecordedFileList { items, total: files.len(), streams: streams(&files) }))
}
