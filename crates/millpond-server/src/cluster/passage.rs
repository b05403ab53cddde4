//! Requests that a node passes on to the node of their object (`cluster-steering = "proxy"`).
//!
//! A client sees one server. Where the node of its object dies in the middle of a reply, the next one goes on at the byte that is
//! missing. Replies of one version of an object are the same at all nodes, and strong entity tags prove it (RFC 9110 section 13.1.5).

use super::{
    Cluster, MARK, Start,
    node_tls::{self, TowardsNodes},
    settings::Steering,
};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use millpond_cluster::{Demand, ObjectKey, Role};
use millpond_connections::proxies::Forwarded;
use millpond_http::request::head::MAX_TARGET;
use millpond_outbound::{Client, Options, chain};
use millpond_store::loop_id;
use std::{collections::HashSet, pin::pin, sync::Arc, time::Duration};
use tokio::time::{Instant, timeout};
use url::Url;

/// Time limit for a connection to a node.
const CONNECT: Duration = Duration::from_secs(1);
/// Silence after which a node must show a sign of life.
const LOOK: Duration = Duration::from_secs(1);
/// Longest silence of a node that sends stored media: before its reply, and within it.
const SILENCE: Duration = Duration::from_secs(3);
/// The same for live streams, whose replies are held until there is something new.
const LIVE_SILENCE: Duration = Duration::from_secs(40);
/// Statuses by which a node refuses a client that this node has admitted.
const REFUSED: [StatusCode; 3] = [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN, StatusCode::TOO_MANY_REQUESTS];
/// Field of a reply by which a node tells that another one has a live stream, or is about to have it. The node itself is well: the client asks again.
pub(crate) const MOVED: HeaderName = HeaderName::from_static("millpond-moved");
/// Fields of a request that are passed on.
const PASSED: [HeaderName; 9] = [
    header::ACCEPT_ENCODING,
    header::CACHE_CONTROL,
    header::IF_MATCH,
    header::IF_MODIFIED_SINCE,
    header::IF_NONE_MATCH,
    header::IF_RANGE,
    header::IF_UNMODIFIED_SINCE,
    header::RANGE,
    header::USER_AGENT,
];
/// Fields of a reply that concern one connection, or that this node writes itself.
const DROPPED: [HeaderName; 9] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    header::TRANSFER_ENCODING,
    header::CONTENT_LENGTH,
    header::UPGRADE,
    header::DATE,
    header::SERVER,
    header::TRAILER,
    MOVED,
];

/// The way of a request to the node of its object.
#[derive(Debug)]
pub(crate) struct Passage {
    cluster: Arc<Cluster>,
    key: ObjectKey,
    start: Start,
    /// That of its title, where it is known.
    demand: Option<Demand>,
    method: Method,
    /// Path and query.
    target: String,
    headers: HeaderMap,
    /// URLs of nodes that have failed.
    failed: HashSet<Arc<str>>,
}

/// A reply that a node has begun.
#[derive(Debug)]
pub(crate) struct Passed {
    /// Its status code.
    pub(crate) status: StatusCode,
    /// Its fields, without those of the connection.
    pub(crate) headers: HeaderMap,
    /// Length of its body, where that is known.
    pub(crate) length: Option<u64>,
    response: reqwest::Response,
    node: Arc<str>,
}

/// A request that may be passed on.
pub(crate) struct PassedRequest<'a> {
    pub(crate) method: &'a Method,
    /// Its target, with the prefix of a token.
    pub(crate) target: &'a str,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) client: Forwarded,
}

impl Cluster {
    /// The way of a request for an object. `None` where this node answers it itself.
    pub(crate) fn passage(
        self: &Arc<Self>,
        (key, start): (ObjectKey, Start),
        demand: Option<Demand>,
        PassedRequest { method, target, headers, client }: PassedRequest<'_>,
    ) -> Option<Passage> {
        if self.settings.steering != Steering::Proxy || !self.own.roles.contains(Role::Manager) {
            return None;
        }
        let mark = format!("{}{MARK}={}", if target.contains('?') { '&' } else { '?' }, self.name());
        let target = format!("{target}{mark}");
        // The other node would refuse it: the mark and the pass make it longer than the client's.
        if target.len() > MAX_TARGET {
            return None;
        }
        let passed = |name: &HeaderName| Some((name.clone(), headers.get(name)?.clone()));
        let mut own: HeaderMap = PASSED.iter().filter_map(passed).collect();
        for known in headers.get_all("cdn-loop") {
            own.append("cdn-loop", known.clone());
        }
        own.append("cdn-loop", HeaderValue::from_static(loop_id()));
        // In place of fields of the client, which could be forged.
        own.extend(client.fields());
        let (cluster, method, failed) = (self.clone(), method.clone(), HashSet::new());
        Some(Passage { cluster, key, start, demand, method, target, headers: own, failed })
    }

