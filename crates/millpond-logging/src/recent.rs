//! The last lines of the log in memory, for the admin API.
//!
//! Lines of the last ten minutes stay, 4 MiB at most; half of that is kept for warnings and errors, so that busy times
//! do not push them out. Lines of the access log are left out: they are many.

use serde_json::{Map, Value};
use std::{
    collections::VecDeque,
    fmt::Debug,
    sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tracing::{
    Event, Level, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{Layer, layer::Context};

/// Time for which lines stay.
const KEPT: Duration = Duration::from_secs(600);
/// Bytes of the lines of each half: warnings and errors, and all others.
const HALF: usize = 2 << 20;
/// Bytes that a line takes besides its texts.
const LINE: usize = 160;
/// Most bytes of a text.
const TEXT: usize = 2048;
/// Most fields of a line.
const FIELDS: usize = 24;

/// The lines of this process.
static RECENT: LazyLock<RecentLines> = LazyLock::new(RecentLines::default);

/// A line of the log.
#[derive(Clone, Debug)]
pub struct RecentLine {
    /// Its number, from 1.
    pub number: u64,
    /// Seconds since the Unix epoch.
    pub time: f64,
    /// Its level.
    pub level: Level,
    /// Part of the program.
    pub target: &'static str,
    /// Message.
    pub message: String,
    /// Fields.
    pub fields: Map<String, Value>,
}

/// The last lines of the log.
#[derive(Debug, Default)]
pub struct RecentLines {
    /// A lock: taken for each line that is logged, and by requests for lines.
    inner: Mutex<Inner>,
}

/// Lines that were asked for.
#[derive(Debug)]
pub struct FoundLines {
    /// The lines, oldest first.
    pub lines: Vec<Arc<RecentLine>>,
    /// Number of the newest line of the log.
    pub newest: u64,
    /// Lines that were asked for and are gone.
    pub lost: u64,
}

#[derive(Debug, Default)]
struct Inner {
    newest: u64,
    /// Warnings and errors.
    important: Half,
    others: Half,
    /// Number of the newest line that is gone.
    gone: u64,
}

#[derive(Debug, Default)]
struct Half {
    lines: VecDeque<(Arc<RecentLine>, usize)>,
    bytes: usize,
}

/// Returns the last lines of this process.
pub fn recent() -> &'static RecentLines {
    &RECENT
}

/// A layer that keeps lines.
pub(super) struct RecentLayer;

impl<S: Subscriber> Layer<S> for RecentLayer {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let metadata = event.metadata();
        if metadata.target() == super::ACCESS {
            return;
        }
        let mut texts = Texts::default();
        event.record(&mut texts);
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        RECENT.push(time, (*metadata.level(), metadata.target()), texts);
    }
}

/// Message and fields of an event.
#[derive(Debug, Default)]
struct Texts {
    message: String,
    fields: Map<String, Value>,
    bytes: usize,
}

impl Texts {
    fn add(&mut self, field: &Field, value: Value) {
        let name = field.name();
        // Lines of the `log` crate repeat their target and location as fields.
        if name.starts_with("log.") || self.fields.len() >= FIELDS {
            return;
        }
        self.bytes += name.len() + value.as_str().map_or(16, str::len);
        if name == "message" {
            self.message = value.as_str().unwrap_or_default().to_owned();
        } else {
            self.fields.insert(name.to_owned(), value);
        }
    }
}

fn cut(text: &str) -> Value {
    Value::String(text[..text.floor_char_boundary(TEXT)].to_owned())
}

impl Visit for Texts {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.add(field, cut(&format!("{value:?}")));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, cut(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, value.into());
    }
}

impl RecentLine {
    /// The texts that a search looks at.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        [&*self.message, self.target].into_iter().chain(self.fields.values().filter_map(Value::as_str))
    }
}

impl RecentLines {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, time: Duration, (level, target): (Level, &'static str), texts: Texts) {
        let Texts { message, fields, bytes } = texts;
        let mut inner = self.lock();
        inner.newest += 1;
        let line = RecentLine { number: inner.newest, time: time.as_secs_f64(), level, target, message, fields };
        let half = if level <= Level::WARN { &mut inner.important } else { &mut inner.others };
        let gone = half.push(line, bytes + LINE);
        let oldest = (time.saturating_sub(KEPT)).as_secs_f64();
        let expired = inner.important.expire(oldest).max(inner.others.expire(oldest));
        inner.gone = inner.gone.max(gone).max(expired);
    }

