//! Progress of a run, told each second and kept for its report.

use super::{
    figures::{Counters, Counts, History},
    report::Progress,
};
use std::time::{Duration, Instant};

/// Time between two reports of progress.
const PROGRESS: Duration = Duration::from_secs(1);

/// Calls `progress` each second of a run that began at `began`, until `end` is ready. Returns the run over time.
pub(crate) async fn observe(
    began: Instant,
    counters: &Counters,
    mut progress: impl FnMut(&Progress),
    end: impl Future<Output = ()>,
) -> History {
    let mut end = std::pin::pin!(end);
    let mut history = History::new();
    let mut last = (Duration::ZERO, Counts::default());
    let mut ticks = tokio::time::interval_at((began + PROGRESS).into(), PROGRESS);
    loop {
        tokio::select! {
            _ = ticks.tick() => {
                let now = (began.elapsed(), counters.read());
                progress(&Progress::new(last, now));
                history.note(now.0, now.1);
                last = now;
            }
            () = &mut end => return history,
        }
    }
}
