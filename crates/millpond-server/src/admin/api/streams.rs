//! Live streams: listing and ending them.

use super::{
    super::AdminState,
    Outcome, absent, bad,
    page::{Page, fits, page},
    request::ApiRequest,
    show,
};
use crate::live::{CopyReport, state};
use millpond_stream::{EpochReason, SourceCounts, StreamReport, StreamState};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::{IntoParams, ToSchema};

/// A live stream. docs/handbook/live.md explains its figures.
#[derive(Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Stream {
    /// Path in URLs.
    path: String,
    /// Kind of the source.
    kind: String,
    /// Address of the source, without passwords.
    source: String,
    /// Address of the server that sends the frames.
    server: Option<String>,
    /// `waiting`, `running`, `lost` or `failed`; `copy` where this node follows the window of another one, which may fail.
    state: &'static str,
    /// Beginning of the state, in seconds since the Unix epoch.
    since: Option<f64>,
    /// Cause of the state.
    why: Option<String>,
    /// Number of the run, hexadecimal: not every reader of JSON has integers of 64 bits.
    run: Option<String>,
    /// The newest epoch.
    epoch: Option<StreamEpoch>,
    /// Modules that take the stream's frames, by kind.
    viewers: BTreeMap<&'static str, usize>,
    /// Bits a second, over 4 s.
    bit_rate: Option<u64>,
    memory_bytes: u64,
    memory_limit_bytes: u64,
    frames: u64,
    bytes: u64,
    cues: u64,
    /// Time since the last frame.
    silent_seconds: Option<f64>,
    dropped_frames: u64,
    sessions: u64,
    packets: u64,
    lost_packets: u64,
    asked_packets: u64,
    repaired_packets: u64,
    too_late_packets: u64,
    reordered_packets: u64,
    unused_packets: u64,
    broken_frames: u64,
    /// Its past on the disk.
    time_shift: Option<Shift>,
}

/// A part of a stream with the same formats and one clock.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct StreamEpoch {
    number: u64,
    /// `start`, `reconnection`, `jump`, `formats`, `splice` or `asset`.
    reason: &'static str,
    /// Media time at the beginning.
    from_seconds: f64,
    /// Wall time of the beginning, in seconds since the Unix epoch.
    wall: f64,
    /// Codecs of the tracks.
    codecs: Vec<String>,
}

/// The past of a stream on the disk.
#[derive(Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Shift {
    /// Time of the oldest segment, in seconds since the Unix epoch.
    from: Option<f64>,
    /// Time of the newest segment.
    to: Option<f64>,
    bytes: Option<u64>,
    written: Option<u64>,
    lost: Option<u64>,
    errors: Option<u64>,
    /// The reason of the failure.
    why: Option<String>,
}

/// Filters of streams.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct StreamQuery {
    /// `waiting`, `running`, `lost`, `failed` or `copy`.
    state: Option<String>,
    /// Part of path, source or kind.
    q: Option<String>,
    /// Most items, 1 to 1000.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<usize>,
    /// `next-cursor` of the page before.
    cursor: Option<String>,
}

/// A stream or publication that was ended.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct EndedStream {
    /// Path of the stream.
    path: String,
    /// Whether the stream or publication was ended.
    is_ended: bool,
}

impl Stream {
    fn of(stream: &StreamReport) -> Self {
        let SourceCounts {
            sessions,
            packets,
            lost_packets,
            asked_packets,
            repaired_packets,
            too_late_packets,
            reordered_packets,
            unused_packets,
            broken_frames,
        } = stream.received;
        let epoch = stream.epoch.as_ref().map(|epoch| StreamEpoch {
            number: u64::from(epoch.number),
            reason: reason(epoch.reason),
            from_seconds: epoch.from.as_secs_f64(),
            wall: epoch.wall.as_secs_f64(),
            codecs: epoch.formats.iter().flatten().map(|format| format.track.codec.parameter()).collect(),
        });
        let (since, why) = state::since(&stream.state);
        Self {
            path: stream.path.to_string(),
            kind: stream.source.split(':').next().unwrap_or_default().to_owned(),
            source: stream.source.clone(),
            server: stream.server.as_deref().map(str::to_owned),
            state: stream.state.name(),
            since,
            why,
            run: stream.run.map(|run| format!("{run:016x}")),
            epoch,
            viewers: stream.viewers.clone(),
            bit_rate: stream.bit_rate,
            memory_bytes: stream.memory,
            memory_limit_bytes: stream.memory_limit,
            frames: stream.frames,
            bytes: stream.bytes,
            cues: stream.cues,
            silent_seconds: stream.silence.map(|silence| silence.as_secs_f64()),
            dropped_frames: stream.lost,
            sessions,
            packets,
            lost_packets,
            asked_packets,
            repaired_packets,
            too_late_packets,
            reordered_packets,
            unused_packets,
            broken_frames,
            time_shift: shift(stream),
        }
    }
}

/// State of a stream whose window is copied from another node.
const COPY: &str = "copy";

/// Lists all streams: those of the engine, and copies of windows of other nodes. A stream that waits for viewers and is copied is a copy.
fn all(state: &AdminState) -> Vec<Stream> {
    let copies = state.sources.copies().map(|copies| copies.reports()).unwrap_or_default();
    with_copies(state.manager.streams().iter().map(Stream::of).collect(), copies)
}

