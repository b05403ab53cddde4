//! One origin request for a run of slices, and the readers that wait for its bytes.
//!
//! A flight is a task of its own. It hands bytes on as they arrive, and puts each complete slice into the cache. It
//! stays at most a window ahead of its furthest reader: then the connection waits, and is closed when the wait is long.
//! Without readers it stops at once, or after the slice that it is filling where enough of that is there (see
//! [`Ending`]).

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::{FutureExt, StreamExt};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout};
use tracing::{Instrument, Span};

use crate::due::Due;
use crate::error::OriginError;
use crate::named_origin::Transfer;
use crate::object::Object;
use crate::origin::{Body, Fetched};
use crate::slices::{Slice, SliceCache, SliceReservation};
use crate::stats;
use crate::trace;

/// Size of a piece of bytes that arrive without a pause. A pause hands on the bytes that are there.
const PIECE: usize = 64 * 1024;

/// Longest time for which a reply is not read: servers close such connections.
const PATIENCE: Duration = Duration::from_secs(5);

/// A run of slices on its way from the origin.
#[derive(Debug)]
pub(crate) struct Flight {
    /// The slices that it fetches.
    indexes: Range<u64>,
    /// Bytes of a slice.
    slice: u64,
    progress: watch::Sender<FlightProgress>,
    /// Number of tickets. Changed only under the lock of the object's list of flights.
    wanted: AtomicUsize,
    /// The slice before which it ends: lowered when no reader wants more than the current one.
    until: AtomicU64,
    given_up: Notify,
    /// The furthest slice that a reader has reached.
    reached: AtomicU64,
    moved: Notify,
    /// The time at which its first slice is needed.
    due: Due,
}

#[derive(Debug)]
struct FlightProgress {
    /// The slice being filled.
    index: u64,
    /// The bytes of that slice that have arrived.
    filling: Arc<Slice>,
    /// The slice before: a reader gets it even if the cache has evicted it already.
    previous: Arc<Slice>,
    end: Option<Result<(), OriginError>>,
}

/// The bytes of a flight at a position.
#[derive(Debug)]
pub(crate) enum FlightBytes {
    /// Bytes from the position on.
    Bytes(Bytes),
    /// The bytes have not arrived.
    Wait,
    /// The bytes were handed on, and are cached or evicted.
    Passed,
    /// The bytes will not arrive.
    Failed(OriginError),
}

impl Flight {
    /// Creates a flight for slices of `slice` bytes, of which the first one is needed at `due`.
    pub(crate) fn new(indexes: Range<u64>, slice: u64, due: Instant) -> Self {
        let progress =
            FlightProgress { index: indexes.start, filling: Arc::default(), previous: Arc::default(), end: None };
        Self {
            progress: watch::Sender::new(progress),
            wanted: AtomicUsize::new(0),
            until: AtomicU64::new(indexes.end),
            given_up: Notify::new(),
            reached: AtomicU64::new(indexes.start),
            moved: Notify::new(),
            due: Due::new(due),
            slice,
            indexes,
        }
    }

    /// Returns whether it will still fetch this slice.
    pub(crate) fn will_bring(&self, index: u64) -> bool {
        self.indexes.contains(&index)
            && index < self.until.load(Ordering::Relaxed)
            && self.progress.borrow().index <= index
    }

    /// Ends it before a slice, which another flight is to fetch. The caller holds the lock of the object's list of
    /// flights.
    pub(crate) fn end_before(&self, index: u64) {
        self.until.fetch_min(index, Ordering::Relaxed);
    }

    /// Returns the bytes of a slice that have arrived, from its start on; 0 where it does not fetch the slice now.
    pub(crate) fn arrived(&self, index: u64) -> u64 {
        let progress = self.progress.borrow();
        if progress.index == index { progress.filling.filled() as u64 } else { 0 }
    }

    /// Returns whether it will fetch this slice without waiting for its readers.
    pub(crate) fn will_bring_soon(&self, index: u64, slices: &SliceCache) -> bool {
        self.will_bring(index) && index.saturating_sub(self.progress.borrow().index) <= slices.run_slices()
    }

    /// Waits until a slice is within the window ahead of the furthest reader. Returns `false` after [`PATIENCE`].
    async fn comes_near(&self, index: u64, slices: &SliceCache) -> bool {
        let near = || index <= self.reached.load(Ordering::Relaxed).saturating_add(slices.run_slices());
        let wait = async {
            while !near() {
                self.moved.notified().await;
            }
        };
        near() || timeout(PATIENCE, wait).await.is_ok()
    }

    fn look(&self, index: u64, offset: usize) -> FlightBytes {
        if self.reached.fetch_max(index, Ordering::Relaxed) < index {
            self.moved.notify_one();
        }
        let progress = self.progress.borrow();
        let slice = if index == progress.index {
            Some(&progress.filling)
        } else if index.checked_add(1) == Some(progress.index) {
            Some(&progress.previous)
        } else {
            None
        };
        if let Some(bytes) = slice.and_then(|slice| slice.at(offset)) {
            return FlightBytes::Bytes(bytes);
        }
        match &progress.end {
            _ if index < progress.index => FlightBytes::Passed,
            Some(Err(error)) => FlightBytes::Failed(error.clone()),
            Some(Ok(())) => FlightBytes::Passed,
            None => FlightBytes::Wait,
        }
    }

