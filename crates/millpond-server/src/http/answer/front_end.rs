//! The front end as connections see it.

use super::{ConnectionViewers, Front, Target, exchange::Exchange, node_api, publish, reply, webrtc};
use millpond_access::Gates;
use millpond_connections::proxies::ConnectionClient;
use millpond_http::{
    request::{HeadError, Request},
    wire::{ConnectionMetrics, FrontEnd, Peer, Reply, SendMeter},
};
use millpond_store::Memory;
use std::{net::SocketAddr, sync::Arc, time::Instant};

impl FrontEnd for Front {
    type Target = Target;
    type Viewers = ConnectionViewers;
    type Exchange = Exchange;

    fn memory(&self) -> &Arc<Memory> {
        self.store().memory()
    }

    fn connection_metrics(&self) -> &ConnectionMetrics {
        self.metrics().connections()
    }

    fn gates(&self) -> &Gates {
        Self::gates(self)
    }

    fn connected(&self, client: ConnectionClient) -> ConnectionViewers {
        Self::connected(self, client)
    }

    fn target(&self, request: &Request) -> Target {
        Target::of(self, request)
    }

    fn takes_body(&self, request: &Request, target: &Target) -> bool {
        let is_taken = webrtc::takes_body(request, target) || publish::takes_body(self, request, target);
        is_taken || node_api::takes_body(request, target)
    }

    fn begin(
        self: Arc<Self>,
        viewers: &ConnectionViewers,
        mut request: (Request, Target),
        peer: Peer,
        started: Instant,
        meter: SendMeter,
    ) -> Exchange {
        self.note_client(&mut request.0, peer.0, viewers.is_of_node());
        Exchange::begin(self, request, peer, started, meter)
    }

    fn refuse(&self, error: HeadError, peer: SocketAddr) -> Reply {
        reply::refusal(self, error.status, error.reason, peer).into()
    }

    fn cut(&self) {
        Self::cut(self);
    }
}