    /// Whether requests are passed on.
    pub(crate) fn passes(&self) -> bool {
        self.settings.steering == Steering::Proxy
    }
}

impl Passage {
    /// Asks the best node that has not failed. `None` where that is this one, or no node answers.
    pub(crate) async fn begin(&mut self) -> Option<Passed> {
        let is_new = self.start == Start::Stored;
        let demand = self.demand.clone();
        let candidates = self.cluster.answer(&self.key, self.start, demand.as_ref(), is_new).candidates;
        let view = self.cluster.view();
        for candidate in candidates {
            if candidate.name == *self.cluster.name() {
                self.cluster.count(&candidate, self.start, demand.as_ref());
                return None;
            }
            let Some(base) = view.node(candidate.name.as_str()).and_then(|node| self.cluster.base_of(node)) else {
                continue;
            };
            let headers = self.headers.clone();
            if let Some(passed) = self.ask(&base, headers).await {
                self.cluster.count(&candidate, self.start, demand.as_ref());
                self.cluster.metrics.passed.inc();
                return Some(passed);
            }
        }
        None
    }

    /// Asks other nodes, and this one last, for the bytes from `from` to before `end` of the reply with a strong entity tag.
    async fn resume(&mut self, etag: &HeaderValue, from: u64, end: u64) -> Option<Passed> {
        let view = self.cluster.view();
        let candidates = self.cluster.answer(&self.key, self.start, None, false).candidates;
        let others = candidates.iter().filter(|candidate| candidate.name != *self.cluster.name());
        let address = |name: &str| view.node(name).and_then(|node| self.cluster.base_of(node));
        let own = self.cluster.base_of(&self.cluster.own);
        let others: Vec<_> = others.filter_map(|candidate| address(candidate.name.as_str())).collect();
        let mut headers = self.headers.clone();
        for name in [header::IF_NONE_MATCH, header::IF_MODIFIED_SINCE, header::IF_UNMODIFIED_SINCE, header::IF_RANGE] {
            headers.remove(name);
        }
        headers.insert(header::IF_MATCH, etag.clone());
        headers.insert(header::RANGE, HeaderValue::from_str(&format!("bytes={from}-{}", end - 1)).ok()?);
        for base in others {
            if let Some(passed) = self.ask(&base, headers.clone()).await.filter(|passed| passed.is_part(etag, from)) {
                return Some(passed);
            }
        }
        // This node asks itself. The mark makes it answer.
        headers.remove("cdn-loop");
        self.ask(&own?, headers).await.filter(|passed| passed.is_part(etag, from))
    }

    /// Asks a node, unless it has failed.
    async fn ask(&mut self, base: &Arc<str>, headers: HeaderMap) -> Option<Passed> {
        let reach = &self.cluster.reach;
        if self.failed.contains(base) || !reach.is_up(base).await || reach.is_distrusted(base) {
            return None;
        }
        let url = Url::parse(&format!("{base}{}", self.target)).ok()?;
        let asked = self.cluster.nodes.request(self.method.clone(), url).headers(headers).send();
        let error = match self.reply_of(base, asked).await {
            Ok(Ok(response)) if response.headers().contains_key(MOVED) => {
                return Some(Passed::new(response, base.clone()));
            }
            // Another node may do better. Where none does, this one says what is wrong.
            Ok(Ok(response)) if response.status().is_server_error() => response.status().to_string(),
            // The client was admitted here. Its address and its password mean nothing there: all clients have this node's address.
            Ok(Ok(response)) if REFUSED.contains(&response.status()) => return None,
            Ok(Ok(response)) => return Some(Passed::new(response, base.clone())),
            Ok(Err(error)) => chain(&error),
            Err(silence) => silence.to_owned(),
        };
        tracing::debug!(node = %base, error, "a node does not answer: the next one is asked");
        self.fails(base);
        None
    }

    fn fails(&mut self, base: &Arc<str>) {
        self.cluster.metrics.unreachable.inc();
        self.cluster.reach.failed(base);
        self.failed.insert(base.clone());
    }

    fn is_live(&self) -> bool {
        matches!(self.start, Start::Live | Start::Pushed)
    }

