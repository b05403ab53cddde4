//! The access rules of all places, limits of clients, proxies and web origins, as the settings of access make them. A reload makes new ones.

use super::{
    AccessMetrics, AccessSettings, AccessViewer, AskingClient, ClientHold, ClientLimitSettings, ClientLimits,
    CorsOrigins, Gate, Limited, NodeAddresses, Pass, Question, RtspDecision, Sight, gate::GateError,
};
use millpond_connections::{
    Tallied,
    proxies::{Proxies, ProxySettings},
};
use millpond_library::Places;
use millpond_stream::ClientAddress;
use std::{collections::HashMap, net::IpAddr, sync::Arc, time::Duration};
use tokio::sync::watch;

/// The access rules of all places, the limits of clients, and the proxies.
#[derive(Debug)]
pub struct Gates {
    places: Places,
    /// For paths outside of all places, such as channels: the rules of the server.
    outside: Option<Arc<Gate>>,
    /// By number of place; `None` for those that are open.
    of: Vec<Option<Arc<Gate>>>,
    /// Web origins whose pages may play: those of the server, and by number of place.
    cors: (CorsOrigins, Vec<CorsOrigins>),
    limits: Option<Arc<ClientLimits>>,
    proxies: Proxies,
}

/// The place whose rules hold for a path. By default it is the space outside of all places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RuledPlace(Option<usize>);

impl Gates {
    /// Opens the rules of places, in their order, and those of the server. Places with equal rules share them, also with
    /// those `before`: keys that were read and challenges that were sent stay valid. So do counts, where the limits are the same. Limits do
    /// not count `nodes`.
    ///
    /// # Errors
    /// A file that can't be used.
    pub fn open(
        places: Places,
        (own, server): (&[&AccessSettings], &AccessSettings),
        (limits, nodes, proxies): (&ClientLimitSettings, &Arc<NodeAddresses>, &ProxySettings),
        metrics: &AccessMetrics,
        before: Option<&Self>,
    ) -> Result<Self, GateError> {
        let mut made: Vec<Arc<Gate>> = before.map(Self::gates).unwrap_or_default();
        let mut of = Vec::new();
        for settings in own.iter().copied().chain([server]) {
            if settings.is_open() {
                of.push(None);
                continue;
            }
            let gate = match made.iter().find(|gate| gate.settings == *settings) {
                Some(gate) => gate.clone(),
                None => {
                    let gate = Arc::new(Gate::open(settings, metrics, &made)?);
                    made.push(gate.clone());
                    gate
                }
            };
            of.push(Some(gate));
        }
        let outside = of.pop().flatten();
        let cors = (server.cors.clone(), own.iter().map(|settings| settings.cors.clone()).collect());
        let known = before.and_then(|before| before.limits.clone()).filter(|known| known.are(limits));
        let limits = Some(known.unwrap_or_else(|| Arc::new(ClientLimits::new(limits, nodes.clone(), metrics))));
        Ok(Self { places, outside, of, cors, limits, proxies: Proxies::new(proxies) })
    }

    /// No rules.
    pub fn none() -> Self {
        let (places, cors) = (Places::new([]), (CorsOrigins::None, Vec::new()));
        Self { places, outside: None, of: Vec::new(), cors, limits: None, proxies: Proxies::default() }
    }

    /// The proxies that tell the addresses of their clients.
    pub fn proxies(&self) -> &Proxies {
        &self.proxies
    }

    /// The limits of clients; `None` where no limit is set.
    pub fn limits(&self) -> Option<&ClientLimits> {
        self.limits.as_deref()
    }

    /// Counts a request of a client at a time of the server's clock.
    ///
    /// # Errors
    /// The client sends too many.
    pub fn count_request(&self, client: IpAddr, now: Duration) -> Result<(), Limited> {
        self.limits.as_ref().map_or(Ok(()), |limits| limits.request(client, now))
    }

    /// Counts a connection of a client, until the result is dropped. Trusted proxies have no limit.
    ///
    /// # Errors
    /// The client has too many.
    pub fn count_connection(&self, client: IpAddr) -> Result<Option<Tallied<ClientAddress>>, Limited> {
        match &self.limits {
            Some(limits) if !self.proxies.trusts(client) => limits.connection(client),
            _ => Ok(None),
        }
    }

