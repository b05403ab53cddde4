//! Buckets: S3 and compatible services, Google Cloud Storage, Azure Blob Storage.

pub(crate) mod aws_profile;
pub(crate) mod bucket_address;
mod client;
mod connector;
pub(crate) mod error;
pub(crate) mod signing;
mod writing;

use std::fmt;
use std::ops::Range;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::SystemTime;

use futures_util::{FutureExt, StreamExt, stream};
use http::HeaderValue;
use http::header::CACHE_CONTROL;
use object_store::list::{PaginatedListOptions, PaginatedListStore};
use object_store::multipart::MultipartStore;
use object_store::path::Path;
use object_store::{Attribute, Attributes, GetOptions, GetRange, GetResult, ObjectStore};
use tokio::sync::Semaphore;

use crate::error::{At, OriginError};
use crate::freshness::Freshness;
use crate::location::{BucketPrefix, Cloud};
use crate::origin::client_error::{broken, chain};
use crate::origin::cloud::client::{BucketClient, az, gs, s3};
use crate::origin::cloud::error::Request;
use crate::origin::exact::exact;
use crate::origin::timed::{first_byte, stalling};
use crate::origin::{
    BoxFuture, Entry, Fetched, Listing, ObjectMeta, Origin, OriginBody, OriginFacts, RemoteOptions, SentBy, Timeouts,
    kept,
};
use crate::path::ObjectPath;
use crate::tags::StatedTags;
use crate::version::{Version, is_strong};

/// Factor on the first-byte time limit for a listing, which arrives in whole pages.
const LISTING: u32 = 6;

/// Highest number of entries of one folder; later ones are left out.
const MOST_ENTRIES: usize = 65_536;

/// Bytes of the names of one folder, after which the rest is left out.
const MOST_NAMES: usize = 8 << 20;

/// Most pages of one folder. Services may send pages of few keys.
const MOST_PAGES: usize = 1024;

/// Keys of a page that are asked for: the most that S3 and Google's service send.
const KEYS_A_PAGE: usize = 1000;

/// Listings of a bucket that are read at the same time.
const LISTINGS: usize = 2;

/// Objects of a bucket, below a prefix of their keys.
///
/// Credentials come from the environment variables of each cloud's tools, for S3 also from the shared profile files,
/// and from the machine's role where a setting or the environment announces one. Without credentials requests are
/// unsigned.
#[derive(Clone)]
pub struct CloudOrigin {
    store: Arc<dyn ObjectStore>,
    pages: Arc<dyn PaginatedListStore>,
    parts: Arc<dyn MultipartStore>,
    /// Advice on settings, where requests are unsigned for want of keys.
    hint: Option<&'static str>,
    name: Arc<str>,
    bucket: Arc<str>,
    prefix: Arc<str>,
    timeouts: Timeouts,
    listings: Arc<Semaphore>,
}

impl CloudOrigin {
    pub(crate) fn new(bucket: &BucketPrefix, options: &RemoteOptions) -> Result<Self, String> {
        let env = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        Self::with_env(bucket, options, env)
    }

