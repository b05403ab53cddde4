//! Passwords of users: who knows one is admitted, by Digest (RFC 7616), by Basic (RFC 7617), or as RTMP states it.
//!
//! [`users`] reads the file of the users, [`guesses`] limits wrong passwords. Each front end puts a refusal into the words of its
//! protocol: `http` here for HTTP, `rtsp/challenge` for RTSP.

mod guesses;
mod http;
mod users;

pub use http::{HttpClient, HttpRefusal};
pub use users::REALM;
pub use users::{BadLine, UserFile, Users, UsersError};

use guesses::Guesses;
use millpond_rtp::digest::{Algorithm, DigestRefusal, DigestRequest, Guard, Replays, Secret, nonce::Nonces};
use millpond_settings::files::{FileStamp, Looks};
use std::{
    net::IpAddr,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError, RwLock, Weak},
    time::Duration,
};
use tokio::sync::watch;

/// Lifetime of a challenge. Afterwards the client gets a new one, which players answer without asking their user.
pub const LIFETIME: Duration = Duration::from_secs(3600);

/// Number of nonces whose uses are counted, some 150 bytes each. Beyond it the oldest nonces become stale.
const NONCES: usize = 16_384;

/// The user file, and the state of Digest authentication.
#[derive(Debug)]
pub struct Passwords {
    guard: Guard,
    /// A lock: taken for each correct answer.
    replays: Mutex<Replays>,
    guesses: Guesses,
    /// Read by each request; replaced when the file has changed.
    users: RwLock<Arc<Users>>,
    file: PathBuf,
    /// FileStamp of the file when it was last read, with or without success; `None` before the first read.
    seen: Mutex<Option<FileStamp>>,
}

/// A client has stated too many wrong passwords for a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many wrong passwords for this user")]
pub struct TooManyGuesses {
    /// Time after which the client may try again.
    after: Duration,
}

impl TooManyGuesses {
    /// Whole seconds after which the client may try again, for `Retry-After`.
    pub fn retry_after(self) -> u64 {
        self.after.as_millis().div_ceil(1000).max(1) as u64
    }
}

/// Why an answer to a challenge is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unproved {
    /// The Digest answer is missing, wrong, stale or replayed.
    #[error(transparent)]
    Digest(DigestRefusal),
    /// The client has stated too many wrong passwords.
    #[error(transparent)]
    Guesses(TooManyGuesses),
}

impl Passwords {
    /// Creates it with a secret key of its own.
    ///
    /// # Errors
    /// The system provides no random bytes.
    pub fn open(users: UserFile) -> std::io::Result<Self> {
        crate::random::bytes().map(|key| Self::new(users, &key))
    }

    /// Returns the passwords `before` with the users that were read just now, where they are of the same file: answers to its
    /// challenges stay valid. Else creates one.
    ///
    /// # Errors
    /// The system provides no random bytes.
    pub fn open_after(users: UserFile, before: Option<&Arc<Self>>) -> std::io::Result<Arc<Self>> {
        match before.filter(|before| before.file == users.path) {
            Some(known) => {
                *known.users.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(users.users);
                Ok(known.clone())
            }
            None => Self::open(users).map(Arc::new),
        }
    }

    /// Creates it with a secret `key`, which signs nonces.
    pub fn new(UserFile { path, users }: UserFile, key: &[u8; 32]) -> Self {
        let guard = Guard::new(REALM, &[Algorithm::Sha256, Algorithm::Md5], Nonces::new(key, LIFETIME));
        let replays = Mutex::new(Replays::new(NONCES));
        Self {
            guard,
            replays,
            guesses: Guesses::new(),
            users: RwLock::new(Arc::new(users)),
            file: path,
            seen: Mutex::default(),
        }
    }

