//! Digest access authentication (RFC 7616) of RTSP requests, for a server.
//!
//! A [`Guard`] writes the challenges of a realm and checks what clients answer. It keeps nothing of clients: its nonces
//! are made so that it knows them again ([`nonce`]). Secrets, times and random are arguments.
//!
//! Old RTSP clients know MD5 only, and answer without `qop` as RFC 2069 had it: both are taken. [`Replays`] refuses an
//! answer with `qop` that was sent before. One without `qop` has no count: whoever sees it can send it again within the
//! nonce's lifetime, for the same method and URL; against that stands TLS.

mod authorization;
pub mod nonce;
mod replays;

pub use authorization::{Authorization, AuthorizationError, Qop};
pub use replays::Replays;

use hmac::digest::Digest;
use md5::Md5;
use nonce::Nonces;
use sha2::Sha256;
use std::{
    fmt::{self, Write as _},
    time::Duration,
};

/// A hash that both sides know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Algorithm {
    /// The one to prefer.
    Sha256,
    /// For clients that know no other.
    Md5,
}

impl Algorithm {
    /// As headers have it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Sha256 => "SHA-256",
            Self::Md5 => "MD5",
        }
    }

    /// The hash of parts with colons between, in hexadecimal digits.
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

/// What stands for a user's password: the hash of user, realm and password (RFC 7616 3.4.2). As secret as the password.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    algorithm: Algorithm,
    hash: String,
}

impl Secret {
    /// Of a password.
    #[must_use]
    pub fn of(algorithm: Algorithm, user: &str, realm: &str, password: &str) -> Self {
        Self { algorithm, hash: algorithm.hash(&[user, realm, password]) }
    }

    /// What a client that knows it answers (RFC 7616 3.4.1; without `qop` as RFC 2069 2.1.2).
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

/// Without the hash: logs are no place for it.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secret").field("algorithm", &self.algorithm).finish_non_exhaustive()
    }
}

/// A request that needs a user.
#[derive(Clone, Copy, Debug)]
pub struct DigestRequest<'a> {
    /// Its method, as it was sent.
    pub method: &'a str,
    /// Its URL, as it was sent.
    pub uri: &'a str,
    /// Its `Authorization` header, if it has one.
    pub authorization: Option<&'a str>,
}

/// Why a request is not let in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DigestRefusal {
    /// It has no `Authorization`: 401, with challenges.
    #[error("no Authorization")]
    Anonymous,
    /// The answer was right, but its nonce isn't any more: 401, with challenges that say so.
    #[error("a nonce that is over")]
    Stale,
    /// The answer was sent before: 401, with challenges that say that the nonce is over. A client with the password
    /// answers those.
    #[error("user {user:?}: an answer that was sent before (nc={count:08x})")]
    Replayed {
        /// Whom it names.
        user: String,
        /// Its count.
        count: u32,
    },
    /// The answer is wrong, or is one to something else: 401, with challenges.
    #[error("user {user:?}: wrong {what}")]
    Wrong {
        /// Whom it names.
        user: String,
        /// What is wrong: this is for the log, not for the client.
        what: &'static str,
    },
    /// The header can't be read: 400.
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

/// Guards a realm.
#[derive(Debug)]
pub struct Guard {
    realm: String,
    algorithms: Vec<Algorithm>,
    nonces: Nonces,
}

impl Guard {
    /// A guard that takes these algorithms, the strongest first in what it offers. The realm is shown to users; what
    /// can't stand in a header is left out of it.
    #[must_use]
    pub fn new(realm: &str, algorithms: &[Algorithm], nonces: Nonces) -> Self {
        let mut algorithms = algorithms.to_vec();
        algorithms.sort_unstable();
        algorithms.dedup();
        let realm = realm.chars().filter(|c| !c.is_control() && !matches!(c, '"' | '\\')).collect();
        Self { realm, algorithms, nonces }
    }

    /// What users' secrets are computed with.
    #[must_use]
    pub fn realm(&self) -> &str {
        &self.realm
    }

    /// The `WWW-Authenticate` headers of a 401, one an algorithm (RFC 7616 3.7). `random` makes nonces of the same
    /// moment differ; `now` is as [`Nonces`] has it.
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

    /// Checks a request. `secret` tells a user's secret for an algorithm, if there is such a user.
    ///
    /// # Errors
    /// Why it is not let in.
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
        // Who is not known takes as long as who is.
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

/// Whether an answer for the URL `answered` is one for a request of `asked`.
///
/// It is where they are the same (RFC 7616 3.4.6), and where `asked` is below: many clients answer a SETUP or PLAY of
/// one stream with the URL of the whole presentation, with or without the slash behind it.
fn covers(answered: &str, asked: &str) -> bool {
    let base = answered.trim_end_matches('/');
    let below = |rest: &str| rest.is_empty() || rest.starts_with('/');
    answered == asked || base.contains("://") && asked.strip_prefix(base).is_some_and(below)
}

/// Compares in a time that doesn't tell where they differ.
fn same(expected: &str, found: &str) -> bool {
    let (expected, found) = (expected.as_bytes(), found.as_bytes());
    let differs = expected.iter().zip(found).fold(0, |differs, (a, b)| std::hint::black_box(differs | (a ^ b)));
    expected.len() == found.len() && differs == 0
}

#[cfg(test)]
mod tests;
