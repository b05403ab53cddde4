//! The settings: name, form, default and help of each, in one table.
//!
//! Command line, environment, file, `millpond check` and the documentation are all made from it.

use std::path::PathBuf;
use std::time::Duration;

use millpond_package::KeyAddress;
use millpond_store::{Titles, policy::PolicyName, schedule::Mode};
use url::Url;

use super::options::{Options, PlaceOptions};
use super::value::{self, BadValue, Form, show_duration, show_size};
use super::{Config, TlsSource};
use crate::logging::{LogFormat, parse_filter};
use millpond_stream::{Groups, Lateness, NoGroups};

/// One setting of the server.
pub struct Setting {
    /// Its key in the file; `--` and this is the flag.
    pub name: &'static str,
    /// What its value looks like.
    pub form: Form,
    /// What it is when nobody says, in words where it depends on the machine.
    pub default: &'static str,
    /// What it does, one sentence.
    pub help: &'static str,
    /// Parses a value into the options.
    pub apply: fn(&mut Options, &str) -> Result<(), BadValue>,
    /// The live value as text; none where it is off.
    pub show: fn(&Config) -> Option<String>,
}

impl Setting {
    /// The environment variable that sets it.
    pub fn variable(&self) -> String {
        format!("MILLPOND_{}", self.name.replace('-', "_").to_ascii_uppercase())
    }

    /// The setting of this name; underscores stand for dashes.
    pub fn find(name: &str) -> Option<&'static Self> {
        let name = name.replace('_', "-");
        SETTINGS.iter().find(|setting| setting.name == name)
    }
}

impl std::fmt::Debug for Setting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// Bounds of `segment-duration`: below them requests outnumber what they carry, above them players' buffers.
const SEGMENT: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(60));

/// Bounds of the timeouts: none of them may be switched off, or a silent peer would hold a connection for ever.
const TIMEOUT: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(24 * 3600));

/// Bounds of `slice`, in bytes.
const SLICE: (u64, u64) = (16 << 10, 16 << 20);

fn slice(text: &str) -> Result<u32, BadValue> {
    let size = value::size(text)?;
    match u32::try_from(size) {
        Ok(bytes) if (SLICE.0..=SLICE.1).contains(&size) && size % 4096 == 0 => Ok(bytes),
        _ => Err(BadValue::new("16KiB to 16MiB, in whole pages of 4KiB")),
    }
}

fn policy(text: &str) -> Result<PolicyName, BadValue> {
    text.parse().map_err(|_| Form::Choice(PolicyName::NAMES).into())
}

fn lateness(text: &str) -> Result<Lateness, BadValue> {
    Lateness::named(text).ok_or_else(|| Form::Choice(&Lateness::NAMES).into())
}

fn groups(text: &str) -> Result<Groups, BadValue> {
    text.parse().map_err(|error: NoGroups| BadValue::new(error.to_string()))
}

fn rtsp_url(text: &str) -> Result<Url, BadValue> {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "rtsp" | "rtsps") && url.has_host());
    url.ok_or_else(|| BadValue::new("a URL such as \"rtsp://other:8554\""))
}

/// The longest caching window.
const WINDOW: Duration = Duration::from_secs(600);

const PREFETCH: &str = "on-demand, window, window:N (0 to 1024 slices), half, active or full";

fn prefetch(text: &str) -> Result<Mode, BadValue> {
    text.parse().map_err(|_| BadValue::new(PREFETCH))
}

fn host_names(text: &str) -> Result<Vec<String>, BadValue> {
    let names = value::list(text);
    let is_name = |name: &String| name == "*" || url::Host::parse(name).is_ok();
    match names.iter().all(is_name) {
        true => Ok(names),
        false => Err(BadValue::new("host names without a port such as \"edge1.internal\", or \"*\"")),
    }
}

fn timeout(text: &str) -> Result<Duration, BadValue> {
    value::duration_in(text, TIMEOUT.0, TIMEOUT.1)
}

