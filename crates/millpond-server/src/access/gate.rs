//! Applies the rules of places to requests.

use super::{
    AccessMetrics, AccessSettings,
    key_set::{KeySet, Unread},
    token::{PARAMETERS, TokenError},
};
use crate::{
    http::request::uri::parameter,
    intercept::Network,
    library::Places,
    rtsp::{Access, HttpClient, HttpRefusal, RtspUsers, Users},
};
use std::{
    collections::HashMap,
    io,
    net::IpAddr,
    path::PathBuf,
    sync::Arc,
    time::{Duration, SystemTime},
};
use tokio::sync::watch;

/// The rules of all places.
#[derive(Debug)]
pub(crate) struct Gates {
    places: Places,
    /// For paths outside of all places, such as channels: the rules of the server.
    outside: Option<Arc<Gate>>,
    /// By number of place; `None` for those that are open.
    of: Vec<Option<Arc<Gate>>>,
}

/// The rules of a place.
#[derive(Debug)]
pub(crate) struct Gate {
    users: Option<Arc<Access>>,
    keys: Option<Arc<KeySet>>,
    networks: Vec<Network>,
    metrics: AccessMetrics,
}

/// A request by HTTP, with its credentials.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Viewer<'a> {
    /// The client.
    pub(crate) address: IpAddr,
    /// The token in the path.
    pub(crate) token: Option<&'a str>,
    /// The query.
    pub(crate) query: &'a str,
    /// Whether the connection has TLS.
    pub(crate) is_secure: bool,
    /// Method.
    pub(crate) method: &'a str,
    /// Path and query as the client wrote them.
    pub(crate) target: &'a str,
    /// Value of `Authorization`.
    pub(crate) authorization: Option<&'a str>,
}

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The client is in none of the networks.
    Network,
    /// The path has components such as `..`, which could lead out of a token's paths.
    Dots,
    /// The token is refused.
    Token(TokenError),
    /// Credentials are needed, or other ones. The values of `WWW-Authenticate` follow.
    Credentials(Vec<String>),
    /// The credentials can't be read.
    Malformed(String),
    /// The keys of tokens have not been read yet.
    NoKeys,
}

impl Refusal {
    /// Labels of all reasons.
    pub(super) const LABELS: [&'static str; 6] = ["network", "path", "token", "credentials", "malformed", "keys"];

    /// Label of a reason.
    pub(super) fn label(&self) -> &'static str {
        let [network, path, token, credentials, malformed, keys] = Self::LABELS;
        match self {
            Self::Network => network,
            Self::Dots => path,
            Self::Token(_) => token,
            Self::Credentials(_) => credentials,
            Self::Malformed(_) => malformed,
            Self::NoKeys => keys,
        }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Network => f.write_str("clients of this network may not play this"),
            Self::Dots => f.write_str("the path has a component of dots"),
            Self::Token(error) => error.fmt(f),
            Self::Credentials(_) => f.write_str("this needs a token or a password"),
            Self::Malformed(why) => f.write_str(why),
            Self::NoKeys => f.write_str("the keys of tokens could not be read yet"),
        }
    }
}

/// Decision on a request by RTSP.
#[derive(Debug)]
pub(crate) enum RtspDecision {
    /// Nothing: the path has no rules.
    Open,
    /// Nothing more.
    Admitted,
    /// A user's name and password.
    Users(Arc<Access>),
    /// It is refused.
    Refused(Refusal),
}

/// Rules that can't be applied.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GateError {
    /// A file can't be used.
    #[error("{}: {why}", .path.display())]
    File { path: PathBuf, why: String },
    /// The system has no random numbers.
    #[error("no random numbers: {0}")]
    Random(#[from] io::Error),
}

impl Gates {
    /// Opens the rules of places, in their order, and those of the server. Places with equal rules share them.
    ///
    /// # Errors
    /// A file that can't be used.
    pub(crate) fn open(
        places: Places,
        (own, server): (&[&AccessSettings], &AccessSettings),
        metrics: &AccessMetrics,
    ) -> Result<Self, GateError> {
        let mut made: Vec<(&AccessSettings, Arc<Gate>)> = Vec::new();
        let mut of = Vec::new();
        for settings in own.iter().copied().chain([server]) {
            if settings.is_open() {
                of.push(None);
                continue;
            }
            let gate = match made.iter().find(|(other, _)| *other == settings) {
                Some((_, gate)) => gate.clone(),
                None => {
                    let gate = Arc::new(Gate::open(settings, metrics)?);
                    made.push((settings, gate.clone()));
                    gate
                }
            };
            of.push(Some(gate));
        }
        let outside = of.pop().flatten();
        Ok(Self { places, outside, of })
    }

    /// No rules.
    pub(crate) fn none() -> Self {
        Self { places: Places::new([]), outside: None, of: Vec::new() }
    }

    /// The rules for a path, which is decoded; `None` where it is open. Slashes at its beginning are ignored, so that no other lookup
    /// finds a place that this one misses.
    pub(crate) fn of(&self, path: &str) -> Option<&Arc<Gate>> {
        match self.places.find(path.trim_start_matches('/')) {
            Some((place, ..)) => self.of.get(place)?.as_ref(),
            None => self.outside.as_ref(),
        }
    }

