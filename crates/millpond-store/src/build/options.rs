//! Options of the origin of a location, its wrappers included.

use std::fmt;
use std::time::Duration;

use url::Url;

use crate::origin::RemoteOptions;
use crate::striping::StripingOptions;

/// Options of an origin. Those that do not apply to an origin are ignored.
#[derive(Clone, PartialEq, Eq)]
pub struct OriginOptions {
    /// Options of its server or bucket.
    pub remote: RemoteOptions,
    /// Base URLs of sibling caches, asked for a range before the origin.
    pub siblings: Vec<Url>,
    /// Time limit for the first byte of a sibling's reply.
    pub sibling_timeout: Duration,
    /// Stores of striped objects. Without one, maps are files like others.
    pub striping: StripingOptions,
    /// Whether files and folders whose names begin with a dot can be read. They are never listed.
    pub hidden_files: bool,
}

impl Default for OriginOptions {
    fn default() -> Self {
        Self {
            remote: RemoteOptions::default(),
            siblings: Vec::new(),
            sibling_timeout: Duration::from_millis(100),
            striping: StripingOptions::default(),
            hidden_files: false,
        }
    }
}

impl fmt::Debug for OriginOptions {
    /// Omits the siblings, whose URLs may contain credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OriginOptions").field("remote", &self.remote).finish_non_exhaustive()
    }
}
