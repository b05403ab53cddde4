//! From what was given to what runs: sources in their order, defaults, and whether settings go together.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use millpond_store::{PlaceSpec, schedule::Mode};

use super::declare::{SETTINGS, Setting, nearest};
use super::error::{ConfigError, ConfigErrors, Source};
use super::file;
use super::machine::{Machine, default_cache_size};
use super::options::{Options, PlaceOptions};
use super::value::{Form, list};
use super::{Config, Lifetimes, PlaceConfig, RtspUsers, TlsSource};
use crate::rtsp::Users;
use millpond_stream::Bounds;

/// Everything that a configuration is made from.
#[derive(Debug, Clone, Default)]
pub struct Inputs {
    /// Settings given as flags: name without dashes, value.
    pub flags: Vec<(String, String)>,
    /// Places given as arguments.
    pub places: Vec<String>,
    /// The file that `--config` names.
    pub file: Option<PathBuf>,
    /// The environment.
    pub environment: HashMap<String, String>,
}

/// A configuration that holds, and how it came about.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The configuration in force.
    pub config: Config,
    /// Each setting with its value and where that came from.
    pub effective: Vec<Effective>,
    /// What looks like a mistake but is none for certain.
    pub warnings: Vec<String>,
}

/// One setting as it is in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effective {
    /// Name of the setting, or `places`.
    pub name: &'static str,
    /// Its value as TOML; none where it is off.
    pub value: Option<String>,
    /// Where the value was given.
    pub source: Source,
}

/// Loads the configuration, or says all that is wrong with it.
///
/// Reads the file; everything else comes from `inputs` and the machine.
pub fn load(inputs: &Inputs) -> Result<Loaded, ConfigErrors> {
    let mut options = Options::default();
    let mut errors = Vec::new();
    let variable = |name: &str| inputs.environment.get(name).filter(|value| !value.is_empty()).cloned();

    if let Some(path) = inputs.file.clone().or_else(|| variable("MILLPOND_CONFIG").map(PathBuf::from)) {
        match std::fs::read_to_string(&path) {
            Ok(text) => errors.extend(file::read(&path, &text, &mut options)),
            Err(error) => errors.push(ConfigError::Unreadable { path, reason: error.to_string() }),
        }
    }
    for setting in SETTINGS {
        let name = setting.variable();
        if let Some(text) = variable(&name) {
            apply(setting, &text, Source::Environment(name), &mut options, &mut errors);
        }
    }
    if let Some(text) = variable("MILLPOND_PLACES") {
        let source = Source::Environment("MILLPOND_PLACES".to_owned());
        options.places = list(&text).into_iter().map(|text| PlaceOptions::new(text, source.clone())).collect();
    }
    for (name, text) in &inputs.flags {
        let source = Source::Flag(format!("--{name}"));
        match Setting::find(name) {
            Some(setting) => apply(setting, text, source, &mut options, &mut errors),
            None => errors.push(ConfigError::UnknownKey {
                at: source,
                key: name.clone(),
                nearest: nearest(name, SETTINGS.iter().map(|s| s.name)),
            }),
        }
    }
    if !inputs.places.is_empty() {
        let source = Source::Flag("argument".to_owned());
        options.places = inputs.places.iter().map(|text| PlaceOptions::new(text, source.clone())).collect();
    }

    let sources = options.sources.clone();
    let given = options.places.clone();
    let (config, conflicts) = resolve(options, &Machine::detect(), &variable);
    errors.extend(conflicts);
    if !errors.is_empty() {
        return Err(ConfigErrors(errors));
    }
    let mut effective: Vec<_> = SETTINGS
        .iter()
        .map(|setting| Effective {
            name: setting.name,
            value: (setting.show)(&config).map(|text| toml_literal(setting.form, &text)),
            source: sources.get(setting.name).cloned().unwrap_or_default(),
        })
        .collect();
    effective.extend(config.places.iter().zip(given).map(|(place, given)| Effective {
        name: "places",
        value: Some(toml_literal(Form::Text, &place_text(&place.spec))),
        source: given.source,
    }));
    let mut warnings = strangers(&inputs.environment);
    warnings.extend(open_http(&config));
    Ok(Loaded { config, effective, warnings })
}

