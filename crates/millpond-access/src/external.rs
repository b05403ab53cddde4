//! Decisions of another server: `auth-url`.
//!
//! Each session is asked for once, not each request: answers are remembered for the time of their `Cache-Control`, or of
//! `auth-ttl`. Equal questions at one time are one request. While the server does not answer, clients that were allowed before
//! stay allowed, for `auth-stale`; new ones get 503. All memory and all work has bounds, whatever clients send.

use super::{AccessMetrics, generations::Generations, question::Question};
use http::{HeaderValue, Method, header};
use millpond_outbound::{Client, Options, chain};
use std::{
    collections::HashMap,
    hash::{BuildHasher as _, Hash, RandomState},
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    sync::{Mutex as Turn, Semaphore},
    time::{Instant, timeout},
};
use url::Url;

/// Most questions under way.
const FLIGHTS: usize = 64;
/// Most of those about clients with one address: while the server is slow, no client keeps others from being asked for.
const OF_CLIENT: usize = 16;
/// Remembered decisions that admit clients, and others, in each of two generations.
const REMEMBERED: (usize, usize) = (16_384, 4096);
/// Least time for which an answer holds, also one with `no-store`: simultaneous requests are one question.
const LEAST: Duration = Duration::from_secs(1);
/// Time for which a refusal without `Cache-Control` is remembered. It is short, so that a user may correct a password.
const REFUSED: Duration = Duration::from_secs(2);
/// Time after which a server that did not answer is asked again.
const PAUSE: Duration = Duration::from_secs(5);
/// Longest time of an answer's `Cache-Control`.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// Settings of `auth-url`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalSettings {
    /// The server; `None` where the setting is off.
    pub url: Option<Url>,
    /// Time for which an answer without `Cache-Control` holds.
    pub ttl: Duration,
    /// Time for which a client stays allowed while the server does not answer.
    pub stale: Duration,
    /// Longest time of a question.
    pub timeout: Duration,
}

impl Default for ExternalSettings {
    fn default() -> Self {
        let (ttl, stale, timeout) = (Duration::from_secs(60), Duration::from_secs(3600), Duration::from_secs(5));
        Self { url: None, ttl, stale, timeout }
    }
}

/// A decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Allowed,
    /// The client needs a name and a password, or other ones.
    Credentials,
    Denied,
    /// The server does not answer.
    NoAnswer,
}

#[derive(Clone, Copy, Debug)]
struct Remembered {
    verdict: Verdict,
    /// The server is asked again after this time.
    fresh: Instant,
    /// An outage of the server changes nothing before this time.
    stale: Instant,
}

type Key = (u64, u64);

/// The server that decides, and its decisions.
pub(super) struct External {
    settings: ExternalSettings,
    url: Url,
    client: Client,
    /// Decisions that admit, and others. A lock: taken for look-ups.
    known: Mutex<(Generations<Key, Remembered>, Generations<Key, Remembered>)>,
    /// Questions under way, each of which one request asks while others wait for their turn.
    flights: Shared<Key, Turn<()>>,
    /// Room of each client that is asked for.
    clients: Shared<IpAddr, Semaphore>,
    room: Semaphore,
    /// Their keys are random, so that clients can't make questions with one hash.
    hashers: (RandomState, RandomState),
    metrics: AccessMetrics,
}

/// Things that requests share, by key, while any request has them. A lock: taken for a look-up.
struct Shared<K, T>(Mutex<HashMap<K, Arc<T>>>);

/// A request's share of a thing.
struct Share<'a, K: Copy + Eq + Hash, T> {
    all: &'a Shared<K, T>,
    key: K,
    thing: Arc<T>,
}

impl<K: Copy + Eq + Hash, T> Shared<K, T> {
    fn new() -> Self {
        Self(Mutex::default())
    }

    /// The thing of a key, which is made where no request has it.
    fn share(&self, key: K, make: impl FnOnce() -> T) -> Share<'_, K, T> {
        let thing = lock(&self.0).entry(key).or_insert_with(|| Arc::new(make())).clone();
        Share { all: self, key, thing }
    }
}

