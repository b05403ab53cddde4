//! The clients of buckets: addresses, credentials and time limits.

use std::sync::Arc;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::list::PaginatedListStore;
use object_store::{ClientOptions, ObjectStore, RetryConfig};

use super::aws_profile::Profile;
use super::{Timeouts, signing};
use crate::place::OriginOptions;

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
pub(super) struct BucketClient {
    pub(super) store: Arc<dyn ObjectStore>,
    pub(super) pages: Arc<dyn PaginatedListStore>,
    pub(super) hint: Option<&'static str>,
}

impl BucketClient {
    fn new(store: impl ObjectStore + PaginatedListStore, hint: Option<&'static str>) -> Self {
        let store = Arc::new(store);
        Self { pages: store.clone(), store, hint }
    }
}

/// Creates the client of an S3 bucket.
pub(super) fn s3(
    bucket: &str,
    options: &OriginOptions,
    timeouts: Timeouts,
    env: impl Fn(&str) -> Option<String>,
) -> Result<BucketClient, String> {
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
        .map(|store| BucketClient::new(store, (!is_public && !is_signed).then_some(signing::S3_HINT)))
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

/// Creates the client of a bucket of Google Cloud Storage.
pub(super) fn gs(
    bucket: &str,
    options: &OriginOptions,
    timeouts: Timeouts,
    env: impl Fn(&str) -> Option<String>,
) -> Result<BucketClient, String> {
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
        .map(|store| BucketClient::new(store, (!is_public && !is_signed).then_some(signing::GS_HINT)))
        .map_err(|error| error.to_string())
}

/// Creates the client of a container of Azure Blob Storage.
pub(super) fn az(
    container: &str,
    options: &OriginOptions,
    timeouts: Timeouts,
    env: impl Fn(&str) -> Option<String>,
) -> Result<BucketClient, String> {
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
        .map(|store| BucketClient::new(store, (!is_public && !is_signed).then_some(signing::AZ_HINT)))
        .map_err(|error| error.to_string())
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
