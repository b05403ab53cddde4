//! Listening sockets. The number of connections is bounded, and a graceful stop ends them.

use super::{
    front_end::FrontEnd, h1, http2, metrics::Transport, node_side::NodeSide, service::Service, socket::ClientSocket,
};
use bytes::Bytes;
use millpond_connections::{
    Door,
    proxies::{ConnectionClient, ConnectionKind},
};
use std::{io, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    sync::watch,
    time::timeout,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

/// Time in which a peer whose handshake failed can read the reason.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Those who connect to a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Callers {
    /// Clients, perhaps behind proxies. Limits count their connections.
    Clients,
    /// Other nodes of the cluster.
    Nodes,
}

/// Accepts plain connections until the door shuts or `stop` turns true.
pub async fn accept_plain<F: FrontEnd>(door: Door, service: Arc<Service<F>>, stop: watch::Receiver<bool>) {
    accept(door, (Transport::Plain, Callers::Clients), service, stop, |stream, client, service, mut stop| async move {
        let socket = ClientSocket::plain(stream, service.timeouts().write, service.budget.clone());
        if let h1::ConnectionEnd::Http2(socket, read) = h1::serve(socket, client, &service, &mut stop).await {
            // The box keeps the task of a connection with HTTP/1 small.
            Box::pin(http2::serve(socket, read.freeze(), client, service, stop)).await;
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
    accept(door, (Transport::Tls, Callers::Clients), service, stop, move |stream, client, service, stop| {
        let tls = tls.clone();
        async move {
            match timeout(service.timeouts().head, tls.accept(stream)).await {
                Ok(Ok(stream)) => {
                    serve_tls(stream, ConnectionClient { kind: ConnectionKind::Tls, ..client }, service, stop).await;
                }
                Ok(Err(error)) => {
                    service.front().connection_metrics().handshake_failed();
                    tracing::debug!(peer = %client.address, %error, "TLS handshake failed");
                }
                Err(_) => {
                    service.front().connection_metrics().handshake_failed();
                    tracing::debug!(peer = %client.address, "TLS handshake did not finish in time");
                }
            }
        }
    })
    .await;
}

/// Accepts connections of other nodes until the door shuts or `stop` turns true. The acceptor checks their certificates, and limits of
/// clients do not count them.
pub async fn accept_nodes<F: FrontEnd>(
    door: Door,
    (tls, side): (TlsAcceptor, Arc<impl NodeSide>),
    service: Arc<Service<F>>,
    stop: watch::Receiver<bool>,
) {
    accept(door, (Transport::Tls, Callers::Nodes), service, stop, move |stream, client, service, stop| {
        let (tls, side) = (tls.clone(), side.clone());
        async move {
            let failed = |error: &io::Error| {
                service.front().connection_metrics().handshake_failed();
                side.refused(client.address, error);
            };
            match timeout(service.timeouts().head, tls.accept(stream).into_fallible()).await {
                Ok(Ok(stream)) if side.takes(stream.get_ref().1.alpn_protocol()) => {
                    Box::pin(side.serve(stream, client.address)).await;
                }
                Ok(Ok(stream)) => {
                    serve_tls(stream, ConnectionClient { kind: ConnectionKind::Node, ..client }, service, stop).await;
                }
                Ok(Err((error, stream))) => {
                    failed(&error);
                    let _ = timeout(LAST_WORDS, drain(stream)).await;
                }
                Err(_) => failed(&io::ErrorKind::TimedOut.into()),
            }
        }
    })
    .await;
}

/// Reads and drops what a peer sends until it closes. A socket that is closed with unread bytes resets the connection, and the peer
/// would lose the alert.
async fn drain(mut stream: TcpStream) {
    let mut rest = [0; 1024];
    let _ = stream.shutdown().await;
    while stream.read(&mut rest).await.is_ok_and(|count| count > 0) {}
}

/// Serves a TLS connection in the protocol of ALPN. Without ALPN, the first bytes of the client decide.
async fn serve_tls<F: FrontEnd>(
    stream: TlsStream<TcpStream>,
    client: ConnectionClient,
    service: Arc<Service<F>>,
    mut stop: watch::Receiver<bool>,
) {
    let chose_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    let socket = ClientSocket::tls(stream, service.timeouts().write, service.budget.clone());
    if chose_http2 {
        return Box::pin(http2::serve(socket, Bytes::new(), client, service, stop)).await;
    }
    if let h1::ConnectionEnd::Http2(socket, read) = h1::serve(socket, client, &service, &mut stop).await {
        Box::pin(http2::serve(socket, read.freeze(), client, service, stop)).await;
    }
}

/// Accepts connections until `stop`, and runs each in a task.
async fn accept<F, T, C>(
    mut door: Door,
    (transport, callers): (Transport, Callers),
    service: Arc<Service<F>>,
    mut stop: watch::Receiver<bool>,
    connection: C,
) where
    F: FrontEnd,
    C: Fn(TcpStream, ConnectionClient, Arc<Service<F>>, watch::Receiver<bool>) -> T + Clone + Send + Sync + 'static,
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
        let slots = match callers {
            Callers::Clients => &service.connections,
            Callers::Nodes => &service.node_connections,
        };
        let Some(slot) = slots.take() else {
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
                if callers == Callers::Nodes {
                    return connection(stream, ConnectionClient::plain(peer), service.clone(), stop).await;
                }
                let (front, limit) = (service.front(), service.timeouts().head);
                let arrived = front.gates().proxies().arrive(&mut stream, peer, limit).await;
                drop(front);
                let Ok(client) = arrived else { return };
                let counted = service.front().gates().count_connection(client.address.ip());
                match counted {
                    Ok(counted) => {
                        connection(stream, client, service.clone(), stop).await;
                        drop(counted);
                    }
                    Err(limited) => {
                        tracing::debug!(peer = %client.address, why = %limited, "connection refused");
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
