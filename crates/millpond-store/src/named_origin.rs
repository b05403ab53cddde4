//! The origin of a place, with its counters.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use tokio::time::Instant;
use tracing::{Instrument as _, Span};

use crate::error::{At, OriginError};
use crate::origin::{Fetched, ObjectMeta, Origin, SentBy};
use crate::path::ObjectPath;
use crate::schedule::{LinkLanes, LinkState, Meter, Mode, Seconds};
use crate::scheduler::Scheduler;
use crate::speculation::Speculation;
use crate::stats::{self, PlaceCounters};
use crate::trace;

/// Most bytes that are allocated before they arrive.
const AHEAD: u64 = 1024 * 1024;

/// The origin of a place, with its counters, link and prefetch.
#[derive(Debug)]
pub(crate) struct NamedOrigin {
    pub(crate) name: Arc<str>,
    pub(crate) origin: Arc<dyn Origin>,
    pub(crate) description: Arc<str>,
    pub(crate) counters: PlaceCounters,
    pub(crate) scheduler: Scheduler,
    pub(crate) speculation: Speculation,
    /// A lock: taken for each piece that arrives.
    meter: Mutex<Meter>,
    started: Instant,
    /// Bytes of a slice.
    slice: u64,
}

impl NamedOrigin {
    pub(crate) fn new(name: &str, origin: Arc<dyn Origin>, mode: Mode, slice: u64) -> Self {
        Self {
            name: Arc::from(name),
            description: Arc::from(origin.describe()),
            origin,
            counters: PlaceCounters::default(),
            scheduler: Scheduler::new(mode, slice),
            speculation: Speculation::default(),
            meter: Mutex::default(),
            started: Instant::now(),
            slice,
        }
    }

    /// Returns the time on the clock of viewers and link.
    pub(crate) fn now(&self) -> Seconds {
        self.started.elapsed().as_secs_f64()
    }

    /// Returns the moment of a time on that clock.
    pub(crate) fn at_time(&self, time: Seconds) -> Instant {
        self.started + Duration::try_from_secs_f64(time).unwrap_or_default()
    }

    /// Returns the state of the link to the origin.
    pub(crate) fn link(&self) -> LinkState {
        let lanes = self.origin.facts().lanes.map(|lanes| {
            let slices = usize::try_from(lanes.unit.div_ceil(self.slice.max(1))).unwrap_or(usize::MAX);
            LinkLanes { slices: lanes.units.saturating_mul(slices), ..lanes.link() }
        });
        LinkState { lanes, ..self.meter().state() }
    }

    /// Returns the measured bandwidth of the link, in bytes a second; `None` before the first measurement.
    pub(crate) fn measured(&self) -> Option<f64> {
        self.meter().measured()
    }

    /// Returns the bandwidth that a start can be staked on, in bytes a second; `None` before the first measurement.
    pub(crate) fn prudent_bandwidth(&self) -> Option<f64> {
        self.meter().prudent()
    }

    /// Whether the bandwidth of the link is known, and not only a lower bound of it.
    pub(crate) fn is_measured(&self) -> bool {
        self.meter().is_measured()
    }

    fn meter(&self) -> MutexGuard<'_, Meter> {
        self.meter.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the location of a path, for errors.
    pub(crate) fn at(&self, path: &ObjectPath) -> At {
        At { origin: self.description.clone(), path: Arc::from(path.as_str()) }
    }

    /// Returns the span of a request for a trace: for a range, or to open an object.
    pub(crate) fn span(&self, path: &ObjectPath, range: Option<&Range<u64>>) -> Span {
        tracing::info_span!(
            target: trace::TARGET,
            "origin request",
            otel.kind = "client",
            millpond.place = &*self.name,
            millpond.origin = &*self.description,
            millpond.path = path.as_str(),
            millpond.range = range.map(tracing::field::debug),
            otel.status_code = tracing::field::Empty,
        )
    }

    /// Requests bytes of the version that was opened.
    pub(crate) async fn read(
        &self,
        path: &ObjectPath,
        range: Range<u64>,
        meta: &ObjectMeta,
    ) -> Result<Fetched, OriginError> {
        tracing::debug!(place = %self.name, %path, ?range, "origin request");
        stats::add(&self.counters.requests, 1);
        let span = self.span(path, Some(&range));
        let read = self.origin.read(path, range, Some(meta)).instrument(span.clone()).await;
        if read.is_err() {
            span.record("otel.status_code", "ERROR");
        }
        read
    }

    /// Waits for all bytes of a reply, which must be the bytes of `range`.
    pub(crate) async fn collect(
        &self,
        path: &ObjectPath,
        range: Range<u64>,
        mut fetched: Fetched,
    ) -> Result<Bytes, OriginError> {
        let expected = range.end - range.start;
        let mut bytes = Vec::with_capacity(expected.min(AHEAD) as usize);
        while let Some(piece) = fetched.body.next().await {
            let piece = piece?;
            stats::add(&self.counters.received_bytes, piece.len() as u64);
            bytes.extend_from_slice(&piece);
        }
        let received = bytes.len() as u64;
        if fetched.range != range || received != expected {
            return Err(OriginError::Truncated {
                at: self.at(path),
                expected,
                received,
                detail: "the body ended".into(),
            });
        }
        Ok(bytes.into())
    }
}

/// A transfer that the link's meter measures.
pub(crate) struct Transfer {
    source: Arc<NamedOrigin>,
    /// The time of its request, if the time to its first byte measures the delay.
    asked: Option<Seconds>,
    rest: u64,
    begun: bool,
    /// Whether the bytes cross the link to the origin. Replies of siblings do not, so the meter of the link leaves them out.
    is_of_link: bool,
}

impl Transfer {
    pub(crate) fn new(source: Arc<NamedOrigin>, is_asked_now: bool) -> Self {
        let tells = source.meter().tells_delay() && is_asked_now;
        let asked = tells.then(|| source.now());
        Self { source, asked, rest: 0, begun: false, is_of_link: true }
    }

    /// Notes the sender of the reply, from which the transfer reads.
    pub(crate) fn note_sender(&mut self, sender: SentBy) {
        if sender == SentBy::Sibling && self.is_of_link {
            self.is_of_link = false;
            self.source.meter().ends(self.source.now(), self.rest, self.begun);
        }
    }

    /// Counts bytes that are requested.
    pub(crate) fn expects(&mut self, bytes: u64) {
        if !self.is_of_link {
            return;
        }
        self.rest += bytes;
        self.source.meter().requested(bytes);
    }

    /// Counts bytes that arrived.
    pub(crate) fn arrived(&mut self, bytes: u64) {
        if !self.is_of_link {
            return;
        }
        let bytes = bytes.min(self.rest);
        let now = self.source.now();
        let mut meter = self.source.meter();
        if std::mem::replace(&mut self.begun, true) {
            meter.arrived(now, bytes);
        } else {
            meter.begins(now, self.asked.map(|asked| now - asked), bytes);
        }
        self.rest -= bytes;
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        if !self.is_of_link {
            return;
        }
        let now = self.source.now();
        self.source.meter().ends(now, self.rest, self.begun);
    }
}
