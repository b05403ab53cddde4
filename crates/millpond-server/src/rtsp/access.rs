//! Admits requests of known users (Digest, RFC 7616) and refuses all others.

use super::{
    guesses::Guesses,
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
    message::{
        Method, Request, StatusCode, Url,
        headers::{AUTHORIZATION, RETRY_AFTER},
    },
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
    guesses: Guesses,
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
    /// Whether a trusted proxy forwarded the request, which may have removed a prefix of the path.
    pub(crate) is_forwarded: bool,
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
    /// The client has stated too many wrong passwords for the user.
    Guesses(TooManyGuesses),
}

/// A client has stated too many wrong passwords for a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many wrong passwords for this user")]
pub(crate) struct TooManyGuesses {
    /// Time after which the client may try again.
    after: Duration,
}

impl TooManyGuesses {
    /// Whole seconds after which the client may try again, for `Retry-After`.
    pub(crate) fn retry_after(self) -> u64 {
        self.after.as_millis().div_ceil(1000).max(1) as u64
    }
}

/// Why an answer to a challenge is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unproved {
    #[error(transparent)]
    Digest(DigestRefusal),
    #[error(transparent)]
    Guesses(TooManyGuesses),
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
        let proved = match basic {
            Some(value) if takes_basic => self.check_basic(value, asked.address, now),
            Some(_) => Err(Unproved::Digest(DigestRefusal::Anonymous)),
            None => {
                let HttpClient { address, method, target, authorization, is_forwarded, .. } = *asked;
                let longer = authorization.filter(|_| is_forwarded).and_then(|header| with_prefix(header, target));
                let uri = longer.as_deref().unwrap_or(target);
                self.check_digest(&DigestRequest { method, uri, authorization }, address, now)
            }
        };
        let why = match proved {
            Ok(()) => return Ok(()),
            Err(Unproved::Guesses(many)) => return Err(HttpRefusal::Guesses(many)),
            Err(Unproved::Digest(why)) => why,
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
    /// The client has stated too many wrong passwords for the user.
    #[error("{0}")]
    Guesses(TooManyGuesses),
}

impl Publishers {
    /// Checks the name and the password of a client that states them as they are, at a time of the server's clock. They are
    /// taken where nobody can overhear them: over TLS (`is_secure`), and from the same machine.
    ///
    /// # Errors
    /// The reason of the refusal.
    pub(crate) fn admit_open(
        &self,
        (client, is_secure): (IpAddr, bool),
        credentials: Option<(&str, &str)>,
        now: Duration,
    ) -> Result<(), OpenRefusal> {
        match self.admission(client) {
            Admission::Free => Ok(()),
            Admission::Forbidden => Err(OpenRefusal::Forbidden),
            Admission::Users(_) if !is_secure && !client.to_canonical().is_loopback() => Err(OpenRefusal::Exposed),
            Admission::Users(access) => {
                let (name, password) = credentials.ok_or(OpenRefusal::Unknown)?;
                match access.knows(name, password, client, now).map_err(OpenRefusal::Guesses)? {
                    true => Ok(()),
                    false => Err(OpenRefusal::Unknown),
                }
            }
        }
    }
}