fn with_copies(mut streams: Vec<Stream>, copies: Vec<CopyReport>) -> Vec<Stream> {
    for CopyReport { path, of, run } in copies {
        let (at, source) = match streams.iter().position(|stream| *stream.path == *path) {
            Some(at) if streams[at].state != StreamState::Waiting.name() => continue,
            Some(at) => (Some(at), streams[at].source.clone()),
            None => (None, of.to_string()),
        };
        let (state, server, run) = (COPY, Some(of.to_string()), Some(run));
        let kind = source.split(':').next().unwrap_or_default().to_owned();
        let copy = Stream { path: path.to_string(), kind, source, server, state, run, ..Stream::default() };
        match at {
            Some(at) => streams[at] = copy,
            None => streams.push(copy),
        }
    }
    streams.sort_by(|a, b| a.path.cmp(&b.path));
    streams
}

fn shift(stream: &StreamReport) -> Option<Shift> {
    let shift = stream.shift.as_ref().map(|shift| Shift {
        from: shift.from.map(|time| time.as_secs_f64()),
        to: shift.to.map(|time| time.as_secs_f64()),
        bytes: Some(shift.ring.bytes),
        written: Some(shift.ring.written),
        lost: Some(shift.ring.lost),
        errors: Some(shift.ring.errors),
        why: shift.ring.failure.as_ref().map(ToString::to_string),
    });
    let failure = stream.shift_failure.as_ref();
    shift.or_else(|| failure.map(|why| Shift { why: Some(why.to_string()), ..Shift::default() }))
}

fn reason(reason: EpochReason) -> &'static str {
    match reason {
        EpochReason::Start => "start",
        EpochReason::Reconnection => "reconnection",
        EpochReason::Jump => "jump",
        EpochReason::Formats => "formats",
        EpochReason::Splice => "splice",
        EpochReason::Asset => "asset",
    }
}

/// Lists live streams.
#[utoipa::path(get, path = "/api/v1/streams", tag = "streams", params(StreamQuery), responses((status = 200, body = Page<Stream>)))]
pub(super) fn list_streams(request: &ApiRequest, state: &AdminState) -> Outcome {
    let StreamQuery { state: wanted, q, limit, cursor } = request.query()?;
    if let Some(wanted) =
        wanted.as_deref().filter(|name| !["waiting", "running", "lost", "failed", COPY].contains(name))
    {
        return Err(bad(format!("state: {wanted:?} is none of waiting, running, lost, failed and copy")));
    }
    let fits = |stream: &Stream| {
        wanted.as_deref().is_none_or(|name| stream.state == name)
            && fits(q.as_deref(), [&*stream.path, &*stream.source])
    };
    let streams = all(state).into_iter().filter(fits).collect();
    Ok(show(&page(streams, |stream: &Stream| stream.path.clone(), (limit, cursor.as_deref()))?))
}

/// Shows a live stream.
#[utoipa::path(get, path = "/api/v1/streams/{path}", tag = "streams",
    params(("path" = String, Path, description = "Path of the stream, percent-encoded")), responses((status = 200, body = Stream)))]
pub(super) fn get_stream(request: &ApiRequest, state: &AdminState) -> Outcome {
    let path = request.parameter(0).trim_matches('/');
    let found = all(state).into_iter().find(|stream| stream.path == path);
    found.map(|stream| show(&stream)).ok_or_else(|| absent(format!("no live stream {path} is known")))
}

/// Stops a live stream: source, publisher and viewers.
#[utoipa::path(delete, path = "/api/v1/streams/{path}", tag = "streams",
    params(("path" = String, Path, description = "Path of the stream, percent-encoded")), responses((status = 200, body = EndedStream)))]
pub(super) fn end_stream(request: &ApiRequest, state: &AdminState) -> Outcome {
    let path = request.parameter(0).trim_matches('/');
    if !state.manager.end_stream(path) {
        return Err(absent(format!("no live stream {path} runs")));
    }
    tracing::info!(path, "live stream ended by an operator");
    Ok(show(&EndedStream { path: path.to_owned(), is_ended: true }))
}

/// Disconnects the publisher of a stream.
#[utoipa::path(delete, path = "/api/v1/streams/{path}/publisher", tag = "streams",
    params(("path" = String, Path, description = "Path of the stream, percent-encoded")), responses((status = 200, body = EndedStream)))]
pub(super) fn end_publisher(request: &ApiRequest, state: &AdminState) -> Outcome {
    let path = request.parameter(0).trim_matches('/');
    if !state.manager.end_publication(path) {
        return Err(absent(format!("nobody publishes {path}")));
    }
    tracing::info!(path, "publisher disconnected by an operator");
    Ok(show(&EndedStream { path: path.to_owned(), is_ended: true }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_that_waits_and_is_copied_is_a_copy() {
        let stream = |path: &str, state: &'static str| {
            let (path, source) = (path.to_owned(), format!("rtsp://camera/{path}"));
            Stream { path, kind: "rtsp".to_owned(), source, state, ..Stream::default() }
        };
        let copy = |path: &str| CopyReport { path: path.into(), of: "http://a:80".into(), run: "1f".to_owned() };
        let streams =
            vec![stream("cams/door", "waiting"), stream("cams/gate", "running"), stream("cams/hall", "waiting")];
        let all = with_copies(streams, vec![copy("cams/attic"), copy("cams/door"), copy("cams/gate")]);
        let rows: Vec<_> = all.iter().map(|row| (&*row.path, row.state, row.server.as_deref(), &*row.source)).collect();
        let of = Some("http://a:80");
        assert_eq!(
            rows,
            [
                ("cams/attic", "copy", of, "http://a:80"),
                ("cams/door", "copy", of, "rtsp://camera/cams/door"),
                ("cams/gate", "running", None, "rtsp://camera/cams/gate"),
                ("cams/hall", "waiting", None, "rtsp://camera/cams/hall"),
            ]
        );
        assert_eq!((&*all[0].kind, all[1].run.as_deref()), ("http", Some("1f")));
    }
}
