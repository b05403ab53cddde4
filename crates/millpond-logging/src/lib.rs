//! The log, the access log, and the ids that tie their lines to requests.
//!
//! Lines of requests and sessions are events of the target `ACCESS`. They are lines of the log, or have an output and
//! a form of their own. [`traces`] has the spans of requests for OpenTelemetry, [`escape`] text that is safe to print.
//!
//! The crate writes what others say. It knows no request and no stream.

mod common_lines;
pub mod escape;
mod fields;
mod file;
mod filter;
mod metrics;
mod queue;
mod recent;
mod settings;
pub mod traces;

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, IsTerminal, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};
use std::time::Duration;

use http::HeaderValue;
use millpond_store::trace::TARGET as TRACES;
use tracing::Metadata;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::{FilterExt, FilterFn};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Registry};

use common_lines::CommonLines;
use fields::EscapedFields;
use file::LogFile;
pub use filter::parse_filter;
use queue::{Figures, Queue, Trouble};
use recent::RecentLayer;
use traces::{TraceError, TraceSettings};

pub use metrics::LogCollector;
pub use recent::{FoundLines, RecentLine, RecentLines, recent};
pub use settings::{AccessFormat, AccessLog, LogSettings};

/// Target of the events that are lines of the access log.
pub const ACCESS: &str = "millpond_server::access_log";

/// Longest wait for the last lines when the process ends.
const FLUSH: Duration = Duration::from_secs(1);

/// The logs of this process, if they were started.
static LOGS: OnceLock<Logs> = OnceLock::new();

/// The logs of a process.
struct Logs {
    server: Arc<Queue>,
    /// The access log, where its lines are not those of the server's log.
    access: Option<Arc<Queue>>,
}

type BoxedLayer = Box<dyn Layer<Registry> + Send + Sync>;

/// Replaces the level filter of the log.
static FILTER: OnceLock<Box<dyn Fn(EnvFilter) + Send + Sync>> = OnceLock::new();

/// How log lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogFormat {
    /// Text on a terminal, JSON elsewhere.
    #[default]
    Auto,
    /// Lines for people.
    Text,
    /// One JSON object a line.
    Json,
}

impl LogFormat {
    /// Returns the name in the configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Text => "text",
            Self::Json => "json",
        }
    }
}

/// Why the log could not be started.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The level filter does not parse.
    #[error("log filter {filter:?}: {reason}")]
    Filter {
        /// The filter of the configuration.
        filter: String,
        /// Error of the parser.
        reason: String,
    },
    /// The thread that writes lines, or standard error, is not available.
    #[error("the log can't be written: {0}")]
    Output(io::Error),
    /// Traces can't be sent.
    #[error(transparent)]
    Traces(#[from] TraceError),
    /// The file of the access log can't be opened.
    #[error("access-log: {}: {error}{}", path.display(), file::cure(error))]
    File {
        /// Its path.
        path: std::path::PathBuf,
        /// Error of the system.
        error: io::Error,
    },
    /// This process has started a log before.
    #[error("the log is already started: {0}")]
    Started(String),
}

/// Returns the file of the access log and the reason why it can't be opened; nothing is made.
pub fn unopenable(settings: &LogSettings) -> Option<(std::path::PathBuf, String)> {
    let AccessLog::File(path) = &settings.access else { return None };
    let error = file::obstacle(path)?;
    Some((path.clone(), format!("{error}{}", file::cure(&error))))
}