    /// Returns the newest `most` lines behind a number that are at least as important as `level` and are wanted.
    pub fn after(&self, number: u64, level: Level, most: usize, is_wanted: impl Fn(&RecentLine) -> bool) -> FoundLines {
        let inner = self.lock();
        let (newest, gone) = (inner.newest, inner.gone);
        let halves = [&inner.important, &inner.others].into_iter().flat_map(|half| &half.lines).map(|(line, _)| line);
        let mut lines: Vec<_> = halves.filter(|line| line.number > number && line.level <= level).cloned().collect();
        // Texts are searched without the lock: threads that serve log meanwhile.
        drop(inner);
        lines.retain(|line| is_wanted(line));
        lines.sort_by_key(|line| line.number);
        let lines = lines.split_off(lines.len().saturating_sub(most));
        let lost = if number == 0 { 0 } else { gone.saturating_sub(number) };
        FoundLines { lines, newest, lost }
    }
}

impl Half {
    /// Adds a line. Returns the number of the newest one that left for it.
    fn push(&mut self, line: RecentLine, bytes: usize) -> u64 {
        self.bytes += bytes;
        self.lines.push_back((Arc::new(line), bytes));
        let mut gone = 0;
        while self.bytes > HALF {
            gone = self.pop().unwrap_or(gone);
        }
        gone
    }

    /// Removes lines before a time. Returns the number of the newest one.
    fn expire(&mut self, oldest: f64) -> u64 {
        let mut gone = 0;
        while self.lines.front().is_some_and(|(line, _)| line.time < oldest) {
            gone = self.pop().unwrap_or(gone);
        }
        gone
    }

    fn pop(&mut self) -> Option<u64> {
        let (line, bytes) = self.lines.pop_front()?;
        self.bytes -= bytes;
        Some(line.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(lines: &RecentLines, seconds: u64, level: Level, message: &str) {
        let texts = Texts { message: message.to_owned(), fields: Map::new(), bytes: message.len() };
        lines.push(Duration::from_secs(seconds), (level, "test"), texts);
    }

    fn messages(found: &FoundLines) -> Vec<&str> {
        found.lines.iter().map(|line| line.message.as_str()).collect()
    }

    #[test]
    fn lines_are_found_by_level_number_and_text() {
        let lines = RecentLines::default();
        for (n, level) in [Level::INFO, Level::WARN, Level::DEBUG, Level::ERROR].into_iter().enumerate() {
            push(&lines, n as u64, level, &format!("line {n}"));
        }
        let all = |_: &RecentLine| true;
        assert_eq!(messages(&lines.after(0, Level::TRACE, 10, all)), ["line 0", "line 1", "line 2", "line 3"]);
        assert_eq!(messages(&lines.after(0, Level::WARN, 10, all)), ["line 1", "line 3"]);
        assert_eq!(messages(&lines.after(2, Level::TRACE, 10, all)), ["line 2", "line 3"]);
        assert_eq!(messages(&lines.after(0, Level::TRACE, 1, all)), ["line 3"]);
        assert_eq!(messages(&lines.after(0, Level::TRACE, 9, |line| line.message.ends_with('2'))), ["line 2"]);
        assert_eq!(lines.after(4, Level::TRACE, 10, all).newest, 4);
    }

    #[test]
    fn memory_and_time_are_bounded_and_warnings_outlive_a_flood() {
        let lines = RecentLines::default();
        push(&lines, 1000, Level::WARN, "warning");
        let long = "x".repeat(1000);
        for _ in 0..10_000 {
            push(&lines, 1001, Level::INFO, &long);
        }
        let found = lines.after(1, Level::TRACE, usize::MAX, |_| true);
        assert!(found.lines.len() <= HALF / 1000 && found.lost > 7000, "{} {}", found.lines.len(), found.lost);
        assert_eq!(messages(&lines.after(0, Level::WARN, 10, |_| true)), ["warning"]);
        push(&lines, 1601, Level::INFO, "later");
        let rest = lines.after(0, Level::TRACE, usize::MAX, |_| true);
        assert_eq!(messages(&rest)[0].len(), 1000, "the warning expired, those of the same second stay");
        push(&lines, 1602, Level::INFO, "last");
        assert_eq!(messages(&lines.after(0, Level::TRACE, 10, |_| true)), ["later", "last"]);
    }
}
