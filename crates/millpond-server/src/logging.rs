//! The log, and the ids that tie its lines to requests.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::io::IsTerminal;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use http::HeaderValue;
use tracing_subscriber::EnvFilter;

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
    /// The name that configuration uses.
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
        /// The filter as configured.
        filter: String,
        /// What the parser said.
        reason: String,
    },
    /// A log was started before in this process.
    #[error("the log is already started: {0}")]
    Started(String),
}

/// Checks a level filter: `info`, or targets as in `millpond_store=debug,info`.
pub fn parse_filter(filter: &str) -> Result<EnvFilter, LogError> {
    EnvFilter::try_new(filter)
        .map_err(|error| LogError::Filter { filter: filter.to_owned(), reason: error.to_string() })
}

/// Starts the log of this process on standard error. To be called once, by the command.
pub fn init(filter: &str, format: LogFormat) -> Result<(), LogError> {
    let terminal = std::io::stderr().is_terminal();
    let builder = tracing_subscriber::fmt().with_env_filter(parse_filter(filter)?).with_writer(std::io::stderr);
    let json = match format {
        LogFormat::Auto => !terminal,
        LogFormat::Text => false,
        LogFormat::Json => true,
    };
    let started = if json {
        builder.json().flatten_event(true).with_span_list(false).try_init()
    } else {
        // https://no-color.org: any non-empty value means plain text.
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        builder.with_ansi(terminal && !plain).with_target(false).try_init()
    };
    started.map_err(|error| LogError::Started(error.to_string()))
}

/// Names one request in the log and in its `X-Request-Id`: 16 hexadecimal characters.
///
/// The first six are random for the process and the last ten count its requests, so an id tells which run served a
/// request and in which order, costs one atomic addition, and repeats only after 2^40 requests of one process.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct RequestId([u8; 16]);

impl RequestId {
    /// The header that carries it.
    pub const HEADER: http::HeaderName = http::HeaderName::from_static("x-request-id");

    /// An id not given out before by this process.
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

    /// The 16 characters.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    /// As the value of [`RequestId::HEADER`].
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

    #[test]
    fn filters_are_checked() {
        assert!(parse_filter("info").is_ok());
        assert!(parse_filter("millpond_store=debug,warn").is_ok());
        let error = parse_filter("millpond=loud").unwrap_err();
        assert!(error.to_string().contains("millpond=loud"), "{error}");
    }
}
