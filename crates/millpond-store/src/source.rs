//! An origin under the name of a place, with its counters.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use futures_util::StreamExt;

use crate::error::{At, OriginError};
use crate::object::Object;
use crate::origin::{Fetched, Origin};
use crate::path::ObjectPath;
use crate::prefetch::Scheduler;
use crate::schedule::{Link, Meter, Mode, Seconds};
use crate::speculation::Speculation;
use crate::stats::{self, Counters};

/// The most that is allocated for bytes before they come.
const AHEAD: u64 = 1024 * 1024;

/// What objects need of their place.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) name: Arc<str>,
    pub(crate) origin: Arc<dyn Origin>,
    pub(crate) description: Arc<str>,
    pub(crate) counters: Counters,
    pub(crate) scheduler: Scheduler,
    pub(crate) speculation: Speculation,
    /// A lock: taken for each piece that comes.
    meter: Mutex<Meter>,
    started: Instant,
}

impl Source {
    pub(crate) fn new(name: &str, origin: Arc<dyn Origin>, mode: Mode, slice: u64) -> Self {
        Self {
            name: Arc::from(name),
            description: Arc::from(origin.describe()),
            origin,
            counters: Counters::default(),
            scheduler: Scheduler::new(mode, slice),
            speculation: Speculation::default(),
            meter: Mutex::default(),
            started: Instant::now(),
        }
    }

    /// The clock of viewers and link.
    pub(crate) fn now(&self) -> Seconds {
        self.started.elapsed().as_secs_f64()
    }

    /// What the link to the origin gives, for how long it has work, and its delay where nothing is in the way.
    pub(crate) fn link(&self) -> (Link, Seconds, Seconds) {
        let meter = self.meter();
        (meter.link(), meter.busy(), meter.least_delay())
    }

    fn meter(&self) -> MutexGuard<'_, Meter> {
        self.meter.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Names a path here, for errors.
    pub(crate) fn at(&self, path: &ObjectPath) -> At {
        At { origin: self.description.clone(), path: Arc::from(path.as_str()) }
    }

    /// Asks the origin for bytes of the version that was opened.
    pub(crate) async fn read(&self, object: &Object, range: Range<u64>) -> Result<Fetched, OriginError> {
        tracing::debug!(place = %self.name, path = %object.path(), ?range, "origin request");
        stats::add(&self.counters.origin_requests, 1);
        self.origin.read(object.path(), range, Some(object.meta())).await
    }

    /// Asks the origin for exactly a range, and waits for all of it.
    pub(crate) async fn read_whole(&self, object: &Object, range: Range<u64>) -> Result<Bytes, OriginError> {
        let mut fetched = self.read(object, range.clone()).await?;
        object.restrict(&fetched.meta.freshness);
        let expected = range.end - range.start;
        let mut bytes = Vec::with_capacity(expected.min(AHEAD) as usize);
        while let Some(piece) = fetched.body.next().await {
            let piece = piece?;
            stats::add(&self.counters.origin_bytes, piece.len() as u64);
            bytes.extend_from_slice(&piece);
        }
        let received = bytes.len() as u64;
        if fetched.range != range || received != expected {
            return Err(OriginError::Truncated {
                at: self.at(object.path()),
                expected,
                received,
                detail: "the body ended".into(),
            });
        }
        Ok(bytes.into())
    }
}

/// A transfer that is measured.
pub(crate) struct Transfer<'a> {
    source: &'a Source,
    /// When it was asked for, where the time to its first byte tells the delay.
    asked: Option<Seconds>,
    rest: u64,
    begun: bool,
}

impl<'a> Transfer<'a> {
    pub(crate) fn new(source: &'a Source, is_asked_now: bool) -> Self {
        let tells = source.meter().tells_delay() && is_asked_now;
        Self { source, asked: tells.then(|| source.now()), rest: 0, begun: false }
    }

    /// So many bytes more are to come.
    pub(crate) fn expects(&mut self, bytes: u64) {
        self.rest += bytes;
        self.source.meter().sent_for(bytes);
    }

    /// Bytes came.
    pub(crate) fn comes(&mut self, bytes: u64) {
        let bytes = bytes.min(self.rest);
        let now = self.source.now();
        let mut meter = self.source.meter();
        if std::mem::replace(&mut self.begun, true) {
            meter.comes(now, bytes);
        } else {
            meter.begins(now, self.asked.map(|asked| now - asked), bytes);
        }
        self.rest -= bytes;
    }
}

impl Drop for Transfer<'_> {
    fn drop(&mut self) {
        let now = self.source.now();
        self.source.meter().ends(now, self.rest, self.begun);
    }
}
