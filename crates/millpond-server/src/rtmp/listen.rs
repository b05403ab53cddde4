//! Accepts RTMP connections, plain and over TLS.

use super::{CurrentRtmp, Rtmp, connection};
use millpond_connections::{
    Door,
    proxies::{ConnectionClient, ConnectionKind},
};
use std::{net::SocketAddr, time::Duration};
use tokio::{net::TcpStream, sync::watch, time::timeout};
use tokio_rustls::TlsAcceptor;

/// Bytes that wait in the kernel before they are sent.
const UNSENT_BYTES: u32 = 32 << 10;

/// Accepts connections until the door shuts or `stop` turns true. The latter ends the connections too.
pub(crate) async fn accept(
    mut door: Door,
    tls: Option<TlsAcceptor>,
    current: CurrentRtmp,
    mut stop: watch::Receiver<bool>,
) {
    loop {
        let accepted = tokio::select! {
            accepted = door.accept() => accepted,
            _ = stop.wait_for(|stop| *stop) => return,
        };
        let Some(accepted) = accepted else { return };
        let rtmp = current.load_full();
        match accepted {
            Ok((stream, peer)) => {
                // Over the bound the connection is closed at once.
                let Some(slot) = rtmp.connections.take() else {
                    rtmp.refuse_connection(peer);
                    continue;
                };
                let (tls, mut stop) = (tls.clone(), stop.clone());
                tokio::spawn(async move {
                    tokio::select! {
                        () = serve(stream, tls, peer, &rtmp) => {}
                        _ = stop.wait_for(|stop| *stop) => {}
                    }
                    drop(slot);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept an RTMP connection");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn serve(mut stream: TcpStream, tls: Option<TlsAcceptor>, peer: SocketAddr, rtmp: &Rtmp) {
    let Ok(client) = rtmp.gates.proxies().arrive(&mut stream, peer, rtmp.timeouts.head).await else { return };
    let peer = client.address;
    let _counted = match rtmp.gates.count_connection(peer.ip()) {
        Ok(counted) => counted,
        Err(limited) => return tracing::debug!(%peer, why = %limited, "RTMP connection refused"),
    };
    let _ = stream.set_nodelay(true);
    // Frames wait where they can be dropped. An error only means older media for slow viewers.
    let _ = socket2::SockRef::from(&stream).set_tcp_notsent_lowat(UNSENT_BYTES);
    let Some(tls) = tls else { return connection::serve(stream, client, rtmp).await };
    match timeout(rtmp.timeouts.head, tls.accept(stream)).await {
        Ok(Ok(stream)) => {
            Box::pin(connection::serve(stream, ConnectionClient { kind: ConnectionKind::Tls, ..client }, rtmp)).await
        }
        Ok(Err(error)) => tracing::debug!(%peer, %error, "TLS handshake of RTMP failed"),
        Err(_) => tracing::debug!(%peer, "TLS handshake of RTMP did not finish in time"),
    }
}
