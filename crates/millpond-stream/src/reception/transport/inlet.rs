//! The sockets that all programmes of a transport stream share: one for each of its addresses.

use super::{
    super::{rtsp::link::Stopwatch, udp::Batch},
    datagrams::{Datagrams, PACKET, Piece},
    legs::Turn,
    socket,
    source::TransportAddress,
};
use std::{
    collections::VecDeque,
    future::poll_fn,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    task::Poll,
    time::Duration,
};
use tokio::{net::UdpSocket, sync::Notify, task::AbortHandle};

/// Most bytes that wait for one reception.
const MOST_BYTES: usize = 8 << 20;
/// Bytes that a piece counts for beside its own.
const PIECE: usize = 64;

/// The place where the packets of a stream arrive. Its sockets are open while there are subscribers.
#[derive(Debug)]
pub(super) struct Inlet {
    addresses: Vec<TransportAddress>,
    /// A lock: taken when a reception begins.
    open: Mutex<Open>,
}

/// The sockets that are open, if any. They may outlive their reader for a moment.
#[derive(Debug, Default)]
struct Open {
    sockets: Weak<Vec<UdpSocket>>,
    reader: Weak<Reader>,
}

/// A task that reads the sockets until this is dropped.
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
    pub(super) fn new(addresses: Vec<TransportAddress>) -> Self {
        Self { addresses, open: Mutex::default() }
    }

    pub(super) fn addresses(&self) -> &[TransportAddress] {
        &self.addresses
    }

    /// Subscribes, and opens the sockets unless they are open.
    ///
    /// # Errors
    /// A socket can't be opened, or a group can't be joined.
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
        let sockets = match open.sockets.upgrade() {
            Some(sockets) => sockets,
            None => Arc::new(self.addresses.iter().map(socket::open).collect::<io::Result<Vec<_>>>()?),
        };
        let subscribers = Arc::new(Mutex::new(Vec::new()));
        open.sockets = Arc::downgrade(&sockets);
        let task = tokio::spawn(read(sockets, self.addresses.clone(), subscribers.clone())).abort_handle();
        let reader = Arc::new(Reader { subscribers, task });
        open.reader = Arc::downgrade(&reader);
        Ok(reader)
    }
}

/// Waits until one of some sockets can be read.
async fn readable(sockets: &[UdpSocket]) -> io::Result<()> {
    poll_fn(|context| {
        let mut ready = sockets.iter().map(|socket| socket.poll_recv_ready(context));
        ready.find(Poll::is_ready).unwrap_or(Poll::Pending)
    })
    .await
}

/// Reads the sockets, and passes the pieces of their stream to all subscribers.
async fn read(
    sockets: Arc<Vec<UdpSocket>>,
    addresses: Vec<TransportAddress>,
    subscribers: Arc<Mutex<Vec<Weak<Queue>>>>,
) {
    let (watch, mut batch) = (Stopwatch::start(), Batch::default());
    let only_rtp = addresses.iter().any(|address| address.is_rtp);
    let (mut datagrams, mut out) = (Datagrams::new(only_rtp, addresses.len()), Vec::new());
    loop {
        // The attempts take no budget themselves: a sender without end would hold the thread.
        tokio::task::yield_now().await;
        tokio::select! {
            ready = readable(&sockets) => if let Err(error) = ready {
                tracing::error!(source = ?addresses, %error, "socket of a source");
                return;
            },
            () = watch.sleep_until(datagrams.wake()) => {}
        }
        let now = watch.now();
        for (leg, (socket, address)) in sockets.iter().zip(&addresses).enumerate() {
            batch.receive(socket, |from, datagram| {
                if address.sender.is_none_or(|sender| from.is_some_and(|from| from.ip() == sender)) {
                    datagrams.push(leg, from, datagram, now, &mut out);
                }
            });
        }
        datagrams.pop(now, &mut out);
        tell(&mut datagrams, &addresses, now);
        if !out.is_empty() {
            lock(&subscribers).retain(|queue| queue.upgrade().map(|queue| queue.put(&out)).is_some());
            out.clear();
        }
    }
}

/// Tells what an operator should know of the legs.
fn tell(datagrams: &mut Datagrams, addresses: &[TransportAddress], now: Duration) {
    for (leg, address) in addresses.iter().enumerate() {
        if let Some((sender, stranger)) = datagrams.stranger(leg) {
            tracing::warn!(source = %address, %sender, %stranger, "packets of another sender are dropped");
        }
        match datagrams.turn(leg, now) {
            Some(Turn::Silent) => tracing::warn!(source = %address, "one of the addresses of a source is silent"),
            Some(Turn::Other) => {
                tracing::warn!(source = %address, "another stream arrives at one of the addresses of a source: its SSRC differs");
            }
            Some(Turn::Heard) => tracing::info!(source = %address, "the address of a source is no longer silent"),
            None => {}
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
