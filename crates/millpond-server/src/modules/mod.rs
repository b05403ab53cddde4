//! Modules that operators attach to channels and live streams, by the admin API or by the setting `modules`.
//!
//! `Modules` is the one way: it finds the kind, opens the stream, lets the kind make the module, and attaches that in the engine.

mod entry;
mod error;
mod kinds;
mod line;
mod publishers;
mod settings;

pub(crate) use entry::ListedModule;
pub(crate) use error::AttachError;
pub(crate) use kinds::{KindSet, check};
pub use line::ModuleLine;
pub use settings::ModuleSettings;

use crate::{events::Events, live::Sources};
use arc_swap::ArcSwap;
use entry::{Entry, RunningModule, Watched, words};
use futures_util::future::join_all;
use millpond_stream::{LiveRequest, ModuleDeclaration, Program, StreamState};
use std::{
    collections::{BTreeMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use tokio::{runtime::Handle, time::timeout};

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
    /// Lines for all streams of publishers in a place.
    patterns: Vec<ModuleLine>,
    /// Paths that publishers push now.
    published: HashSet<String>,
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
    /// Makes those of a server, none of which runs yet. `events` tell of publishers. Called within a runtime.
    pub(crate) fn new(kinds: KindSet, sources: Arc<Sources>, events: Arc<Events>) -> Arc<Self> {
        let (sources, runtime) = (ArcSwap::new(sources), Handle::current());
        let modules = Arc::new(Self { kinds, sources, runtime, inner: Mutex::default() });
        tokio::spawn(publishers::follow(events, Arc::downgrade(&modules)));
        modules
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
        let is_wanted = |entry: &Entry| lines.contains(entry.configured_line());
        for gone in known.iter().filter(|entry| !is_wanted(entry)) {
            inner.all.remove(&gone.id);
            tracing::info!(module = %gone.line, "a module is removed: it is no more in the configuration");
            let gone = gone.clone();
            self.runtime.spawn(async move { gone.remove().await });
        }
        inner.patterns = lines.iter().filter(|line| line.is_pattern()).cloned().collect();
        for line in lines.iter().filter(|line| !line.is_pattern()) {
            if known.iter().all(|entry| entry.line != *line) {
                let entry = Entry::configured(inner.number(), line.clone(), None);
                self.want(&mut inner, entry);
            }
        }
        self.want_published(&mut inner);
    }

    /// Returns the paths of the streams that are pushed now.
    fn pushed(&self) -> Vec<String> {
        let sources = self.sources.load();
        // One that is only waited for has nobody who pushes it.
        let has_frames = |state: &StreamState| matches!(state, StreamState::Running { .. } | StreamState::Lost { .. });
        let streams = sources.manager().streams().into_iter().filter(|report| has_frames(&report.state));
        streams.map(|report| report.path.to_string()).filter(|path| sources.is_pushed_to(&sources.find(path))).collect()
    }

    /// Adds a module that is begun again and again.
    fn want(self: &Arc<Self>, inner: &mut Inner, entry: Entry) {
        let entry = Arc::new(entry);
        inner.all.insert(entry.id, entry.clone());
        let task = self.runtime.spawn(self.clone().keep(entry.clone(), None));
        entry.set_task(task.abort_handle());
    }

    /// Adds the modules that the configuration has for all streams of a place, for those that are published.
    fn want_published(self: &Arc<Self>, inner: &mut Inner) {
        let published: Vec<_> = inner.published.iter().cloned().collect();
        published.iter().for_each(|path| self.want_patterns(inner, path));
    }

    /// Adds the modules that the configuration has for all streams of a place, for one stream of it.
    fn want_patterns(self: &Arc<Self>, inner: &mut Inner, path: &str) {
        if inner.is_ending {
            return;
        }
        let lines: Vec<_> =
            inner.patterns.iter().filter_map(|pattern| Some((pattern.of(path)?, pattern.clone()))).collect();
        for (line, pattern) in lines {
            let is_known = |entry: &Arc<Entry>| entry.is_configured && entry.line == line;
            if !inner.all.values().any(is_known) {
                let entry = Entry::configured(inner.number(), line, Some(pattern));
                self.want(inner, entry);
            }
        }
    }

    /// Attaches a module. Waits until it runs.
    ///
    /// # Errors
    /// The line can't be understood, the stream can't be opened, or the module can't be made or attached.
    pub(crate) async fn add(self: &Arc<Self>, line: ModuleLine) -> Result<ListedModule, AttachError> {
        let id = self.lock().number();
        let is_kept = self.kinds.of(&line)?.declaration().is_kept;
        let running = self.begin(id, &line).await?;
        let entry = Arc::new(Entry::added(id, line, is_kept));
        let mut inner = self.lock();
        if inner.is_ending {
            return Err(AttachError::Ending);
        }
        inner.prune();
        inner.all.insert(id, entry.clone());
        drop(inner);
        let watched = running.watched();
        entry.run(running);
        if is_kept {
            let task = self.runtime.spawn(self.clone().keep(entry.clone(), Some(watched)));
            entry.set_task(task.abort_handle());
        }
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

    /// Begins a module again and again, until it is removed. `watched` is the end of the module, where it runs already.
    async fn keep(self: Arc<Self>, entry: Arc<Entry>, mut watched: Option<Watched>) {
        let mut pause = PAUSE.0;
        while !self.forget(&entry) {
            let (began, number) = (Instant::now(), self.lock().number());
            let begun = match watched.take() {
                Some(watched) => Ok(watched),
                None => match self.begin(number, &entry.line).await {
                    Ok(running) => {
                        let watched = running.watched();
                        if !entry.run(running) {
                            return;
                        }
                        tracing::info!(module = %entry.line, "a module is attached");
                        Ok(watched)
                    }
                    Err(error) => Err(error),
                },
            };
            let why = match begun {
                Ok((mut end, results)) => {
                    let ended = end.wait_for(Option::is_some).await.ok().and_then(|end| end.clone());
                    ended.map_or_else(String::new, |end| words(&end, results.as_deref()))
                }
                Err(error) => {
                    if self.forget(&entry) {
                        tracing::debug!(module = %entry.line, %error, "a module is forgotten: its stream is gone");
                        return;
                    }
                    error.to_string()
                }
            };
            if entry.wait(why.clone()) {
                tracing::warn!(module = %entry.line, why, "a module waits, and is begun again");
            }
            pause = if began.elapsed() >= SLOW { PAUSE.0 } else { (pause * 2).min(PAUSE.1) };
            if timeout(pause, entry.woken()).await.is_ok() {
                pause = PAUSE.0;
            }
        }
    }

    /// Forgets a module that is wanted only while its stream is published, once that is over. Returns whether it is forgotten.
    fn forget(&self, entry: &Entry) -> bool {
        if entry.pattern.is_none() {
            return false;
        }
        let is_pushed = self.pushed().contains(&entry.line.stream);
        // While the lock is held: a publisher that comes now begins another one.
        let mut inner = self.lock();
        let is_gone = !is_pushed && !inner.published.contains(&entry.line.stream);
        if is_gone {
            inner.all.remove(&entry.id);
        }
        is_gone
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
