//! The body of one HTTP/2 stream: the next piece is read or made once the client's window has room for it.

use super::{
    Body, BodyError,
    buffers::Lent,
    chunk::Chunk,
    listen::SendError,
    meter::Meter,
    residency,
    room::{Share, Ticket},
};
use bytes::Bytes;
use h2::{Reason, SendStream};
use millpond_store::Pin;
use std::{fs::File, future::poll_fn, io, ops::Range, sync::Arc, time::Duration};
use tokio::time::{Instant, timeout_at};

/// Most that is handed to the connection at a time.
const PIECE: usize = 64 << 10;
/// Bytes that a client must take within the write timeout, where so many are left: what a socket takes before it says
/// that it has room again, so that other versions of HTTP ask for no less.
const PROGRESS: usize = 4 << 10;

/// What was got from the body and is not sent yet.
enum Held {
    /// In memory.
    Bytes(Bytes),
    /// Where it lies.
    File { file: Arc<File>, range: Range<u64>, _pin: Option<Pin> },
}

/// Sends one body.
pub(crate) struct Flow<'a> {
    stream: SendStream<Bytes>,
    body: Body,
    share: &'a Share,
    held: Option<Held>,
    /// Room for the body's bytes: kept while some are in memory.
    room: Option<Arc<Ticket>>,
    /// Bytes to come, where that is known.
    left: Option<u64>,
    /// Counts the bytes of the body that were given to the connection.
    meter: Meter,
    clock: Clock,
}

impl<'a> Flow<'a> {
    /// `room` is what the body's first bytes are in, where it has begun in memory.
    pub(crate) fn new(
        stream: SendStream<Bytes>,
        body: Body,
        share: &'a Share,
        room: Option<Ticket>,
        patience: Duration,
        meter: Meter,
    ) -> Self {
        let left = body.len();
        let clock = Clock::new(patience, Instant::now());
        Self { stream, body, share, held: None, room: room.map(Arc::new), left, meter, clock }
    }

    /// Sends the body to its end; resets the stream where that fails.
    pub(crate) async fn run(&mut self) -> Result<(), SendError> {
        let result = self.pump().await;
        match &result {
            Ok(()) => {}
            Err(SendError::Body(_)) => self.stream.send_reset(Reason::INTERNAL_ERROR),
            Err(SendError::Client(_)) => self.stream.send_reset(Reason::CANCEL),
        }
        result
    }

    async fn pump(&mut self) -> Result<(), SendError> {
        loop {
            // Where no length was promised, the end is found by asking for more; it needs no room in the window.
            let may_be_over = self.left.is_none() && self.meter.body() > 0 && self.held.is_none();
            let granted = if may_be_over { 0 } else { self.capacity().await? };
            self.take_room().await?;
            if self.held.is_none() && !self.pull().await? {
                if self.left.is_some_and(|left| left > 0) {
                    return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
                }
                return Ok(self.stream.send_data(Bytes::new(), true).map_err(io::Error::other)?);
            }
            if granted == 0 {
                continue;
            }
            let piece = self.piece(granted).await?;
            let len = piece.len();
            // What was held could not be read: the body gives it again.
            if len == 0 {
                continue;
            }
            self.meter.wrote(len as u64);
            self.left = self.left.map(|left| left.saturating_sub(len as u64));
            self.clock.took(len, Instant::now());
            let last = self.left == Some(0);
            self.stream.send_data(piece, last).map_err(io::Error::other)?;
            if last {
                return Ok(());
            }
            if !self.holds_bytes() {
                self.room = None;
            }
        }
    }

    /// Waits until the client's windows have room; gives how much.
    async fn capacity(&mut self) -> io::Result<usize> {
        let want = self.left.map_or(PIECE, |left| PIECE.min(usize::try_from(left).unwrap_or(PIECE)));
        self.stream.reserve_capacity(want);
        loop {
            let granted = self.stream.capacity();
            if granted > 0 {
                return Ok(granted.min(want));
            }
            let more = poll_fn(|cx| self.stream.poll_capacity(cx));
            match timeout_at(self.clock.deadline, more).await {
                Ok(Some(Ok(_))) => {}
                Ok(Some(Err(error))) => return Err(io::Error::other(error)),
                Ok(None) => return Err(io::ErrorKind::ConnectionReset.into()),
                Err(_) => return Err(late()),
            }
        }
    }

