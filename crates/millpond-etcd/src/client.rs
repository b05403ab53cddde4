//! The client: requests to members, one after another until one answers.

use crate::{
    error::EtcdError,
    message::{
        Base64, Failure, Header, Int, KeyValue, LeaseId, LeaseReply, Nothing, RangeReply, Revision, Streamed,
        TokenReply, WatchReply, end_of, parse,
    },
    options::EtcdOptions,
    transaction::Transaction,
    watch::KeyWatch,
};
use http::{HeaderName, HeaderValue, Method, header::AUTHORIZATION};
use reqwest::Response;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::{
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::time::timeout;
use url::Url;

/// Longest reply, in bytes.
const LONGEST: usize = 32 << 20;
/// Most keys of one request.
const PAGE: usize = 500;
/// Longest reply that is a refusal, in bytes.
const LONGEST_REFUSAL: usize = 64 << 10;
/// Field of requests that a member without a leader refuses at once. Without it such a member keeps watches open that get no changes.
const REQUIRE_LEADER: (&str, &str) = ("grpc-metadata-hasleader", "true");

/// A client of one etcd. Its clones share connections and token.
#[derive(Clone)]
pub struct EtcdClient(Arc<Inner>);

struct Inner {
    options: EtcdOptions,
    http: millpond_outbound::Client,
    /// Index of the member that is asked first.
    first: AtomicUsize,
    /// A lock, held briefly: requests run at the same time.
    token: Mutex<Option<String>>,
}

impl fmt::Debug for EtcdClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Client").field(&self.0.options).finish()
    }
}

/// The keys of a prefix at one revision.
#[derive(Clone, Debug, Default)]
pub struct Range {
    /// Keys with their values, in order.
    pub pairs: Vec<KeyValue>,
    /// Revision of etcd at which they were read.
    pub revision: Revision,
    /// Whether there are more keys than were asked for.
    pub is_cut: bool,
    /// Id of the cluster that etcd's members are: another one where etcd was restored from a snapshot, or begun anew.
    pub cluster: String,
}

#[derive(Deserialize)]
struct TransactionReply {
    #[serde(default)]
    header: Header,
    #[serde(default)]
    succeeded: bool,
}

impl EtcdClient {
    /// Creates a client; nothing is asked yet.
    ///
    /// # Errors
    /// A fault of the options, in words: no member, or a certificate that can't be read.
    pub fn new(options: EtcdOptions) -> Result<Self, String> {
        if options.members.is_empty() {
            return Err("no address of a member of etcd".to_owned());
        }
        let http = millpond_outbound::Client::new(&millpond_outbound::Options {
            connect: options.timeout,
            uses_proxies: false,
            authorities: options.tls.authorities.clone(),
            identity: options.tls.identity.clone(),
            tls: None,
        })?;
        Ok(Self(Arc::new(Inner { options, http, first: AtomicUsize::new(0), token: Mutex::default() })))
    }

    /// Asks another member first from now on.
    pub fn rotate(&self) {
        self.0.first.fetch_add(1, Ordering::Relaxed);
    }

    /// Reads the keys of a prefix, at most `most`, and values of little more than 32 MiB. Many keys are several requests.
    ///
    /// # Errors
    /// No member answers, or etcd refuses.
    pub async fn range(&self, prefix: &[u8], most: usize) -> Result<Range, EtcdError> {
        let (mut all, mut bytes, mut from) = (Range::default(), 0, prefix.to_vec());
        loop {
            let limit = PAGE.min(most.saturating_sub(all.pairs.len()));
            let body = json!({
                "key": Base64(from),
                "range_end": Base64(end_of(prefix)),
                "limit": Int(i64::try_from(limit).unwrap_or(i64::MAX)),
                // All pages show the revision of the first one.
                "revision": Int(all.revision),
            });
            let reply: RangeReply = self.ask("kv/range", &body).await?;
            if all.revision == 0 {
                all.revision = reply.header.revision.0;
                all.cluster = reply.header.cluster();
            }
            all.is_cut = reply.more;
            let page: Vec<_> = reply.kvs.into_iter().map(KeyValue::from).collect();
            bytes += page.iter().map(|pair| pair.key.len() + pair.value.len()).sum::<usize>();
            let next = page.last().map(|last| [&last.key[..], &[0]].concat());
            all.pairs.extend(page);
            match next {
                Some(next) if reply.more && all.pairs.len() < most && bytes < LONGEST => from = next,
                _ => return Ok(all),
            }
        }
    }

