//! Reads a range of an object piece by piece.

use std::fmt;
use std::fs::File;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;

use crate::{
    disk::{chunk::Chunk, disk_tier::Pin},
    error::OriginError,
    origin::disk,
    reading::{
        fetching::{Acquired, Ticket, Wanted},
        flight::{Ending, FlightBytes},
        object::Object,
    },
    slices::{SliceCache, Stored},
    stats::{self, ReadCounts},
};

/// The next origin request begins when fewer bytes than this are left of those requested.
const AHEAD: u64 = 1024 * 1024;

/// Largest range that the caller's thread reads, where no disk access is needed.
pub(crate) const AT_ONCE: u64 = 256 * 1024;

/// Granularity of the ends of trimmed reads, in bytes: more than tracks of a file are apart in most places.
const MARGIN: u64 = 64 * 1024;

/// Damaged parts that one reader fetches again before it fails.
const MOST_DAMAGED: u32 = 64;

/// Returns the bytes of a range as they become available.
///
/// Dropping it stops it: origin requests that no other reader waits for end at once, and their complete slices stay
/// cached. It fetches nothing behind its range, and at most one run ahead of its position.
pub struct Reader {
    slices: Arc<SliceCache>,
    object: Arc<Object>,
    position: u64,
    end: u64,
    /// Offset behind which nothing is fetched.
    stop: u64,
    /// The complete slice that holds the position.
    held: Option<(u64, Stored)>,
    /// Flights that fetch slices of the range at or behind the position.
    tickets: Vec<Ticket>,
    /// The slice last begun.
    begun: Option<u64>,
    /// Start of the wait for a slice of which no byte has arrived.
    waiting: Option<Instant>,
    /// Parts that could not be read from their file.
    damaged: u32,
    /// Most bytes of an open file that are one part.
    part: u64,
    /// Counts of the response that is made of these bytes.
    counts: Option<Arc<ReadCounts>>,
}

impl Reader {
    /// Creates a reader. The range is cut at the end of the object.
    pub(crate) fn new(slices: Arc<SliceCache>, object: Arc<Object>, range: Range<u64>) -> Self {
        let end = range.end.min(object.meta().len);
        let position = range.start;
        Self {
            slices,
            object,
            position,
            end,
            stop: u64::MAX,
            held: None,
            tickets: Vec::new(),
            begun: None,
            waiting: None,
            damaged: 0,
            part: u64::MAX,
            counts: None,
        }
    }

    /// Fetches at most 64 KiB behind the range, and not the rest of its last slice. A range of less than half a slice
    /// changes nothing: small ranges are mostly followed by others.
    #[must_use]
    pub fn trimmed(mut self) -> Self {
        if self.end.saturating_sub(self.position) >= self.slices.slice() / 2 {
            self.stop = self.end.div_ceil(MARGIN).saturating_mul(MARGIN);
        }
        self
    }

    /// Returns an open file in parts of at most `most` bytes, instead of the whole range. Other parts are at most a slice.
    #[must_use]
    pub(crate) fn in_parts(mut self, most: u64) -> Self {
        self.part = most.max(1);
        self
    }

    /// Adds the bytes that it returns to `counts`, if there are any. Bytes of local files are neither hits nor misses.
    #[must_use]
    pub fn counted(mut self, counts: Option<Arc<ReadCounts>>) -> Self {
        self.counts = counts;
        self
    }

    /// Returns the range not read yet, cut at the end of the object.
    pub fn remaining(&self) -> Range<u64> {
        self.position.min(self.end)..self.end
    }

    /// Moves forward to `position`, at most to the end, and waits until bytes arrive there. Requests under way for slices from
    /// there on continue, and all of their slices are cached. This counts as no use of a slice.
    pub(crate) async fn reach(&mut self, position: u64) -> Result<(), OriginError> {
        self.position = self.position.max(position);
        if self.position < self.end {
            self.arrived().await?;
            self.waiting = None;
        }
        Ok(())
    }

    /// Returns the next part; `None` at the end. After an error there are no further parts.
    ///
    /// Cancel safe: a dropped future took no part.
    pub async fn next(&mut self) -> Option<Result<Chunk, OriginError>> {
        if self.position >= self.end {
            return None;
        }
        if let Some(file) = self.object.file().cloned() {
            return Some(self.next_of_file(file));
        }
        let result = self.next_part().await;
        match &result {
            Ok(chunk) => self.position += chunk.len(),
            Err(_) => self.stop(),
        }
        if self.position >= self.end {
            self.tickets.iter_mut().for_each(|ticket| ticket.ends(Ending::Served));
        }
        Some(result)
    }

