//! Accepts RTSP connections, and tells RTSP from HTTP tunnels by their first bytes.

use super::{
    Rtsp, access, connection,
    inlet::Inlet,
    tunnel::{self, Post},
    wire::Wire,
};
use crate::limits::ConnectionTimeouts;
use bytes::{Buf as _, BytesMut};
use millpond_rtp::tunnel::{Half, Opening, recognize};
use std::{io, net::SocketAddr, sync::Arc, time::Duration};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, watch},
    time::{Instant, timeout, timeout_at},
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
    if let Some(access) = &rtsp.access {
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
    let mut input = BytesMut::new();
    match begin(&wire, &mut input, rtsp.timeouts).await? {
        None => Ok(()),
        Some(Opening::Rtsp) => connection::serve(wire.clone(), Inlet::Wire(wire), input, peer, rtsp).await,
        Some(Opening::Tunnel { half: Half::Get, cookie, .. }) => {
            let Some(mut tunnel) = rtsp.tunnels.get(&cookie, peer.ip(), wire.clone()) else {
                return refuse(&wire, peer, "409 Conflict");
            };
            wire.send(|pending| pending.extend_from_slice(tunnel::OPENED));
            input.clear();
            // The POST must arrive, and bring bytes.
            if timeout(rtsp.timeouts.head, tunnel.read(&mut input)).await?? == 0 {
                return Ok(());
            }
            connection::serve(wire, Inlet::Tunnel(tunnel), input, peer, rtsp).await
        }
        Some(Opening::Tunnel { half: Half::Post, cookie, length }) => {
            input.advance(length);
            match rtsp.tunnels.post(&cookie, peer.ip(), Post { wire, input, _slot: slot }) {
                Ok(()) => Ok(()),
                Err(post) => refuse(&post.wire, peer, "404 Not Found"),
            }
        }
        Some(Opening::Refused(status)) => refuse(&wire, peer, status),
    }
}

/// Reads until the kind of the connection is known. Returns `None` if it ends before.
async fn begin(wire: &Wire, input: &mut BytesMut, timeouts: ConnectionTimeouts) -> io::Result<Option<Opening>> {
    let mut deadline = Instant::now() + timeouts.idle;
    loop {
        if let Some(opening) = recognize(input) {
            return Ok(Some(opening));
        }
        let is_first = input.is_empty();
        if timeout_at(deadline, wire.read(input)).await?? == 0 {
            return Ok(None);
        }
        if is_first {
            deadline = Instant::now() + timeouts.head;
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
