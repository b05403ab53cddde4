//! Settings of access. A place may have its own.

use super::Users;
use super::{CorsOrigins, ExternalSettings, key_set::read_file, revoked, token::Parties};
use millpond_settings::{
    At, Host, Network, Setting, Settings,
    value::{self, BadValue, Form, show_duration},
};
use std::{path::PathBuf, time::Duration};
use url::{Host as UrlHost, Url};

/// Settings of access, as they are given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessSettings {
    /// File of users.
    pub users: Option<PathBuf>,
    /// Keys of tokens.
    pub keys: Option<KeySource>,
    /// Issuer and audience that tokens must name.
    pub parties: Parties,
    /// Networks whose clients may play; empty: all.
    pub networks: Vec<Network>,
    /// File with the names of revoked tokens.
    pub revoked: Option<PathBuf>,
    /// The server that decides.
    pub external: ExternalSettings,
    /// Web origins whose pages may play.
    pub cors: CorsOrigins,
}

/// The source of the keys of tokens.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeySource {
    /// A file.
    File(PathBuf),
    /// A server with a JSON Web Key Set.
    Url(Url),
}

impl std::fmt::Display for KeySource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Url(url) => f.write_str(&without_secrets(url)),
        }
    }
}

impl Settings for AccessSettings {
    const LIST: &'static [Setting<Self>] = LIST;
    const OF_PLACES: bool = true;

    fn defaults(_: &Host<'_>) -> Self {
        Self {
            users: None,
            keys: None,
            parties: Parties::default(),
            networks: Vec::new(),
            revoked: None,
            external: ExternalSettings::default(),
            cors: CorsOrigins::All,
        }
    }
}

/// Bounds of `auth-timeout`.
const TIMEOUT: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(60));

const LIST: &[Setting<AccessSettings>] = &[
    Setting {
        name: "access-users",
        form: Form::Path,
        default: "none: no password",
        help: "File of the users that may play by HTTP and RTSP, one name:password a line. They authenticate by \
               Digest, or by Basic over TLS",
        applied: At::Reload,
        apply: |access, text| path(text).map(|v| access.users = v),
        show: |access| access.users.as_ref().map(|path| path.display().to_string()),
    },
    Setting {
        name: "access-tokens",
        form: Form::Text,
        default: "none: no token",
        help: "Keys that verify the tokens (JWT) of clients: a file, or the https URL of a JSON Web Key Set. The file \
               has a secret, PEM public keys or a JSON Web Key Set",
        applied: At::Reload,
        apply: |access, text| key_source(text).map(|v| access.keys = v),
        show: |access| access.keys.as_ref().map(ToString::to_string),
    },
    Setting {
        name: "access-issuer",
        form: Form::Text,
        default: "none: any",
        help: "Issuer (iss) that tokens must name",
        applied: At::Reload,
        apply: |access, text| optional(text).map(|v| access.parties.issuer = v),
        show: |access| access.parties.issuer.clone(),
    },
    Setting {
        name: "access-audience",
        form: Form::Text,
        default: "none: any",
        help: "Audience (aud) that tokens must name",
        applied: At::Reload,
        apply: |access, text| optional(text).map(|v| access.parties.audience = v),
        show: |access| access.parties.audience.clone(),
    },
    Setting {
        name: "access-networks",
        form: Form::List,
        default: "none: all",
        help: "Networks whose clients may play, such as 10.0.0.0/8. The other access rules apply to these clients too",
        applied: At::Reload,
        apply: |access, text| Network::list(text).map(|v| access.networks = v),
        show: |access| Network::show(&access.networks),
    },
    Setting {
        name: "access-revoked",
        form: Form::Path,
        default: "none",
        help: "File of revoked tokens, one name (jti) a line. Changes are read within a minute, or on SIGHUP",
        applied: At::Reload,
        apply: |access, text| path(text).map(|v| access.revoked = v),
        show: |access| access.revoked.as_ref().map(|path| path.display().to_string()),
    },
    Setting {
        name: "auth-url",
        form: Form::Text,
        default: "none: no server is asked",
        help: "URL of a server that decides which clients may play and publish. For each session it gets one POST \
               with user, password, token, ip, action, path, protocol and query as JSON, as MediaMTX sends it. 2xx \
               admits the client, 401 asks for a password",
        applied: At::Reload,
        apply: |access, text| server(text).map(|v| access.external.url = v),
        show: |access| access.external.url.as_ref().map(without_secrets),
    },
    Setting {
        name: "auth-ttl",
        form: Form::Duration,
        default: "1m",
        help: "Time for which an answer of auth-url is kept when it has no Cache-Control",
        applied: At::Reload,
        apply: |access, text| value::duration(text).map(|v| access.external.ttl = v),
        show: |access| Some(show_duration(access.external.ttl)),
    },
    Setting {
        name: "auth-stale",
        form: Form::Duration,
        default: "1h",
        help: "Time for which clients stay admitted while auth-url does not answer",
        applied: At::Reload,
        apply: |access, text| value::duration(text).map(|v| access.external.stale = v),
        show: |access| Some(show_duration(access.external.stale)),
    },
    Setting {
        name: "auth-timeout",
        form: Form::Duration,
        default: "5s",
        help: "Time limit for an answer of auth-url, 100ms to 60s",
        applied: At::Reload,
        apply: |access, text| value::duration_in(text, TIMEOUT.0, TIMEOUT.1).map(|v| access.external.timeout = v),
        show: |access| Some(show_duration(access.external.timeout)),
    },
    Setting {
        name: "cors-origins",
        form: Form::List,
        default: "*",
        help: "Web origins whose pages may play (CORS): \"*\" allows all, \"none\" only this server's own. Pages of \
               listed origins may also send passwords that the browser keeps",
        applied: At::Reload,
        apply: |access, text| CorsOrigins::parse(text).map(|v| access.cors = v),
        show: |access| Some(access.cors.show()),
    },
];

