//! Admits requests of known users (Digest, RFC 7616) and refuses all others.

use super::{
    random,
    reply::Reply,
    settings::RtspUsers,
    users::{REALM, Users, UsersError},
};
use crate::files::{Looks, Stamp};
use crate::live::PublishSettings;
use base64::Engine as _;
use millpond_rtp::{
    digest::{
        Algorithm, Authorization, AuthorizationError, DigestRefusal, DigestRequest, Guard, Replays, Secret,
        nonce::Nonces,
    },
    message::{Method, Request, StatusCode, Url, headers::AUTHORIZATION},
};
use millpond_stream::Conflict;
use std::{
    net::IpAddr,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError, RwLock, Weak},
    time::Duration,
};
use tokio::sync::watch;

/// Lifetime of a challenge. Afterwards the client gets a new one, which players answer without asking their user.
const LIFETIME: Duration = Duration::from_secs(3600);

/// Number of nonces whose uses are counted, some 150 bytes each. Beyond it the oldest nonces become stale.
const NONCES: usize = 16_384;

/// The user file, and the state of Digest authentication.
#[derive(Debug)]
pub(crate) struct Access {
    guard: Guard,
    /// A lock: taken for each correct answer.
    replays: Mutex<Replays>,
    /// Read by each request; replaced when the file has changed.
    users: RwLock<Arc<Users>>,
    file: PathBuf,
    /// Stamp of the file when it was last read, with or without success; `None` before the first read.
    seen: Mutex<Option<Stamp>>,
}

/// Admission of publishers.
#[derive(Debug)]
pub(crate) struct Publishers {
    settings: PublishSettings,
    access: Option<Arc<Access>>,
}

/// What a publisher needs.
#[derive(Debug)]
pub(super) enum Admission<'a> {
    /// Nothing.
    Free,
    /// Credentials.
    Users(&'a Access),
    /// The client may not publish.
    Forbidden,
}

impl Publishers {
    /// Creates it. Users of the same file are those of `before`.
    ///
    /// # Errors
    /// The system provides no random bytes.
    pub(super) fn open(settings: PublishSettings, before: Option<&Self>) -> std::io::Result<Self> {
        let known = before.and_then(|before| before.access.as_ref());
        let access = settings.users.clone().map(|users| Access::open_after(users, known)).transpose()?;
        Ok(Self { settings, access })
    }

    /// Tells what a client needs.
    pub(super) fn admission(&self, client: IpAddr) -> Admission<'_> {
        match &self.access {
            Some(access) => Admission::Users(access),
            None if self.settings.admits(client) => Admission::Free,
            None => Admission::Forbidden,
        }
    }

    /// The users, where there are any.
    pub(super) fn access(&self) -> Option<&Arc<Access>> {
        self.access.as_ref()
    }

    /// What becomes of a second publisher.
    pub(crate) fn conflict(&self) -> Conflict {
        self.settings.conflict
    }
}

/// A client of HTTP that shows credentials.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HttpClient<'a> {
    pub(crate) address: IpAddr,
    /// Whether it is connected over TLS.
    pub(crate) is_secure: bool,
    pub(crate) method: &'a str,
    /// Path and query.
    pub(crate) target: &'a str,
    pub(crate) authorization: Option<&'a str>,
}

/// Why a client of HTTP is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HttpRefusal {
    /// Only clients of this machine may publish.
    Forbidden,
    /// The credentials can't be read.
    Malformed(String),
    /// Other credentials are needed. The values of `WWW-Authenticate` follow.
    Challenge(Vec<String>),
}

impl Publishers {
    /// Checks the credentials of a publisher by HTTP at a time of the server's clock.
    ///
    /// # Errors
    /// The reason of the refusal.
    pub(crate) fn admit_http(&self, asked: &HttpClient<'_>, now: Duration) -> Result<(), HttpRefusal> {
        match self.admission(asked.address) {
            Admission::Free => Ok(()),
            Admission::Forbidden => Err(HttpRefusal::Forbidden),
            Admission::Users(access) => access.admit_http(asked, now),
        }
    }
}

