//! Settings as given: each may be missing.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use millpond_package::KeyAddress;
use millpond_store::{OriginOptions, PlaceSpec, policy::PolicyName, schedule::Mode};
use url::Url;

use super::error::Source;
use crate::logging::LogFormat;
use crate::recordings::RecordOptions;
use millpond_stream::{Groups, Lateness};

/// What flags, environment and file say, parsed but not yet completed by defaults.
///
/// Fields carry the names of [`super::Config`], which says what they mean.
#[derive(Debug, Clone, Default)]
#[allow(missing_docs, reason = "each field is described where it has a value: in Config")]
pub struct Options {
    pub places: Vec<PlaceOptions>,
    pub http: Option<SocketAddr>,
    pub https: Option<SocketAddr>,
    pub admin: Option<SocketAddr>,
    pub admin_hosts: Option<Vec<String>>,
    /// Address of RTSP.
    pub rtsp: Option<SocketAddr>,
    pub rtsps: Option<SocketAddr>,
    pub rtsp_users: Option<PathBuf>,
    /// The window of interval caching.
    pub rtsp_window: Option<Duration>,
    pub rtsp_lateness: Option<Lateness>,
    pub rtsp_mbps: Option<u64>,
    pub rtsp_origin_mbps: Option<u64>,
    pub rtsp_sessions: Option<usize>,
    pub rtsp_sessions_per_client: Option<usize>,
    pub rtsp_waiting_per_client: Option<usize>,
    pub rtsp_channels: Option<Vec<String>>,
    pub rtsp_multicast: Option<Groups>,
    pub rtsp_overflow: Option<Url>,
    /// Recording; its defaults depend on nothing.
    pub record: RecordOptions,
    pub hidden_files: Option<bool>,
    pub cache: Option<PathBuf>,
    pub workers: Option<usize>,
    pub memory: Option<u64>,
    pub cache_size: Option<u64>,
    pub slice: Option<u32>,
    pub policy: Option<PolicyName>,
    /// When slices are sent for that viewers will need next.
    pub prefetch: Option<Mode>,
    pub segment_duration: Option<Duration>,
    pub playlist_lifetime: Option<Duration>,
    pub segment_lifetime: Option<Duration>,
    pub file_lifetime: Option<Duration>,
    pub log: Option<String>,
    pub log_format: Option<LogFormat>,
    pub access_log: Option<bool>,
    pub tls_cert: Option<PathBuf>,
    pub tls_key: Option<PathBuf>,
    pub tls_self_signed: Option<bool>,
    pub max_connections: Option<usize>,
    pub idle_timeout: Option<Duration>,
    pub request_timeout: Option<Duration>,
    pub write_timeout: Option<Duration>,
    pub shutdown_grace: Option<Duration>,
    pub cors_origin: Option<String>,
    /// Where each setting that has a value got it, by the setting's name.
    pub sources: BTreeMap<&'static str, Source>,
}

impl Options {
    /// Where a setting got its value.
    pub fn source(&self, name: &str) -> Source {
        self.sources.get(name).cloned().unwrap_or_default()
    }
}

/// One place as given.
#[derive(Debug, Clone)]
pub struct PlaceOptions {
    /// The name, where it stands apart from the location: the key of a table.
    pub name: Option<String>,
    /// A location alone, or `name=location` where there is no name apart. May hold secrets.
    pub text: String,
    /// How to talk to it.
    pub options: OriginOptions,
    /// Address of the keys of its encrypted files, as a template.
    pub key_uri: Option<String>,
    /// `KEYFORMAT` of that address.
    pub key_format: Option<String>,
    /// Its own values of those settings that a place may have.
    pub own: Options,
    /// Where it stands.
    pub source: Source,
}

impl PlaceOptions {
    /// A place with the default options.
    pub fn new(text: impl Into<String>, source: Source) -> Self {
        let (options, own) = (OriginOptions::default(), Options::default());
        Self { name: None, text: text.into(), options, key_uri: None, key_format: None, own, source }
    }

    /// A place of the key of a table.
    pub fn named(name: &str, url: impl Into<String>, source: Source) -> Self {
        Self { name: Some(name.to_owned()), ..Self::new(url, source) }
    }

    /// The address of keys.
    pub fn key_address(&self) -> Result<Option<Arc<KeyAddress>>, String> {
        match (&self.key_uri, &self.key_format) {
            (Some(uri), format) => Ok(KeyAddress::new(uri, format.as_deref()).map(Arc::new)),
            (None, None) => Ok(None),
            (None, Some(format)) => Err(format!("key-format {format:?} is of no use without key-uri")),
        }
    }

    /// Name and location.
    pub fn spec(&self) -> Result<PlaceSpec, String> {
        let Some(name) = &self.name else {
            return PlaceSpec::parse(&self.text).map_err(|error| error.to_string());
        };
        match PlaceSpec::parse(&format!("{name}={}", self.text)) {
            Ok(spec) if spec.name == *name => Ok(spec),
            Ok(_) => Err(format!("place name {name:?}: expected letters, digits, \"-\" and \"_\" only")),
            Err(error) => Err(error.to_string()),
        }
    }
}
