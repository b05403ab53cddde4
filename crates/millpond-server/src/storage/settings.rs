//! Settings of the cache: memory, disk and the scheduler of fetches.

use millpond_settings::{
    At, ConfigError, Host, Setting, Settings, Sources,
    machine::default_cache_size,
    value::{self, BadValue, Form, show_size},
};
use millpond_store::{policy::PolicyName, schedule::Mode};
use std::path::PathBuf;

/// Settings of the cache.
#[derive(Debug, Clone)]
pub struct StorageSettings {
    /// Whether places that don't say otherwise serve files whose names begin with a dot.
    pub hidden_files: bool,
    /// Folder for what is kept between runs.
    pub folder: PathBuf,
    /// Folder of the past of live streams.
    pub shift_folder: PathBuf,
    /// File of the statistics of viewing; `None` where they are not kept.
    pub statistics_file: Option<PathBuf>,
    /// Limit of the past of all live streams on the disk, in bytes; `None` where only that of each stream counts.
    pub shift_total: Option<u64>,
    /// Limit of the memory for slices, indexes and playlists, in bytes.
    pub memory: u64,
    /// Limit of the slices on the disk, in bytes.
    pub cache_size: u64,
    /// Size of a slice, in bytes.
    pub slice: u32,
    /// Eviction policy of the disk.
    pub policy: PolicyName,
    /// When upcoming slices are fetched.
    pub prefetch: Mode,
}

/// Bounds of `slice`, in bytes.
const SLICE: (u64, u64) = (16 << 10, 16 << 20);

const PREFETCH: &str = "on-demand, window, window:N (0 to 1024 slices), half, active or full";

impl Settings for StorageSettings {
    const LIST: &'static [Setting<Self>] = LIST;

    fn defaults(host: &Host<'_>) -> Self {
        let folder = cache_folder(host.variable);
        Self {
            hidden_files: false,
            shift_folder: folder.join(SHIFT),
            statistics_file: Some(folder.join(STATISTICS)),
            shift_total: None,
            folder,
            memory: host.machine.default_memory(),
            cache_size: 0,
            slice: 512 << 10,
            policy: PolicyName::default(),
            prefetch: Mode::Active,
        }
    }

    fn complete(&mut self, sources: &Sources) -> Vec<ConfigError> {
        if !sources.has("cache-size") {
            self.cache_size = default_cache_size(&self.folder);
        }
        if !sources.has("time-shift-folder") {
            self.shift_folder = self.folder.join(SHIFT);
        }
        if !sources.has("statistics-file") {
            self.statistics_file = Some(self.folder.join(STATISTICS));
        }
        Vec::new()
    }
}

/// Folder of the past of live streams in that of the cache.
const SHIFT: &str = "live";
/// File of the statistics of viewing in the folder of the cache.
const STATISTICS: &str = "viewing.json";