/// Starts the logs of this process: one on standard error, and the access log; and its traces, where they are on. The
/// command calls it once.
///
/// Threads of their own write the lines. Where an output accepts none, the oldest wait and new ones are lost.
/// Panics become lines of the log, because the usual message would wait for standard error.
///
/// # Errors
/// A bad filter, an output that can't be opened, or logs that were started before.
pub fn init(settings: &LogSettings, traces: &TraceSettings) -> Result<(), LogError> {
    let filter = parse_filter(&settings.filter)?;
    let terminal = io::stderr().is_terminal();
    let server = Queue::start(descriptor(io::stderr().as_fd())?, |trouble| {
        if let Trouble::Lost(lines) = trouble {
            tracing::warn!(lines, "log lines were lost: standard error did not accept them in time");
        }
    });
    let server = server.map_err(LogError::Output)?;
    let json = match settings.format {
        LogFormat::Auto => !terminal,
        LogFormat::Text => false,
        LogFormat::Json => true,
    };
    // https://no-color.org: any non-empty value means plain text.
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let lines = Lines { queue: server.clone(), json };
    let access = access_queue(settings, &server)?;
    let server_layer = server_layer(lines, terminal && !plain);
    let (filter, handle) = tracing_subscriber::reload::Layer::new(filter);
    // Lines of the access log and spans of traces are none of the log's, where they have an output of their own.
    let mut layers = match &access {
        None => vec![server_layer.and_then(RecentLayer).with_filter(filter.and(without(&[TRACES]))).boxed()],
        Some(queue) => vec![
            server_layer.and_then(RecentLayer).with_filter(filter.and(without(&[TRACES, ACCESS]))).boxed(),
            access_layer(queue, settings.access_format).with_filter(only(ACCESS)).boxed(),
        ],
    };
    if let Some(layer) = traces::start(traces)? {
        layers.push(layer.with_filter(only(TRACES)).boxed());
    }
    let started = tracing_subscriber::registry().with(layers).try_init();
    started.map_err(|error| LogError::Started(error.to_string()))?;
    let _ = LOGS.set(Logs { server, access });
    let _ = FILTER.set(Box::new(move |filter| drop(handle.reload(filter))));
    std::panic::set_hook(Box::new(|panic| {
        let at = panic.location().map(ToString::to_string).unwrap_or_default();
        let backtrace = std::backtrace::Backtrace::capture();
        let backtrace = (backtrace.status() == std::backtrace::BacktraceStatus::Captured).then_some(backtrace);
        let backtrace = backtrace.map(|trace| tracing::field::display(trace.to_string()));
        let reason = panic.payload_as_str().unwrap_or("no message");
        tracing::error!(at, reason, backtrace, "panic: a fault of Millpond");
    }));
    Ok(())
}

/// Returns the queue of an access log with a form or an output of its own.
fn access_queue(settings: &LogSettings, server: &Arc<Queue>) -> Result<Option<Arc<Queue>>, LogError> {
    let started = match &settings.access {
        AccessLog::Off => return Ok(None),
        AccessLog::Stderr if settings.access_format == AccessFormat::Auto => return Ok(None),
        AccessLog::Stderr => return Ok(Some(server.clone())),
        AccessLog::Stdout => Queue::start(descriptor(io::stdout().as_fd())?, tell_of_access_log),
        AccessLog::File(path) => {
            let open = |error| LogError::File { path: path.clone(), error };
            Queue::start(LogFile::open(path).map_err(open)?, tell_of_access_log)
        }
    };
    started.map(Some).map_err(LogError::Output)
}

fn tell_of_access_log(trouble: Trouble<'_>) {
    match trouble {
        Trouble::Failing(error) => tracing::error!(%error, "the access log can't be written: its lines are lost"),
        Trouble::Lost(lines) => tracing::warn!(lines, "lines of the access log were lost"),
    }
}

/// Returns a descriptor of its own: a blocked write must not hold the lock of the standard library's one.
fn descriptor(stream: BorrowedFd<'_>) -> Result<std::fs::File, LogError> {
    stream.try_clone_to_owned().map(std::fs::File::from).map_err(LogError::Output)
}

