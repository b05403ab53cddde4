//! Accepts intercepted connections. Their number is bounded, in all and for each client.

use super::{Intercept, connection, metrics::Outcome};
use millpond_connections::{Door, Slots};
use std::{net::SocketAddr, sync::Arc, time::Duration};
use tokio::{net::TcpStream, sync::watch};

/// Accepts connections until `stop`, and runs each in a task.
pub(crate) async fn accept(mut door: Door, intercept: Arc<Intercept>, mut stop: watch::Receiver<bool>) {
    loop {
        let accepted = tokio::select! {
            accepted = door.accept() => accepted,
            _ = stop.wait_for(|stop| *stop) => return,
        };
        let Some(accepted) = accepted else { return };
        match accepted {
            Ok((stream, peer)) => begin(stream, canonical(peer), &intercept),
            Err(error) => {
                // Most likely no file descriptor is free until another connection closes.
                tracing::warn!(%error, "can't accept an intercepted connection");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

fn begin(stream: TcpStream, peer: SocketAddr, intercept: &Arc<Intercept>) {
    let permit = intercept.connections.clone().try_acquire_owned().ok();
    let counted = || intercept.clients.count(peer.ip().into(), intercept.settings.per_client);
    // The client's connection takes a descriptor, and that to the server another one.
    let descriptors = || Slots::take_descriptor().zip(Slots::take_descriptor());
    let Some((permit, counted)) = permit.and_then(|permit| Some(((permit, descriptors()?), counted()?))) else {
        intercept.metrics.count(Outcome::Full);
        tracing::debug!(%peer, "intercepted connection closed: too many are open");
        return;
    };
    let _ = stream.set_nodelay(true);
    let intercept = intercept.clone();
    let mut cut = intercept.cut.subscribe();
    tokio::spawn(async move {
        intercept.metrics.open.inc();
        tokio::select! {
            biased;
            () = connection::serve(stream, peer, &intercept) => {}
            _ = cut.wait_for(|cut| *cut) => {}
        }
        intercept.metrics.open.dec();
        drop((permit, counted));
    });
}

/// Returns an address of IPv4 that a socket of IPv6 gave as one of IPv4.
pub(super) fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}
