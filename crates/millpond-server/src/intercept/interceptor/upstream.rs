//! Connections to the servers of intercepted connections.

use millpond_connections::transparent;
use socket2::{Domain, Socket, Type};
use std::{
    io,
    net::{IpAddr, SocketAddr},
    time::Duration,
};
use tokio::{
    net::{TcpSocket, TcpStream},
    time::timeout,
};

/// How connections to servers are made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Upstream {
    /// Mark of packets.
    pub(super) mark: Option<u32>,
    /// Longest time for a connection.
    pub(super) limit: Duration,
}

impl Upstream {
    /// Connects to a server; from the address of `client`, where there is one.
    ///
    /// # Errors
    /// Those of the connection; [`io::ErrorKind::TimedOut`] after the limit.
    pub(super) async fn connect(&self, server: SocketAddr, client: Option<IpAddr>) -> io::Result<TcpStream> {
        let socket = self.socket(server, client)?;
        let connected = timeout(self.limit, TcpSocket::from_std_stream(socket.into()).connect(server)).await;
        let stream = connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))?;
        let _ = stream.set_nodelay(true);
        Ok(stream)
    }

    fn socket(&self, server: SocketAddr, client: Option<IpAddr>) -> io::Result<Socket> {
        let socket = Socket::new(Domain::for_address(server), Type::STREAM, None)?;
        socket.set_nonblocking(true)?;
        if let Some(mark) = self.mark {
            socket.set_mark(mark)?;
        }
        if let Some(client) = client {
            transparent(&socket, server.is_ipv4())?;
            socket.bind(&SocketAddr::new(client, 0).into())?;
        }
        Ok(socket)
    }
}
