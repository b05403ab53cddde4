//! A request and its reply, from the head to the end: the log line and the counters.

use super::{
    ConnectionViewers, Context, Front, Reply, ReplyInfo, Target, client::AnsweredRequest, handle, node_api, publish,
    webrtc,
};
use crate::{audience::UnderWay, http::Unfinished};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use millpond_access::Pass;
use millpond_http::{
    body::Body,
    request::{Request, cmcd::Cmcd},
    wire::{self, Peer, Protocol, ReplyError, SendMeter, Upload},
};
use millpond_logging::{
    RequestId,
    traces::{self, Traced},
};
use millpond_store::ReadCounts;
use std::{
    borrow::Cow,
    io,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};
use tracing::Span;

/// Most characters of a user agent and of a referrer in the log.
const AGENT_LENGTH: usize = 200;

/// A request being answered. It is logged and counted when it is finished or dropped.
pub(crate) struct Exchange {
    front: Arc<Front>,
    request: Request,
    target: Target,
    peer: SocketAddr,
    protocol: Protocol,
    started: Instant,
    meter: SendMeter,
    /// Span of the request's trace.
    span: Span,
    /// Facts about the reply, once there is one.
    reply: Option<Replied>,
    /// The response in the list of viewers, where it is a file or a running stream.
    under_way: Option<UnderWay>,
    is_recorded: bool,
}

/// Facts about a reply.
struct Replied {
    info: ReplyInfo,
    status: StatusCode,
    /// `Content-Range` of the reply.
    range: Option<HeaderValue>,
    /// Bytes that the body reads through the cache.
    counts: Option<Arc<ReadCounts>>,
}

impl Replied {
    /// The part of the body that was cached: `hit`, `miss` or `partial`; `None` where the body is not read through the cache.
    fn cache(&self) -> Option<&'static str> {
        let counts = self.counts.as_ref()?;
        match (counts.hit_bytes(), counts.miss_bytes()) {
            (0, 0) => None,
            (_, 0) => Some("hit"),
            (0, _) => Some("miss"),
            _ => Some("partial"),
        }
    }
}

/// The end of an exchange.
enum Outcome<'a> {
    Complete,
    Broken(&'a dyn std::error::Error),
    Unfinished(Unfinished, Option<&'a io::Error>),
}

/// A request as its span describes it.
struct TracedRequest<'a>(&'a Request);

impl Traced for TracedRequest<'_> {
    fn method(&self) -> &str {
        self.0.method.as_str()
    }

    fn target(&self) -> Cow<'_, str> {
        self.0.logged_target()
    }

    fn headers(&self) -> &HeaderMap {
        &self.0.headers
    }
}

impl Exchange {
    /// Begins an exchange whose head has arrived: a request whose client is noted, and its target.
    pub(super) fn begin(
        front: Arc<Front>,
        (request, target): (Request, Target),
        (peer, protocol): Peer,
        started: Instant,
        meter: SendMeter,
    ) -> Self {
        let span = traces::of_request(&TracedRequest(&request), peer.ip(), protocol.name());
        let (reply, under_way) = (None, None);
        Self { front, request, target, peer, protocol, started, meter, span, reply, under_way, is_recorded: false }
    }

    /// Returns the request with all that its handlers need.
    fn context<'a>(&'a self, viewers: &'a ConnectionViewers) -> Context<'a> {
        Context { front: &self.front, request: &self.request, target: &self.target, viewers }
    }