    /// Reads one key.
    ///
    /// # Errors
    /// No member answers, or etcd refuses.
    pub async fn get(&self, key: &[u8]) -> Result<Option<KeyValue>, EtcdError> {
        let reply: RangeReply = self.ask("kv/range", &json!({ "key": Base64(key.to_vec()) })).await?;
        Ok(reply.kvs.into_iter().next().map(KeyValue::from))
    }

    /// Makes changes if all conditions hold; tells whether they did. After a timeout, the changes may or may not have been made.
    ///
    /// # Errors
    /// No member answers, or etcd refuses.
    pub async fn commit(&self, transaction: &Transaction) -> Result<bool, EtcdError> {
        self.commit_at(transaction).await.map(|revision| revision.is_some())
    }

    /// As [`commit`](Self::commit); returns the revision of the changes, or `None` where a condition does not hold.
    ///
    /// # Errors
    /// No member answers, or etcd refuses.
    pub async fn commit_at(&self, transaction: &Transaction) -> Result<Option<Revision>, EtcdError> {
        let reply: TransactionReply = self.ask("kv/txn", &transaction.request()).await?;
        Ok(reply.succeeded.then_some(reply.header.revision.0))
    }

    /// Begins a lease; etcd may give another time to live than was asked for.
    ///
    /// # Errors
    /// No member answers, or etcd refuses.
    pub async fn grant(&self, ttl: Duration) -> Result<(LeaseId, Duration), EtcdError> {
        let seconds = i64::try_from(ttl.as_secs().max(1)).unwrap_or(i64::MAX);
        let reply: LeaseReply = self.ask("lease/grant", &json!({ "TTL": Int(seconds) })).await?;
        Ok((LeaseId(reply.id.0), Duration::from_secs(u64::try_from(reply.ttl.0).unwrap_or(0))))
    }

    /// Renews a lease; returns its time to live, or `None` where it is over.
    ///
    /// # Errors
    /// No member answers, or etcd refuses.
    pub async fn keep_alive(&self, LeaseId(id): LeaseId) -> Result<Option<Duration>, EtcdError> {
        let reply: Streamed<LeaseReply> = self.ask("lease/keepalive", &json!({ "ID": Int(id) })).await?;
        let seconds = reply.result.map_or(0, |reply| reply.ttl.0);
        Ok(u64::try_from(seconds).ok().filter(|seconds| *seconds > 0).map(Duration::from_secs))
    }

    /// Ends a lease, and deletes its keys.
    ///
    /// # Errors
    /// No member answers, or etcd refuses.
    pub async fn revoke(&self, LeaseId(id): LeaseId) -> Result<(), EtcdError> {
        let Nothing {} = self.ask("lease/revoke", &json!({ "ID": Int(id) })).await?;
        Ok(())
    }

    /// Watches the keys of a prefix, from a revision on.
    ///
    /// # Errors
    /// No member answers, etcd refuses, or the revision is compacted.
    pub async fn watch(&self, prefix: &[u8], from: Revision) -> Result<KeyWatch, EtcdError> {
        let body = json!({ "create_request": {
            "key": Base64(prefix.to_vec()),
            "range_end": Base64(end_of(prefix)),
            "start_revision": Int(from),
        } });
        let limit = self.0.options.timeout;
        let response = self.send("watch", &body).await?;
        let member = member(response.url());
        let mut watch = KeyWatch::new(response, member.clone());
        let created: WatchReply = timeout(limit, watch.message())
            .await
            .map_err(|_| EtcdError::TimedOut { member: member.clone(), limit })??;
        match created.created && !created.canceled {
            true => Ok(watch),
            false => Err(EtcdError::Malformed {
                member,
                reason: format!("the watch was not created: {}", created.cancel_reason),
            }),
        }
    }

    async fn ask<T: DeserializeOwned>(&self, call: &str, body: &Value) -> Result<T, EtcdError> {
        let response = self.send(call, body).await?;
        let member = member(response.url());
        let text = self.body(response, LONGEST).await?;
        parse(&text).map_err(|reason| EtcdError::Malformed { member, reason })
    }

    /// Reads a reply to its end. A member that breaks off or hangs within it is not asked first again.
    async fn body(&self, response: Response, most: usize) -> Result<Vec<u8>, EtcdError> {
        let (member, limit) = (member(response.url()), self.0.options.timeout);
        let text = match timeout(limit, read(response, most)).await {
            Err(_) => Err(EtcdError::TimedOut { member, limit }),
            Ok(text) => text.map_err(|reason| EtcdError::Unreachable { member, reason }),
        };
        text.inspect_err(|_| self.rotate())
    }

