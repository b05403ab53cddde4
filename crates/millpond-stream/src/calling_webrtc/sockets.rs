//! The UDP sockets of one connection, and datagrams that wait for room in them.

use rustix::net::sockopt;
use std::{
    collections::VecDeque,
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
};
use tokio::net::UdpSocket;

/// Longest datagram that is read.
const DATAGRAM: usize = 2048;
/// Bytes of the kernel's buffer: a large key frame at once.
const BUFFER: usize = 1 << 20;
/// Most bytes that wait for room. Further datagrams get lost.
const WAITING: usize = 8 << 20;

/// A socket for each family of addresses that a peer has.
#[derive(Debug)]
pub(super) struct Sockets {
    v4: Option<UdpSocket>,
    v6: Option<UdpSocket>,
    waiting: VecDeque<(SocketAddr, Vec<u8>)>,
    /// Bytes that wait.
    bytes: usize,
    buffer: Box<[u8; DATAGRAM]>,
}

impl Sockets {
    /// Opens the sockets for some addresses.
    ///
    /// # Errors
    /// None can be opened.
    pub(super) async fn open(addresses: &[SocketAddr]) -> io::Result<Self> {
        let has = |is_v4: bool| addresses.iter().any(|address| address.is_ipv4() == is_v4);
        let v4 = if has(true) { Some(bind((Ipv4Addr::UNSPECIFIED, 0).into()).await) } else { None };
        let v6 = if has(false) { Some(bind((Ipv6Addr::UNSPECIFIED, 0).into()).await) } else { None };
        let (v4, v6) = match (v4, v6) {
            (Some(Err(error)), None | Some(Err(_))) | (None, Some(Err(error))) => return Err(error),
            // A machine may have one family alone.
            (v4, v6) => (v4.and_then(Result::ok), v6.and_then(Result::ok)),
        };
        Ok(Self { v4, v6, waiting: VecDeque::new(), bytes: 0, buffer: Box::new([0; DATAGRAM]) })
    }

    fn of(&self, address: SocketAddr) -> Option<&UdpSocket> {
        if address.is_ipv4() { self.v4.as_ref() } else { self.v6.as_ref() }
    }

    /// Sends a datagram, now or once there is room.
    pub(super) fn send(&mut self, to: SocketAddr, datagram: Vec<u8>) {
        if self.bytes + datagram.len() <= WAITING {
            self.bytes += datagram.len();
            self.waiting.push_back((to, datagram));
        }
        self.flush();
    }

    /// Sends datagrams that wait, as far as there is room.
    pub(super) fn flush(&mut self) {
        while let Some((to, datagram)) = self.waiting.front() {
            let sent = self.of(*to).map(|socket| socket.try_send_to(datagram, *to));
            if let Some(Err(error)) = &sent
                && error.kind() == io::ErrorKind::WouldBlock
            {
                return;
            }
            // A datagram that can't be sent is one that was lost.
            self.bytes -= datagram.len();
            self.waiting.pop_front();
        }
    }

    /// Takes a datagram that has arrived.
    pub(super) fn receive(&mut self) -> Option<(SocketAddr, &mut [u8])> {
        let Self { v4, v6, buffer, .. } = self;
        let received = [v4, v6].into_iter().flatten().find_map(|socket| socket.try_recv_from(&mut buffer[..]).ok());
        let (length, from) = received?;
        Some((from, buffer.get_mut(..length)?))
    }

    /// Waits until a datagram has arrived, or there is room for one that waits. Cancel safe.
    pub(super) async fn ready(&self) {
        let blocked = self.waiting.front().and_then(|(to, _)| self.of(*to));
        tokio::select! {
            () = readable(self.v4.as_ref()) => {}
            () = readable(self.v6.as_ref()) => {}
            () = writable(blocked) => {}
        }
    }
}

async fn bind(local: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(local).await?;
    // The kernel gives as much as it allows.
    let _ = sockopt::set_socket_send_buffer_size(&socket, BUFFER);
    Ok(socket)
}

async fn readable(socket: Option<&UdpSocket>) {
    match socket {
        Some(socket) => _ = socket.readable().await,
        None => std::future::pending().await,
    }
}

async fn writable(socket: Option<&UdpSocket>) {
    match socket {
        Some(socket) => _ = socket.writable().await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn datagrams_go_and_come() {
        let far = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = far.local_addr().unwrap();
        let mut sockets = Sockets::open(&[address]).await.unwrap();
        assert!(sockets.v6.is_none() && sockets.receive().is_none());
        sockets.send("[::1]:9".parse().unwrap(), b"no such socket".to_vec());
        sockets.send(address, b"ask".to_vec());
        // A new socket has no room before the runtime has looked.
        while !sockets.waiting.is_empty() {
            sockets.ready().await;
            sockets.flush();
        }
        assert_eq!(sockets.bytes, 0);
        let mut bytes = [0; 10];
        let (length, from) = far.recv_from(&mut bytes).unwrap();
        assert_eq!(&bytes[..length], b"ask");
        far.send_to(b"answer", from).unwrap();
        sockets.ready().await;
        assert_eq!(sockets.receive().map(|(from, bytes)| (from, bytes.to_vec())), Some((address, b"answer".to_vec())));
    }
}
