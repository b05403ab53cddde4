//! Applies the rules of a place to requests.

use super::{
    AccessMetrics, AccessRefusal, AccessSettings, AskingClient, AuthAction, HttpClient, HttpRefusal, Pass, Passwords,
    UserFile, Users,
    external::{External, Verdict},
    kept::Kept,
    key_set::{KeySet, Unread},
    pass::now as seconds,
    question::{self, carried},
    revoked::Revoked,
    token::{Claims, PARAMETERS, TokenError},
    watch_passwords,
};
use millpond_library::uri::parameter;
use millpond_settings::Network;
use std::{io, net::IpAddr, path::PathBuf, sync::Arc, time::Duration};
use tokio::sync::watch;

/// The rules of a place.
#[derive(Debug)]
pub struct Gate {
    /// The settings that it was made from.
    pub(super) settings: AccessSettings,
    users: Option<Arc<Passwords>>,
    keys: Option<Arc<Kept<KeySet>>>,
    networks: Vec<Network>,
    revoked: Option<Arc<Kept<Revoked>>>,
    external: Option<Arc<External>>,
    metrics: AccessMetrics,
}

/// A request by HTTP, with its credentials.
#[derive(Clone, Copy, Debug)]
pub struct AccessViewer<'a> {
    /// The client.
    pub address: IpAddr,
    /// The token in the path.
    pub token: Option<&'a str>,
    /// The query.
    pub query: &'a str,
    /// Whether the connection has TLS.
    pub is_secure: bool,
    /// Method.
    pub method: &'a str,
    /// Path and query as the client wrote them.
    pub target: &'a str,
    /// Whether a trusted proxy forwarded the request.
    pub is_forwarded: bool,
    /// Value of `Authorization`.
    pub authorization: Option<&'a str>,
    /// Value of `User-Agent`.
    pub agent: Option<&'a str>,
}

impl<'a> AccessViewer<'a> {
    /// The token in `Authorization`. With a colon it is the name and the password of a user, as no token has one.
    fn bearer(&self) -> Option<&'a str> {
        let (scheme, value) = self.authorization?.split_once(' ')?;
        (scheme.eq_ignore_ascii_case("bearer") && !value.contains(':')).then(|| value.trim())
    }

    /// The same request with the credentials of a user, or without.
    fn as_client(&self, has_user: bool) -> HttpClient<'a> {
        let Self { address, is_secure, method, target, is_forwarded, .. } = *self;
        let authorization = self.authorization.filter(|_| has_user);
        HttpClient { address, is_secure, method, target, is_forwarded, authorization }
    }

    fn asker(&self) -> AskingClient<'a> {
        let Self { address, token, query, is_secure, authorization, agent, .. } = *self;
        let protocol = if is_secure { "https" } else { "http" };
        AskingClient { address, action: AuthAction::Read, protocol, token, query, authorization, agent }
    }
}

/// The part of a place's names that a viewer may see.
#[derive(Clone, Debug)]
pub enum Sight {
    /// All of them.
    Whole,
    /// Those that a token is for, seen from an address.
    Token(Arc<Claims>, IpAddr),
}

impl Sight {
    /// Tells whether a path can be seen. It is decoded and has no slashes at its ends.
    pub fn has(&self, path: &str) -> bool {
        match self {
            Self::Whole => true,
            Self::Token(claims, client) => claims.admit(path, *client).is_ok(),
        }
    }
}

/// Decision on a request by RTSP.
#[derive(Debug)]
pub enum RtspDecision {
    /// Nothing: the path has no rules, or none that ask for credentials.
    Open,
    /// Nothing more.
    Admitted(Pass),
    /// A user's name and password.
    Users(Arc<Passwords>),
    /// The answer of another server.
    Ask(Question),
    /// It is refused.
    Refused(AccessRefusal),
}

/// Decision on a request by HTTP.
#[derive(Debug)]
pub enum Decision {
    /// It is admitted.
    Admitted(Pass),
    /// Another server decides.
    Ask(Question),
}

/// A question to the server of `auth-url`, and the gate that asks.
#[derive(Clone, Debug)]
pub struct Question {
    gate: Arc<Gate>,
    question: Box<question::Question>,
}

impl Question {
    /// Waits for the answer, which is remembered. Cancel safe.
    ///
    /// # Errors
    /// The reason of a refusal.
    pub async fn answer(self) -> Result<Pass, AccessRefusal> {
        let Self { gate, question } = self;
        let Some(external) = &gate.external else { return Err(AccessRefusal::NoAnswer) };
        let refused = match external.ask(&question).await {
            Verdict::Allowed => return Ok(Pass::of_external(external.identities(&question))),
            Verdict::Credentials => {
                AccessRefusal::Credentials(vec!["Basic realm=\"millpond\", charset=\"UTF-8\"".to_owned()])
            }
            Verdict::Denied => AccessRefusal::Denied,
            Verdict::NoAnswer => AccessRefusal::NoAnswer,
        };
        gate.metrics.refused(&refused);
        Err(refused)
    }
}

