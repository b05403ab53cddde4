//! Connections to sources.

use crate::reception::RtspSource;
use futures_util::future::BoxFuture;
use millpond_rtp::client::Endpoint;
use nix::sys::socket::{setsockopt, sockopt};
use std::{fmt::Debug, io, net::SocketAddr};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpSocket, TcpStream, lookup_host},
};

/// The ends of a TCP connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionEnds {
    /// The local address.
    pub local: SocketAddr,
    /// The server's address.
    pub peer: SocketAddr,
}

/// A byte stream to the server of a source.
pub trait Connection: AsyncRead + AsyncWrite + Send + Unpin + 'static {
    /// Returns the ends of the TCP connection below. UDP media uses the same two hosts.
    ///
    /// # Errors
    /// The connection has ended.
    fn addresses(&self) -> io::Result<ConnectionEnds>;
}

/// Opens connections to sources. The engine knows no TLS and no trusted certificates: its owner brings them.
pub trait Connector: Debug + Send + Sync + 'static {
    /// Resolves the host, connects, and makes the handshake of TLS where the endpoint demands it. The caller limits the time.
    ///
    /// # Errors
    /// Those of the name look-up, the connection and the handshake.
    fn connect<'a>(&'a self, endpoint: &'a Endpoint) -> BoxFuture<'a, io::Result<Box<dyn Connection>>>;
}

/// Finds other servers that receive a stream already, such as nodes of a cluster: its source then has one session for all.
pub trait Relay: Debug + Send + Sync + 'static {
    /// Returns the stream at the server that should be asked for it; `None` where that is its own source.
    fn source<'a>(&'a self, stream: &'a str) -> BoxFuture<'a, Option<RtspSource>>;
}

/// Connects by plain TCP; refuses endpoints with TLS.
#[derive(Clone, Copy, Debug, Default)]
pub struct TcpConnector {
    /// Mark of packets (socket(7), `SO_MARK`), by which rules of the firewall know them. It needs `CAP_NET_ADMIN`.
    pub mark: Option<u32>,
}

impl TcpConnector {
    /// Opens the TCP connection of an endpoint, below TLS or without it.
    ///
    /// # Errors
    /// Those of the name look-up and of the last address that was tried.
    pub async fn open(&self, endpoint: &Endpoint) -> io::Result<TcpStream> {
        let mut failure = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        for address in lookup_host(format!("{}:{}", endpoint.host, endpoint.port)).await? {
            match self.connect_to(address).await {
                Ok(stream) => return Ok(stream),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    async fn connect_to(&self, address: SocketAddr) -> io::Result<TcpStream> {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        if let Some(mark) = &self.mark {
            setsockopt(&socket, sockopt::Mark, mark)?;
        }
        // Without this a request waits for the acknowledgement of the last one.
        socket.set_nodelay(true)?;
        socket.connect(address).await
    }
}

impl Connection for TcpStream {
    fn addresses(&self) -> io::Result<ConnectionEnds> {
        Ok(ConnectionEnds { local: self.local_addr()?, peer: self.peer_addr()? })
    }
}

impl Connector for TcpConnector {
    fn connect<'a>(&'a self, endpoint: &'a Endpoint) -> BoxFuture<'a, io::Result<Box<dyn Connection>>> {
        Box::pin(async move {
            if endpoint.is_tls {
                return Err(io::Error::new(io::ErrorKind::Unsupported, "TLS needs another connector"));
            }
            Ok(Box::new(self.open(endpoint).await?) as Box<dyn Connection>)
        })
    }
}
