//! From what was given to what runs: sources in their order, defaults, and whether settings go together.

use super::{
    AccessSettings, BadValue, Config, ConfigError, ConfigErrors, Declaration, Form, Given, GivenKey, Host, PlaceConfig,
    PlaceOptions, Source, Stated,
    exclusive::is_excluded,
    file,
    found::{explained, found_text, without_secrets},
    machine::Machine,
    schedules,
    show::{place_text, toml_literal},
    value::list,
};
use millpond_place::PlaceSpec;
use millpond_settings::{Sources, absent, nearest};
use millpond_store::{OptionFault, OriginOptions};
use std::{
    collections::{HashMap, HashSet},
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
};

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
    /// Text in place of the content of the file, which is not read then.
    pub text: Option<String>,
}

impl Inputs {
    /// The configuration file: that of the flag, else that of the environment.
    pub fn config_file(&self) -> Option<PathBuf> {
        let named = || self.environment.get("MILLPOND_CONFIG").filter(|name| !name.is_empty()).map(PathBuf::from);
        self.file.clone().or_else(named)
    }
}

/// A configuration that holds, and how it came about.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The configuration in force.
    pub config: Config,
    /// Each setting with its value and where that came from.
    pub effective: Vec<Effective>,
    /// The keys of each place's table, in the order of the places.
    pub own: Vec<Vec<Effective>>,
    /// Findings that are probably, but not certainly, mistakes.
    pub warnings: Vec<String>,
}

impl Loaded {
    /// Where the value of a setting was given.
    pub fn source(&self, name: &str) -> Source {
        self.effective
            .iter()
            .find(|setting| setting.name == name)
            .map(|setting| setting.source.clone())
            .unwrap_or_default()
    }

    /// Makes the shown values those of the configuration, which has changed.
    pub(crate) fn show_again(&mut self) {
        let forms: HashMap<_, _> = Config::settings().iter().map(|setting| (setting.name, setting.form)).collect();
        for setting in &mut self.effective {
            if let Some(form) = forms.get(setting.name) {
                setting.value = self.config.value(setting.name).map(|text| toml_literal(*form, &text));
            }
        }
    }
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
    let variable = |name: &str| inputs.environment.get(name).filter(|value| !value.is_empty()).cloned();
    let mut config = Config::new(&Host { machine: Machine::detect(), variable: &variable });
    let mut given = Given::default();
    let mut errors = read(inputs, &variable, &mut config, &mut given);
    let places = given.places.clone();
    errors.extend(resolve(&mut config, given.places, &given.sources));
    if !errors.is_empty() {
        return Err(ConfigErrors(errors));
    }
    let own = places.iter().map(own).collect();
    let effective = effective(&config, &given.sources, places);
    let mut warnings = strangers(&inputs.environment);
    warnings.extend(open_http(&config));
    warnings.extend(plain_questions(&config));
    warnings.extend(open_admin(&config));
    Ok(Loaded { config, effective, own, warnings })
}

/// Reads file, environment and flags, in this order; returns all that is wrong with them.
fn read(
    inputs: &Inputs,
    variable: &dyn Fn(&str) -> Option<String>,
    config: &mut Config,
    given: &mut Given,
) -> Vec<ConfigError> {
    let mut errors = Vec::new();
    if let Some(path) = inputs.config_file() {
        match inputs.text.clone().map_or_else(|| millpond_settings::files::read_text(&path), Ok) {
            Ok(text) => errors.extend(file::read(&path, &text, config, given)),
            Err(error) => errors.push(ConfigError::Unreadable { path, reason: error.to_string() }),
        }
    }
    for setting in Config::settings().into_iter().filter(|setting| !is_excluded(setting.name, &inputs.flags)) {
        let name = setting.variable();
        if let Some(text) = variable(&name) {
            errors.extend(apply(setting, &text, Source::Environment(name), config, given));
        }
    }
    if let Some(text) = variable("MILLPOND_PLACES") {
        let source = Source::Environment("MILLPOND_PLACES".to_owned());
        given.places = list(&text).into_iter().map(|text| PlaceOptions::new(text, source.clone())).collect();
    }
    for (name, text) in &inputs.flags {
        let source = Source::Flag(format!("--{name}"));
        match Config::find(name) {
            Some(setting) => errors.extend(apply(setting, text, source, config, given)),
            None => errors.push(ConfigError::UnknownKey {
                at: source,
                key: name.clone(),
                nearest: nearest(name, Config::settings().iter().map(|s| s.name)),
            }),
        }
    }
    if !inputs.places.is_empty() {
        let source = Source::Flag("argument".to_owned());
        given.places = inputs.places.iter().map(|text| PlaceOptions::new(text, source.clone())).collect();
    }
    errors
}

