//! The kind of modules that record without an end.

use super::{
    RecordError, RecordRule, RecordSettings,
    metrics::RecordingMetrics,
    plan::ShelfPlan,
    shelf::{Shelf, interval},
    uploads::Uploads,
};
use crate::{events::Events, modules::ModuleLine};
use futures_util::future::BoxFuture;
use millpond_store::{BucketWriter, LocationError, RemoteOptions};
use millpond_stream::{
    AttachableKind, MadeModule, Manager, ModuleDeclaration, ModuleInput, ModuleOptions, ModuleResults, Program,
    Recording, RecordingEnd, graph::ModuleError, modules::ARCHIVER,
};
use std::{
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};
use tokio::{task::AbortHandle, time::sleep};

/// The kind `archiver`, as operators see it.
pub(crate) const ARCHIVER_DECLARATION: ModuleDeclaration =
    ModuleDeclaration { kind: ARCHIVER, input: ModuleInput::Any, options: &[], is_kept: false };

/// Makes recordings without an end.
pub(crate) struct ArchiverKind {
    manager: Arc<Manager>,
    /// The files; `None` where recording is off.
    shelf: Option<Arc<Shelf>>,
    /// Writes to the bucket of the setting `record-to`.
    writer: Option<(BucketWriter, String)>,
}

/// Why files can't be recorded.
#[derive(Debug, thiserror::Error)]
#[error("record-to: {0}")]
pub struct BadTarget(LocationError);

impl ArchiverKind {
    /// Makes the kind. Nothing is read and asked yet.
    ///
    /// # Errors
    /// No client can be made of the bucket of the settings.
    pub(crate) fn new(
        settings: &RecordSettings,
        manager: Arc<Manager>,
        events: &Arc<Events>,
        metrics: &RecordingMetrics,
    ) -> Result<Self, BadTarget> {
        let writer = settings.to.as_ref().filter(|_| settings.folder.is_some()).map(|to| {
            let writer = BucketWriter::new(to.location(), &to.remote(&RemoteOptions::default()));
            writer.map(|writer| (writer, to.location().to_string())).map_err(BadTarget)
        });
        let shelf = |folder: &std::path::PathBuf| {
            Arc::new(Shelf::new(folder.clone(), settings.clone(), events.clone(), metrics))
        };
        Ok(Self { manager, shelf: settings.folder.as_ref().map(shelf), writer: writer.transpose()? })
    }

    /// Changes the settings. Files that are written end by the new ones.
    pub(crate) fn reconfigure(&self, settings: &RecordSettings) {
        self.shelf.iter().for_each(|shelf| shelf.reconfigure(settings.clone()));
    }

    /// The recorded files; `None` where recording is off.
    pub(crate) fn shelf(&self) -> Option<&Arc<Shelf>> {
        self.shelf.as_ref()
    }

    /// Tends the folder, and uploads its files, until the result is dropped. Called within a runtime.
    pub(crate) fn begin(&self) -> ShelfTasks {
        let Some(shelf) = self.shelf.clone() else { return ShelfTasks(Vec::new()) };
        let uploads = self
            .writer
            .clone()
            .map(|(writer, location)| tokio::spawn(Uploads::new(shelf.clone(), writer, location).run()).abort_handle());
        let tending = tokio::spawn(async move {
            loop {
                let tended = shelf.clone();
                // It ends with the runtime.
                let _ = tokio::task::spawn_blocking(move || tended.tend()).await;
                sleep(interval(shelf.settings().file_length)).await;
            }
        });
        ShelfTasks([Some(tending.abort_handle()), uploads].into_iter().flatten().collect())
    }

    async fn archive(&self, program: &Program) -> Result<MadeModule, ModuleError> {
        let shelf = self.shelf.clone().ok_or(RecordError::Off)?;
        let plan = Box::new(ShelfPlan::new(program.path(), shelf));
        let (recording, module) = self.manager.archiver(program, plan).await.map_err(RecordError::from)?;
        Ok(MadeModule { module, label: "archiver".to_owned(), results: Some(Arc::new(Archived(recording))) })
    }
}

/// The tasks of a shelf, which end when this is dropped.
pub(crate) struct ShelfTasks(Vec<AbortHandle>);

impl Drop for ShelfTasks {
    fn drop(&mut self) {
        self.0.iter().for_each(AbortHandle::abort);
    }
}

impl AttachableKind for ArchiverKind {
    fn declaration(&self) -> &'static ModuleDeclaration {
        &ARCHIVER_DECLARATION
    }

    fn make<'a>(
        &'a self,
        stream: &'a Program,
        _: &'a ModuleOptions,
        _: u64,
    ) -> BoxFuture<'a, Result<MadeModule, ModuleError>> {
        Box::pin(self.archive(stream))
    }
}

/// The files of a recording without an end.
struct Archived(Recording);

impl ModuleResults for Archived {
    fn stopping(&self) {
        self.0.stop();
    }

    fn why(&self) -> Option<String> {
        Some(match self.0.state().end? {
            RecordingEnd::Failed(error) => format!("a file can't be written: {error}"),
            end => format!("the recording ended: {}", end.name()),
        })
    }

    fn complete(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move { drop(self.0.ended().await) })
    }
}

/// Returns the rules that hold now.
pub(crate) fn active(rules: &[RecordRule]) -> Vec<RecordRule> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    rules.iter().filter(|rule| rule.is_active(now)).cloned().collect()
}

/// Returns the modules that record what the rules name.
pub(crate) fn lines(rules: &[RecordRule]) -> impl Iterator<Item = ModuleLine> {
    rules.iter().map(|rule| ModuleLine::new(rule.streams(), ARCHIVER.name, []))
}
