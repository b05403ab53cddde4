//! The log, and the ids that tie its lines to requests.

mod fields;
mod queue;
mod settings;

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};
use std::time::Duration;

use http::HeaderValue;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

use crate::escape;
use fields::EscapedFields;
use queue::Queue;

pub use settings::LogSettings;

/// Longest wait for the last lines when the process ends.
const FLUSH: Duration = Duration::from_secs(1);

/// The log of this process, if one was started.
static LOG: OnceLock<Arc<Queue>> = OnceLock::new();

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
    /// This process has started a log before.
    #[error("the log is already started: {0}")]
    Started(String),
}

/// Checks a level filter: `info`, or targets as in `millpond_store=debug,info`.
pub fn parse_filter(filter: &str) -> Result<EnvFilter, LogError> {
    EnvFilter::try_new(filter)
        .map_err(|error| LogError::Filter { filter: filter.to_owned(), reason: error.to_string() })
}

/// Starts the log of this process on standard error. The command calls it once.
///
/// A thread of its own writes the lines. Where standard error accepts none, the oldest wait and new ones are lost.
/// Panics become lines of the log, because the usual message would wait for standard error.
pub fn init(filter: &str, format: LogFormat) -> Result<(), LogError> {
    let filter = parse_filter(filter)?;
    let terminal = io::stderr().is_terminal();
    // A descriptor of its own: a blocked write must not hold the lock of the standard library's one.
    let output = io::stderr().as_fd().try_clone_to_owned().map_err(LogError::Output)?;
    let queue = Queue::start(std::fs::File::from(output), |lines| {
        tracing::warn!(lines, "log lines were lost: standard error did not take them in time");
    })
    .map_err(LogError::Output)?;
    let json = match format {
        LogFormat::Auto => !terminal,
        LogFormat::Text => false,
        LogFormat::Json => true,
    };
    // https://no-color.org: any non-empty value means plain text.
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let lines = Lines { queue: queue.clone(), json };
    subscribe(filter, lines, terminal && !plain).map_err(|error| LogError::Started(error.to_string()))?;
    let _ = LOG.set(queue);
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

fn subscribe(filter: EnvFilter, lines: Lines, colours: bool) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let json = lines.json;
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(lines);
    if json {
        builder.json().flatten_event(true).with_span_list(false).try_init()
    } else {
        builder.fmt_fields(EscapedFields).with_ansi(colours).with_target(false).try_init()
    }
}

/// Waits until the log is written, for a second at most. The command calls it before the process ends.
pub fn flush() {
    if let Some(queue) = LOG.get() {
        queue.flush(FLUSH);
    }
}

/// Returns the number of log lines lost since the process started.
pub(crate) fn lost_lines() -> u64 {
    LOG.get().map_or(0, |queue| queue.lost())
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
    fn hostile_line(json: bool) -> String {
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
        let output = Output::default();
        let queue = Queue::start(output.clone(), |_| ()).unwrap();
        let lines = Lines { queue: queue.clone(), json };
        let builder = tracing_subscriber::fmt().with_writer(lines);
        let subscriber: Box<dyn tracing::Subscriber + Send + Sync> = if json {
            Box::new(builder.json().flatten_event(true).finish())
        } else {
            Box::new(builder.fmt_fields(EscapedFields).with_ansi(false).finish())
        };
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
        for json in [false, true] {
            let line = hostile_line(json);
            let inner = line.strip_suffix('\n').unwrap();
            let hostile = |c: char| c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
            assert!(!inner.contains(hostile), "{line:?}");
            assert!(inner.matches("end").count() >= 6, "every field is there: {line:?}");
            if json {
                let value: serde_json::Value = serde_json::from_str(inner).unwrap();
                assert!(value["display"].as_str().unwrap().contains("\u{9b}31m"), "JSON keeps the value: {line}");
            }
        }
    }

    #[test]
    fn filters_are_checked() {
        assert!(parse_filter("info").is_ok());
        assert!(parse_filter("millpond_store=debug,warn").is_ok());
        let error = parse_filter("millpond=loud").unwrap_err();
        assert!(error.to_string().contains("millpond=loud"), "{error}");
    }
}
