//! For how long caches and players may keep replies.

use std::time::Duration;

use super::options::Options;

/// Settings that a place may have a value of its own for.
pub(super) const PER_PLACE: [&str; 3] = ["playlist-lifetime", "segment-lifetime", "file-lifetime"];

/// Lifetimes of replies in caches and players, where the origin permits as much.
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

impl Lifetimes {
    /// What `options` say, and these lifetimes where they say nothing.
    pub(super) fn with(self, options: &Options) -> Self {
        Self {
            playlists: options.playlist_lifetime.unwrap_or(self.playlists),
            segments: options.segment_lifetime.unwrap_or(self.segments),
            files: options.file_lifetime.unwrap_or(self.files),
        }
    }
}
