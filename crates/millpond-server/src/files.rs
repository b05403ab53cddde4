//! Files that are read again when they change: at most a minute later, and at once on SIGHUP.

use std::{os::unix::fs::MetadataExt, path::Path, time::Duration};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::watch,
    time::{Interval, interval},
};

/// How often files are looked at.
const PERIOD: Duration = Duration::from_secs(60);

/// Identifies the state of a file. A symbolic link is followed, because Kubernetes replaces secrets by changing its
/// target. A missing file has a stamp too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp(Option<(u64, i64, i64, u64)>);

impl Stamp {
    /// Of a file as it is now. To be taken before it is read: a change in between is then seen by the next look.
    pub(crate) fn of(path: &Path) -> Self {
        let meta = std::fs::metadata(path).ok();
        Self(meta.map(|meta| (meta.ino(), meta.ctime(), meta.ctime_nsec(), meta.len())))
    }
}

/// The times at which files are looked at.
#[derive(Debug)]
pub(crate) struct Looks {
    period: Interval,
    /// Without the signal the period still works.
    hangup: Option<Signal>,
    shutdown: watch::Receiver<bool>,
}

impl Looks {
    /// From now on; the first is at once.
    pub(crate) fn until(shutdown: watch::Receiver<bool>) -> Self {
        Self { period: interval(PERIOD), hangup: signal(SignalKind::hangup()).ok(), shutdown }
    }

    /// Waits for the next; `false` where there is none, for the server shuts down.
    pub(crate) async fn next(&mut self) -> bool {
        let hung_up = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.period.tick() => true,
            _ = hung_up => true,
            _ = self.shutdown.wait_for(|down| *down) => false,
        }
    }
}
