//! Modules that operators attach to channels and live streams, by the admin API or by the setting `modules`.
//!
//! `Modules` is the one way: it finds the kind, opens the stream, lets the kind make the module, and attaches that in the engine.

mod entry;
mod error;
mod kinds;
mod line;
mod settings;

pub(crate) use entry::ListedModule;
pub(crate) use error::AttachError;
pub(crate) use kinds::{KindSet, check};
pub use line::ModuleLine;
pub use settings::ModuleSettings;

use crate::live::Sources;
use arc_swap::ArcSwap;
use entry::{Entry, RunningModule, words};
use futures_util::future::join_all;
use millpond_stream::{LiveRequest, ModuleDeclaration, Program};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use tokio::{
    runtime::Handle,
    time::{sleep, timeout},
};

/// Modules that have ended and are still listed.
const ENDED: usize = 32;
/// Longest wait for the formats of a live stream.
const PATIENCE: Duration = Duration::from_secs(15);
/// Shortest and longest pause before a module of the configuration is begun again.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(15));
/// Time after which a beginning was no quick failure: the next pause is short.
const SLOW: Duration = Duration::from_secs(10);
/// Longest wait for the results of all modules when the server stops.
const SHUTDOWN: Duration = Duration::from_secs(2);

/// Why a module can't be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CannotRemove {
    /// There is none of the number.
    Absent,
    /// It is one of the configuration.
    Configured,
}

/// The modules of a server.
pub(crate) struct Modules {
    kinds: KindSet,
    /// The sources of the configuration in force.
    sources: ArcSwap<Sources>,
    runtime: Handle,
    /// A lock: taken for look-ups.
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    last: u64,
    all: BTreeMap<u64, Arc<Entry>>,
    is_ending: bool,
}

impl Inner {
    fn number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Forgets the oldest modules that have ended.
    fn prune(&mut self) {
        let ended: Vec<u64> = self.all.values().filter(|entry| entry.has_ended()).map(|entry| entry.id).collect();
        for id in ended.iter().take(ended.len().saturating_sub(ENDED)) {
            self.all.remove(id);
        }
    }
}