fn server_layer(lines: Lines, colours: bool) -> BoxedLayer {
    let json = lines.json;
    let layer = tracing_subscriber::fmt::layer().with_writer(lines);
    if json {
        layer.json().flatten_event(true).with_span_list(false).boxed()
    } else {
        layer.fmt_fields(EscapedFields).with_ansi(colours).with_target(false).boxed()
    }
}

/// Replaces the level filter of the log, if one was started.
///
/// # Errors
/// The filter does not parse.
pub fn set_filter(filter: &str) -> Result<(), LogError> {
    let filter = parse_filter(filter)?;
    if let Some(replace) = FILTER.get() {
        replace(filter);
    }
    Ok(())
}

fn access_layer(queue: &Arc<Queue>, format: AccessFormat) -> BoxedLayer {
    match format {
        AccessFormat::Common => CommonLines::new(queue.clone(), false).boxed(),
        AccessFormat::Combined => CommonLines::new(queue.clone(), true).boxed(),
        AccessFormat::Auto | AccessFormat::Json => {
            let lines = Lines { queue: queue.clone(), json: true };
            let layer = tracing_subscriber::fmt::layer().with_writer(lines).with_target(false).with_level(false);
            layer.json().flatten_event(true).with_span_list(false).with_current_span(false).boxed()
        }
    }
}

