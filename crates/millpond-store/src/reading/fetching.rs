//! Fetches slices of an object, and the shares of those who wait for them.
//!
//! A flight is a task of its own. It hands bytes on as they arrive, and puts each complete slice into the cache.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::{Bytes, BytesMut};
use futures_util::{FutureExt, StreamExt};
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::{Instrument, Span};

use crate::{
    error::OriginError,
    named_origin::Transfer,
    origin::{Fetched, OriginBody},
    purge_log::PurgeMark,
    reading::{
        flight::{Ending, Flight, FlightBytes, FlightProgress},
        object::Object,
    },
    slices::{SliceCache, SliceReservation, Stored},
    stats, trace,
};

/// Longest origin request in bytes. Readers pace it; the limit keeps bookkeeping short.
const LONGEST: u64 = 1 << 30;

/// Size of a piece of bytes that arrive without a pause. A pause hands on the bytes that are there.
const PIECE: usize = 64 * 1024;

/// Slices that a reader wants.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// The slice that it needs now.
    pub(crate) index: u64,
    /// The slice after the last one.
    pub(crate) until: u64,
    /// Offset in the object after the last byte that it needs.
    pub(crate) end: u64,
    /// Offset in the object behind which nothing is fetched; [`u64::MAX`] for the end of the last slice.
    pub(crate) stop: u64,
}

/// The state of a wanted slice.
pub(crate) enum Acquired {
    /// It is complete.
    Slice(Stored),
    /// It is on its way. The flag says whether an earlier request fetches it.
    Ticket(Ticket, bool),
}

impl Object {
    /// Returns a wanted slice. If it is neither cached nor on its way, fetches it and the missing slices after it, at most
    /// up to the last one wanted. It is needed at `due`.
    ///
    /// The order matters. A flight puts a slice into the cache before it continues, so a slice that has left the flight
    /// is found in the cache. Under the lock no other flight starts.
    pub(crate) fn acquire(self: &Arc<Self>, slices: &Arc<SliceCache>, wanted: Wanted, due: Instant) -> Acquired {
        let Wanted { index, until, end: needed, stop } = wanted;
        // The mark is taken before the lookup, so a purge during the lookup also removes the bytes that it finds.
        let since = slices.purges().mark();
        let mut flights = self.flights();
        // A flight that began before a purge brings nothing to those who come after it.
        let is_current = |flight: &Arc<Flight>| !slices.is_purged(flight.since, self.named());
        let soon = |flight: &&Arc<Flight>| flight.will_bring_soon(index, slices) && is_current(flight);
        if let Some(flight) = flights.iter().find(soon) {
            let ticket = Ticket::new(self, flight);
            ticket.is_due(due);
            return Acquired::Ticket(ticket, true);
        }
        // Other flights would reach this slice at the pace of their readers, much too late.
        flights.iter().filter(|flight| flight.will_bring(index)).for_each(|flight| flight.end_before(index));
        if let Some(slice) = slices.get(self.slice_id(index), self.named()) {
            return Acquired::Slice(slice);
        }
        let (part, place) = (slices.part(self.slice_id(index)), slices.range(index, self.meta().len));
        let there = part.as_ref().map_or(0, |part| part.filled()) as u64;
        if let Some(part) = part.clone().filter(|_| place.start + there >= needed.min(place.end)) {
            return Acquired::Slice(Stored::Memory(part));
        }
        let limit = index.saturating_add(LONGEST / slices.slice()).min(until);
        let is_there = |index: &u64| {
            let brings = |flight: &Arc<Flight>| flight.will_bring(*index) && is_current(flight);
            flights.iter().any(brings) || slices.contains(self.slice_id(*index))
        };
        let end = (index + 1..limit).find(is_there).unwrap_or(limit);
        let end = end.max(index + 1);
        let stop = if end == until { stop } else { u64::MAX };
        let flight = Flight::new(index..end, slices.slice(), due, since).between(part.unwrap_or_default(), stop);
        let flight = Arc::new(flight);
        let ticket = Ticket::new(self, &flight);
        flights.push(flight.clone());
        drop(flights);
        start(slices, self, &flight, None);
        Acquired::Ticket(ticket, false)
    }

    /// Continues with the reply that opened this object, to a request after `since`. Its bytes are probably wanted, its first slice
    /// certainly.
    pub(crate) fn adopt(self: &Arc<Self>, slices: &Arc<SliceCache>, fetched: Fetched, since: PurgeMark) {
        let indexes = slices.indexes(&fetched.range);
        let last = slices.range(indexes.end.saturating_sub(1), self.meta().len);
        let whole = slices.range(indexes.start, self.meta().len).start..last.end;
        if fetched.range.start != whole.start || fetched.range.is_empty() {
            return;
        }
        let stop = if fetched.range.end < whole.end { fetched.range.end } else { u64::MAX };
        let flight = Flight::new(indexes, slices.slice(), Instant::now(), since).between(Arc::default(), stop);
        let flight = Arc::new(flight);
        let mut flights = self.flights();
        let ticket = Ticket::new(self, &flight);
        flights.push(flight.clone());
        drop(flights);
        start(slices, self, &flight, Some(fetched));
        tokio::spawn(hold_first(ticket));
    }

    /// Waits for a flight that stops within the first slice of a range, so that the next one can begin there.
    pub(crate) async fn until_stopped(self: &Arc<Self>, slices: &SliceCache, range: &Range<u64>) {
        let index = range.start / slices.slice();
        let needed = range.end.min(slices.range(index, self.meta().len).end);
        let found = {
            let flights = self.flights();
            let stops = |flight: &&Arc<Flight>| flight.will_bring(index) && flight.stop < needed;
            flights.iter().find(stops).map(|flight| Ticket::new(self, flight))
        };
        if let Some(ticket) = found {
            hold(ticket).await;
        }
    }

