//! The trait that every origin implements, and its types.

use std::fmt;
use std::fs::File;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures_util::stream::BoxStream;

use crate::error::OriginError;
use crate::freshness::Freshness;
use crate::layout::Striping;
use crate::path::ObjectPath;
use crate::tags::StatedTags;
use crate::version::Version;

pub use facts::{Lanes, NeighbourStats, OriginCounts, OriginFacts, StripeStoreStats};
pub use option_fault::OptionFault;
pub use options::{BucketOptions, RemoteOptions, Timeouts};

pub(crate) mod bare;
pub(crate) mod client_error;
pub(crate) mod cloud;
pub(crate) mod disk;
mod exact;
mod facts;
pub(crate) mod homes;
pub(crate) mod http;
mod links;
pub(crate) mod memory;
pub(crate) mod neighbours;
pub(crate) mod odd_keys;
mod option_fault;
mod options;
pub(crate) mod resolve;
pub(crate) mod retry;
pub(crate) mod single;
pub(crate) mod timed;
pub(crate) mod visible;

#[cfg(test)]
mod conformance;
#[cfg(test)]
mod floods;
#[cfg(test)]
mod listings;
#[cfg(test)]
pub(crate) mod test_server;

/// A boxed future, for object-safe traits.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The bytes of a reply, as they arrive. Dropping it ends the transfer.
pub type OriginBody = BoxStream<'static, Result<Bytes, OriginError>>;

/// Longest header value that is kept with an object, in bytes: tens of thousands of objects are remembered.
const LONGEST_FIELD: usize = 1024;

/// Returns a header value to keep with an object. One that is too long counts as missing.
pub(crate) fn kept(field: Option<&str>) -> Option<String> {
    field.filter(|field| field.len() <= LONGEST_FIELD).map(str::to_owned)
}

/// Returns the beginning of an origin's text, for messages.
pub(crate) fn shown(text: &str) -> String {
    text.chars().take(200).collect()
}

/// Metadata of an object, as its origin gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectMeta {
    /// Length in bytes.
    pub len: u64,
    /// The version.
    pub version: Version,
    /// The ETag as the origin sent it, weak ones too.
    pub etag: Option<String>,
    /// Time of the last modification.
    pub modified: Option<SystemTime>,
    /// The media type as the origin sent it.
    pub content_type: Option<String>,
    /// The presentation for clients (`Content-Disposition`, RFC 6266), as the origin sent it.
    pub content_disposition: Option<String>,
    /// Its language (`Content-Language`), as the origin sent it.
    pub content_language: Option<String>,
    /// The coding of its bytes (`Content-Encoding`), if the origin stores them in one.
    pub content_encoding: Option<String>,
    /// Freshness of the metadata, as far as the origin states it.
    pub freshness: Freshness,
    /// Its tags, as far as the origin states them.
    pub tags: StatedTags,
}

impl ObjectMeta {
    /// Returns the metadata of an object that never changes, of which only its length and its version are known: an ETag.
    pub(crate) fn unchanging(len: u64, version: &str) -> Self {
        Self {
            len,
            version: Version::new(version),
            etag: Some(version.to_owned()),
            modified: None,
            content_type: None,
            content_disposition: None,
            content_language: None,
            content_encoding: None,
            freshness: Freshness { fresh: Some(UNCHANGING), ..Freshness::default() },
            tags: StatedTags::default(),
        }
    }
}

/// Time for which an object that never changes is trusted.
const UNCHANGING: Duration = Duration::from_secs(24 * 3600);

/// The reply to a ranged read. The metadata is there at once; the bytes follow.
pub struct Fetched {
    /// Metadata of the object.
    pub meta: ObjectMeta,
    /// The range that is sent: the requested one, cut at the end of the object.
    pub range: Range<u64>,
    /// Exactly the bytes of `range`, or an error. It never ends early without one.
    pub body: OriginBody,
    /// Sender of the body.
    pub sender: SentBy,
}

/// Sender of the bytes of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SentBy {
    /// The origin: the time that the bytes take measures the link to it.
    Origin,
    /// A sibling cache, or several senders.
    Sibling,
}

impl fmt::Debug for Fetched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fetched").field("meta", &self.meta).field("range", &self.range).finish_non_exhaustive()
    }
}

/// An open file, with its metadata at that moment.
pub type OpenFile = (Arc<File>, ObjectMeta);

/// One entry of a folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// The name inside its folder.
    pub name: String,
    /// Whether the entry is a folder.
    pub folder: bool,
    /// Length in bytes; 0 for a folder, and where the listing does not contain it.
    pub len: u64,
    /// Last modification of a file, if the listing contains it without further requests.
    pub modified: Option<SystemTime>,
}

/// The list of a folder, as its origin gives it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// Entries by name.
    pub entries: Vec<Entry>,
    /// Freshness and permitted caches of the list, as far as the origin states them.
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
    /// Returns a description for logs and errors, without credentials and query.
    fn describe(&self) -> String;

    /// Returns the metadata only.
    fn head<'a>(&'a self, path: &'a ObjectPath) -> BoxFuture<'a, Result<ObjectMeta, OriginError>>;

    /// Reads a range. It is cut at the end of the object. A range that starts behind the end is
    /// [`OriginError::OutOfRange`]; one that starts at the end is empty.
    ///
    /// With `expected`, fails with [`OriginError::Changed`] before the first byte where the object has another version.
    fn read<'a>(
        &'a self,
        path: &'a ObjectPath,
        range: Range<u64>,
        expected: Option<&'a ObjectMeta>,
    ) -> BoxFuture<'a, Result<Fetched, OriginError>>;

    /// Returns the entries of a folder by name, without hidden ones (`.name`).
    fn list<'a>(&'a self, folder: &'a ObjectPath) -> BoxFuture<'a, Result<Listing, OriginError>>;

    /// Returns the object as an open file where it is one. Its bytes can be sent by sendfile, and are not cached.
    fn open_file<'a>(&'a self, path: &'a ObjectPath) -> BoxFuture<'a, Result<Option<OpenFile>, OriginError>> {
        let _ = path;
        Box::pin(async { Ok(None) })
    }

    /// Returns its facts. A wrapper hands on those of the origin inside, changed where it changes them.
    fn facts(&self) -> OriginFacts {
        OriginFacts::default()
    }

    /// Returns its counters. A wrapper hands on those of the origin inside, with its own.
    fn counts(&self) -> OriginCounts {
        OriginCounts::default()
    }

    /// Returns whether its server answers at all. Asked when a reply is late: a server that works may be waiting itself.
    fn is_alive(&self) -> BoxFuture<'_, bool> {
        Box::pin(async { true })
    }

    /// Returns how an object lies on several stores; `None` where one link carries it.
    fn striping(&self, path: &ObjectPath) -> Option<Striping> {
        let _ = path;
        None
    }
}