/// Value by which a place is open although the server has rules.
const NONE: &str = "none";

fn optional(text: &str) -> Result<Option<String>, BadValue> {
    match text {
        "" => Err(BadValue::new("text that is not empty, or \"none\"")),
        NONE => Ok(None),
        text => Ok(Some(text.to_owned())),
    }
}

fn path(text: &str) -> Result<Option<PathBuf>, BadValue> {
    if text == NONE { Ok(None) } else { value::path(text).map(Some) }
}

fn server(text: &str) -> Result<Option<Url>, BadValue> {
    if text == NONE {
        return Ok(None);
    }
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    url.map(Some).ok_or_else(|| BadValue::new("a URL such as \"https://login.example/auth\", or \"none\""))
}

/// A URL for people to read: it may have a password or a key in its query.
fn without_secrets(url: &Url) -> String {
    let mut url = url.clone();
    let _ = (url.set_username(""), url.set_password(None));
    url.set_query(None);
    url.to_string()
}

/// Whether a URL is that of this machine.
fn is_here(url: &Url) -> bool {
    match url.host() {
        Some(UrlHost::Domain(name)) => name == "localhost",
        Some(UrlHost::Ipv4(address)) => address.is_loopback(),
        Some(UrlHost::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

fn key_source(text: &str) -> Result<Option<KeySource>, BadValue> {
    if text == NONE {
        return Ok(None);
    }
    if !text.contains("://") {
        return value::path(text).map(|path| Some(KeySource::File(path)));
    }
    let bad = || BadValue::new("a file, or a URL of https; of http only on this machine");
    let url = Url::parse(text).map_err(|_| bad())?;
    if url.scheme() == "https" || (url.scheme() == "http" && is_here(&url)) {
        Ok(Some(KeySource::Url(url)))
    } else {
        Err(bad())
    }
}

impl AccessSettings {
    /// The faults of its files: setting, file and reason.
    pub fn faults(&self) -> Vec<(&'static str, PathBuf, String)> {
        let mut faults = Vec::new();
        if let Some(path) = &self.users
            && let Err(all) = Users::read(path)
        {
            faults.extend(all.iter().map(|error| ("access-users", path.clone(), error.to_string())));
        }
        if let Some(KeySource::File(path)) = &self.keys
            && let Err(why) = read_file(path)
        {
            faults.push(("access-tokens", path.clone(), why));
        }
        if let Some(path) = &self.revoked
            && let Err(why) = revoked::read(path)
        {
            faults.push(("access-revoked", path.clone(), why));
        }
        faults
    }

    /// The host of `auth-url`, where it is another machine and asked by plain HTTP.
    pub fn asks_in_plain(&self) -> Option<String> {
        let url = self.external.url.as_ref().filter(|url| url.scheme() == "http" && !is_here(url))?;
        url.host_str().map(str::to_owned)
    }

    /// Two settings of which only one can be asked for a name and a password.
    pub fn conflict(&self) -> Option<(&'static str, String)> {
        let both = self.users.is_some() && self.external.url.is_some();
        let reason = "auth-url and access-users both decide on names and passwords: set one of them to \"none\"";
        both.then(|| ("auth-url", reason.to_owned()))
    }

    /// Whether clients need a user, a token or the admission of another server.
    pub fn asks_credentials(&self) -> bool {
        self.users.is_some() || self.keys.is_some() || self.external.url.is_some()
    }

    /// Whether it has no rules.
    pub fn is_open(&self) -> bool {
        !self.asks_credentials() && self.networks.is_empty()
    }
}
