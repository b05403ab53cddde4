//! Limits of each client and of each token: requests a second, open connections, and running transfers.

use super::{AccessMetrics, NodeAddresses, Pass};
use crate::buckets::{Buckets, Rate};
use millpond_connections::{ClientTally, Tallied};
use millpond_settings::{
    At, Host, Setting, Settings,
    value::{self, BadValue, Form},
};
use millpond_stream::ClientAddress;
use std::{net::IpAddr, sync::Arc, time::Duration};

/// `Retry-After` of a client with too many connections or transfers. Their ends are not known.
const RETRY: Duration = Duration::from_secs(1);

/// Sets of buckets: 65,536 clients and tokens, in about 1 MiB.
const SETS: usize = 4096;

/// Settings of limits. `None` is no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientLimitSettings {
    /// Requests a second of a client.
    pub requests: Option<u32>,
    /// Open connections of a client.
    pub connections: Option<usize>,
    /// HTTP responses that a client is being sent, and its RTSP sessions.
    pub streams: Option<usize>,
    /// Requests a second with a token.
    pub token_requests: Option<u32>,
    /// Most HTTP responses and RTSP sessions of a token at the same time.
    pub token_streams: Option<usize>,
    /// Requests at once, beyond which the limits a second hold.
    pub burst: u32,
}

impl Settings for ClientLimitSettings {
    const LIST: &'static [Setting<Self>] = LIST;

    fn defaults(_: &Host<'_>) -> Self {
        let (requests, connections, streams) = (None, None, None);
        Self { requests, connections, streams, token_requests: None, token_streams: None, burst: 100 }
    }
}

const LIST: &[Setting<ClientLimitSettings>] = &[
    Setting {
        name: "client-requests",
        form: Form::Count,
        default: "none: no limit",
        help: "Highest number of requests a second of one client address (IPv6: of one /64 network), by HTTP and \
               RTSP. Further requests get 429 by HTTP and 503 by RTSP, with Retry-After",
        applied: At::Reload,
        apply: |limits, text| limit(text).map(|v| limits.requests = v),
        show: |limits| limits.requests.map(|v| v.to_string()),
    },
    Setting {
        name: "client-burst",
        form: Form::Count,
        default: "100",
        help: "Number of requests that a client or token may send at once before client-requests or token-requests \
               applies",
        applied: At::Reload,
        apply: |limits, text| value::count(text, 1).map(|v| limits.burst = u32::try_from(v).unwrap_or(u32::MAX)),
        show: |limits| Some(limits.burst.to_string()),
    },
    Setting {
        name: "client-connections",
        form: Form::Count,
        default: "none: no limit",
        help: "Highest number of open connections of one client address, by HTTP, RTSP and RTMP together. Trusted \
               proxies and other nodes of the cluster have no limit",
        applied: At::Reload,
        apply: |limits, text| limit(text).map(|v| limits.connections = v.map(|v| v as usize)),
        show: |limits| limits.connections.map(|v| v.to_string()),
    },
    Setting {
        name: "client-streams",
        form: Form::Count,
        default: "none: no limit",
        help: "Highest number of streams of one client address: HTTP responses being sent, plus RTSP sessions. \
               Further requests get 429 by HTTP and 453 by RTSP",
        applied: At::Reload,
        apply: |limits, text| limit(text).map(|v| limits.streams = v.map(|v| v as usize)),
        show: |limits| limits.streams.map(|v| v.to_string()),
    },
    Setting {
        name: "token-requests",
        form: Form::Count,
        default: "none: no limit",
        help: "Highest number of requests a second with one token, from all client addresses. Tokens are told apart \
               by their jti, else their sub, else their text. Further requests are refused as by client-requests",
        applied: At::Reload,
        apply: |limits, text| limit(text).map(|v| limits.token_requests = v),
        show: |limits| limits.token_requests.map(|v| v.to_string()),
    },
    Setting {
        name: "token-streams",
        form: Form::Count,
        default: "none: no limit",
        help: "Highest number of streams of one token, from all client addresses. Further requests are refused as by \
               client-streams",
        applied: At::Reload,
        apply: |limits, text| limit(text).map(|v| limits.token_streams = v.map(|v| v as usize)),
        show: |limits| limits.token_streams.map(|v| v.to_string()),
    },
];

fn limit(text: &str) -> Result<Option<u32>, BadValue> {
    if text == "none" {
        return Ok(None);
    }
    let bad = || BadValue::new("a whole number of at least 1, or \"none\"");
    text.replace('_', "").parse().ok().filter(|number| *number > 0).map(Some).ok_or_else(bad)
}

/// The limit that a client has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limited {
    /// Requests of the client; after this time there may be another one.
    Requests(Duration),
    /// Requests with the token.
    TokenRequests(Duration),
    /// Open connections of the client.
    Connections,
    /// Transfers to the client.
    Streams,
    /// Transfers for the token.
    TokenStreams,
}