/// Returns a filter that takes one target, whose events and spans are of the level `info`.
fn only(target: &'static str) -> FilterFn<impl Fn(&Metadata<'_>) -> bool> {
    let filter = FilterFn::new(move |metadata: &Metadata<'_>| metadata.target() == target);
    filter.with_max_level_hint(LevelFilter::INFO)
}

/// Returns a filter that takes all targets but some.
fn without(targets: &'static [&'static str]) -> FilterFn<impl Fn(&Metadata<'_>) -> bool> {
    let filter = FilterFn::new(move |metadata: &Metadata<'_>| !targets.contains(&metadata.target()));
    // Without a hint, a filter joined with this one would have none either: disabled levels would cost more.
    filter.with_max_level_hint(LevelFilter::TRACE)
}

/// Opens the access log again, if it is a file. Returns whether it is one of its own.
pub fn reopen() -> bool {
    let access = LOGS.get().and_then(|logs| logs.access.as_ref());
    access.inspect(|queue| queue.reopen()).is_some()
}

/// Waits until the logs are written and the traces are sent, for a second each at most. The command calls it before the process ends.
pub fn flush() {
    if let Some(logs) = LOGS.get() {
        logs.server.flush(FLUSH);
        logs.access.iter().for_each(|queue| queue.flush(FLUSH));
    }
    traces::flush();
}

/// Returns the counts of the log and of the access log.
fn figures() -> [(&'static str, Figures); 2] {
    let logs = LOGS.get();
    let server = logs.map_or_else(Figures::default, |logs| logs.server.figures());
    let own = logs.and_then(|logs| logs.access.as_ref().filter(|queue| !Arc::ptr_eq(queue, &logs.server)));
    let access = own.map_or_else(Figures::default, |queue| queue.figures());
    [("server", server), ("access", access)]
}

/// Returns how many lines of the log and of the access log were lost.
pub fn lost_lines() -> u64 {
    figures().iter().map(|(_, figures)| figures.lost).sum()
}

/// The destination of formatted lines. Each event is one `write`.
#[derive(Clone)]
struct Lines {
    queue: Arc<Queue>,
    json: bool,
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = &'a Self;

    fn make_writer(&'a self) -> Self::Writer {
        self
    }
}

impl Write for &Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match std::str::from_utf8(line) {
            // The serializer escapes C0 only.
            Ok(text) if self.json && !escape::is_safe(text) => self.queue.push(escape::json(text).as_bytes()),
            _ => self.queue.push(line),
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Identifies one request in the log and in its `X-Request-Id`: 16 hexadecimal characters.
/// The first six are random for the process, and the last ten count its requests. So an id tells which run served a
/// request, and in which order. It costs one atomic addition, and repeats only after 2^40 requests of one process.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct RequestId([u8; 16]);

impl RequestId {
    /// The header that carries it.
    pub const HEADER: http::HeaderName = http::HeaderName::from_static("x-request-id");

    /// Returns an id that this process has not used before.
    pub fn next() -> Self {
        static PREFIX: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one(std::process::id()));
        static COUNT: AtomicU64 = AtomicU64::new(0);
        Self::from_parts(*PREFIX, COUNT.fetch_add(1, Ordering::Relaxed))
    }

    fn from_parts(prefix: u64, count: u64) -> Self {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let value = (prefix << 40) | (count & 0xff_ffff_ffff);
        let mut text = [0; 16];
        for (place, digit) in text.iter_mut().rev().enumerate() {
            *digit = DIGITS[((value >> (4 * place)) & 15) as usize];
        }
        Self(text)
    }

    /// Returns the 16 characters.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    /// Returns the value of [`RequestId::HEADER`].
    pub fn header_value(&self) -> HeaderValue {
        HeaderValue::from_bytes(&self.0).unwrap_or(HeaderValue::from_static(""))
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn request_ids_are_unique_across_threads() {
        let threads: Vec<_> =
            (0..4).map(|_| std::thread::spawn(|| (0..5_000).map(|_| RequestId::next()).collect::<Vec<_>>())).collect();
        let all: Vec<_> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), 20_000);
        let prefix = &all[0].as_str()[..6];
        assert!(all.iter().all(|id| id.as_str().starts_with(prefix)));
    }

    #[test]
    fn a_request_id_is_prefix_then_count() {
        let id = RequestId::from_parts(0xffff_ffff_ffab_cdef, 0x1_0000_0000_000f);
        assert_eq!(id.as_str(), "abcdef000000000f");
        assert_eq!(id.header_value(), "abcdef000000000f");
    }

    /// A field of each kind, with a value that would clear the screen and forge a line.
    fn hostile_line(json: Option<bool>) -> String {
        #[derive(Clone, Default)]
        struct Output(Arc<std::sync::Mutex<Vec<u8>>>);
        impl Write for Output {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0.lock().unwrap().extend_from_slice(bytes);
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        #[derive(Debug)]
        #[allow(dead_code, reason = "read by Debug")]
        struct Raw(&'static str);
        impl super::queue::Output for Output {}
        let output = Output::default();
        let queue = Queue::start(output.clone(), |_| ()).unwrap();
        let layer = match json {
            Some(json) => server_layer(Lines { queue: queue.clone(), json }, false),
            None => access_layer(&queue, AccessFormat::Json),
        };
        let subscriber = tracing_subscriber::registry().with(layer);
        let evil = "\x1b[2J\r\n\u{7f}\u{9b}31m\u{2028}\u{202e}\u{2066}\0end";
        let error: Box<dyn std::error::Error + 'static> = evil.into();
        tracing::subscriber::with_default(subscriber, || {
            let span = tracing::info_span!("request", span_field = %evil);
            let _in = span.enter();
            tracing::warn!(text = evil, display = %evil, debug = ?Raw(evil), raw = ?format_args!("{evil}"),
                error = &*error, number = 1u64, "message {evil}");
        });
        queue.flush(Duration::from_secs(60));
        let bytes = output.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn no_field_of_any_kind_can_forge_a_line_or_steer_a_terminal() {
        for json in [Some(false), Some(true), None] {
            let line = hostile_line(json);
            let inner = line.strip_suffix('\n').unwrap();
            let hostile = |c: char| c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
            assert!(!inner.contains(hostile), "{line:?}");
            assert!(inner.matches("end").count() >= 6, "every field is there: {line:?}");
            if json != Some(false) {
                let value: serde_json::Value = serde_json::from_str(inner).unwrap();
                assert!(value["display"].as_str().unwrap().contains("\u{9b}31m"), "JSON keeps the value: {line}");
            }
        }
    }
}