    /// Sends a request, with a token where there is a user, and signs in again where that is no longer valid.
    async fn send(&self, call: &str, body: &Value) -> Result<Response, EtcdError> {
        let Some(user) = &self.0.options.user else { return self.send_to_any(call, body, None).await };
        let known = self.token();
        let token = match known {
            Some(token) => token,
            None => self.sign_in(user).await?,
        };
        match self.send_to_any(call, body, Some(&token)).await {
            Err(error) if error.is_of_token() => {
                let token = self.sign_in(user).await?;
                self.send_to_any(call, body, Some(&token)).await
            }
            sent => sent,
        }
    }

    fn token(&self) -> Option<String> {
        self.0.token.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn sign_in(&self, (name, password): &(String, String)) -> Result<String, EtcdError> {
        let body = json!({ "name": name, "password": password });
        let response = self.send_to_any("auth/authenticate", &body, None).await?;
        let member = member(response.url());
        let text = self.body(response, LONGEST_REFUSAL).await?;
        // The fault in a reply with a token is not told: it could show the token.
        let reply: TokenReply = parse(&text).map_err(|_| EtcdError::Malformed {
            member,
            reason: "the reply to a name and password has no token".to_owned(),
        })?;
        *self.0.token.lock().unwrap_or_else(PoisonError::into_inner) = Some(reply.token.clone());
        Ok(reply.token)
    }

    /// Asks each member once, until one answers. The one that does is asked first from then on.
    async fn send_to_any(&self, call: &str, body: &Value, token: Option<&str>) -> Result<Response, EtcdError> {
        let members = &self.0.options.members;
        let first = self.0.first.load(Ordering::Relaxed);
        let mut last = None;
        for turn in 0..members.len() {
            let index = first.wrapping_add(turn);
            match self.send_to(&members[index % members.len()], call, body, token).await {
                Err(error) if error.is_of_member() => {
                    tracing::debug!(%error, call, "a member of etcd did not answer");
                    last = Some(error);
                }
                sent => {
                    let _ = self.0.first.compare_exchange(first, index, Ordering::Relaxed, Ordering::Relaxed);
                    return sent;
                }
            }
        }
        // There is at least one member.
        Err(last.unwrap_or_else(|| EtcdError::Unreachable { member: String::new(), reason: "no member".to_owned() }))
    }

    async fn send_to(&self, url: &Url, call: &str, body: &Value, token: Option<&str>) -> Result<Response, EtcdError> {
        let (name, limit) = (member(url), self.0.options.timeout);
        let mut address = url.clone();
        address.set_path(&format!("/v3/{call}"));
        let leader = (HeaderName::from_static(REQUIRE_LEADER.0), HeaderValue::from_static(REQUIRE_LEADER.1));
        let request = self.0.http.request(Method::POST, address).header(leader.0, leader.1);
        let mut request = request.body(body.to_string());
        if let Some(token) = token {
            request = request.header(AUTHORIZATION, token);
        }
        let response = match timeout(limit, request.send()).await {
            Err(_) => return Err(EtcdError::TimedOut { member: name, limit }),
            Ok(Err(error)) => {
                return Err(EtcdError::Unreachable { member: name, reason: chain(&error) });
            }
            Ok(Ok(response)) => response,
        };
        match response.status().is_success() {
            true => Ok(response),
            false => Err(refusal(name, response, limit).await),
        }
    }
}

/// The error of a reply that is no success.
async fn refusal(member: String, response: Response, limit: Duration) -> EtcdError {
    let status = response.status();
    let text = timeout(limit, read(response, LONGEST_REFUSAL)).await;
    let failure = text.ok().and_then(Result::ok).and_then(|text| Failure::parse(&text));
    match failure {
        Some(failure) if !failure.message.is_empty() => {
            EtcdError::Refused { member, code: failure.code(), message: failure.message }
        }
        _ if status == reqwest::StatusCode::NOT_FOUND => {
            let reason = "no JSON gateway: etcd needs --enable-grpc-gateway=true where a file configures it".to_owned();
            EtcdError::Malformed { member, reason }
        }
        _ => EtcdError::Malformed { member, reason: format!("status {status}") },
    }
}

/// Reads a reply to its end.
async fn read(mut response: Response, most: usize) -> Result<Vec<u8>, String> {
    let mut all = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| chain(&error.without_url()))? {
        if all.len() + chunk.len() > most {
            return Err(format!("a reply of more than {most} bytes"));
        }
        all.extend_from_slice(&chunk);
    }
    Ok(all)
}

