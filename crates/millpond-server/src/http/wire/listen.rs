//! Listening sockets. The number of connections is bounded, and a graceful stop ends them.

use super::{h1, http2, service::Service, socket::ClientSocket};
use crate::http::Transport;
use bytes::Bytes;
use std::{net::SocketAddr, sync::Arc, time::Duration};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

/// Accepts plain connections until `stop`.
pub(crate) async fn accept_plain(listener: TcpListener, service: Arc<Service>, stop: watch::Receiver<bool>) {
    accept(listener, Transport::Plain, service, stop, |stream, peer, service, mut stop| async move {
        let socket = ClientSocket::plain(stream, service.timeouts.write, service.budget.clone());
        if let h1::ConnectionEnd::Http2(socket, read) = h1::serve(socket, peer, &service, &mut stop).await {
            // The box keeps the task of a connection with HTTP/1 small.
            Box::pin(http2::serve(socket, read.freeze(), peer, service, stop)).await;
        }
    })
    .await;
}

/// Accepts TLS connections until `stop`.
pub(crate) async fn accept_tls(
    listener: TcpListener,
    tls: TlsAcceptor,
    service: Arc<Service>,
    stop: watch::Receiver<bool>,
) {
    accept(listener, Transport::Tls, service, stop, move |stream, peer, service, stop| {
        let tls = tls.clone();
        async move {
            match tokio::time::timeout(service.timeouts.head, tls.accept(stream)).await {
                Ok(Ok(stream)) => serve_tls(stream, peer, service, stop).await,
                Ok(Err(error)) => {
                    service.front.metrics().handshake_failed();
                    tracing::debug!(%peer, %error, "TLS handshake failed");
                }
                Err(_) => {
                    service.front.metrics().handshake_failed();
                    tracing::debug!(%peer, "TLS handshake did not finish in time");
                }
            }
        }
    })
    .await;
}

/// Serves a TLS connection in the protocol of ALPN. Without ALPN, the first bytes of the client decide.
async fn serve_tls(
    stream: TlsStream<TcpStream>,
    peer: SocketAddr,
    service: Arc<Service>,
    mut stop: watch::Receiver<bool>,
) {
    let chose_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    let socket = ClientSocket::tls(stream, service.timeouts.write, service.budget.clone());
    if chose_http2 {
        return Box::pin(http2::serve(socket, Bytes::new(), peer, service, stop)).await;
    }
    if let h1::ConnectionEnd::Http2(socket, read) = h1::serve(socket, peer, &service, &mut stop).await {
        Box::pin(http2::serve(socket, read.freeze(), peer, service, stop)).await;
    }
}

/// Accepts connections until `stop`, and runs each in a task.
async fn accept<F, C>(
    listener: TcpListener,
    transport: Transport,
    service: Arc<Service>,
    mut stop: watch::Receiver<bool>,
    connection: C,
) where
    C: Fn(TcpStream, SocketAddr, Arc<Service>, watch::Receiver<bool>) -> F,
    F: Future<Output = ()> + Send + 'static,
{
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.wait_for(|stop| *stop) => return,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Most likely no file descriptor is free until another connection closes.
                tracing::warn!(%error, "can't accept a connection");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let Ok(permit) = service.connections.clone().try_acquire_owned() else {
            service.front.metrics().connection_refused();
            refuse(&stream);
            continue;
        };
        let _ = stream.set_nodelay(true);
        let counted = service.front.metrics().connection(transport);
        let run = connection(stream, peer, service.clone(), stop.clone());
        let mut cut = service.cut.subscribe();
        tokio::spawn(async move {
            tokio::select! {
                biased;
                () = run => {}
                _ = cut.wait_for(|cut| *cut) => {}
            }
            // Dropping both uncounts the connection, however it ended.
            drop((counted, permit));
        });
    }
}

/// Refuses a connection over the limit. The reply is lost if the socket's send buffer doesn't take it.
fn refuse(stream: &TcpStream) {
    const REPLY: &[u8] =
        b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    let _ = stream.try_write(REPLY);
}
