//! Passes the bytes of two connections on in both directions through pipes of the kernel (splice(2)).

use crate::kernel_pipe::{CAPACITY, KernelPipe};
use prometheus_client::metrics::counter::Counter;
use rustix::{
    io::Errno,
    pipe::{SpliceFlags, splice},
};
use socket2::SockRef;
use std::{
    io,
    net::Shutdown,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};
use tokio::{io::Interest, net::TcpStream, time::sleep};

/// Counters of passed bytes: to the server, and to the client.
pub(super) struct Passed<'a> {
    pub(super) to_server: &'a Counter,
    pub(super) to_client: &'a Counter,
}

/// Passes bytes on until both sides have ended. The end of one side is passed on alone; the other one may go on.
///
/// # Errors
/// One side was reset, or no byte moved for `idle`. Both connections are then to be reset.
pub(super) async fn relay(
    client: &TcpStream,
    server: &TcpStream,
    idle: Duration,
    passed: Passed<'_>,
) -> io::Result<()> {
    let moved = AtomicU64::new(0);
    let both = async {
        tokio::try_join!(
            carry(client, server, (&moved, passed.to_server)),
            carry(server, client, (&moved, passed.to_client))
        )
    };
    let ended = tokio::select! {
        ended = both => ended.map(|_| ()),
        () = stillness(&moved, idle) => Err(io::Error::new(io::ErrorKind::TimedOut, "no byte was passed on in time")),
    };
    if ended.is_err() {
        // Both sides see a reset instead of an end that looks regular.
        for side in [client, server] {
            let _ = SockRef::from(side).set_linger(Some(Duration::ZERO));
        }
    }
    ended
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
async fn carry(from: &TcpStream, to: &TcpStream, (moved, passed): (&AtomicU64, &Counter)) -> io::Result<()> {
    loop {
        from.readable().await?;
        // A connection without bytes has no pipe.
        let pipe = KernelPipe::take()?;
        let queued = from.try_io(Interest::READABLE, || pass(from, &pipe.write, CAPACITY));
        match queued {
            Ok(0) => {
                pipe.put_back();
                // The other side may have been reset meanwhile: its own direction tells.
                let _ = SockRef::from(to).shutdown(Shutdown::Write);
                return Ok(());
            }
            Ok(queued) => {
                let mut left = queued;
                while left > 0 {
                    match to.try_io(Interest::WRITABLE, || pass(&pipe.read, to, left)) {
                        Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                        Ok(count) => left -= count,
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => to.writable().await?,
                        Err(error) => return Err(error),
                    }
                }
                moved.fetch_add(queued as u64, Ordering::Relaxed);
                passed.inc_by(queued as u64);
                pipe.put_back();
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => pipe.put_back(),
            Err(error) => return Err(error),
        }
    }
}

/// Moves at most `most` bytes without waiting.
fn pass(from: impl rustix::fd::AsFd, to: impl rustix::fd::AsFd, most: usize) -> io::Result<usize> {
    loop {
        match splice(&from, None, &to, None, most, SpliceFlags::NONBLOCK | SpliceFlags::MOVE) {
            Err(Errno::INTR) => {}
            other => return Ok(other?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpListener,
    };

    /// Two ends of a connection.
    async fn connection() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let ours = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (ours, listener.accept().await.unwrap().0)
    }

    /// A relay between two connections, and their far ends: client and server.
    async fn relayed(idle: Duration) -> (tokio::task::JoinHandle<(io::Result<()>, u64, u64)>, TcpStream, TcpStream) {
        let ((client, ours), (theirs, server)) = (connection().await, connection().await);
        let task = tokio::spawn(async move {
            let (to_server, to_client) = (Counter::default(), Counter::default());
            let passed = Passed { to_server: &to_server, to_client: &to_client };
            let ended = relay(&ours, &theirs, idle, passed).await;
            (ended, to_server.get(), to_client.get())
        });
        (task, client, server)
    }

    #[tokio::test]
    async fn a_side_that_has_ended_still_gets_the_other_ones_bytes() {
        let (task, mut client, mut server) = relayed(Duration::from_secs(60)).await;
        client.write_all(b"question").await.unwrap();
        client.shutdown().await.unwrap();
        let mut asked = Vec::new();
        server.read_to_end(&mut asked).await.unwrap();
        assert_eq!(asked, b"question");
        // More than pipe and sockets hold, to a client that reads later.
        let answer: Vec<u8> = (0..20_000_000_u32).map(|n| (n % 251) as u8).collect();
        let sent = answer.clone();
        let sending = tokio::spawn(async move {
            server.write_all(&sent).await.unwrap();
            server.shutdown().await.unwrap();
        });
        sleep(Duration::from_millis(50)).await;
        let mut got = Vec::new();
        client.read_to_end(&mut got).await.unwrap();
        assert!(got == answer, "{} bytes", got.len());
        sending.await.unwrap();
        let (ended, to_server, to_client) = task.await.unwrap();
        assert!(ended.is_ok());
        assert_eq!((to_server, to_client), (8, 20_000_000));
    }

    #[tokio::test]
    async fn silence_and_resets_end_both_sides() {
        let (task, mut client, mut server) = relayed(Duration::from_millis(50)).await;
        assert_eq!(task.await.unwrap().0.unwrap_err().kind(), io::ErrorKind::TimedOut);
        let mut byte = [0];
        assert_eq!(client.read(&mut byte).await.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
        assert_eq!(server.read(&mut byte).await.unwrap_err().kind(), io::ErrorKind::ConnectionReset);

        let (task, client, mut server) = relayed(Duration::from_secs(60)).await;
        SockRef::from(&client).set_linger(Some(Duration::ZERO)).unwrap();
        drop(client);
        assert_eq!(server.read(&mut byte).await.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
        assert!(task.await.unwrap().0.is_err());
    }
}