impl Limited {
    /// Names of the settings, as labels.
    pub(super) const LABELS: [&'static str; 5] =
        ["client-requests", "token-requests", "client-connections", "client-streams", "token-streams"];

    /// The name of the setting.
    pub fn label(self) -> &'static str {
        let [requests, token_requests, connections, streams, token_streams] = Self::LABELS;
        match self {
            Self::Requests(_) => requests,
            Self::TokenRequests(_) => token_requests,
            Self::Connections => connections,
            Self::Streams => streams,
            Self::TokenStreams => token_streams,
        }
    }

    /// Whole seconds after which the client may try again, for `Retry-After`.
    pub fn retry_after(self) -> u64 {
        let time = match self {
            Self::Requests(time) | Self::TokenRequests(time) => time,
            Self::Connections | Self::Streams | Self::TokenStreams => RETRY,
        };
        time.as_millis().div_ceil(1000).max(1) as u64
    }
}

impl std::fmt::Display for Limited {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} is reached", self.label())
    }
}

/// The limits, and the use that each client makes of them.
#[derive(Debug)]
pub struct ClientLimits {
    settings: ClientLimitSettings,
    buckets: Buckets,
    connections: Arc<ClientTally<ClientAddress>>,
    streams: Arc<ClientTally<ClientAddress>>,
    token_streams: Arc<ClientTally<u64>>,
    /// Clients that are not counted.
    nodes: Arc<NodeAddresses>,
    metrics: AccessMetrics,
}

/// A transfer in the count of its client, until it is dropped.
#[derive(Debug, Default)]
pub struct ClientHold {
    _client: Option<Tallied<ClientAddress>>,
    _tokens: [Option<Tallied<u64>>; 2],
}

impl ClientLimits {
    pub(super) fn new(settings: &ClientLimitSettings, nodes: Arc<NodeAddresses>, metrics: &AccessMetrics) -> Self {
        Self {
            settings: *settings,
            buckets: Buckets::new(SETS),
            connections: Arc::default(),
            streams: Arc::default(),
            token_streams: Arc::default(),
            nodes,
            metrics: metrics.clone(),
        }
    }

    /// Whether these are the limits of some settings.
    pub(super) fn are(&self, settings: &ClientLimitSettings) -> bool {
        self.settings == *settings
    }

    fn rate(&self, per_second: u32) -> Rate {
        Rate::per_second(per_second, self.settings.burst)
    }

    fn counted(&self, result: Result<(), Limited>) -> Result<(), Limited> {
        result.inspect_err(|limited| self.metrics.limited(*limited))
    }

    /// Counts a request of a client at a time of the server's clock.
    ///
    /// # Errors
    /// The client sends too many.
    pub fn request(&self, client: IpAddr, now: Duration) -> Result<(), Limited> {
        let Some(requests) = self.settings.requests.filter(|_| !self.nodes.contains(client)) else { return Ok(()) };
        let taken = self.buckets.take(&ClientAddress::from(client), self.rate(requests), now);
        self.counted(taken.map_err(Limited::Requests))
    }

    /// Counts a connection of a client; `None` where there is no limit, and for nodes of the cluster.
    ///
    /// # Errors
    /// The client has too many.
    pub fn connection(&self, client: IpAddr) -> Result<Option<Tallied<ClientAddress>>, Limited> {
        let Some(most) = self.settings.connections.filter(|_| !self.nodes.contains(client)) else { return Ok(None) };
        let counted = self.connections.count(client.into(), most);
        counted.map(Some).ok_or(Limited::Connections).inspect_err(|limited| self.metrics.limited(*limited))
    }

    /// Counts a request with a token at a time of the server's clock. Passes without a token have no limit.
    ///
    /// # Errors
    /// Too many are sent with the token.
    pub fn token_request(&self, pass: &Pass, now: Duration) -> Result<(), Limited> {
        let Some(requests) = self.settings.token_requests else { return Ok(()) };
        for token in pass.identities() {
            let taken = self.buckets.take(&("token", token), self.rate(requests), now);
            self.counted(taken.map_err(Limited::TokenRequests))?;
        }
        Ok(())
    }