    /// Returns the request as viewers are counted by it.
    fn answered(&self) -> AnsweredRequest<'_> {
        let client = self.request.client(self.peer.ip());
        AnsweredRequest { front: &self.front, request: &self.request, target: &self.target, client }
    }

    /// Tells whether the exchange is neither logged nor counted: balancers and other nodes ask all the time. A question of a node may also end
    /// without a reply.
    fn is_left_out(&self) -> bool {
        let is_refused = || self.reply.as_ref().is_some_and(|reply| reply.status != StatusCode::OK);
        // 503 is no failure of the health.
        self.target.is_health() || (self.target.is_registry() && !is_refused())
    }

    /// Tells whether the access log has a line of the exchange. Of the questions of nodes that this one refuses, it has one a minute.
    fn is_logged(&self) -> bool {
        self.front.logs_requests() && (!self.target.is_registry() || self.front.lasting.registry_log.is_due())
    }

    /// Writes the log line and counts the response.
    fn record(&mut self, outcome: &Outcome<'_>) {
        self.is_recorded = true;
        if self.is_left_out() {
            return;
        }
        let (metrics, elapsed, bytes) = (self.front.metrics(), self.started.elapsed(), self.meter.body());
        let (peer, uri) = (&self.peer, self.request.logged_target());
        let (ended, error) = match outcome {
            Outcome::Complete => ("complete", None),
            Outcome::Broken(error) => {
                metrics.response_broken();
                ("broken", Some(error.to_string()))
            }
            Outcome::Unfinished(why, error) => {
                metrics.response_unfinished(*why);
                (why.label(), error.map(io::Error::to_string))
            }
        };
        let player = Cmcd::of(&self.request);
        let has_starved = player.as_ref().is_some_and(|data| data.as_ref().is_ok_and(|data| data.starved));
        let id = match &self.reply {
            Some(Replied { info, status, .. }) => {
                metrics.request(info.kind, *status, elapsed.saturating_sub(info.waited));
                if !self.under_way.take().is_some_and(|under_way| under_way.is_long()) {
                    self.answered().count((info.kind, *status), bytes, has_starved);
                }
                if !info.counts_itself {
                    metrics.sent(info.kind, info.place.as_ref(), bytes);
                }
                info.id
            }
            None => RequestId::next(),
        };
        if let (Outcome::Broken(_), Some(error)) = (outcome, &error) {
            tracing::error!(%id, %peer, %uri, bytes, error, "response broken off");
        }
        self.end_span(bytes, ended);
        player.iter().for_each(|data| metrics.player(data));
        if self.is_logged() {
            self.log(id, player.and_then(Result::ok), (elapsed, bytes), (ended, error));
        }
    }

    /// Adds the facts about the reply to the span.
    fn end_span(&self, bytes: u64, ended: &'static str) {
        if self.span.is_disabled() {
            return;
        }
        let client = self.request.client(self.peer.ip());
        self.span.record("client.address", tracing::field::display(client));
        // The layer of OpenTelemetry knows signed numbers only, as its protocol does.
        self.span.record("http.response.body.size", i64::try_from(bytes).unwrap_or(i64::MAX));
        self.span.record("millpond.ended", ended);
        if let Some(reply) = &self.reply {
            self.span.record("http.response.status_code", i64::from(reply.status.as_u16()));
            self.span.record("millpond.kind", reply.info.kind.label());
            if let Some(cache) = reply.cache() {
                self.span.record("millpond.cache", cache);
            }
        }
        if ended == "broken" || self.reply.as_ref().is_some_and(|reply| reply.status.is_server_error()) {
            self.span.record("otel.status_code", "ERROR");
        }
    }

    /// Writes the line of the access log.
    fn log(
        &self,
        id: RequestId,
        player: Option<Cmcd>,
        (elapsed, bytes): (Duration, u64),
        (ended, error): (&'static str, Option<String>),
    ) {
        let (peer, method, uri) = (&self.peer, &self.request.method, self.request.logged_target());
        let client = self.request.client(self.peer.ip());
        let us = |time: Duration| time.as_micros() as u64;
        let status = self.reply.as_ref().map(|reply| reply.status.as_u16());
        let cache = self.reply.as_ref().and_then(Replied::cache);
        let range = self.reply.as_ref().and_then(|reply| reply.range.as_ref()?.to_str().ok());
        let first_us = self.reply.as_ref().and_then(|reply| reply.info.first_byte).map(us);
        let (agent, referrer) = (agent(&self.request), self.request.logged_referrer(AGENT_LENGTH));
        let cmcd = player.map(|data| data.without_secrets().to_string());
        let (protocol, us) = (self.protocol.name(), us(elapsed));
        tracing::info!(target: millpond_logging::ACCESS, %id, %peer, %client, %method, %uri, protocol, status, bytes, us,
            first_us, cache, range, agent, referrer, cmcd, ended, error, "request");
    }
}