const LIST: &[Setting<StorageSettings>] = &[
    Setting {
        name: "hidden-files",
        form: Form::Switch,
        default: "false",
        help: "Serve files whose name or folder begins with a dot; listings never show them",
        applied: At::Reload,
        apply: |storage, text| value::switch(text).map(|v| storage.hidden_files = v),
        show: |storage| Some(storage.hidden_files.to_string()),
    },
    Setting {
        name: "cache",
        form: Form::Path,
        default: "$XDG_CACHE_HOME/millpond or ~/.cache/millpond",
        help: "Folder of the disk cache: slices of remote places, indexes, popular segments",
        applied: At::Restart(|new, old| new.folder.clone_from(&old.folder)),
        apply: |storage, text| value::path(text).map(|v| storage.folder = v),
        show: |storage| Some(storage.folder.display().to_string()),
    },
    Setting {
        name: "time-shift-folder",
        form: Form::Path,
        default: "the folder `live` in `cache`",
        help: "Folder of the past of live streams",
        applied: At::Restart(|new, old| new.shift_folder.clone_from(&old.shift_folder)),
        apply: |storage, text| value::path(text).map(|v| storage.shift_folder = v),
        show: |storage| Some(storage.shift_folder.display().to_string()),
    },
    Setting {
        name: "time-shift-total",
        form: Form::Size,
        default: "0",
        help: "Limit of the disk space for the past of all live streams, checked each minute; 0 sets no limit",
        applied: At::Reload,
        apply: |storage, text| value::size(text).map(|v| storage.shift_total = (v > 0).then_some(v)),
        show: |storage| Some(show_size(storage.shift_total.unwrap_or(0))),
    },
    Setting {
        name: "statistics-file",
        form: Form::Path,
        default: "the file `viewing.json` in `cache`",
        help: "File of the viewers, viewer hours and rebuffers of the last thirty days; `off` keeps them in memory only",
        applied: At::Restart(|new, old| new.statistics_file.clone_from(&old.statistics_file)),
        apply: |storage, text| statistics_file(text).map(|v| storage.statistics_file = v),
        show: |storage| {
            let file = storage.statistics_file.as_ref().map(|file| file.display().to_string());
            Some(file.unwrap_or_else(|| "off".to_owned()))
        },
    },
    Setting {
        name: "memory",
        form: Form::Size,
        default: "a quarter of memory, at most 1GiB",
        help: "Limit of the memory for slices, segments, indexes and playlists together",
        applied: At::Reload,
        apply: |storage, text| memory(text).map(|v| storage.memory = v),
        show: |storage| Some(show_size(storage.memory)),
    },
    Setting {
        name: "cache-size",
        form: Form::Size,
        default: "10GiB, at most half of the free space",
        help: "Limit of the disk cache in the folder `cache`; 0 keeps nothing on the disk",
        applied: At::Reload,
        apply: |storage, text| value::size(text).map(|v| storage.cache_size = v),
        show: |storage| Some(show_size(storage.cache_size)),
    },
    Setting {
        name: "slice",
        form: Form::Size,
        default: "512KiB",
        help: "Size of a slice, which is the unit of caching. A change empties the disk cache",
        applied: At::Restart(|new, old| new.slice = old.slice),
        apply: |storage, text| slice(text).map(|v| storage.slice = v),
        show: |storage| Some(show_size(storage.slice.into())),
    },
    Setting {
        name: "policy",
        form: Form::Choice(PolicyName::NAMES),
        default: PolicyName::Stream.as_str(),
        help: "Eviction policy of the disk cache",
        applied: At::Reload,
        apply: |storage, text| policy(text).map(|v| storage.policy = v),
        show: |storage| Some(storage.policy.to_string()),
    },
    Setting {
        name: "prefetch",
        form: Form::Text,
        default: "active",
        help: Mode::HELP,
        applied: At::Reload,
        apply: |storage, text| prefetch(text).map(|v| storage.prefetch = v),
        show: |storage| Some(storage.prefetch.to_string()),
    },
];

fn memory(text: &str) -> Result<u64, BadValue> {
    match value::size(text)? {
        bytes if bytes < 8 << 20 => Err(BadValue::new("a size of at least 8MiB such as \"256MiB\"")),
        bytes => Ok(bytes),
    }
}

fn slice(text: &str) -> Result<u32, BadValue> {
    let size = value::size(text)?;
    match u32::try_from(size) {
        Ok(bytes) if (SLICE.0..=SLICE.1).contains(&size) && size % 4096 == 0 => Ok(bytes),
        _ => Err(BadValue::new("16KiB to 16MiB, in whole pages of 4KiB")),
    }
}

fn statistics_file(text: &str) -> Result<Option<PathBuf>, BadValue> {
    match text {
        "off" => Ok(None),
        text => value::path(text).map(Some),
    }
}

fn policy(text: &str) -> Result<PolicyName, BadValue> {
    text.parse().map_err(|_| Form::Choice(PolicyName::NAMES).into())
}

fn prefetch(text: &str) -> Result<Mode, BadValue> {
    text.parse().map_err(|_| BadValue::new(PREFETCH))
}

/// The XDG base directory specification: a relative path in the variable is to be ignored.
fn cache_folder(variable: &dyn Fn(&str) -> Option<String>) -> PathBuf {
    let folder = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    folder("XDG_CACHE_HOME")
        .or_else(|| folder("HOME").map(|home| home.join(".cache")))
        .unwrap_or_else(std::env::temp_dir)
        .join("millpond")
}
