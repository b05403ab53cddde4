//! An input of a failover or schedule: a task opens it again and again, and tells whether its frames arrive.

use crate::live::Sources;
use arc_swap::ArcSwap;
use millpond_stream::{LiveRequest, Program, Pulse};
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};
use tokio::task::AbortHandle;

/// Pause of frames after which an input is dead. Inputs with few pictures a second get three of their intervals.
const PATIENCE: Duration = Duration::from_secs(1);
/// Longest wait for the formats of a stream.
const FORMATS: Duration = Duration::from_secs(30);
/// Pause before an input is opened again.
const AGAIN: Duration = Duration::from_millis(500);

/// An input that is watched until this is dropped.
pub(crate) struct Input {
    pulse: Arc<Pulse>,
    program: Arc<Mutex<Option<Program>>>,
    task: AbortHandle,
}

impl Input {
    /// Begins to watch the stream of a path.
    pub(crate) fn watch(path: String, sources: Arc<ArcSwap<Sources>>) -> Self {
        let (pulse, program) = (Arc::<Pulse>::default(), Arc::<Mutex<Option<Program>>>::default());
        let (own_pulse, own_program) = (pulse.clone(), program.clone());
        let set = move |new| *own_program.lock().unwrap_or_else(PoisonError::into_inner) = new;
        let task = tokio::spawn(async move {
            let mut told = String::new();
            loop {
                let sources = sources.load_full();
                let why = follow(&path, &sources, &own_pulse, &set).await.err().unwrap_or_default();
                set(None);
                own_pulse.lose();
                if told != why {
                    tracing::info!(input = path, why, "an input is not there");
                    told = why;
                }
                tokio::time::sleep(AGAIN).await;
            }
        });
        Self { pulse, program, task: task.abort_handle() }
    }

    /// The time for which its frames arrive; `None` where they don't.
    pub(crate) fn alive(&self, now: Instant) -> Option<Duration> {
        self.pulse.alive(now, PATIENCE)
    }

    /// The stream, while it is open.
    pub(crate) fn program(&self) -> Option<Program> {
        self.program.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Opens a stream, and watches it until it ends.
///
/// # Errors
/// It can't be opened.
async fn follow(
    path: &str,
    sources: &Sources,
    pulse: &Arc<Pulse>,
    set: &impl Fn(Option<Program>),
) -> Result<(), String> {
    let request = sources.stream(&sources.find(path)).await.map_err(|error| error.to_string())?;
    let request = request.ok_or_else(|| "it is not a live stream or channel".to_owned())?;
    let program = open(sources, request).await?;
    let watching = sources.manager().watch(&program, pulse).await.map_err(|error| error.to_string())?;
    set(Some(program));
    let _ = watching.end().wait_for(Option::is_some).await;
    Ok(())
}

/// Opens a stream. Waits until its formats are known.
///
/// # Errors
/// Its source fails.
pub(crate) async fn open(sources: &Sources, request: LiveRequest) -> Result<Program, String> {
    let manager = sources.manager();
    let stream = manager.live(request).map_err(|error| error.to_string())?;
    let feed = manager.live_feed(&stream, FORMATS).await.map_err(|error| error.for_viewers())?;
    Ok(Program::live(&feed))
}