fn apply(setting: Declaration, text: &str, at: Source, config: &mut Config, given: &mut Given) -> Option<ConfigError> {
    match config.apply(setting.name, text)? {
        Ok(()) => {
            given.sources.insert(setting.name, at);
            None
        }
        Err(bad) => {
            let BadValue { expected, nearest } = explained(&setting, bad, text).for_text(setting.form, text);
            let (key, found) = (setting.name.to_owned(), found_text(text));
            Some(ConfigError::Value { at, key, expected, found, nearest })
        }
    }
}

fn effective(config: &Config, sources: &Sources, given: Vec<PlaceOptions>) -> Vec<Effective> {
    let of = |setting: Declaration| Effective {
        name: setting.name,
        value: config.value(setting.name).map(|text| toml_literal(setting.form, &text)),
        source: sources.of(setting.name),
    };
    let mut effective: Vec<_> = Config::settings().into_iter().map(of).collect();
    effective.extend(config.places.iter().zip(given).map(|(place, given)| Effective {
        name: "places",
        value: Some(toml_literal(Form::Text, &place_text(&place.spec))),
        source: given.source,
    }));
    effective
}

/// The keys of a place's table, without secrets.
fn own(place: &PlaceOptions) -> Vec<Effective> {
    let of = |given: &GivenKey| Effective {
        name: given.name,
        value: Some(toml_literal(given.form, &without_secrets(given.name, &given.text))),
        source: given.source.clone(),
    };
    place.keys.iter().map(of).collect()
}

/// Completes the configuration by defaults that depend on settings, and checks that settings go together.
fn resolve(config: &mut Config, given: Vec<PlaceOptions>, sources: &Sources) -> Vec<ConfigError> {
    let mut errors = Vec::new();
    config.places = places(given, config, &mut errors);
    errors.extend(unusable(config, sources));
    errors.extend(both_decide(config, sources));
    errors.extend(schedules::errors(config, sources));
    errors.extend(config.complete(sources));
    let is_secure = config.tls.source().is_some();
    for (name, address, port) in [("https", &mut config.http.https, 8443), ("rtsps", &mut config.rtsp.rtsps, 8322)] {
        if is_secure {
            address.get_or_insert(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)));
        } else if address.take().is_some() {
            let reason = format!("{name} needs a certificate: set tls-cert and tls-key, or tls-self-signed");
            errors.push(sources.conflict(name, reason));
        }
    }
    if !is_secure && config.rtmp.rtmps.take().is_some() {
        let reason = "rtmps needs a certificate: set tls-cert and tls-key, or tls-self-signed".to_owned();
        errors.push(sources.conflict("rtmps", reason));
    }
    same_address(config, sources, &mut errors);
    errors
}

