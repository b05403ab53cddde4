//! The node that serves a request: this one, or another one.

use super::{Cluster, addresses::authority, rooms::NodeRooms, settings::Steering};
use millpond_cluster::{Answer, Bitrate, Candidate, Demand, Loads, Node, NodeName, ObjectKey, Request, Role, Sosd};
use std::sync::{Arc, PoisonError, atomic::Ordering};

/// Parameter of the query of requests that another node has sent here. The node that it names serves them itself: so no request is
/// sent on twice, whatever the nodes' views are.
pub(crate) const MARK: &str = "_millpond_node";

/// Bandwidth that a stream counts with where that of its title is not known.
const RATE: Bitrate = Bitrate::from_mbps(4);

/// Whether a query has the mark of another node.
pub(crate) fn marked(query: &str) -> bool {
    query.split('&').any(|pair| pair.split('=').next() == Some(MARK))
}

/// The nodes that a manifest lists, the best first, with their URLs; that of this node is `None`.
pub(crate) type ListedNodes = Vec<(NodeName, Option<Arc<str>>)>;

/// Most nodes that a manifest lists.
const LISTED: usize = 3;

/// The kind of a request that may be served elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// A viewer begins to play a stored asset.
    Stored,
    /// A viewer goes on with a stored asset: only a node that leaves sends it elsewhere.
    Follows,
    /// A live stream or channel, begun or gone on with. It has one node, whatever that node's load: so its source is read once. The node that has
    /// it keeps it.
    Live,
    /// A live stream that is pushed to one node.
    Pushed,
}

/// The protocol of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// HTTP.
    Http,
    /// RTSP.
    Rtsp,
}

impl Cluster {
    /// Whether the demand of a title must be known to send its viewers where they fit.
    pub(crate) fn needs_demand(&self, start: Start) -> bool {
        start == Start::Stored && self.own.roles.contains(Role::Manager) && self.books()
    }

    /// Whether requests of a kind may be redirected from this node.
    pub(crate) fn redirects(&self, start: Start, protocol: Protocol) -> bool {
        let is_redirected = match (self.settings.steering, protocol) {
            (Steering::None | Steering::Proxy, _) => false,
            // Manifests list the nodes. Live streams have one.
            (Steering::Steer, Protocol::Http) => matches!(start, Start::Live | Start::Pushed),
            (Steering::Redirect | Steering::Steer, _) => true,
        };
        let is_at_rest = start == Start::Follows && !self.is_draining();
        is_redirected && self.own.roles.contains(Role::Manager) && !is_at_rest
    }

    /// The URL of a request's node, without a path; `None` where it is served here. `demand` is that of its title, where it is known,
    /// and `is_secure` is whether the request came over TLS.
    pub(crate) async fn elsewhere(
        &self,
        (key, start): (&ObjectKey, Start),
        demand: Option<&Demand>,
        (protocol, is_secure): (Protocol, bool),
    ) -> Option<Arc<str>> {
        if !self.redirects(start, protocol) {
            return None;
        }
        let view = self.view();
        for candidate in self.answer(key, start, demand, true).candidates {
            if candidate.name == *self.name() {
                self.count(&candidate, start, demand);
                return None;
            }
            let Some(base) = view.node(candidate.name.as_str()).and_then(|node| base(node, protocol, is_secure)) else {
                continue;
            };
            if self.reach.is_up(&base).await {
                self.count(&candidate, start, demand);
                match protocol {
                    Protocol::Http => self.metrics.http.inc(),
                    Protocol::Rtsp => self.metrics.rtsp.inc(),
                };
                return Some(base);
            }
            tracing::debug!(node = %candidate.name, "a node can't be reached: the next one is chosen");
            self.metrics.unreachable.inc();
        }
        None
    }

    /// The nodes that a manifest lists. Empty where manifests list no nodes.
    pub(crate) async fn listed(
        &self,
        (key, start): (&ObjectKey, Start),
        demand: Option<&Demand>,
        is_secure: bool,
    ) -> ListedNodes {
        let is_steered = self.settings.steering == Steering::Steer;
        if !is_steered && self.settings.steering != Steering::Redirect {
            return Vec::new();
        }
        let view = self.view();
        let address = |candidate: Candidate| {
            let node = view.node(candidate.name.as_str())?;
            let own = (candidate.name == *self.name()).then_some(None);
            Some((candidate.name, own.or_else(|| Some(Some(base(node, Protocol::Http, is_secure)?)))?))
        };
        let candidates = self.answer(key, start, demand, false).candidates;
        let order: Vec<_> = candidates.into_iter().filter_map(address).collect();
        let mut all = Vec::new();
        // Any node can serve any asset, and a live stream from a copy. A redirected player is where it should be.
        let mut at = None;
        for (name, url) in order {
            match &url {
                None => at = Some(all.len()),
                Some(url) if all.len() < LISTED - 1 && self.reach.is_up(url).await => {
                    all.push((name, Some(url.clone())))
                }
                Some(_) => {}
            }
        }
        let at = if is_steered { at.unwrap_or(all.len()) } else { 0 };
        all.insert(at, (self.name().clone(), None));
        all
    }

