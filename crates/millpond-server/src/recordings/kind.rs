//! The kind of modules that record: files of one folder, within limits.

use super::{
    Listed, RecordError, RecordSettings, file_name, listed,
    settings::{LONGEST, recording_size},
};
use crate::events::{Events, Kind};
use arc_swap::ArcSwap;
use futures_util::future::BoxFuture;
use millpond_connections::{Slot, Slots};
use millpond_settings::value::{self, BadValue, Form, show_duration, show_size};
use millpond_stream::{
    AttachableKind, BadOption, MadeModule, Manager, ModuleDeclaration, ModuleInput, ModuleOption, ModuleOptions,
    ModuleResults, Program, RecordLimits, Recording, RecordingEnd, RecordingState, graph::ModuleError,
    modules::RECORDER,
};
use serde_json::json;
use std::{
    collections::BTreeMap,
    error::Error,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// Recordings that have ended and are still listed.
const ENDED: usize = 32;
/// Shortest duration of a recording.
const SHORTEST: Duration = Duration::from_secs(1);

/// The kind `recorder`, as operators see it.
pub(crate) const DECLARATION: ModuleDeclaration =
    ModuleDeclaration { kind: RECORDER, input: ModuleInput::Any, options: OPTIONS, is_kept: false };

const OPTIONS: &[ModuleOption] = &[
    ModuleOption {
        name: "duration",
        form: Form::Duration,
        default: "record-duration",
        help: "Longest duration, at most record-duration",
        is_required: false,
        check: |text| {
            let fits = value::duration_in(text, SHORTEST, LONGEST).map(drop);
            fits.map_err(|bad| BadValue::new(format!("{}; record-duration lowers it", bad.expected)))
        },
    },
    ModuleOption {
        name: "size",
        form: Form::Size,
        default: "record-size",
        help: "Highest size of the file, at most record-size",
        is_required: false,
        check: |text| recording_size(text).map(drop),
    },
];

/// Checks options of a recorder against the limits of the configuration.
///
/// # Errors
/// The first option above its limit.
pub(super) fn check_limits(options: &ModuleOptions, settings: &RecordSettings) -> Result<(), BadOption> {
    let above = |name, text: &str, most, setting| BadOption::Limit { name, found: text.to_owned(), most, setting };
    if let Some(text) = options.get("size")
        && value::size(text).is_ok_and(|size| size > settings.size)
    {
        return Err(above("size", text, show_size(settings.size), "record-size"));
    }
    if let Some(text) = options.get("duration")
        && value::duration(text).is_ok_and(|duration| duration > settings.duration)
    {
        return Err(above("duration", text, show_duration(settings.duration), "record-duration"));
    }
    Ok(())
}

/// Makes recordings.
pub(crate) struct RecorderKind {
    manager: Arc<Manager>,
    events: Arc<Events>,
    settings: ArcSwap<RecordSettings>,
    slots: Arc<Slots>,
    /// By number. A lock: taken for look-ups.
    all: Mutex<BTreeMap<u64, Entry>>,
}

struct Entry {
    recording: Arc<Recording>,
    /// Its slot, while it runs.
    slot: Option<Slot>,
}

/// The file of a recording.
struct RecordedFile(Arc<Recording>);

impl RecorderKind {
    pub(crate) fn new(settings: RecordSettings, manager: Arc<Manager>, events: Arc<Events>) -> Self {
        let slots = Slots::new(settings.count);
        Self { manager, events, settings: ArcSwap::from_pointee(settings), slots, all: Mutex::default() }
    }

    /// Changes the limits. Recordings that run keep theirs.
    pub(crate) fn reconfigure(&self, settings: RecordSettings) {
        self.slots.set_most(settings.count);
        self.settings.store(Arc::new(settings));
    }

    /// Whether there is a folder for recordings.
    pub(super) fn is_on(&self) -> bool {
        self.settings.load().folder.is_some()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Entry>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lists the recordings that run, and the last ones that have ended by themselves.
    pub(super) fn list(&self) -> Vec<Listed> {
        let mut all = self.lock();
        prune(&mut all);
        all.iter().map(|(id, entry)| listed(*id, &entry.recording)).collect()
    }

    /// Returns the number of recordings that run.
    pub(super) fn running(&self) -> usize {
        self.lock().values().filter(|entry| entry.recording.state().end.is_none()).count()
    }

    /// Returns a recording, which is not listed any more.
    pub(super) fn take(&self, id: u64) -> Option<Listed> {
        self.lock().remove(&id).map(|entry| listed(id, &entry.recording))
    }

    /// Returns a recording.
    pub(super) fn get(&self, id: u64) -> Option<Listed> {
        self.lock().get(&id).map(|entry| listed(id, &entry.recording))
    }

    async fn record(
        &self,
        program: &Program,
        options: &ModuleOptions,
        id: u64,
    ) -> Result<MadeModule, Box<dyn Error + Send + Sync>> {
        let settings = self.settings.load_full();
        let RecordSettings { folder, size: most, duration: longest, count, .. } = &*settings;
        let folder = folder.as_ref().ok_or(RecordError::Off)?;
        prune(&mut self.lock());
        let slot = self.slots.take().ok_or(RecordError::TooMany(*count))?;
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let file = folder.join(file_name(program.path(), since_epoch, id));
        // The options were checked, but a reload may have lowered the limits since.
        let size = options.get("size").and_then(|text| value::size(text).ok());
        let duration = options.get("duration").and_then(|text| value::duration(text).ok());
        let limits = RecordLimits {
            bytes: size.map_or(*most, |size| size.min(*most)),
            duration: duration.map_or(*longest, |duration| duration.min(*longest)),
        };
        let (recording, module) = self.manager.recorder(program, file, limits).await.map_err(RecordError::from)?;
        let label = recording.file().file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let recording = Arc::new(recording);
        tokio::spawn(tell_end(self.events.clone(), recording.clone()));
        self.lock().insert(id, Entry { recording: recording.clone(), slot: Some(slot) });
        Ok(MadeModule { module, label, results: Some(Arc::new(RecordedFile(recording))) })
    }
}

/// Emits an event once a recording is complete.
async fn tell_end(events: Arc<Events>, recording: Arc<Recording>) {
    let RecordingState { files, bytes, duration, end, .. } = recording.ended().await;
    let (file, seconds) = (recording.file().display().to_string(), duration.as_secs_f64());
    let reason = end.as_ref().map(RecordingEnd::name);
    let data = json!({ "file": file, "files": files, "bytes": bytes, "seconds": seconds, "reason": reason });
    events.emit(Kind::RecordingComplete, recording.path(), data);
}

/// Frees the slots of recordings that have ended, and forgets the oldest of those.
fn prune(all: &mut BTreeMap<u64, Entry>) {
    let mut ended = Vec::new();
    for (id, entry) in &mut *all {
        if entry.recording.state().end.is_some() {
            entry.slot = None;
            ended.push(*id);
        }
    }
    for id in ended.iter().take(ended.len().saturating_sub(ENDED)) {
        all.remove(id);
    }
}

impl AttachableKind for RecorderKind {
    fn declaration(&self) -> &'static ModuleDeclaration {
        &DECLARATION
    }

    fn check(&self, options: &ModuleOptions) -> Result<(), BadOption> {
        check_limits(options, &self.settings.load())
    }

    fn make<'a>(
        &'a self,
        stream: &'a Program,
        options: &'a ModuleOptions,
        id: u64,
    ) -> BoxFuture<'a, Result<MadeModule, ModuleError>> {
        Box::pin(self.record(stream, options, id))
    }
}