    /// Creates it with the environment variables that `env` returns, as far as Millpond reads them.
    pub(super) fn with_env(
        location: &BucketPrefix,
        options: &RemoteOptions,
        env: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, String> {
        let BucketPrefix { cloud, bucket, prefix } = location;
        let timeouts = options.timeouts;
        let BucketClient { store, pages, parts, hint } = match cloud {
            Cloud::S3 => s3(bucket, &options.bucket, timeouts, env)?,
            Cloud::Gs => gs(bucket, &options.bucket, timeouts, env)?,
            Cloud::Az => az(bucket, &options.bucket, timeouts, env)?,
        };
        Ok(Self {
            store,
            pages,
            parts,
            hint,
            name: Arc::from(location.to_string()),
            bucket: Arc::from(bucket.as_str()),
            prefix: Arc::from(prefix.as_str()),
            timeouts,
            listings: Arc::new(Semaphore::new(LISTINGS)),
        })
    }

    fn at(&self, path: &ObjectPath) -> At {
        At { origin: self.name.clone(), path: Arc::from(path.as_str()) }
    }

    /// Returns the key of an object. It is not encoded: the client library would write `%23` for `#` in the key.
    fn key(&self, path: &ObjectPath) -> Result<Path, OriginError> {
        let whole = match (self.prefix.is_empty(), path.is_root()) {
            (true, _) => path.as_str().to_owned(),
            (false, true) => self.prefix.to_string(),
            (false, false) => format!("{}/{path}", self.prefix),
        };
        Path::parse(whole).map_err(|_| OriginError::NotFound { at: self.at(path) })
    }

    async fn get(
        &self,
        path: &ObjectPath,
        options: GetOptions,
        start: u64,
        expected: Option<&ObjectMeta>,
    ) -> Result<GetResult, OriginError> {
        let at = self.at(path);
        let key = self.key(path)?;
        let Timeouts { connect, first_byte: reply, .. } = self.timeouts;
        let request = Request { at: &at, bucket: &self.bucket, start, expected, connect };
        let result = first_byte(shielded(self.store.get_opts(&key, options)), &at, connect, reply).await?;
        result.map_err(|error| self.explained(request.error(error)))
    }

    /// Adds advice on settings to the refusal of a request that was unsigned for want of keys.
    fn explained(&self, error: OriginError) -> OriginError {
        let Some(hint) = self.hint else { return error };
        let more = |detail: String| format!("{detail} (unsigned, for there are no credentials: {hint})");
        match error {
            OriginError::Forbidden { at, detail } => OriginError::Forbidden { at, detail: more(detail) },
            OriginError::Unauthorized { at, detail } => OriginError::Unauthorized { at, detail: more(detail) },
            // A refused listing.
            OriginError::Status { at, code: code @ (401 | 403), detail } => {
                OriginError::Status { at, code, detail: more(detail) }
            }
            error => error,
        }
    }

    /// Returns names and sizes below a key, from all pages, cut off after [`MOST_ENTRIES`] or [`MOST_NAMES`].
    async fn pages(&self, key: &Path) -> object_store::Result<Vec<Entry>> {
        let prefix = (!key.as_ref().is_empty()).then(|| format!("{key}/"));
        let (mut found, mut bytes) = (Vec::new(), 0);
        let mut page_token = None;
        for _ in 0..MOST_PAGES {
            let max_keys = Some(KEYS_A_PAGE);
            let options =
                PaginatedListOptions { delimiter: Some("/".into()), page_token, max_keys, ..Default::default() };
            let page = self.pages.list_paginated(prefix.as_deref(), options).await?;
            let folders = page.result.common_prefixes.iter().map(|path| (path, true, 0));
            let objects = page.result.objects.iter().map(|meta| (&meta.location, false, meta.size));
            for entry in folders.chain(objects).filter_map(|found| entry(key, found)) {
                bytes += entry.name.len();
                found.push(entry);
            }
            if page.page_token.is_none() {
                return Ok(found);
            }
            if found.len() >= MOST_ENTRIES || bytes >= MOST_NAMES {
                break;
            }
            page_token = page.page_token;
        }
        tracing::warn!(bucket = %self.name, folder = %key, read = found.len(), "the rest of a folder is left out");
        Ok(found)
    }

    async fn head_now(&self, path: &ObjectPath, expected: Option<&ObjectMeta>) -> Result<ObjectMeta, OriginError> {
        let options = GetOptions { head: true, ..GetOptions::default() };
        let result = self.get(path, options, 0, expected).await?;
        let meta = meta_of(&result.meta, &result.attributes);
        self.check(path, &meta, expected)?;
        Ok(meta)
    }

    async fn read_now(
        &self,
        path: &ObjectPath,
        range: Range<u64>,
        expected: Option<&ObjectMeta>,
    ) -> Result<Fetched, OriginError> {
        if range.is_empty() {
            return self.nothing(path, range.start, expected).await;
        }
        let etag = expected.and_then(|meta| meta.etag.clone());
        let options = GetOptions {
            range: Some(GetRange::Bounded(range.clone())),
            if_match: etag.filter(|etag| is_strong(etag)),
            ..GetOptions::default()
        };
        let result = match self.get(path, options, range.start, expected).await {
            // At the end of an object, as in an empty one, there is no byte to send.
            Err(OriginError::OutOfRange { .. }) => {
                return self.nothing(path, range.start, expected).await;
            }
            result => result?,
        };
        let meta = meta_of(&result.meta, &result.attributes);
        self.check(path, &meta, expected)?;
        let at = self.at(path);
        let wanted = range.start..range.end.min(meta.len);
        if result.range != wanted {
            return Err(OriginError::BadReply {
                at,
                expected: format!("bytes {wanted:?}"),
                found: format!("bytes {:?}", result.range),
            });
        }
        let count = wanted.end - wanted.start;
        let body = stalling(pieces(result, at.clone()), at.clone(), self.timeouts.stall);
        Ok(Fetched { meta, range: wanted, body: exact(body, at, 0, count), sender: SentBy::Origin })
    }

    /// Returns no bytes at the end of the object, and an error elsewhere.
    async fn nothing(
        &self,
        path: &ObjectPath,
        start: u64,
        expected: Option<&ObjectMeta>,
    ) -> Result<Fetched, OriginError> {
        let meta = self.head_now(path, expected).await?;
        if start > meta.len {
            return Err(OriginError::OutOfRange { at: self.at(path), start, len: Some(meta.len) });
        }
        Ok(Fetched { meta, range: start..start, body: stream::empty().boxed(), sender: SentBy::Origin })
    }

    fn check(&self, path: &ObjectPath, meta: &ObjectMeta, expected: Option<&ObjectMeta>) -> Result<(), OriginError> {
        match expected {
            Some(expected) if expected.version != meta.version || expected.len != meta.len => {
                Err(OriginError::Changed {
                    at: self.at(path),
                    expected: expected.version.clone(),
                    found: Some(meta.version.clone()),
                })
            }
            _ => Ok(()),
        }
    }

    async fn list_now(&self, folder: &ObjectPath) -> Result<Vec<Entry>, OriginError> {
        let at = self.at(folder);
        let key = self.key(folder)?;
        let request =
            Request { at: &at, bucket: &self.bucket, start: 0, expected: None, connect: self.timeouts.connect };
        let Timeouts { connect, first_byte: reply, .. } = self.timeouts;
        let limit = reply.saturating_mul(LISTING);
        let listed = async {
            // Each listing has a page in memory.
            let _turn = self.listings.acquire().await;
            shielded(self.pages(&key)).await
        };
        let result = first_byte(listed, &at, connect, limit).await?;
        let mut entries = result.map_err(|error| self.explained(request.error(error)))?;
        if entries.is_empty() && !folder.is_root() {
            return Err(OriginError::NotFound { at });
        }
        entries.sort();
        entries.dedup_by(|later, earlier| later.name == earlier.name && later.folder == earlier.folder);
        Ok(entries)
    }
}

/// Returns the entry of a name below a key. Some tools store an empty object to represent a folder. That object is the folder
/// itself.
fn entry(key: &Path, (path, folder, len): (&Path, bool, u64)) -> Option<Entry> {
    let name = path.as_ref().strip_prefix(key.as_ref())?.trim_matches('/');
    let shown = !name.is_empty() && !name.starts_with('.');
    shown.then(|| Entry { name: name.to_owned(), folder, len, modified: None })
}

/// Turns a panic of the client library into an error: it panics where a key or token that a service sent is no header
/// value, or where an address of the environment is no URL.
async fn shielded<T>(work: impl Future<Output = object_store::Result<T>>) -> object_store::Result<T> {
    let refused =
        "the request could not be written: check the variables of the cloud's tools (keys, tokens, addresses)";
    let failed = |_| Err(object_store::Error::Generic { store: "bucket", source: refused.into() });
    AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(failed)
}

fn pieces(result: GetResult, at: At) -> OriginBody {
    result.into_stream().map(move |item| item.map_err(|error| broken(&at, chain(&error)))).boxed()
}

fn meta_of(meta: &object_store::ObjectMeta, attributes: &Attributes) -> ObjectMeta {
    let modified = SystemTime::from(meta.last_modified);
    let text = |name: &Attribute| kept(attributes.get(name).map(|value| value.as_ref()));
    let etag = kept(meta.e_tag.as_deref());
    let said = attributes.get(&Attribute::CacheControl).and_then(|said| HeaderValue::from_str(said.as_ref()).ok());
    let own = |name: &'static str| attributes.get(&Attribute::Metadata(name.into())).map(AsRef::as_ref);
    let headers = said.into_iter().map(|said| (CACHE_CONTROL, said)).collect();
    ObjectMeta {
        len: meta.size,
        version: Version::of_reply(etag.as_deref(), Some(modified), meta.size),
        etag,
        modified: Some(modified),
        content_type: text(&Attribute::ContentType),
        content_disposition: text(&Attribute::ContentDisposition),
        content_language: text(&Attribute::ContentLanguage),
        // Values that tools store without meaning a coding.
        content_encoding: text(&Attribute::ContentEncoding)
            .filter(|coding| !matches!(coding.as_str(), "" | "identity" | "aws-chunked")),
        freshness: Freshness::of(&headers),
        tags: StatedTags::of_fields(own("surrogate-key"), own("cache-tag")),
    }
}

impl fmt::Debug for CloudOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CloudOrigin").field(&self.name).finish()
    }
}

impl Origin for CloudOrigin {
    fn describe(&self) -> String {
        self.name.to_string()
    }

    fn head<'a>(&'a self, path: &'a ObjectPath) -> BoxFuture<'a, Result<ObjectMeta, OriginError>> {
        Box::pin(self.head_now(path, None))
    }

    fn read<'a>(
        &'a self,
        path: &'a ObjectPath,
        range: Range<u64>,
        expected: Option<&'a ObjectMeta>,
    ) -> BoxFuture<'a, Result<Fetched, OriginError>> {
        Box::pin(self.read_now(path, range, expected))
    }

    fn list<'a>(&'a self, folder: &'a ObjectPath) -> BoxFuture<'a, Result<Listing, OriginError>> {
        Box::pin(async move { self.list_now(folder).await.map(Listing::from) })
    }

    fn facts(&self) -> OriginFacts {
        OriginFacts { stores_whole: true, ..OriginFacts::default() }
    }
}
