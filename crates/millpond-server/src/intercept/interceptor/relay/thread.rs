//! Fast connections: a thread of its own passes the bytes of each. It is woken for them alone, and by nothing else of the server.

use super::direction::{Direction, Wait};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fd::AsFd,
    io::Errno,
};
use std::{
    io,
    net::TcpStream,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task::spawn_blocking,
};

/// Time without a byte after which a connection returns to the common threads. A stopped thread ends within it.
const PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
/// Interval at which the rate of a connection is checked.
const CHECK: Duration = Duration::from_millis(250);
/// Bytes in it below which a connection returns to the common threads: 100 Mbit/s.
const SLOW: usize = 3 << 20;
/// Steps of one direction before the other one has its turn.
const STEPS: usize = 64;

/// Threads for fast connections, of which there is a limit.
#[derive(Clone, Debug)]
pub(in crate::intercept) struct FastThreads {
    permits: Arc<Semaphore>,
}

/// Both connections of a relay and their directions: to the server, and to the client.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) client: TcpStream,
    pub(super) server: TcpStream,
    pub(super) directions: [Direction; 2],
}

impl FastThreads {
    /// Allows two threads a core: more would not be faster.
    pub(in crate::intercept) fn new() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self { permits: Arc::new(Semaphore::new(2 * cores)) }
    }

    /// Returns the right to one thread; `None` where all are taken.
    pub(super) fn take(&self) -> Option<OwnedSemaphorePermit> {
        self.permits.clone().try_acquire_owned().ok()
    }

    /// Returns the number of threads that are not taken.
    #[cfg(test)]
    pub(super) fn free(&self) -> usize {
        self.permits.available_permits()
    }
}

/// Passes the bytes of a link on in a thread, until they are no longer fast or both directions are over. A caller that no
/// longer waits ends the thread and both connections.
///
/// # Errors
/// Those of a connection, beside the link.
pub(super) async fn run(link: Link, permit: OwnedSemaphorePermit) -> io::Result<(Link, io::Result<()>)> {
    let stop = StopOnDrop(Arc::default());
    let stopped = stop.0.clone();
    let thread = spawn_blocking(move || {
        let mut link = link;
        let ended = link.pass(&stopped);
        drop(permit);
        (link, ended)
    });
    thread.await.map_err(io::Error::other)
}

/// Tells a thread to end when its caller is dropped.
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Link {
    fn pass(&mut self, stopped: &AtomicBool) -> io::Result<()> {
        let (mut moved, mut since, mut idle_turns) = (0, Instant::now(), 0);
        while !stopped.load(Ordering::Relaxed) {
            let [to_server, to_client] = &mut self.directions;
            let count = turn(to_client, &self.server, &self.client)? + turn(to_server, &self.client, &self.server)?;
            moved += count;
            // A connection that is reset is ready all the time, while the other one may have no bytes.
            idle_turns = if count == 0 { idle_turns + 1 } else { 0 };
            if since.elapsed() >= CHECK {
                if moved < SLOW {
                    return Ok(());
                }
                (moved, since) = (0, Instant::now());
            }
            if idle_turns > 2 || !self.wait()? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Waits until a direction can go on. Returns false where none can for a while, or both are over.
    fn wait(&self) -> io::Result<bool> {
        let [to_server, to_client] = self.directions.each_ref().map(Direction::wait);
        if to_server == Wait::Nothing && to_client == Wait::Nothing {
            return Ok(false);
        }
        let flags = |reads: Wait, writes: Wait| {
            let input = if reads == Wait::Input { PollFlags::IN } else { PollFlags::empty() };
            input | if writes == Wait::Room { PollFlags::OUT } else { PollFlags::empty() }
        };
        let mut sides = [
            PollFd::new(&self.client, flags(to_server, to_client)),
            PollFd::new(&self.server, flags(to_client, to_server)),
        ];
        loop {
            match poll(&mut sides, Some(&PAUSE)) {
                Err(Errno::INTR) => {}
                ready => return Ok(ready? > 0),
            }
        }
    }
}

/// Passes bytes on until a direction has to wait, or the other one has its turn. Returns how many.
fn turn(direction: &mut Direction, from: impl AsFd, to: impl AsFd) -> io::Result<usize> {
    let mut moved = 0;
    for _ in 0..STEPS {
        let step = match direction.wait() {
            Wait::Nothing => break,
            Wait::Input => direction.fill(&from, &to).map(|()| 0),
            Wait::Room => direction.drain(&to),
        };
        match step {
            Ok(count) => moved += count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) => return Err(error),
        }
    }
    Ok(moved)
}
