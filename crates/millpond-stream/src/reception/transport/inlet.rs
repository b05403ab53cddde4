//! One socket for all programmes of a transport stream.

use super::{
    super::{rtsp::link::Stopwatch, udp::Batch},
    datagrams::{Datagrams, PACKET, Piece},
    socket,
    source::TransportAddress,
};
use std::{
    collections::VecDeque,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};
use tokio::{net::UdpSocket, sync::Notify, task::AbortHandle};

/// Most bytes that wait for one reception.
const MOST_BYTES: usize = 8 << 20;
/// Bytes that a piece counts for beside its own.
const PIECE: usize = 64;

/// The place where the packets of an address arrive. Its socket is open while there are subscribers.
#[derive(Debug)]
pub(super) struct Inlet {
    address: TransportAddress,
    /// A lock: taken when a reception begins.
    open: Mutex<Open>,
}

/// The socket that is open, if any. It may outlive its reader for a moment.
#[derive(Debug, Default)]
struct Open {
    socket: Weak<UdpSocket>,
    reader: Weak<Reader>,
}

/// A task that reads the socket until this is dropped.
#[derive(Debug)]
struct Reader {
    subscribers: Arc<Mutex<Vec<Weak<Queue>>>>,
    task: AbortHandle,
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The bytes that arrive, for one reception. A lock: taken for each piece.
#[derive(Debug, Default)]
struct Queue {
    pieces: Mutex<Pieces>,
    arrived: Notify,
}

#[derive(Debug, Default)]
struct Pieces {
    pieces: VecDeque<Piece>,
    bytes: usize,
    dropped: u64,
    /// Transport packets of the pieces that were dropped since the last one that was not; `None` where none was.
    gap: Option<u64>,
}

/// A subscription to the bytes of an inlet.
#[derive(Debug)]
pub(super) struct Subscription {
    queue: Arc<Queue>,
    _reader: Arc<Reader>,
}

impl Inlet {
    pub(super) fn new(address: TransportAddress) -> Self {
        Self { address, open: Mutex::default() }
    }

    pub(super) fn address(&self) -> &TransportAddress {
        &self.address
    }

    /// Subscribes, and opens the socket unless it is open.
    ///
    /// # Errors
    /// The socket can't be opened, or the group can't be joined.
    pub(super) fn subscribe(&self) -> io::Result<Subscription> {
        let mut open = lock(&self.open);
        let reader = match open.reader.upgrade() {
            Some(reader) => reader,
            None => self.read(&mut open)?,
        };
        let queue = Arc::new(Queue::default());
        lock(&reader.subscribers).push(Arc::downgrade(&queue));
        Ok(Subscription { queue, _reader: reader })
    }

    fn read(&self, open: &mut Open) -> io::Result<Arc<Reader>> {
        let socket = match open.socket.upgrade() {
            Some(socket) => socket,
            None => Arc::new(socket::open(&self.address)?),
        };
        let subscribers = Arc::new(Mutex::new(Vec::new()));
        open.socket = Arc::downgrade(&socket);
        let task = tokio::spawn(read(socket, self.address.clone(), subscribers.clone())).abort_handle();
        let reader = Arc::new(Reader { subscribers, task });
        open.reader = Arc::downgrade(&reader);
        Ok(reader)
    }
}

/// Reads a socket, and passes the pieces of its stream to all subscribers.
async fn read(socket: Arc<UdpSocket>, address: TransportAddress, subscribers: Arc<Mutex<Vec<Weak<Queue>>>>) {
    let (watch, mut batch) = (Stopwatch::start(), Batch::default());
    let (mut datagrams, mut out) = (Datagrams::new(address.is_rtp), Vec::new());
    loop {
        // The attempts take no budget themselves: a sender without end would hold the thread.
        tokio::task::yield_now().await;
        tokio::select! {
            ready = socket.readable() => if let Err(error) = ready {
                tracing::error!(source = %address, %error, "socket of a source");
                return;
            },
            () = watch.sleep_until(datagrams.wake()) => {}
        }
        let now = watch.now();
        batch.receive(&socket, |from, datagram| {
            if address.sender.is_none_or(|sender| from.is_some_and(|from| from.ip() == sender)) {
                datagrams.push(from, datagram, now, &mut out);
            }
        });
        datagrams.pop(now, &mut out);
        if let Some((sender, stranger)) = datagrams.stranger() {
            tracing::warn!(source = %address, %sender, %stranger, "packets of another sender are dropped");
        }
        if !out.is_empty() {
            lock(&subscribers).retain(|queue| queue.upgrade().map(|queue| queue.put(&out)).is_some());
            out.clear();
        }
    }
}

impl Pieces {
    fn put(&mut self, piece: &Piece) {
        let bytes = if let Piece::Bytes(bytes) = piece { bytes.len() + PIECE } else { PIECE };
        if self.bytes + bytes + PIECE > MOST_BYTES {
            self.dropped += 1;
            let missing = match piece {
                Piece::Bytes(bytes) => (bytes.len() / PACKET) as u64,
                Piece::Gap(missing) => *missing,
                Piece::Anew => 0,
            };
            self.gap = Some(self.gap.unwrap_or(0) + missing);
            return;
        }
        if let Some(missing) = self.gap.take() {
            self.bytes += PIECE;
            self.pieces.push_back(Piece::Gap(missing));
        }
        self.bytes += bytes;
        self.pieces.push_back(piece.clone());
    }
}

impl Queue {
    fn put(&self, all: &[Piece]) {
        let mut pieces = lock(&self.pieces);
        all.iter().for_each(|piece| pieces.put(piece));
        drop(pieces);
        self.arrived.notify_one();
    }

    fn take(&self) -> VecDeque<Piece> {
        let mut pieces = lock(&self.pieces);
        pieces.bytes = 0;
        std::mem::take(&mut pieces.pieces)
    }
}

impl Subscription {
    /// Waits for pieces. Cancel safe.
    pub(super) async fn next(&self) -> VecDeque<Piece> {
        loop {
            let found = self.queue.take();
            if !found.is_empty() {
                return found;
            }
            self.queue.arrived.notified().await;
        }
    }

    /// Number of pieces that were dropped so far because too many waited.
    pub(super) fn dropped(&self) -> u64 {
        lock(&self.queue.pieces).dropped
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