    /// Counts a response or a session of a client.
    ///
    /// # Errors
    /// The client or its token has too many.
    pub fn hold(&self, client: IpAddr, pass: &Pass) -> Result<ClientHold, Limited> {
        let mut hold = ClientHold::default();
        if pass.is_of_node() {
            return Ok(hold);
        }
        if let Some(most) = self.settings.streams.filter(|_| !self.nodes.contains(client)) {
            hold._client = self.streams.count(client.into(), most);
            if hold._client.is_none() {
                return Err(Limited::Streams).inspect_err(|limited| self.metrics.limited(*limited));
            }
        }
        let Some(most) = self.settings.token_streams else { return Ok(hold) };
        for (counted, token) in hold._tokens.iter_mut().zip(pass.identities()) {
            *counted = self.token_streams.count(token, most);
            if counted.is_none() {
                return Err(Limited::TokenStreams).inspect_err(|limited| self.metrics.limited(*limited));
            }
        }
        Ok(hold)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(change: impl FnOnce(&mut ClientLimitSettings)) -> ClientLimits {
        limits_beside(Arc::default(), change)
    }

    fn limits_beside(nodes: Arc<NodeAddresses>, change: impl FnOnce(&mut ClientLimitSettings)) -> ClientLimits {
        let none = ClientLimitSettings {
            requests: None,
            connections: None,
            streams: None,
            token_requests: None,
            token_streams: None,
            burst: 3,
        };
        let mut settings = none;
        change(&mut settings);
        let metrics = AccessMetrics::register(&mut prometheus_client::registry::Registry::default());
        ClientLimits::new(&settings, nodes, &metrics)
    }

    fn client(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_network_of_ipv6_is_one_client() {
        let limits = limits(|limits| limits.requests = Some(1));
        let ask = |text| limits.request(client(text), Duration::ZERO);
        assert!(["2001:db8::1", "2001:db8::2", "2001:db8::3"].iter().all(|text| ask(text).is_ok()));
        assert_eq!(ask("2001:db8::4"), Err(Limited::Requests(Duration::from_secs(1))));
        assert!(ask("2001:db8:0:1::1").is_ok() && ask("192.0.2.1").is_ok());
    }

    #[test]
    fn tokens_have_limits_wherever_they_come_from() {
        let limits = limits(|limits| (limits.token_requests, limits.token_streams) = (Some(1), Some(2)));
        let (ann, bob) = (Pass::of_token(1), Pass::of_token(2));
        let ask = |pass: &Pass| limits.token_request(pass, Duration::ZERO);
        assert!((0..3).all(|_| ask(&ann).is_ok()) && ask(&ann).is_err() && ask(&bob).is_ok());
        assert!((0..100).all(|_| ask(&Pass::default()).is_ok()), "without a token");
        let hold = |from, pass: &Pass| limits.hold(client(from), pass);
        let held = (hold("192.0.2.1", &ann), hold("192.0.2.2", &ann));
        assert!(held.0.is_ok() && held.1.is_ok());
        assert_eq!(hold("192.0.2.3", &ann).unwrap_err(), Limited::TokenStreams);
        assert!(hold("192.0.2.1", &bob).is_ok());
        drop(held);
        assert!(hold("192.0.2.3", &ann).is_ok());
    }

    #[test]
    fn a_client_evades_no_limit_by_a_name_that_decides_nothing() {
        let limits = limits(|limits| (limits.token_requests, limits.token_streams) = (Some(1), Some(2)));
        // The other server decides on the token, or on the user: the client changes the other one.
        for of in [|made: u64| [Some(made), Some(1)], |made: u64| [Some(2), Some(made)]] {
            let pass = |made| Pass::of_external(of(made));
            assert!((10..13).all(|made| limits.token_request(&pass(made), Duration::ZERO).is_ok()));
            assert!(limits.token_request(&pass(13), Duration::ZERO).is_err());
            let hold = |made| limits.hold(client("192.0.2.1"), &pass(made));
            let held = (hold(20), hold(21));
            assert_eq!((held.0.is_ok(), held.1.is_ok(), hold(22).unwrap_err()), (true, true, Limited::TokenStreams));
        }
    }

    #[test]
    fn without_settings_there_are_no_limits() {
        let limits = limits(|_| {});
        let here = client("192.0.2.1");
        assert!((0..1000).all(|_| limits.request(here, Duration::ZERO).is_ok()));
        let all: Vec<_> = (0..1000).map(|_| (limits.connection(here), limits.hold(here, &Pass::of_token(1)))).collect();
        assert!(all.iter().all(|(connection, hold)| connection.is_ok() && hold.is_ok()));
    }

    #[test]
    fn retry_after_is_in_whole_seconds() {
        assert_eq!(Limited::Requests(Duration::from_millis(1)).retry_after(), 1);
        assert_eq!(Limited::Requests(Duration::from_millis(1001)).retry_after(), 2);
        assert_eq!(Limited::Streams.retry_after(), 1);
    }

    #[test]
    fn nodes_of_the_cluster_are_not_counted() {
        let nodes = Arc::<NodeAddresses>::default();
        let [node, viewer]: [IpAddr; 2] = ["10.0.0.1", "10.0.0.2"].map(|text| text.parse().unwrap());
        nodes.set([node]);
        let limits = limits_beside(nodes.clone(), |limits| {
            (limits.requests, limits.burst) = (Some(1), 1);
            (limits.connections, limits.streams) = (Some(1), Some(1));
        });
        let used = |client: IpAddr| {
            let all = (0..9).map(|_| {
                let hold = limits.hold(client, &Pass::default());
                (limits.request(client, Duration::ZERO).is_ok(), limits.connection(client), hold)
            });
            let all: Vec<_> = all.collect();
            all.iter().filter(|(request, connection, hold)| *request && connection.is_ok() && hold.is_ok()).count()
        };
        assert_eq!((used(node), used(viewer), used("::ffff:10.0.0.1".parse().unwrap())), (9, 1, 9));
        nodes.set([viewer]);
        assert_eq!(used(viewer), 9);
    }
}