impl wire::Exchange for Exchange {
    type Viewers = ConnectionViewers;
    type Answer = (Reply, ReplyInfo);
    type Info = ReplyInfo;

    fn span(&self) -> Span {
        self.span.clone()
    }

    fn request(&self) -> &Request {
        &self.request
    }

    async fn publish(&self, viewers: &ConnectionViewers, upload: &mut impl Upload) -> (wire::Reply, ReplyInfo) {
        let context = self.context(viewers);
        let (reply, info) = match webrtc::takes_body(&self.request, &self.target) {
            _ if self.target.is_node_api() => node_api::answer(&context, upload).await,
            _ if viewers.is_of_node() => handle::not_for_nodes(&context),
            true => webrtc::answer(&context, upload).await,
            false => publish::publish(&context, upload).await,
        };
        (reply.into(), info)
    }

    async fn handle(&self, viewers: &ConnectionViewers) -> (Reply, ReplyInfo) {
        handle::handle(&self.context(viewers)).await
    }

    fn body((reply, _): &(Reply, ReplyInfo)) -> &Body {
        &reply.body
    }

    async fn begin(&self, viewers: &ConnectionViewers, answer: (Reply, ReplyInfo)) -> (wire::Reply, ReplyInfo) {
        let (reply, info) = handle::begin(&self.context(viewers), self.started, answer).await;
        (reply.into(), info)
    }

    fn replied(&mut self, info: ReplyInfo, reply: &wire::Reply) -> Pass {
        let pass = info.pass.clone();
        let (meter, status) = (&self.meter, reply.status);
        let sent = || {
            let meter = meter.clone();
            Box::new(move || meter.body()) as _
        };
        self.under_way = self.answered().under_way((&info, status), sent);
        let range = reply.headers.get(header::CONTENT_RANGE).cloned();
        self.reply = Some(Replied { info, status, range, counts: reply.body.read_counts() });
        pass
    }

    async fn cut(&self) {
        match &self.under_way {
            Some(under_way) => under_way.cut().await,
            None => std::future::pending().await,
        }
    }

    fn finish(mut self, sent: &Result<(), ReplyError>) {
        self.record(&match sent {
            Ok(()) => Outcome::Complete,
            Err(ReplyError::Body(error)) => Outcome::Broken(error),
            Err(ReplyError::Kicked) => Outcome::Unfinished(Unfinished::Kicked, None),
            Err(ReplyError::Expired) => Outcome::Unfinished(Unfinished::Expired, None),
            Err(ReplyError::Client(error)) if error.kind() == io::ErrorKind::TimedOut => {
                Outcome::Unfinished(Unfinished::ClientSlow, Some(error))
            }
            Err(ReplyError::Client(error)) => Outcome::Unfinished(Unfinished::ClientLeft, Some(error)),
        });
    }
}

impl Drop for Exchange {
    /// Records an exchange whose connection ended first.
    fn drop(&mut self) {
        if !self.is_recorded {
            let is_cut = self.front.is_cut();
            let why = if is_cut { Unfinished::Shutdown } else { Unfinished::ClientLeft };
            self.record(&Outcome::Unfinished(why, None));
        }
    }
}

/// Returns the start of the user agent, if there is one.
fn agent(request: &Request) -> Option<String> {
    let value = request.headers.get(header::USER_AGENT)?;
    Some(String::from_utf8_lossy(value.as_bytes()).chars().take(AGENT_LENGTH).collect())
}
