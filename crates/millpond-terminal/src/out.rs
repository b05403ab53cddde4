//! Output of commands: made safe to show, and without a panic where its reader has left.

use indicatif::{ProgressBar, ProgressStyle};
use millpond_logging::escape::{self, Escaping};
use std::{
    error::Error,
    fmt::{self, Write as _},
    io::{self, IsTerminal as _, Write as _},
    sync::{Mutex, mpsc},
    time::{Duration, Instant},
};

/// Exit code where the reader of standard output left: what a shell shows for a program that SIGPIPE ended.
pub const CLOSED: u8 = 128 + 13;

/// Longest wait for standard error to take the reason of a failure.
const PATIENCE: Duration = Duration::from_secs(2);

/// Time between pictures of progress on a terminal.
const TICK: Duration = Duration::from_millis(200);

/// Time between lines of progress in a file or pipe.
const INTERVAL: Duration = Duration::from_secs(10);

/// Standard output was closed by its reader.
#[derive(Debug)]
pub struct OutputClosed;

impl fmt::Display for OutputClosed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("standard output is closed")
    }
}

impl Error for OutputClosed {}

/// Prints a line as `println!` does, with control characters escaped; gives a result to be handed on.
#[macro_export]
macro_rules! say {
    ($($text:tt)*) => { $crate::out::line(format_args!($($text)*)) };
}

/// Writes to standard error as `eprint!` does, with control characters escaped; nothing where that is closed.
#[macro_export]
macro_rules! note {
    ($($text:tt)*) => { $crate::out::complain(&format!($($text)*)) };
}

/// Prints one line.
///
/// # Errors
/// Standard output is [closed](OutputClosed), or can't be written.
pub fn line(text: fmt::Arguments<'_>) -> Result<(), Box<dyn Error>> {
    let mut line = String::new();
    // Writing to a String does not fail.
    let _ = Escaping::line(&mut line).write_fmt(text);
    line.push('\n');
    write(&line)
}

/// Colours of words on terminals.
#[derive(Clone, Copy, Debug)]
pub enum Colour {
    /// Success.
    Green,
    /// Failure.
    Red,
    /// Warning.
    Yellow,
}

impl Colour {
    /// The control sequence that turns it on (ECMA-48 8.3.117).
    fn sequence(self) -> &'static str {
        match self {
            Self::Red => "\x1b[31m",
            Self::Green => "\x1b[32m",
            Self::Yellow => "\x1b[33m",
        }
    }
}

/// Prints one line that begins with a word in a colour: on a terminal, and where NO_COLOR does not forbid it.
///
/// # Errors
/// Standard output is [closed](OutputClosed), or can't be written.
pub fn coloured(colour: Colour, word: &str, rest: &str) -> Result<(), Box<dyn Error>> {
    let is_forbidden = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if is_forbidden || !io::stdout().is_terminal() {
        return line(format_args!("{word}{rest}"));
    }
    let mut line = String::new();
    line.push_str(colour.sequence());
    let _ = Escaping::line(&mut line).write_str(word);
    line.push_str("\x1b[0m");
    let _ = Escaping::line(&mut line).write_str(rest);
    line.push('\n');
    write(&line)
}

/// Prints text of several lines, with an end of line behind it.
///
/// # Errors
/// Standard output is [closed](OutputClosed), or can't be written.
pub fn lines(text: &str) -> Result<(), Box<dyn Error>> {
    write(&with_line_end(&escaped(text)))
}

/// Prints JSON, with an end of line behind it.
///
/// # Errors
/// Standard output is [closed](OutputClosed), or can't be written.
pub fn json(text: &str) -> Result<(), Box<dyn Error>> {
    write(&with_line_end(&escape::json(text)))
}

/// Prints bytes that Millpond itself made, as they are.
///
/// # Errors
/// Standard output is [closed](OutputClosed), or can't be written.
pub fn raw(bytes: &[u8]) -> Result<(), Box<dyn Error>> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(OutputClosed.into()),
        Err(error) => Err(format!("standard output: {error}").into()),
    }
}