fn log_format(text: &str) -> Result<LogFormat, BadValue> {
    [LogFormat::Auto, LogFormat::Text, LogFormat::Json]
        .into_iter()
        .find(|format| format.name() == text)
        .ok_or_else(|| LOG_FORMATS.into())
}

const LOG_FORMATS: Form = Form::Choice(&["auto", "text", "json"]);

fn log_filter(text: &str) -> Result<String, BadValue> {
    parse_filter(text).map_err(|_| {
        BadValue::new("a level (error, warn, info, debug, trace) or filter such as \"millpond_store=debug,info\"")
    })?;
    Ok(text.to_owned())
}

fn cors_origin(text: &str) -> Result<String, BadValue> {
    match http::HeaderValue::from_str(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(_) => Err(BadValue::new("\"*\", an origin such as \"https://player.example\", or \"off\"")),
    }
}

/// All settings but the places, in the order of the documentation.
pub const SETTINGS: &[Setting] = &[
    Setting {
        name: "http",
        form: Form::Address,
        default: "0.0.0.0:8080",
        help: "Address of plain HTTP",
        apply: |options, text| value::address(text).map(|v| options.http = Some(v)),
        show: |config| Some(config.http.to_string()),
    },
    Setting {
        name: "https",
        form: Form::Address,
        default: "0.0.0.0:8443 with TLS on, else off",
        help: "Address of HTTPS",
        apply: |options, text| value::address(text).map(|v| options.https = Some(v)),
        show: |config| config.https.map(|address| address.to_string()),
    },
    Setting {
        name: "admin",
        form: Form::Address,
        default: "127.0.0.1:9090",
        help: "Address of metrics, health checks and cache control",
        apply: |options, text| value::address(text).map(|v| options.admin = Some(v)),
        show: |config| Some(config.admin.to_string()),
    },
    Setting {
        name: "admin-hosts",
        form: Form::List,
        default: "none: IP addresses and localhost; the loopback's alone where admin is on the loopback",
        help: "Host names that the admin address accepts besides its IP addresses; \"*\" accepts any",
        apply: |options, text| host_names(text).map(|v| options.admin_hosts = Some(v)),
        show: |config| Some(config.admin_hosts.join(",")),
    },
    Setting {
        name: "rtsp",
        form: Form::Address,
        default: "0.0.0.0:8554",
        help: "Address of RTSP; RTP packets leave from free ports of its host",
        apply: |options, text| value::address(text).map(|v| options.rtsp = Some(v)),
        show: |config| Some(config.rtsp.to_string()),
    },
    Setting {
        name: "rtsps",
        form: Form::Address,
        default: "0.0.0.0:8322 with TLS on, else off",
        help: "Address of RTSP over TLS",
        apply: |options, text| value::address(text).map(|v| options.rtsps = Some(v)),
        show: |config| config.rtsps.map(|address| address.to_string()),
    },
    Setting {
        name: "rtsp-users",
        form: Form::Path,
        default: "none: no password",
        help: "File of RTSP users in lines of name:password, for Digest authentication",
        apply: |options, text| path(text).map(|v| options.rtsp_users = Some(v)),
        show: |config| config.rtsp_users.as_ref().map(|users| users.path.display().to_string()),
    },
    Setting {
        name: "rtsp-window",
        form: Form::Duration,
        default: "10s",
        help: "An RTSP session that starts within this time after another one of the same asset is served from memory; 0s switches this off",
        apply: |options, text| value::duration_in(text, Duration::ZERO, WINDOW).map(|v| options.rtsp_window = Some(v)),
        show: |config| Some(show_duration(config.rtsp_window)),
    },
    Setting {
        name: "rtsp-deadlines",
        form: Form::Choice(&Lateness::NAMES),
        default: "none",
        help: "How far RTSP playback shifts, in periods of 200 ms, when the origin is late; \"all\" shifts by the whole delay",
        apply: |options, text| lateness(text).map(|v| options.rtsp_lateness = Some(v)),
        show: |config| Some(config.rtsp_lateness.name().to_owned()),
    },
    Setting {
        name: "rtsp-mbps",
        form: Form::Count,
        default: "0: no limit",
        help: "Total media rate of playing RTSP sessions, in Mbit/s; above it new sessions are refused (453)",
        apply: |options, text| value::count(text, 0).map(|v| options.rtsp_mbps = Some(v as u64)),
        show: |config| Some((config.rtsp_bounds.bandwidth.unwrap_or(0) / 1_000_000).to_string()),
    },
    Setting {
        name: "rtsp-origin-mbps",
        form: Form::Count,
        default: "0: no limit",
        help: "Media rate, in Mbit/s for each place, of RTSP sessions that read from the origin because the media is not in a cache",
        apply: |options, text| value::count(text, 0).map(|v| options.rtsp_origin_mbps = Some(v as u64)),
        show: |config| Some((config.rtsp_bounds.origin_bandwidth.unwrap_or(0) / 1_000_000).to_string()),
    },
    Setting {
        name: "rtsp-sessions",
        form: Form::Count,
        default: "16384",
        help: "Highest number of RTSP sessions",
        apply: |options, text| value::count(text, 1).map(|v| options.rtsp_sessions = Some(v)),
        show: |config| Some(config.rtsp_bounds.sessions.to_string()),
    },
    Setting {
        name: "rtsp-sessions-per-client",
        form: Form::Count,
        default: "half of rtsp-sessions",
        help: "Highest number of RTSP sessions of one client address (IPv6: of one /64 network)",
        apply: |options, text| value::count(text, 1).map(|v| options.rtsp_sessions_per_client = Some(v)),
        show: |config| Some(config.rtsp_bounds.sessions_per_client.to_string()),
    },
    Setting {
        name: "rtsp-waiting-per-client",
        form: Form::Count,
        default: "2048",
        help: "Highest number of RTSP sessions of one client address that have not played yet",
        apply: |options, text| value::count(text, 1).map(|v| options.rtsp_waiting_per_client = Some(v)),
        show: |config| Some(config.rtsp_bounds.waiting_per_client.to_string()),
    },
    Setting {
        name: "rtsp-channels",
        form: Form::List,
        default: "none",
        help: "Paths of assets that play by RTSP in a loop, at the same position for all viewers",
        apply: |options, text| {
            let paths = value::list(text).into_iter().map(|path| path.trim_matches('/').to_owned()).collect();
            options.rtsp_channels = Some(paths);
            Ok(())
        },
        show: |config| Some(config.rtsp_channels.join(",")),
    },
    Setting {
        name: "rtsp-multicast",
        form: Form::Text,
        default: "none",
        help: "Multicast group, port and hop limit of the first channel, such as 239.192.0.1:5004/16; other channels have the next addresses",
        apply: |options, text| groups(text).map(|v| options.rtsp_multicast = Some(v)),
        show: |config| config.rtsp_multicast.map(|groups| groups.to_string()),
    },
    Setting {
        name: "rtsp-overflow",
        form: Form::Text,
        default: "none: clients are refused",
        help: "RTSP server that gets the clients when this one is full, such as rtsp://other:8554",
        apply: |options, text| rtsp_url(text).map(|v| options.rtsp_overflow = Some(v)),
        show: |config| config.rtsp_overflow.as_ref().map(Url::to_string),
    },
    Setting {
        name: "record-folder",
        form: Form::Path,
        default: "none: recording is off",
        help: "Folder of recordings, which the admin address (`millpond record`) starts and stops",
        apply: |options, text| path(text).map(|v| options.record.folder = Some(v)),
        show: |config| config.record.folder.as_ref().map(|folder| folder.display().to_string()),
    },
    Setting {
        name: "record-size",
        form: Form::Size,
        default: "10GiB",
        help: "Highest size of a recording; it ends there",
        apply: |options, text| value::size(text).map(|v| options.record.size = v),
        show: |config| Some(show_size(config.record.size)),
    },
    Setting {
        name: "record-duration",
        form: Form::Duration,
        default: "24h",
        help: "Longest duration of a recording; it ends there",
        apply: |options, text| value::duration(text).map(|v| options.record.duration = v),
        show: |config| Some(show_duration(config.record.duration)),
    },
    Setting {
        name: "recordings",
        form: Form::Count,
        default: "8",
        help: "Highest number of recordings that run",
        apply: |options, text| value::count(text, 1).map(|v| options.record.count = v),
        show: |config| Some(config.record.count.to_string()),
    },
    Setting {
        name: "hidden-files",
        form: Form::Switch,
        default: "false",
        help: "Serve files whose name or folder begins with a dot; listings never show them",
        apply: |options, text| value::switch(text).map(|v| options.hidden_files = Some(v)),
        show: |config| Some(config.hidden_files.to_string()),
    },
    Setting {
        name: "cache",
        form: Form::Path,
        default: "$XDG_CACHE_HOME/millpond or ~/.cache/millpond",
        help: "Folder of the disk cache: slices of remote places, indexes, popular segments",
        apply: |options, text| path(text).map(|v| options.cache = Some(v)),
        show: |config| Some(config.cache.display().to_string()),
    },
    Setting {
        name: "workers",
        form: Form::Count,
        default: "one for each core",
        help: "Number of threads that serve requests",
        apply: |options, text| value::count(text, 1).map(|v| options.workers = Some(v)),
        show: |config| Some(config.workers.to_string()),
    },
    Setting {
        name: "memory",
        form: Form::Size,
        default: "a quarter of memory, at most 1GiB",
        help: "Limit of the memory for slices, segments, indexes and playlists together",
        apply: |options, text| memory(text).map(|v| options.memory = Some(v)),
        show: |config| Some(show_size(config.memory)),
    },
    Setting {
        name: "cache-size",
        form: Form::Size,
        default: "10GiB, at most half of the free space; 0 keeps nothing on the disk",
        help: "Limit of the disk cache in the folder `cache`",
        apply: |options, text| value::size(text).map(|v| options.cache_size = Some(v)),
        show: |config| Some(show_size(config.cache_size)),
    },
    Setting {
        name: "slice",
        form: Form::Size,
        default: "512KiB",
        help: "Size of a slice, the unit of caching; a change empties the disk cache",
        apply: |options, text| slice(text).map(|v| options.slice = Some(v)),
        show: |config| Some(show_size(config.slice.into())),
    },
    Setting {
        name: "policy",
        form: Form::Choice(PolicyName::NAMES),
        default: PolicyName::Stream.as_str(),
        help: "Eviction policy of the disk cache",
        apply: |options, text| policy(text).map(|v| options.policy = Some(v)),
        show: |config| Some(config.policy.to_string()),
    },
    Setting {
        name: "prefetch",
        form: Form::Text,
        default: "active",
        help: "When upcoming slices are fetched: on-demand, window, window:N, half, active, full",
        apply: |options, text| prefetch(text).map(|v| options.prefetch = Some(v)),
        show: |config| Some(config.prefetch.to_string()),
    },
    Setting {
        name: "segment-duration",
        form: Form::Duration,
        default: "4s",
        help: "Target duration of media segments",
        apply: |options, text| {
            value::duration_in(text, SEGMENT.0, SEGMENT.1).map(|v| options.segment_duration = Some(v))
        },
        show: |config| Some(show_duration(config.segment_duration)),
    },
    Setting {
        name: "playlist-lifetime",
        form: Form::Duration,
        default: "10s",
        help: "How long caches may keep playlists, manifests and media paths without a version; a place may have its own value",
        apply: |options, text| value::duration(text).map(|v| options.playlist_lifetime = Some(v)),
        show: |config| Some(show_duration(config.lifetimes.playlists)),
    },
    Setting {
        name: "segment-lifetime",
        form: Form::Duration,
        default: "365d",
        help: "How long caches may keep segments and playlists whose paths name their version; a place may have its own value",
        apply: |options, text| value::duration(text).map(|v| options.segment_lifetime = Some(v)),
        show: |config| Some(show_duration(config.lifetimes.segments)),
    },
    Setting {
        name: "file-lifetime",
        form: Form::Duration,
        default: "60s",
        help: "How long caches may keep files that are served as they are; a place may have its own value",
        apply: |options, text| value::duration(text).map(|v| options.file_lifetime = Some(v)),
        show: |config| Some(show_duration(config.lifetimes.files)),
    },
    Setting {
        name: "log",
        form: Form::Text,
        default: "info",
        help: "Level of the log: error, warn, info, debug, trace, or a filter by target",
        apply: |options, text| log_filter(text).map(|v| options.log = Some(v)),
        show: |config| Some(config.log.clone()),
    },
    Setting {
        name: "log-format",
        form: LOG_FORMATS,
        default: "auto: text on a terminal, JSON elsewhere",
        help: "Form of the log's lines: auto, text or json",
        apply: |options, text| log_format(text).map(|v| options.log_format = Some(v)),
        show: |config| Some(config.log_format.name().to_owned()),
    },
    Setting {
        name: "access-log",
        form: Form::Switch,
        default: "true",
        help: "Log each request and each RTSP session",
        apply: |options, text| value::switch(text).map(|v| options.access_log = Some(v)),
        show: |config| Some(config.access_log.to_string()),
    },
    Setting {
        name: "tls-cert",
        form: Form::Path,
        default: "none",
        help: "PEM file with the certificate and its chain; turns TLS on",
        apply: |options, text| path(text).map(|v| options.tls_cert = Some(v)),
        show: |config| match &config.tls {
            Some(TlsSource::Files { cert, .. }) => Some(cert.display().to_string()),
            _ => None,
        },
    },
    Setting {
        name: "tls-key",
        form: Form::Path,
        default: "none",
        help: "PEM file with the certificate's private key",
        apply: |options, text| path(text).map(|v| options.tls_key = Some(v)),
        show: |config| match &config.tls {
            Some(TlsSource::Files { key, .. }) => Some(key.display().to_string()),
            _ => None,
        },
    },
    Setting {
        name: "tls-self-signed",
        form: Form::Switch,
        default: "false",
        help: "Turn TLS on with a certificate made at start, for tests",
        apply: |options, text| value::switch(text).map(|v| options.tls_self_signed = Some(v)),
        show: |config| Some((config.tls == Some(TlsSource::SelfSigned)).to_string()),
    },
    Setting {
        name: "max-connections",
        form: Form::Count,
        default: "20000, fewer where the limit of open files is low",
        help: "Highest number of client connections",
        apply: |options, text| value::count(text, 1).map(|v| options.max_connections = Some(v)),
        show: |config| Some(config.max_connections.to_string()),
    },
    Setting {
        name: "idle-timeout",
        form: Form::Duration,
        default: "75s",
        help: "Close a connection after this time without a request",
        apply: |options, text| timeout(text).map(|v| options.idle_timeout = Some(v)),
        show: |config| Some(show_duration(config.idle_timeout)),
    },
    Setting {
        name: "request-timeout",
        form: Form::Duration,
        default: "10s",
        help: "Time limit for a request to arrive completely",
        apply: |options, text| timeout(text).map(|v| options.request_timeout = Some(v)),
        show: |config| Some(show_duration(config.request_timeout)),
    },
    Setting {
        name: "write-timeout",
        form: Form::Duration,
        default: "60s",
        help: "Abort a response when the client has accepted no data for this time",
        apply: |options, text| timeout(text).map(|v| options.write_timeout = Some(v)),
        show: |config| Some(show_duration(config.write_timeout)),
    },
    Setting {
        name: "shutdown-grace",
        form: Form::Duration,
        default: "30s",
        help: "Time that responses in progress have to finish on shutdown",
        apply: |options, text| value::duration(text).map(|v| options.shutdown_grace = Some(v)),
        show: |config| Some(show_duration(config.shutdown_grace)),
    },
    Setting {
        name: "cors-origin",
        form: Form::Text,
        default: "*",
        help: "Web origin whose pages may play; \"*\" allows all, \"off\" only this server's",
        apply: |options, text| cors_origin(text).map(|v| options.cors_origin = Some(v)),
        show: |config| config.cors_origin.clone(),
    },
];

