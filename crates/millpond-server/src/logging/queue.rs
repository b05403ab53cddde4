//! Log lines on their way to a pipe, a file or a terminal. Callers never wait for it.
//!
//! Lines wait in a bounded queue, and one thread writes them. When the queue is full, lines are lost and counted: a log
//! that nobody reads must not stop the server.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Most bytes that wait: more than the lines of a second of a busy server.
const MOST_WAITING: usize = 4 << 20;

/// Bytes that a waiting line takes besides its text.
const LINE: usize = 64;

/// Pause before another write to a full output that does not block.
const PAUSE: Duration = Duration::from_millis(10);

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
    lost: u64,
}

impl Queue {
    /// Creates a queue whose lines a thread writes to `output`. After lost lines, that thread calls `tell` with their
    /// number as soon as a line was written again.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub(super) fn start(output: impl Write + Send + 'static, tell: fn(u64)) -> io::Result<Arc<Self>> {
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
            state.lost += 1;
            return;
        }
        state.waiting += size;
        state.lines.push_back(line.to_owned());
        self.changed.notify_all();
    }

    /// Returns the number of lines lost so far.
    pub(super) fn lost(&self) -> u64 {
        self.state().lost
    }

    /// Waits until all lines are written, for `bound` at most.
    pub(super) fn flush(&self, bound: Duration) {
        let waited = self.changed.wait_timeout_while(self.state(), bound, |state| state.waiting > 0);
        drop(waited);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_all(&self, mut output: impl Write, tell: fn(u64)) {
        let mut told = 0;
        loop {
            let empty = |state: &mut State| state.lines.is_empty();
            let mut state = self.changed.wait_while(self.state(), empty).unwrap_or_else(PoisonError::into_inner);
            let Some(line) = state.lines.pop_front() else { continue };
            drop(state);
            let written = write_line(&mut output, &line);
            let mut state = self.state();
            state.waiting -= line.len() + LINE;
            // A closed output accepts no line. The metrics show it.
            state.lost += u64::from(written.is_err());
            let lost = state.lost;
            drop(state);
            self.changed.notify_all();
            if written.is_ok() && lost > told {
                tell(lost - told);
                told = lost;
            }
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

    #[test]
    fn a_blocked_output_loses_lines_and_blocks_nobody() {
        static TOLD: AtomicU64 = AtomicU64::new(0);
        let (open, gate) = mpsc::channel();
        let written = Arc::new(Mutex::new(Vec::new()));
        let tell = |lost| {
            TOLD.fetch_add(lost, Ordering::Relaxed);
        };
        let queue = Queue::start(Gate(gate, written.clone()), tell).unwrap();
        let line = [b'x'; 1023];
        let fit = (MOST_WAITING / (line.len() + LINE)) as u64;
        for _ in 0..fit + 100 {
            queue.push(&line);
        }
        assert_eq!(queue.lost(), 100);
        // A stop does not wait for an output that accepts nothing.
        queue.flush(Duration::from_millis(50));
        (0..fit).for_each(|_| open.send(()).unwrap());
        queue.flush(Duration::from_secs(60));
        assert_eq!(written.lock().unwrap().len() as u64, fit * line.len() as u64);
        open.send(()).unwrap();
        queue.push(b"more");
        queue.flush(Duration::from_secs(60));
        assert_eq!((queue.lost(), TOLD.load(Ordering::Relaxed)), (100, 100));
    }

    #[test]
    fn a_closed_output_loses_its_lines() {
        let (open, gate) = mpsc::channel();
        drop(open);
        let queue = Queue::start(Gate(gate, Arc::default()), |_| ()).unwrap();
        (0..3).for_each(|_| queue.push(b"line"));
        queue.flush(Duration::from_secs(60));
        assert_eq!(queue.lost(), 3);
    }
}