impl Access {
    /// Checks the credentials of a client of HTTP at a time of the server's clock: Digest, or Basic where nobody can
    /// overhear it, which is over TLS and from the same machine.
    ///
    /// # Errors
    /// The reason of the refusal.
    pub(crate) fn admit_http(&self, asked: &HttpClient<'_>, now: Duration) -> Result<(), HttpRefusal> {
        let takes_basic = asked.is_secure || asked.address.to_canonical().is_loopback();
        let basic = asked.authorization.and_then(|text| {
            let (scheme, value) = text.split_once(' ')?;
            scheme.eq_ignore_ascii_case("basic").then(|| value.trim())
        });
        let why = match basic {
            Some(value) if takes_basic && self.knows_basic(value) => return Ok(()),
            Some(_) => DigestRefusal::Anonymous,
            None => {
                let HttpClient { method, target: uri, authorization, .. } = *asked;
                match self.check_digest(&DigestRequest { method, uri, authorization }, now) {
                    Ok(()) => return Ok(()),
                    Err(why) => why,
                }
            }
        };
        if let DigestRefusal::Malformed(error) = &why
            && !matches!(error, AuthorizationError::Scheme(_))
        {
            return Err(HttpRefusal::Malformed(error.to_string()));
        }
        let mut challenges = self.guard.challenges(now, fastrand::u64(..), why.is_stale());
        if takes_basic {
            challenges.push(format!("Basic realm=\"{REALM}\", charset=\"UTF-8\""));
        }
        Err(HttpRefusal::Challenge(challenges))
    }
}

/// Why a publisher that states its password as it is, by RTMP, is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum OpenRefusal {
    /// Only clients of this machine may publish.
    #[error("without publish-users only clients of this machine may publish")]
    Forbidden,
    /// Everybody on the way could read the password.
    #[error("passwords are taken over TLS (rtmps) and from this machine only")]
    Exposed,
    /// There is no such user with that password.
    #[error("another user or password is needed: ?user=NAME&pass=PASSWORD")]
    Unknown,
}

impl Publishers {
    /// Checks the name and the password of a client that states them as they are. They are taken where nobody can overhear
    /// them: over TLS (`is_secure`), and from the same machine.
    ///
    /// # Errors
    /// The reason of the refusal.
    pub(crate) fn admit_open(
        &self,
        (client, is_secure): (IpAddr, bool),
        credentials: Option<(&str, &str)>,
    ) -> Result<(), OpenRefusal> {
        match self.admission(client) {
            Admission::Free => Ok(()),
            Admission::Forbidden => Err(OpenRefusal::Forbidden),
            Admission::Users(_) if !is_secure && !client.to_canonical().is_loopback() => Err(OpenRefusal::Exposed),
            Admission::Users(access) => {
                let is_known = credentials.is_some_and(|(name, password)| access.knows(name, password));
                if is_known { Ok(()) } else { Err(OpenRefusal::Unknown) }
            }
        }
    }
}

/// A refused request.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) why: DigestRefusal,
    pub(super) reply: Reply,
}

impl Access {
    /// Creates it with a secret key of its own.
    ///
    /// # Errors
    /// The system provides no random bytes.
    pub(crate) fn open(users: RtspUsers) -> std::io::Result<Self> {
        random::bytes().map(|key| Self::new(users, &key))
    }

    /// Returns the access `before` with the users that were read just now, where they are of the same file: answers to its
    /// challenges stay valid. Else creates one.
    ///
    /// # Errors
    /// The system provides no random bytes.
    pub(crate) fn open_after(users: RtspUsers, before: Option<&Arc<Self>>) -> std::io::Result<Arc<Self>> {
        match before.filter(|before| before.file == users.path) {
            Some(known) => {
                *known.users.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(users.users);
                Ok(known.clone())
            }
            None => Self::open(users).map(Arc::new),
        }
    }