    /// Returns the next part in memory, read from its file where it is a range of one. Bytes that the cache has lost
    /// are fetched again. Returns `None` at the end. After an error there are no further parts.
    ///
    /// Not cancel safe: a dropped future may have taken a part.
    pub async fn next_bytes(&mut self) -> Option<Result<Bytes, OriginError>> {
        loop {
            let at = self.position;
            let (file, range, pin) = match self.next().await? {
                Ok(Chunk::Bytes(bytes)) => return Some(Ok(bytes)),
                Ok(Chunk::File { file, range, pin }) => (file, range, pin),
                Err(error) => return Some(Err(error)),
            };
            let error = match self.read_cached(file, range, pin.clone()).await {
                Ok(bytes) => return Some(Ok(bytes)),
                Err(error) => error,
            };
            self.damaged += 1;
            match pin.filter(|_| self.damaged <= MOST_DAMAGED) {
                Some(pin) => pin.drop_damaged(),
                None => {
                    self.stop();
                    let is_short = matches!(error, OriginError::Io { kind: std::io::ErrorKind::UnexpectedEof, .. });
                    return Some(Err(if is_short { self.object.is_cut(at) } else { error }));
                }
            }
            self.held = None;
            self.position = at;
        }
    }

    /// Returns bytes of the cache's own files, in memory.
    async fn read_cached(&self, file: Arc<File>, range: Range<u64>, pin: Option<Pin>) -> Result<Bytes, OriginError> {
        if range.end.saturating_sub(range.start) <= AT_ONCE
            && let Some(bytes) = disk::read_resident(&file, &range)
        {
            return Ok(bytes);
        }
        let read = tokio::task::spawn_blocking(move || {
            let bytes = disk::read_at(&file, range);
            drop(pin);
            bytes
        });
        let read = read.await.unwrap_or_else(|error| Err(std::io::Error::other(error)));
        read.map_err(|error| OriginError::Io {
            at: self.object.source().at(self.object.path()),
            kind: error.kind(),
            detail: format!("reading the cache: {error}"),
        })
    }

    /// Returns the next part of the file, usually the whole rest, after a check that the file is unchanged.
    fn next_of_file(&mut self, file: Arc<File>) -> Result<Chunk, OriginError> {
        let Range { start, end } = self.remaining();
        let range = start..end.min(start.saturating_add(self.part));
        self.stop();
        self.object.check()?;
        self.position = range.end;
        let counters = &self.object.source().counters;
        stats::add(&counters.file_bytes, range.end - range.start);
        Ok(Chunk::File { file, range, pin: None })
    }

    fn stop(&mut self) {
        self.position = self.end;
        self.held = None;
        self.tickets.clear();
    }

    async fn next_part(&mut self) -> Result<Chunk, OriginError> {
        let index = self.position / self.slices.slice();
        let mut chunk = self.arrived().await?;
        let chunk = chunk.split_to(self.end - self.position);
        self.count(index, chunk.len());
        Ok(chunk)
    }

    /// Waits for bytes at the position.
    async fn arrived(&mut self) -> Result<Chunk, OriginError> {
        let index = self.position / self.slices.slice();
        let offset = (self.position % self.slices.slice()) as usize;
        self.tickets.retain(|ticket| index < ticket.indexes().end);
        loop {
            if let Some(chunk) = self.held(index, offset).await? {
                return Ok(chunk);
            }
            let mut waiting = None;
            let mut found = None;
            for ticket in &mut self.tickets {
                if !ticket.indexes().contains(&index) {
                    continue;
                }
                match ticket.look(index, offset) {
                    FlightBytes::Bytes(bytes) => found = Some(bytes),
                    FlightBytes::Wait => waiting = Some(ticket),
                    FlightBytes::Passed => {}
                    FlightBytes::Failed(error) => return Err(error),
                }
            }
            if let Some(bytes) = found {
                return Ok(Chunk::Bytes(bytes));
            }
            match waiting {
                Some(ticket) => {
                    tracing::trace!(path = %self.object.path(), index, offset, "waiting");
                    if self.begun != Some(index) {
                        self.waiting.get_or_insert_with(Instant::now);
                    }
                    ticket.changed().await;
                }
                None => self.acquire(index),
            }
        }
    }

