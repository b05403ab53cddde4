//! Admission of publishers: by their address, or by passwords.

use super::{HttpClient, HttpRefusal, Passwords, PublishSettings, TooManyGuesses};
use millpond_stream::Conflict;
use std::{net::IpAddr, sync::Arc, time::Duration};

/// Admission of publishers.
#[derive(Debug)]
pub struct Publishers {
    settings: PublishSettings,
    passwords: Option<Arc<Passwords>>,
}

/// Condition under which a client may publish or play.
#[derive(Debug)]
pub enum PublisherAdmission<'a> {
    /// No credentials are needed.
    Free,
    /// The client must state the name and password of one of these users.
    Users(&'a Passwords),
    /// The client may not publish.
    Forbidden,
}

/// Why a publisher that states its password as it is, by RTMP, is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenRefusal {
    /// Only clients of this machine may publish.
    #[error("without publish-users only clients of this machine may publish")]
    Forbidden,
    /// Everybody on the way could read the password.
    #[error("passwords are taken over TLS (rtmps) and from this machine only")]
    Exposed,
    /// There is no such user with that password.
    #[error("another user or password is needed: ?user=NAME&pass=PASSWORD")]
    Unknown,
    /// The client has stated too many wrong passwords for the user.
    #[error("{0}")]
    Guesses(TooManyGuesses),
}

impl Publishers {
    /// Creates it. Users of the same file are those of `before`.
    ///
    /// # Errors
    /// The system provides no random bytes.
    pub fn open(settings: PublishSettings, before: Option<&Self>) -> std::io::Result<Self> {
        let known = before.and_then(|before| before.passwords.as_ref());
        let passwords = settings.users.clone().map(|users| Passwords::open_after(users, known)).transpose()?;
        Ok(Self { settings, passwords })
    }

    /// Returns the condition under which a client may publish.
    pub fn admission(&self, client: IpAddr) -> PublisherAdmission<'_> {
        match &self.passwords {
            Some(passwords) => PublisherAdmission::Users(passwords),
            None if self.settings.admits(client) => PublisherAdmission::Free,
            None => PublisherAdmission::Forbidden,
        }
    }

    /// The passwords, where there are users.
    pub fn passwords(&self) -> Option<&Arc<Passwords>> {
        self.passwords.as_ref()
    }

    /// Treatment of a second publisher of a stream.
    pub fn conflict(&self) -> Conflict {
        self.settings.conflict
    }

    /// Checks the credentials of a publisher by HTTP at a time of the server's clock.
    ///
    /// # Errors
    /// The reason of the refusal.
    pub fn admit_http(&self, asked: &HttpClient<'_>, now: Duration) -> Result<(), HttpRefusal> {
        match self.admission(asked.address) {
            PublisherAdmission::Free => Ok(()),
            PublisherAdmission::Forbidden => Err(HttpRefusal::Forbidden),
            PublisherAdmission::Users(passwords) => passwords.admit_http(asked, now),
        }
    }

    /// Checks the name and the password of a client that states them as they are, at a time of the server's clock. They are
    /// taken where nobody can overhear them: over TLS (`is_secure`), and from the same machine.
    ///
    /// # Errors
    /// The reason of the refusal.
    pub fn admit_open(
        &self,
        (client, is_secure): (IpAddr, bool),
        credentials: Option<(&str, &str)>,
        now: Duration,
    ) -> Result<(), OpenRefusal> {
        match self.admission(client) {
            PublisherAdmission::Free => Ok(()),
            PublisherAdmission::Forbidden => Err(OpenRefusal::Forbidden),
            PublisherAdmission::Users(_) if !is_secure && !client.to_canonical().is_loopback() => {
                Err(OpenRefusal::Exposed)
            }
            PublisherAdmission::Users(passwords) => {
                let (name, password) = credentials.ok_or(OpenRefusal::Unknown)?;
                match passwords.knows(name, password, client, now).map_err(OpenRefusal::Guesses)? {
                    true => Ok(()),
                    false => Err(OpenRefusal::Unknown),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{UserFile, Users};

    #[test]
    fn passwords_in_the_clear_are_taken_where_nobody_overhears_them() {
        let settings =
            |users, is_open| PublishSettings { users_file: None, users, is_open, conflict: Conflict::Refuse };
        let users = UserFile { path: "users".into(), users: Users::parse(b"ann:pass\n").unwrap() };
        let (here, there): (IpAddr, IpAddr) = ("::ffff:127.0.0.1".parse().unwrap(), "192.0.2.1".parse().unwrap());
        let with = Publishers::open(settings(Some(users), true), None).unwrap();
        let known = Some(("ann", "pass"));
        assert_eq!(with.admit_open((here, false), known, Duration::ZERO), Ok(()));
        assert_eq!(with.admit_open((there, true), known, Duration::ZERO), Ok(()));
        assert_eq!(with.admit_open((there, false), known, Duration::ZERO), Err(OpenRefusal::Exposed));
        for unknown in [None, Some(("ann", "guess")), Some(("ann", "")), Some(("bob", "pass")), Some(("", ""))] {
            assert_eq!(with.admit_open((here, true), unknown, Duration::ZERO), Err(OpenRefusal::Unknown));
        }
        let without = Publishers::open(settings(None, false), None).unwrap();
        assert_eq!(without.admit_open((here, false), None, Duration::ZERO), Ok(()));
        assert_eq!(without.admit_open((there, true), known, Duration::ZERO), Err(OpenRefusal::Forbidden));
        let open = Publishers::open(settings(None, true), None).unwrap();
        assert_eq!(open.admit_open((there, false), None, Duration::ZERO), Ok(()));
    }
}