    /// Hands on the bytes of the current slice.
    fn publish(&self, slice: &Slice) {
        self.progress.send_modify(|progress| progress.filling = Arc::new(slice.clone()));
    }

    /// Continues with the next slice.
    fn advance(&self, complete: Arc<Slice>) {
        self.progress.send_modify(|progress| {
            progress.index += 1;
            progress.previous = complete;
            progress.filling = Arc::default();
        });
    }
}

/// The part of the current slice that must have arrived for it to be completed without readers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Any part: its reader has read all it wanted, and the next one probably continues there.
    Served,
    /// Half: a reader left before its end.
    Left,
    /// Nearly all: it was fetched ahead of a viewer that has left.
    Ahead,
}

impl Ending {
    fn least(self, slice: u64) -> u64 {
        match self {
            Self::Served => 1,
            Self::Left => slice.div_ceil(2),
            Self::Ahead => slice - slice / 8,
        }
    }
}

/// A share in a flight, which continues while there is one.
#[derive(Debug)]
pub(crate) struct Ticket {
    object: Arc<Object>,
    flight: Arc<Flight>,
    news: watch::Receiver<FlightProgress>,
    ending: Ending,
}

impl Ticket {
    /// Sets the rule for the current slice in case this is the last share to be dropped.
    pub(crate) fn ends(&mut self, ending: Ending) {
        self.ending = ending;
    }

    /// Adds a share. The caller holds the lock of the object's list of flights.
    pub(crate) fn new(object: &Arc<Object>, flight: &Arc<Flight>) -> Self {
        flight.wanted.fetch_add(1, Ordering::Relaxed);
        Self { object: object.clone(), flight: flight.clone(), news: flight.progress.subscribe(), ending: Ending::Left }
    }

    /// Notes that its bytes are needed at an earlier time.
    pub(crate) fn is_due(&self, at: Instant) {
        self.flight.due.sooner(at);
    }

    /// Returns the slices of the flight: fewer than requested, where this share was added while it was ending.
    pub(crate) fn indexes(&self) -> Range<u64> {
        self.flight.indexes.start..self.flight.until.load(Ordering::Relaxed)
    }

    /// Returns the bytes at an offset of a slice.
    pub(crate) fn look(&mut self, index: u64, offset: usize) -> FlightBytes {
        // Bytes that are returned now need no wake-up.
        self.news.mark_unchanged();
        self.flight.look(index, offset)
    }

    /// Returns whether the first slice of the flight is complete, or will not be. Call it before [`Ticket::changed`].
    pub(crate) fn has_begun(&mut self) -> bool {
        let progress = self.news.borrow_and_update();
        progress.index > self.flight.indexes.start || progress.end.is_some()
    }

    /// Returns whether the flight has ended. Call it before [`Ticket::changed`].
    pub(crate) fn is_over(&mut self) -> bool {
        self.news.borrow_and_update().end.is_some()
    }

    /// Waits until there are more bytes than at the last look. Cancel safe.
    pub(crate) async fn changed(&mut self) {
        // The sender lives in the flight, which this ticket holds.
        let _ = self.news.changed().await;
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut flights = self.object.flights();
        if self.flight.wanted.fetch_sub(1, Ordering::Relaxed) == 1 {
            let progress = self.flight.progress.borrow();
            let filled = progress.filling.filled() as u64;
            if progress.end.is_none() && filled >= self.ending.least(self.flight.slice) {
                self.flight.until.store(progress.index + 1, Ordering::Relaxed);
                return;
            }
            drop(progress);
            flights.retain(|flight| !Arc::ptr_eq(flight, &self.flight));
            // `Notify` stores the signal if the task does not wait yet.
            self.flight.given_up.notify_one();
        }
    }
}

/// Starts the task of a flight that is on its object's list.
///
/// `opened` is a reply that has arrived already.
pub(crate) fn start(slices: &Arc<SliceCache>, object: &Arc<Object>, flight: &Arc<Flight>, opened: Option<Fetched>) {
    let (slices, object, flight) = (slices.clone(), object.clone(), flight.clone());
    // Counted before the task runs: the planner must see the request at once.
    let mut transfer = Transfer::new(object.source_of(), opened.is_none());
    let first = slices.range(flight.indexes.start, object.meta().len);
    transfer.expects(first.end - first.start);
    let due = flight.due.clone();
    let span = tracing::info_span!(
        target: trace::TARGET,
        "slice flight",
        millpond.place = &*object.source().name,
        millpond.path = object.path().as_str(),
        millpond.slices = i64::try_from(flight.indexes.end - flight.indexes.start).unwrap_or(i64::MAX),
        millpond.bytes = tracing::field::Empty,
        otel.status_code = tracing::field::Empty,
    );
    let run = due.scope(async move {
        let counters = &object.source().counters;
        let counted = slices.flight();
        stats::add(&counters.in_flight, 1);
        let result = tokio::select! {
            biased;
            () = flight.given_up.notified() => Ok(()),
            result = fly(&slices, &object, &flight, opened, transfer) => result,
        };
        counters.in_flight.fetch_sub(1, Ordering::Relaxed);
        drop(counted);
        if let Err(error) = &result {
            object.note(error);
            Span::current().record("otel.status_code", "ERROR");
        }
        // Off the list first: later readers start a new flight instead of getting an old failure.
        object.flights().retain(|other| !Arc::ptr_eq(other, &flight));
        flight.progress.send_modify(|progress| progress.end = Some(result));
    });
    tokio::spawn(run.instrument(span));
}

