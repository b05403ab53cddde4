//! The state of the whole server.

use super::{super::AdminState, Reply, page::Items, show};
use serde::Serialize;
use std::time::UNIX_EPOCH;
use utoipa::ToSchema;

/// The running program.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Version {
    /// Version of Millpond.
    version: &'static str,
    /// Version of the API.
    api: &'static str,
    /// Name of this node, in a cluster.
    node: Option<String>,
    /// Time of the start, in seconds since the Unix epoch.
    started: f64,
    /// Time since the start.
    uptime_seconds: f64,
}

/// Whether the server can serve.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Health {
    /// Whether all conditions are met.
    is_ready: bool,
    /// Conditions that are not met.
    waiting_for: Vec<String>,
    /// Parts of the configuration that will not work.
    doubts: Vec<String>,
}

/// The state of the whole server. Rates are of the last second.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(in crate::admin) struct Overview {
    /// Seconds since the Unix epoch.
    pub(in crate::admin) time: f64,
    /// Time since the start.
    pub(in crate::admin) uptime_seconds: f64,
    /// Whether the server can serve.
    pub(in crate::admin) is_ready: bool,
    /// HTTP, without the admin address.
    pub(in crate::admin) http: HttpOverview,
    /// RTSP.
    pub(in crate::admin) rtsp: RtspOverview,
    /// Origins.
    pub(in crate::admin) origins: OriginsOverview,
    /// The cache.
    pub(in crate::admin) cache: CacheOverview,
    /// Live streams.
    pub(in crate::admin) live: LiveOverview,
    /// The process.
    pub(in crate::admin) process: ProcessOverview,
}

/// HTTP, without the admin address.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(in crate::admin) struct HttpOverview {
    /// Viewers of the last minute, and long responses.
    pub(in crate::admin) viewers: u64,
    /// Responses under way.
    pub(in crate::admin) responses: u64,
    /// Open connections.
    pub(in crate::admin) connections: u64,
    /// Bytes of bodies.
    pub(in crate::admin) sent_bytes: u64,
    /// Bits a second of bodies.
    pub(in crate::admin) sent_bps: u64,
    /// Requests answered.
    pub(in crate::admin) requests: u64,
    /// Requests answered, a second.
    pub(in crate::admin) requests_per_second: f64,
    /// Replies with a status of 4xx.
    pub(in crate::admin) client_errors: u64,
    /// Replies with a status of 5xx.
    pub(in crate::admin) server_errors: u64,
    /// Replies with a status of 5xx and responses broken off, a second.
    pub(in crate::admin) errors_per_second: f64,
    /// Responses broken off because storage or media failed.
    pub(in crate::admin) broken: u64,
    /// Responses that did not reach their end for another reason.
    pub(in crate::admin) unfinished: u64,
}

/// RTSP.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(in crate::admin) struct RtspOverview {
    /// Sessions, including publishers.
    pub(in crate::admin) sessions: u64,
    /// Sessions that play.
    pub(in crate::admin) playing: u64,
    /// Sessions of publishers.
    pub(in crate::admin) publishing: u64,
    /// Bytes of RTP packets.
    pub(in crate::admin) sent_bytes: u64,
    /// Bits a second of RTP packets.
    pub(in crate::admin) sent_bps: u64,
    /// Sessions refused.
    pub(in crate::admin) refused: u64,
    /// Whether new sessions are refused because sending is late.
    pub(in crate::admin) is_overloaded: bool,
}

/// Origins of all places.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(in crate::admin) struct OriginsOverview {
    /// Bytes received.
    pub(in crate::admin) received_bytes: u64,
    /// Bits a second received.
    pub(in crate::admin) received_bps: u64,
    /// Requests.
    pub(in crate::admin) requests: u64,
    /// Failures.
    pub(in crate::admin) errors: u64,
    /// Requests under way.
    pub(in crate::admin) in_flight: u64,
}

