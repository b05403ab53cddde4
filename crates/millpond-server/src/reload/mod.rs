//! Reloads of the configuration while the server runs.
//!
//! SIGHUP, `millpond reload`, the admin address and a watched file all call one [`Reloader`]. The new configuration is made as at the
//! start: from the file, the environment and the command line. It is checked as a whole. Where it is wrong, the one in force stays.
//! Where it is right, a [`Report`] tells what has changed and what waits for a restart.

mod file;
mod metrics;
mod report;
mod settings;
#[cfg(test)]
mod tests;

pub(crate) use metrics::ReloadMetrics;
pub(crate) use report::place;
pub use report::{Change, PlaceChanges, Report};
pub use settings::ReloadSettings;

use crate::{
    config::{self, EditError, Inputs, Loaded},
    serve::{Running, ServeError},
    upgrade,
};
use arc_swap::ArcSwap;
use millpond_settings::{
    ConfigErrors,
    files::{self, FileStamp},
};
use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::{runtime::Handle, sync::watch, time::sleep};

/// Interval between checks of a watched file.
const LOOK: Duration = Duration::from_secs(1);

/// Reason why a configuration is not in force. The earlier one stays.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    /// The configuration is wrong. Each error names file, line and key.
    #[error("{0}")]
    Invalid(ConfigErrors),
    /// The configuration can't be served here: a place, a certificate or an address can't be used.
    #[error("{0}")]
    Refused(ServeError),
    /// The server runs without a configuration file, so that no text can be written to it.
    #[error("the server runs without a configuration file: start it with --config FILE")]
    NoFile,
    /// The change does not fit the text of the file.
    #[error(transparent)]
    Edit(#[from] EditError),
    /// The file was changed by another program during the change.
    #[error("the configuration file has changed meanwhile: try again")]
    Changed,
    /// The configuration file can't be read or written.
    #[error("{}: {error}", .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The server stops.
    #[error("the server stops, or another process has taken over")]
    Stopping,
}

/// Reloads the configuration of a running server. Clones share it.
#[derive(Clone)]
pub struct Reloader(Arc<Inner>);

struct Inner {
    inputs: Inputs,
    /// The threads that serve. Loading blocks, and runs beside them.
    serving: Handle,
    running: Arc<Running>,
    metrics: ReloadMetrics,
    /// The configuration in force.
    loaded: ArcSwap<Loaded>,
    /// Stamp of the file when it was last loaded. The lock is held during a reload.
    seen: Mutex<Option<FileStamp>>,
}

/// A change of the text of the configuration file.
type Edit = Box<dyn FnOnce(&str) -> Result<String, EditError> + Send>;

/// A new text of the configuration file, and the one that it was made from.
struct Edited {
    old: String,
    new: String,
}

impl Reloader {
    /// Makes the reloader of a server that runs with `loaded`, which was made from `inputs`. To be called on a serving thread.
    pub(crate) fn new(inputs: Inputs, loaded: Loaded, running: Arc<Running>, metrics: ReloadMetrics) -> Self {
        let stamp = inputs.config_file().map(|file| FileStamp::of(&file));
        Self(Arc::new(Inner {
            inputs,
            serving: Handle::current(),
            running,
            metrics,
            loaded: ArcSwap::from_pointee(loaded),
            seen: Mutex::new(stamp),
        }))
    }

    /// Returns the configuration in force, with the source of each value.
    pub fn loaded(&self) -> Arc<Loaded> {
        self.0.loaded.load_full()
    }

    /// Returns the configuration file; `None` where the server runs without one.
    pub fn file(&self) -> Option<PathBuf> {
        self.0.inputs.config_file()
    }

    /// Tells whether the server has a configuration file that it may replace.
    pub fn can_write(&self) -> bool {
        self.file().is_some_and(|file| file::is_replaceable(&file))
    }

    /// Loads the configuration again and puts it in force. Reloads follow one another; one that has begun is completed even where
    /// the caller does not wait for it.
    ///
    /// # Errors
    /// The reason why the earlier configuration stays.
    pub async fn reload(&self) -> Result<Report, ReloadError> {
        self.in_turn(|inner| inner.replace(None)).await
    }

    /// Changes the text of the configuration file, writes it and puts it in force. The file is replaced as a whole, and only by a
    /// text that can be put in force. Changes follow one another: each gets the text that the one before has written.
    ///
    /// # Errors
    /// The reason why the file and the earlier configuration stay.
    pub async fn apply(
        &self,
        edit: impl FnOnce(&str) -> Result<String, EditError> + Send + 'static,
    ) -> Result<Report, ReloadError> {
        self.in_turn(|inner| inner.replace(Some(Box::new(edit)))).await
    }

    /// Tells what [`apply`](Self::apply) would change. Addresses and places are not tried.
    ///
    /// # Errors
    /// The change does not fit the text of the file, or the new text is wrong.
    pub async fn check(
        &self,
        edit: impl FnOnce(&str) -> Result<String, EditError> + Send + 'static,
    ) -> Result<Report, ReloadError> {
        self.run(|inner| Ok(inner.load(Some(inner.edited(Box::new(edit))?.new))?.1)).await
    }

    /// Runs a job that no other reload and no upgrade runs beside. Those that wait hold no thread.
    async fn in_turn(
        &self,
        job: impl FnOnce(&Inner) -> Result<Report, ReloadError> + Send + 'static,
    ) -> Result<Report, ReloadError> {
        let turn = self.0.running.turn().await;
        self.run(move |inner| {
            let _turn = turn;
            job(inner)
        })
        .await
    }

