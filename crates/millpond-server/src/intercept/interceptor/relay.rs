//! Passes the bytes of two connections on in both directions through pipes of the kernel (splice(2)).
//!
//! The threads that all connections share do that, as long as a connection is not fast. Beside others they are woken for each
//! few bytes of it, and wake each other. So a fast connection gets one of the [`FastThreads`] until it is slow again.

mod direction;
#[cfg(test)]
mod tests;
mod thread;

pub(super) use thread::FastThreads;

use direction::{Direction, Wait};
use prometheus_client::metrics::counter::Counter;
use socket2::SockRef;
use std::{
    io,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};
use thread::Link;
use tokio::{io::Interest, net::TcpStream, sync::OwnedSemaphorePermit, task::consume_budget, time::sleep};

/// Counters of passed bytes: to the server, and to the client.
pub(super) struct Passed<'a> {
    pub(super) to_server: &'a Counter,
    pub(super) to_client: &'a Counter,
}

/// Why the common threads pass no more bytes of a connection.
enum Stop {
    /// It is fast, and may have a thread of its own.
    Fast(OwnedSemaphorePermit),
    Failed(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

/// Passes bytes on until both sides have ended. The end of one side is passed on alone; the other one may go on.
///
/// # Errors
/// One side was reset, or no byte moved for `idle`. Both connections are then reset.
pub(super) async fn relay(
    mut client: TcpStream,
    mut server: TcpStream,
    idle: Duration,
    passed: Passed<'_>,
    threads: &FastThreads,
) -> io::Result<()> {
    let mut directions = [passed.to_server, passed.to_client].map(|counter| Direction::new(counter.clone()));
    loop {
        let stopped = carry_both((&client, &server), &mut directions, idle, threads).await;
        let permit = match stopped {
            Ok(()) => return Ok(()),
            Err(Stop::Fast(permit)) => permit,
            Err(Stop::Failed(error)) => {
                reset([SockRef::from(&client), SockRef::from(&server)]);
                return Err(error);
            }
        };
        let link = Link { client: client.into_std()?, server: server.into_std()?, directions };
        let (link, ended) = thread::run(link, permit).await?;
        if ended.is_err() {
            reset([SockRef::from(&link.client), SockRef::from(&link.server)]);
            return ended;
        }
        directions = link.directions;
        if directions.iter().all(|direction| direction.wait() == Wait::Nothing) {
            return Ok(());
        }
        (client, server) = (TcpStream::from_std(link.client)?, TcpStream::from_std(link.server)?);
    }
}

/// Lets both sides see a reset instead of an end that looks regular.
fn reset(sides: [SockRef<'_>; 2]) {
    for side in sides {
        let _ = side.set_linger(Some(Duration::ZERO));
    }
}

/// Passes bytes on by the common threads.
async fn carry_both(
    (client, server): (&TcpStream, &TcpStream),
    [to_server, to_client]: &mut [Direction; 2],
    idle: Duration,
    threads: &FastThreads,
) -> Result<(), Stop> {
    let moved = AtomicU64::new(0);
    let both = async {
        tokio::try_join!(
            carry(to_server, (client, server), &moved, threads),
            carry(to_client, (server, client), &moved, threads)
        )
    };
    tokio::select! {
        ended = both => ended.map(|_| ()),
        () = stillness(&moved, idle) => Err(io::Error::new(io::ErrorKind::TimedOut, "no byte was passed on in time").into()),
    }
}

/// Waits until no byte has moved for `idle` at least.
async fn stillness(moved: &AtomicU64, idle: Duration) {
    loop {
        let before = moved.load(Ordering::Relaxed);
        sleep(idle).await;
        if moved.load(Ordering::Relaxed) == before {
            return;
        }
    }
}

/// Passes bytes on in one direction until its end, and the end after them.
async fn carry(
    direction: &mut Direction,
    (from, to): (&TcpStream, &TcpStream),
    moved: &AtomicU64,
    threads: &FastThreads,
) -> Result<(), Stop> {
    loop {
        // The attempts take no budget themselves: a fast transfer would hold the thread.
        consume_budget().await;
        let step = match direction.wait() {
            Wait::Nothing => return Ok(()),
            Wait::Input => {
                from.readable().await?;
                from.try_io(Interest::READABLE, || direction.fill(from, to)).map(|()| 0)
            }
            Wait::Room => match to.try_io(Interest::WRITABLE, || direction.drain(to)) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    to.writable().await?;
                    Ok(0)
                }
                other => other,
            },
        };
        match step {
            Ok(count) => {
                moved.fetch_add(count as u64, Ordering::Relaxed);
                if direction.is_fast() == Some(true)
                    && let Some(permit) = threads.take()
                {
                    return Err(Stop::Fast(permit));
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error.into()),
        }
    }
}
