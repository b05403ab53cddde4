//! Statistics of viewing: viewers, viewer hours, starts and rebuffers of the last thirty days, by title and by day.
//!
//! The server takes a [`ViewerSample`] of the viewers of all protocols every five seconds. The pure [`ViewingTally`] compares it with the one before, and adds to
//! the [`Days`]. [`Statistics`] holds the tally, and keeps it in a small file. Titles are bounded, so that clients can't fill the memory.

mod day;
mod days;
mod file;
mod metrics;
mod sample;
mod tally;

pub(crate) use day::UtcDay;
pub(crate) use days::{DayCounts, Days, ViewingCounts};
pub(crate) use metrics::StatisticsMetrics;
pub(crate) use sample::{ByProtocol, Rebuffers, SampledViewer, ViewerProtocol, ViewerSample};
pub(crate) use tally::ViewingTally;

use file::LoadError;
use std::{
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};
use tally::SampleTime;

/// Shortest time between two writes of the file while the server runs.
const WRITTEN: Duration = Duration::from_secs(60);

/// The statistics of a server.
#[derive(Debug)]
pub(crate) struct Statistics {
    metrics: StatisticsMetrics,
    /// Moment from which times of samples count.
    clock: Instant,
    /// A lock: taken for each sample, and by requests of the admin API. Nobody holds it while the disk works.
    state: Mutex<State>,
    /// A lock: held while the file is read and written.
    keeping: Mutex<Keeping>,
}

#[derive(Debug, Default)]
struct State {
    tally: ViewingTally,
    /// Whether there are counts that the file does not have.
    is_changed: bool,
    /// Whether another process counts from now on.
    is_handed_over: bool,
}

/// The file of the counts.
#[derive(Debug)]
struct Keeping {
    /// The file; `None` where counts are not kept, or another process writes them.
    path: Option<PathBuf>,
    /// Time of the last write, on the clock of samples.
    written: Duration,
    /// Whether the last write failed.
    is_failing: bool,
}

impl Statistics {
    /// Makes empty statistics, which `path` will be kept in.
    pub(crate) fn new(path: Option<PathBuf>, metrics: &StatisticsMetrics) -> Self {
        Self {
            metrics: metrics.clone(),
            clock: Instant::now(),
            state: Mutex::default(),
            keeping: Mutex::new(Keeping { path, written: Duration::ZERO, is_failing: false }),
        }
    }

    /// Reads the file. A damaged one gets another name, and counts begin anew. Blocks. To be called before the first sample.
    pub(crate) fn load(&self) {
        let mut keeping = lock(&self.keeping);
        let Some(path) = keeping.path.clone() else { return };
        let shown = path.display();
        match file::load(&path) {
            Ok(days) => lock(&self.state).tally = ViewingTally::new(days),
            Err(LoadError::Read(error)) => {
                keeping.path = None;
                tracing::warn!(file = %shown, %error, "the file of viewing statistics can't be read: they are not kept");
            }
            Err(LoadError::Content(error)) => match file::set_aside(&path) {
                Ok(aside) => {
                    let aside = aside.display();
                    tracing::warn!(file = %shown, %aside, error, "the file of viewing statistics is damaged: they begin anew");
                }
                Err(failure) => {
                    keeping.path = None;
                    tracing::warn!(file = %shown, error, %failure, "the file of viewing statistics is damaged: they are not kept");
                }
            },
        }
    }

    /// Adds a sample, and writes the file where a minute has passed since the last write. Blocks.
    pub(crate) fn add(&self, sample: &ViewerSample) {
        let now = self.clock.elapsed();
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        {
            let mut state = lock(&self.state);
            if state.is_handed_over {
                return;
            }
            let sampled = state.tally.add(sample, SampleTime { now, wall });
            state.is_changed |= !sample.viewers.is_empty() || sample.rebuffers != Rebuffers::default();
            self.metrics.count(&sampled);
        }
        let mut keeping = lock(&self.keeping);
        if now.saturating_sub(keeping.written) >= WRITTEN {
            self.write(&mut keeping, now);
        }
    }

    /// Writes the file. Blocks. To be called behind the last sample.
    pub(crate) fn finish(&self) {
        self.write(&mut lock(&self.keeping), self.clock.elapsed());
    }

    /// Writes the file for the process that takes over, and counts no more. Blocks.
    pub(crate) fn hand_over(&self) {
        lock(&self.state).is_handed_over = true;
        self.finish();
        lock(&self.keeping).path = None;
    }

    /// Shows the counts to `reader`, which must be quick.
    pub(crate) fn read<T>(&self, reader: impl FnOnce(&ViewingTally) -> T) -> T {
        reader(&lock(&self.state).tally)
    }

    fn write(&self, keeping: &mut Keeping, now: Duration) {
        let Some(path) = &keeping.path else { return };
        let text = {
            let mut state = lock(&self.state);
            if !std::mem::take(&mut state.is_changed) {
                return;
            }
            file::text(state.tally.days())
        };
        keeping.written = now;
        match file::store(path, &text) {
            Ok(()) => keeping.is_failing = false,
            Err(error) => {
                lock(&self.state).is_changed = true;
                if !std::mem::replace(&mut keeping.is_failing, true) {
                    tracing::warn!(file = %path.display(), %error, "the file of viewing statistics can't be written");
                }
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus_client::registry::Registry;
    use std::{fs, path::Path};

    fn statistics(path: &Path) -> Statistics {
        Statistics::new(Some(path.to_owned()), &StatisticsMetrics::register(&mut Registry::default()))
    }

    fn one() -> ViewerSample {
        let viewer = SampledViewer { protocol: ViewerProtocol::Rtsp, number: 1, title: "live/cam".to_owned() };
        ViewerSample { viewers: vec![viewer], ..ViewerSample::default() }
    }

    fn starts(statistics: &Statistics) -> u64 {
        statistics.read(|tally| tally.days().iter().map(|(_, day)| day.all.starts()).sum())
    }

    #[test]
    fn counts_are_kept_and_written_once_a_minute() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("viewing.json");
        let first = statistics(&path);
        first.load();
        first.finish();
        assert!(!path.exists(), "nothing was counted");
        first.add(&one());
        assert!(!path.exists(), "no minute has passed");
        first.finish();
        let second = statistics(&path);
        second.load();
        second.add(&one());
        assert_eq!((starts(&first), starts(&second)), (1, 2));
    }

    #[test]
    fn the_process_before_counts_no_more() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("viewing.json");
        let (before, after) = (statistics(&path), statistics(&path));
        before.add(&one());
        before.hand_over();
        after.load();
        after.add(&one());
        after.finish();
        let text = fs::read(&path).unwrap();
        before.add(&one());
        before.finish();
        assert_eq!((starts(&before), starts(&after), fs::read(&path).unwrap()), (1, 2, text));
    }

    #[test]
    fn a_damaged_file_is_set_aside() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("viewing.json");
        fs::write(&path, "{").unwrap();
        let statistics = statistics(&path);
        statistics.load();
        statistics.add(&one());
        statistics.finish();
        assert_eq!(fs::read_to_string(folder.path().join("viewing.json.damaged")).unwrap(), "{");
        assert!(fs::read_to_string(&path).unwrap().contains("live/cam"));
    }

    #[test]
    fn a_file_that_can_not_be_read_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("viewing.json");
        fs::create_dir(&path).unwrap();
        let statistics = statistics(&path);
        statistics.load();
        statistics.add(&one());
        statistics.finish();
        assert!(path.is_dir() && starts(&statistics) == 1);
    }
}