    async fn run(
        &self,
        job: impl FnOnce(&Inner) -> Result<Report, ReloadError> + Send + 'static,
    ) -> Result<Report, ReloadError> {
        let inner = self.0.clone();
        self.0.serving.spawn_blocking(move || job(&inner)).await.unwrap_or(Err(ReloadError::Stopping))
    }

    /// Reloads when the file changes, while the setting `config-watch` is on, until `stop` turns true.
    pub(crate) async fn watch(self, mut stop: watch::Receiver<bool>) {
        let Some(file) = self.file() else { return };
        let mut last = FileStamp::of(&file);
        loop {
            tokio::select! {
                () = sleep(LOOK) => {}
                _ = stop.wait_for(|stop| *stop) => return,
            }
            let now = FileStamp::of(&file);
            // A file that changes between two checks is still being written.
            let is_settled = std::mem::replace(&mut last, now) == now;
            if is_settled && self.loaded().config.reload.watch && self.0.is_new(now) {
                // It logs its failure.
                let _ = self.reload().await;
            }
        }
    }
}

impl Inner {
    /// Whether the file has another state than at the last reload. A reload that runs settles the question.
    fn is_new(&self, now: FileStamp) -> bool {
        self.seen.try_lock().is_ok_and(|seen| *seen != Some(now))
    }

    /// Changes the text of the file as it is now.
    fn edited(&self, edit: Edit) -> Result<Edited, ReloadError> {
        let path = self.inputs.config_file().ok_or(ReloadError::NoFile)?;
        let old = fs::read_to_string(&path).map_err(|error| ReloadError::Write { path, error })?;
        let new = edit(&old)?;
        Ok(Edited { old, new })
    }

    /// Loads the configuration of the file, or of a text in its place. Settings that need a restart have the values in force.
    fn load(&self, text: Option<String>) -> Result<(Loaded, Report), ReloadError> {
        let mut inputs = self.inputs.clone();
        inputs.text = text;
        let mut loaded = config::load(&inputs).map_err(ReloadError::Invalid)?;
        let report = Report::new(&self.loaded.load(), &mut loaded);
        Ok((loaded, report))
    }

    fn replace(&self, edit: Option<Edit>) -> Result<Report, ReloadError> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let file = self.inputs.config_file();
        if self.running.is_leaving() {
            return Err(ReloadError::Stopping);
        }
        let edited = edit.map(|edit| self.edited(edit)).transpose()?;
        upgrade::tell_reloading();
        let replaced = self.try_replace(edited.as_ref(), file.as_deref(), &mut seen);
        upgrade::tell_reloaded();
        match &replaced {
            Ok(report) => {
                self.metrics.succeeded(report.needs_restart.len());
                report.log();
            }
            // The file is what is in force still.
            Err(error) if edited.is_some() => {
                self.metrics.refused();
                for line in error.to_string().lines() {
                    tracing::warn!("a change of the configuration is refused: {line}");
                }
            }
            Err(error) => {
                self.metrics.failed();
                for line in error.to_string().lines() {
                    tracing::error!(
                        "the configuration is not reloaded: the earlier configuration stays in force: \
                                     {line}"
                    );
                }
            }
        }
        replaced
    }

    fn try_replace(
        &self,
        edited: Option<&Edited>,
        file: Option<&Path>,
        seen: &mut Option<FileStamp>,
    ) -> Result<Report, ReloadError> {
        if edited.is_none() {
            // Before it is read: the next check sees a later change.
            *seen = file.map(FileStamp::of);
        }
        let (loaded, mut report) = self.load(edited.map(|edited| edited.new.clone()))?;
        let prepared = self.running.prepare(&loaded).map_err(ReloadError::Refused)?;
        if let (Some(Edited { old, new }), Some(path)) = (edited, file) {
            let failed = |error| ReloadError::Write { path: path.to_owned(), error };
            if fs::read_to_string(path).map_err(failed)? != *old {
                return Err(ReloadError::Changed);
            }
            file::replace(path, new).map_err(failed)?;
            *seen = Some(FileStamp::of(path));
        }
        report.warnings.extend(self.running.commit(prepared));
        // Users, keys and certificates may have changed where their paths have not.
        files::look_now();
        self.loaded.store(Arc::new(loaded));
        Ok(report)
    }
}

impl Report {
    /// Logs what has changed.
    fn log(&self) {
        let named = |changes: &[Change]| changes.iter().map(Change::to_string).collect::<Vec<_>>().join(", ");
        for warning in &self.warnings {
            tracing::warn!("{warning}");
        }
        if !self.needs_restart.is_empty() {
            tracing::warn!(settings = named(&self.needs_restart), "these settings need a restart");
        }
        let PlaceChanges { added, removed, changed } = &self.places;
        tracing::info!(
            settings = named(&self.applied),
            added = added.join(","),
            removed = removed.join(","),
            changed = changed.join(","),
            "configuration reloaded"
        );
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "off".to_owned());
        write!(f, "{}: {} to {}", self.setting, shown(&self.from), shown(&self.to))
    }
}

impl fmt::Debug for Reloader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reloader").field("file", &self.file()).finish_non_exhaustive()
    }
}
