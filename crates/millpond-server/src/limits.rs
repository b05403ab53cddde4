//! Limits of connections, streams and threads, which all front ends share.

use millpond_connections::ConnectionTimeouts;
use millpond_settings::{
    At, Host, Setting, Settings,
    value::{self, BadValue, Form, show_duration, show_size},
};
use millpond_stream::Dropping;
use std::time::Duration;

/// Bounds of `viewer-queue`: below them a single large picture is too late, above them nobody watches live.
const VIEWER_QUEUE: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(60));

/// Limits of connections, streams and threads.
#[derive(Debug, Clone, Copy)]
pub struct LimitSettings {
    /// Number of threads that serve.
    pub workers: usize,
    /// Highest number of client connections, of HTTP and of RTSP each.
    pub max_connections: usize,
    /// Highest number of live streams that are known at a time.
    pub max_streams: usize,
    /// Most bytes of memory for the frames of one live stream.
    pub stream_memory: u64,
    /// Longest time of frames that wait for one viewer of a live stream.
    pub viewer_queue: Duration,
    /// Which frames a viewer loses, for whom too many wait.
    pub dropping: Dropping,
    /// Timeouts of each connection.
    pub timeouts: ConnectionTimeouts,
    /// Time for responses in progress on shutdown.
    pub shutdown_grace: Duration,
}

impl Settings for LimitSettings {
    const LIST: &'static [Setting<Self>] = LIST;

    fn defaults(host: &Host<'_>) -> Self {
        let seconds = Duration::from_secs;
        Self {
            workers: host.machine.cores,
            max_connections: host.machine.default_connections(),
            max_streams: 1000,
            stream_memory: 64 << 20,
            viewer_queue: seconds(3),
            dropping: Dropping::LeastNeeded,
            timeouts: ConnectionTimeouts { idle: seconds(75), head: seconds(10), write: seconds(60) },
            shutdown_grace: seconds(30),
        }
    }
}

/// Most threads that serve requests. The runtime has room for each before it starts.
const MOST_WORKERS: usize = 1024;

const LIST: &[Setting<LimitSettings>] = &[
    Setting {
        name: "workers",
        form: Form::Count,
        default: "one for each core",
        help: "Number of threads that serve requests",
        applied: At::Restart(|new, old| new.workers = old.workers),
        apply: |limits, text| value::count_in(text, 1, MOST_WORKERS).map(|v| limits.workers = v),
        show: |limits| Some(limits.workers.to_string()),
    },
    Setting {
        name: "max-connections",
        form: Form::Count,
        default: "20000, fewer if the limit of open files is low",
        help: "Highest number of client connections of each protocol (HTTP, RTSP, RTMP, interception). All protocols together take at most three \
               quarters of the open files that the system permits, less 256",
        applied: At::Reload,
        apply: |limits, text| value::count(text, 1).map(|v| limits.max_connections = v),
        show: |limits| Some(limits.max_connections.to_string()),
    },
    Setting {
        name: "max-streams",
        form: Form::Count,
        default: "1000",
        help: "Highest number of live streams. Above it, streams without viewers are removed first; then new streams \
               are refused (503)",
        applied: At::Reload,
        apply: |limits, text| value::count(text, 1).map(|v| limits.max_streams = v),
        show: |limits| Some(limits.max_streams.to_string()),
    },
    Setting {
        name: "stream-memory",
        form: Form::Size,
        default: "64MiB",
        help: "Limit of the memory for the frames of one live stream, at least 4MiB. A stream that sends more in 4 s \
               is closed",
        applied: At::Reload,
        apply: |limits, text| stream_memory(text).map(|v| limits.stream_memory = v),
        show: |limits| Some(show_size(limits.stream_memory)),
    },
    Setting {
        name: "viewer-queue",
        form: Form::Duration,
        default: "3s",
        help: "Duration of the pictures that may wait for one viewer of a live stream, 200ms to 60s. When a quarter \
               of it waits, pictures that no other picture refers to are dropped",
        applied: At::Reload,
        apply: |limits, text| value::duration_in(text, VIEWER_QUEUE.0, VIEWER_QUEUE.1).map(|v| limits.viewer_queue = v),
        show: |limits| Some(show_duration(limits.viewer_queue)),
    },
    Setting {
        name: "drop",
        form: Form::Choice(&Dropping::NAMES),
        default: "least-needed",
        help: "Which frames slow viewers of live streams lose. \"least-needed\" first drops frames that no other \
               frame refers to; \"blind\" drops frames that arrive while viewer-queue is full",
        applied: At::Reload,
        apply: |limits, text| dropping(text).map(|v| limits.dropping = v),
        show: |limits| Some(limits.dropping.name().to_owned()),
    },
    Setting {
        name: "idle-timeout",
        form: Form::Duration,
        default: "75s",
        help: "Close a connection after this time without a request",
        applied: At::Reload,
        apply: |limits, text| value::timeout(text).map(|v| limits.timeouts.idle = v),
        show: |limits| Some(show_duration(limits.timeouts.idle)),
    },
    Setting {
        name: "request-timeout",
        form: Form::Duration,
        default: "10s",
        help: "Time limit for a request to arrive completely",
        applied: At::Reload,
        apply: |limits, text| value::timeout(text).map(|v| limits.timeouts.head = v),
        show: |limits| Some(show_duration(limits.timeouts.head)),
    },
    Setting {
        name: "write-timeout",
        form: Form::Duration,
        default: "60s",
        help: "Abort a response after this time in which the client accepted no data",
        applied: At::Reload,
        apply: |limits, text| value::timeout(text).map(|v| limits.timeouts.write = v),
        show: |limits| Some(show_duration(limits.timeouts.write)),
    },
    Setting {
        name: "shutdown-grace",
        form: Form::Duration,
        default: "30s",
        help: "Time for responses in progress to finish on shutdown",
        applied: At::Reload,
        apply: |limits, text| value::duration(text).map(|v| limits.shutdown_grace = v),
        show: |limits| Some(show_duration(limits.shutdown_grace)),
    },
];

fn dropping(text: &str) -> Result<Dropping, BadValue> {
    Dropping::named(text).ok_or_else(|| Form::Choice(&Dropping::NAMES).into())
}

fn stream_memory(text: &str) -> Result<u64, BadValue> {
    match value::size(text)? {
        bytes if bytes < 4 << 20 => Err(BadValue::new("a size of at least 4MiB such as \"64MiB\"")),
        bytes => Ok(bytes),
    }
}