fn apply(setting: &'static Setting, text: &str, at: Source, options: &mut Options, errors: &mut Vec<ConfigError>) {
    match (setting.apply)(options, text) {
        Ok(()) => {
            options.sources.insert(setting.name, at);
        }
        Err(bad) => errors.push(ConfigError::Value {
            at,
            key: setting.name.to_owned(),
            expected: bad.expected,
            found: format!("{text:?}"),
        }),
    }
}

/// Completes options by defaults and checks that they go together. `variable` reads the environment.
pub fn resolve(
    mut options: Options,
    machine: &Machine,
    variable: &dyn Fn(&str) -> Option<String>,
) -> (Config, Vec<ConfigError>) {
    let mut errors = Vec::new();
    let hidden_files = options.hidden_files.unwrap_or(false);
    let lifetimes = Lifetimes::default().with(&options);
    let mut places = places(std::mem::take(&mut options.places), lifetimes, &mut errors);
    for place in &mut places {
        place.options.hidden_files.get_or_insert(hidden_files);
    }
    let tls = tls(&options, &mut errors);
    let mut secure = |name: &str, given: Option<SocketAddr>, port| match (given, &tls) {
        (given, Some(_)) => Some(given.unwrap_or_else(|| any_address(port))),
        (None, None) => None,
        (Some(_), None) => {
            errors.push(ConfigError::Conflict {
                at: options.source(name),
                reason: format!("{name} needs a certificate: set tls-cert and tls-key, or tls-self-signed"),
            });
            None
        }
    };
    let https = secure("https", options.https, 8443);
    let rtsps = secure("rtsps", options.rtsps, 8322);
    let rtsp_users = users(&options, &mut errors);
    let seconds = Duration::from_secs;
    let cache = options.cache.take().unwrap_or_else(|| cache_folder(variable));
    let bits = |mbps: u64| (mbps > 0).then(|| mbps.saturating_mul(1_000_000));
    let rtsp_sessions = options.rtsp_sessions.unwrap_or(16_384);
    let config = Config {
        places,
        http: options.http.unwrap_or_else(|| any_address(8080)),
        https,
        rtsp: options.rtsp.unwrap_or_else(|| SocketAddr::from((Ipv4Addr::UNSPECIFIED, 8554))),
        rtsps,
        rtsp_users,
        rtsp_window: options.rtsp_window.unwrap_or(seconds(10)),
        rtsp_lateness: options.rtsp_lateness.unwrap_or_default(),
        rtsp_bounds: Bounds {
            sessions: rtsp_sessions,
            sessions_per_client: options.rtsp_sessions_per_client.unwrap_or((rtsp_sessions / 2).max(1)),
            waiting_per_client: options.rtsp_waiting_per_client.unwrap_or(2048),
            bandwidth: options.rtsp_mbps.and_then(bits),
            origin_bandwidth: options.rtsp_origin_mbps.and_then(bits),
        },
        rtsp_channels: options.rtsp_channels.take().unwrap_or_default(),
        rtsp_multicast: options.rtsp_multicast,
        rtsp_overflow: options.rtsp_overflow.take(),
        admin: options.admin.unwrap_or_else(|| SocketAddr::from((Ipv4Addr::LOCALHOST, 9090))),
        admin_hosts: options.admin_hosts.take().unwrap_or_default(),
        record: std::mem::take(&mut options.record),
        hidden_files,
        cache_size: options.cache_size.unwrap_or_else(|| default_cache_size(&cache)),
        cache,
        workers: options.workers.unwrap_or(machine.cores),
        slice: options.slice.unwrap_or(512 << 10),
        policy: options.policy.unwrap_or_default(),
        prefetch: options.prefetch.unwrap_or(Mode::Active),
        memory: options.memory.unwrap_or_else(|| machine.default_memory()),
        segment_duration: options.segment_duration.unwrap_or(seconds(4)),
        lifetimes,
        log: options.log.take().unwrap_or_else(|| "info".to_owned()),
        log_format: options.log_format.unwrap_or_default(),
        access_log: options.access_log.unwrap_or(true),
        tls,
        max_connections: options.max_connections.unwrap_or_else(|| machine.default_connections()),
        idle_timeout: options.idle_timeout.unwrap_or(seconds(75)),
        request_timeout: options.request_timeout.unwrap_or(seconds(10)),
        write_timeout: options.write_timeout.unwrap_or(seconds(60)),
        shutdown_grace: options.shutdown_grace.unwrap_or(seconds(30)),
        cors_origin: match options.cors_origin.take().as_deref() {
            None => Some("*".to_owned()),
            Some("" | "off" | "none") => None,
            Some(origin) => Some(origin.to_owned()),
        },
    };
    same_address(&config, &options, &mut errors);
    multicast(&config, &options, &mut errors);
    (config, errors)
}

