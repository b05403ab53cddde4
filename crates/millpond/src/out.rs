//! Output of the commands: made safe to show, and without a panic where its reader has left.

use millpond_server::escape::{self, Escaping};
use std::{
    error::Error,
    fmt::{self, Write as _},
    io::{self, IsTerminal as _, Write as _},
    sync::{Mutex, mpsc},
    time::{Duration, Instant},
};

/// Exit code where the reader of standard output left: what a shell shows for a program that SIGPIPE ended.
pub(crate) const CLOSED: u8 = 128 + 13;

/// Longest wait for standard error to take the reason of a failure.
const PATIENCE: Duration = Duration::from_secs(2);

/// Time between lines of progress in a file or pipe.
const INTERVAL: Duration = Duration::from_secs(10);

/// Standard output was closed by its reader.
#[derive(Debug)]
pub(crate) struct Closed;

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("standard output is closed")
    }
}

impl Error for Closed {}

/// Prints a line as `println!` does, with control characters escaped; gives a result to be handed on.
macro_rules! say {
    ($($text:tt)*) => { $crate::out::line(format_args!($($text)*)) };
}

/// Writes to standard error as `eprint!` does, with control characters escaped; nothing where that is closed.
macro_rules! note {
    ($($text:tt)*) => { $crate::out::complain(&format!($($text)*)) };
}

pub(crate) use {note, say};

/// Prints one line.
pub(crate) fn line(text: fmt::Arguments<'_>) -> Result<(), Box<dyn Error>> {
    let mut line = String::new();
    // Writing to a String does not fail.
    let _ = Escaping::line(&mut line).write_fmt(text);
    line.push('\n');
    write(&line)
}

/// Prints text of several lines, with an end of line behind it.
pub(crate) fn lines(text: &str) -> Result<(), Box<dyn Error>> {
    write(&with_line_end(&escaped(text)))
}

/// Prints JSON, with an end of line behind it.
pub(crate) fn json(text: &str) -> Result<(), Box<dyn Error>> {
    write(&with_line_end(&escape::json(text)))
}

/// Writes a line to standard error. One that takes nothing is left alone after a while.
pub(crate) fn complain(text: &str) {
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
pub(crate) fn progress(text: &str) {
    static PACE: Mutex<Pace> = Mutex::new(Pace { last: None });
    if io::stderr().is_terminal() {
        let mut line = String::new();
        let _ = Escaping::line(&mut line).write_str(text);
        let _ = write!(io::stderr(), "\r{line}\x1b[K");
        let _ = io::stderr().flush();
    } else if !text.is_empty() && PACE.lock().is_ok_and(|mut pace| pace.is_due(Instant::now())) {
        complain(text);
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

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let _ = Escaping::lines(&mut out).write_str(text);
    out
}

fn with_line_end(text: &str) -> String {
    format!("{}\n", text.strip_suffix('\n').unwrap_or(text))
}

fn write(text: &str) -> Result<(), Box<dyn Error>> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(Closed.into()),
        Err(error) => Err(format!("standard output: {error}").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_progress_come_now_and_then() {
        let (mut pace, start) = (Pace { last: None }, Instant::now());
        let due: Vec<u64> = (0..=60).filter(|n| pace.is_due(start + Duration::from_millis(n * 500))).collect();
        assert_eq!(due, [20, 40, 60], "none for what is over soon");
    }
}