    /// Counts a response or session of an admitted client, until the result is dropped.
    ///
    /// # Errors
    /// The client or its token has too many.
    pub fn hold(&self, client: IpAddr, pass: &Pass) -> Result<ClientHold, Limited> {
        self.limits.as_ref().map_or(Ok(ClientHold::default()), |limits| limits.hold(client, pass))
    }

    /// Returns the place whose rules hold for a path, which is decoded. Slashes at its beginning are ignored, so that no other lookup
    /// finds a place that this one misses.
    pub fn place(&self, path: &str) -> RuledPlace {
        RuledPlace(self.places.find(path.trim_start_matches('/')).map(|found| found.index))
    }

    /// Web origins whose pages may play what is in a place.
    pub fn cors(&self, RuledPlace(place): RuledPlace) -> &CorsOrigins {
        let (server, of) = &self.cors;
        place.and_then(|place| of.get(place)).unwrap_or(server)
    }

    /// The question whether a client may publish a stream of a path, where another server decides it.
    pub fn ask_to_publish(&self, path: &str, asker: &AskingClient<'_>) -> Option<Question> {
        let gate = self.of(path).filter(|gate| gate.asks_others())?;
        Some(gate.question(path, asker))
    }

    /// The rules of a place; `None` where it is open.
    pub fn of_place(&self, RuledPlace(place): RuledPlace) -> Option<&Arc<Gate>> {
        match place {
            Some(place) => self.of.get(place)?.as_ref(),
            None => self.outside.as_ref(),
        }
    }

    /// The rules for a path, which is decoded; `None` where it is open.
    pub fn of(&self, path: &str) -> Option<&Arc<Gate>> {
        self.of_place(self.place(path))
    }

    /// Decision on a request by RTSP, to play an asset. `begins` is true for DESCRIBE and SETUP; later requests belong to a session.
    pub fn rtsp(&self, (path, begins): (&str, bool), asset: &str, asker: &AskingClient<'_>) -> RtspDecision {
        match self.of(path) {
            None => RtspDecision::Open,
            // A later request needs the password of `rtsp-users` again.
            Some(gate) if !begins && !gate.asks_credentials() => RtspDecision::Open,
            Some(_) if !begins => RtspDecision::Admitted(Pass::default()),
            Some(gate) => gate.admit_rtsp(path, asset, asker),
        }
    }

    /// Returns what a viewer may see of the names of each place, in their order; `None` where it is nothing. A search asks for
    /// all places at once: that some refuse is no failure, and is not counted as a refusal.
    pub fn sights(&self, viewer: &AccessViewer<'_>, now: Duration) -> Vec<Option<Sight>> {
        // A nonce of Digest counts the requests: places that share rules check the credentials once.
        let mut known: HashMap<*const Gate, Option<Sight>> = HashMap::new();
        let sight = |gate: &Option<Arc<Gate>>| match gate {
            None => Some(Sight::Whole),
            Some(gate) => known.entry(Arc::as_ptr(gate)).or_insert_with(|| gate.sight(viewer, now)).clone(),
        };
        self.of.iter().map(sight).collect()
    }

    /// Each rule once.
    fn gates(&self) -> Vec<Arc<Gate>> {
        let mut all: Vec<Arc<Gate>> = Vec::new();
        for gate in self.of.iter().chain([&self.outside]).flatten() {
            if !all.iter().any(|known| Arc::ptr_eq(known, gate)) {
                all.push(gate.clone());
            }
        }
        all
    }

    /// Starts the tasks that read files and URLs again, of rules that were not in force `before`. They end when nobody has
    /// the rule any more.
    pub fn watch(&self, before: Option<&Self>, stop: &watch::Receiver<bool>) {
        let known = before.map(Self::gates).unwrap_or_default();
        for gate in self.gates().iter().filter(|gate| !known.iter().any(|known| Arc::ptr_eq(known, gate))) {
            gate.watch(stop);
        }
    }
}