fn path(text: &str) -> Result<PathBuf, BadValue> {
    if text.is_empty() { Err(Form::Path.into()) } else { Ok(PathBuf::from(text)) }
}

fn memory(text: &str) -> Result<u64, BadValue> {
    match value::size(text)? {
        bytes if bytes < 8 << 20 => Err(BadValue::new("a size of at least 8MiB such as \"256MiB\"")),
        bytes => Ok(bytes),
    }
}

/// One option of a place, a key of `[places.NAME]`.
pub struct PlaceSetting {
    /// The key.
    pub name: &'static str,
    /// What its value looks like.
    pub form: Form,
    /// What it does, one sentence.
    pub help: &'static str,
    /// Parses a value into the place's options.
    pub apply: fn(&mut PlaceOptions, &str) -> Result<(), BadValue>,
}

impl PlaceSetting {
    /// The option of this name; underscores stand for dashes.
    pub fn find(name: &str) -> Option<&'static Self> {
        let name = name.replace('_', "-");
        PLACE_SETTINGS.iter().find(|setting| setting.name == name)
    }
}

impl std::fmt::Debug for PlaceSetting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// The options of a place, besides its `url`.
pub const PLACE_SETTINGS: &[PlaceSetting] = &[
    PlaceSetting {
        name: "endpoint",
        form: Form::Text,
        help: "Address of an S3, GCS or Azure compatible service, such as \"http://minio:9000\"",
        apply: |place, text| {
            let endpoint = text_value(text)?;
            // Only the one of the place's own kind is looked at.
            place.options.s3_endpoint = Some(endpoint.clone());
            place.options.gs_endpoint = Some(endpoint.clone());
            place.options.az_endpoint = Some(endpoint);
            Ok(())
        },
    },
    PlaceSetting {
        name: "region",
        form: Form::Text,
        help: "S3 region",
        apply: |place, text| text_value(text).map(|v| place.options.s3_region = Some(v)),
    },
    PlaceSetting {
        name: "path-style",
        form: Form::Switch,
        help: "Name the S3 bucket in the path instead of the host; the default with an endpoint",
        apply: |place, text| value::switch(text).map(|v| place.options.s3_path_style = Some(v)),
    },
    PlaceSetting {
        name: "account",
        form: Form::Text,
        help: "Azure storage account",
        apply: |place, text| text_value(text).map(|v| place.options.az_account = Some(v)),
    },
    PlaceSetting {
        name: "anonymous",
        form: Form::Switch,
        help: "Send requests unsigned, for public buckets",
        apply: |place, text| {
            let anonymous = value::switch(text)?;
            place.options.s3_anonymous = anonymous;
            place.options.gs_anonymous = anonymous;
            place.options.az_anonymous = anonymous;
            Ok(())
        },
    },
    PlaceSetting {
        name: "credentials",
        form: Form::Text,
        help: "\"instance\" takes keys from the machine's cloud role where none are configured; \"auto\" does so only where the \
               environment names that service",
        apply: |place, text| {
            place.options.instance_credentials = match text {
                "auto" => false,
                "instance" => true,
                _ => return Err(BadValue::new("\"auto\" or \"instance\"")),
            };
            Ok(())
        },
    },
    PlaceSetting {
        name: "connect-timeout",
        form: Form::Duration,
        help: "Time limit for connecting",
        apply: |place, text| timeout(text).map(|v| place.options.connect_timeout = v),
    },
    PlaceSetting {
        name: "first-byte-timeout",
        form: Form::Duration,
        help: "Time limit from a request to the first byte of the reply",
        apply: |place, text| timeout(text).map(|v| place.options.first_byte_timeout = v),
    },
    PlaceSetting {
        name: "stall-timeout",
        form: Form::Duration,
        help: "Longest pause within a reply; after it the rest is requested again",
        apply: |place, text| timeout(text).map(|v| place.options.stall_timeout = v),
    },
    PlaceSetting {
        name: "retries",
        form: Form::Count,
        help: "Number of further attempts after a failed one",
        apply: |place, text| {
            let retries = value::count(text, 0)?;
            place.options.retries = retries.try_into().map_err(|_| BadValue::from(Form::Count))?;
            Ok(())
        },
    },
    PlaceSetting {
        name: "follow-redirects-to",
        form: Form::List,
        help: "Hosts, besides the place's own, that redirects may lead to",
        apply: |place, text| {
            place.options.follow_redirects_to = value::list(text);
            Ok(())
        },
    },
    PlaceSetting {
        name: "siblings",
        form: Form::List,
        help: "Base URLs of HTTP caches with the same objects, asked before the origin, such as \"http://edge2:8080/films\"",
        apply: |place, text| {
            let url = |text: String| match Url::parse(&text) {
                Ok(url) if matches!(url.scheme(), "http" | "https") => Ok(url),
                _ => Err(BadValue::new("URLs of http or https")),
            };
            place.options.siblings = value::list(text).into_iter().map(url).collect::<Result<_, _>>()?;
            Ok(())
        },
    },
    PlaceSetting {
        name: "sibling-timeout",
        form: Form::Duration,
        help: "Time limit for the first byte of a sibling's reply",
        apply: |place, text| {
            place.options.sibling_timeout = value::duration_in(text, Duration::from_millis(1), TIMEOUT.1)?;
            Ok(())
        },
    },
    PlaceSetting {
        name: "hidden-files",
        form: Form::Switch,
        help: "Serve files whose name or folder begins with a dot; overrides the setting of the same name",
        apply: |place, text| value::switch(text).map(|v| place.options.hidden_files = Some(v)),
    },
    PlaceSetting {
        name: "key-uri",
        form: Form::Text,
        help: "Address where players get the keys of encrypted files, for HLS, such as \"https://keys.example/{kid}\" or \
               \"skd://{kid}\": {kid} is the key's identifier in 32 hexadecimal digits, {uuid} the same as a UUID",
        apply: |place, text| key_text(text).map(|v| place.key_uri = Some(v)),
    },
    PlaceSetting {
        name: "key-format",
        form: Form::Text,
        help: "KEYFORMAT of key-uri; the default is FairPlay's for skd: addresses, else identity",
        apply: |place, text| key_text(text).map(|v| place.key_format = Some(v)),
    },
    PlaceSetting {
        name: "titles",
        form: Form::Choice(&Titles::NAMES),
        help: "Which media files of a folder are one title: \"alike\" groups them by name and content, \"folder\" takes all, \
               \"file\" none",
        apply: |place, text| {
            place.options.titles = Titles::named(text).ok_or_else(|| BadValue::from(Form::Choice(&Titles::NAMES)))?;
            Ok(())
        },
    },
];

/// Text of attributes of a playlist (RFC 8216 4.2).
fn key_text(text: &str) -> Result<String, BadValue> {
    match KeyAddress::new(text, None) {
        Some(_) => Ok(text.to_owned()),
        None => Err(BadValue::new("text that is not empty, without quotation marks and line breaks")),
    }
}

fn text_value(text: &str) -> Result<String, BadValue> {
    if text.is_empty() { Err(BadValue::new("text that is not empty")) } else { Ok(text.to_owned()) }
}

/// The known name that looks most like `name`, where one does.
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    let name = name.replace('_', "-").to_ascii_lowercase();
    // A third of the letters may differ, two at least: "wrokers", "segmentduration", "tls-certificate".
    let allowed = (name.chars().count() / 3).max(2);
    known
        .map(|candidate| (distance(&name, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= allowed && *distance < candidate.len())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate.to_owned())
}

/// Edits between two names; a name that begins with the other counts as one edit away.
fn distance(name: &str, candidate: &str) -> usize {
    if name.len() > 2 && candidate.len() > 2 && (name.starts_with(candidate) || candidate.starts_with(name)) {
        return 1;
    }
    strsim::damerau_levenshtein(name, candidate)
}
