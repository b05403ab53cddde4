//! The clock of a source, by which its segments appear.

use crate::reception::{fetching::Fetcher, rtsp::link::Stopwatch};
use millpond_package::dash_manifest::{ClockSource, LiveManifest, wall_time};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use url::Url;

/// Most bytes of a reply that tells the time.
const MOST_BYTES: usize = 256;
/// Time after which the clock is read again: clocks drift.
const AGAIN: Duration = Duration::from_secs(300);
/// Difference by which two times of whole seconds may be the same.
const WHOLE: Duration = Duration::from_secs(2);

/// The clock of a source.
#[derive(Clone, Copy, Debug)]
pub(super) struct SourceClock {
    /// Its time, since the Unix epoch, at the zero of the stopwatch.
    zero: Duration,
    /// Time of the stopwatch at which it was read.
    read: Duration,
}

impl SourceClock {
    fn new(wall: Duration, now: Duration) -> Self {
        Self { zero: wall.saturating_sub(now), read: now }
    }

    /// Returns its time at a time of the stopwatch.
    pub(super) fn time(self, now: Duration) -> Duration {
        self.zero.saturating_add(now)
    }

    /// Returns the time of the stopwatch at one of its times.
    pub(super) fn moment(self, time: Duration) -> Duration {
        time.saturating_sub(self.zero)
    }
}

/// When a manifest arrived, by the stopwatch and by the clock of its server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) now: Duration,
    pub(super) date: Option<Duration>,
}

/// Reads the clock of a source: by the first way of its manifest that leads to a time, else by the date of the reply, else by the clock
/// of this machine. One that was read lately stays.
pub(super) async fn read(
    manifest: &LiveManifest,
    (base, arrival): (&Url, Arrival),
    before: Option<SourceClock>,
    fetcher: &Fetcher,
    watch: Stopwatch,
) -> SourceClock {
    if let Some(before) = before.filter(|before| watch.now() < before.read + AGAIN) {
        return before;
    }
    for way in &manifest.clocks {
        if let Some(clock) = by(way, (base, arrival), fetcher, watch).await {
            return clock;
        }
    }
    match arrival.date {
        Some(date) => {
            let found = SourceClock::new(date, arrival.now);
            // A date has whole seconds, so that a small difference says nothing.
            let same = before.filter(|before| before.zero.abs_diff(found.zero) < WHOLE);
            same.map_or(found, |before| SourceClock { read: arrival.now, ..before })
        }
        None => SourceClock::new(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default(), watch.now()),
    }
}

/// Reads the clock in one way. A host that is not the source's is not asked.
async fn by(
    way: &ClockSource,
    (base, arrival): (&Url, Arrival),
    fetcher: &Fetcher,
    watch: Stopwatch,
) -> Option<SourceClock> {
    let (uri, is_head) = match way {
        ClockSource::Direct(wall) => return Some(SourceClock::new(*wall, arrival.now)),
        ClockSource::Body(uri) => (uri, false),
        ClockSource::Head(uri) => (uri, true),
    };
    let resource = async {
        let url = fetcher.resolve(base, uri)?;
        let mut resource = fetcher.open(url, None, Duration::ZERO).await?;
        let now = watch.now();
        // The body of a reply whose head tells the time is not read.
        let body = if is_head { Vec::new() } else { resource.read(MOST_BYTES).await? };
        Ok::<_, crate::source_health::SourceError>((now, resource.date.filter(|_| is_head), body))
    };
    match resource.await {
        Ok((now, date, body)) => {
            let wall = date.or_else(|| wall_time(&String::from_utf8_lossy(&body)));
            wall.map(|wall| SourceClock::new(wall, now))
        }
        Err(error) => {
            tracing::info!(url = error.address, %error, "the clock of a source was not read");
            None
        }
    }
}
