//! Accepts RTSP connections, and tells RTSP from HTTP tunnels by their first bytes.

use super::{
    Rtsp, access, connection,
    inlet::Inlet,
    signalling::{Arrival, Kind},
    tunnel::{self, Post},
    wire::Wire,
};
use std::{io, net::SocketAddr, sync::Arc, time::Duration};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, watch},
    time::{timeout, timeout_at},
};
use tokio_rustls::TlsAcceptor;

/// Listening sockets.
pub(crate) struct Listeners {
    pub(crate) plain: TcpListener,
    /// RTSP over TLS.
    pub(crate) secure: Option<(TcpListener, TlsAcceptor)>,
}

/// Accepts connections until `stop` turns true, which also ends all sessions.
pub(crate) async fn accept(listeners: Listeners, rtsp: Arc<Rtsp>, stop: watch::Receiver<bool>) {
    let _ = rtsp.stop.set(stop.clone());
    tokio::spawn(rtsp.clone().sweep(stop.clone()));
    tokio::spawn(rtsp.clone().observe(stop.clone()));
    let publishers = rtsp.publishers.as_ref().and_then(|publishers| publishers.access());
    for access in rtsp.access.iter().chain(publishers) {
        tokio::spawn(access::watch(access.clone(), stop.clone()));
    }
    let plain = accept_from(listeners.plain, None, &rtsp, stop.clone());
    match listeners.secure {
        Some((listener, tls)) => {
            tokio::join!(plain, accept_from(listener, Some(tls), &rtsp, stop));
        }
        None => plain.await,
    }
    rtsp.end().await;
}

async fn accept_from(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    rtsp: &Arc<Rtsp>,
    mut stop: watch::Receiver<bool>,
) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.wait_for(|stop| *stop) => return,
        };
        match accepted {
            Ok((stream, peer)) => {
                // Over the bound the connection is closed at once.
                let Ok(slot) = rtsp.connections.clone().try_acquire_owned() else {
                    rtsp.refuse_connection(peer);
                    continue;
                };
                let (rtsp, tls, mut stop) = (rtsp.clone(), tls.clone(), stop.clone());
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
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    peer: SocketAddr,
    slot: OwnedSemaphorePermit,
    rtsp: &Arc<Rtsp>,
) -> io::Result<()> {
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
            let Some(mut tunnel) = rtsp.tunnels.get(&cookie, peer.ip(), wire.clone()) else {
                return refuse(&wire, peer, "409 Conflict");
            };
            wire.send(|pending| pending.extend_from_slice(tunnel::OPENED));
            let until = rtsp.instant(arrival.until());
            if timeout_at(until, tunnel.read(arrival.input())).await?? == 0 {
                return Ok(());
            }
            connection::serve(wire, Inlet::Tunnel(tunnel), (arrival.into_input(), None), peer, rtsp).await
        }
        Some(Kind::Post { cookie }) => {
            let input = arrival.into_input();
            match rtsp.tunnels.post(&cookie, peer.ip(), Post { wire, input, _slot: slot }) {
                Ok(()) => Ok(()),
                Err(post) => refuse(&post.wire, peer, "404 Not Found"),
            }
        }
        Some(Kind::Refused(status)) => refuse(&wire, peer, status),
    }
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

fn refuse(wire: &Wire, peer: SocketAddr, status: &str) -> io::Result<()> {
    tracing::info!(%peer, status, "HTTP request on the RTSP port is no tunnel");
    let reply = format!("HTTP/1.0 {status}\r\nServer: millpond\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    wire.send(|pending| pending.extend_from_slice(reply.as_bytes()));
    wire.close();
    Err(io::Error::new(io::ErrorKind::InvalidData, format!("HTTP request is no tunnel: {status}")))
}