/// Writes a line to standard error. One that takes nothing is left alone after a while.
pub fn complain(text: &str) {
    let text = with_line_end(&escaped(text));
    let (done, wait) = mpsc::channel();
    std::thread::spawn(move || {
        let _ = io::stderr().write_all(text.as_bytes());
        let _ = done.send(());
    });
    let _ = wait.recv_timeout(PATIENCE);
}

/// Shows how far a command is: on a terminal in one line that is written over, elsewhere in a line now and then. Empty
/// text ends it.
pub fn progress(text: &str) {
    progress_of(0, 0, text);
}

/// As [`progress`], with a bar of the share that is done; `all` is 0 where that is unknown.
pub fn progress_of(done: u64, all: u64, text: &str) {
    static PACE: Mutex<Pace> = Mutex::new(Pace { last: None });
    static SHOWN: Mutex<Option<ProgressBar>> = Mutex::new(None);
    if io::stderr().is_terminal() {
        let Ok(mut shown) = SHOWN.lock() else { return };
        if text.is_empty() {
            if let Some(bar) = shown.take() {
                bar.finish_and_clear();
            }
            return;
        }
        let bar = shown.get_or_insert_with(|| bar(all));
        bar.set_position(done);
        let mut line = String::new();
        let _ = Escaping::line(&mut line).write_str(text);
        bar.set_message(line);
    } else if !text.is_empty() && PACE.lock().is_ok_and(|mut pace| pace.is_due(Instant::now())) {
        complain(text);
    }
}

/// A line of progress on standard error, which moves while nothing is told, too.
fn bar(all: u64) -> ProgressBar {
    let (bar, template) = match all {
        0 => (ProgressBar::new_spinner(), "{spinner} {msg} ({elapsed})"),
        _ => (ProgressBar::new(all), "{spinner} [{bar:30}] {percent} %, {eta} left: {msg}"),
    };
    bar.enable_steady_tick(TICK);
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// When progress is told in whole lines.
struct Pace {
    /// Time of the last line, or of the first that there could have been.
    last: Option<Instant>,
}

impl Pace {
    /// Whether it is time for a line. What is over soon needs none.
    fn is_due(&mut self, now: Instant) -> bool {
        let last = *self.last.get_or_insert(now);
        let is_due = now.saturating_duration_since(last) >= INTERVAL;
        if is_due {
            self.last = Some(now);
        }
        is_due
    }
}

/// Returns a time for people: `340ms`, `12.5s`, `3m20s`, `8h21m`, `4.5d`.
#[must_use]
pub fn span(seconds: f64) -> String {
    let whole = seconds.max(0.0).round() as u64;
    match seconds {
        _ if seconds < 1.0 => format!("{:.0}ms", seconds * 1000.0),
        _ if seconds < 120.0 => format!("{seconds:.1}s"),
        _ if whole < 7_200 => format!("{}m{:02}s", whole / 60, whole % 60),
        _ if whole < 172_800 => format!("{}h{:02}m", whole / 3_600, whole / 60 % 60),
        _ => format!("{:.1}d", seconds / 86_400.0),
    }
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let _ = Escaping::lines(&mut out).write_str(text);
    out
}

fn with_line_end(text: &str) -> String {
    format!("{}\n", text.strip_suffix('\n').unwrap_or(text))
}

fn write(text: &str) -> Result<(), Box<dyn Error>> {
    raw(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_in_the_unit_that_fits() {
        for (seconds, text) in [
            (0.34, "340ms"),
            (12.5, "12.5s"),
            (200.0, "3m20s"),
            (30_067.494, "8h21m"),
            (388_800.0, "4.5d"),
            (0.0, "0ms"),
        ] {
            assert_eq!(span(seconds), text);
        }
    }

    #[test]
    fn lines_of_progress_come_now_and_then() {
        let (mut pace, start) = (Pace { last: None }, Instant::now());
        let due: Vec<u64> = (0..=60).filter(|n| pace.is_due(start + Duration::from_millis(n * 500))).collect();
        assert_eq!(due, [20, 40, 60], "none for what is over soon");
    }
}