    /// Waits for something that a node sends. A silent node must show signs of life meanwhile.
    async fn reply_of<T>(&self, base: &Arc<str>, awaited: impl Future<Output = T>) -> Result<T, &'static str> {
        let reach = &self.cluster.reach;
        let end = Instant::now() + if self.is_live() { LIVE_SILENCE } else { SILENCE };
        let mut awaited = pin!(awaited);
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err("silence");
            }
            let since = reach.now();
            if let Ok(reply) = timeout(left.min(LOOK), &mut awaited).await {
                return Ok(reply);
            }
            let lives = async {
                match self.is_live() {
                    // Viewers of a live stream are cut off then: one slow answer does not suffice.
                    true => !reach.is_lost(base, since).await,
                    false => reach.answers(base).await,
                }
            };
            let is_alive = tokio::select! {
                biased;
                reply = &mut awaited => return Ok(reply),
                lives = lives => lives,
            };
            if !is_alive {
                return Err("no sign of life");
            }
        }
    }
}

impl Passed {
    fn new(response: reqwest::Response, node: Arc<str>) -> Self {
        let keep = |(name, value): (&HeaderName, &HeaderValue)| {
            (!DROPPED.contains(name)).then(|| (name.clone(), value.clone()))
        };
        let headers = response.headers().iter().filter_map(keep).collect();
        let length = response.headers().get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
        Self { status: response.status(), headers, length, response, node }
    }

    /// Whether it is the part of a reply from `from` on.
    fn is_part(&self, etag: &HeaderValue, from: u64) -> bool {
        let range = self.headers.get(header::CONTENT_RANGE).and_then(|range| range.to_str().ok()).unwrap_or("");
        self.status == StatusCode::PARTIAL_CONTENT
            && self.headers.get(header::ETAG) == Some(etag)
            && range.strip_prefix("bytes ").is_some_and(|range| range.starts_with(&format!("{from}-")))
    }

    /// The entity tag, and the offset of the first byte in the whole; `None` where the reply can't be resumed.
    fn place(&self) -> Option<(HeaderValue, u64)> {
        let etag = self.headers.get(header::ETAG).filter(|etag| etag.as_bytes().starts_with(b"\""))?;
        let first = match self.status {
            StatusCode::OK => 0,
            StatusCode::PARTIAL_CONTENT => {
                let range = self.headers.get(header::CONTENT_RANGE)?.to_str().ok()?.strip_prefix("bytes ")?;
                range.split('-').next()?.parse().ok()?
            }
            _ => return None,
        };
        Some((etag.clone(), first))
    }
}

/// The body of a reply that is passed on.
#[derive(Debug)]
pub(crate) struct PassedBytes {
    passage: Passage,
    from: Passed,
    /// Entity tag, and the offset of the reply's first byte in the whole; `None` where no other node could go on.
    place: Option<(HeaderValue, u64)>,
    length: Option<u64>,
    sent: u64,
}

impl PassedBytes {
    /// The body of a reply that a node has begun.
    pub(crate) fn new(passage: Passage, from: Passed) -> Self {
        let (place, length) = (from.place(), from.length);
        Self { passage, from, place, length, sent: 0 }
    }

    /// The next bytes; `None` at the end.
    ///
    /// # Errors
    /// The node broke off, and no other one could go on.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, String> {
        loop {
            let error = match self.passage.reply_of(&self.from.node, self.from.response.chunk()).await {
                Ok(Ok(Some(bytes))) => {
                    self.sent += bytes.len() as u64;
                    return Ok(Some(bytes));
                }
                Ok(Ok(None)) if self.length.is_none_or(|length| self.sent >= length) => return Ok(None),
                Ok(Ok(None)) => "the reply ends early".to_owned(),
                Ok(Err(error)) => error.without_url().to_string(),
                Err(silence) => silence.to_owned(),
            };
            let node = self.from.node.clone();
            self.passage.fails(&node);
            let sent = self.sent;
            let resumed = match (&self.place, self.length) {
                (Some((etag, first)), Some(length)) if sent < length => {
                    self.passage.resume(etag, first + sent, first + length).await
                }
                _ => None,
            };
            self.from = resumed.ok_or_else(|| format!("{node}: {error}, and no other node could go on"))?;
            self.passage.cluster.metrics.resumed.inc();
            tracing::info!(%node, error, by = %self.from.node, sent, "another node continues a reply");
        }
    }
}

/// The client by which requests are passed on.
pub(super) fn client(towards: Option<&TowardsNodes>) -> Result<Client, String> {
    node_tls::client(towards, Options { connect: CONNECT, uses_proxies: false, ..Options::default() })
}

