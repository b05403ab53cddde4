//! The interface by which the listener of nodes reaches the rest of the server.

use std::{io, net::SocketAddr};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

/// The part of a server that knows other nodes of its cluster, and serves what is no HTTP.
pub trait NodeSide: Send + Sync + 'static {
    /// Notes that the handshake of a peer failed: it is no node, as far as this one knows.
    fn refused(&self, peer: SocketAddr, error: &io::Error);

    /// Tells whether connections with a protocol of ALPN (RFC 7301) are none of HTTP.
    fn takes(&self, protocol: Option<&[u8]>) -> bool;

    /// Serves a connection that it [takes](Self::takes), until that ends.
    fn serve(&self, stream: TlsStream<TcpStream>, peer: SocketAddr) -> impl Future<Output = ()> + Send;
}
