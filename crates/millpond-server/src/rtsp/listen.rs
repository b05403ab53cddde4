//! Accepts RTSP connections, and tells RTSP from HTTP tunnels by their first bytes.

use super::{
    CurrentRtsp, Rtsp, connection,
    inlet::Inlet,
    signalling::{Arrival, Kind},
    tunnel::{self, Post},
    wire::Wire,
};
use millpond_connections::{Door, Slot, Tallied};
use millpond_stream::ClientAddress;
use std::{io, net::SocketAddr, sync::Arc, time::Duration};
use tokio::{
    net::TcpStream,
    sync::watch,
    time::{timeout, timeout_at},
};
use tokio_rustls::TlsAcceptor;

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

/// Serves a connection from its first byte to its end.
async fn serve(
    mut stream: TcpStream,
    tls: Option<TlsAcceptor>,
    peer: SocketAddr,
    slot: Slot,
    rtsp: &Arc<Rtsp>,
) -> io::Result<()> {
    let peer = rtsp.gates.proxies().arrive(&mut stream, peer, rtsp.timeouts.head).await?;
    let counted = count(peer, rtsp)?;
    let _ = stream.set_nodelay(true);
    let wire = Arc::new(match tls {
        Some(tls) => Wire::secure(timeout(rtsp.timeouts.head, tls.accept(stream)).await??),
        None => Wire::new(stream),
    });
    let mut arrival = Arrival::new(rtsp.timeouts, rtsp.now());
    match begin(&wire, &mut arrival, rtsp).await? {
        None => Ok(()),
        Some(Kind::Rtsp) => {
            connection::serve(wire.clone(), Inlet::Wire(wire), (arrival.into_input(), None), peer, rtsp).await
        }
        Some(Kind::Get { cookie }) => {
            let (peer, _counted) = of_tunnel((peer, counted), arrival.head(), rtsp)?;
            let Some(mut tunnel) = rtsp.tunnels.get(&cookie, peer.ip(), wire.clone()) else {
                return refuse(&wire, peer, "409 Conflict", rtsp);
            };
            wire.send(|pending| pending.extend_from_slice(tunnel::OPENED));
            let until = rtsp.instant(arrival.until());
            if timeout_at(until, tunnel.read(arrival.input())).await?? == 0 {
                return Ok(());
            }
            connection::serve(wire, Inlet::Tunnel(tunnel), (arrival.into_input(), None), peer, rtsp).await
        }
        Some(Kind::Post { cookie }) => {
            let (peer, counted) = of_tunnel((peer, counted), arrival.head(), rtsp)?;
            let input = arrival.into_input();
            match rtsp.tunnels.post(&cookie, peer.ip(), Post { wire, input, _slot: slot, _counted: counted }) {
                Ok(()) => Ok(()),
                Err(post) => refuse(&post.wire, peer, "404 Not Found", rtsp),
            }
        }
        Some(Kind::Refused(status)) => refuse(&wire, peer, status, rtsp),
    }
}

/// A connection, counted among those of its client.
type Counted = Option<Tallied<ClientAddress>>;

/// Counts a connection among those of its client.
///
/// # Errors
/// The client has too many: the connection must be closed.
fn count(peer: SocketAddr, rtsp: &Rtsp) -> io::Result<Counted> {
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
fn of_tunnel((peer, counted): (SocketAddr, Counted), head: &[u8], rtsp: &Rtsp) -> io::Result<(SocketAddr, Counted)> {
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