    /// Waits for room in memory. Its own connection's slowness may be the reason, so the wait has the same end.
    async fn take_room(&mut self) -> io::Result<()> {
        if self.room.is_none() {
            let room = tokio::select! {
                biased;
                room = timeout_at(self.clock.deadline, self.share.body()) => room.map_err(|_| late())?,
                _ = poll_fn(|cx| self.stream.poll_reset(cx)) => return Err(io::ErrorKind::ConnectionReset.into()),
            };
            self.room = room.map(Arc::new);
        }
        Ok(())
    }

    /// Gets the next chunk of the body; false at its end.
    async fn pull(&mut self) -> Result<bool, SendError> {
        let began = Instant::now();
        let chunk = tokio::select! {
            biased;
            chunk = self.body.next() => chunk?,
            _ = poll_fn(|cx| self.stream.poll_reset(cx)) => {
                return Err(io::Error::from(io::ErrorKind::ConnectionReset).into());
            }
        };
        self.clock.pause(began.elapsed());
        self.held = chunk.map(|chunk| match chunk {
            Chunk::Bytes(bytes) => Held::Bytes(bytes),
            Chunk::Owned(buffer) => Held::Bytes(Bytes::from_owner(Lent::of(buffer))),
            Chunk::File { file, range, pin } => Held::File { file, range, _pin: pin },
        });
        Ok(self.held.is_some())
    }

    /// At most `granted` bytes of what is held.
    async fn piece(&mut self, granted: usize) -> Result<Bytes, BodyError> {
        let (bytes, empty) = match &mut self.held {
            None => return Ok(Bytes::new()),
            Some(Held::Bytes(bytes)) => {
                let first = bytes.split_to(granted.min(bytes.len()));
                (first, bytes.is_empty())
            }
            Some(Held::File { file, range, .. }) => {
                let end = range.end.min(range.start + granted as u64);
                let mut buffer = Vec::with_capacity((end - range.start) as usize);
                if let Err(error) = residency::append(file, range.start..end, &mut buffer).await {
                    let rest = range.end - range.start;
                    self.held = None;
                    self.body.resume(rest, error)?;
                    return Ok(Bytes::new());
                }
                range.start = end;
                (Bytes::from(buffer), range.is_empty())
            }
        };
        if empty {
            self.held = None;
        }
        Ok(Bytes::from_owner(Piece { bytes, _room: self.room.clone() }))
    }

    /// Whether giving the room back would be a lie.
    fn holds_bytes(&self) -> bool {
        matches!(self.held, Some(Held::Bytes(_))) || self.body.holds_bytes()
    }
}

/// Bytes on their way, with the room that they take.
struct Piece {
    bytes: Bytes,
    _room: Option<Arc<Ticket>>,
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The server's patience with a client that takes little.
struct Clock {
    patience: Duration,
    deadline: Instant,
    /// Bytes since the deadline was set.
    taken: usize,
}

impl Clock {
    fn new(patience: Duration, now: Instant) -> Self {
        Self { patience, deadline: now + patience, taken: 0 }
    }

    /// The client took bytes.
    fn took(&mut self, bytes: usize, now: Instant) {
        self.taken += bytes;
        if self.taken >= PROGRESS {
            self.taken = 0;
            self.deadline = now + self.patience;
        }
    }

    /// The client waited for the server.
    fn pause(&mut self, waited: Duration) {
        self.deadline += waited;
    }
}

fn late() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "the client took too few bytes in time")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trickling_is_no_progress() {
        let (patience, start) = (Duration::from_secs(10), Instant::now());
        let mut clock = Clock::new(patience, start);
        let later = start + Duration::from_secs(5);
        clock.took(PROGRESS - 1, later);
        assert_eq!(clock.deadline, start + patience);
        clock.took(1, later);
        assert_eq!(clock.deadline, later + patience);
        let origin = Duration::from_secs(60);
        clock.pause(origin);
        assert_eq!(clock.deadline, later + patience + origin, "waiting for the storage is no fault of the client");
    }
}
