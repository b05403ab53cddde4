//! The trait that every origin implements, and its types.

use std::fmt;
use std::fs::File;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use futures_util::stream::BoxStream;

use crate::error::OriginError;
use crate::freshness::Freshness;
use crate::origin::neighbours::NeighbourStats;
use crate::path::ObjectPath;

pub(crate) mod aws_profile;
pub(crate) mod cloud;
pub(crate) mod cloud_error;
pub(crate) mod disk;
mod exact;
pub(crate) mod http;
pub(crate) mod http_reply;
pub(crate) mod index_page;
pub(crate) mod memory;
pub(crate) mod neighbours;
pub(crate) mod resolve;
pub(crate) mod retry;
mod signing;
pub(crate) mod single;
pub(crate) mod timed;
pub(crate) mod transport;
pub(crate) mod visible;

#[cfg(test)]
mod conformance;
#[cfg(test)]
pub(crate) mod test_server;

/// A future in a box, for a trait that is used as an object.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The bytes of a reply, as they arrive. Dropping it ends the transfer.
pub type Body = BoxStream<'static, Result<Bytes, OriginError>>;

/// Which version of an object: two equal versions of one path have the same bytes.
///
/// A strong ETag where the origin has one (RFC 9110 8.8.1), else the time of last modification and the length, on
/// disk the time in nanoseconds, the inode and the length.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Version(Arc<str>);

impl Version {
    /// A version that an origin names itself.
    pub fn new(text: &str) -> Self {
        Self(Arc::from(text))
    }

    /// The best version that reply headers allow: the ETag where strong, else the time and length.
    pub fn of_reply(etag: Option<&str>, modified: Option<SystemTime>, len: u64) -> Self {
        if let Some(etag) = etag.filter(|etag| is_strong(etag)) {
            return Self::new(etag);
        }
        match modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok()) {
            Some(since) => Self(Arc::from(format!("m{:x}-{len:x}", since.as_secs()))),
            None => Self(Arc::from(format!("l{len:x}"))),
        }
    }

    /// The version as text: opaque, but stable over restarts.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The longest field of a reply that is kept with an object, in bytes: tens of thousands of objects are remembered.
const LONGEST_FIELD: usize = 1024;

/// A field that is kept with an object; one that is too long counts as none.
pub(crate) fn kept(field: Option<&str>) -> Option<String> {
    field.filter(|field| field.len() <= LONGEST_FIELD).map(str::to_owned)
}

/// The beginning of a text of an origin, for messages.
pub(crate) fn shown(text: &str) -> String {
    text.chars().take(200).collect()
}

/// Returns whether an ETag is strong (RFC 9110 8.8.3): only such a one tells versions apart byte by byte.
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

/// Metadata of an object, as its origin gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectMeta {
    /// Length in bytes.
    pub len: u64,
    /// Which version this is.
    pub version: Version,
    /// The ETag as the origin sent it, weak ones too.
    pub etag: Option<String>,
    /// When it was last modified.
    pub modified: Option<SystemTime>,
    /// The media type as the origin sent it.
    pub content_type: Option<String>,
    /// How a client is to present it (`Content-Disposition`, RFC 6266), as the origin sent it.
    pub content_disposition: Option<String>,
    /// Its language (`Content-Language`), as the origin sent it.
    pub content_language: Option<String>,
    /// The coding of its bytes (`Content-Encoding`), where the origin has stored them in one.
    pub content_encoding: Option<String>,
    /// How long all this may be trusted, as far as the origin says.
    pub freshness: Freshness,
}

/// The reply to a ranged read: metadata at once, bytes as they arrive.
pub struct Fetched {
    /// Metadata of the object.
    pub meta: ObjectMeta,
    /// The range that is sent: the one asked for, cut at the end of the object.
    pub range: Range<u64>,
    /// Exactly the bytes of `range`, or an error; it never just ends early.
    pub body: Body,
}

impl fmt::Debug for Fetched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fetched").field("meta", &self.meta).field("range", &self.range).finish_non_exhaustive()
    }
}

/// A file that is open, with what was seen of it then.
pub type OpenFile = (Arc<File>, ObjectMeta);

/// One entry of a folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// The name inside its folder.
    pub name: String,
    /// Whether it is a folder.
    pub folder: bool,
    /// Length in bytes; 0 for a folder, and where the listing doesn't say.
    pub len: u64,
    /// Last change of a file, where listing a folder tells it for nothing.
    pub modified: Option<SystemTime>,
}

/// The list of a folder, as its origin gives it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// Its entries by name.
    pub entries: Vec<Entry>,
    /// How long the list may be kept and by whom, as far as the origin says.
    pub freshness: Freshness,
}

impl From<Vec<Entry>> for Listing {
    fn from(entries: Vec<Entry>) -> Self {
        Self { entries, freshness: Freshness::default() }
    }
}

/// A source of objects: a folder, a web server, an object store, or memory.
///
/// All methods are cancel safe: dropping the future or the body ends the work.
pub trait Origin: Send + Sync + fmt::Debug {
    /// The origin in words for logs and errors: no credentials, no query.
    fn describe(&self) -> String;

    /// Metadata only.
    fn head<'a>(&'a self, path: &'a ObjectPath) -> BoxFuture<'a, Result<ObjectMeta, OriginError>>;

    /// One ranged read. What lies behind the end of the object is cut off; a range that starts behind the end is
    /// [`OriginError::OutOfRange`], one that starts at the end is empty.
    ///
    /// With `expected`, the object must still be that version: [`OriginError::Changed`] otherwise, before any byte.
    fn read<'a>(
        &'a self,
        path: &'a ObjectPath,
        range: Range<u64>,
        expected: Option<&'a ObjectMeta>,
    ) -> BoxFuture<'a, Result<Fetched, OriginError>>;

    /// The entries of a folder by name, hidden ones (`.name`) left out.
    fn list<'a>(&'a self, folder: &'a ObjectPath) -> BoxFuture<'a, Result<Listing, OriginError>>;

    /// The object as an open file, where it is one: its bytes can then go out by sendfile, and are not cached.
    fn open_file<'a>(&'a self, path: &'a ObjectPath) -> BoxFuture<'a, Result<Option<OpenFile>, OriginError>> {
        let _ = path;
        Box::pin(async { Ok(None) })
    }

    /// Returns whether asking costs no network: metadata is then trusted for a shorter time.
    fn is_local(&self) -> bool {
        false
    }

    /// Whether an object appears only when all of its bytes are there, as in buckets. Files of other origins may grow while
    /// they are written.
    fn stores_whole(&self) -> bool {
        false
    }

    /// Returns how many requests were made again because an earlier one failed.
    fn retries(&self) -> u64 {
        0
    }

    /// Returns what happened at its sibling caches, where it has some.
    fn neighbours(&self) -> Option<NeighbourStats> {
        None
    }
}

/// How long to wait, for origins on a network.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timeouts {
    pub(crate) connect: Duration,
    pub(crate) first_byte: Duration,
    pub(crate) stall: Duration,
}
