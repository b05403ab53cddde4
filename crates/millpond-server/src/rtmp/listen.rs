//! Accepts RTMP connections, plain and over TLS.

use super::{Rtmp, connection};
use std::{net::SocketAddr, sync::Arc, time::Duration};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    time::timeout,
};
use tokio_rustls::TlsAcceptor;

/// Listening sockets. Each is off where it is not configured.
#[derive(Default)]
pub(crate) struct Listeners {
    pub(crate) plain: Option<TcpListener>,
    pub(crate) secure: Option<(TcpListener, TlsAcceptor)>,
}

/// Accepts connections until `stop` turns true, which also ends all of them.
pub(crate) async fn accept(listeners: Listeners, rtmp: Arc<Rtmp>, stop: watch::Receiver<bool>) {
    let plain = async {
        if let Some(listener) = listeners.plain {
            accept_from(listener, None, &rtmp, stop.clone()).await;
        }
    };
    let secure = async {
        if let Some((listener, tls)) = listeners.secure {
            accept_from(listener, Some(tls), &rtmp, stop.clone()).await;
        }
    };
    tokio::join!(plain, secure);
}

async fn accept_from(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    rtmp: &Arc<Rtmp>,
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
                let Ok(slot) = rtmp.connections.clone().try_acquire_owned() else {
                    rtmp.refuse_connection(peer);
                    continue;
                };
                let (rtmp, tls, mut stop) = (rtmp.clone(), tls.clone(), stop.clone());
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

async fn serve(stream: TcpStream, tls: Option<TlsAcceptor>, peer: SocketAddr, rtmp: &Rtmp) {
    let _ = stream.set_nodelay(true);
    let Some(tls) = tls else { return connection::serve(stream, (peer, false), rtmp).await };
    match timeout(rtmp.timeouts.head, tls.accept(stream)).await {
        Ok(Ok(stream)) => Box::pin(connection::serve(stream, (peer, true), rtmp)).await,
        Ok(Err(error)) => tracing::debug!(%peer, %error, "TLS handshake of RTMP failed"),
        Err(_) => tracing::debug!(%peer, "TLS handshake of RTMP did not finish in time"),
    }
}
