//! The file of a schedule while it plays: it is read again when it changes.

use super::{Fault, ScheduleState, file, timetable::Timetable};
use crate::live::Sources;
use arc_swap::ArcSwap;
use millpond_settings::files::{FileStamp, read_text};
use std::{path::Path, sync::Arc, time::Duration};
use tokio::{task::spawn_blocking, time::sleep};

/// Interval between two looks at the file.
const LOOK: Duration = Duration::from_secs(1);

/// Reads and parses a file.
///
/// # Errors
/// It can't be read, or all that is wrong with it.
pub(super) fn read(path: &Path) -> Result<Timetable, Vec<Fault>> {
    let text =
        read_text(path).map_err(|error| vec![Fault { line: 0, words: format!("the file can't be read: {error}") }])?;
    file::parse(&text)
}

/// Tells a schedule its timetable, now and when the file changes. Where it is wrong, the earlier timetable stays.
pub(super) async fn watch(state: Arc<ScheduleState>, sources: Arc<ArcSwap<Sources>>) {
    let (mut last, mut taken) = (None, None);
    loop {
        let path = state.file().to_owned();
        let Ok(stamp) = spawn_blocking(move || FileStamp::of(&path)).await else { return };
        // A file that changes between two looks is still being written.
        let is_settled = last.replace(stamp).is_none_or(|last| last == stamp);
        if is_settled && taken != Some(stamp) {
            taken = Some(stamp);
            let path = state.file().to_owned();
            let Ok(read) = spawn_blocking(move || read(&path)).await else { return };
            let read = read.and_then(|timetable| {
                let faults = timetable.faults(state.stream(), &*sources.load_full());
                if faults.is_empty() { Ok(timetable) } else { Err(faults) }
            });
            take(&state, read);
        }
        sleep(LOOK).await;
    }
}

fn take(state: &ScheduleState, read: Result<Timetable, Vec<Fault>>) {
    let (stream, file) = (state.stream(), state.file().display().to_string());
    match &read {
        Ok(timetable) => tracing::info!(stream, file, entries = timetable.entries().len(), "a schedule is read"),
        Err(faults) => {
            for fault in faults {
                tracing::error!(stream, file, "a schedule is not read again, and the earlier one goes on: {fault}");
            }
        }
    }
    state.take(read.map_err(|faults| faults.first().map(ToString::to_string).unwrap_or_default()));
}