/// Rules that can't be applied.
#[derive(Debug, thiserror::Error)]
pub enum GateError {
    /// A file can't be used.
    #[error("{}: {why}", .path.display())]
    File {
        /// Its path.
        path: PathBuf,
        /// The fault.
        why: String,
    },
    /// There can be no client of HTTP.
    #[error("auth-url: {0}")]
    Client(String),
    /// The system has no random numbers.
    #[error("no random numbers: {0}")]
    Random(#[from] io::Error),
}

impl Gate {
    /// Opens rules. Keys, lists and decisions of `known` rules stay, where they have the same source.
    ///
    /// # Errors
    /// A file that can't be used.
    pub(super) fn open(
        settings: &AccessSettings,
        metrics: &AccessMetrics,
        known: &[Arc<Self>],
    ) -> Result<Self, GateError> {
        let users = settings.users.as_ref().map(|path| {
            let users = Users::read(path).map_err(|all| {
                let all: Vec<_> = all.iter().map(ToString::to_string).collect();
                GateError::File { path: path.clone(), why: all.join("; ") }
            })?;
            Ok::<_, GateError>(Arc::new(Passwords::open(UserFile { path: path.clone(), users })?))
        });
        let keys = settings.keys.as_ref().map(|source| {
            let same = |gate: &Arc<Self>| gate.keys.clone().filter(|keys| keys.is_of(source, &settings.parties));
            let keys = match known.iter().find_map(same) {
                Some(known) => known.read_file_again().map(|()| known),
                None => KeySet::open(source.clone(), settings.parties.clone(), metrics.clone()).map(Kept::new),
            };
            keys.map_err(|why| GateError::File { path: PathBuf::from(source.to_string()), why })
        });
        let revoked = settings.revoked.as_ref().map(|path| {
            let same = |gate: &Arc<Self>| gate.revoked.clone().filter(|revoked| revoked.is_of(path));
            let revoked = match known.iter().find_map(same) {
                Some(known) => known.read_again().map(|()| known),
                None => Revoked::open(path).map(Kept::new),
            };
            revoked.map_err(|why| GateError::File { path: path.clone(), why })
        });
        let same = |gate: &Arc<Self>| gate.external.clone().filter(|external| external.is_of(&settings.external));
        let external = match known.iter().find_map(same) {
            Some(known) => Some(known),
            None => External::open(&settings.external, metrics).map_err(GateError::Client)?.map(Arc::new),
        };
        Ok(Self {
            users: users.transpose()?,
            keys: keys.transpose()?,
            networks: settings.networks.clone(),
            revoked: revoked.transpose()?,
            external,
            metrics: metrics.clone(),
            settings: settings.clone(),
        })
    }

    /// Starts the tasks that read files and URLs again, until the server stops. Those that run already go on.
    pub(super) fn watch(&self, stop: &watch::Receiver<bool>) {
        if let Some(users) = &self.users {
            tokio::spawn(watch_passwords(Arc::downgrade(users), stop.clone()));
        }
        if let Some(keys) = &self.keys {
            keys.keep(|keys| keys.watch(stop.clone()));
        }
        if let Some(revoked) = &self.revoked {
            revoked.keep(|revoked| revoked.watch(stop.clone()));
        }
    }

    /// Returns what a viewer may see of the names of a place. Another server is asked about assets, not about names.
    pub(super) fn sight(&self, viewer: &AccessViewer<'_>, now: Duration) -> Option<Sight> {
        if !self.is_in_networks(viewer.address) {
            return None;
        }
        let query = query_token(viewer.query);
        let bearer = viewer.bearer();
        if let (Some(keys), Some(token)) = (&self.keys, viewer.token.or(bearer).or(query.as_deref())) {
            let claims = keys.read(token, seconds()).ok().filter(|claims| !self.is_revoked(claims))?;
            return Some(Sight::Token(claims, viewer.address));
        }
        if self.external.is_some() {
            return None;
        }
        let Some(users) = &self.users else { return self.keys.is_none().then_some(Sight::Whole) };
        users.admit_http(&viewer.as_client(bearer.is_none()), now).ok().map(|()| Sight::Whole)
    }

