//! Recordings of channels and live streams into files of one folder.
//!
//! A recording is a module of the kind `recorder`. A client names a channel or stream; the server makes the names of the files.
//!
//! A continuous recording is a module of the kind `archiver`: it has no end, and its files are kept on a `Shelf`. The decisions are without
//! files and clocks: names (`name_pattern`), borders of files (`borders`), and files to delete (`retention`).

mod archiver;
mod borders;
mod folder;
mod kind;
mod metrics;
mod name_pattern;
mod plan;
mod retention;
mod rule;
mod schedule;
mod settings;
mod shelf;
mod timeline;
mod uploads;

pub use archiver::BadTarget;
pub(crate) use archiver::{ARCHIVER_DECLARATION, ArchiverKind, ShelfTasks, active, lines};
pub(crate) use kind::{DECLARATION, RecorderKind};
pub(crate) use metrics::RecordingMetrics;
pub use name_pattern::NamePattern;
pub use rule::RecordRule;
pub use schedule::Schedule;
pub use settings::RecordSettings;
pub(crate) use shelf::{Shelf, ShelvedFile};
pub(crate) use timeline::{Covered, timeline};

use crate::modules::{AttachError, CannotRemove, ModuleLine, Modules};
use millpond_stream::{BadOption, CannotRecord, Recording, RecordingState};
use millpond_utc::Date;
use std::{sync::Arc, time::Duration};

/// Most letters of an asset's path in the name of a file.
const NAME: usize = 80;

/// Why the kind `recorder` makes no module.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RecordError {
    /// There is no folder.
    #[error("recording is off: set record-folder, the folder of recordings")]
    Off,
    /// As many run as may.
    #[error("{0} recordings run, which is the limit of the setting recordings")]
    TooMany(usize),
    /// The engine can't record.
    #[error(transparent)]
    Stream(#[from] CannotRecord),
}

/// A recording as it is listed.
#[derive(Clone, Debug)]
pub(crate) struct Listed {
    pub(crate) id: u64,
    pub(crate) path: String,
    /// Name of its file in the folder.
    pub(crate) file: String,
    pub(crate) state: RecordingState,
}

/// The recordings of a server: its modules of the kind `recorder`.
pub(crate) struct Recordings {
    kind: Arc<RecorderKind>,
    modules: Arc<Modules>,
}

impl Recordings {
    /// Makes those of a server; `None` where recording is off.
    pub(crate) fn new(kind: Arc<RecorderKind>, modules: Arc<Modules>) -> Option<Self> {
        kind.is_on().then_some(Self { kind, modules })
    }

    /// Starts to record a channel or live stream, within lower limits than the configured ones where some are given.
    ///
    /// # Errors
    /// Those of [`Modules::add`]. A limit above the configured one is refused.
    pub(crate) async fn start(
        &self,
        path: &str,
        limits: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Option<Listed>, AttachError> {
        let module = self.modules.add(ModuleLine::new(path, DECLARATION.kind.name, limits)).await?;
        Ok(self.kind.get(module.id))
    }

    /// Stops a recording and waits until its file is complete; `None` where there is no such recording.
    ///
    /// # Errors
    /// It is one of the configuration.
    pub(crate) async fn stop(&self, id: u64) -> Result<Option<Listed>, CannotRemove> {
        let Some(Listed { state, .. }) = self.kind.get(id) else { return Ok(None) };
        match self.modules.remove(id).await {
            // Others are begun under numbers of their own.
            Err(CannotRemove::Absent) if state.end.is_none() => return Err(CannotRemove::Configured),
            Ok(_) | Err(_) => {}
        }
        Ok(self.kind.take(id))
    }

    /// Lists the recordings that run, and the last ones that have ended by themselves.
    pub(crate) fn list(&self) -> Vec<Listed> {
        self.kind.list()
    }

    /// Returns the number of recordings that run.
    pub(crate) fn running(&self) -> usize {
        self.kind.running()
    }
}

/// Returns the option of a recorder that is above the limits of the configuration; `None` for modules of other kinds.
pub(crate) fn excess(line: &ModuleLine, settings: &RecordSettings) -> Option<BadOption> {
    let is_recorder = line.kind == DECLARATION.kind.name;
    is_recorder.then(|| kind::check_limits(&line.options, settings).err()).flatten()
}

fn listed(id: u64, recording: &Recording) -> Listed {
    let file = recording.file().file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    Listed { id, path: recording.path().to_owned(), file, state: recording.state() }
}

/// Makes the name of a file: of an asset's path, the time and the recording's number. It has letters, digits, `.`, `-` and `_`
/// only, and does not begin with a dot.
fn file_name(path: &str, since_epoch: Duration, id: u64) -> String {
    let keep = |letter: char| if letter.is_ascii_alphanumeric() || "-_.".contains(letter) { letter } else { '_' };
    let name: String = path.trim_matches(['/', '.']).chars().take(NAME).map(keep).collect();
    let seconds = since_epoch.as_secs();
    let Date { year, month, day } = Date::of_wall(since_epoch);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    let name = if name.is_empty() { "recording" } else { &name };
    format!("{name}-{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z-{id}.mp4")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_stay_in_their_folder() {
        let at = Duration::from_secs(1_795_362_716);
        for (path, expected) in [
            ("films/a.mp4", "films_a.mp4-20261122T155156Z-7.mp4"),
            ("", "recording-20261122T155156Z-7.mp4"),
            ("../../etc/passwd", "etc_passwd-20261122T155156Z-7.mp4"),
            (".hidden", "hidden-20261122T155156Z-7.mp4"),
            ("a\0b\nc\u{1b}d é", "a_b_c_d__-20261122T155156Z-7.mp4"),
        ] {
            assert_eq!(file_name(path, at, 7), expected, "{path:?}");
        }
        assert!(file_name(&"x".repeat(4000), at, u64::MAX).len() < 150);
    }
}
