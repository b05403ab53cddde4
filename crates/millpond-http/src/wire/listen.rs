//! Listening sockets. The number of connections is bounded, and a graceful stop ends them.

use super::{front_end::FrontEnd, h1, http2, metrics::Transport, service::Service, socket::ClientSocket};
use bytes::Bytes;
use millpond_connections::Door;
use std::{net::SocketAddr, sync::Arc, time::Duration};
use tokio::{net::TcpStream, sync::watch};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

/// Accepts plain connections until the door shuts or `stop` turns true.
pub async fn accept_plain<F: FrontEnd>(door: Door, service: Arc<Service<F>>, stop: watch::Receiver<bool>) {
    accept(door, Transport::Plain, service, stop, |stream, peer, service, mut stop| async move {
        let socket = ClientSocket::plain(stream, service.timeouts().write, service.budget.clone());
        if let h1::ConnectionEnd::Http2(socket, read) = h1::serve(socket, peer, &service, &mut stop).await {
            // The box keeps the task of a connection with HTTP/1 small.
            Box::pin(http2::serve(socket, read.freeze(), peer, service, stop)).await;
        }
    })
    .await;
}

/// Accepts TLS connections until the door shuts or `stop` turns true.
pub async fn accept_tls<F: FrontEnd>(
    door: Door,
    tls: TlsAcceptor,
    service: Arc<Service<F>>,
    stop: watch::Receiver<bool>,
) {
    accept(door, Transport::Tls, service, stop, move |stream, peer, service, stop| {
        let tls = tls.clone();
        async move {
            match tokio::time::timeout(service.timeouts().head, tls.accept(stream)).await {
                Ok(Ok(stream)) => serve_tls(stream, peer, service, stop).await,
                Ok(Err(error)) => {
                    service.front().connection_metrics().handshake_failed();
                    tracing::debug!(%peer, %error, "TLS handshake failed");
                }
                Err(_) => {
                    service.front().connection_metrics().handshake_failed();
                    tracing::debug!(%peer, "TLS handshake did not finish in time");
                }
            }
        }
    })
    .await;
}

/// Serves a TLS connection in the protocol of ALPN. Without ALPN, the first bytes of the client decide.
async fn serve_tls<F: FrontEnd>(
    stream: TlsStream<TcpStream>,
    peer: SocketAddr,
    service: Arc<Service<F>>,
    mut stop: watch::Receiver<bool>,
) {
    let chose_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    let socket = ClientSocket::tls(stream, service.timeouts().write, service.budget.clone());
    if chose_http2 {
        return Box::pin(http2::serve(socket, Bytes::new(), peer, service, stop)).await;
    }
    if let h1::ConnectionEnd::Http2(socket, read) = h1::serve(socket, peer, &service, &mut stop).await {
        Box::pin(http2::serve(socket, read.freeze(), peer, service, stop)).await;
    }
}

/// Accepts connections until `stop`, and runs each in a task.
async fn accept<F, T, C>(
    mut door: Door,
    transport: Transport,
    service: Arc<Service<F>>,
    mut stop: watch::Receiver<bool>,
    connection: C,
) where
    F: FrontEnd,
    C: Fn(TcpStream, SocketAddr, Arc<Service<F>>, watch::Receiver<bool>) -> T + Clone + Send + Sync + 'static,
    T: Future<Output = ()> + Send + 'static,
{
    loop {
        let accepted = tokio::select! {
            accepted = door.accept() => accepted,
            _ = stop.wait_for(|stop| *stop) => return,
        };
        let Some(accepted) = accepted else { return };
        let (mut stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Most likely no file descriptor is free until another connection closes.
                tracing::warn!(%error, "can't accept a connection");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let Some(slot) = service.connections.take() else {
            service.front().connection_metrics().connection_refused();
            refuse(&stream, BUSY);
            continue;
        };
        let _ = stream.set_nodelay(true);
        let counted = service.front().connection_metrics().connection(transport);
        let (connection, service, stop) = (connection.clone(), service.clone(), stop.clone());
        let mut cut = service.cut.subscribe();
        tokio::spawn(async move {
            let run = async {
                let (front, limit) = (service.front(), service.timeouts().head);
                let arrived = front.gates().proxies().arrive(&mut stream, peer, limit).await;
                drop(front);
                let Ok(client) = arrived else { return };
                let counted = service.front().gates().count_connection(client.ip());
                match counted {
                    Ok(counted) => {
                        connection(stream, client, service.clone(), stop).await;
                        drop(counted);
                    }
                    Err(limited) => {
                        tracing::debug!(peer = %client, why = %limited, "connection refused");
                        refuse(&stream, TOO_MANY);
                    }
                }
            };
            tokio::select! {
                biased;
                () = run => {}
                _ = cut.wait_for(|cut| *cut) => {}
            }
            // Dropping both uncounts the connection, however it ended.
            drop((counted, slot));
        });
    }
}

/// Reply on a connection over the limit of the server.
const BUSY: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
/// Reply on a connection over the limit of its client.
const TOO_MANY: &[u8] =
    b"HTTP/1.1 429 Too Many Requests\r\nretry-after: 1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// Refuses a connection. The reply is lost if the socket's send buffer doesn't take it.
fn refuse(stream: &TcpStream, reply: &[u8]) {
    let _ = stream.try_write(reply);
}
