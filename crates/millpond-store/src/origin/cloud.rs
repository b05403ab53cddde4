//! Buckets: S3 and compatible services, Google Cloud Storage, Azure Blob Storage.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::SystemTime;

use futures_util::{StreamExt, stream};
use http::HeaderValue;
use http::header::CACHE_CONTROL;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::list::{PaginatedListOptions, PaginatedListStore};
use object_store::path::Path;
use object_store::{Attribute, Attributes, ClientOptions, GetOptions, GetRange, GetResult, ObjectStore, RetryConfig};

use super::aws_profile::Profile;
use super::cloud_error::Request;
use super::exact::exact;
use super::signing;
use super::timed::{first_byte, stalling};
use super::transport::{broken, chain};
use super::{Body, BoxFuture, Entry, Fetched, Listing, ObjectMeta, Origin, Timeouts, Version, is_strong, kept};
use crate::error::{At, OriginError};
use crate::freshness::Freshness;
use crate::path::ObjectPath;
use crate::place::OriginOptions;

/// Factor on the first-byte time limit for a listing, which arrives in whole pages.
const LISTING: u32 = 6;

/// Highest number of entries of one folder; later ones are left out.
const MOST_ENTRIES: usize = 65_536;

/// The protocol of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CloudKind {
    /// Amazon S3 and compatible services.
    S3,
    /// Google Cloud Storage.
    Gs,
    /// Azure Blob Storage.
    Az,
}

/// Objects of a bucket, below a prefix of their keys.
///
/// Credentials come from the environment variables of each cloud's tools, for S3 also from the shared profile files,
/// and from the machine's role where a setting or the environment announces one. Without credentials requests are
/// unsigned.
#[derive(Clone)]
pub struct CloudOrigin {
    store: Arc<dyn ObjectStore>,
    pages: Arc<dyn PaginatedListStore>,
    /// Advice on settings, where requests are unsigned for want of keys.
    hint: Option<&'static str>,
    name: Arc<str>,
    bucket: Arc<str>,
    prefix: Arc<str>,
    timeouts: Timeouts,
}

impl CloudOrigin {
    pub(crate) fn new(
        kind: CloudKind,
        bucket: &str,
        prefix: &str,
        options: &OriginOptions,
        timeouts: Timeouts,
    ) -> Result<Self, String> {
        let env = |name: &str| std::env::var(name).ok();
        Self::with_env(kind, bucket, prefix, options, timeouts, env)
    }

