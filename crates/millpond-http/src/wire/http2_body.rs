//! The body of one HTTP/2 stream. Bytes are read or made once the client's window has room for them.

use super::{
    budget::{ConnectionBudget, Reservation},
    error::ReplyError,
    meter::SendMeter,
};
use crate::body::{Body, BodyError, Chunk, buffers::PooledBuffer, residency};
use bytes::Bytes;
use h2::{Reason, SendStream};
use millpond_store::Pin;
use std::{fs::File, future::poll_fn, io, ops::Range, sync::Arc, time::Duration};
use tokio::time::{Instant, timeout_at};

/// Most bytes that are handed to the connection at a time.
const STEP: usize = 64 << 10;
/// Bytes that a client must take within the write timeout, unless fewer are left. A socket frees about as many before
/// it becomes writable, so HTTP/1 demands no less.
const PROGRESS: usize = 4 << 10;

/// A chunk of the body that is not sent yet.
enum Unsent {
    /// Bytes in memory.
    Bytes(Bytes),
    /// A range of a file.
    File { file: Arc<File>, range: Range<u64>, _pin: Option<Pin> },
}

/// Sends one body.
pub(super) struct StreamBody<'a> {
    stream: SendStream<Bytes>,
    body: Body,
    budget: &'a ConnectionBudget,
    unsent: Option<Unsent>,
    /// Memory for the body's bytes, reserved while some are in memory.
    reservation: Option<Arc<Reservation>>,
    /// Bytes still to send, if the length is known.
    left: Option<u64>,
    /// Counts the bytes that were handed to the connection.
    meter: SendMeter,
    deadline: WriteDeadline,
}

impl<'a> StreamBody<'a> {
    /// Creates the sender of a body. A body that has begun in memory comes with its reservation.
    pub(super) fn new(
        stream: SendStream<Bytes>,
        body: Body,
        budget: &'a ConnectionBudget,
        reservation: Option<Reservation>,
        timeout: Duration,
        meter: SendMeter,
    ) -> Self {
        let left = body.len();
        let deadline = WriteDeadline::new(timeout, Instant::now());
        let reservation = reservation.map(Arc::new);
        Self { stream, body, budget, unsent: None, reservation, left, meter, deadline }
    }

    /// Sends the body to its end. Resets the stream after a failure.
    ///
    /// # Errors
    /// Those of the body and of the client.
    pub(super) async fn run(&mut self) -> Result<(), ReplyError> {
        let result = self.send_all().await;
        match &result {
            Ok(()) => {}
            Err(ReplyError::Body(_)) => self.stream.send_reset(Reason::INTERNAL_ERROR),
            Err(ReplyError::Client(_) | ReplyError::Kicked | ReplyError::Expired) => {
                self.stream.send_reset(Reason::CANCEL)
            }
        }
        result
    }

    /// Sends the body to its end.
    async fn send_all(&mut self) -> Result<(), ReplyError> {
        loop {
            if self.unsent.is_none() && self.body.is_stream() {
                // The next chunk may be long in coming. Others need the memory, and the client is not late.
                self.reservation = None;
                if !self.pull().await? {
                    return Ok(self.stream.send_data(Bytes::new(), true).map_err(io::Error::other)?);
                }
            }
            // Only pulling finds the end of a body of unknown length. The end needs no room in the window.
            let may_be_over = self.left.is_none() && self.meter.body() > 0 && self.unsent.is_none();
            let granted = if may_be_over { 0 } else { self.capacity().await? };
            self.reserve_memory().await?;
            if self.unsent.is_none() && !self.pull().await? {
                if self.left.is_some_and(|left| left > 0) {
                    return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
                }
                return Ok(self.stream.send_data(Bytes::new(), true).map_err(io::Error::other)?);
            }
            if granted == 0 {
                continue;
            }
            let bytes = self.read(granted).await?;
            let len = bytes.len();
            // An unreadable chunk: the body repeats it.
            if len == 0 {
                continue;
            }
            self.meter.wrote(len as u64);
            self.left = self.left.map(|left| left.saturating_sub(len as u64));
            self.deadline.took(len, Instant::now());
            let last = self.left == Some(0);
            self.stream.send_data(bytes, last).map_err(io::Error::other)?;
            if last {
                return Ok(());
            }
            if !self.holds_bytes() {
                self.reservation = None;
            }
        }
    }

    /// Waits until the client's windows have room, and returns how much.
    async fn capacity(&mut self) -> io::Result<usize> {
        let want = self.left.map_or(STEP, |left| STEP.min(usize::try_from(left).unwrap_or(STEP)));
        self.stream.reserve_capacity(want);
        loop {
            let granted = self.stream.capacity();
            if granted > 0 {
                return Ok(granted.min(want));
            }
            if self.body.is_stream() {
                self.body.held_up();
            }
            let more = poll_fn(|cx| self.stream.poll_capacity(cx));
            match timeout_at(self.deadline.at, more).await {
                Ok(Some(Ok(_))) => {}
                Ok(Some(Err(error))) => return Err(io::Error::other(error)),
                Ok(None) => return Err(io::ErrorKind::ConnectionReset.into()),
                Err(_) => return Err(late()),
            }
        }
    }

