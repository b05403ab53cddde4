//! From an intercepted connection to its server, or to another one of its group.

use super::{Intercept, Upstream, spread::Passage};
use std::{
    io,
    net::SocketAddr,
    time::{Duration, Instant},
};
use tokio::net::TcpStream;

/// Longest wait for a server while another one of its group has not been tried.
const PATIENCE: Duration = Duration::from_secs(2);

impl Intercept {
    /// Connects to a server, or to another one of its group; `None` where none can be reached.
    pub(super) async fn reach(&self, server: SocketAddr, client: SocketAddr) -> Option<(TcpStream, Option<Passage>)> {
        let from = self.settings.keeps_client.then_some(client.ip());
        let group = self.settings.groups.of(server.ip());
        if group.others.is_empty() {
            let connected = self.upstream.connect(server, from).await;
            return connected.inspect_err(|error| unreachable(client, server, error)).ok().map(|stream| (stream, None));
        }
        let mut servers = self.spread.order(group.iter(), server, client.ip(), Instant::now()).into_iter().peekable();
        while let Some(chosen) = servers.next() {
            let limit = if servers.peek().is_some() { PATIENCE.min(self.upstream.limit) } else { self.upstream.limit };
            match (Upstream { limit, ..self.upstream }).connect(chosen, from).await {
                Ok(stream) => {
                    self.spread.reached(chosen);
                    if chosen != server {
                        self.metrics.diverted.inc();
                        tracing::debug!(peer = %client, %server, %chosen, "intercepted connection goes to another server of its group");
                    }
                    return Some((stream, Some(self.spread.passes(client.ip(), chosen.ip()))));
                }
                Err(error) if is_of_server(&error) && self.spread.failed(chosen, Instant::now()) => {
                    tracing::warn!(server = %chosen, %error, "a server of a group can't be reached: others get its connections");
                }
                Err(error) => unreachable(client, chosen, &error),
            }
        }
        None
    }
}

/// Whether a connection failed because of the server or the network, and not for want of descriptors or permissions here.
fn is_of_server(error: &io::Error) -> bool {
    use io::ErrorKind::{
        ConnectionAborted, ConnectionRefused, ConnectionReset, HostUnreachable, NetworkUnreachable, TimedOut,
    };
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset | HostUnreachable | NetworkUnreachable | TimedOut
    )
}

fn unreachable(client: SocketAddr, server: SocketAddr, error: &io::Error) {
    tracing::debug!(peer = %client, %server, %error, "the server of an intercepted connection can't be reached");
}