/// The address of a member without secrets.
fn member(url: &Url) -> String {
    let host = url.host_str().unwrap_or("");
    url.port_or_known_default().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// An error with its causes.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpListener,
    };

    /// The reply of a member to a request; `None` begins a reply and hangs.
    type Reply = fn(&str) -> Option<(u16, &'static str)>;

    /// A member that replies so to each request, and hands it on.
    async fn member_of(reply: Reply, heard: mpsc::Sender<String>) -> Url {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let heard = heard.clone();
                tokio::spawn(async move {
                    let mut request = vec![0; 4096];
                    let mut length = 0;
                    while !request[..length].ends_with(b"}") {
                        match stream.read(&mut request[length..]).await {
                            Ok(more) if more > 0 => length += more,
                            _ => return,
                        }
                    }
                    let request = String::from_utf8(request[..length].to_vec()).unwrap();
                    heard.send(request.clone()).unwrap();
                    let Some((status, body)) = reply(&request) else {
                        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{").await.unwrap();
                        return std::future::pending().await;
                    };
                    let length = body.len();
                    let head = format!("HTTP/1.1 {status} x\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
                    stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
                });
            }
        });
        url
    }

    fn client(members: Vec<Url>, user: bool) -> EtcdClient {
        let user = user.then(|| ("edge".to_owned(), "word".to_owned()));
        let timeout = Duration::from_millis(300);
        EtcdClient::new(EtcdOptions { members, user, tls: crate::Tls::default(), timeout }).unwrap()
    }

    const EMPTY: (u16, &str) = (200, r#"{"header":{"revision":"7"}}"#);

    #[tokio::test]
    async fn a_member_that_hangs_within_a_reply_is_left_for_the_next_one() {
        let (heard, requests) = mpsc::channel();
        let members = [member_of(|_| None, heard.clone()).await, member_of(|_| Some(EMPTY), heard).await];
        let client = client(members.into(), false);
        assert!(matches!(client.range(b"/m/", 9).await, Err(EtcdError::TimedOut { .. })));
        assert_eq!(client.range(b"/m/", 9).await.unwrap().revision, 7);
        assert!(requests.try_iter().all(|request| request.contains("grpc-metadata-hasleader: true")));
    }

    #[tokio::test]
    async fn many_keys_are_read_in_pages_of_one_revision() {
        const FIRST: &str = r#"{"header":{"revision":"7"},"kvs":[{"key":"L20vYQ=="}],"more":true}"#;
        const SECOND: &str = r#"{"header":{"revision":"9"},"kvs":[{"key":"L20vYg=="}]}"#;
        let reply: Reply = |request| Some((200, if request.contains(r#""revision":"7""#) { SECOND } else { FIRST }));
        let (heard, requests) = mpsc::channel();
        let client = client(vec![member_of(reply, heard).await], false);
        let range = client.range(b"/m/", 9).await.unwrap();
        let keys: Vec<_> = range.pairs.iter().map(|pair| pair.key.as_slice()).collect();
        assert_eq!((keys, range.revision, range.is_cut), (vec![&b"/m/a"[..], b"/m/b"], 7, false));
        // The second page begins behind "/m/a".
        assert!(requests.try_iter().nth(1).unwrap().contains(r#""key":"L20vYQA=""#));
        let range = client.range(b"/m/", 1).await.unwrap();
        assert!(range.is_cut && range.pairs.len() == 1);
    }

    #[tokio::test]
    async fn signing_in_has_a_time_limit() {
        let (heard, _requests) = mpsc::channel();
        let client = client(vec![member_of(|_| None, heard).await], true);
        let asked = timeout(Duration::from_secs(5), client.get(b"a")).await;
        assert!(matches!(asked, Ok(Err(EtcdError::TimedOut { .. }))), "{asked:?}");
    }

    #[tokio::test]
    async fn a_token_that_is_no_longer_valid_is_replaced() {
        const REFUSALS: [&str; 2] = [
            r#"{"error":"x","code":16,"message":"etcdserver: invalid auth token"}"#,
            r#"{"error":"x","code":3,"message":"etcdserver: revision of auth store is old"}"#,
        ];
        fn reply(refusal: usize, request: &str) -> Option<(u16, &'static str)> {
            Some(match request {
                _ if request.contains("/v3/auth/") => (200, r#"{"token":"new"}"#),
                _ if request.contains("authorization: new") => EMPTY,
                _ => (401, REFUSALS[refusal]),
            })
        }
        let replies: [Reply; 2] = [|request| reply(0, request), |request| reply(1, request)];
        for reply in replies {
            let (heard, _requests) = mpsc::channel();
            let client = client(vec![member_of(reply, heard).await], true);
            *client.0.token.lock().unwrap() = Some("old".to_owned());
            assert!(client.get(b"a").await.unwrap().is_none());
        }
    }
}
