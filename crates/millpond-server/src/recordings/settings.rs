//! Settings of recordings.

use super::{NamePattern, RecordRule};
use millpond_place::stripe_store;
use millpond_settings::{
    At, Host, Setting, Settings,
    value::{self, BadValue, Form, show_duration, show_size},
};
use millpond_store::{OriginLocation, StripeStore};
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
    /// Streams that are always recorded.
    pub rules: Vec<RecordRule>,
    /// Length of the files of continuous recordings.
    pub file_length: Duration,
    /// Names of those files.
    pub name: NamePattern,
    /// Highest age of those files; `None` where age deletes none.
    pub keep: Option<Duration>,
    /// Highest bytes of those files; `None` where their size deletes none.
    pub keep_size: Option<u64>,
    /// The bucket that those files are moved to; `None` where they stay in the folder.
    pub to: Option<StripeStore>,
    /// Highest bytes of the files that wait for the bucket.
    pub spool: u64,
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
        let hour = Duration::from_secs(3600);
        Self {
            folder: None,
            size: 10 << 30,
            duration: 24 * hour,
            count: 8,
            rules: Vec::new(),
            file_length: hour,
            name: NamePattern::default(),
            keep: None,
            keep_size: None,
            to: None,
            spool: 10 << 30,
        }
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
    Setting {
        name: "record",
        form: Form::List,
        default: "none",
        help: "Streams that are always recorded, as paths, or as \"live/*\" for all published streams below a path. Times in UTC may follow, such as \"cams/door 08:00-18:00 mon-fri\"",
        applied: At::Reload,
        apply: |record, text| RecordRule::list(text).map(|v| record.rules = v),
        show: |record| {
            let rules: Vec<_> = record.rules.iter().map(ToString::to_string).collect();
            (!rules.is_empty()).then(|| rules.join(","))
        },
    },
    Setting {
        name: "record-file-length",
        form: Form::Duration,
        default: "1h",
        help: "Length of the files of continuous recordings. They end at key frames, at multiples of the length since midnight UTC",
        applied: At::Reload,
        apply: |record, text| value::duration_in(text, Duration::from_secs(1), DAY).map(|v| record.file_length = v),
        show: |record| Some(show_duration(record.file_length)),
    },
    Setting {
        name: "record-name",
        form: Form::Text,
        default: "{path}/{date}/{time}Z.mp4",
        help: "Names of the files of continuous recordings in record-folder, with the stream and the time in UTC at which they begin",
        applied: At::Reload,
        apply: |record, text| NamePattern::parse(text).map(|v| record.name = v),
        show: |record| Some(record.name.to_string()),
    },
    Setting {
        name: "record-keep",
        form: Form::Duration,
        default: "none: age deletes no file",
        help: "Age after which files of continuous recordings are deleted",
        applied: At::Reload,
        apply: |record, text| value::duration_in(text, Duration::from_secs(1), LONGEST).map(|v| record.keep = Some(v)),
        show: |record| record.keep.map(show_duration),
    },
    Setting {
        name: "record-keep-size",
        form: Form::Size,
        default: "none: size deletes no file",
        help: "Highest size of all files of continuous recordings. The oldest files above it are deleted",
        applied: At::Reload,
        apply: |record, text| recording_size(text).map(|v| record.keep_size = Some(v)),
        show: |record| record.keep_size.map(show_size),
    },
    Setting {
        name: "record-to",
        form: Form::Text,
        default: "none: files stay in record-folder",
        help: "Bucket that complete files of continuous recordings are moved to, such as \"s3://bucket/recordings\"",
        applied: At::Restart(|new, old| new.to.clone_from(&old.to)),
        apply: |record, text| bucket(text).map(|v| record.to = Some(v)),
        show: |record| record.to.as_ref().map(|to| to.location().to_string()),
    },
    Setting {
        name: "record-spool",
        form: Form::Size,
        default: "10GiB",
        help: "Highest size of the files that wait for record-to. The oldest files above it are lost",
        applied: At::Reload,
        apply: |record, text| recording_size(text).map(|v| record.spool = v),
        show: |record| Some(show_size(record.spool)),
    },
];

/// The longest file of a continuous recording.
const DAY: Duration = Duration::from_secs(24 * 3600);

/// Reads the bucket of recorded files, with its own endpoint and region behind a question mark.
///
/// # Errors
/// It is no bucket.
fn bucket(text: &str) -> Result<StripeStore, BadValue> {
    let bad = |why: String| BadValue::new(format!("a bucket such as \"s3://bucket/recordings\": {why}"));
    // A name before the location is for stores of striped files.
    let store = stripe_store(&format!("to={text}")).map_err(|error| bad(error.to_string()))?;
    match store.location() {
        OriginLocation::Bucket(_) => Ok(store),
        other => Err(bad(format!("{other} is none"))),
    }
}
