//! The clients of buckets: addresses, credentials and time limits.

use std::sync::Arc;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::list::PaginatedListStore;
use object_store::multipart::MultipartStore;
use object_store::{ClientOptions, ObjectStore, RetryConfig};

use crate::origin::{
    BucketOptions, Timeouts,
    client_error::chain,
    cloud::{
        aws_profile::Profile,
        bucket_address::{S3Address, Style, endpoint_url},
        connector::CloudConnector,
        signing,
    },
};

/// The client library does not retry: the wrapper around every origin does.
fn no_retries() -> RetryConfig {
    RetryConfig { max_retries: 0, ..RetryConfig::default() }
}

/// The library checks addresses by these options. Its requests are sent by a [`CloudConnector`].
fn client(endpoint: Option<&str>) -> ClientOptions {
    ClientOptions::new().with_allow_http(endpoint.is_some_and(|endpoint| endpoint.starts_with("http://")))
}

/// The client library's objects of an origin.
pub(in crate::origin) struct BucketClient {
    pub(in crate::origin) store: Arc<dyn ObjectStore>,
    pub(in crate::origin) pages: Arc<dyn PaginatedListStore>,
    pub(in crate::origin) parts: Arc<dyn MultipartStore>,
    pub(in crate::origin) hint: Option<&'static str>,
}

impl BucketClient {
    fn new(store: impl ObjectStore + PaginatedListStore + MultipartStore, hint: Option<&'static str>) -> Self {
        let store = Arc::new(store);
        Self { pages: store.clone(), parts: store.clone(), store, hint }
    }
}

/// Creates the client of an S3 bucket.
pub(in crate::origin) fn s3(
    bucket: &str,
    options: &BucketOptions,
    timeouts: Timeouts,
    env: impl Fn(&str) -> Option<String>,
) -> Result<BucketClient, String> {
    let profile = Profile::for_options(options, &env).map_err(|fault| fault.to_string())?;
    let address = S3Address::find(bucket, options, &env, &profile).map_err(|fault| fault.to_string())?;
    let mut builder = AmazonS3Builder::from_env().with_bucket_name(bucket);
    // The machine's role comes last.
    if let (Some(key), Some(secret)) = (profile.access_key, profile.secret_key) {
        builder = builder.with_access_key_id(key).with_secret_access_key(secret);
        if let Some(token) = profile.token {
            builder = builder.with_token(token);
        }
    }
    if let Some(region) = address.region {
        builder = builder.with_region(region);
    }
    builder = builder.with_virtual_hosted_style_request(address.style == Style::Host);
    if let Some(url) = &address.endpoint {
        // The more specific one of the two settings, so that the environment does not override it.
        builder = builder.with_config(AmazonS3ConfigKey::S3Endpoint, url);
    }
    if let Some(machine) = env("AWS_EC2_METADATA_SERVICE_ENDPOINT") {
        builder = builder.with_metadata_endpoint(machine);
    }
    let is_public = options.anonymous || is_on(builder.get_config_value(&AmazonS3ConfigKey::SkipSignature));
    let is_signed = !is_public && signing::is_signed_s3(&builder, options, &env);
    builder
        .with_skip_signature(!is_signed)
        .with_retry(no_retries())
        .with_http_connector(CloudConnector::new(timeouts.connect)?)
        .with_client_options(client(address.endpoint.as_deref()))
        .build()
        .map(|store| BucketClient::new(store, (!is_public && !is_signed).then_some(signing::S3_HINT)))
        .map_err(plain)
}

/// Returns whether the environment turns a switch of the client library on.
fn is_on(value: Option<String>) -> bool {
    value.is_some_and(|value| value == "true")
}

/// Describes the refusal of a client library by its cause alone.
fn plain(error: object_store::Error) -> String {
    match error {
        object_store::Error::Generic { source, .. } => chain(source.as_ref()),
        error => chain(&error),
    }
}

/// Returns the endpoint of a place's options as the client library takes it.
fn endpoint(text: Option<&str>) -> Result<Option<String>, String> {
    let url = text.map(|text| endpoint_url("endpoint", text)).transpose().map_err(|fault| fault.to_string())?;
    Ok(url.map(|url| url.as_str().trim_end_matches('/').to_owned()))
}

/// Creates the client of a bucket of Google Cloud Storage.
pub(in crate::origin) fn gs(
    bucket: &str,
    options: &BucketOptions,
    timeouts: Timeouts,
    env: impl Fn(&str) -> Option<String>,
) -> Result<BucketClient, String> {
    let endpoint = endpoint(options.endpoint.as_deref())?;
    let mut builder = GoogleCloudStorageBuilder::from_env()
        .with_bucket_name(bucket)
        .with_retry(no_retries())
        .with_http_connector(CloudConnector::new(timeouts.connect)?)
        .with_client_options(client(endpoint.as_deref()));
    if let Some(endpoint) = endpoint {
        builder = builder.with_base_url(&endpoint);
    }
    let is_public = options.anonymous || is_on(builder.get_config_value(&GoogleConfigKey::SkipSignature));
    let is_signed = !is_public && signing::is_signed_gs(&builder, options, env);
    builder
        .with_skip_signature(!is_signed)
        .build()
        .map(|store| BucketClient::new(store, (!is_public && !is_signed).then_some(signing::GS_HINT)))
        .map_err(plain)
}

/// Creates the client of a container of Azure Blob Storage.
pub(in crate::origin) fn az(
    container: &str,
    options: &BucketOptions,
    timeouts: Timeouts,
    env: impl Fn(&str) -> Option<String>,
) -> Result<BucketClient, String> {
    let endpoint = endpoint(options.endpoint.as_deref())?;
    let mut builder = MicrosoftAzureBuilder::from_env()
        .with_container_name(container)
        .with_retry(no_retries())
        .with_http_connector(CloudConnector::new(timeouts.connect)?)
        .with_client_options(client(endpoint.as_deref()));
    if let Some(account) = &options.account {
        builder = builder.with_account(account);
    }
    if let Some(endpoint) = endpoint {
        builder = builder.with_endpoint(endpoint);
    }
    let is_public = options.anonymous || is_on(builder.get_config_value(&AzureConfigKey::SkipSignature));
    let is_signed = !is_public && signing::is_signed_az(&builder, options, env);
    builder
        .with_skip_signature(!is_signed)
        .build()
        .map(|store| BucketClient::new(store, (!is_public && !is_signed).then_some(signing::AZ_HINT)))
        .map_err(plain)
}