impl<K: Copy + Eq + Hash, T> Drop for Share<'_, K, T> {
    fn drop(&mut self) {
        let mut all = lock(&self.all.0);
        // This share and the list have it.
        if Arc::strong_count(&self.thing) == 2 {
            all.remove(&self.key);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl External {
    /// The server of the settings; `None` where there is none.
    ///
    /// # Errors
    /// The client can't be made.
    pub(super) fn open(settings: &ExternalSettings, metrics: &AccessMetrics) -> Result<Option<Self>, String> {
        let Some(url) = settings.url.clone() else { return Ok(None) };
        Ok(Some(Self {
            settings: settings.clone(),
            url,
            client: Client::new(&Options::default())?,
            known: Mutex::new((Generations::new(REMEMBERED.0), Generations::new(REMEMBERED.1))),
            flights: Shared::new(),
            clients: Shared::new(),
            room: Semaphore::new(FLIGHTS),
            hashers: (RandomState::new(), RandomState::new()),
            metrics: metrics.clone(),
        }))
    }

    /// Whether it is the server of these settings.
    pub(super) fn is_of(&self, settings: &ExternalSettings) -> bool {
        self.settings == *settings
    }

    /// Hashes of the user and of the token of a question, for limits.
    pub(super) fn identities(&self, question: &Question) -> [Option<u64>; 2] {
        question.subjects().map(|subject| subject.map(|subject| self.hashers.0.hash_one(subject)))
    }

    /// Answers a question, from memory where it was asked before.
    pub(super) async fn ask(&self, question: &Question) -> Verdict {
        let key = (self.hashers.0.hash_one(question.key()), self.hashers.1.hash_one(question.key()));
        if let Some(verdict) = self.known(key) {
            return verdict;
        }
        let flight = self.flights.share(key, Turn::default);
        let _turn = flight.thing.lock().await;
        if let Some(verdict) = self.known(key) {
            return verdict;
        }
        let answer = timeout(self.settings.timeout, self.fetch(question)).await;
        let answer = answer.unwrap_or_else(|_| Err(format!("no answer within {:?}", self.settings.timeout)));
        self.learn(key, answer, question)
    }

    /// The decision of a question while it holds.
    fn known(&self, key: Key) -> Option<Verdict> {
        let now = Instant::now();
        let mut known = lock(&self.known);
        let found = known.0.get(&key).filter(|found| now < found.fresh);
        found.or_else(|| known.1.get(&key).filter(|found| now < found.fresh)).map(|found| found.verdict)
    }

    /// Remembers an answer, or that there was none.
    fn learn(&self, key: Key, answer: Result<(Verdict, Option<Duration>), String>, question: &Question) -> Verdict {
        let now = Instant::now();
        let mut known = lock(&self.known);
        let (verdict, time) = match answer {
            Ok((Verdict::Allowed, time)) => (Verdict::Allowed, time.unwrap_or(self.settings.ttl)),
            Ok((verdict, time)) => {
                known.0.remove(&key);
                (verdict, time.unwrap_or(REFUSED))
            }
            Err(error) => {
                let before = known.0.get(&key).filter(|found| now < found.stale);
                tracing::error!(?question, error, is_spared = before.is_some(), "auth-url does not answer");
                self.metrics.asked("failed");
                if let Some(before) = before {
                    known.0.insert(key, Remembered { fresh: now + PAUSE, ..before });
                    return Verdict::Allowed;
                }
                (Verdict::NoAnswer, REFUSED)
            }
        };
        let time = time.max(LEAST);
        let (fresh, stale) = (now + time, now + time + self.settings.stale);
        let remembered = Remembered { verdict, fresh, stale };
        if verdict == Verdict::Allowed {
            known.1.remove(&key);
            known.0.insert(key, remembered);
        } else {
            known.1.insert(key, remembered);
        }
        verdict
    }

    /// Asks the server. Only status and `Cache-Control` of the answer are read.
    async fn fetch(&self, question: &Question) -> Result<(Verdict, Option<Duration>), String> {
        let client = self.clients.share(question.client(), || Semaphore::new(OF_CLIENT));
        let _room_of_client = client.thing.acquire().await.map_err(|error| error.to_string())?;
        let _room = self.room.acquire().await.map_err(|error| error.to_string())?;
        let body = serde_json::to_vec(question).map_err(|error| error.to_string())?;
        let json = HeaderValue::from_static("application/json");
        let request = self.client.request(Method::POST, self.url.clone()).header(header::CONTENT_TYPE, json);
        let reply = request.body(body).send().await.map_err(|error| chain(&error))?;
        let time = reply.headers().get(header::CACHE_CONTROL).and_then(|value| lifetime(value.to_str().ok()?));
        let verdict = match reply.status().as_u16() {
            200..300 => Verdict::Allowed,
            401 => Verdict::Credentials,
            400..500 => Verdict::Denied,
            status => return Err(format!("the status is {status}")),
        };
        self.metrics.asked(if verdict == Verdict::Allowed { "allowed" } else { "denied" });
        Ok((verdict, time))
    }
}

/// Shows no decisions.
impl std::fmt::Debug for External {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("External").field("host", &self.url.host_str()).finish_non_exhaustive()
    }
}

/// The time that `Cache-Control` gives (RFC 9111 section 5.2.2).
fn lifetime(text: &str) -> Option<Duration> {
    let mut directives = text.split(',').map(str::trim);
    let is_none = |directive: &str| ["no-store", "no-cache"].iter().any(|name| directive.eq_ignore_ascii_case(name));
    if directives.clone().any(is_none) {
        return Some(Duration::ZERO);
    }
    let age = directives.find_map(|directive| {
        let (name, value) = directive.split_once('=')?;
        name.eq_ignore_ascii_case("max-age").then(|| value.trim_matches('"').parse::<u64>().ok())?
    })?;
    Some(Duration::from_secs(age).min(LONGEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn questions_leave_nothing_behind() {
        use super::super::question::{AskingClient, AuthAction};
        let settings = ExternalSettings { url: Url::parse("http://127.0.0.1:1/").ok(), ..ExternalSettings::default() };
        let metrics = AccessMetrics::register(&mut prometheus_client::registry::Registry::default());
        let external = Arc::new(External::open(&settings, &metrics).unwrap().unwrap());
        let mut asks = tokio::task::JoinSet::new();
        for number in 0..800 {
            let external = external.clone();
            asks.spawn(async move {
                let (address, action) = ("192.0.2.7".parse().unwrap(), AuthAction::Read);
                let (query, agent) = (format!("x={}", number % 50), None);
                let asker = AskingClient {
                    address,
                    action,
                    protocol: "http",
                    token: None,
                    query: &query,
                    authorization: None,
                    agent,
                };
                external.ask(&Question::new("films/a.mp4", &asker)).await
            });
        }
        let verdicts = asks.join_all().await;
        assert!(verdicts.iter().all(|verdict| *verdict == Verdict::NoAnswer));
        assert!(lock(&external.flights.0).is_empty() && lock(&external.clients.0).is_empty());
    }

    #[tokio::test]
    async fn a_client_of_a_slow_server_keeps_no_other_from_being_asked_for() {
        use super::super::question::{AskingClient, AuthAction};
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = Url::parse(&format!("http://{}/", listener.local_addr().unwrap())).ok();
        // It never answers for one client.
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let mut request = String::new();
                    while !request.ends_with('}') {
                        request.push(char::from(stream.read_u8().await.unwrap()));
                    }
                    if request.contains("2001:db8::") {
                        std::future::pending::<()>().await;
                    }
                    let _ = stream.write_all(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n").await;
                });
            }
        });
        let settings = ExternalSettings { url, timeout: Duration::from_secs(60), ..ExternalSettings::default() };
        let metrics = AccessMetrics::register(&mut prometheus_client::registry::Registry::default());
        let external = Arc::new(External::open(&settings, &metrics).unwrap().unwrap());
        let question = |address: String, query: &str| {
            let (address, action, agent) = (address.parse().unwrap(), AuthAction::Read, None);
            let asker =
                AskingClient { address, action, protocol: "http", token: None, query, authorization: None, agent };
            Question::new("films/a.mp4", &asker)
        };
        let mut asks = tokio::task::JoinSet::new();
        for number in 0..200 {
            let (external, asked) =
                (external.clone(), question(format!("2001:db8::{number:x}"), &format!("x={number}")));
            asks.spawn(async move { external.ask(&asked).await });
        }
        while external.room.available_permits() > FLIGHTS - OF_CLIENT {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(external.ask(&question("192.0.2.8".to_owned(), "")).await, Verdict::Allowed);
        assert_eq!(external.room.available_permits(), FLIGHTS - OF_CLIENT);
        asks.shutdown().await;
        assert!(lock(&external.flights.0).is_empty() && lock(&external.clients.0).is_empty());
    }

    #[test]
    fn answers_say_how_long_they_hold() {
        let seconds = |text| lifetime(text).map(|time| time.as_secs());
        assert_eq!(seconds("private, max-age=30"), Some(30));
        assert_eq!(seconds("max-age=\"5\""), Some(5));
        assert_eq!(seconds("Max-Age=99999999999"), Some(24 * 3600));
        assert_eq!((seconds("no-store, max-age=9"), seconds("No-Cache")), (Some(0), Some(0)));
        assert_eq!((seconds("private"), seconds("max-age=-1"), seconds("")), (None, None, None));
    }
}
