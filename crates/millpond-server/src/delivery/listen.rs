//! Listening sockets and the life of connections: bounded in number, ended by a graceful stop.

use super::{body::BodyError, h1, http2, room::Room, wire::Wire};
use crate::{front::Front, metrics::Transport};
use bytes::Bytes;
use std::{io, net::SocketAddr, sync::Arc, time::Duration};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, watch},
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

/// Time for connections that are cut off to end.
const CUT: Duration = Duration::from_secs(1);

/// How long a connection may do nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Between requests.
    pub(crate) idle: Duration,
    /// From the first byte of a request head to its last, and for a TLS handshake.
    pub(crate) head: Duration,
    /// While the client takes next to nothing of a response.
    pub(crate) write: Duration,
}

/// What every connection needs.
pub(crate) struct Service {
    pub(crate) front: Arc<Front>,
    pub(crate) limits: Limits,
    pub(crate) room: Arc<Room>,
    connections: Arc<Semaphore>,
    most: usize,
    /// Turns true when what is still sent ends at once.
    cut: watch::Sender<bool>,
}

/// Why a reply was not sent to its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SendError {
    /// The client's side.
    #[error("client: {0}")]
    Client(#[from] io::Error),
    /// The storage's side, or the media's.
    #[error("{0}")]
    Body(#[from] BodyError),
}

impl SendError {
    pub(crate) fn into_io(self) -> io::Error {
        match self {
            Self::Client(error) => error,
            Self::Body(error) => io::Error::other(error),
        }
    }
}

impl Service {
    pub(crate) fn new(front: Arc<Front>, limits: Limits, most: usize) -> Self {
        let room = Room::new(front.store().memory());
        Self { front, limits, room, connections: Arc::new(Semaphore::new(most)), most, cut: watch::Sender::new(false) }
    }

    /// Waits until every connection has ended.
    pub(crate) async fn drained(&self) {
        let all = u32::try_from(self.most).unwrap_or(u32::MAX);
        let _ = self.connections.acquire_many(all).await;
    }

    /// Ends every connection at once, and waits until each has told what it had sent.
    pub(crate) async fn cut(&self) {
        self.front.cut();
        let _ = self.cut.send(true);
        let _ = tokio::time::timeout(CUT, self.drained()).await;
    }

    /// Connections open now.
    pub(crate) fn open(&self) -> usize {
        self.most - self.connections.available_permits()
    }
}

/// Accepts plain connections until `stop`.
pub(crate) async fn accept_plain(listener: TcpListener, service: Arc<Service>, stop: watch::Receiver<bool>) {
    accept(listener, Transport::Plain, service, stop, |stream, peer, service, mut stop| async move {
        let wire = Wire::plain(stream, service.limits.write, service.room.clone());
        if let h1::End::Http2(wire, read) = h1::serve(wire, peer, &service, &mut stop).await {
            // On the heap: a connection that stays with HTTP/1 has no room for this in its task.
            Box::pin(http2::serve(wire, read.freeze(), peer, service, stop)).await;
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
            match tokio::time::timeout(service.limits.head, tls.accept(stream)).await {
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

/// Serves a TLS connection in the protocol that ALPN chose, or that the client begins with where it chose none.
async fn serve_tls(
    stream: TlsStream<TcpStream>,
    peer: SocketAddr,
    service: Arc<Service>,
    mut stop: watch::Receiver<bool>,
) {
    let chose_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    let wire = Wire::tls(stream, service.limits.write, service.room.clone());
    if chose_http2 {
        return Box::pin(http2::serve(wire, Bytes::new(), peer, service, stop)).await;
    }
    if let h1::End::Http2(wire, read) = h1::serve(wire, peer, &service, &mut stop).await {
        Box::pin(http2::serve(wire, read.freeze(), peer, service, stop)).await;
    }
}

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
                // Out of descriptors, most likely: others must close before one can be had.
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
            // Both count the connection out, however it ended.
            drop((counted, permit));
        });
    }
}

/// Tells a client over the limit so; the socket's send buffer takes it or nothing does.
fn refuse(stream: &TcpStream) {
    const REPLY: &[u8] =
        b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    let _ = stream.try_write(REPLY);
}
