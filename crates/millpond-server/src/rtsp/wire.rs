//! An RTSP connection's bytes: replies and interleaved packets share the way out.

use super::secure::Secure;
use bytes::BytesMut;
use millpond_stream::outlet::Backlog;
use rustix::{io::Errno, net::SendFlags};
use std::{
    io::{self, IoSlice},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{net::TcpStream, sync::Notify, time::timeout};
use tokio_rustls::server::TlsStream;

/// Waiting bytes above which frames are dropped.
const ENOUGH: usize = 256 << 10;
/// Waiting bytes above which the client counts as stuck.
const MOST: usize = 1 << 20;
/// Pieces in one system call (IOV_MAX is 1024).
const SLICES: usize = 1024;
/// Room for what is read at once: most requests fit.
const READ: usize = 2048;

/// A connection to one client, and what waits to be sent on it.
#[derive(Debug)]
pub(super) struct Wire {
    stream: TcpStream,
    is_secure: bool,
    /// A lock: taken by the connection for each reply, and by the transmitter in its rounds; never while waiting.
    outgoing: Mutex<Outgoing>,
    /// Rung when something waits that the socket didn't take.
    waiting: Notify,
}

#[derive(Debug)]
struct Outgoing {
    /// As it goes to the socket: encrypted, over TLS.
    pending: Vec<u8>,
    secure: Option<Secure>,
}

impl Wire {
    /// A connection as it is.
    pub(super) fn new(stream: TcpStream) -> Self {
        Self::with(stream, None)
    }

    /// A connection over TLS.
    pub(super) fn secure(stream: TlsStream<TcpStream>) -> Self {
        let (stream, connection) = stream.into_inner();
        Self::with(stream, Some(Secure::new(connection)))
    }

    fn with(stream: TcpStream, secure: Option<Secure>) -> Self {
        let is_secure = secure.is_some();
        let outgoing = Mutex::new(Outgoing { pending: Vec::new(), secure });
        Self { stream, is_secure, outgoing, waiting: Notify::new() }
    }

    /// Whether nobody on the way can read it.
    pub(super) fn is_secure(&self) -> bool {
        self.is_secure
    }

    fn lock(&self) -> MutexGuard<'_, Outgoing> {
        self.outgoing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets go of what is to be sent; what waits is sent when the socket takes it.
    fn release(&self, outgoing: MutexGuard<'_, Outgoing>) {
        let waits = !outgoing.pending.is_empty();
        drop(outgoing);
        if waits {
            self.waiting.notify_one();
        }
    }

    /// Adds bytes and sends what the socket takes now.
    pub(super) fn send(&self, write: impl FnOnce(&mut Vec<u8>)) -> Backlog {
        let mut outgoing = self.lock();
        let Outgoing { pending, secure } = &mut *outgoing;
        let backlog = match secure {
            None => {
                write(pending);
                flush(&self.stream, pending)
            }
            Some(secure) => {
                let mut plain = Vec::new();
                write(&mut plain);
                match secure.seal(&mut [IoSlice::new(&plain)], &self.stream, pending) {
                    Ok(()) => backlog(pending.len()),
                    Err(_) => Backlog::Stuck,
                }
            }
        };
        self.release(outgoing);
        backlog
    }

    /// Adds bytes that lie in pieces: those that the socket takes now are not copied, but for being encrypted.
    pub(super) fn send_slices(&self, mut slices: &mut [IoSlice<'_>]) -> Backlog {
        let mut outgoing = self.lock();
        let Outgoing { pending, secure } = &mut *outgoing;
        if let Some(secure) = secure {
            if secure.seal(slices, &self.stream, pending).is_err() {
                return Backlog::Stuck;
            }
        } else {
            while pending.is_empty() && !slices.is_empty() {
                let most = slices.len().min(SLICES);
                match self.stream.try_write_vectored(&slices[..most]) {
                    Ok(0) => return Backlog::Stuck,
                    Ok(count) => IoSlice::advance_slices(&mut slices, count),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(_) => return Backlog::Stuck,
                }
            }
            slices.iter().for_each(|slice| pending.extend_from_slice(slice));
        }
        let backlog = backlog(pending.len());
        self.release(outgoing);
        backlog
    }

    /// How far the client is behind.
    pub(super) fn backlog(&self) -> Backlog {
        backlog(self.lock().pending.len())
    }

    /// Sends what waits whenever the socket takes more. Runs until the connection fails, or the client takes nothing for `most`.
    pub(super) async fn drain(&self, most: Duration) -> io::Result<()> {
        loop {
            self.waiting.notified().await;
            loop {
                let is_writable = timeout(most, self.stream.writable()).await;
                let mut outgoing = self.lock();
                match is_writable {
                    Ok(writable) => writable?,
                    // A socket calls itself writable when a third of its buffer is free: a slow client may have taken less.
                    Err(_) if !force(&self.stream, &mut outgoing.pending)? => {
                        return Err(io::Error::new(io::ErrorKind::TimedOut, "a client that takes nothing"));
                    }
                    Err(_) => continue,
                }
                if flush(&self.stream, &mut outgoing.pending) == Backlog::Stuck {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                if outgoing.pending.is_empty() {
                    break;
                }
            }
        }
    }

    /// Waits for bytes and adds them; says how many, 0 at the end. Nothing is lost when it is not waited for any more.
    ///
    /// # Errors
    /// The connection failed.
    pub(super) async fn read(&self, input: &mut BytesMut) -> io::Result<usize> {
        if self.is_secure
            && let Some(secure) = &mut self.lock().secure
        {
            // It may have come with the end of the handshake.
            let count = secure.take(input);
            if count > 0 {
                return Ok(count);
            }
        }
        loop {
            self.stream.readable().await?;
            match self.try_read(input) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return read,
            }
        }
    }

    fn try_read(&self, input: &mut BytesMut) -> io::Result<usize> {
        if !self.is_secure {
            input.reserve(READ);
            return self.stream.try_read_buf(input);
        }
        let mut outgoing = self.lock();
        let Outgoing { pending, secure } = &mut *outgoing;
        let Some(secure) = secure else { return Ok(0) };
        let read = secure.read(&self.stream, input);
        // An alert, or an answer to new keys. Where it can't be sent the next write will say so.
        let _ = secure.flush(&self.stream, pending);
        self.release(outgoing);
        read
    }

    /// Says that nothing will follow, where that can be said.
    pub(super) fn close(&self) {
        let mut outgoing = self.lock();
        let Outgoing { pending, secure } = &mut *outgoing;
        if let Some(secure) = secure {
            secure.close();
            // Who is gone doesn't hear it.
            let _ = secure.flush(&self.stream, pending);
        }
    }
}

fn flush(stream: &TcpStream, pending: &mut Vec<u8>) -> Backlog {
    let mut sent = 0;
    while sent < pending.len() {
        match stream.try_write(&pending[sent..]) {
            Ok(0) => return Backlog::Stuck,
            Ok(count) => sent += count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(_) => return Backlog::Stuck,
        }
    }
    pending.drain(..sent);
    if pending.is_empty() {
        // A client that keeps up holds no buffer.
        *pending = Vec::new();
    }
    backlog(pending.len())
}

/// Sends what fits in the socket's buffer, whether the socket calls itself writable or not; `false` where nothing fits.
fn force(stream: &TcpStream, pending: &mut Vec<u8>) -> io::Result<bool> {
    match rustix::net::send(stream, pending, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
        Ok(count) => {
            pending.drain(..count);
            Ok(count > 0)
        }
        Err(Errno::AGAIN | Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

pub(super) fn backlog(waiting: usize) -> Backlog {
    if waiting <= ENOUGH {
        Backlog::Low
    } else if waiting <= MOST {
        Backlog::High
    } else {
        Backlog::Stuck
    }
}

#[cfg(test)]
mod tests;