    /// Waits for memory. A slow connection may itself be the reason for the wait, so the write timeout limits it.
    async fn reserve_memory(&mut self) -> io::Result<()> {
        if self.reservation.is_none() {
            let reservation = tokio::select! {
                biased;
                reserved = timeout_at(self.deadline.at, self.budget.body()) => reserved.map_err(|_| late())?,
                _ = poll_fn(|cx| self.stream.poll_reset(cx)) => return Err(io::ErrorKind::ConnectionReset.into()),
            };
            self.reservation = reservation.map(Arc::new);
        }
        Ok(())
    }

    /// Pulls the next chunk of the body. Returns false at its end.
    async fn pull(&mut self) -> Result<bool, ReplyError> {
        let began = Instant::now();
        let chunk = tokio::select! {
            biased;
            chunk = self.body.next() => chunk?,
            _ = poll_fn(|cx| self.stream.poll_reset(cx)) => {
                return Err(io::Error::from(io::ErrorKind::ConnectionReset).into());
            }
        };
        self.deadline.pause(began.elapsed());
        self.unsent = chunk.map(|chunk| match chunk {
            Chunk::Bytes(bytes) => Unsent::Bytes(bytes),
            Chunk::Owned(buffer) => Unsent::Bytes(Bytes::from_owner(PooledBuffer::of(buffer))),
            Chunk::File { file, range, pin } => Unsent::File { file, range, _pin: pin },
        });
        Ok(self.unsent.is_some())
    }

    /// Returns at most `granted` bytes of the unsent chunk.
    async fn read(&mut self, granted: usize) -> Result<Bytes, BodyError> {
        let (bytes, empty) = match &mut self.unsent {
            None => return Ok(Bytes::new()),
            Some(Unsent::Bytes(bytes)) => {
                let first = bytes.split_to(granted.min(bytes.len()));
                (first, bytes.is_empty())
            }
            Some(Unsent::File { file, range, .. }) => {
                let end = range.end.min(range.start + granted as u64);
                let mut buffer = Vec::with_capacity((end - range.start) as usize);
                if let Err(error) = residency::append(file, range.start..end, &mut buffer).await {
                    let rest = range.end - range.start;
                    self.unsent = None;
                    self.body.resume(rest, error)?;
                    return Ok(Bytes::new());
                }
                range.start = end;
                (Bytes::from(buffer), range.is_empty())
            }
        };
        if empty {
            self.unsent = None;
        }
        Ok(Bytes::from_owner(ReservedBytes { bytes, _reservation: self.reservation.clone() }))
    }

    /// Tells whether bytes of the body are in memory.
    fn holds_bytes(&self) -> bool {
        matches!(self.unsent, Some(Unsent::Bytes(_))) || self.body.holds_bytes()
    }
}

/// Bytes being sent, with their reservation.
struct ReservedBytes {
    bytes: Bytes,
    _reservation: Option<Arc<Reservation>>,
}

impl AsRef<[u8]> for ReservedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The time until which a client must have taken [`PROGRESS`] bytes.
struct WriteDeadline {
    timeout: Duration,
    at: Instant,
    /// Bytes taken since the deadline was set.
    taken: usize,
}

impl WriteDeadline {
    /// Sets the first deadline.
    fn new(timeout: Duration, now: Instant) -> Self {
        Self { timeout, at: now + timeout, taken: 0 }
    }

    /// Counts bytes that the client took.
    fn took(&mut self, bytes: usize, now: Instant) {
        self.taken += bytes;
        if self.taken >= PROGRESS {
            self.taken = 0;
            self.at = now + self.timeout;
        }
    }

    /// Extends the deadline by a time in which the client waited for the server.
    fn pause(&mut self, waited: Duration) {
        self.at += waited;
    }
}

/// Returns the error of a client that took too few bytes.
fn late() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "the client took too few bytes in time")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trickling_is_no_progress() {
        let (timeout, start) = (Duration::from_secs(10), Instant::now());
        let mut deadline = WriteDeadline::new(timeout, start);
        let later = start + Duration::from_secs(5);
        deadline.took(PROGRESS - 1, later);
        assert_eq!(deadline.at, start + timeout);
        deadline.took(1, later);
        assert_eq!(deadline.at, later + timeout);
        let origin = Duration::from_secs(60);
        deadline.pause(origin);
        assert_eq!(deadline.at, later + timeout + origin, "waiting for the storage is no fault of the client");
    }
}
