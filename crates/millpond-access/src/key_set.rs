//! Keys of tokens that are read again: a file when it changes, a URL from time to time.

use super::{
    AccessMetrics, KeySource,
    keys::{Keys, MOST_BYTES},
    token::{self, Claims, Parties, TokenError},
};
use millpond_outbound::{Client, Options, chain};
use millpond_settings::files::{FileStamp, Looks};
use std::{
    collections::HashMap,
    hash::{BuildHasher as _, RandomState},
    path::Path,
    sync::{Arc, Mutex, PoisonError, RwLock},
    time::Duration,
};
use tokio::{
    sync::{Notify, watch},
    time::{Instant, sleep_until, timeout},
};
use url::Url;

/// Interval between readings of a URL.
const PERIOD: Duration = Duration::from_secs(600);
/// Least time between two readings of a URL, and after a reading that failed.
const PAUSE: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(10));
/// Longest time of a reading.
const PATIENCE: Duration = Duration::from_secs(10);
/// Most tokens whose signatures are remembered.
const REMEMBERED: usize = 4096;

/// Keys of tokens.
pub(super) struct KeySet {
    source: KeySource,
    parties: Parties,
    /// `None` while a URL was never read.
    keys: RwLock<Option<Arc<Keys>>>,
    /// Tokens that were right, so that the requests of a viewer do not check one signature over and over.
    known: Mutex<HashMap<Box<str>, Arc<Claims>>>,
    /// Asks for a reading of the URL, because a token has an unknown key.
    wanted: Notify,
    /// Hashes names of tokens.
    hasher: RandomState,
    metrics: AccessMetrics,
}

/// Why a token can't be judged, or is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unread {
    /// The keys have not been read yet.
    NoKeys,
    Wrong(TokenError),
}

impl KeySet {
    /// Creates it; a file is read at once.
    ///
    /// # Errors
    /// The file can't be read, or has no keys.
    pub(super) fn open(source: KeySource, parties: Parties, metrics: AccessMetrics) -> Result<Self, String> {
        let keys = match &source {
            KeySource::File(path) => Some(Arc::new(read_file(path)?)),
            KeySource::Url(_) => None,
        };
        let (keys, known, wanted) = (RwLock::new(keys), Mutex::default(), Notify::new());
        Ok(Self { source, parties, keys, known, wanted, hasher: RandomState::new(), metrics })
    }

    /// Whether it has the keys of a source, for tokens of these parties.
    pub(super) fn is_of(&self, source: &KeySource, parties: &Parties) -> bool {
        self.source == *source && self.parties == *parties
    }

    /// Reads the file again, because a reload does. Keys of a URL stay.
    ///
    /// # Errors
    /// Those of [`open`](Self::open).
    pub(super) fn read_file_again(&self) -> Result<(), String> {
        match &self.source {
            KeySource::File(path) => read_file(path).map(|keys| self.replace(keys)),
            KeySource::Url(_) => Ok(()),
        }
    }

    /// Hash of a token's name: its `jti`, else its `sub`, else the token itself. Places with the same keys count a token as one.
    pub(super) fn identity(&self, token: &str, claims: &Claims) -> u64 {
        self.hasher.hash_one(match (&claims.jti, &claims.sub) {
            (Some(jti), _) => ("jti", jti.as_str()),
            (None, Some(sub)) => ("sub", sub.as_str()),
            // A client can change the signature: two of ES256 are right for one text.
            (None, None) => ("token", token.rsplit_once('.').map_or(token, |(signed, _)| signed)),
        })
    }

