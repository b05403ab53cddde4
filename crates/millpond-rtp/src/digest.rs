//! Digest access authentication (RFC 7616) of RTSP requests.
//!
//! For a server, a [`Guard`] writes the challenges of a realm and checks the answers of clients. It keeps no state of clients: it can
//! recognise its own nonces ([`nonce`]). Secrets, times and random numbers are arguments.
//!
//! Old RTSP clients support only MD5, and answer without `qop` as in RFC 2069; both are accepted. [`Replays`] refuses
//! repeated answers with `qop`. An answer without `qop` has no count: an eavesdropper can repeat it within the nonce's
//! lifetime, for the same method and URL. Only TLS prevents that.
//!
//! For a client, [`challenges`] reads a server's challenges, and a [`Secret`] computes the response of an [`Authorization`].

mod authorization;
mod challenge;
pub mod nonce;
mod replays;

pub use authorization::{Authorization, AuthorizationError, Qop};
pub use challenge::{Challenge, challenges};
pub use replays::Replays;

use hmac::digest::Digest;
use md5::Md5;
use nonce::Nonces;
use sha2::Sha256;
use std::{
    fmt::{self, Write as _},
    time::Duration,
};

/// Hash algorithm of a challenge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Algorithm {
    /// SHA-256, the preferred one.
    Sha256,
    /// MD5, for clients that support no other.
    Md5,
}

impl Algorithm {
    /// Name in headers.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Sha256 => "SHA-256",
            Self::Md5 => "MD5",
        }
    }

    /// Returns the hash of `parts`, joined by colons, in hexadecimal digits.
    fn hash(self, parts: &[&str]) -> String {
        match self {
            Self::Sha256 => hex(&joined::<Sha256>(parts)),
            Self::Md5 => hex(&joined::<Md5>(parts)),
        }
    }
}

fn joined<D: Digest>(parts: &[&str]) -> Vec<u8> {
    let mut hash = D::new();
    for (place, part) in parts.iter().enumerate() {
        if place > 0 {
            hash.update(b":");
        }
        hash.update(part.as_bytes());
    }
    hash.finalize().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Hash of user, realm and password (RFC 7616 3.4.2), which replaces the password and is as secret. Two are compared in
/// constant time.
#[derive(Clone)]
pub struct Secret {
    algorithm: Algorithm,
    hash: String,
}

impl Secret {
    /// Computes the secret of a password.
    #[must_use]
    pub fn of(algorithm: Algorithm, user: &str, realm: &str, password: &str) -> Self {
        Self { algorithm, hash: algorithm.hash(&[user, realm, password]) }
    }

    /// Returns the secret of a session (`MD5-sess`, RFC 7616 3.4.2).
    #[must_use]
    pub fn of_session(&self, nonce: &str, cnonce: &str) -> Self {
        Self { algorithm: self.algorithm, hash: self.algorithm.hash(&[&self.hash, nonce, cnonce]) }
    }

    /// Returns the response of a client that knows the secret (RFC 7616 3.4.1; without `qop` as in RFC 2069 2.1.2).
    #[must_use]
    pub fn response(&self, method: &str, uri: &str, nonce: &str, qop: Option<&Qop>) -> String {
        let request = self.algorithm.hash(&[method, uri]);
        match qop {
            Some(Qop { count, cnonce }) => {
                let count = format!("{count:08x}");
                self.algorithm.hash(&[&self.hash, nonce, &count, cnonce, "auth", &request])
            }
            None => self.algorithm.hash(&[&self.hash, nonce, &request]),
        }
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.algorithm == other.algorithm && same(&self.hash, &other.hash)
    }
}

impl Eq for Secret {}

/// Omits the hash, because logs must not contain it.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secret").field("algorithm", &self.algorithm).finish_non_exhaustive()
    }
}

/// A request that needs authentication.
#[derive(Clone, Copy, Debug)]
pub struct DigestRequest<'a> {
    /// Method, as sent.
    pub method: &'a str,
    /// URL, as sent.
    pub uri: &'a str,
    /// Value of its `Authorization` header, if any.
    pub authorization: Option<&'a str>,
}

/// The reason why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DigestRefusal {
    /// The request has no `Authorization`: 401, with challenges.
    #[error("no Authorization header")]
    Anonymous,
    /// The answer is correct, but its nonce has expired: 401, with challenges that say so.
    #[error("an expired nonce")]
    Stale,
    /// The answer was used before: 401, with challenges that call the nonce expired. A client with the password then
    /// answers these.
    #[error("user {user:?}: a repeated answer (nc={count:08x})")]
    Replayed {
        /// User name in the answer.
        user: String,
        /// Count of the answer.
        count: u32,
    },
    /// The answer is wrong, or belongs to another request: 401, with challenges.
    #[error("user {user:?}: wrong {what}")]
    Wrong {
        /// User name in the answer.
        user: String,
        /// Part that is wrong, for the log but not for the client.
        what: &'static str,
    },
    /// The header is malformed: 400.
    #[error("Authorization: {0}")]
    Malformed(#[from] AuthorizationError),
}

