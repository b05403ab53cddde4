//! Options of a client.

use std::{fmt, time::Duration};
use url::Url;

/// TLS of a client.
#[derive(Clone, Default)]
pub struct Tls {
    /// Certificates of the authorities to trust, PEM; `None` trusts those of the system.
    pub authorities: Option<Vec<u8>>,
    /// Certificate and key of the client, PEM.
    pub identity: Option<Vec<u8>>,
}

/// Options of a client.
#[derive(Clone)]
pub struct EtcdOptions {
    /// Addresses of the members.
    pub members: Vec<Url>,
    /// User and password.
    pub user: Option<(String, String)>,
    /// TLS, for addresses with `https`.
    pub tls: Tls,
    /// Time limit of a request to one member.
    pub timeout: Duration,
}

impl fmt::Debug for EtcdOptions {
    /// Omits password and key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let members: Vec<_> = self.members.iter().map(Url::as_str).collect();
        f.debug_struct("Options").field("members", &members).field("timeout", &self.timeout).finish_non_exhaustive()
    }
}