impl Modules {
    /// Makes those of a server, none of which runs yet. Called within a runtime.
    pub(crate) fn new(kinds: KindSet, sources: Arc<Sources>) -> Arc<Self> {
        let (sources, runtime) = (ArcSwap::new(sources), Handle::current());
        Arc::new(Self { kinds, sources, runtime, inner: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The kinds that can be attached.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = &'static ModuleDeclaration> {
        self.kinds.declarations()
    }

    /// Takes the modules of a configuration: begins new ones and removes those that are gone. The others are not touched.
    pub(crate) fn reconfigure(self: &Arc<Self>, lines: &[ModuleLine], sources: Arc<Sources>) {
        self.sources.store(sources);
        let mut inner = self.lock();
        if inner.is_ending {
            return;
        }
        let known: Vec<_> = inner.all.values().filter(|entry| entry.is_configured).cloned().collect();
        for gone in known.iter().filter(|entry| !lines.contains(&entry.line)) {
            inner.all.remove(&gone.id);
            tracing::info!(module = %gone.line, "a module is removed: it is no more in the configuration");
            let gone = gone.clone();
            self.runtime.spawn(async move { gone.remove().await });
        }
        for line in lines.iter().filter(|line| known.iter().all(|entry| entry.line != **line)) {
            let entry = Arc::new(Entry::new(inner.number(), line.clone(), true));
            inner.all.insert(entry.id, entry.clone());
            let task = self.runtime.spawn(self.clone().keep(entry.clone()));
            entry.set_task(task.abort_handle());
        }
    }

    /// Attaches a module. Waits until it runs.
    ///
    /// # Errors
    /// The line can't be understood, the stream can't be opened, or the module can't be made or attached.
    pub(crate) async fn add(&self, line: ModuleLine) -> Result<ListedModule, AttachError> {
        let id = self.lock().number();
        let running = self.begin(id, &line).await?;
        let entry = Arc::new(Entry::new(id, line, false));
        entry.run(running);
        let mut inner = self.lock();
        if inner.is_ending {
            return Err(AttachError::Ending);
        }
        inner.prune();
        inner.all.insert(id, entry.clone());
        tracing::info!(id, module = %entry.line, "a module is attached");
        Ok(entry.listed())
    }

    /// Detaches a module that was added, or forgets one that has ended. Waits until its results are complete.
    ///
    /// # Errors
    /// There is none of the number, or it is one of the configuration.
    pub(crate) async fn remove(&self, id: u64) -> Result<ListedModule, CannotRemove> {
        let entry = {
            let mut inner = self.lock();
            let entry = inner.all.get(&id).ok_or(CannotRemove::Absent)?;
            if entry.is_configured {
                return Err(CannotRemove::Configured);
            }
            inner.all.remove(&id).ok_or(CannotRemove::Absent)?
        };
        entry.remove().await;
        Ok(entry.listed())
    }

    /// Lists the modules that are wanted or run, and the last ones that have ended.
    pub(crate) fn list(&self) -> Vec<ListedModule> {
        let mut inner = self.lock();
        inner.prune();
        inner.all.values().map(|entry| entry.listed()).collect()
    }

    /// Removes the modules of the configuration: another process begins them.
    pub(crate) fn hand_over(&self) {
        let mut inner = self.lock();
        for (_, entry) in inner.all.extract_if(.., |_, entry| entry.is_configured) {
            self.runtime.spawn(async move { entry.remove().await });
        }
    }

    /// Removes all modules, and waits a moment for their results.
    pub(crate) async fn end(&self) {
        let all = {
            let mut inner = self.lock();
            inner.is_ending = true;
            std::mem::take(&mut inner.all)
        };
        if timeout(SHUTDOWN, join_all(all.values().map(|entry| entry.remove()))).await.is_err() {
            tracing::warn!("a recording or another module is not complete yet: its disk is slow");
        }
    }

    /// Begins a module of the configuration again and again, until it is removed.
    async fn keep(self: Arc<Self>, entry: Arc<Entry>) {
        let mut pause = PAUSE.0;
        loop {
            let (began, number) = (Instant::now(), self.lock().number());
            let why = match self.begin(number, &entry.line).await {
                Ok(running) => {
                    let (mut end, results) = (running.attached.end(), running.results.clone());
                    if !entry.run(running) {
                        return;
                    }
                    tracing::info!(module = %entry.line, "a module is attached");
                    let ended = end.wait_for(Option::is_some).await.ok().and_then(|end| end.clone());
                    ended.map_or_else(String::new, |end| words(&end, results.as_deref()))
                }
                Err(error) => error.to_string(),
            };
            if entry.wait(why.clone()) {
                tracing::warn!(module = %entry.line, why, "a module waits, and is begun again");
            }
            pause = if began.elapsed() >= SLOW { PAUSE.0 } else { (pause * 2).min(PAUSE.1) };
            sleep(pause).await;
        }
    }

    /// Makes and attaches a module.
    async fn begin(&self, number: u64, line: &ModuleLine) -> Result<RunningModule, AttachError> {
        let sources = self.sources.load_full();
        let kind = self.kinds.of(line)?;
        let declaration = kind.declaration();
        let to = line.options.get("to").filter(|_| declaration.kind.outputs > 0).map(|to| to.trim_matches('/'));
        let output = to.map(|to| output(&sources, declaration.kind.name, to)).transpose()?;
        let program = program(&sources, &line.stream).await?;
        declaration.input.check(declaration.kind.name, &program)?;
        let made = kind.make(&program, &line.options, number).await.map_err(AttachError::Make)?;
        let attached = sources.manager().attach(&program, made.module, &made.label, output).await;
        let attached = attached.map_err(|error| AttachError::Attach { to: to.map(str::to_owned), error })?;
        Ok(RunningModule { attached, results: made.results })
    }
}

/// The channel or live stream of a path. A live stream is opened; waits until its formats are known.
async fn program(sources: &Sources, path: &str) -> Result<Program, AttachError> {
    let Some(request) = sources.stream(&sources.find(path)).await? else {
        // The error of an asset that can't be opened tells more.
        sources.open(path.trim_matches('/')).await?;
        return Err(AttachError::NoStream(path.to_owned()));
    };
    let manager = sources.manager();
    let stream = manager.live(request)?;
    Ok(Program::live(&manager.live_feed(&stream, PATIENCE).await?))
}

/// The stream that the output of a module is published as.
fn output(sources: &Sources, kind: &'static str, path: &str) -> Result<LiveRequest, AttachError> {
    let refused = |why| {
        let (to, places) = (path.to_owned(), sources.places_of_publishers());
        AttachError::NotPublished { kind, to, why, places }
    };
    sources.module_output(path).map_err(refused)
}