    fn users(&self) -> Arc<Users> {
        self.users.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads the file again if it has changed. Returns whether the set of users is a new one.
    ///
    /// Blocks on the disk.
    ///
    /// # Errors
    /// All faults of the file, reported once. The users of the last good file stay valid.
    fn reload(&self) -> Result<bool, Vec<UsersError>> {
        let now = Some(FileStamp::of(&self.file));
        if std::mem::replace(&mut *self.seen.lock().unwrap_or_else(PoisonError::into_inner), now) == now {
            return Ok(false);
        }
        let fresh = Users::read(&self.file)?;
        let mut users = self.users.write().unwrap_or_else(PoisonError::into_inner);
        let is_other = **users != fresh;
        *users = Arc::new(fresh);
        Ok(is_other)
    }

    /// Returns challenges to a client at a time of the server's clock: values of `WWW-Authenticate`, the preferred one first.
    pub fn challenges(&self, now: Duration, is_stale: bool) -> Vec<String> {
        self.guard.challenges(now, fastrand::u64(..), is_stale)
    }

    /// Checks a Digest answer of a client at a time of the server's clock.
    ///
    /// # Errors
    /// The reason of the refusal.
    pub fn check_digest(&self, asked: &DigestRequest<'_>, client: IpAddr, now: Duration) -> Result<(), Unproved> {
        let users = self.users();
        let mut named = None;
        let right = self.guard.check(asked, now, |name, algorithm| {
            let may = self.guesses.may(client, name, now);
            let is_open = may.is_ok();
            named = Some((name.to_owned(), may));
            users.secret(name, algorithm).filter(|_| is_open)
        });
        let admit = |answer| self.replays.lock().unwrap_or_else(PoisonError::into_inner).admit(&answer);
        let checked = right.and_then(admit);
        // Without a user name the request has no answer, or one for another realm or URL.
        let Some((name, may)) = named else { return checked.map_err(Unproved::Digest) };
        may.map_err(|after| Unproved::Guesses(TooManyGuesses { after }))?;
        match &checked {
            Ok(()) => self.guesses.forget(client, &name),
            Err(DigestRefusal::Wrong { .. }) => self.guesses.count(client, &name, now),
            Err(_) => {}
        }
        checked.map_err(Unproved::Digest)
    }

    /// Checks a text `NAME:PASSWORD` that a client states.
    fn check_stated(&self, text: &str, client: IpAddr, now: Duration) -> Result<(), Unproved> {
        let Some((name, password)) = text.split_once(':') else {
            return Err(Unproved::Digest(DigestRefusal::Anonymous));
        };
        match self.knows(name, password, client, now).map_err(Unproved::Guesses)? {
            true => Ok(()),
            false => Err(Unproved::Digest(DigestRefusal::Anonymous)),
        }
    }

    /// Whether there is a user with this password, stated by a client at a time of the server's clock.
    ///
    /// # Errors
    /// The client has stated too many wrong ones.
    pub fn knows(&self, name: &str, password: &str, client: IpAddr, now: Duration) -> Result<bool, TooManyGuesses> {
        self.guesses.may(client, name, now).map_err(|after| TooManyGuesses { after })?;
        let found = Secret::of(Algorithm::Sha256, name, REALM, password);
        let is_known = self.users().secret(name, Algorithm::Sha256) == Some(found);
        match is_known {
            true => self.guesses.forget(client, name),
            false => self.guesses.count(client, name, now),
        }
        Ok(is_known)
    }
}

/// Reads the users again when their file changes. Ends on shutdown, and when nobody uses them any more.
pub async fn watch(passwords: Weak<Passwords>, shutdown: watch::Receiver<bool>) {
    let mut looks = Looks::until(shutdown);
    while looks.next().await {
        let Some(passwords) = passwords.upgrade() else { return };
        let looked = passwords.clone();
        match tokio::task::spawn_blocking(move || looked.reload()).await {
            Ok(Ok(true)) => tracing::info!(file = %passwords.file.display(), "RTSP users read again"),
            Ok(Ok(false)) => {}
            Ok(Err(all)) => all.iter().for_each(|error| {
                tracing::error!(file = %passwords.file.display(), %error, "RTSP users can't be read: the last good \
                                                                           users stay in force");
            }),
            Err(error) => tracing::error!(%error, "checking the file of RTSP users failed"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_changes_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("users");
        std::fs::write(&path, "ann:pass\n").unwrap();
        let passwords = Passwords::new(UserFile { users: Users::read(&path).unwrap(), path: path.clone() }, &[7; 32]);
        let client = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
        let is_let_in = |password| passwords.knows("ann", password, client, Duration::ZERO).unwrap();
        assert!(!passwords.reload().unwrap() && is_let_in("pass"), "nothing changed");
        std::fs::write(&path, "ann:other word\n").unwrap();
        assert!(is_let_in("pass"), "the old password holds until the file is read again");
        assert!(passwords.reload().unwrap());
        assert!(!is_let_in("pass") && is_let_in("other word"));
        std::fs::write(&path, "ann:third\nbob\n").unwrap();
        let wrong = passwords.reload().unwrap_err();
        assert_eq!(wrong[0].to_string(), "line 2: expected name:password, found no colon");
        assert!(!passwords.reload().unwrap(), "told once");
        assert!(is_let_in("other word"), "the last good ones");
        std::fs::remove_file(&path).unwrap();
        assert!(matches!(passwords.reload().unwrap_err()[..], [UsersError::Unreadable(_)]));
        assert!(is_let_in("other word"));
    }
}
