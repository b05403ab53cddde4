//! Options of a client.

use std::{fmt, time::Duration};

/// User and password for a server.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// User name.
    pub user: String,
    /// Password.
    pub password: String,
}

/// Omits the password, because logs must not contain it.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("user", &self.user).finish_non_exhaustive()
    }
}

/// Redirects that a client follows. None leads from TLS to plain TCP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RedirectPolicy {
    /// A redirect is an error.
    Refuse,
    /// To the same host, on any port.
    #[default]
    SameHost,
    /// To any host. Credentials are sent to the first host only.
    AnyHost,
}

/// Options of a [`RtspClient`](super::RtspClient). [`ClientOptions::new`] sets the defaults stated at each field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientOptions {
    /// `User-Agent` of requests.
    pub agent: String,
    /// Credentials. Default: none.
    pub credentials: Option<Credentials>,
    /// Whether the password may be sent as it is (Basic) to a server without Digest. Default: true.
    pub allows_basic: bool,
    /// Time limit of a connection and of each request. Default: 10 s.
    pub patience: Duration,
    /// Longest time between two requests of a session; less where the server's timeout demands it. Default: 30 s.
    pub keep_alive: Duration,
    /// Number of consecutive keep-alives that may fail while no media arrives. Default: 2.
    pub most_unanswered: u32,
    /// Whether a track is offered on the connection after the server refused UDP (461). Default: true.
    pub falls_back: bool,
    /// Whether tracks by UDP are set up with early feedback (AVPF) where the server offers it. Default: false.
    pub uses_feedback: bool,
    /// Redirects that are followed. Default: [`RedirectPolicy::SameHost`].
    pub redirects: RedirectPolicy,
    /// Number of redirects that are followed. Default: 4.
    pub most_redirects: u32,
    /// Random number, which makes client nonces differ. Default: 0.
    pub random: u64,
}

impl ClientOptions {
    /// Creates the default options.
    #[must_use]
    pub fn new(agent: &str) -> Self {
        Self {
            agent: agent.to_owned(),
            credentials: None,
            allows_basic: true,
            patience: Duration::from_secs(10),
            keep_alive: Duration::from_secs(30),
            most_unanswered: 2,
            falls_back: true,
            uses_feedback: false,
            redirects: RedirectPolicy::default(),
            most_redirects: 4,
            random: 0,
        }
    }
}
