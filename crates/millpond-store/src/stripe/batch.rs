//! Batch retrieval: units of several stores are read at the same time, and handed on in order.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::group::{StripeGroup, Wanted};
use super::map::StripeMap;
use super::turns::PieceDue;
use crate::due::Due;
use crate::error::{At, OriginError};
use crate::layout::Piece;
use crate::origin::OriginBody;

/// Bytes of one permit of [`ReadAhead`].
const PERMIT: u64 = 1 << 10;

/// Memory for pieces that are read before their turn, shared by all readers of a place. The piece that a reader waits for needs
/// none of this memory, so no reader waits for another one.
pub(super) type ReadAhead = Arc<Semaphore>;

/// Returns that memory, of `bytes` bytes.
pub(super) fn read_ahead(bytes: u64) -> ReadAhead {
    Arc::new(Semaphore::new(usize::try_from(bytes / PERMIT).unwrap_or(0).min(Semaphore::MAX_PERMITS)))
}

/// A range of a striped object on its way.
pub(super) struct Batch {
    group: Arc<StripeGroup>,
    memory: ReadAhead,
    map: Arc<StripeMap>,
    /// The striped object, for errors.
    at: At,
    /// The bytes of which no piece is requested yet.
    rest: Range<u64>,
    /// Pieces under way, the first one's bytes next.
    under_way: VecDeque<Coming>,
    /// Most pieces under way.
    most: usize,
    due: Due,
    began: Instant,
}

/// A piece on its way. Dropping it ends its transfer.
struct Coming {
    /// Never more than the bytes of the piece wait here.
    bytes: mpsc::UnboundedReceiver<Result<Bytes, OriginError>>,
    task: AbortHandle,
    left: u64,
    _memory: Option<OwnedSemaphorePermit>,
}

impl Drop for Coming {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Batch {
    /// Creates a reader of `range` that has at most `most` pieces under way. Its deadline is the current read's.
    pub(super) fn new(
        group: &Arc<StripeGroup>,
        memory: &ReadAhead,
        map: &Arc<StripeMap>,
        at: At,
        range: Range<u64>,
        most: usize,
    ) -> Self {
        let (group, memory, map) = (group.clone(), memory.clone(), map.clone());
        let (due, began) = (Due::current(), Instant::now());
        Self { group, memory, map, at, rest: range, under_way: VecDeque::new(), most: most.max(1), due, began }
    }

    /// Returns the bytes of the range, in order.
    pub(super) fn into_body(self) -> OriginBody {
        Box::pin(stream::try_unfold(self, |mut batch| async move {
            let bytes = batch.next().await?;
            Ok(bytes.map(|bytes| (bytes, batch)))
        }))
    }

    async fn next(&mut self) -> Result<Option<Bytes>, OriginError> {
        loop {
            self.refill();
            let Some(first) = self.under_way.front_mut() else { return Ok(None) };
            if first.left == 0 {
                self.under_way.pop_front();
                continue;
            }
            let Some(bytes) = first.bytes.recv().await else {
                return Err(OriginError::Truncated {
                    at: self.at.clone(),
                    expected: first.left,
                    received: 0,
                    detail: "a piece ended".into(),
                });
            };
            let bytes = bytes?;
            first.left = first.left.saturating_sub(bytes.len() as u64);
            if !bytes.is_empty() {
                return Ok(Some(bytes));
            }
        }
    }

    /// Requests pieces, as far as memory permits.
    fn refill(&mut self) {
        while self.under_way.len() < self.most
            && let Some(piece) = self.map.layout().first(&self.rest)
        {
            let length = piece.range.end - piece.range.start;
            let memory = if self.under_way.is_empty() {
                None
            } else {
                // A piece is no longer than the largest unit.
                let permits = length.div_ceil(PERMIT) as u32;
                let Ok(memory) = self.memory.clone().try_acquire_many_owned(permits) else { break };
                Some(memory)
            };
            self.rest.start += length;
            let coming = self.start(piece, length, memory);
            self.under_way.push_back(coming);
        }
    }

    fn start(&self, piece: Piece, left: u64, memory: Option<OwnedSemaphorePermit>) -> Coming {
        let (to, bytes) = mpsc::unbounded_channel();
        let due = PieceDue { read: self.due.clone(), after: self.began.elapsed() };
        let wanted = Wanted { map: self.map.clone(), at: self.at.clone(), piece, due };
        let group = self.group.clone();
        let task = tokio::spawn(async move { group.bring(wanted, to).await }).abort_handle();
        Coming { bytes, task, left, _memory: memory }
    }
}