fn any_address(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::UNSPECIFIED, port))
}

/// The XDG base directory specification: a relative path in the variable is to be ignored.
fn cache_folder(variable: &dyn Fn(&str) -> Option<String>) -> PathBuf {
    let folder = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    folder("XDG_CACHE_HOME")
        .or_else(|| folder("HOME").map(|home| home.join(".cache")))
        .unwrap_or_else(std::env::temp_dir)
        .join("millpond")
}

fn tls(options: &Options, errors: &mut Vec<ConfigError>) -> Option<TlsSource> {
    let self_signed = options.tls_self_signed == Some(true);
    let mut conflict = |name: &str, reason: &str| {
        errors.push(ConfigError::Conflict { at: options.source(name), reason: reason.to_owned() });
        None
    };
    match (&options.tls_cert, &options.tls_key) {
        (Some(_), _) if self_signed => {
            conflict("tls-self-signed", "tls-self-signed and tls-cert exclude each other: drop one")
        }
        (Some(cert), Some(key)) => Some(TlsSource::Files { cert: cert.clone(), key: key.clone() }),
        (Some(_), None) => conflict("tls-cert", "tls-cert needs tls-key, the file with its private key"),
        (None, Some(_)) => conflict("tls-key", "tls-key needs tls-cert, the file with its certificate"),
        (None, None) => self_signed.then_some(TlsSource::SelfSigned),
    }
}

fn users(options: &Options, errors: &mut Vec<ConfigError>) -> Option<RtspUsers> {
    let path = options.rtsp_users.clone()?;
    let mut wrong = |reason| {
        errors.push(ConfigError::File {
            at: options.source("rtsp-users"),
            key: "rtsp-users",
            path: path.clone(),
            reason,
        });
    };
    match Users::read(&path) {
        Ok(users) => Some(RtspUsers { path, users }),
        Err(all) => {
            all.iter().for_each(|error| wrong(error.to_string()));
            None
        }
    }
}

fn multicast(config: &Config, options: &Options, errors: &mut Vec<ConfigError>) {
    let Some(groups) = config.rtsp_multicast else { return };
    let channels = config.rtsp_channels.len();
    let reason = match channels.checked_sub(1) {
        _ if config.rtsp.is_ipv6() => format!("rtsp-multicast is over IPv4, but rtsp is {}", config.rtsp),
        None => "rtsp-multicast is for channels: name assets in rtsp-channels".to_owned(),
        Some(last) if groups.address(last).is_none() => {
            format!("the group of channel {channels} lies behind 239.255.255.255: begin lower")
        }
        Some(_) => return,
    };
    errors.push(ConfigError::Conflict { at: options.source("rtsp-multicast"), reason });
}

fn same_address(config: &Config, options: &Options, errors: &mut Vec<ConfigError>) {
    let listeners = [
        ("http", Some(config.http)),
        ("https", config.https),
        ("admin", Some(config.admin)),
        ("rtsp", Some(config.rtsp)),
        ("rtsps", config.rtsps),
    ];
    for (n, (name, address)) in listeners.iter().enumerate() {
        for (other, taken) in &listeners[..n] {
            if address.is_some_and(|address| address.port() != 0) && address == taken {
                errors.push(ConfigError::Conflict {
                    at: options.source(name),
                    reason: format!("{name} and {other} can't both listen on {}", address.unwrap_or(config.http)),
                });
            }
        }
    }
}

fn places(given: Vec<PlaceOptions>, lifetimes: Lifetimes, errors: &mut Vec<ConfigError>) -> Vec<PlaceConfig> {
    let several = given.len() > 1;
    let mut places: Vec<PlaceConfig> = Vec::new();
    for place in given {
        let key_address = place.key_address();
        match named(&place, several, &places).and_then(|spec| Ok((spec, key_address?))) {
            Ok((spec, key_address)) => {
                let lifetimes = lifetimes.with(&place.own);
                places.push(PlaceConfig { spec, options: place.options, key_address, lifetimes });
            }
            Err(reason) => errors.push(ConfigError::Place { at: place.source, reason }),
        }
    }
    places
}