    /// Creates it with a secret `key`, which signs nonces.
    pub(super) fn new(RtspUsers { path, users }: RtspUsers, key: &[u8; 32]) -> Self {
        let guard = Guard::new(REALM, &[Algorithm::Sha256, Algorithm::Md5], Nonces::new(key, LIFETIME));
        let replays = Mutex::new(Replays::new(NONCES));
        Self { guard, replays, users: RwLock::new(Arc::new(users)), file: path, seen: Mutex::default() }
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
        let now = Some(Stamp::of(&self.file));
        if std::mem::replace(&mut *self.seen.lock().unwrap_or_else(PoisonError::into_inner), now) == now {
            return Ok(false);
        }
        let fresh = Users::read(&self.file)?;
        let mut users = self.users.write().unwrap_or_else(PoisonError::into_inner);
        let is_other = **users != fresh;
        *users = Arc::new(fresh);
        Ok(is_other)
    }

    /// Checks a Digest answer at a time of the server's clock.
    fn check_digest(&self, asked: &DigestRequest<'_>, now: Duration) -> Result<(), DigestRefusal> {
        let users = self.users();
        let right = self.guard.check(asked, now, |name, algorithm| users.secret(name, algorithm));
        let admit = |answer| self.replays.lock().unwrap_or_else(PoisonError::into_inner).admit(&answer);
        right.and_then(admit)
    }

    /// Checks the credentials of Basic authentication (RFC 7617).
    fn knows_basic(&self, value: &str) -> bool {
        let decoded = base64::engine::general_purpose::STANDARD.decode(value).ok();
        let text = decoded.and_then(|bytes| String::from_utf8(bytes).ok());
        text.as_deref().and_then(|text| text.split_once(':')).is_some_and(|(name, password)| self.knows(name, password))
    }

    /// Whether there is a user with this password.
    fn knows(&self, name: &str, password: &str) -> bool {
        let found = Secret::of(Algorithm::Sha256, name, REALM, password);
        self.users().secret(name, Algorithm::Sha256) == Some(found)
    }

    /// Checks a request at a time of the server's clock. OPTIONS needs no credentials.
    ///
    /// # Errors
    /// The reason of the refusal, and the reply.
    pub(super) fn check(&self, request: &Request<Vec<u8>>, now: Duration) -> Result<(), Box<Refused>> {
        if matches!(request.method(), Method::Options) {
            return Ok(());
        }
        let authorization = request.header(&AUTHORIZATION).map(|value| value.as_str());
        let url = request.request_uri();
        let same = authorization.and_then(|header| answered(header, url?));
        let uri = same.as_deref().or(url.map(Url::as_str)).unwrap_or("*");
        let asked = DigestRequest { method: request.method().into(), uri, authorization };
        let Err(why) = self.check_digest(&asked, now) else { return Ok(()) };
        let reply = match &why {
            // A client that tries another scheme gets a challenge, which names the supported one.
            DigestRefusal::Malformed(error) if !matches!(error, AuthorizationError::Scheme(_)) => {
                Reply::new(StatusCode::BadRequest)
            }
            _ => Reply::challenge(self.guard.challenges(now, fastrand::u64(..), why.is_stale())),
        };
        Err(Box::new(Refused { why, reply }))
    }
}

/// Reads the users again when their file changes. Ends on shutdown, and when nobody uses them any more.
pub(crate) async fn watch(access: Weak<Access>, shutdown: watch::Receiver<bool>) {
    let mut looks = Looks::until(shutdown);
    while looks.next().await {
        let Some(access) = access.upgrade() else { return };
        let looked = access.clone();
        match tokio::task::spawn_blocking(move || looked.reload()).await {
            Ok(Ok(true)) => tracing::info!(file = %access.file.display(), "RTSP users read again"),
            Ok(Ok(false)) => {}
            Ok(Err(all)) => all.iter().for_each(|error| {
                tracing::error!(file = %access.file.display(), %error, "RTSP users can't be read, the last good ones stay");
            }),
            Err(error) => tracing::error!(%error, "checking the file of RTSP users failed"),
        }
    }
}