impl Config {
    /// The addresses to listen on, each with its setting.
    pub(crate) fn listeners(&self) -> [(&'static str, Option<SocketAddr>); 10] {
        [
            ("http", Some(self.http.address)),
            ("https", self.http.https),
            ("admin", self.admin.address.tcp()),
            ("rtsp", Some(self.rtsp.address)),
            ("rtsps", self.rtsp.rtsps),
            ("rtmp", self.rtmp.address),
            ("rtmps", self.rtmp.rtmps),
            ("webrtc-tcp", self.webrtc.tcp.filter(|_| self.webrtc.address.is_some())),
            ("cluster-node-listen", self.cluster.node_listen.filter(|_| self.cluster.is_on())),
            ("intercept", self.intercept.address),
        ]
    }
}

fn same_address(config: &Config, sources: &Sources, errors: &mut Vec<ConfigError>) {
    let listeners = config.listeners();
    for (n, (name, address)) in listeners.iter().enumerate() {
        for (other, taken) in &listeners[..n] {
            if let Some(address) = address.filter(|address| address.port() != 0 && Some(*address) == *taken) {
                errors.push(sources.conflict(name, format!("{name} and {other} can't both listen on {address}")));
            }
        }
    }
}

fn places(given: Vec<PlaceOptions>, config: &Config, errors: &mut Vec<ConfigError>) -> Vec<PlaceConfig> {
    let several = given.len() > 1;
    let mut places: Vec<PlaceConfig> = Vec::new();
    for place in given {
        let key_address = place.key_address();
        let spec = named(&place, several, &places);
        let key = if spec.is_ok() { "key-format" } else { "url" };
        match spec.and_then(|spec| Ok((spec, key_address?))) {
            Ok((spec, key_address)) => {
                let faults = spec.faults(&place.options);
                let sources: Vec<_> = faults.iter().map(|fault| place.at(fault.key)).collect();
                errors.extend(unstriped(&place));
                let place = PlaceConfig {
                    spec,
                    options: OriginOptions {
                        hidden_files: place.hidden_files.unwrap_or(config.storage.hidden_files),
                        ..place.options
                    },
                    titles: place.titles,
                    key_address,
                    lifetimes: place.own.lifetimes.over(config.lifetimes),
                    manifests: place.own.manifests.over(config.manifests.clone()),
                    has_own_filter: place.keys.iter().any(|given| given.name == "filter"),
                    access: place.own.access.over(config.access.clone()),
                    live: place.own.live.over(config.live),
                    ladders: place.ladders,
                    at: Stated(place.source),
                };
                let named = place.in_errors();
                errors.extend(faults.iter().zip(sources).map(|(fault, at)| place_fault(&named, fault, at)));
                places.push(place);
            }
            Err(reason) => errors.push(ConfigError::Place { at: place.at(key), reason }),
        }
    }
    places
}

/// Refuses the stores of striped objects in a program that can't read them.
fn unstriped(place: &PlaceOptions) -> Option<ConfigError> {
    let is_refused = !place.options.striping.stores.is_empty() && !cfg!(feature = "stripe");
    is_refused.then(|| ConfigError::Place { at: place.at("stripe-over"), reason: absent("stripe-over", "stripe") })
}

/// The fault of an option of a place. A variable of the environment is named by its own place.
fn place_fault(place: &str, fault: &OptionFault, at: Source) -> ConfigError {
    let OptionFault { expected, found, cure, .. } = fault;
    let reason = match &at {
        Source::Environment(_) => format!("{place}expected {expected}, found {found}: {cure}"),
        _ => format!("{place}{fault}"),
    };
    ConfigError::Place { at, reason }
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

/// Files of users and of keys that can't be used.
fn unusable(config: &Config, sources: &Sources) -> Vec<ConfigError> {
    let mut seen = HashSet::new();
    let all = config.places.iter().map(|place| &place.access).chain([&config.access]);
    all.flat_map(AccessSettings::faults)
        .filter(|(_, path, _)| seen.insert(path.clone()))
        .map(|(key, path, reason)| ConfigError::File { at: sources.of(key), key, path, reason })
        .collect()
}

/// Places whose access settings do not go together.
fn both_decide(config: &Config, sources: &Sources) -> Option<ConfigError> {
    let mut all = config.places.iter().map(|place| &place.access).chain([&config.access]);
    let (key, reason) = all.find_map(AccessSettings::conflict)?;
    Some(sources.conflict(key, reason))
}

/// Says that passwords of RTSP protect nothing from those who ask by HTTP.
fn open_http(config: &Config) -> Option<String> {
    let users = config.rtsp.users.as_ref()?;
    // Networks alone ask nobody for a password.
    let mut all = config.places.iter().map(|place| &place.access).chain([&config.access]);
    if all.all(AccessSettings::asks_credentials) {
        return None;
    }
    // From this machine alone, as behind a proxy that asks for passwords itself.
    let is_open = |address: SocketAddr| !address.ip().to_canonical().is_loopback();
    let open =
        [Some(config.http.address), config.http.https].into_iter().flatten().find(|address| is_open(*address))?;
    Some(format!(
        "rtsp-users {} protects RTSP only: everyone who reaches {open} can play the same media by HTTP",
        users.path.display()
    ))
}

/// Warns that everybody who reaches the admin address may change the server.
fn open_admin(config: &Config) -> Option<String> {
    let address = config.admin.address.tcp().filter(|address| !address.ip().to_canonical().is_loopback())?;
    let why =
        format!("everybody who reaches admin {address} may change settings, places and sessions: set admin-token-file");
    config.admin.token.is_none().then_some(why)
}

/// Says that passwords and tokens are sent to the server of `auth-url` as they are.
fn plain_questions(config: &Config) -> Option<String> {
    let mut all = config.places.iter().map(|place| &place.access).chain([&config.access]);
    let host = all.find_map(AccessSettings::asks_in_plain)?;
    Some(format!(
        "auth-url sends passwords and tokens to {host} by plain HTTP: everyone on the network path can read \
                  them"
    ))
}

/// Environment variables that look like misspelt settings.
///
/// They can't be errors: Kubernetes sets `MILLPOND_PORT` and the like for a service called millpond.
fn strangers(environment: &HashMap<String, String>) -> Vec<String> {
    let known: Vec<_> = Config::settings().iter().map(|setting| setting.name).collect();
    let mut warnings: Vec<_> = environment
        .keys()
        .filter_map(|variable| {
            let name = variable.strip_prefix("MILLPOND_")?.to_ascii_lowercase().replace('_', "-");
            let extra = ["places", "config", "cluster-password"];
            if known.contains(&name.as_str()) || extra.contains(&name.as_str()) || from_kubernetes(&name) {
                return None;
            }
            let meant = nearest(&name, known.iter().copied().chain(extra))?;
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
