//! Log lines on their way to a pipe, a file or a terminal. Callers never wait for it.
//!
//! Lines wait in a bounded queue, and one thread writes them. When the queue is full, lines are lost and counted: a log
//! that nobody reads must not stop the server.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Most bytes that wait: more than the lines of a second of a busy server.
const MOST_WAITING: usize = 4 << 20;

/// Bytes that a waiting line takes besides its text.
const LINE: usize = 64;

/// Pause before another write to a full output that does not block.
const PAUSE: Duration = Duration::from_millis(10);

/// The destination of lines.
pub(super) trait Output: Write + Send + 'static {
    /// Prepares for another line.
    ///
    /// # Errors
    /// The system's; the line is lost.
    fn begin_line(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Opens the destination again, where it has a name.
    fn reopen(&mut self) {}
}

impl Output for File {}

/// News of an output, for another log.
#[derive(Debug)]
pub(super) enum Trouble<'a> {
    /// The output accepts no line. Told once, until a line is written again.
    Failing(&'a io::Error),
    /// A line was written again, after this number of lost lines.
    Lost(u64),
}

/// Lines that wait to be written.
#[derive(Debug, Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    lines: VecDeque<Vec<u8>>,
    /// Bytes of `lines` and of those being written.
    waiting: usize,
    figures: Figures,
    /// Whether the output is to be opened again.
    reopens: bool,
}

/// Counts of a log, since the process started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Figures {
    /// Lines written.
    pub(super) written: u64,
    /// Lines lost: the queue was full, or the output refused them.
    pub(super) lost: u64,
    /// Whether the newest line was lost.
    pub(super) is_failing: bool,
}

impl Queue {
    /// Creates a queue whose lines a thread writes to `output`. That thread tells its troubles to `tell`.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub(super) fn start(output: impl Output, tell: fn(Trouble<'_>)) -> io::Result<Arc<Self>> {
        let queue = Arc::new(Self::default());
        let lines = queue.clone();
        std::thread::Builder::new().name("log".to_owned()).spawn(move || lines.write_all(output, tell))?;
        Ok(queue)
    }

    /// Adds a line, or counts it as lost.
    pub(super) fn push(&self, line: &[u8]) {
        let mut state = self.state();
        let size = line.len() + LINE;
        if state.waiting + size > MOST_WAITING {
            state.figures.lost += 1;
            state.figures.is_failing = true;
            return;
        }
        state.waiting += size;
        state.lines.push_back(line.to_owned());
        self.changed.notify_all();
    }

    /// Has the output opened again, after the line that is being written.
    pub(super) fn reopen(&self) {
        self.state().reopens = true;
        self.changed.notify_all();
    }

    /// Returns the counts so far.
    pub(super) fn figures(&self) -> Figures {
        self.state().figures
    }

    /// Waits until all lines are written, for `bound` at most.
    pub(super) fn flush(&self, bound: Duration) {
        let waited = self.changed.wait_timeout_while(self.state(), bound, |state| state.waiting > 0);
        drop(waited);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_all(&self, mut output: impl Output, tell: fn(Trouble<'_>)) {
        let (mut told, mut was_refused) = (0, false);
        loop {
            let idle = |state: &mut State| state.lines.is_empty() && !state.reopens;
            let mut state = self.changed.wait_while(self.state(), idle).unwrap_or_else(PoisonError::into_inner);
            let reopens = std::mem::take(&mut state.reopens);
            let line = state.lines.pop_front();
            drop(state);
            if reopens {
                output.reopen();
            }
            let Some(line) = line else { continue };
            let written = output.begin_line().and_then(|()| write_line(&mut output, &line));
            let mut state = self.state();
            state.waiting -= line.len() + LINE;
            match written {
                Ok(()) => state.figures.written += 1,
                Err(_) => state.figures.lost += 1,
            }
            state.figures.is_failing = written.is_err();
            let lost = state.figures.lost;
            drop(state);
            self.changed.notify_all();
            match &written {
                Err(error) if !was_refused => tell(Trouble::Failing(error)),
                Ok(()) if lost > told => {
                    tell(Trouble::Lost(lost - told));
                    told = lost;
                }
                _ => {}
            }
            was_refused = written.is_err();
        }
    }
}

/// Writes a whole line, also to an output that is full and does not block.
fn write_line(output: &mut impl Write, mut rest: &[u8]) -> io::Result<()> {
    while !rest.is_empty() {
        match output.write(rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(taken) => rest = &rest[taken..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::sleep(PAUSE),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::mpsc;

    /// An output that accepts a write when the test permits it.
    struct Gate(mpsc::Receiver<()>, Arc<Mutex<Vec<u8>>>);

    impl Write for Gate {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.recv().map_err(|_| io::ErrorKind::BrokenPipe)?;
            self.1.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Output for Gate {}

    #[test]
    fn a_blocked_output_loses_lines_and_blocks_nobody() {
        static TOLD: AtomicU64 = AtomicU64::new(0);
        let (open, gate) = mpsc::channel();
        let written = Arc::new(Mutex::new(Vec::new()));
        let tell = |trouble: Trouble<'_>| match trouble {
            Trouble::Lost(lost) => {
                TOLD.fetch_add(lost, Ordering::Relaxed);
            }
            Trouble::Failing(error) => panic!("{error}"),
        };
        let queue = Queue::start(Gate(gate, written.clone()), tell).unwrap();
        let line = [b'x'; 1023];
        let fit = (MOST_WAITING / (line.len() + LINE)) as u64;
        for _ in 0..fit + 100 {
            queue.push(&line);
        }
        assert_eq!(queue.figures(), Figures { written: 0, lost: 100, is_failing: true });
        // A stop does not wait for an output that accepts nothing.
        queue.flush(Duration::from_millis(50));
        (0..fit).for_each(|_| open.send(()).unwrap());
        queue.flush(Duration::from_secs(60));
        assert_eq!(written.lock().unwrap().len() as u64, fit * line.len() as u64);
        open.send(()).unwrap();
        queue.push(b"more");
        queue.flush(Duration::from_secs(60));
        assert_eq!(queue.figures(), Figures { written: fit + 1, lost: 100, is_failing: false });
        assert_eq!(TOLD.load(Ordering::Relaxed), 100);
    }

    #[test]
    fn a_closed_output_loses_its_lines_and_says_so_once() {
        static TOLD: AtomicU64 = AtomicU64::new(0);
        let (open, gate) = mpsc::channel();
        drop(open);
        let tell = |_: Trouble<'_>| {
            TOLD.fetch_add(1, Ordering::Relaxed);
        };
        let queue = Queue::start(Gate(gate, Arc::default()), tell).unwrap();
        (0..3).for_each(|_| queue.push(b"line"));
        queue.flush(Duration::from_secs(60));
        assert_eq!(queue.figures(), Figures { written: 0, lost: 3, is_failing: true });
        assert_eq!(TOLD.load(Ordering::Relaxed), 1);
    }
}
