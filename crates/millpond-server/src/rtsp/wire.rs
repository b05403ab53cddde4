//! The sending side of an RTSP connection: replies and interleaved packets share it.

use std::{
    io::{self, IoSlice},
    sync::{Mutex, MutexGuard, PoisonError},
};
use tokio::{net::TcpStream, sync::Notify};

/// More than this waiting: frames are left out until there is less.
const ENOUGH: usize = 256 << 10;
/// More than this: the client doesn't read.
const MOST: usize = 1 << 20;
/// Pieces in one system call (IOV_MAX is 1024).
const SLICES: usize = 1024;

/// What waits to be sent to one client.
#[derive(Debug)]
pub(super) struct Wire {
    stream: TcpStream,
    /// A lock: taken by the connection for each reply, and by the transmitter in its rounds; never while waiting.
    pending: Mutex<Vec<u8>>,
    /// Rung when something waits that the socket didn't take.
    waiting: Notify,
}

/// How much room there is for a client that may be slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// It keeps up.
    Enough,
    /// Droppable frames are left out.
    Little,
    /// It doesn't read, or is gone.
    None,
}

impl Wire {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self { stream, pending: Mutex::new(Vec::new()), waiting: Notify::new() }
    }

    pub(super) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    fn lock(&self) -> MutexGuard<'_, Vec<u8>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds bytes and sends what the socket takes now.
    pub(super) fn send(&self, write: impl FnOnce(&mut Vec<u8>)) -> Room {
        let mut pending = self.lock();
        write(&mut pending);
        let room = self.flush(&mut pending);
        let waits = !pending.is_empty();
        drop(pending);
        if waits {
            self.waiting.notify_one();
        }
        room
    }

    /// Adds bytes that lie in pieces: those that the socket takes now are not copied.
    pub(super) fn send_slices(&self, mut slices: &mut [IoSlice<'_>]) -> Room {
        let mut pending = self.lock();
        while pending.is_empty() && !slices.is_empty() {
            let most = slices.len().min(SLICES);
            match self.stream.try_write_vectored(&slices[..most]) {
                Ok(0) => return Room::None,
                Ok(count) => IoSlice::advance_slices(&mut slices, count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => return Room::None,
            }
        }
        slices.iter().for_each(|slice| pending.extend_from_slice(slice));
        let room = room(pending.len());
        let waits = !pending.is_empty();
        drop(pending);
        if waits {
            self.waiting.notify_one();
        }
        room
    }

    /// How much room there is now.
    pub(super) fn room(&self) -> Room {
        room(self.lock().len())
    }

    fn flush(&self, pending: &mut Vec<u8>) -> Room {
        let mut sent = 0;
        while sent < pending.len() {
            match self.stream.try_write(&pending[sent..]) {
                Ok(0) => return Room::None,
                Ok(count) => sent += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => return Room::None,
            }
        }
        pending.drain(..sent);
        if pending.is_empty() {
            // Who keeps up holds no buffer.
            *pending = Vec::new();
        }
        room(pending.len())
    }

    /// Sends what waits whenever the socket takes more. Runs until the connection fails, or the client doesn't read.
    pub(super) async fn drain(&self) -> io::Result<()> {
        loop {
            self.waiting.notified().await;
            loop {
                self.stream.writable().await?;
                let mut pending = self.lock();
                if self.flush(&mut pending) == Room::None {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                if pending.is_empty() {
                    break;
                }
            }
        }
    }
}

fn room(waiting: usize) -> Room {
    if waiting <= ENOUGH {
        Room::Enough
    } else if waiting <= MOST {
        Room::Little
    } else {
        Room::None
    }
}
