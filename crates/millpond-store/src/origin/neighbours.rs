//! Sibling caches, asked before the origin (the cooperative caches of the SProxy paper).
//!
//! A sibling is any HTTP cache that has the place's objects below a URL: another Millpond, or nginx, Squid or Varnish
//! in front of the same origin. Requests to it are plain HTTP with `Cache-Control: only-if-cached` (RFC 9111 5.2.1.7),
//! so that caches that know the directive do not fetch on our behalf. They carry `CDN-Loop` (RFC 8586), so that caches
//! that are siblings of each other do not ask in circles. A sibling that fails is not asked for a while. One that
//! exceeds its time limit is given up, and the origin is asked.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt};
use tokio::time::{Instant, timeout};

use crate::error::OriginError;
use crate::layout::Striping;
use crate::origin::{
    BoxFuture, Fetched, Listing, NeighbourStats, ObjectMeta, OpenFile, Origin, OriginCounts, OriginFacts, SentBy,
};
use crate::path::ObjectPath;

/// First pause after a failure of a sibling. It doubles with each failure in a row, up to [`LONGEST_REST`].
const REST: Duration = Duration::from_secs(1);
const LONGEST_REST: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(crate) struct NeighbourCounters {
    hits: AtomicU64,
    misses: AtomicU64,
    failures: AtomicU64,
    bytes: AtomicU64,
    zone_bytes: AtomicU64,
    further: AtomicU64,
}

impl NeighbourCounters {
    fn hit(&self) {
        self.hits.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn miss(&self) {
        self.misses.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn failure(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn further(&self) {
        self.further.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn snapshot(&self) -> NeighbourStats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        NeighbourStats {
            hits: read(&self.hits),
            misses: read(&self.misses),
            failures: read(&self.failures),
            bytes: read(&self.bytes),
            zone_bytes: read(&self.zone_bytes),
            further: read(&self.further),
        }
    }

    /// Counts a sibling's reply, and its bytes as they arrive. `crosses` is whether it is in another zone.
    pub(super) fn counted(self: &Arc<Self>, fetched: Fetched, crosses: bool) -> Fetched {
        self.hit();
        let counters = self.clone();
        let body = fetched.body.inspect_ok(move |piece| {
            let bytes = piece.len() as u64;
            counters.bytes.fetch_add(bytes, Ordering::Relaxed);
            if crosses {
                counters.zone_bytes.fetch_add(bytes, Ordering::Relaxed);
            }
        });
        Fetched { body: body.boxed(), sender: SentBy::Sibling, ..fetched }
    }
}

/// An origin whose siblings are asked first.
#[derive(Debug)]
pub(crate) struct NeighbourOrigin {
    siblings: Vec<Sibling>,
    origin: Arc<dyn Origin>,
    /// Time limit for the first byte of a sibling's reply.
    patience: Duration,
    counters: Arc<NeighbourCounters>,
}

#[derive(Debug)]
pub(super) struct Sibling {
    pub(super) cache: Arc<dyn Origin>,
    /// Failures in a row, and the end of the pause. A lock, held briefly.
    rest: Mutex<(u32, Option<Instant>)>,
}

impl Sibling {
    pub(super) fn new(cache: Arc<dyn Origin>) -> Self {
        Self { cache, rest: Mutex::default() }
    }

    pub(super) fn is_resting(&self) -> bool {
        let rest = self.rest.lock().unwrap_or_else(PoisonError::into_inner);
        rest.1.is_some_and(|until| Instant::now() < until)
    }

    pub(super) fn failed(&self) {
        let mut rest = self.rest.lock().unwrap_or_else(PoisonError::into_inner);
        // Requests that were under way together are one failure.
        if rest.1.is_some_and(|until| Instant::now() < until) {
            return;
        }
        let pause = REST.saturating_mul(1 << rest.0.min(10)).min(LONGEST_REST);
        *rest = (rest.0.saturating_add(1), Some(Instant::now() + pause));
    }

    pub(super) fn answered(&self) {
        *self.rest.lock().unwrap_or_else(PoisonError::into_inner) = (0, None);
    }
}

impl NeighbourOrigin {
    pub(crate) fn new(siblings: Vec<Arc<dyn Origin>>, origin: Arc<dyn Origin>, patience: Duration) -> Self {
        let siblings = siblings.into_iter().map(Sibling::new).collect();
        Self { siblings, origin, patience, counters: Arc::default() }
    }

    /// Returns the reply of the first sibling that has the range.
    async fn ask(&self, path: &ObjectPath, range: &Range<u64>, expected: &ObjectMeta) -> Option<Fetched> {
        for sibling in self.siblings.iter().filter(|sibling| !sibling.is_resting()) {
            match timeout(self.patience, sibling.cache.read(path, range.clone(), Some(expected))).await {
                Ok(Ok(fetched)) if fetched.range == *range => {
                    sibling.answered();
                    return Some(self.counters.counted(fetched, false));
                }
                // The sibling works, but has no copy, another version, or less than the range.
                Ok(Ok(_)) => sibling.answered(),
                Ok(Err(error)) if is_a_miss(&error) => sibling.answered(),
                Ok(Err(error)) => {
                    tracing::debug!(sibling = %sibling.cache.describe(), %error, "a sibling cache failed");
                    self.counters.failure();
                    sibling.failed();
                }
                Err(_) => {
                    tracing::debug!(sibling = %sibling.cache.describe(), "a sibling cache was too slow");
                    self.counters.failure();
                    sibling.failed();
                }
            }
        }
        self.counters.miss();
        None
    }
}

/// 504 is the reply to `only-if-cached` without a copy (RFC 9111 5.2.1.7); 508 is the end of a loop. 414 is a name that is too long behind
/// the place and the pass (RFC 9110 15.5.15).
pub(super) fn is_a_miss(error: &OriginError) -> bool {
    error.is_not_found() || error.is_changed() || matches!(error, OriginError::Status { code: 414 | 504 | 508, .. })
}

impl Origin for NeighbourOrigin {
    fn describe(&self) -> String {
        self.origin.describe()
    }

    fn head<'a>(&'a self, path: &'a ObjectPath) -> BoxFuture<'a, Result<ObjectMeta, OriginError>> {
        self.origin.head(path)
    }

    fn read<'a>(
        &'a self,
        path: &'a ObjectPath,
        range: Range<u64>,
        expected: Option<&'a ObjectMeta>,
    ) -> BoxFuture<'a, Result<Fetched, OriginError>> {
        Box::pin(async move {
            // Only the origin knows the current version: without an expected one, a sibling might return an old
            // version.
            if let Some(expected) = expected.filter(|_| !range.is_empty())
                && let Some(fetched) = self.ask(path, &range, expected).await
            {
                return Ok(fetched);
            }
            self.origin.read(path, range, expected).await
        })
    }

    fn list<'a>(&'a self, folder: &'a ObjectPath) -> BoxFuture<'a, Result<Listing, OriginError>> {
        self.origin.list(folder)
    }

    fn open_file<'a>(&'a self, path: &'a ObjectPath) -> BoxFuture<'a, Result<Option<OpenFile>, OriginError>> {
        self.origin.open_file(path)
    }

    fn facts(&self) -> OriginFacts {
        OriginFacts { has_neighbours: true, ..self.origin.facts() }
    }

    fn counts(&self) -> OriginCounts {
        OriginCounts { neighbours: Some(self.counters.snapshot()), ..self.origin.counts() }
    }

    fn striping(&self, path: &ObjectPath) -> Option<Striping> {
        self.origin.striping(path)
    }
}
