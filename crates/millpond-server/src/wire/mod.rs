//! The bytes of a TCP connection on which media leaves from the sending threads: of RTSP, or of a peer of WebRTC. All that is sent shares one
//! output queue.

mod secure;

use bytes::BytesMut;
use millpond_stream::outlet::Backlog;
use rustix::{io::Errno, net::SendFlags};
use secure::Secure;
use std::{
    io::{self, IoSlice},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{net::TcpStream, sync::Notify, task::consume_budget, time::timeout};
use tokio_rustls::server::TlsStream;

/// Queued bytes above which frames of live streams wait in their graph.
const SOME: usize = 16 << 10;
/// Queued bytes above which frames are dropped.
const ENOUGH: usize = 256 << 10;
/// Queued bytes above which the client counts as stuck.
const MOST: usize = 1 << 20;
/// Most bytes of live streams that wait in the kernel for room in the client's window.
const UNSENT_BYTES: u32 = 32 << 10;
/// Size of the read buffer: most requests fit.
const READ: usize = 2048;

/// A connection to one client, with its output queue.
#[derive(Debug)]
pub(crate) struct Wire {
    stream: TcpStream,
    is_secure: bool,
    /// A lock: taken by the connection for each reply, and by the transmitter in its rounds. It is never held across a
    /// wait.
    outgoing: Mutex<Outgoing>,
    /// Signalled when the socket did not accept all bytes.
    waiting: Notify,
}

#[derive(Debug)]
struct Outgoing {
    /// Queued bytes as the socket gets them: encrypted, if the connection has TLS.
    pending: Vec<u8>,
    secure: Option<Secure>,
}

impl Wire {
    /// Creates a plain connection.
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self::with(stream, None)
    }

    /// Creates a connection over TLS.
    pub(crate) fn secure(stream: TlsStream<TcpStream>) -> Self {
        let (stream, connection) = stream.into_inner();
        Self::with(stream, Some(Secure::new(connection)))
    }

    fn with(stream: TcpStream, secure: Option<Secure>) -> Self {
        let is_secure = secure.is_some();
        let outgoing = Mutex::new(Outgoing { pending: Vec::new(), secure });
        Self { stream, is_secure, outgoing, waiting: Notify::new() }
    }

    /// Whether the connection is encrypted.
    pub(crate) fn is_secure(&self) -> bool {
        self.is_secure
    }

    fn lock(&self) -> MutexGuard<'_, Outgoing> {
        self.outgoing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Releases the queue. [`drain`](Self::drain) sends the queued bytes when the socket accepts more.
    fn release(&self, outgoing: MutexGuard<'_, Outgoing>) {
        let waits = !outgoing.pending.is_empty();
        drop(outgoing);
        if waits {
            self.waiting.notify_one();
        }
    }

    /// Appends bytes and sends as many as the socket accepts now.
    pub(crate) fn send(&self, write: impl FnOnce(&mut Vec<u8>)) -> Backlog {
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

    /// Sends bytes behind the queue. What the socket accepts now is not queued, except by encryption.
    pub(crate) fn send_bytes(&self, mut bytes: &[u8]) -> Backlog {
        let mut outgoing = self.lock();
        let Outgoing { pending, secure } = &mut *outgoing;
        if let Some(secure) = secure {
            if secure.seal(&mut [IoSlice::new(bytes)], &self.stream, pending).is_err() {
                return Backlog::Stuck;
            }
        } else {
            while pending.is_empty() && !bytes.is_empty() {
                // Straight to the socket: this is the path of every frame.
                match rustix::net::send(&self.stream, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                    Ok(count) if count > 0 => bytes = &bytes[count..],
                    Err(Errno::AGAIN) => break,
                    Err(Errno::INTR) => {}
                    Ok(_) | Err(_) => return Backlog::Stuck,
                }
            }
            pending.extend_from_slice(bytes);
        }
        let backlog = backlog(pending.len());
        self.release(outgoing);
        backlog
    }

    /// Bounds the bytes that wait in the kernel before they are sent (tcp(7), TCP_NOTSENT_LOWAT), from now on.
    pub(crate) fn bound_unsent(&self) {
        // An error only means older media for slow clients.
        let _ = socket2::SockRef::from(&self.stream).set_tcp_notsent_lowat(UNSENT_BYTES);
    }

    /// Returns how far the client is behind.
    pub(crate) fn backlog(&self) -> Backlog {
        backlog(self.lock().pending.len())
    }

    /// Sends queued bytes whenever the socket accepts more. Runs until the connection fails, or the client accepts
    /// nothing for `most`.
    pub(crate) async fn drain(&self, most: Duration) -> io::Result<()> {
        loop {
            self.waiting.notified().await;
            loop {
                let is_writable = timeout(most, self.stream.writable()).await;
                let mut outgoing = self.lock();
                match is_writable {
                    Ok(writable) => writable?,
                    // A socket is writable when a third of its buffer is free: a slow client may have read less.
                    Err(_) if !force(&self.stream, &mut outgoing.pending)? => {
                        return Err(io::Error::new(io::ErrorKind::TimedOut, "a client that accepts no bytes"));
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

    /// Waits for bytes and appends them. Returns their number, 0 at the end. Cancel safe.
    ///
    /// # Errors
    /// The connection failed.
    pub(crate) async fn read(&self, input: &mut BytesMut) -> io::Result<usize> {
        if self.is_secure
            && let Some(secure) = &mut self.lock().secure
        {
            // They may have arrived with the end of the handshake.
            let count = secure.take(input);
            if count > 0 {
                return Ok(count);
            }
        }
        loop {
            // The attempts take no budget themselves: a client that sends without end would hold the thread.
            consume_budget().await;
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
        // An alert, or a reply to new keys. If it cannot be sent, the next write fails too.
        let _ = secure.flush(&self.stream, pending);
        self.release(outgoing);
        read
    }

    /// Ends the connection, whatever is queued: its reader finds the end.
    pub(crate) fn shut(&self) {
        // A connection that has ended already needs nothing.
        let _ = socket2::SockRef::from(&self.stream).shutdown(std::net::Shutdown::Both);
    }

    /// Announces the end of the stream, if possible.
    pub(crate) fn close(&self) {
        let mut outgoing = self.lock();
        let Outgoing { pending, secure } = &mut *outgoing;
        if let Some(secure) = secure {
            secure.close();
            // A client that has left does not receive it.
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
        // A client that keeps up needs no buffer.
        *pending = Vec::new();
    }
    backlog(pending.len())
}

/// Sends as much as fits into the socket's buffer, without waiting until it is writable. Returns `false` where nothing
/// fits.
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

pub(crate) fn backlog(waiting: usize) -> Backlog {
    if waiting <= SOME {
        Backlog::Low
    } else if waiting <= ENOUGH {
        Backlog::Medium
    } else if waiting <= MOST {
        Backlog::High
    } else {
        Backlog::Stuck
    }
}

#[cfg(test)]
mod tests;
