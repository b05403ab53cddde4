//! Runs of `millpond-lab simulate` for the API: in a process of their own, one at a time.

use rustix::process::{Pid, Resource, Rlimit, prlimit, setpriority_process};
use serde_json::Value;
use std::{
    collections::VecDeque,
    io::Read as _,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant, SystemTime},
};

/// Runs that are kept.
const KEPT: usize = 8;
/// Longest run.
const LONGEST: Duration = Duration::from_secs(300);
/// Most bytes of a result.
const RESULT: u64 = 8 << 20;
/// Most memory of a run.
const MEMORY: u64 = 2 << 30;
/// Interval between checks of a run.
const LOOK: Duration = Duration::from_millis(100);

/// State of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunState {
    /// It runs.
    Running,
    /// It has a result.
    Done,
    /// It failed, or took too long.
    Failed,
    /// A client cancelled it.
    Cancelled,
}

/// A run.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) id: u64,
    pub(super) state: RunState,
    pub(super) started: SystemTime,
    pub(super) seconds: f64,
    /// The request.
    pub(super) options: Value,
    /// Outcomes, once it is done.
    pub(super) outcomes: Option<Arc<Value>>,
    pub(super) error: Option<String>,
}

/// Why a run can't begin.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoRun {
    #[error("a simulation runs already")]
    Busy,
    #[error("the simulator can't be started: {0}")]
    Start(std::io::Error),
    #[error("the program millpond-lab is not installed: install the package, or put it beside millpond")]
    None,
}

/// The runs of a server.
pub(super) struct Simulations {
    /// Finds the program that simulates. It may be installed while the server runs.
    find: Box<dyn Fn() -> Option<PathBuf> + Send + Sync>,
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    last: u64,
    runs: VecDeque<Run>,
    /// Number of the run that is to end.
    cancelled: Option<u64>,
}

impl Inner {
    fn run(&mut self, id: u64) -> Option<&mut Run> {
        self.runs.iter_mut().find(|run| run.id == id)
    }
}

fn lock(inner: &Mutex<Inner>) -> MutexGuard<'_, Inner> {
    inner.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Simulations {
    /// Makes an empty list. `find` returns the path of the program that simulates.
    pub(super) fn new(find: impl Fn() -> Option<PathBuf> + Send + Sync + 'static) -> Self {
        Self { find: Box::new(find), inner: Arc::default() }
    }

    /// Starts a run with flags of the command.
    ///
    /// # Errors
    /// Another one runs, or the system gives no process.
    pub(super) fn start(&self, flags: &[String], options: Value) -> Result<Run, NoRun> {
        let program = (self.find)().ok_or(NoRun::None)?;
        let mut inner = lock(&self.inner);
        if inner.runs.iter().any(|run| run.state == RunState::Running) {
            return Err(NoRun::Busy);
        }
        let mut command = Command::new(program);
        command.args(["simulate", "--json=-"]).args(flags);
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let child = child.map_err(NoRun::Start)?;
        restrain(&child);
        inner.last += 1;
        let id = inner.last;
        let (state, started) = (RunState::Running, SystemTime::now());
        let run = Run { id, state, started, seconds: 0.0, options, outcomes: None, error: None };
        inner.runs.push_back(run.clone());
        while inner.runs.len() > KEPT {
            inner.runs.pop_front();
        }
        drop(inner);
        let shared = self.inner.clone();
        let watched =
            std::thread::Builder::new().name("simulation".to_owned()).spawn(move || watch(&shared, id, child));
        watched.map_err(NoRun::Start)?;
        Ok(run)
    }

    /// The runs, the last one last.
    pub(super) fn list(&self) -> Vec<Run> {
        lock(&self.inner).runs.iter().cloned().collect()
    }

    /// Cancels a run, or forgets one that has ended. `None` where there is none.
    pub(super) fn remove(&self, id: u64) -> Option<Run> {
        let mut inner = lock(&self.inner);
        let run = inner.run(id)?;
        if run.state == RunState::Running {
            run.state = RunState::Cancelled;
            let run = run.clone();
            inner.cancelled = Some(id);
            return Some(run);
        }
        let at = inner.runs.iter().position(|run| run.id == id)?;
        inner.runs.remove(at)
    }
}