async fn fly(
    slices: &Arc<SliceCache>,
    object: &Object,
    flight: &Flight,
    opened: Option<Fetched>,
    transfer: Transfer,
) -> Result<(), OriginError> {
    let len = object.meta().len;
    let first = slices.range(flight.indexes.start, len);
    let last = slices.range(flight.indexes.end.saturating_sub(1), len);
    let range = first.start..last.end;
    let fetched = match opened {
        Some(fetched) => fetched,
        None => object.source().read(object, range.clone()).await?,
    };
    object.restrict(&fetched.meta.freshness);
    if fetched.range != range {
        return Err(OriginError::BadReply {
            at: object.source().at(object.path()),
            expected: format!("bytes {range:?}"),
            found: format!("bytes {:?}", fetched.range),
        });
    }
    let mut incoming = Incoming { body: fetched.body, rest: Bytes::new(), received: 0, transfer };
    for index in flight.indexes.clone() {
        if !flight.comes_near(index, slices).await {
            let _flights = object.flights();
            flight.end_before(index);
        }
        if index >= flight.until.load(Ordering::Relaxed) {
            break;
        }
        // The next slice is on its way too. Later slices wait for readers, and are no work for the link yet.
        let next = slices.range(index + 1, range.end);
        incoming.transfer.expects(next.end - next.start);
        let part = slices.range(index, len);
        let reservation = slices.reserve(part.end - part.start).await;
        fill(object, flight, &mut incoming, reservation, index, &range, part).await?;
        tokio::task::consume_budget().await;
    }
    Ok(())
}

/// A body, and the rest of its last buffer.
struct Incoming {
    body: Body,
    transfer: Transfer,
    rest: Bytes,
    received: u64,
}

impl Drop for Incoming {
    fn drop(&mut self) {
        Span::current().record("millpond.bytes", i64::try_from(self.received).unwrap_or(i64::MAX));
    }
}

/// Fills one slice: the only copy of these bytes on their way from socket to socket.
async fn fill(
    object: &Object,
    flight: &Flight,
    incoming: &mut Incoming,
    reservation: SliceReservation,
    index: u64,
    range: &Range<u64>,
    part: Range<u64>,
) -> Result<(), OriginError> {
    let counters = &object.source().counters;
    let mut arrived = Arrived { object, key: object.slice_id(index).key(), bytes: 0 };
    let len = usize::try_from(part.end - part.start).unwrap_or(usize::MAX);
    let mut buffer = BytesMut::with_capacity(len);
    let mut slice = Slice::default();
    while slice.filled() + buffer.len() < len {
        if incoming.rest.is_empty() {
            let ready = incoming.body.next().now_or_never();
            let item = match ready {
                Some(item) => item,
                None => {
                    if !buffer.is_empty() {
                        slice.push(buffer.split().freeze());
                        flight.publish(&slice);
                    }
                    incoming.body.next().await
                }
            };
            let Some(item) = item else {
                return Err(OriginError::Truncated {
                    at: object.source().at(object.path()),
                    expected: range.end - range.start,
                    received: incoming.received,
                    detail: "the body ended".into(),
                });
            };
            incoming.rest = item?;
            let received = incoming.rest.len() as u64;
            incoming.received += received;
            incoming.transfer.arrived(received);
            stats::add(&counters.origin_bytes, received);
        }
        let wanted = len - slice.filled() - buffer.len();
        let count = incoming.rest.len().min(wanted);
        buffer.extend_from_slice(&incoming.rest.split_to(count));
        arrived.bytes += count as u64;
        if buffer.len() >= PIECE {
            slice.push(buffer.split().freeze());
            flight.publish(&slice);
        }
    }
    if !buffer.is_empty() {
        slice.push(buffer.freeze());
    }
    tracing::trace!(path = %object.path(), index, "slice complete");
    let slice = Arc::new(slice);
    // The slice enters the cache before the flight continues: it is always in at least one of the two.
    reservation.fill(object.slice_id(index), object.named(), slice.clone(), object.is_storable());
    flight.advance(slice);
    Ok(())
}

/// Counts the bytes of a slice that arrived, when it is dropped.
struct Arrived<'a> {
    object: &'a Object,
    key: u64,
    bytes: u64,
}

impl Drop for Arrived<'_> {
    fn drop(&mut self) {
        self.object.source().speculation.comes(self.key, self.bytes);
    }
}
