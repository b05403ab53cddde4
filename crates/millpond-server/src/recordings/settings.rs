//! Settings of recordings.

use millpond_settings::{
    At, Host, Setting, Settings,
    value::{self, BadValue, Form, show_duration, show_size},
};
use std::{path::PathBuf, time::Duration};

/// Folder and limits of recordings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordSettings {
    /// The folder; `None` where recording is off.
    pub folder: Option<PathBuf>,
    /// Highest size of a file in bytes.
    pub size: u64,
    /// Longest duration of a recording.
    pub duration: Duration,
    /// Highest number of recordings that run.
    pub count: usize,
}

/// The longest recording.
pub(super) const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);

/// Smallest highest size of a recording. A recording that ends within its first fragment leaves no file.
const SMALLEST: u64 = 64 << 10;

/// Reads the highest size of a recording.
///
/// # Errors
/// It is no size, or too small for the first fragment of most streams.
pub(super) fn recording_size(text: &str) -> Result<u64, BadValue> {
    match value::size(text)? {
        size if size < SMALLEST => Err(BadValue::new(format!("a size of {} or more", show_size(SMALLEST)))),
        size => Ok(size),
    }
}

impl Settings for RecordSettings {
    const LIST: &'static [Setting<Self>] = LIST;

    fn defaults(_: &Host<'_>) -> Self {
        Self { folder: None, size: 10 << 30, duration: Duration::from_secs(24 * 3600), count: 8 }
    }
}

const LIST: &[Setting<RecordSettings>] = &[
    Setting {
        name: "record-folder",
        form: Form::Path,
        default: "none: recording is off",
        help: "Folder of recordings. `millpond record` starts and stops recordings by the admin address",
        applied: At::Restart(|new, old| new.folder.clone_from(&old.folder)),
        apply: |record, text| value::path(text).map(|v| record.folder = Some(v)),
        show: |record| record.folder.as_ref().map(|folder| folder.display().to_string()),
    },
    Setting {
        name: "record-size",
        form: Form::Size,
        default: "10GiB",
        help: "Highest size of a recording. A recording that reaches it ends",
        applied: At::Reload,
        apply: |record, text| recording_size(text).map(|v| record.size = v),
        show: |record| Some(show_size(record.size)),
    },
    Setting {
        name: "record-duration",
        form: Form::Duration,
        default: "24h",
        help: "Longest duration of a recording. A recording that reaches it ends",
        applied: At::Reload,
        apply: |record, text| value::duration_in(text, Duration::from_secs(1), LONGEST).map(|v| record.duration = v),
        show: |record| Some(show_duration(record.duration)),
    },
    Setting {
        name: "recordings",
        form: Form::Count,
        default: "8",
        help: "Highest number of recordings at the same time",
        applied: At::Reload,
        apply: |record, text| value::count(text, 1).map(|v| record.count = v),
        show: |record| Some(record.count.to_string()),
    },
];