/// Returns the URL of the `Authorization` header as the client wrote it, if it equals the request's URL after
/// normalization. Requests hold normalized URLs.
fn answered(header: &str, url: &Url) -> Option<String> {
    let answer: Authorization = header.parse().ok()?;
    (Url::parse(&answer.uri).ok()? == *url).then_some(answer.uri)
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_rtp::{digest::Qop, message::Version};

    const URL: &str = "rtsp://127.0.0.1/a.mp4";

    fn access() -> Access {
        Access::new(RtspUsers { path: "users".into(), users: Users::parse(b"ann:pass").unwrap() }, &[7; 32])
    }

    fn request(method: Method, url: &str, authorization: Option<&str>) -> Request<Vec<u8>> {
        let builder = Request::builder(method, Version::V1_0).request_uri(Url::parse(url).unwrap());
        let builder = match authorization {
            Some(header) => builder.header(AUTHORIZATION, header),
            None => builder,
        };
        builder.build(Vec::new())
    }

    /// Returns the nonce of the first challenge.
    fn nonce(refused: &Refused) -> String {
        refused.reply.challenges[0].split("nonce=\"").nth(1).unwrap().split('"').next().unwrap().to_owned()
    }

    fn answer(nonce: &str, algorithm: Algorithm, url: &str, password: &str) -> String {
        let qop = Qop { count: 1, cnonce: "x".into() };
        let response = Secret::of(algorithm, "ann", REALM, password).response("DESCRIBE", url, nonce, Some(&qop));
        format!(
            r#"Digest username="ann", realm="{REALM}", nonce="{nonce}", uri="{url}", response="{response}", algorithm={}, qop=auth, nc=00000001, cnonce="x""#,
            algorithm.name()
        )
    }

    #[test]
    fn who_knows_a_password_is_let_in() {
        let access = access();
        let now = Duration::from_secs(5);
        assert!(access.check(&request(Method::Options, URL, None), now).is_ok());
        let refused = access.check(&request(Method::Describe, URL, None), now).unwrap_err();
        assert_eq!((refused.reply.status, &refused.why), (StatusCode::Unauthorized, &DigestRefusal::Anonymous));
        let challenges = &refused.reply.challenges;
        assert!(
            challenges[0].contains("algorithm=SHA-256") && challenges[1].contains("algorithm=MD5"),
            "{challenges:?}"
        );
        assert_eq!(challenges.len(), 2);
        for algorithm in [Algorithm::Sha256, Algorithm::Md5] {
            let refused = access.check(&request(Method::Describe, URL, None), now).unwrap_err();
            let right = answer(&nonce(&refused), algorithm, URL, "pass");
            assert!(access.check(&request(Method::Describe, URL, Some(&right)), now).is_ok());
            let replayed = access.check(&request(Method::Describe, URL, Some(&right)), now).unwrap_err();
            assert!(matches!(replayed.why, DigestRefusal::Replayed { count: 1, .. }), "{:?}", replayed.why);
            assert!(replayed.reply.challenges[0].contains("stale=true"), "who knows the password may answer anew");
            let other = access.check(&request(Method::Setup, URL, Some(&right)), now).unwrap_err();
            assert!(matches!(other.why, DigestRefusal::Wrong { .. }), "an answer to another method");
            let wrong = answer(&nonce(&refused), algorithm, URL, "guess");
            let refused = access.check(&request(Method::Describe, URL, Some(&wrong)), now).unwrap_err();
            assert_eq!(refused.reply.status, StatusCode::Unauthorized);
            assert!(!refused.reply.challenges[0].contains("stale"));
        }
    }

    #[test]
    fn passwords_in_the_clear_are_taken_where_nobody_overhears_them() {
        let settings =
            |users, is_open| PublishSettings { users_file: None, users, is_open, conflict: Conflict::Refuse };
        let users = RtspUsers { path: "users".into(), users: Users::parse(b"ann:pass\n").unwrap() };
        let (here, there): (IpAddr, IpAddr) = ("::ffff:127.0.0.1".parse().unwrap(), "192.0.2.1".parse().unwrap());
        let with = Publishers::open(settings(Some(users), true), None).unwrap();
        let known = Some(("ann", "pass"));
        assert_eq!(with.admit_open((here, false), known), Ok(()));
        assert_eq!(with.admit_open((there, true), known), Ok(()));
        assert_eq!(with.admit_open((there, false), known), Err(OpenRefusal::Exposed));
        for unknown in [None, Some(("ann", "guess")), Some(("ann", "")), Some(("bob", "pass")), Some(("", ""))] {
            assert_eq!(with.admit_open((here, true), unknown), Err(OpenRefusal::Unknown));
        }
        let without = Publishers::open(settings(None, false), None).unwrap();
        assert_eq!(without.admit_open((here, false), None), Ok(()));
        assert_eq!(without.admit_open((there, true), known), Err(OpenRefusal::Forbidden));
        let open = Publishers::open(settings(None, true), None).unwrap();
        assert_eq!(open.admit_open((there, false), None), Ok(()));
    }

    #[test]
    fn an_old_nonce_is_stale() {
        let access = access();
        let refused = access.check(&request(Method::Describe, URL, None), Duration::ZERO).unwrap_err();
        let right = request(Method::Describe, URL, Some(&answer(&nonce(&refused), Algorithm::Md5, URL, "pass")));
        assert!(access.check(&right, LIFETIME).is_ok());
        let refused = access.check(&right, LIFETIME + Duration::from_secs(1)).unwrap_err();
        assert_eq!((refused.reply.status, &refused.why), (StatusCode::Unauthorized, &DigestRefusal::Stale));
        assert!(refused.reply.challenges.iter().all(|challenge| challenge.contains("stale=true")));
    }

    #[test]
    fn a_file_that_changes_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("users");
        std::fs::write(&path, "ann:pass\n").unwrap();
        let access = Access::new(RtspUsers { users: Users::read(&path).unwrap(), path: path.clone() }, &[7; 32]);
        let is_let_in = |password| {
            let refused = access.check(&request(Method::Describe, URL, None), Duration::ZERO).unwrap_err();
            let answer = answer(&nonce(&refused), Algorithm::Sha256, URL, password);
            access.check(&request(Method::Describe, URL, Some(&answer)), Duration::ZERO).is_ok()
        };
        assert!(!access.reload().unwrap() && is_let_in("pass"), "nothing changed");
        std::fs::write(&path, "ann:other word\n").unwrap();
        assert!(is_let_in("pass"), "before it is looked at");
        assert!(access.reload().unwrap());
        assert!(!is_let_in("pass") && is_let_in("other word"));
        std::fs::write(&path, "ann:third\nbob\n").unwrap();
        let wrong = access.reload().unwrap_err();
        assert_eq!(wrong[0].to_string(), "line 2: expected name:password, found no colon");
        assert!(!access.reload().unwrap(), "told once");
        assert!(is_let_in("other word"), "the last good ones");
        std::fs::remove_file(&path).unwrap();
        assert!(matches!(access.reload().unwrap_err()[..], [UsersError::Unreadable(_)]));
        assert!(is_let_in("other word"));
    }

    #[test]
    fn urls_may_be_written_in_another_way() {
        let access = access();
        let url = "rtsp://127.0.0.1/фильм.mp4";
        let refused = access.check(&request(Method::Describe, url, None), Duration::ZERO).unwrap_err();
        let right = answer(&nonce(&refused), Algorithm::Sha256, url, "pass");
        assert!(access.check(&request(Method::Describe, url, Some(&right)), Duration::ZERO).is_ok());
        assert!(access.check(&request(Method::Describe, URL, Some(&right)), Duration::ZERO).is_err(), "another URL");
    }

    #[test]
    fn other_schemes_are_told_which_to_take() {
        let access = access();
        let basic = access.check(&request(Method::Describe, URL, Some("Basic YW5uOnBhc3M=")), Duration::ZERO);
        assert_eq!(basic.unwrap_err().reply.status, StatusCode::Unauthorized);
        let broken = access.check(&request(Method::Describe, URL, Some("Digest nonsense")), Duration::ZERO);
        assert_eq!(broken.unwrap_err().reply.status, StatusCode::BadRequest);
    }
}