/// A refused request.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) why: Unproved,
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

    /// Checks a Digest answer of a client at a time of the server's clock.
    fn check_digest(&self, asked: &DigestRequest<'_>, client: IpAddr, now: Duration) -> Result<(), Unproved> {
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

    /// Checks the credentials of Basic authentication (RFC 7617).
    fn check_basic(&self, value: &str, client: IpAddr, now: Duration) -> Result<(), Unproved> {
        let decoded = base64::engine::general_purpose::STANDARD.decode(value).ok();
        let text = decoded.and_then(|bytes| String::from_utf8(bytes).ok());
        let Some((name, password)) = text.as_deref().and_then(|text| text.split_once(':')) else {
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
    fn knows(&self, name: &str, password: &str, client: IpAddr, now: Duration) -> Result<bool, TooManyGuesses> {
        self.guesses.may(client, name, now).map_err(|after| TooManyGuesses { after })?;
        let found = Secret::of(Algorithm::Sha256, name, REALM, password);
        let is_known = self.users().secret(name, Algorithm::Sha256) == Some(found);
        match is_known {
            true => self.guesses.forget(client, name),
            false => self.guesses.count(client, name, now),
        }
        Ok(is_known)
    }

    /// Checks a request of a client at a time of the server's clock. OPTIONS needs no credentials.
    ///
    /// # Errors
    /// The reason of the refusal, and the reply.
    pub(super) fn check(&self, request: &Request<Vec<u8>>, client: IpAddr, now: Duration) -> Result<(), Box<Refused>> {
        if matches!(request.method(), Method::Options) {
            return Ok(());
        }
        let authorization = request.header(&AUTHORIZATION).map(|value| value.as_str());
        let url = request.request_uri();
        let same = authorization.and_then(|header| answered(header, url?));
        let uri = same.as_deref().or(url.map(Url::as_str)).unwrap_or("*");
        let asked = DigestRequest { method: request.method().into(), uri, authorization };
        let Err(why) = self.check_digest(&asked, client, now) else { return Ok(()) };
        let reply = match &why {
            Unproved::Guesses(many) => {
                let reply = Reply::new(StatusCode::ServiceUnavailable);
                reply.with(RETRY_AFTER, many.retry_after().to_string()).because(many)
            }
            // A client that tries another scheme gets a challenge, which names the supported one.
            Unproved::Digest(DigestRefusal::Malformed(error)) if !matches!(error, AuthorizationError::Scheme(_)) => {
                Reply::new(StatusCode::BadRequest)
            }
            Unproved::Digest(why) => Reply::challenge(self.guard.challenges(now, fastrand::u64(..), why.is_stale())),
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

/// Returns the URI of an answer to a challenge by HTTP, where it is `target` behind a prefix of the path, as the client wrote it to a
/// proxy (RFC 7616 3.4.6). Proxies may write characters of it in another way.
fn with_prefix(header: &str, target: &str) -> Option<String> {
    let decoded = |text: &str| percent_encoding::percent_decode_str(text).collect::<Vec<u8>>();
    let answer: Authorization = header.parse().ok()?;
    let (uri, target) = (decoded(&answer.uri), decoded(target));
    let prefix = uri.strip_suffix(&*target)?;
    let is_path = prefix.is_empty() || prefix.starts_with(b"/");
    (is_path && target.starts_with(b"/") && !prefix.contains(&b'?')).then_some(answer.uri)
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_rtp::{digest::Qop, message::Version};

    const URL: &str = "rtsp://127.0.0.1/a.mp4";

    fn access() -> Access {
        Access::new(RtspUsers { path: "users".into(), users: Users::parse(b"ann:pass").unwrap() }, &[7; 32])
    }

    /// The client of all requests.
    const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));

    #[test]
    fn a_trusted_proxy_may_have_removed_a_prefix() {
        let header = |uri: &str| format!(r#"Digest username="ann", realm="r", nonce="n", uri="{uri}", response="e""#);
        for (uri, target, is_covered) in [
            ("/video/films/a.mp4?x=1", "/films/a.mp4?x=1", true),
            ("/films/a.mp4", "/films/a.mp4", true),
            ("/video/a%5Bb%5D.mp4", "/a[b].mp4", true),
            ("/video/films/a.mp4", "/films/b.mp4", false),
            ("/video?x=/films/a.mp4", "/films/a.mp4", false),
            ("films/films/a.mp4", "/films/a.mp4", false),
            ("/video/", "*", false),
        ] {
            let found = with_prefix(&header(uri), target);
            assert_eq!(found.as_deref(), is_covered.then_some(uri), "{uri} for {target}");
        }
        assert_eq!(with_prefix("Basic YTpi", "/a"), None);
    }

    fn check(access: &Access, request: &Request<Vec<u8>>, now: Duration) -> Result<(), Box<Refused>> {
        access.check(request, CLIENT, now)
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
        assert!(check(&access, &request(Method::Options, URL, None), now).is_ok());
        let refused = check(&access, &request(Method::Describe, URL, None), now).unwrap_err();
        assert_eq!(
            (refused.reply.status, &refused.why),
            (StatusCode::Unauthorized, &Unproved::Digest(DigestRefusal::Anonymous))
        );
        let challenges = &refused.reply.challenges;
        assert!(
            challenges[0].contains("algorithm=SHA-256") && challenges[1].contains("algorithm=MD5"),
            "{challenges:?}"
        );
        assert_eq!(challenges.len(), 2);
        for algorithm in [Algorithm::Sha256, Algorithm::Md5] {
            let refused = check(&access, &request(Method::Describe, URL, None), now).unwrap_err();
            let right = answer(&nonce(&refused), algorithm, URL, "pass");
            assert!(check(&access, &request(Method::Describe, URL, Some(&right)), now).is_ok());
            let replayed = check(&access, &request(Method::Describe, URL, Some(&right)), now).unwrap_err();
            assert!(
                matches!(replayed.why, Unproved::Digest(DigestRefusal::Replayed { count: 1, .. })),
                "{:?}",
                replayed.why
            );
            assert!(replayed.reply.challenges[0].contains("stale=true"), "who knows the password may answer anew");
            let other = check(&access, &request(Method::Setup, URL, Some(&right)), now).unwrap_err();
            assert!(matches!(other.why, Unproved::Digest(DigestRefusal::Wrong { .. })), "an answer to another method");
            let wrong = answer(&nonce(&refused), algorithm, URL, "guess");
            let refused = check(&access, &request(Method::Describe, URL, Some(&wrong)), now).unwrap_err();
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

    #[test]
    fn an_old_nonce_is_stale() {
        let access = access();
        let refused = check(&access, &request(Method::Describe, URL, None), Duration::ZERO).unwrap_err();
        let right = request(Method::Describe, URL, Some(&answer(&nonce(&refused), Algorithm::Md5, URL, "pass")));
        assert!(check(&access, &right, LIFETIME).is_ok());
        let refused = check(&access, &right, LIFETIME + Duration::from_secs(1)).unwrap_err();
        assert_eq!(
            (refused.reply.status, &refused.why),
            (StatusCode::Unauthorized, &Unproved::Digest(DigestRefusal::Stale))
        );
        assert!(refused.reply.challenges.iter().all(|challenge| challenge.contains("stale=true")));
    }

    #[test]
    fn a_file_that_changes_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("users");
        std::fs::write(&path, "ann:pass\n").unwrap();
        let access = Access::new(RtspUsers { users: Users::read(&path).unwrap(), path: path.clone() }, &[7; 32]);
        let is_let_in = |password| {
            let refused = check(&access, &request(Method::Describe, URL, None), Duration::ZERO).unwrap_err();
            let answer = answer(&nonce(&refused), Algorithm::Sha256, URL, password);
            check(&access, &request(Method::Describe, URL, Some(&answer)), Duration::ZERO).is_ok()
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
        let refused = check(&access, &request(Method::Describe, url, None), Duration::ZERO).unwrap_err();
        let right = answer(&nonce(&refused), Algorithm::Sha256, url, "pass");
        assert!(check(&access, &request(Method::Describe, url, Some(&right)), Duration::ZERO).is_ok());
        assert!(check(&access, &request(Method::Describe, URL, Some(&right)), Duration::ZERO).is_err(), "another URL");
    }

    #[test]
    fn other_schemes_are_told_which_to_take() {
        let access = access();
        let basic = check(&access, &request(Method::Describe, URL, Some("Basic YW5uOnBhc3M=")), Duration::ZERO);
        assert_eq!(basic.unwrap_err().reply.status, StatusCode::Unauthorized);
        let broken = check(&access, &request(Method::Describe, URL, Some("Digest nonsense")), Duration::ZERO);
        assert_eq!(broken.unwrap_err().reply.status, StatusCode::BadRequest);
    }
}