    /// The HTTP URL of this node, where viewers of such a connection may use it.
    pub(crate) fn own_url(&self, is_secure: bool) -> Option<Arc<str>> {
        base(&self.own, Protocol::Http, is_secure)
    }

    /// Whether the address of a live stream's server is that of a node.
    pub(crate) fn is_at_node(&self, server: &str) -> bool {
        let is_below = |base: &Arc<str>| server.strip_prefix(&**base).is_some_and(|rest| rest.starts_with('/'));
        let view = self.view();
        let bases = |node: &Node| {
            let of_nodes = node.addresses.nodes.as_deref().and_then(relayed);
            [base(node, Protocol::Rtsp, false), of_nodes].into_iter().flatten().any(|base| is_below(&base))
        };
        view.nodes().iter().any(bases)
    }

    /// The RTSP URL of the node that owns a live stream; `None` where that is this one.
    pub(crate) async fn owner(&self, key: &ObjectKey, start: Start) -> Option<Arc<str>> {
        let view = self.view();
        for candidate in self.answer(key, start, None, false).candidates {
            if candidate.name == *self.name() {
                return None;
            }
            let Some(node) = view.node(candidate.name.as_str()) else { continue };
            // Relays come by RTSP to the listener for nodes too.
            let (probed, address) = match self.settings.node_listen {
                Some(_) => (node.addresses.nodes.clone(), node.addresses.nodes.as_deref().and_then(relayed)),
                None => (base(node, Protocol::Rtsp, false), base(node, Protocol::Rtsp, false)),
            };
            if let (Some(probed), Some(address)) = (probed, address)
                && self.reach.is_up(&probed).await
                && !self.reach.is_distrusted(&probed)
            {
                return Some(address);
            }
        }
        None
    }

    /// Whether manifests tell players of a steering manifest.
    pub(crate) fn steers(&self) -> bool {
        self.settings.steering == Steering::Steer
    }

    /// The nodes for a request, the best first. `demand` is that of a stored title, where it is known, and `is_real` is whether a viewer
    /// asks.
    pub(super) fn answer(&self, key: &ObjectKey, start: Start, demand: Option<&Demand>, is_real: bool) -> Answer {
        let assumed = assumed();
        let mut loads = self.loads.lock().unwrap_or_else(PoisonError::into_inner);
        loads.advance(self.now());
        let rooms = self.rooms(demand.unwrap_or(&assumed));
        self.answer_in(&mut loads, (key, start), &rooms, is_real)
    }

    /// The same, with room as it is told.
    pub(super) fn answer_in(
        &self,
        loads: &mut Loads,
        (key, start): (&ObjectKey, Start),
        rooms: &NodeRooms<'_>,
        is_real: bool,
    ) -> Answer {
        match start {
            Start::Pushed => self.pushed_to(key),
            Start::Live => Sosd::owners(loads, key, &self.asking(key)),
            Start::Stored | Start::Follows => {
                let turn = self.turns.fetch_add(u64::from(is_real), Ordering::Relaxed);
                self.rule.assign(loads, &Request { key, rate: rooms.demand().rate, turn, rooms: Some(rooms) })
            }
        }
    }

    /// Counts a stream until its node publishes its load, and its booking until that shows.
    pub(super) fn count(&self, candidate: &Candidate, start: Start, demand: Option<&Demand>) {
        if start != Start::Stored {
            return;
        }
        let assumed = assumed();
        let demand = demand.unwrap_or(&assumed);
        self.loads.lock().unwrap_or_else(PoisonError::into_inner).add(&candidate.name, demand.rate, self.now());
        if candidate.name != *self.name() {
            self.expect(&candidate.name, demand);
        }
    }
}

/// The demand of a title that is not known.
pub(super) fn assumed() -> Demand {
    Demand { rate: RATE, ..Demand::default() }
}

/// The address of a node. Clients that came over TLS are sent to TLS only, and browsers that did not are not.
fn base(node: &Node, protocol: Protocol, is_secure: bool) -> Option<Arc<str>> {
    let (address, secure) = match protocol {
        Protocol::Http => (&node.addresses.http, "https:"),
        Protocol::Rtsp => (&node.addresses.rtsp, "rtsps:"),
    };
    address.clone().filter(|address| !is_secure || address.starts_with(secure))
}

/// The address of RTSP on a listener for nodes.
fn relayed(base: &str) -> Option<Arc<str>> {
    let (host, port) = authority(base)?;
    let host = if host.contains(':') { format!("[{host}]") } else { host };
    Some(format!("rtsps://{host}:{port}").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_whole_parameters() {
        assert!(marked("_millpond_node=a") && marked("x=1&_millpond_node=b&y") && marked("_millpond_node"));
        assert_eq!(relayed("https://a.example:8445").as_deref(), Some("rtsps://a.example:8445"));
        assert_eq!(relayed("https://[::1]").as_deref(), Some("rtsps://[::1]:443"));
        assert!(
            !marked("") && !marked("x_millpond_node=a") && !marked("x=_millpond_node") && !marked("_millpond_nodes=a")
        );
    }
}