#[cfg(test)]
mod tests {
    use super::super::{ClusterMetrics, ClusterSettings};
    use super::*;
    use crate::events::{EventMetrics, Events};
    use millpond_cluster::{Addresses, Bitrate, Node, View};
    use millpond_settings::{Host, Settings as _, machine::Machine};
    use prometheus_client::registry::Registry;
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpListener,
        sync::mpsc,
    };

    /// A node that sends `reply` to each request and closes the connection. Its requests go to `heard`.
    async fn node(name: &str, reply: &'static str, heard: mpsc::UnboundedSender<String>) -> Node {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let http = Some(format!("http://{}", listener.local_addr().unwrap()).into());
        let named = name.to_owned();
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut request = Vec::new();
                while !request.ends_with(b"\r\n\r\n") {
                    let mut byte = [0];
                    if stream.read(&mut byte).await.unwrap_or(0) == 0 {
                        break;
                    }
                    request.extend(byte);
                }
                if request.starts_with(b"HEAD /.millpond/health ") {
                    stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
                } else if !request.is_empty() {
                    heard.send(format!("{named} {}", String::from_utf8(request).unwrap())).unwrap();
                    stream.write_all(reply.as_bytes()).await.unwrap();
                }
            }
        });
        let addresses = Addresses { http, ..Addresses::default() };
        Node { addresses, ..Node::new(name.parse().unwrap(), Bitrate::from_mbps(100)) }
    }

    const HALF: &str = "HTTP/1.1 200 OK\r\nETag: \"x\"\r\nContent-Length: 10\r\nServer: y\r\n\r\n0123";
    const REST: &str =
        "HTTP/1.1 206 Partial Content\r\nETag: \"x\"\r\nContent-Range: bytes 4-9/10\r\nContent-Length: 6\r\n\r\n456789";
    const OTHER: &str =
        "HTTP/1.1 206 Partial Content\r\nETag: \"z\"\r\nContent-Range: bytes 4-9/10\r\nContent-Length: 6\r\n\r\nabcdef";

    /// The reply that a client gets through the node `a`, and the requests that the nodes got.
    async fn passed(replies: [&'static str; 3]) -> (Result<String, String>, Vec<String>) {
        let (heard, mut requests) = mpsc::unbounded_channel();
        let mut nodes = Vec::new();
        for (name, reply) in ["a", "b", "c"].into_iter().zip(replies) {
            nodes.push(node(name, reply, heard.clone()).await);
        }
        let host = Host { machine: Machine::detect(), variable: &|_| None };
        let mut settings = ClusterSettings::defaults(&host);
        settings.etcd = vec!["http://127.0.0.1:1".parse().unwrap()];
        settings.node = Some("a".to_owned());
        settings.steering = Steering::Proxy;
        let metrics = ClusterMetrics::register(&mut Registry::default());
        let events = Events::new("a", 10, &EventMetrics::register(&mut Registry::default()));
        let cluster =
            Cluster::new(&settings, nodes[0].addresses.clone(), metrics, events, super::super::WallClocks::default())
                .unwrap();
        cluster.set_view(View::of(1, nodes));
        // An asset whose nodes are b, then c, then this one.
        let is_fit = |key: &ObjectKey| {
            let order = cluster.answer(key, Start::Follows, None, false).candidates;
            order.iter().map(|candidate| candidate.name.to_string()).collect::<String>() == "bca"
        };
        let key = (0..).map(|n| ObjectKey::new("films", &format!("{n}.mp4"))).find(is_fit).unwrap();
        let mut headers = HeaderMap::from_iter([(header::USER_AGENT, HeaderValue::from_static("player"))]);
        headers.insert("x-forwarded-for", HeaderValue::from_static("192.0.2.66"));
        let client = Forwarded { address: "192.0.2.7".parse().unwrap(), is_secure: true };
        let target = "/films/1.mp4/v1/1.m4s?x=1";
        let request = PassedRequest { method: &Method::GET, target, headers: &headers, client };
        let mut passage = cluster.passage((key, Start::Follows), None, request).unwrap();
        let begun = passage.begin().await.unwrap();
        assert!(!begun.headers.contains_key(header::SERVER) && begun.length == Some(10));
        let mut bytes = PassedBytes::new(passage, begun);
        let mut all = String::new();
        let end = loop {
            match bytes.next().await {
                Ok(Some(part)) => all.push_str(std::str::from_utf8(&part).unwrap()),
                Ok(None) => break Ok(all),
                Err(error) => break Err(error),
            }
        };
        requests.close();
        let mut all = Vec::new();
        while let Some(request) = requests.recv().await {
            all.push(request.to_ascii_lowercase());
        }
        (end, all)
    }

    #[tokio::test]
    async fn another_node_goes_on_at_the_missing_byte() {
        let (end, requests) = passed(["", HALF, REST]).await;
        assert_eq!(end.as_deref(), Ok("0123456789"));
        assert_eq!(requests.len(), 2, "{requests:?}");
        let first = &requests[0];
        assert!(first.starts_with("b get /films/1.mp4/v1/1.m4s?x=1&_millpond_node=a http/1.1"), "{first}");
        assert!(first.contains("user-agent: player") && first.contains(&format!("cdn-loop: {}", loop_id())), "{first}");
        let forwarded = "x-forwarded-for: 192.0.2.7\r\nx-forwarded-proto: https\r\n";
        assert!(first.contains(forwarded) && !first.contains("192.0.2.66"), "{first}");
        let second = &requests[1];
        assert!(second.contains("range: bytes=4-9") && second.contains("if-match: \"x\""), "{second}");
    }

    #[tokio::test]
    async fn no_reply_mixes_two_versions() {
        // The last node is this one, which asks itself.
        let (end, requests) = passed([REST, HALF, OTHER]).await;
        assert_eq!(end.as_deref(), Ok("0123456789"));
        assert!(
            requests.last().is_some_and(|last| last.starts_with("a ") && !last.contains("cdn-loop")),
            "{requests:?}"
        );
        let (end, _) = passed([OTHER, HALF, OTHER]).await;
        assert!(end.unwrap_err().contains("no other node could go on"));
    }

    #[tokio::test]
    async fn a_node_that_has_a_live_stream_no_more_is_well() {
        let moved = "HTTP/1.1 503 Service Unavailable\r\nMillpond-Moved: ?1\r\nContent-Length: 10\r\n\r\n0123456789";
        let (end, requests) = passed(["", moved, ""]).await;
        assert_eq!((end.as_deref(), requests.len()), (Ok("0123456789"), 1), "the client asks again: {requests:?}");
    }

    #[tokio::test]
    async fn a_stopped_node_is_left_by_all_requests_for_live_streams_together() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let http = Some(format!("http://{}", listener.local_addr().unwrap()).into());
        // It answers probes until the first request comes.
        tokio::spawn(async move {
            let (mut all, mut is_stopped) = (Vec::new(), false);
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut head = [0; 1024];
                let length = if is_stopped { 0 } else { stream.read(&mut head).await.unwrap_or(0) };
                is_stopped |= head[..length].starts_with(b"GET ");
                if !is_stopped {
                    stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
                }
                all.push(stream);
            }
        });
        let host = Host { machine: Machine::detect(), variable: &|_| None };
        let mut settings = ClusterSettings::defaults(&host);
        settings.etcd = vec!["http://127.0.0.1:1".parse().unwrap()];
        settings.node = Some("a".to_owned());
        settings.steering = Steering::Proxy;
        let metrics = ClusterMetrics::register(&mut Registry::default());
        let events = Events::new("a", 10, &EventMetrics::register(&mut Registry::default()));
        let clocks = super::super::WallClocks::default();
        let cluster = Cluster::new(&settings, Addresses::default(), metrics, events, clocks).unwrap();
        let node = |name: &str| Node::new(name.parse().unwrap(), Bitrate::from_mbps(100));
        let stopped = Node { addresses: Addresses { http, ..Addresses::default() }, ..node("b") };
        cluster.set_view(View::of(1, [node("a"), stopped]));
        let is_of_b =
            |key: &ObjectKey| cluster.answer(key, Start::Live, None, false).candidates[0].name.as_str() == "b";
        let key = (0..).map(|n| ObjectKey::new("cams", &n.to_string())).find(is_of_b).unwrap();
        let began = Instant::now();
        let all = (0..30).map(|_| {
            let (cluster, key) = (cluster.clone(), key.clone());
            tokio::spawn(async move {
                let client = Forwarded { address: "192.0.2.7".parse().unwrap(), is_secure: false };
                let (method, headers) = (&Method::GET, &HeaderMap::new());
                let request = PassedRequest { method, target: "/cams/1/v1/index.m3u8", headers, client };
                cluster.passage((key, Start::Live), None, request).unwrap().begin().await.is_none()
            })
        });
        for one in all.collect::<Vec<_>>() {
            assert!(one.await.unwrap());
        }
        // One after the other, they would take 30 s.
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    }

    #[tokio::test]
    async fn a_node_with_an_error_is_passed_over() {
        let whole = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789";
        for error in [
            "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\n\r\n",
        ] {
            let (end, requests) = passed(["", error, whole]).await;
            assert_eq!((end.as_deref(), requests.len()), (Ok("0123456789"), 2), "{error}");
        }
    }
}
