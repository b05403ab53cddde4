//! The past of live streams on the disk, whether they run or not.

use super::{
    Clip, LiveWindow, NoClip, ShiftOptions, TimeShift,
    ended::IDLE,
    windows::{FOREVER, WeakWindows, Windows},
};
use millpond_store::ring::{self, Ring, RingError, SweepLimits};
use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};
use tokio::{
    sync::Semaphore,
    time::{sleep, timeout},
};

/// Longest wait for the disk.
const OPENING: Duration = Duration::from_secs(10);
/// Longest wait for the end of a clip: its last segment must be complete and on the disk.
const CLOSING: Duration = Duration::from_secs(20);
/// Interval between two looks at the end of a clip.
const LOOK: Duration = Duration::from_millis(100);
/// Pasts that are opened at a time: strangers choose which.
static OPENINGS: Semaphore = Semaphore::const_new(2);

impl Windows {
    /// Returns the clip of a stream's past from one wall time since the Unix epoch to another. While the stream `is_running`, it
    /// is waited for until the clip is on the disk. Cancel safe.
    ///
    /// # Errors
    /// Nothing of it is kept, or it can't be one file.
    pub(crate) async fn clip(
        &self,
        (path, options): (&str, &Arc<ShiftOptions>),
        (start, end): (Duration, Duration),
        is_running: impl Fn() -> bool,
    ) -> Result<Clip, NoClip> {
        let shift = self.stored_past(path, options).await.ok_or(NoClip::NotKept)?;
        let complete = async {
            while is_running() && !shift.is_past(end) {
                sleep(LOOK).await;
            }
        };
        let _ = timeout(CLOSING, complete).await;
        let opened = tokio::task::spawn_blocking(move || Clip::open(shift, start, end)).await;
        opened.unwrap_or(Err(NoClip::NotKept))
    }

    /// Returns a window with the past of a stream that does not run: its newest segments with the same tracks. `None` where
    /// nothing is kept. Cancel safe.
    pub(crate) async fn ended(&self, path: &Arc<str>, options: &Arc<ShiftOptions>) -> Option<Arc<LiveWindow>> {
        let shift = self.stored_past(path, options).await?;
        let end = shift.end()?;
        let known = self.lock().ended.get(path, Instant::now());
        let is_newest = |window: &Arc<LiveWindow>| {
            window.look(|window| window.segments().next_back().is_some_and(|last| last.number.next() == end.next))
        };
        if let Some(known) = known.filter(is_newest) {
            return Some(known);
        }
        let (of, limits, captions) = (path.clone(), options.window.limits(), options.window.captions.clone());
        let made = tokio::task::spawn_blocking(move || {
            let (run, window) = shift.ended(&of, limits)?;
            let bytes = shift.memory() + window.heap_bytes();
            let window = window.with_captions(captions);
            Some((LiveWindow::new(run, window, FOREVER, Some(shift)), bytes))
        });
        let (window, bytes) = made.await.ok().flatten()?;
        let window = Arc::new(window);
        let mut inner = self.lock();
        let now = Instant::now();
        let is_first = !inner.ended.forget_idle(now);
        inner.ended.add(path, window.clone(), (bytes, now));
        inner.forget_runs();
        inner.name(path, &window);
        if is_first {
            tokio::spawn(forget_idle(self.downgrade()));
        }
        Some(window)
    }

    /// Removes the pasts of streams that are not written any more. Also removes the oldest files of all pasts in a folder while
    /// the pasts exceed a limit. It blocks the thread.
    ///
    /// # Errors
    /// The disk's.
    pub(crate) fn sweep(&self, folder: &Path, limits: SweepLimits) -> Result<(), RingError> {
        let swept = ring::sweep(folder, limits, SystemTime::now())?;
        if swept.removed > 0 {
            tracing::info!(streams = swept.removed, "removed the past of streams that are not written any more");
        }
        for (path, bytes) in swept.excess {
            self.shift(&path).into_iter().for_each(|shift| shift.free(bytes));
        }
        Ok(())
    }

    /// Returns the past of a stream on the disk: the open one, else what is kept. Nothing is made for streams without any.
    async fn stored_past(&self, path: &str, options: &Arc<ShiftOptions>) -> Option<Arc<TimeShift>> {
        if let Some(known) = self.shift(path) {
            return Some(known);
        }
        let (windows, of, options) = (self.clone(), path.to_owned(), options.clone());
        let _turn = timeout(OPENING, OPENINGS.acquire()).await.ok()?.ok()?;
        let opening = tokio::task::spawn_blocking(move || {
            let ShiftOptions { folder, .. } = &*options;
            Ring::is_kept(folder, &of).then(|| windows.open_shift(&of, &options))
        });
        match timeout(OPENING, opening).await {
            Ok(Ok(Some(Ok(shift)))) => Some(shift),
            Ok(Ok(Some(Err(error)))) => {
                tracing::warn!(stream = path, %error, "the past of a stream can't be read");
                None
            }
            _ => None,
        }
    }
}

/// Forgets windows that nobody asks for, until there are none.
async fn forget_idle(windows: WeakWindows) {
    loop {
        sleep(IDLE / 4).await;
        let Some(windows) = windows.upgrade() else { return };
        let mut inner = windows.lock();
        let has_more = inner.ended.forget_idle(Instant::now());
        inner.forget_runs();
        if !has_more {
            return;
        }
    }
}

/// Whether a wall time since the Unix epoch lies ahead.
pub fn is_ahead(wall: Duration) -> bool {
    wall > SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
