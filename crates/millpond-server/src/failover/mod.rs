//! Streams that stay on the air: a stream takes the frames of the first of its inputs that is alive.
//!
//! Each output is a stream of publishers (`Failovers` publishes it), and each input a live stream, a channel, or an asset that plays
//! round and round. A task (`output`) watches the inputs, `choice` decides which one plays, and a tee passes its frames on. Where
//! another one follows, it takes the place of the publisher, as a second publisher of the name would; so all viewers stay.

mod choice;
mod input;
mod line;
mod output;
mod settings;

pub(crate) use input::{Input, open};
pub use line::FailoverLine;
pub(crate) use output::publish;
pub use settings::FailoverSettings;

use crate::{events::Events, live::Sources};
use arc_swap::ArcSwap;
use output::Output;
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::task::AbortHandle;

/// The failovers of a server.
pub(crate) struct Failovers {
    sources: Arc<ArcSwap<Sources>>,
    events: Arc<Events>,
    /// The tasks of the configuration in force. A lock: taken by reloads.
    running: Mutex<Vec<Task>>,
}

/// The task of an output. It ends when this is dropped.
struct Task {
    line: FailoverLine,
    /// Time for which a preferred input must be alive before it plays again.
    back: Duration,
    task: AbortHandle,
}

impl Drop for Task {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Failovers {
    /// Makes those of a server, none of which runs yet.
    pub(crate) fn new(sources: Arc<Sources>, events: Arc<Events>) -> Self {
        Self { sources: Arc::new(ArcSwap::new(sources)), events, running: Mutex::default() }
    }

    /// Takes the failovers of a configuration. Those that stay are not touched. Called within a runtime.
    pub(crate) fn reconfigure(&self, settings: &FailoverSettings, sources: Arc<Sources>) {
        self.sources.store(sources);
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = |task: &Task| settings.lines.contains(&task.line) && settings.back == task.back;
        running.retain(is_same);
        for line in &settings.lines {
            if running.iter().all(|task| task.line != *line) {
                let output = Output::new(line.clone(), settings.back, self.sources.clone(), self.events.clone());
                let task = tokio::spawn(output.run()).abort_handle();
                running.push(Task { line: line.clone(), back: settings.back, task });
            }
        }
    }

    /// The lines that are in force, with their times.
    #[cfg(test)]
    pub(crate) fn settings(&self) -> Vec<(FailoverLine, Duration)> {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.iter().map(|task| (task.line.clone(), task.back)).collect()
    }

    /// Ends them: another process begins them, or the server stops.
    pub(crate) fn end(&self) {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}
