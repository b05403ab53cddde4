//! The UDP port of all sessions.

use super::sessions::Sessions;
use bytes::Bytes;
use millpond_webrtc::{Datagram, ice};
use prometheus_client::metrics::counter::Counter;
use socket2::{Domain, Protocol, Socket, Type};
use std::{
    io,
    net::{SocketAddr, UdpSocket},
};

/// Longest datagram that is read: more than any peer sends.
pub(super) const DATAGRAM: usize = 2048;
/// Datagrams that are read before other tasks get a turn.
const TURN: usize = 64;
/// Bytes of the kernel's buffers: reports of thousands of viewers, and frames for them.
const BUFFER: usize = 4 << 20;

/// Opens a port.
///
/// # Errors
/// The port is taken.
pub(crate) fn open(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    // The kernel gives as much as it allows.
    let _ = socket.set_recv_buffer_size(BUFFER);
    let _ = socket.set_send_buffer_size(BUFFER);
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    Ok(socket.into())
}

/// Gives datagrams to their sessions, without an end. `foreign` counts those of no session.
pub(super) async fn receive(socket: &UdpSocket, sessions: &Sessions, foreign: &Counter) {
    let socket = match socket.try_clone().and_then(tokio::net::UdpSocket::from_std) {
        Ok(socket) => socket,
        Err(error) => return tracing::error!(%error, "the WebRTC port can't be read"),
    };
    let mut buffer = [0; DATAGRAM];
    while socket.readable().await.is_ok() {
        for _ in 0..TURN {
            match socket.try_recv_from(&mut buffer) {
                Ok((length, from)) => {
                    if !give(sessions, &buffer[..length], from) {
                        foreign.inc();
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // An earlier datagram could not be delivered (ICMP).
                Err(_) => {}
            }
        }
        tokio::task::yield_now().await;
    }
}

/// Gives a datagram to its session. A check of ICE names it; other datagrams, answers to the server's checks among them, belong to the
/// session that has checked their address.
/// Returns whether there is such a session.
fn give(sessions: &Sessions, datagram: &[u8], from: SocketAddr) -> bool {
    match Datagram::of(datagram) {
        Some(Datagram::Stun) => match ice::name_of_check(datagram) {
            Some(name) => sessions.give_check(&name, from, Bytes::copy_from_slice(datagram)),
            None => sessions.give(from, Bytes::copy_from_slice(datagram)),
        },
        Some(_) => sessions.give(from, Bytes::copy_from_slice(datagram)),
        None => false,
    }
}
