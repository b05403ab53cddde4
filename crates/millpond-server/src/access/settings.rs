//! Settings of access. A place may have its own.

use super::{key_set::read_file, token::Parties};
use crate::intercept::Network;
use crate::rtsp::Users;
use crate::settings::{
    Host, Setting, Settings,
    value::{self, BadValue, Form},
};
use std::{net::IpAddr, path::PathBuf};
use url::{Host as UrlHost, Url};

/// Settings of access, as they are given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessSettings {
    /// File of users.
    pub users: Option<PathBuf>,
    /// Keys of tokens.
    pub keys: Option<KeySource>,
    /// Issuer and audience that tokens must name.
    pub parties: Parties,
    /// Networks whose clients may play; empty: all.
    pub networks: Vec<Network>,
}

/// Where keys of tokens are.
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
            Self::Url(url) => write!(f, "{url}"),
        }
    }
}

impl Settings for AccessSettings {
    const LIST: &'static [Setting<Self>] = LIST;

    fn defaults(_: &Host<'_>) -> Self {
        Self::default()
    }
}

const LIST: &[Setting<AccessSettings>] = &[
    Setting {
        name: "access-users",
        form: Form::Path,
        default: "none: no password",
        help: "File of users that may play by HTTP and RTSP, in lines of name:password, for Digest authentication, and for Basic over \
               TLS; a place may have its own value",
        apply: |access, text| path(text).map(|v| access.users = v),
        show: |access| access.users.as_ref().map(|path| path.display().to_string()),
    },
    Setting {
        name: "access-tokens",
        form: Form::Text,
        default: "none: no token",
        help: "Keys of the tokens (JWT) with which clients may play: a file with a secret, public keys in PEM or a JSON Web Key Set, or \
               the https URL of such a set; a place may have its own value",
        apply: |access, text| key_source(text).map(|v| access.keys = v),
        show: |access| access.keys.as_ref().map(ToString::to_string),
    },
    Setting {
        name: "access-issuer",
        form: Form::Text,
        default: "none: any",
        help: "Issuer (iss) that tokens must name; a place may have its own value",
        apply: |access, text| optional(text).map(|v| access.parties.issuer = v),
        show: |access| access.parties.issuer.clone(),
    },
    Setting {
        name: "access-audience",
        form: Form::Text,
        default: "none: any",
        help: "Audience (aud) that tokens must name; a place may have its own value",
        apply: |access, text| optional(text).map(|v| access.parties.audience = v),
        show: |access| access.parties.audience.clone(),
    },
    Setting {
        name: "access-networks",
        form: Form::List,
        default: "none: all",
        help: "Networks whose clients may play, such as 10.0.0.0/8, besides what else is asked of them; a place may have its own value",
        apply: |access, text| networks(text).map(|v| access.networks = v),
        show: |access| {
            let shown: Vec<_> = access.networks.iter().map(ToString::to_string).collect();
            (!shown.is_empty()).then(|| shown.join(","))
        },
    },
];

/// A place opens what the server closes by this word.
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

fn key_source(text: &str) -> Result<Option<KeySource>, BadValue> {
    if text == NONE {
        return Ok(None);
    }
    if !text.contains("://") {
        return value::path(text).map(|path| Some(KeySource::File(path)));
    }
    let bad = || BadValue::new("a file, or a URL of https; of http only on this machine");
    let url = Url::parse(text).map_err(|_| bad())?;
    let is_here = match url.host() {
        Some(UrlHost::Domain(name)) => name == "localhost",
        Some(UrlHost::Ipv4(address)) => IpAddr::from(address).is_loopback(),
        Some(UrlHost::Ipv6(address)) => IpAddr::from(address).is_loopback(),
        None => false,
    };
    if url.scheme() == "https" || (url.scheme() == "http" && is_here) {
        Ok(Some(KeySource::Url(url)))
    } else {
        Err(bad())
    }
}

fn networks(text: &str) -> Result<Vec<Network>, BadValue> {
    if text == NONE {
        return Ok(Vec::new());
    }
    let parsed = value::list(text).iter().map(|text| Network::parse(text)).collect::<Option<Vec<_>>>();
    parsed.ok_or_else(|| BadValue::new("networks such as \"10.0.0.0/8\" and \"2001:db8::/32\", or \"none\""))
}

impl AccessSettings {
    /// The faults of its files: setting, file and reason.
    pub(crate) fn faults(&self) -> Vec<(&'static str, PathBuf, String)> {
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
        faults
    }

    /// Whether everybody may play.
    pub fn is_open(&self) -> bool {
        self.users.is_none() && self.keys.is_none() && self.networks.is_empty()
    }
}