    /// Checks a request by HTTP for a path, which is decoded, to play an asset. `now` is the time of the server's clock.
    ///
    /// # Errors
    /// The reason of a refusal.
    pub fn admit_http(
        self: &Arc<Self>,
        (path, asset): (&str, &str),
        viewer: &AccessViewer<'_>,
        now: Duration,
    ) -> Result<Decision, AccessRefusal> {
        let bearer = viewer.bearer();
        let query = query_token(viewer.query);
        let token = viewer.token.or(bearer).or(query.as_deref());
        let decided = self.decide(path, viewer.address, token).and_then(|pass| match (pass, &self.users) {
            (Some(pass), _) => Ok(Decision::Admitted(pass)),
            (None, _) if self.external.is_some() => Ok(Decision::Ask(self.question(asset, &viewer.asker()))),
            (None, Some(users)) => {
                let admitted = users.admit_http(&viewer.as_client(bearer.is_none()), now);
                let admitted = admitted.map(|()| Decision::Admitted(Pass::default()));
                admitted.map_err(|why| match why {
                    HttpRefusal::Malformed(why) => AccessRefusal::Malformed(why),
                    HttpRefusal::Challenge(challenges) => AccessRefusal::Credentials(self.with_bearer(challenges)),
                    HttpRefusal::Forbidden => AccessRefusal::Network,
                    HttpRefusal::Guesses(many) => AccessRefusal::Guesses(many),
                })
            }
            (None, None) => Err(AccessRefusal::Credentials(self.with_bearer(Vec::new()))),
        });
        decided.inspect_err(|why| self.metrics.refused(why))
    }

    /// Checks a request by RTSP for a path, which is decoded.
    pub(super) fn admit_rtsp(self: &Arc<Self>, path: &str, asset: &str, asker: &AskingClient<'_>) -> RtspDecision {
        let in_query = query_token(asker.query);
        let refused = match (self.decide(path, asker.address, asker.token.or(in_query.as_deref())), &self.users) {
            (Ok(Some(_)), _) if !self.asks_credentials() => return RtspDecision::Open,
            (Ok(Some(pass)), _) => return RtspDecision::Admitted(pass),
            (Ok(None), _) if self.external.is_some() => return RtspDecision::Ask(self.question(asset, asker)),
            (Ok(None), Some(users)) => return RtspDecision::Users(users.clone()),
            (Ok(None), None) => AccessRefusal::Credentials(Vec::new()),
            (Err(why), _) => why,
        };
        self.metrics.refused(&refused);
        RtspDecision::Refused(refused)
    }

    pub(super) fn question(self: &Arc<Self>, path: &str, asker: &AskingClient<'_>) -> Question {
        Question { gate: self.clone(), question: Box::new(question::Question::new(path, asker)) }
    }

    /// Whether it asks for a user, a token or a decision of another server, and not for networks alone.
    pub(super) fn asks_credentials(&self) -> bool {
        self.settings.asks_credentials()
    }

    /// Whether another server decides, which may look at all of a query.
    pub fn asks_others(&self) -> bool {
        self.external.is_some()
    }

    /// The token that stands for the credentials of a query in paths, so that relative URLs have them. `None` where it has none.
    pub fn in_path(&self, query: &str) -> Option<String> {
        let own = query_token(query).filter(|token| token.starts_with("eyJ") && !token.contains('/'));
        let own = own.filter(|token| self.keys.is_some() && token.contains('.'));
        // Another server may look at all of the query.
        own.or_else(|| self.external.is_some().then(|| carried(query))?)
    }

    /// Decision by network and token alone: a pass admits the request, `None` leaves it to users.
    fn decide(&self, path: &str, client: IpAddr, token: Option<&str>) -> Result<Option<Pass>, AccessRefusal> {
        if !self.is_in_networks(client) {
            return Err(AccessRefusal::Network);
        }
        if path.split('/').any(|component| matches!(component, "." | "..")) {
            return Err(AccessRefusal::Dots);
        }
        let Some(keys) = &self.keys else {
            let is_open = self.users.is_none() && self.external.is_none();
            return Ok(is_open.then(Pass::default));
        };
        // Another server may take what is no JWT.
        let is_foreign = |token: &&str| self.external.is_some() && !token.contains('.');
        let Some(token) = token.filter(|token| !is_foreign(token)) else { return Ok(None) };
        let claims = keys.read(token, seconds()).map_err(|error| match error {
            Unread::NoKeys => AccessRefusal::NoKeys,
            Unread::Wrong(error) => AccessRefusal::Token(error),
        })?;
        if self.is_revoked(&claims) {
            return Err(AccessRefusal::Token(TokenError::Revoked));
        }
        claims.admit(path.trim_matches('/'), client).map_err(AccessRefusal::Token)?;
        Ok(Some(Pass::new(keys.identity(token, &claims), claims, self.revoked.clone())))
    }

    fn is_in_networks(&self, client: IpAddr) -> bool {
        self.networks.is_empty() || self.networks.iter().any(|network| network.contains(client))
    }

    fn is_revoked(&self, claims: &Claims) -> bool {
        let names = self.revoked.as_ref().zip(claims.jti.as_ref());
        names.is_some_and(|(revoked, name)| revoked.has(name))
    }

    fn with_bearer(&self, mut challenges: Vec<String>) -> Vec<String> {
        challenges.extend(self.keys.as_ref().map(|_| "Bearer realm=\"millpond\"".to_owned()));
        challenges
    }
}

/// The token of a query.
pub fn query_token(query: &str) -> Option<String> {
    PARAMETERS.iter().map(|name| parameter(query, name)).find(|token| !token.is_empty())
}

#[cfg(test)]
mod tests;
