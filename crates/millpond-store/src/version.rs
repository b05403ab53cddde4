//! Versions of objects.

use std::fmt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// A version of an object. Two equal versions of one path have the same bytes.
///
/// It is a strong ETag where the origin has one (RFC 9110 8.8.1), else the time of last modification and the length. On
/// disk it consists of the time in nanoseconds, the inode and the length.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Version(Arc<str>);

impl Version {
    /// Creates a version from the origin's own name for it.
    pub fn new(text: &str) -> Self {
        Self(Arc::from(text))
    }

    /// Returns the most reliable version of a reply: a strong ETag, else time and length.
    pub fn of_reply(etag: Option<&str>, modified: Option<SystemTime>, len: u64) -> Self {
        if let Some(etag) = etag.filter(|etag| is_strong(etag)) {
            return Self::new(etag);
        }
        match modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok()) {
            Some(since) => Self(Arc::from(format!("m{:x}-{len:x}", since.as_secs()))),
            None => Self(Arc::from(format!("l{len:x}"))),
        }
    }

    /// Returns the version as text: opaque, but stable over restarts.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Returns whether an ETag is strong (RFC 9110 8.8.3). Only strong ones tell versions apart byte by byte.
pub(crate) fn is_strong(etag: &str) -> bool {
    !etag.is_empty() && !etag.starts_with("W/")
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Version({})", self.0)
    }
}
