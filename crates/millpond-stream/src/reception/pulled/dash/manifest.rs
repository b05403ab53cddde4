//! The manifest of a source, which all renditions of a session share.

use super::clock::{Arrival, SourceClock, read};
use crate::{
    reception::{
        fetching::{Fetcher, error},
        pulled::PulledSource,
        rtsp::link::Stopwatch,
    },
    source_health::{SourceError, SourceErrorKind},
};
use millpond_package::dash_manifest::{LiveManifest, MOST_BYTES, Presentation, Turn};
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::{Notify, watch},
    time::sleep,
};
use url::Url;

/// Time for which requests for the manifest may fail, in durations of segments, and the least such time.
const FAILING: (u32, Duration) = (2, Duration::from_secs(4));
/// Least pause before a manifest that was not read is requested again.
const AGAIN: Duration = Duration::from_millis(500);

/// The manifest of a source in one session.
pub(super) struct Manifest {
    url: Url,
    readings: watch::Sender<Arc<Reading>>,
    /// Tells that segments were missing, so that the manifest may be another one.
    wanted: Notify,
}

/// The presentation after the last reading of the manifest, with the URL and the clock of the source.
pub(super) struct Reading {
    pub(super) presentation: Presentation,
    /// URL of the last reading, from which URIs count.
    pub(super) base: Url,
    pub(super) clock: SourceClock,
}

impl Manifest {
    /// Reads the manifest for the first time.
    ///
    /// # Errors
    /// It can't be read, or is of no live stream that is received.
    pub(super) async fn open(source: &PulledSource, fetcher: &Fetcher, watch: Stopwatch) -> Result<Self, SourceError> {
        let asked = watch.now();
        let (base, arrival, manifest) = request(fetcher, source.url().clone(), watch).await?;
        if !manifest.is_dynamic {
            let words = "the manifest is static, so it is of a stored title and no live stream: write the folder of its files as a place of \
                         http or https";
            return Err(error(SourceErrorKind::NoMedia, &base, words.to_owned()));
        }
        let clock = read(&manifest, (&base, arrival), None, fetcher, watch).await;
        let mut presentation = Presentation::new(source.most_bandwidth);
        let taken = presentation.take(&manifest, clock.time(asked), clock.time(watch.now()));
        taken
            .map_err(|why| error(SourceErrorKind::Protocol, &base, format!("the manifest can't be received: {why}")))?;
        let (readings, _) = watch::channel(Arc::new(Reading { presentation, base, clock }));
        Ok(Self { url: source.url().clone(), readings, wanted: Notify::new() })
    }

    /// Returns the readings, from the last one on.
    pub(super) fn readings(&self) -> watch::Receiver<Arc<Reading>> {
        self.readings.subscribe()
    }

    /// Notes that segments were missing.
    pub(super) fn want(&self) {
        self.wanted.notify_one();
    }

    /// Reads the manifest again and again, until it can't be read or stands still.
    pub(super) async fn keep(&self, fetcher: &Fetcher, watch: Stopwatch) -> SourceError {
        // Time since which requests for the manifest fail.
        let mut failing: Option<Duration> = None;
        let mut is_wanted = false;
        loop {
            let reading = self.readings.borrow().clone();
            let at = reading.presentation.reload(is_wanted).filter(|_| !reading.presentation.has_ended());
            tokio::select! {
                () = watch.sleep_until(at.map(|at| reading.clock.moment(at))) => {}
                () = self.wanted.notified(), if !is_wanted => {
                    is_wanted = true;
                    continue;
                }
            }
            is_wanted = false;
            let result = self.reload(&reading, fetcher, watch).await;
            let now = watch.now();
            let step = reading.presentation.segment_duration();
            match result {
                Ok(()) => failing = None,
                Err(error) => {
                    let since = *failing.get_or_insert(now);
                    if now > since + step.saturating_mul(FAILING.0).max(FAILING.1) {
                        return error;
                    }
                    tracing::info!(url = error.address, %error, "the manifest of a source was not read: it is requested again");
                    sleep((step / 2).max(AGAIN)).await;
                }
            }
            let reading = self.readings.borrow().clone();
            if let Some(still) = reading.presentation.stands_still(reading.clock.time(now)) {
                let words = format!("the manifest stands still: no new segment for {:.1} s", still.as_secs_f64());
                return error(SourceErrorKind::TimedOut, &self.url, words);
            }
        }
    }

    /// Reads the manifest once more.
    async fn reload(&self, before: &Reading, fetcher: &Fetcher, watch: Stopwatch) -> Result<(), SourceError> {
        let asked = watch.now();
        let (base, arrival, manifest) = request(fetcher, self.url.clone(), watch).await?;
        let clock = read(&manifest, (&base, arrival), Some(before.clock), fetcher, watch).await;
        let mut presentation = before.presentation.clone();
        let turn = presentation.take(&manifest, clock.time(asked), clock.time(watch.now()));
        let turn = turn
            .map_err(|why| error(SourceErrorKind::Protocol, &base, format!("the manifest can't be received: {why}")))?;
        if turn == Turn::Anew {
            let source = millpond_store::without_secrets(&self.url);
            tracing::warn!(source, "the manifest of a source begins anew: its segments do not follow those before");
        }
        self.readings.send_replace(Arc::new(Reading { presentation, base, clock }));
        Ok(())
    }
}

/// Requests a manifest. Redirects may lead to another folder, from which URIs count.
async fn request(fetcher: &Fetcher, url: Url, watch: Stopwatch) -> Result<(Url, Arrival, LiveManifest), SourceError> {
    let mut resource = fetcher.open(url, None, Duration::ZERO).await?;
    let arrival = Arrival { now: watch.now(), date: resource.date };
    let bytes = resource.read(MOST_BYTES).await?;
    let manifest = LiveManifest::parse(&String::from_utf8_lossy(&bytes));
    let manifest = manifest
        .map_err(|why| error(SourceErrorKind::Protocol, &resource.url, format!("the manifest can't be read: {why}")))?;
    Ok((resource.url, arrival, manifest))
}
