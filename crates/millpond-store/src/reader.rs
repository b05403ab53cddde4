//! Reading a range of an object, piece by piece.

use std::fmt;
use std::fs::File;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream::{self, BoxStream};

use crate::error::OriginError;
use crate::flight::{Look, Ticket};
use crate::object::{Acquired, Object};
use crate::origin::disk;
use crate::slices::{Slice, SliceCache};
use crate::stats;

/// The next origin request begins when less than this is left of what has been asked for.
const AHEAD: u64 = 1024 * 1024;

/// A part of what was asked for, in order.
#[derive(Clone, Debug)]
pub enum Chunk {
    /// Bytes in memory. They keep the slice they are part of alive, so hold few of them.
    Bytes(Bytes),
    /// Bytes of a file, for the kernel to send.
    File {
        /// The open file.
        file: Arc<File>,
        /// Which of its bytes.
        range: Range<u64>,
    },
}

impl Chunk {
    /// Length in bytes.
    pub fn len(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::File { range, .. } => range.end.saturating_sub(range.start),
        }
    }

    /// Whether it has no bytes. A reader gives no such chunk.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Gives the bytes of a range as they become available.
///
/// Dropping it is the way to stop: origin requests that nobody else waits for then end at once, and what is complete
/// of them stays cached. It fetches nothing behind its range, and at most one run ahead of its position.
pub struct Reader {
    slices: Arc<SliceCache>,
    object: Arc<Object>,
    position: u64,
    end: u64,
    /// The complete slice that holds the position.
    held: Option<(u64, Arc<Slice>)>,
    /// Flights that bring slices of the range at or behind the position.
    tickets: Vec<Ticket>,
    /// The slice last begun.
    begun: Option<u64>,
}

impl Reader {
    /// What lies behind the end of the object is cut off.
    pub(crate) fn new(slices: Arc<SliceCache>, object: Arc<Object>, range: Range<u64>) -> Self {
        let end = range.end.min(object.meta().len);
        Self { slices, object, position: range.start, end, held: None, tickets: Vec::new(), begun: None }
    }

    /// The range that is still to come, cut at the end of the object.
    pub fn remaining(&self) -> Range<u64> {
        self.position.min(self.end)..self.end
    }

    /// The next part; none at the end. After an error there is nothing more.
    ///
    /// Cancel safe: a dropped future took nothing.
    pub async fn next(&mut self) -> Option<Result<Chunk, OriginError>> {
        if self.position >= self.end {
            return None;
        }
        if let Some(file) = self.object.file().cloned() {
            return Some(self.next_of_file(file));
        }
        let result = self.next_bytes().await;
        match &result {
            Ok(bytes) => self.position += bytes.len() as u64,
            Err(_) => self.stop(),
        }
        Some(result.map(Chunk::Bytes))
    }

    /// The rest as a stream.
    pub fn into_stream(self) -> BoxStream<'static, Result<Chunk, OriginError>> {
        Box::pin(stream::unfold(self, |mut reader| async move {
            let item = reader.next().await?;
            Some((item, reader))
        }))
    }

    /// The whole rest as one range of the file, after a look that nobody wrote into it.
    fn next_of_file(&mut self, file: Arc<File>) -> Result<Chunk, OriginError> {
        let range = self.remaining();
        self.stop();
        check_file(&self.object, &file)?;
        let counters = &self.object.source().counters;
        stats::add(&counters.file_bytes, range.end - range.start);
        Ok(Chunk::File { file, range })
    }

    fn stop(&mut self) {
        self.position = self.end;
        self.held = None;
        self.tickets.clear();
    }

    async fn next_bytes(&mut self) -> Result<Bytes, OriginError> {
        let index = self.position / self.slices.slice();
        let offset = (self.position % self.slices.slice()) as usize;
        self.tickets.retain(|ticket| index < ticket.indexes().end);
        let mut bytes = loop {
            if let Some(bytes) = self.held(index, offset) {
                break bytes;
            }
            let mut waiting = None;
            let mut found = None;
            for ticket in &mut self.tickets {
                if !ticket.indexes().contains(&index) {
                    continue;
                }
                match ticket.look(index, offset) {
                    Look::Bytes(bytes) => found = Some(bytes),
                    Look::Wait => waiting = Some(ticket),
                    Look::Passed => {}
                    Look::Failed(error) => return Err(error),
                }
            }
            if let Some(bytes) = found {
                break bytes;
            }
            match waiting {
                Some(ticket) => ticket.changed().await,
                None => self.acquire(index),
            }
        };
        self.count(index, bytes.len().min(self.left()));
        bytes.truncate(self.left());
        Ok(bytes)
    }

    fn left(&self) -> usize {
        usize::try_from(self.end - self.position).unwrap_or(usize::MAX)
    }

    fn held(&mut self, index: u64, offset: usize) -> Option<Bytes> {
        let (held, slice) = self.held.as_ref()?;
        if *held != index {
            self.held = None;
            return None;
        }
        slice.at(offset)
    }

    /// Gets a slice that is neither held nor on its way to us.
    fn acquire(&mut self, index: u64) {
        if let Some(slice) = self.slices.cache.get(&self.object.slice_id(index)) {
            self.held = Some((index, slice));
            return;
        }
        let until = self.slices.indexes(&(self.position..self.end)).end;
        match self.object.acquire(&self.slices, index, until) {
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

    /// Counts bytes, and at the first of a slice looks ahead.
    fn count(&mut self, index: u64, len: usize) {
        let counters = &self.object.source().counters;
        // A slice that was on its way to us is a miss, though it may be complete by now.
        let missed = self.tickets.iter().any(|ticket| ticket.indexes().contains(&index));
        let (slices, bytes) = if missed {
            (&counters.slice_misses, &counters.miss_bytes)
        } else {
            (&counters.slice_hits, &counters.hit_bytes)
        };
        stats::add(bytes, len as u64);
        if self.begun != Some(index) {
            stats::add(slices, 1);
            self.begun = Some(index);
            self.look_ahead(index);
        }
    }

    /// Sends for the next missing slice before the reader comes to it, so that it need not stop there.
    fn look_ahead(&mut self, index: u64) {
        let until = self.slices.indexes(&(self.position..self.end)).end;
        let window = (AHEAD / self.slices.slice()).max(2);
        let next = index + 1..until.min(index.saturating_add(window).saturating_add(1));
        let missing = next.into_iter().find(|index| {
            let comes = |ticket: &Ticket| ticket.indexes().contains(index);
            !self.tickets.iter().any(comes) && !self.slices.cache.contains(&self.object.slice_id(*index))
        });
        if let Some(missing) = missing
            && let Acquired::Ticket(ticket, joined) = self.object.acquire(&self.slices, missing, until)
        {
            self.take(ticket, joined);
        }
    }
}

/// Whether an open file is still what was opened: one `fstat`, which asks no disk.
pub(crate) fn check_file(object: &Object, file: &File) -> Result<(), OriginError> {
    let error = match disk::is_unchanged(file, object.meta()) {
        Ok(true) => return Ok(()),
        Ok(false) => OriginError::Changed {
            at: object.source().at(object.path()),
            expected: object.meta().version.clone(),
            found: None,
        },
        Err(error) => {
            OriginError::Io { at: object.source().at(object.path()), kind: error.kind(), detail: error.to_string() }
        }
    };
    object.note(&error);
    Err(error)
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader")
            .field("object", &self.object)
            .field("remaining", &self.remaining())
            .finish_non_exhaustive()
    }
}