    /// Fetches the missing slices of a range, without waiting for them. Nothing is fetched behind
    /// `stop`.
    pub(crate) fn prefetch(self: &Arc<Self>, slices: &Arc<SliceCache>, range: &Range<u64>, stop: u64) {
        let indexes = slices.indexes(range);
        let mut index = indexes.start;
        while index < indexes.end {
            let wanted = Wanted { index, until: indexes.end, end: range.end, stop };
            index = match self.acquire(slices, wanted, Instant::now()) {
                Acquired::Slice(_) => index + 1,
                Acquired::Ticket(ticket, _) => {
                    let end = ticket.indexes().end;
                    tokio::spawn(hold(ticket));
                    end.max(index + 1)
                }
            };
        }
    }
}

/// Keeps a flight alive until its first slice is complete.
async fn hold_first(mut ticket: Ticket) {
    while !ticket.has_begun() {
        ticket.changed().await;
    }
}

/// Keeps a flight alive until it ends.
async fn hold(mut ticket: Ticket) {
    while !ticket.is_over() {
        ticket.changed().await;
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
        Self { object: object.clone(), flight: flight.clone(), news: flight.join(), ending: Ending::Left }
    }

    /// Notes that its bytes are needed at an earlier time.
    pub(crate) fn is_due(&self, at: Instant) {
        self.flight.due.sooner(at);
    }

    /// Returns the slices of the flight: fewer than requested, where this share was added while it was ending.
    pub(crate) fn indexes(&self) -> Range<u64> {
        self.flight.indexes.start..self.flight.end()
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
        if self.flight.leave(self.ending) {
            flights.retain(|flight| !Arc::ptr_eq(flight, &self.flight));
            // `Notify` stores the signal if the task does not wait yet.
            self.flight.given_up.notify_one();
        }
    }
}

/// Starts the task of a flight that is on its object's list.
///
/// `opened` is a reply that has arrived already.
fn start(slices: &Arc<SliceCache>, object: &Arc<Object>, flight: &Arc<Flight>, opened: Option<Fetched>) {
    let (slices, object, flight) = (slices.clone(), object.clone(), flight.clone());
    // Counted before the task runs: the planner must see the request at once.
    let mut transfer = Transfer::new(object.source_of(), opened.is_none());
    let first = slices.range(flight.indexes.start, object.meta().len);
    let there = flight.filling().filled() as u64;
    transfer.expects((first.end.min(flight.stop) - first.start).saturating_sub(there));
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
    let range = first.start + flight.filling().filled() as u64..last.end.min(flight.stop);
    let fetched = match opened {
        Some(fetched) => fetched,
        None => object.source().read(object.path(), range.clone(), object.meta()).await?,
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
    incoming.transfer.note_sender(fetched.sender);
    for index in flight.indexes.clone() {
        if !flight.comes_near(index, slices).await {
            let _flights = object.flights();
            flight.end_before(index);
        }
        if index >= flight.end() {
            break;
        }
        // The next slice is on its way too. Later slices wait for readers, and are no work for the link yet.
        let next = slices.range(index + 1, range.end);
        incoming.transfer.expects(next.end - next.start);
        let part = slices.range(index, len);
        // Room is reserved when bytes are there: to make them, a derived object reads slices of its source, which need room too.
        incoming.receive(object, &range).await?;
        let reservation = slices.reserve(part.end - part.start).await;
        fill(object, flight, &mut incoming, reservation, index, &range, part).await?;
        tokio::task::consume_budget().await;
    }
    Ok(())
}

/// A body, and the rest of its last buffer.
struct Incoming {
    body: OriginBody,
    transfer: Transfer,
    rest: Bytes,
    received: u64,
}

impl Incoming {
    /// Waits until bytes of the body are there, unless all of them have been received.
    async fn receive(&mut self, object: &Object, range: &Range<u64>) -> Result<(), OriginError> {
        while self.rest.is_empty() && self.received < range.end - range.start {
            let item = self.body.next().await;
            self.take(item, object, range)?;
        }
        Ok(())
    }

    /// Takes the next buffer of the body.
    fn take(
        &mut self,
        item: Option<Result<Bytes, OriginError>>,
        object: &Object,
        range: &Range<u64>,
    ) -> Result<(), OriginError> {
        let Some(item) = item else {
            return Err(OriginError::Truncated {
                at: object.source().at(object.path()),
                expected: range.end - range.start,
                received: self.received,
                detail: "the body ended".into(),
            });
        };
        self.rest = item?;
        let received = self.rest.len() as u64;
        self.received += received;
        self.transfer.arrived(received);
        stats::add(&object.source().counters.received_bytes, received);
        Ok(())
    }
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
    let mut arrived = Arrived { object, key: object.slice_id(index).key(), bytes: 0 };
    let end = part.end.min(flight.stop);
    let len = usize::try_from(end - part.start).unwrap_or(usize::MAX);
    let mut slice = flight.filling();
    let mut buffer = BytesMut::with_capacity(len.saturating_sub(slice.filled()));
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
            incoming.take(item, object, range)?;
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
    let slice = Arc::new(slice);
    if end < part.end {
        flight.publish(&slice);
        reservation.keep_part(object.slice_id(index), object.named(), slice, flight.since);
        return Ok(());
    }
    tracing::trace!(path = %object.path(), index, "slice complete");
    // The slice enters the cache before the flight continues: it is always in at least one of the two.
    let kept = (object.is_storable(), flight.since);
    reservation.fill(object.slice_id(index), object.named(), slice.clone(), kept);
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