/// Gives way to the server: lowest priority, bounded memory.
fn restrain(child: &Child) {
    // Without them the run is still bounded in time.
    let pid = Pid::from_child(child);
    let _ = setpriority_process(Some(pid), 19);
    let _ = prlimit(Some(pid), Resource::As, Rlimit { current: Some(MEMORY), maximum: Some(MEMORY) });
}

/// Waits for the end of a run, and notes its result.
fn watch(shared: &Mutex<Inner>, id: u64, mut child: Child) {
    let began = Instant::now();
    let out = child.stdout.take().map(reader);
    let err = child.stderr.take().map(reader);
    let ended = loop {
        match child.try_wait() {
            Ok(Some(status)) => break Ok(status.success()),
            Ok(None) if lock(shared).cancelled == Some(id) => break Err("cancelled".to_owned()),
            Ok(None) if began.elapsed() > LONGEST => break Err(format!("it took more than {} s", LONGEST.as_secs())),
            Ok(None) => std::thread::sleep(LOOK),
            Err(error) => break Err(error.to_string()),
        }
    };
    if ended.is_err() {
        // It may have ended by itself meanwhile.
        let _ = child.kill();
        let _ = child.wait();
    }
    let text =
        |reader: Option<std::thread::JoinHandle<String>>| reader.and_then(|it| it.join().ok()).unwrap_or_default();
    let (out, err) = (text(out), text(err));
    let outcomes = match ended {
        Ok(true) => serde_json::from_str::<Value>(&out).map_err(|error| format!("its result: {error}")),
        Ok(false) => Err(err.lines().last().unwrap_or("it failed").trim_start_matches("millpond: ").to_owned()),
        Err(why) => Err(why),
    };
    let mut inner = lock(shared);
    if let Some(run) = inner.run(id) {
        run.seconds = began.elapsed().as_secs_f64();
        match outcomes {
            _ if run.state == RunState::Cancelled => {}
            Ok(outcomes) => (run.state, run.outcomes) = (RunState::Done, Some(Arc::new(outcomes))),
            Err(error) => (run.state, run.error) = (RunState::Failed, Some(error)),
        }
    }
}

/// Reads to the end in a thread: a pipe that nobody reads would stop the run.
fn reader(pipe: impl std::io::Read + Send + 'static) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // Output from before a failure is shown.
        let _ = pipe.take(RESULT).read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn script(folder: &std::path::Path, text: &str) -> Simulations {
        let file = folder.join("millpond");
        std::fs::write(&file, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        Simulations::new(move || Some(file.clone()))
    }

    fn ended(simulations: &Simulations) -> Run {
        let began = Instant::now();
        loop {
            let run = simulations.list().pop().unwrap();
            if run.state != RunState::Running && run.seconds > 0.0 {
                return run;
            }
            assert!(began.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn runs_end_with_a_result_a_failure_or_a_client() {
        let folder = tempfile::tempdir().unwrap();
        let done = script(folder.path(), "echo \"[\\\"$3\\\"]\"");
        done.start(&["--cache=1GiB".to_owned()], Value::Null).unwrap();
        assert_eq!(*ended(&done).outcomes.unwrap(), serde_json::json!(["--cache=1GiB"]));

        let failed = script(folder.path(), "echo 'millpond: no such policy' >&2; exit 1");
        failed.start(&[], Value::Null).unwrap();
        assert_eq!(ended(&failed).error.as_deref(), Some("no such policy"));

        let long = script(folder.path(), "exec sleep 600");
        let id = long.start(&[], Value::Null).unwrap().id;
        assert!(matches!(long.start(&[], Value::Null), Err(NoRun::Busy)));
        assert_eq!(long.remove(id).unwrap().state, RunState::Cancelled);
        assert_eq!(ended(&long).state, RunState::Cancelled);
        assert!(long.remove(id).is_some() && long.list().is_empty() && long.remove(id).is_none());
        assert!(matches!(Simulations::new(|| None).start(&[], Value::Null), Err(NoRun::None)));
    }
}
