//! Accepts RTSP connections, and tells RTSP from HTTP tunnels by their first bytes.

use super::{
    CurrentRtsp, Rtsp, connection,
    inlet::Inlet,
    signalling::{Arrival, Kind},
    tunnel::{self, Post},
};
use crate::wire::Wire;
use bytes::BytesMut;
use millpond_connections::{
    Door, Slot, Tallied,
    proxies::{ConnectionClient, ConnectionKind},
};
use millpond_stream::ClientAddress;
use std::{io, net::SocketAddr, sync::Arc, time::Duration};
use tokio::{
    net::TcpStream,
    sync::watch,
    time::{timeout, timeout_at},
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

/// Accepts connections until the door shuts or `stop` turns true. The latter ends the connections too.
pub(crate) async fn accept(
    door: Door,
    tls: Option<TlsAcceptor>,
    current: CurrentRtsp,
    mut stop: watch::Receiver<bool>,
) {
    let mut door = door;
    loop {
        let accepted = tokio::select! {
            accepted = door.accept() => accepted,
            _ = stop.wait_for(|stop| *stop) => return,
        };
        let Some(accepted) = accepted else { return };
        let rtsp = current.load_full();
        match accepted {
            Ok((stream, peer)) => {
                // Over the bound the connection is closed at once.
                let Some(slot) = rtsp.connections.take() else {
                    rtsp.refuse_connection(peer);
                    continue;
                };
                let (tls, mut stop) = (tls.clone(), stop.clone());
                tokio::spawn(async move {
                    tokio::select! {
                        served = serve(stream, tls, peer, slot, &rtsp) => if let Err(error) = served {
                            tracing::debug!(%peer, %error, "RTSP connection ended");
                        },
                        _ = stop.wait_for(|stop| *stop) => {}
                    }
                });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept an RTSP connection");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// Serves another node of the cluster, whose certificate was checked. It takes streams for its viewers, and publishes none.
///
/// # Errors
/// The reason why the connection ended, where that was not the node.
pub(crate) async fn serve_node(stream: TlsStream<TcpStream>, peer: SocketAddr, rtsp: &Arc<Rtsp>) -> io::Result<()> {
    let wire = Arc::new(Wire::secure(stream));
    let client = ConnectionClient { address: peer, kind: ConnectionKind::Node };
    connection::serve(wire.clone(), Inlet::Node(wire), (BytesMut::new(), None), client, rtsp).await
}

/// Serves a connection from its first byte to its end.
async fn serve(
    mut stream: TcpStream,
    tls: Option<TlsAcceptor>,
    peer: SocketAddr,
    slot: Slot,
    rtsp: &Arc<Rtsp>,
) -> io::Result<()> {
    let client = rtsp.gates.proxies().arrive(&mut stream, peer, rtsp.timeouts.head).await?;
    let counted = count(client, rtsp)?;
    let _ = stream.set_nodelay(true);
    let wire = Arc::new(match tls {
        Some(tls) => Wire::secure(timeout(rtsp.timeouts.head, tls.accept(stream)).await??),
        None => Wire::new(stream),
    });
    let mut arrival = Arrival::new(rtsp.timeouts, rtsp.now());
    match begin(&wire, &mut arrival, rtsp).await? {
        None => Ok(()),
        Some(Kind::Rtsp) => {
            connection::serve(wire.clone(), Inlet::Wire(wire), (arrival.into_input(), None), client, rtsp).await
        }
        Some(Kind::Get { cookie }) => {
            let (client, _counted) = of_tunnel((client, counted), arrival.head(), rtsp)?;
            let Some(mut tunnel) = rtsp.tunnels.get(&cookie, client.address.ip(), wire.clone()) else {
                return refuse(&wire, client.address, "409 Conflict", rtsp);
            };
            wire.send(|pending| pending.extend_from_slice(tunnel::OPENED));
            let until = rtsp.instant(arrival.until());
            if timeout_at(until, tunnel.read(arrival.input())).await?? == 0 {
                return Ok(());
            }
            connection::serve(wire, Inlet::Tunnel(tunnel), (arrival.into_input(), None), client, rtsp).await
        }
        Some(Kind::Post { cookie }) => {
            let (client, counted) = of_tunnel((client, counted), arrival.head(), rtsp)?;
            let input = arrival.into_input();
            match rtsp.tunnels.post(&cookie, client.address.ip(), Post { wire, input, _slot: slot, _counted: counted })
            {
                Ok(()) => Ok(()),
                Err(post) => refuse(&post.wire, client.address, "404 Not Found", rtsp),
            }
        }
        Some(Kind::Refused(status)) => refuse(&wire, client.address, status, rtsp),
    }
}

/// A connection, counted among those of its client.
type Counted = Option<Tallied<ClientAddress>>;

/// Counts a connection among those of its client.
///
/// # Errors
/// The client has too many: the connection must be closed.
fn count(client: ConnectionClient, rtsp: &Rtsp) -> io::Result<Counted> {
    let peer = client.address;
    rtsp.gates.count_connection(peer.ip()).map_err(|limited| {
        if rtsp.access_log {
            tracing::info!(%peer, why = %limited, "RTSP connection refused");
        }
        io::Error::new(io::ErrorKind::ConnectionRefused, limited.to_string())
    })
}

/// The client of a tunnel by the head of one of its halves, and its count.
///
/// # Errors
/// Those of [`count`].
fn of_tunnel(
    (peer, counted): (ConnectionClient, Counted),
    head: &[u8],
    rtsp: &Rtsp,
) -> io::Result<(ConnectionClient, Counted)> {
    let client = rtsp.gates.proxies().of_tunnel(peer, head);
    if client == peer {
        return Ok((peer, counted));
    }
    Ok((client, count(client, rtsp)?))
}

/// Reads until it is known what the connection begins with; nothing where it ends before.
async fn begin(wire: &Wire, arrival: &mut Arrival, rtsp: &Rtsp) -> io::Result<Option<Kind>> {
    loop {
        if let Some(kind) = arrival.next(rtsp.now()) {
            return Ok(Some(kind));
        }
        let until = rtsp.instant(arrival.until());
        if timeout_at(until, wire.read(arrival.input())).await?? == 0 {
            return Ok(None);
        }
    }
}

fn refuse(wire: &Wire, peer: SocketAddr, status: &str, rtsp: &Rtsp) -> io::Result<()> {
    tracing::info!(target: millpond_logging::ACCESS, %peer, status, "HTTP request on the RTSP port is no tunnel");
    let cure = rtsp.http_port.map(|port| format!(": HTTP is served on port {port}")).unwrap_or_default();
    let body = format!("This port is for RTSP, and for RTSP tunnels through HTTP{cure}.\n");
    let length = body.len();
    let reply = format!(
        "HTTP/1.0 {status}\r\nServer: millpond\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    wire.send(|pending| pending.extend_from_slice(reply.as_bytes()));
    wire.close();
    Err(io::Error::new(io::ErrorKind::InvalidData, format!("HTTP request is no tunnel: {status}")))
}
