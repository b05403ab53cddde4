//! Schedules: streams that play assets and other streams at given times, without an end.
//!
//! A schedule is a stream of publishers whose publisher is a task, as that of a [failover](crate::failover). `timetable` tells what is due at
//! a time, without a clock, and `playout` puts that on the air: `stage` opens its source a little before, and `choice` decides between it and
//! the filler. `file` parses what people write, and `watched` reads it again. `probe` looks at the assets of the days ahead. A `Guide` is what
//! viewers may know of all that.

mod choice;
mod clock;
mod fault;
mod file;
mod guide;
mod line;
mod part;
mod playout;
mod probe;
mod settings;
mod stage;
mod state;
mod timetable;
mod watched;

pub(crate) use fault::{Fault, PathUse, PathUses};
pub(crate) use guide::{Guide, Programme};
pub use line::ScheduleLine;
pub use settings::ScheduleSettings;
pub(crate) use state::{OnAirReport, ScheduleState};

use crate::{events::Events, live::Sources};
use arc_swap::ArcSwap;
use playout::Playout;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::task::AbortHandle;

/// The schedules of a server.
pub(crate) struct Schedules {
    events: Arc<Events>,
    /// Those of the configuration in force. A lock: taken by reloads and look-ups.
    running: Mutex<Running>,
}

#[derive(Default)]
struct Running {
    /// The sources of the configuration in force; `None` before the first one.
    sources: Option<Arc<ArcSwap<Sources>>>,
    tasks: Vec<Task>,
}

/// The tasks of a schedule. They end when this is dropped.
struct Task {
    line: ScheduleLine,
    state: Arc<ScheduleState>,
    handles: [AbortHandle; 3],
}

impl Drop for Task {
    fn drop(&mut self) {
        self.handles.iter().for_each(AbortHandle::abort);
    }
}

impl Schedules {
    /// Makes those of a server, none of which runs yet.
    pub(crate) fn new(events: Arc<Events>) -> Self {
        Self { events, running: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the schedules of a configuration. Those that stay are not touched. Called within a runtime.
    pub(crate) fn reconfigure(&self, settings: &ScheduleSettings, sources: Arc<Sources>) {
        let mut running = self.lock();
        let sources = match &running.sources {
            Some(known) => {
                known.store(sources);
                known.clone()
            }
            None => running.sources.insert(Arc::new(ArcSwap::new(sources))).clone(),
        };
        running.tasks.retain(|task| settings.lines.contains(&task.line));
        for line in &settings.lines {
            if running.tasks.iter().all(|task| task.line != *line) {
                let state = Arc::new(ScheduleState::new(line.clone()));
                let playout = Playout::new(state.clone(), sources.clone(), self.events.clone());
                let handles = [
                    tokio::spawn(watched::watch(state.clone(), sources.clone())).abort_handle(),
                    tokio::spawn(probe::probe(state.clone(), sources.clone())).abort_handle(),
                    tokio::spawn(playout.run()).abort_handle(),
                ];
                running.tasks.push(Task { line: line.clone(), state, handles });
            }
        }
    }

    /// The schedules, in the order of the configuration.
    pub(crate) fn list(&self) -> Vec<Arc<ScheduleState>> {
        self.lock().tasks.iter().map(|task| task.state.clone()).collect()
    }

    /// Returns the schedule of a stream.
    pub(crate) fn of(&self, stream: &str) -> Option<Arc<ScheduleState>> {
        self.lock().tasks.iter().find(|task| task.line.to == stream).map(|task| task.state.clone())
    }

    /// Ends them: another process begins them, or the server stops.
    pub(crate) fn end(&self) {
        self.lock().tasks.clear();
    }
}

/// Returns all that is wrong with the file of a schedule.
pub(crate) fn faults(line: &ScheduleLine, uses: Option<&impl PathUses>) -> Vec<Fault> {
    match watched::read(&line.file) {
        Ok(timetable) => uses.map(|uses| timetable.faults(&line.to, uses)).unwrap_or_default(),
        Err(faults) => faults,
    }
}