/// The place with a name that no other has. One of several that was given none is called as the last part of its
/// location.
fn named(place: &PlaceOptions, several: bool, others: &[PlaceConfig]) -> Result<PlaceSpec, String> {
    let mut spec = place.spec()?;
    if several && spec.name.is_empty() {
        let location = spec.source.to_string();
        let last = location.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        // Parsing says whether it can be a name.
        spec.name = PlaceSpec::parse(&format!("{last}=.")).map(|spec| spec.name).unwrap_or_default();
        if spec.name.is_empty() {
            return Err(format!("with several places each needs a name: write NAME={location}"));
        }
    }
    match others.iter().find(|other| other.spec.name == spec.name) {
        Some(other) => {
            Err(format!("the name {:?} is taken by {}: write NAME={}", spec.name, other.spec.source, spec.source))
        }
        None => Ok(spec),
    }
}

/// Says that passwords of RTSP protect nothing from those who ask by HTTP.
fn open_http(config: &Config) -> Option<String> {
    let users = config.rtsp_users.as_ref()?;
    // From this machine alone, as behind a proxy that asks for passwords itself.
    let is_open = |address: SocketAddr| !address.ip().to_canonical().is_loopback();
    let open = [Some(config.http), config.https].into_iter().flatten().find(|address| is_open(*address))?;
    Some(format!(
        "rtsp-users {} is asked for by RTSP only: everybody who reaches {open} plays the same media by HTTP",
        users.path.display()
    ))
}

/// Environment variables that look like misspelt settings.
///
/// They can't be errors: Kubernetes sets `MILLPOND_PORT` and the like for a service called millpond.
fn strangers(environment: &HashMap<String, String>) -> Vec<String> {
    let known: Vec<String> = SETTINGS.iter().map(|setting| setting.name.to_owned()).collect();
    let mut warnings: Vec<_> = environment
        .keys()
        .filter_map(|variable| {
            let name = variable.strip_prefix("MILLPOND_")?.to_ascii_lowercase().replace('_', "-");
            let extra = ["places", "config"];
            if Setting::find(&name).is_some() || extra.contains(&name.as_str()) || from_kubernetes(&name) {
                return None;
            }
            let meant = nearest(&name, known.iter().map(String::as_str).chain(extra))?;
            let meant = meant.replace('-', "_").to_ascii_uppercase();
            Some(format!("${variable} is not a setting; did you mean $MILLPOND_{meant}?"))
        })
        .collect();
    warnings.sort();
    warnings
}

fn from_kubernetes(name: &str) -> bool {
    name == "port" || name.starts_with("port-") || name.starts_with("service-")
}

/// A place as it is written, without secrets.
fn place_text(spec: &PlaceSpec) -> String {
    if spec.name.is_empty() { spec.source.to_string() } else { format!("{}={}", spec.name, spec.source) }
}

fn toml_literal(form: Form, text: &str) -> String {
    match form {
        Form::Count | Form::Switch => text.to_owned(),
        _ => toml::Value::String(text.to_owned()).to_string(),
    }
}

/// The effective configuration as a file that would bring it about, with the source of each value beside it.
pub fn show(effective: &[Effective], file: Option<&Path>) -> String {
    let mut lines = Vec::new();
    if let Some(file) = file {
        lines.push((format!("# read {}", file.display()), String::new()));
    }
    let (places, settings): (Vec<_>, Vec<_>) = effective.iter().partition(|setting| setting.name == "places");
    for setting in settings {
        lines.push(match &setting.value {
            Some(value) => (format!("{} = {value}", setting.name), setting.source.to_string()),
            None => (format!("# {} is off", setting.name), String::new()),
        });
    }
    if !places.is_empty() {
        lines.push(("places = [".to_owned(), String::new()));
        for place in places {
            let value = place.value.as_deref().unwrap_or_default();
            lines.push((format!("    {value},"), place.source.to_string()));
        }
        lines.push(("]".to_owned(), String::new()));
    }
    let width = lines.iter().map(|(left, _)| left.chars().count()).filter(|n| *n <= 60).max().unwrap_or(0);
    lines
        .into_iter()
        .map(|(left, right)| if right.is_empty() { left + "\n" } else { format!("{left:width$}  # {right}\n") })
        .collect()
}