    /// Creates it with the environment variables that `env` returns, as far as Millpond reads them.
    pub(super) fn with_env(
        kind: CloudKind,
        bucket: &str,
        prefix: &str,
        options: &OriginOptions,
        timeouts: Timeouts,
        env: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, String> {
        let (Client { store, pages, hint }, scheme) = match kind {
            CloudKind::S3 => (s3(bucket, options, timeouts, env)?, "s3"),
            CloudKind::Gs => (gs(bucket, options, timeouts, env)?, "gs"),
            CloudKind::Az => (az(bucket, options, timeouts, env)?, "az"),
        };
        let slash = if prefix.is_empty() { "" } else { "/" };
        Ok(Self {
            store,
            pages,
            hint,
            name: Arc::from(format!("{scheme}://{bucket}{slash}{prefix}")),
            bucket: Arc::from(bucket),
            prefix: Arc::from(prefix),
            timeouts,
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
        let result = first_byte(self.store.get_opts(&key, options), &at, connect, reply).await?;
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

    /// Returns names and sizes below a key, from all pages, cut off after [`MOST_ENTRIES`].
    async fn pages(&self, key: &Path) -> object_store::Result<Vec<(Path, bool, u64)>> {
        let prefix = (!key.as_ref().is_empty()).then(|| format!("{key}/"));
        let mut found = Vec::new();
        let mut page_token = None;
        loop {
            let options = PaginatedListOptions { delimiter: Some("/".into()), page_token, ..Default::default() };
            let page = self.pages.list_paginated(prefix.as_deref(), options).await?;
            found.extend(page.result.common_prefixes.into_iter().map(|path| (path, true, 0)));
            found.extend(page.result.objects.into_iter().map(|meta| (meta.location, false, meta.size)));
            if page.page_token.is_none() {
                return Ok(found);
            }
            if found.len() >= MOST_ENTRIES {
                tracing::warn!(bucket = %self.name, folder = %key, read = found.len(), "the rest of a folder is left out");
                return Ok(found);
            }
            page_token = page.page_token;
        }
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
        Ok(Fetched { meta, range: wanted, body: exact(body, at, 0, count) })
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
        Ok(Fetched { meta, range: start..start, body: stream::empty().boxed() })
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
        let result = first_byte(self.pages(&key), &at, connect, reply.saturating_mul(LISTING)).await?;
        let found = result.map_err(|error| self.explained(request.error(error)))?;
        let mut entries: Vec<_> = found
            .into_iter()
            .filter_map(|(path, folder, len)| {
                // Some tools store an empty object to represent a folder. That object is the folder itself.
                let name = path.as_ref().strip_prefix(key.as_ref())?;
                let name = name.trim_matches('/').to_owned();
                let shown = !name.is_empty() && !name.starts_with('.');
                shown.then_some(Entry { name, folder, len, modified: None })
            })
            .collect();
        if entries.is_empty() && !folder.is_root() {
            return Err(OriginError::NotFound { at });
        }
        entries.sort();
        entries.dedup_by(|later, earlier| later.name == earlier.name && later.folder == earlier.folder);
        Ok(entries)
    }
}

fn pieces(result: GetResult, at: At) -> Body {
    result.into_stream().map(move |item| item.map_err(|error| broken(&at, chain(&error)))).boxed()
}

fn meta_of(meta: &object_store::ObjectMeta, attributes: &Attributes) -> ObjectMeta {
    let modified = SystemTime::from(meta.last_modified);
    let text = |name: &Attribute| kept(attributes.get(name).map(|value| value.as_ref()));
    let etag = kept(meta.e_tag.as_deref());
    let said = attributes.get(&Attribute::CacheControl).and_then(|said| HeaderValue::from_str(said.as_ref()).ok());
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
    }
}

/// The client library does not retry: the wrapper around every origin does.
fn no_retries() -> RetryConfig {
    RetryConfig { max_retries: 0, ..RetryConfig::default() }
}

/// The library's time limits apply to whole requests, bodies included, and would cut off long reads. Ours apply to
/// pauses.
fn client(timeouts: Timeouts, endpoint: Option<&str>) -> ClientOptions {
    let plain = endpoint.is_some_and(|endpoint| endpoint.starts_with("http://"));
    ClientOptions::new()
        .with_allow_http(plain)
        // A machine without root certificates can still use plain HTTP.
        .with_no_system_certificates(plain)
        .with_timeout_disabled()
        .with_read_timeout_disabled()
        .with_connect_timeout(timeouts.connect)
        .with_pool_max_idle_per_host(64)
}

/// The client library's objects of an origin.
struct Client {
    store: Arc<dyn ObjectStore>,
    pages: Arc<dyn PaginatedListStore>,
    hint: Option<&'static str>,
}

impl Client {
    fn new(store: impl ObjectStore + PaginatedListStore, hint: Option<&'static str>) -> Self {
        let store = Arc::new(store);
        Self { pages: store.clone(), store, hint }
    }
}

fn s3(
    bucket: &str,
    options: &OriginOptions,
    timeouts: Timeouts,
    env: impl Fn(&str) -> Option<String>,
) -> Result<Client, String> {
    let mut builder = AmazonS3Builder::from_env().with_bucket_name(bucket);
    // Keys of the environment take precedence over the profile. The machine's role comes last.
    let keys_elsewhere =
        env("AWS_ACCESS_KEY_ID").is_some() || env("AWS_WEB_IDENTITY_TOKEN_FILE").is_some() || options.s3_anonymous;
    let profile = if keys_elsewhere { Profile::default() } else { Profile::load(&env)? };
    if let (Some(key), Some(secret)) = (profile.access_key, profile.secret_key) {
        builder = builder.with_access_key_id(key).with_secret_access_key(secret);
        if let Some(token) = profile.token {
            builder = builder.with_token(token);
        }
    }
    let region = options
        .s3_region
        .clone()
        .or_else(|| env("AWS_REGION"))
        .or_else(|| env("AWS_DEFAULT_REGION"))
        .or(profile.region);
    if let Some(region) = region {
        builder = builder.with_region(region);
    }
    let endpoint = options
        .s3_endpoint
        .clone()
        .or_else(|| env("AWS_ENDPOINT_URL_S3"))
        .or_else(|| env("AWS_ENDPOINT_URL"))
        .or_else(|| env("AWS_ENDPOINT"))
        .or(profile.endpoint);
    let style = Style::choose(bucket, endpoint.as_deref(), options.s3_path_style);
    builder = builder.with_virtual_hosted_style_request(style == Style::Host);
    if let Some(endpoint) = &endpoint {
        let url = style.endpoint(bucket, endpoint)?;
        // The more specific one of the two settings, so that the environment does not override it.
        builder = builder.with_config(AmazonS3ConfigKey::S3Endpoint, url);
    }
    if let Some(machine) = env("AWS_EC2_METADATA_SERVICE_ENDPOINT") {
        builder = builder.with_metadata_endpoint(machine);
    }
    let is_public = options.s3_anonymous || is_on(builder.get_config_value(&AmazonS3ConfigKey::SkipSignature));
    let is_signed = !is_public && signing::is_signed_s3(&builder, options, &env);
    builder
        .with_skip_signature(!is_signed)
        .with_retry(no_retries())
        .with_client_options(client(timeouts, endpoint.as_deref()))
        .build()
        .map(|store| Client::new(store, (!is_public && !is_signed).then_some(signing::S3_HINT)))
        .map_err(|error| error.to_string())
}

/// Returns whether the environment turns a switch of the client library on.
fn is_on(value: Option<String>) -> bool {
    value.is_some_and(|value| value == "true")
}

/// Position of the bucket's name in a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    Path,
    Host,
}

impl Style {
    /// Chooses the style. A private service rarely has a host name for each bucket. AWS does, but its certificates do
    /// not cover names with dots.
    fn choose(bucket: &str, endpoint: Option<&str>, path_style: Option<bool>) -> Self {
        let path = path_style.unwrap_or(endpoint.is_some() || bucket.contains('.'));
        if path { Self::Path } else { Self::Host }
    }

    /// Returns the endpoint for the client library, with the bucket in the host name where the style demands it.
    fn endpoint(self, bucket: &str, endpoint: &str) -> Result<String, String> {
        let endpoint = endpoint.trim_end_matches('/');
        let url = url::Url::parse(endpoint).map_err(|error| format!("S3 endpoint: {error}"))?;
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
            return Err("S3 endpoint: expected an http or https URL".into());
        }
        Ok(match (self, endpoint.split_once("://")) {
            (Self::Host, Some((scheme, rest))) => format!("{scheme}://{bucket}.{rest}"),
            _ => endpoint.to_owned(),
        })
    }
}

fn gs(
    bucket: &str,
    options: &OriginOptions,
    timeouts: Timeouts,
    env: impl Fn(&str) -> Option<String>,
) -> Result<Client, String> {
    let endpoint = options.gs_endpoint.as_deref();
    let mut builder = GoogleCloudStorageBuilder::from_env()
        .with_bucket_name(bucket)
        .with_retry(no_retries())
        .with_client_options(client(timeouts, endpoint));
    if let Some(endpoint) = endpoint {
        builder = builder.with_base_url(endpoint.trim_end_matches('/'));
    }
    let is_public = options.gs_anonymous || is_on(builder.get_config_value(&GoogleConfigKey::SkipSignature));
    let is_signed = !is_public && signing::is_signed_gs(&builder, options, env);
    builder
        .with_skip_signature(!is_signed)
        .build()
        .map(|store| Client::new(store, (!is_public && !is_signed).then_some(signing::GS_HINT)))
        .map_err(|error| error.to_string())
}

fn az(
    container: &str,
    options: &OriginOptions,
    timeouts: Timeouts,
    env: impl Fn(&str) -> Option<String>,
) -> Result<Client, String> {
    let endpoint = options.az_endpoint.as_deref();
    let mut builder = MicrosoftAzureBuilder::from_env()
        .with_container_name(container)
        .with_retry(no_retries())
        .with_client_options(client(timeouts, endpoint));
    if let Some(account) = &options.az_account {
        builder = builder.with_account(account);
    }
    if let Some(endpoint) = endpoint {
        builder = builder.with_endpoint(endpoint.trim_end_matches('/').to_owned());
    }
    let is_public = options.az_anonymous || is_on(builder.get_config_value(&AzureConfigKey::SkipSignature));
    let is_signed = !is_public && signing::is_signed_az(&builder, options, env);
    builder
        .with_skip_signature(!is_signed)
        .build()
        .map(|store| Client::new(store, (!is_public && !is_signed).then_some(signing::AZ_HINT)))
        .map_err(|error| error.to_string())
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

    fn stores_whole(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bucket_goes_where_the_service_wants_it() {
        let style = Style::choose;
        assert_eq!(style("b", None, None), Style::Host);
        assert_eq!(style("b.c", None, None), Style::Path);
        assert_eq!(style("b", Some("http://h"), None), Style::Path);
        assert_eq!(style("b", Some("http://h"), Some(false)), Style::Host);
        let host = Style::Host.endpoint("b", "https://s3.example:9000/");
        assert_eq!(host.as_deref(), Ok("https://b.s3.example:9000"));
        let path = Style::Path.endpoint("b", "https://s3.example/");
        assert_eq!(path.as_deref(), Ok("https://s3.example"));
        assert!(Style::Path.endpoint("b", "s3.example").is_err());
        assert!(Style::Path.endpoint("b", "ftp://s3.example").is_err());
    }
}