/// The cache of slices.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(in crate::admin) struct CacheOverview {
    /// Bytes read from complete slices.
    pub(in crate::admin) hit_bytes: u64,
    /// Bytes read as they arrived from origins.
    pub(in crate::admin) miss_bytes: u64,
    /// Bytes read of local files, which need no cache.
    pub(in crate::admin) file_bytes: u64,
    /// Share of hits in the bytes of the last minute; null where none were read.
    pub(in crate::admin) hit_ratio: Option<f64>,
    /// Memory in use.
    pub(in crate::admin) memory_bytes: u64,
    /// Limit of the memory.
    pub(in crate::admin) memory_limit_bytes: u64,
    /// Disk in use; null without a disk cache.
    pub(in crate::admin) disk_bytes: Option<u64>,
    /// Limit of the disk.
    pub(in crate::admin) disk_limit_bytes: Option<u64>,
}

/// Live streams.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(in crate::admin) struct LiveOverview {
    /// Streams that run, failed just now, or ran before.
    pub(in crate::admin) streams: u64,
    /// Streams that run.
    pub(in crate::admin) running: u64,
    /// Streams whose source is lost or failed.
    pub(in crate::admin) failed: u64,
    /// Modules that take their frames.
    pub(in crate::admin) viewers: u64,
}

/// The process.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(in crate::admin) struct ProcessOverview {
    /// Memory in use.
    pub(in crate::admin) memory_bytes: u64,
    /// Processor time.
    pub(in crate::admin) cpu_seconds: f64,
    /// Processors in use.
    pub(in crate::admin) cpu: f64,
    /// Open file descriptors.
    pub(in crate::admin) open_files: u64,
    /// Lines of the log that were lost.
    pub(in crate::admin) lost_log_lines: u64,
}

/// One second of the history.
#[derive(Clone, Copy, Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(in crate::admin) struct Moment {
    time: f64,
    viewers: u64,
    sessions: u64,
    http_sent_bps: u64,
    rtsp_sent_bps: u64,
    received_bps: u64,
    requests_per_second: f64,
    errors_per_second: f64,
    hit_ratio: Option<f64>,
    live_running: u64,
    cpu: f64,
    memory_bytes: u64,
}

impl Moment {
    pub(in crate::admin) fn of(overview: &Overview) -> Self {
        Self {
            time: overview.time,
            viewers: overview.http.viewers,
            sessions: overview.rtsp.sessions,
            http_sent_bps: overview.http.sent_bps,
            rtsp_sent_bps: overview.rtsp.sent_bps,
            received_bps: overview.origins.received_bps,
            requests_per_second: overview.http.requests_per_second,
            errors_per_second: overview.http.errors_per_second,
            hit_ratio: overview.cache.hit_ratio,
            live_running: overview.live.running,
            cpu: overview.process.cpu,
            memory_bytes: overview.process.memory_bytes,
        }
    }
}

/// Shows the running program.
#[utoipa::path(get, path = "/api/v1/version", tag = "overview", responses((status = 200, body = Version)))]
pub(super) fn version(state: &AdminState) -> Reply {
    let (instant, time) = state.desk.started;
    show(&Version {
        version: env!("CARGO_PKG_VERSION"),
        api: "v1",
        node: state.cluster.as_ref().map(|cluster| cluster.name().to_string()),
        started: time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64(),
        uptime_seconds: instant.elapsed().as_secs_f64(),
    })
}

/// Shows whether the server can serve, and which parts will not work.
#[utoipa::path(get, path = "/api/v1/health", tag = "overview", responses((status = 200, body = Health)))]
pub(super) fn health(state: &AdminState) -> Reply {
    let waiting_for = state.waiting_for();
    let doubts = state.reloader.as_ref().map(|reloader| crate::doubts::doubts(&reloader.loaded())).unwrap_or_default();
    show(&Health { is_ready: waiting_for.is_empty(), waiting_for, doubts })
}

/// Shows the state of the whole server.
#[utoipa::path(get, path = "/api/v1/overview", tag = "overview", responses((status = 200, body = Overview)))]
pub(super) fn overview(state: &AdminState) -> Reply {
    show(&state.desk.monitor.overview(state))
}

/// Shows rates and states of the last five minutes, one line a second.
#[utoipa::path(get, path = "/api/v1/overview/history", tag = "overview", responses((status = 200, body = Items<Moment>)))]
pub(super) fn history(state: &AdminState) -> Reply {
    show(&Items { items: state.desk.monitor.history() })
}
