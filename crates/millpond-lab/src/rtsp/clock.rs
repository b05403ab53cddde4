//! The time of a run: since its beginning, by the clock that the kernel stamps packets with.

use std::time::{Duration, Instant, SystemTime};

/// The beginning of a run.
///
/// Packets are stamped by the system's clock, which may be set while the run lasts; then lateness is off by as much. What
/// is waited for goes by [`Instant`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// Since 1970.
    origin: Duration,
    began: Instant,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self { origin: since_1970(), began: Instant::now() }
    }

    /// Since the beginning.
    pub(crate) fn now(self) -> Duration {
        since_1970().saturating_sub(self.origin)
    }

    /// Since the beginning, by a clock that is never set: the time of RTSP clients.
    pub(crate) fn elapsed(self) -> Duration {
        self.began.elapsed()
    }

    /// A time since 1970 as one since the beginning.
    pub(crate) fn at(self, stamp: Duration) -> Duration {
        stamp.saturating_sub(self.origin)
    }

    /// The moment so long after the beginning.
    pub(crate) fn instant(self, offset: Duration) -> Instant {
        self.began.checked_add(offset).unwrap_or(self.began)
    }
}

/// Ready at a time; never without one.
pub(crate) async fn until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time.into()).await,
        None => std::future::pending().await,
    }
}

fn since_1970() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}
