//! Lifetimes of replies in caches and players.

use millpond_settings::{
    At, Host, Setting, Settings,
    value::{self, Form, show_duration},
};
use std::time::Duration;

/// Lifetimes of replies in caches and players, where the origin permits as much. A place may have its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetimes {
    /// Lifetime of playlists and manifests, and of everything made of media under a path that names no version.
    pub playlists: Duration,
    /// Lifetime of what is made of media under a path that names its version.
    pub segments: Duration,
    /// Lifetime of files passed through as they are.
    pub files: Duration,
}

impl Default for Lifetimes {
    fn default() -> Self {
        Self {
            playlists: Duration::from_secs(10),
            segments: Duration::from_secs(365 * 24 * 3600),
            files: Duration::from_secs(60),
        }
    }
}

impl Settings for Lifetimes {
    const LIST: &'static [Setting<Self>] = LIST;
    const OF_PLACES: bool = true;

    fn defaults(_: &Host<'_>) -> Self {
        Self::default()
    }
}

const LIST: &[Setting<Lifetimes>] = &[
    Setting {
        name: "playlist-lifetime",
        form: Form::Duration,
        default: "10s",
        help: "Time for which caches may keep playlists, manifests, and media whose paths name no version",
        applied: At::Reload,
        apply: |lifetimes, text| value::duration(text).map(|v| lifetimes.playlists = v),
        show: |lifetimes| Some(show_duration(lifetimes.playlists)),
    },
    Setting {
        name: "segment-lifetime",
        form: Form::Duration,
        default: "365d",
        help: "Time for which caches may keep segments and playlists whose paths name a version",
        applied: At::Reload,
        apply: |lifetimes, text| value::duration(text).map(|v| lifetimes.segments = v),
        show: |lifetimes| Some(show_duration(lifetimes.segments)),
    },
    Setting {
        name: "file-lifetime",
        form: Form::Duration,
        default: "60s",
        help: "Time for which caches may keep files that are served unchanged",
        applied: At::Reload,
        apply: |lifetimes, text| value::duration(text).map(|v| lifetimes.files = v),
        show: |lifetimes| Some(show_duration(lifetimes.files)),
    },
];