    /// The keys; `None` while a URL was never read.
    fn keys(&self) -> Option<Arc<Keys>> {
        self.keys.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads a token at a time in seconds since 1970.
    ///
    /// # Errors
    /// The reason of a refusal.
    pub(super) fn read(&self, token: &str, now: u64) -> Result<Arc<Claims>, Unread> {
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known().get(token).cloned();
        if let Some(claims) = found {
            if claims.exp >= now {
                return Ok(claims);
            }
            known().remove(token);
        }
        let keys = self.keys().ok_or(Unread::NoKeys)?;
        match token::read(token, &keys, &self.parties) {
            Ok(claims) => {
                let claims = Arc::new(claims);
                self.remember(token, &claims, &keys);
                Ok(claims)
            }
            Err(error) => {
                if matches!(error, TokenError::Signature | TokenError::Algorithm) {
                    self.wanted.notify_one();
                }
                Err(Unread::Wrong(error))
            }
        }
    }

    /// Remembers a token that `keys` have signed, unless others have replaced them meanwhile: it would outlive a key that is gone.
    fn remember(&self, token: &str, claims: &Arc<Claims>, keys: &Arc<Keys>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        // New keys are in place before the table is cleared.
        if !self.keys().is_some_and(|now| Arc::ptr_eq(&now, keys)) {
            return;
        }
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert(token.into(), claims.clone());
    }

    pub(super) fn replace(&self, keys: Keys) {
        *self.keys.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(keys));
        // Tokens of keys that are gone are no longer valid.
        self.known.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Keeps the keys new, until the server stops. Where they can't be read, the last good ones stay.
    pub(super) async fn watch(self: Arc<Self>, stop: watch::Receiver<bool>) {
        match &self.source {
            KeySource::File(path) => self.watch_file(path, stop).await,
            KeySource::Url(url) => self.watch_url(url, stop).await,
        }
    }

    async fn watch_file(&self, path: &Path, stop: watch::Receiver<bool>) {
        let mut looks = Looks::until(stop);
        let mut seen = FileStamp::of(path);
        while looks.next().await {
            let found = path.to_owned();
            let read = move || {
                let stamp = FileStamp::of(&found);
                (stamp != seen).then(|| (stamp, read_file(&found)))
            };
            match tokio::task::spawn_blocking(read).await {
                Ok(None) => {}
                Ok(Some((stamp, read))) => {
                    seen = stamp;
                    self.took(read);
                }
                Err(error) => tracing::error!(%error, "checking the keys of tokens failed"),
            }
        }
    }

    async fn watch_url(&self, url: &Url, mut stop: watch::Receiver<bool>) {
        let client = match Client::new(&Options::default()) {
            Ok(client) => client,
            Err(error) => return tracing::error!(%error, "keys of tokens can't be read"),
        };
        loop {
            let read = timeout(PATIENCE, read_url(&client, url)).await;
            let read = read.unwrap_or_else(|_| Err(format!("no answer within {} s", PATIENCE.as_secs())));
            let has_failed = read.is_err();
            self.took(read);
            let now = Instant::now();
            let next = async {
                sleep_until(now + if has_failed { PAUSE.1 } else { PAUSE.0 }).await;
                if !has_failed {
                    tokio::select! {
                        () = sleep_until(now + PERIOD) => {}
                        () = self.wanted.notified() => {}
                    }
                }
            };
            tokio::select! {
                () = next => {}
                _ = stop.wait_for(|stop| *stop) => return,
            }
        }
    }

    fn took(&self, read: Result<Keys, String>) {
        let source = &self.source;
        match read {
            Ok(keys) => {
                tracing::info!(%source, ?keys, "keys of tokens read");
                self.replace(keys);
            }
            Err(error) => {
                self.metrics.key_failures.inc();
                tracing::error!(%source, error, "keys of tokens can't be read: the last good keys stay in force");
            }
        }
    }
}

/// Shows no keys and no tokens.
impl std::fmt::Debug for KeySet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeySet").field("source", &self.source).finish_non_exhaustive()
    }
}

/// Reads a file with keys.
pub(super) fn read_file(path: &Path) -> Result<Keys, String> {
    use std::io::Read as _;
    let mut bytes = Vec::new();
    let file = millpond_settings::files::open(path).map_err(|error| format!("cannot read the file: {error}"))?;
    let read = file.take(MOST_BYTES as u64 + 1).read_to_end(&mut bytes);
    read.map_err(|error| format!("cannot read the file: {error}"))?;
    Keys::parse(&bytes).map_err(|error| error.to_string())
}

async fn read_url(client: &Client, url: &Url) -> Result<Keys, String> {
    let told = |error: reqwest::Error| error.without_url().to_string();
    let sent = client.request(http::Method::GET, url.clone()).send().await;
    let mut reply = sent.map_err(|error| chain(&error))?;
    if reply.status() != reqwest::StatusCode::OK {
        return Err(format!("the status is {}", reply.status()));
    }
    let mut bytes = Vec::new();
    while let Some(chunk) = reply.chunk().await.map_err(told)? {
        if bytes.len() + chunk.len() > MOST_BYTES {
            return Err(super::keys::KeyError::Large.to_string());
        }
        bytes.extend_from_slice(&chunk);
    }
    Keys::parse_set(&bytes).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{keys::Secret, sign};

    #[test]
    fn a_token_does_not_outlive_its_key_and_counts_as_one() {
        let of = |name: &str| format!("a secret of thirty-two bytes {name}");
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("secret");
        std::fs::write(&file, of("one")).unwrap();
        let metrics = AccessMetrics::register(&mut prometheus_client::registry::Registry::default());
        let set = KeySet::open(KeySource::File(file), Parties::default(), metrics).unwrap();
        let claims = Claims { exp: u64::MAX >> 1, paths: None, net: None, jti: None, sub: None, filter: None };
        let token = sign(&claims, &Parties::default(), &Secret::parse(of("one").as_bytes()).unwrap()).unwrap();
        assert!(set.read(&token, 1).is_ok());
        let identity = |token: &str| set.identity(token, &claims);
        assert!(identity("a.b.c") == identity("a.b.d") && identity("a.b.c") != identity("a.c.c"));
        // A request has checked the token with the old key, and remembers it after the new one is in place.
        let old = set.keys().unwrap();
        set.replace(Keys::parse(of("two").as_bytes()).unwrap());
        set.remember(&token, &Arc::new(claims.clone()), &old);
        assert_eq!(set.read(&token, 1), Err(Unread::Wrong(TokenError::Signature)));
    }
}