impl DigestRefusal {
    /// Whether the client should answer again without asking its user.
    #[must_use]
    pub fn is_stale(&self) -> bool {
        matches!(self, Self::Stale | Self::Replayed { .. })
    }
}

/// Access control of one realm.
#[derive(Debug)]
pub struct Guard {
    realm: String,
    algorithms: Vec<Algorithm>,
    nonces: Nonces,
}

impl Guard {
    /// Creates a guard that accepts these algorithms, and offers them from the strongest down. Clients show the realm
    /// to users; characters that headers can't contain are removed from it.
    #[must_use]
    pub fn new(realm: &str, algorithms: &[Algorithm], nonces: Nonces) -> Self {
        let mut algorithms = algorithms.to_vec();
        algorithms.sort_unstable();
        algorithms.dedup();
        let realm = realm.chars().filter(|c| !c.is_control() && !matches!(c, '"' | '\\')).collect();
        Self { realm, algorithms, nonces }
    }

    /// Realm, with which users' secrets are computed.
    #[must_use]
    pub fn realm(&self) -> &str {
        &self.realm
    }

    /// Returns the `WWW-Authenticate` headers of a 401, one per algorithm (RFC 7616 3.7). `random` makes nonces of the
    /// same moment differ; `now` is as in [`Nonces`].
    #[must_use]
    pub fn challenges(&self, now: Duration, random: u64, stale: bool) -> Vec<String> {
        let (realm, nonce) = (&self.realm, self.nonces.issue(now, random));
        let stale = if stale { ", stale=true" } else { "" };
        let challenge = |algorithm: &Algorithm| {
            let name = algorithm.name();
            format!(r#"Digest realm="{realm}", nonce="{nonce}", algorithm={name}, qop="auth"{stale}"#)
        };
        self.algorithms.iter().map(challenge).collect()
    }

    /// Checks a request. `secret` returns a user's secret for an algorithm, if the user exists.
    ///
    /// # Errors
    /// The reason why the request is refused.
    pub fn check(
        &self,
        asked: &DigestRequest<'_>,
        now: Duration,
        secret: impl FnOnce(&str, Algorithm) -> Option<Secret>,
    ) -> Result<Authorization, DigestRefusal> {
        let answer: Authorization = asked.authorization.ok_or(DigestRefusal::Anonymous)?.parse()?;
        let wrong = |what| DigestRefusal::Wrong { user: answer.user.clone(), what };
        if answer.realm != self.realm {
            return Err(wrong("realm"));
        }
        if !self.algorithms.contains(&answer.algorithm) {
            return Err(wrong("algorithm"));
        }
        if !covers(&answer.uri, asked.uri) {
            return Err(wrong("URL"));
        }
        let known = secret(&answer.user, answer.algorithm).filter(|known| known.algorithm == answer.algorithm);
        let is_known = known.is_some();
        // Unknown users take the same time as known ones.
        let secret = known.unwrap_or_else(|| Secret::of(answer.algorithm, &answer.user, &self.realm, ""));
        let expected = secret.response(asked.method, &answer.uri, &answer.nonce, answer.qop.as_ref());
        if !(same(&expected, &answer.response) & is_known) {
            return Err(wrong("user or password"));
        }
        if !self.nonces.is_current(&answer.nonce, now) {
            return Err(DigestRefusal::Stale);
        }
        Ok(answer)
    }
}

/// Whether an answer for the URL `answered` is valid for a request of `asked`.
///
/// The URLs must be the same (RFC 7616 3.4.6), or `asked` must be below `answered`. Many clients answer a SETUP or PLAY
/// of one stream with the URL of the whole presentation, with or without a slash at the end.
fn covers(answered: &str, asked: &str) -> bool {
    let base = answered.trim_end_matches('/');
    let below = |rest: &str| rest.is_empty() || rest.starts_with('/');
    answered == asked || base.contains("://") && asked.strip_prefix(base).is_some_and(below)
}

/// Compares in constant time.
fn same(expected: &str, found: &str) -> bool {
    let (expected, found) = (expected.as_bytes(), found.as_bytes());
    let differs = expected.iter().zip(found).fold(0, |differs, (a, b)| std::hint::black_box(differs | (a ^ b)));
    expected.len() == found.len() && differs == 0
}

#[cfg(test)]
mod tests;
