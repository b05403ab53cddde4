//! Configuration in three steps: the settings are declared ([`declare`]), read from flags, environment and file into
//! [`Options`] where any may be missing ([`mod@file`], [`mod@value`]), and resolved into a live [`Config`] where none is
//! ([`check`]).
//!
//! A flag wins over the environment (`MILLPOND_` and the flag's name in capitals), the environment over the file,
//! the file over the default. All errors are found before any is reported.

pub mod check;
pub mod declare;
mod error;
pub mod file;
mod lifetimes;
pub mod machine;
mod options;
#[cfg(test)]
mod tests;
pub mod value;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use millpond_package::KeyAddress;
use millpond_store::{OriginOptions, PlaceSpec, policy::PolicyName, schedule::Mode};
use url::Url;

pub use check::{Effective, Inputs, Loaded, load};
pub use error::{ConfigError, ConfigErrors, Source};
pub use lifetimes::Lifetimes;
pub use options::{Options, PlaceOptions};

use crate::logging::LogFormat;
use crate::recordings::RecordOptions;
use crate::rtsp::Users;
use millpond_stream::{Bounds, Groups, Lateness};

/// Everything an operator decides, resolved.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where media is. Empty: the built-in sample is served.
    pub places: Vec<PlaceConfig>,
    /// Address of plain HTTP.
    pub http: SocketAddr,
    /// Address of HTTPS, where TLS is on.
    pub https: Option<SocketAddr>,
    /// Address of metrics and health.
    pub admin: SocketAddr,
    /// Names by which clients may call the admin address, besides its own.
    pub admin_hosts: Vec<String>,
    /// Address of RTSP.
    pub rtsp: SocketAddr,
    /// Address of RTSP over TLS, where TLS is on.
    pub rtsps: Option<SocketAddr>,
    /// Who may play by RTSP; none: everybody.
    pub rtsp_users: Option<RtspUsers>,
    /// The window of interval caching.
    pub rtsp_window: Duration,
    /// What a missed deadline does to those that follow.
    pub rtsp_lateness: Lateness,
    /// How much RTSP may take on.
    pub rtsp_bounds: Bounds,
    /// Paths of the assets that play as channels by RTSP.
    pub rtsp_channels: Vec<String>,
    /// Where those are multicast to.
    pub rtsp_multicast: Option<Groups>,
    /// Where RTSP clients are sent when there is no room here.
    pub rtsp_overflow: Option<Url>,
    /// Where recordings are written, and their bounds.
    pub record: RecordOptions,
    /// Whether places that don't say otherwise serve files whose names begin with a dot.
    pub hidden_files: bool,
    /// Folder for what is kept between runs.
    pub cache: PathBuf,
    /// Threads that serve.
    pub workers: usize,
    /// Bytes of memory for slices, indexes and playlists.
    pub memory: u64,
    /// Most bytes of slices on the disk, files and all.
    pub cache_size: u64,
    /// Bytes of a slice.
    pub slice: u32,
    /// Which slice goes when the disk's share is full.
    pub policy: PolicyName,
    /// When slices are sent for that viewers will need next.
    pub prefetch: Mode,
    /// Aim for the length of a media segment.
    pub segment_duration: Duration,
    /// Lifetimes of replies, where a place has none of its own.
    pub lifetimes: Lifetimes,
    /// Level filter of the log.
    pub log: String,
    /// Form of the log's lines.
    pub log_format: LogFormat,
    /// Whether each request is logged.
    pub access_log: bool,
    /// Where the certificate comes from, where TLS is on.
    pub tls: Option<TlsSource>,
    /// Client connections at a time, over all listeners.
    pub max_connections: usize,
    /// A connection without a request for this long is closed.
    pub idle_timeout: Duration,
    /// A request's head must have come in by then.
    pub request_timeout: Duration,
    /// A response of which the client takes nothing for this long is given up.
    pub write_timeout: Duration,
    /// Responses under way get this long to finish on shutdown.
    pub shutdown_grace: Duration,
    /// Value of `Access-Control-Allow-Origin`; none: the header is not sent.
    pub cors_origin: Option<String>,
}

/// One place with its options.
#[derive(Debug, Clone)]
pub struct PlaceConfig {
    /// Name and location.
    pub spec: PlaceSpec,
    /// How to talk to it.
    pub options: OriginOptions,
    /// Address of the keys of its encrypted files, for HLS.
    pub key_address: Option<Arc<KeyAddress>>,
    /// Lifetimes of replies.
    pub lifetimes: Lifetimes,
}

/// Those who may play by RTSP.
#[derive(Debug, Clone)]
pub struct RtspUsers {
    /// The file that they are from, which is read again when it changes.
    pub path: PathBuf,
    /// Who they are.
    pub users: Users,
}

/// Where the server's certificate comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TlsSource {
    /// PEM files, read again when they change.
    Files {
        /// The certificate and its chain.
        cert: PathBuf,
        /// Its private key.
        key: PathBuf,
    },
    /// Made at start, in memory.
    SelfSigned,
}

impl Config {
    /// What `millpond serve` without any setting runs with.
    pub fn defaults() -> Self {
        check::resolve(Options::default(), &machine::Machine::detect(), &|name| std::env::var(name).ok()).0
    }
}