    /// Decision on a request by RTSP. `begins` is true for DESCRIBE and SETUP; later requests belong to a session.
    pub(crate) fn rtsp(
        &self,
        (path, begins): (&str, bool),
        client: IpAddr,
        token: (Option<&str>, &str),
    ) -> RtspDecision {
        match self.of(path) {
            None => RtspDecision::Open,
            Some(_) if !begins => RtspDecision::Admitted,
            Some(gate) => gate.admit_rtsp(path, client, token),
        }
    }

    /// Starts the tasks that read files and URLs again.
    pub(crate) fn watch(&self, stop: &watch::Receiver<bool>) {
        let mut begun: HashMap<*const Gate, ()> = HashMap::new();
        for gate in self.of.iter().chain([&self.outside]).flatten() {
            if begun.insert(Arc::as_ptr(gate), ()).is_some() {
                continue;
            }
            if let Some(users) = &gate.users {
                tokio::spawn(Access::watch(users.clone(), stop.clone()));
            }
            if let Some(keys) = &gate.keys {
                tokio::spawn(keys.clone().watch(stop.clone()));
            }
        }
    }
}

impl Gate {
    fn open(settings: &AccessSettings, metrics: &AccessMetrics) -> Result<Self, GateError> {
        let users = settings.users.as_ref().map(|path| {
            let users = Users::read(path).map_err(|all| {
                let all: Vec<_> = all.iter().map(ToString::to_string).collect();
                GateError::File { path: path.clone(), why: all.join("; ") }
            })?;
            Ok::<_, GateError>(Arc::new(Access::open(RtspUsers { path: path.clone(), users })?))
        });
        let keys = settings.keys.as_ref().map(|source| {
            let keys = KeySet::open(source.clone(), settings.parties.clone(), metrics.clone());
            let wrong = |why| GateError::File { path: PathBuf::from(source.to_string()), why };
            keys.map(Arc::new).map_err(wrong)
        });
        Ok(Self {
            users: users.transpose()?,
            keys: keys.transpose()?,
            networks: settings.networks.clone(),
            metrics: metrics.clone(),
        })
    }

    /// Checks a request by HTTP for a path, which is decoded. `now` is the time of the server's clock.
    ///
    /// # Errors
    /// The reason of a refusal.
    pub(crate) fn admit_http(&self, path: &str, viewer: &Viewer<'_>, now: Duration) -> Result<(), Refusal> {
        let bearer = viewer.authorization.and_then(|text| {
            let (scheme, value) = text.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| value.trim())
        });
        let query = query_token(viewer.query);
        let token = viewer.token.or(bearer).or(query.as_deref());
        let decided = self.decide(path, viewer.address, token).and_then(|is_admitted| match &self.users {
            _ if is_admitted => Ok(()),
            Some(users) => {
                let Viewer { address, is_secure, method, target, .. } = *viewer;
                let authorization = viewer.authorization.filter(|_| bearer.is_none());
                let asked = HttpClient { address, is_secure, method, target, authorization };
                users.admit_http(&asked, now).map_err(|why| match why {
                    HttpRefusal::Malformed(why) => Refusal::Malformed(why),
                    HttpRefusal::Challenge(challenges) => Refusal::Credentials(self.with_bearer(challenges)),
                    HttpRefusal::Forbidden => Refusal::Network,
                })
            }
            None => Err(Refusal::Credentials(self.with_bearer(Vec::new()))),
        });
        decided.inspect_err(|why| self.metrics.refused(why))
    }

    /// Checks a request by RTSP for a path, which is decoded.
    fn admit_rtsp(&self, path: &str, client: IpAddr, (token, query): (Option<&str>, &str)) -> RtspDecision {
        let in_query = query_token(query);
        let refused = match (self.decide(path, client, token.or(in_query.as_deref())), &self.users) {
            (Ok(true), _) => return RtspDecision::Admitted,
            (Ok(false), Some(users)) => return RtspDecision::Users(users.clone()),
            (Ok(false), None) => Refusal::Credentials(Vec::new()),
            (Err(why), _) => why,
        };
        self.metrics.refused(&refused);
        RtspDecision::Refused(refused)
    }

    /// Decision by network and token alone: `true` admits the request, `false` leaves it to users.
    fn decide(&self, path: &str, client: IpAddr, token: Option<&str>) -> Result<bool, Refusal> {
        if !self.networks.is_empty() && !self.networks.iter().any(|network| network.contains(client)) {
            return Err(Refusal::Network);
        }
        if path.split('/').any(|component| matches!(component, "." | "..")) {
            return Err(Refusal::Dots);
        }
        let Some(keys) = &self.keys else { return Ok(self.users.is_none()) };
        let Some(token) = token else { return Ok(false) };
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        let claims = keys.read(token, now).map_err(|error| match error {
            Unread::NoKeys => Refusal::NoKeys,
            Unread::Wrong(error) => Refusal::Token(error),
        })?;
        claims.admit(path.trim_matches('/'), client).map_err(Refusal::Token)?;
        Ok(true)
    }

    fn with_bearer(&self, mut challenges: Vec<String>) -> Vec<String> {
        challenges.extend(self.keys.as_ref().map(|_| "Bearer realm=\"millpond\"".to_owned()));
        challenges
    }
}

/// The token of a query.
pub(crate) fn query_token(query: &str) -> Option<String> {
    PARAMETERS.iter().map(|name| parameter(query, name)).find(|token| !token.is_empty())
}