impl ModuleResults for RecordedFile {
    fn stopping(&self) {
        self.0.stop();
    }

    fn why(&self) -> Option<String> {
        let RecordingState { end, duration, bytes, .. } = self.0.state();
        Some(match end? {
            RecordingEnd::Duration => {
                format!("the recording has its longest duration, {} s (duration, record-duration)", duration.as_secs())
            }
            RecordingEnd::Bytes => format!("the recording has its highest size, {bytes} bytes (size, record-size)"),
            RecordingEnd::Failed(error) => format!("the recording failed: {error}"),
            end => format!("the recording ended: {}", end.name()),
        })
    }

    fn complete(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move { drop(self.0.ended().await) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_settings::{Host, Settings as _, machine::Machine};

    #[test]
    fn options_above_the_settings_are_refused() {
        let host = Host { machine: Machine::detect(), variable: &|_| None };
        let settings =
            RecordSettings { size: 1 << 30, duration: Duration::from_secs(3600), ..RecordSettings::defaults(&host) };
        let check = |pairs: &[(&str, &str)]| {
            let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            let options = ModuleOptions::of(pairs);
            options.check(&DECLARATION).unwrap();
            check_limits(&options, &settings).map_err(|error| error.to_string())
        };
        assert_eq!(check(&[]), Ok(()));
        assert_eq!(check(&[("size", "1GiB"), ("duration", "60m")]), Ok(()));
        let cure = ": lower the value, or raise the setting";
        let size = format!("size: found 2GiB, expected at most 1GiB, the setting record-size{cure}");
        assert_eq!(check(&[("size", "2GiB"), ("duration", "60m")]), Err(size));
        let duration = format!("duration: found 61m, expected at most 3600s, the setting record-duration{cure}");
        assert_eq!(check(&[("size", "1GiB"), ("duration", "61m")]), Err(duration));
    }
}