    /// Returns the bytes of the held slice at an offset.
    async fn held(&mut self, index: u64, offset: usize) -> Result<Option<Chunk>, OriginError> {
        let Some((_, stored)) = self.held.as_ref().filter(|(held, _)| *held == index) else {
            self.held = None;
            return Ok(None);
        };
        let slice = match stored {
            Stored::Memory(slice) => return Ok(slice.at(offset).map(Chunk::Bytes)),
            Stored::Disk(slice) => slice.clone(),
        };
        if slice.is_proven().await {
            let (file, range, pin) = slice.rest(offset as u64);
            if slice.is_sendable() {
                return Ok(Some(Chunk::File { file, range, pin: Some(pin) }));
            }
            if let Ok(bytes) = self.read_cached(file, range, Some(pin)).await {
                return Ok(Some(Chunk::Bytes(bytes)));
            }
        }
        slice.drop_damaged();
        self.held = None;
        Ok(None)
    }

    /// Gets a slice that is neither held nor on its way to this reader.
    fn acquire(&mut self, index: u64) {
        if let Some(slice) = self.slices.get(self.object.slice_id(index), self.object.named()) {
            self.held = Some((index, slice));
            return;
        }
        let until = self.slices.indexes(&(self.position..self.end)).end;
        let wanted = Wanted { index, until, end: self.end, stop: self.stop };
        match self.object.acquire(&self.slices, wanted, tokio::time::Instant::now()) {
            Acquired::Slice(slice) => self.held = Some((index, slice)),
            Acquired::Ticket(ticket, joined) => self.take(ticket, joined),
        }
    }

    fn take(&mut self, ticket: Ticket, joined: bool) {
        if joined {
            stats::add(&self.object.source().counters.collapsed, 1);
        }
        self.tickets.push(ticket);
    }

    /// Counts bytes. At the first byte of a slice, looks ahead.
    fn count(&mut self, index: u64, len: u64) {
        let counters = &self.object.source().counters;
        // A slice that was on its way to this reader is a miss, though it may be complete by now.
        let missed = self.tickets.iter().any(|ticket| ticket.indexes().contains(&index));
        let on_disk = matches!(self.held, Some((_, Stored::Disk(_))));
        let usage = &self.object.usage;
        let (slices, bytes, of_object) = match (missed, on_disk) {
            (true, _) => (&counters.slice_misses, &counters.miss_bytes, &usage.miss_bytes),
            (false, true) => (&counters.slice_hits, &counters.disk_hit_bytes, &usage.hit_bytes),
            (false, false) => (&counters.slice_hits, &counters.memory_hit_bytes, &usage.hit_bytes),
        };
        stats::add(bytes, len);
        stats::add(of_object, len);
        match &self.counts {
            Some(counts) if missed => counts.miss(len),
            Some(counts) => counts.hit(len),
            None => {}
        }
        if let Some(since) = self.waiting.take() {
            counters.misses.add(since.elapsed());
        }
        if self.begun != Some(index) {
            stats::add(slices, 1);
            let enters = self.position.is_multiple_of(self.slices.slice());
            self.slices.read(self.object.slice_id(index), self.object.named(), enters);
            self.object.source().speculation.is_read(self.object.slice_id(index).key());
            self.begun = Some(index);
            self.look_ahead(index);
        }
    }

    /// Fetches the next missing slice before the reader reaches it.
    fn look_ahead(&mut self, index: u64) {
        let until = self.slices.indexes(&(self.position..self.end)).end;
        let window = (AHEAD / self.slices.slice()).max(2);
        let next = index + 1..until.min(index.saturating_add(window).saturating_add(1));
        let missing = next.into_iter().find(|index| {
            let comes = |ticket: &Ticket| ticket.indexes().contains(index);
            let start = index.saturating_mul(self.slices.slice());
            let needed = self.end.saturating_sub(start).min(self.slices.slice());
            !self.tickets.iter().any(comes) && !self.slices.reaches(self.object.slice_id(*index), needed)
        });
        let Some(missing) = missing else { return };
        let wanted = Wanted { index: missing, until, end: self.end, stop: self.stop };
        if let Acquired::Ticket(ticket, joined) = self.object.acquire(&self.slices, wanted, tokio::time::Instant::now())
        {
            self.take(ticket, joined);
        }
    }
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader")
            .field("object", &self.object)
            .field("remaining", &self.remaining())
            .finish_non_exhaustive()
    }
}
