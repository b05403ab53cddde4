//! Peers that no datagrams reach: their datagrams come on connections of TCP (RFC 6544), each behind its length (RFC 4571 2).

use super::{WebRtc, port::DATAGRAM, sessions::Received};
use crate::wire::Wire;
use bytes::{Buf as _, Bytes, BytesMut};
use millpond_access::Gates;
use millpond_connections::Door;
use millpond_stream::outlet::Backlog;
use millpond_webrtc::ice;
use std::{io, net::SocketAddr, sync::Arc, time::Duration};
use tokio::{
    net::TcpStream,
    sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch},
    time::timeout,
};

/// Bytes of the length before each datagram.
const PREFIX: usize = 2;
/// Time for the first check: a peer sends it at once.
const FIRST: Duration = Duration::from_secs(5);
/// Longest time in which a peer takes no byte.
const STALLED: Duration = Duration::from_secs(30);
/// Connections whose first check is awaited. Others are closed at once; the peers try again.
const STRANGERS: usize = 256;

/// The length before a datagram.
fn prefix(length: usize) -> [u8; PREFIX] {
    // Packets have at most some thousand bytes.
    (length as u16).to_be_bytes()
}

/// Sends a datagram of STUN or DTLS, or a report. It is lost where so much waits already that frames are dropped.
pub(super) fn send(wire: &Wire, datagram: &[u8]) {
    if wire.backlog() < Backlog::High {
        queue(wire, datagram);
    }
}

/// Sends a datagram behind all that waits.
pub(super) fn queue(wire: &Wire, datagram: &[u8]) {
    if u16::try_from(datagram.len()).is_ok() {
        wire.send(|pending| {
            pending.extend_from_slice(&prefix(datagram.len()));
            pending.extend_from_slice(datagram);
        });
    }
}

/// Accepts connections of peers at an address, which answers tell meanwhile, until the door shuts or `stop` turns true.
pub(crate) async fn accept(
    (mut door, address): (Door, SocketAddr),
    webrtc: Arc<WebRtc>,
    gates: impl Fn() -> Arc<Gates> + Send + 'static,
    mut stop: watch::Receiver<bool>,
) {
    webrtc.tcp.store(Some(Arc::new(address)));
    let strangers = Arc::new(Semaphore::new(STRANGERS));
    loop {
        let accepted = tokio::select! {
            accepted = door.accept() => accepted,
            _ = stop.wait_for(|stop| *stop) => None,
        };
        match accepted {
            Some(Ok((stream, peer))) => {
                let places = webrtc.connections.take().zip(strangers.clone().try_acquire_owned().ok());
                let Some((slot, stranger)) = places else {
                    webrtc.metrics.foreign.inc();
                    continue;
                };
                let (webrtc, gates, mut stop) = (webrtc.clone(), gates(), stop.clone());
                tokio::spawn(async move {
                    tokio::select! {
                        served = serve(stream, peer, (&webrtc, &gates), stranger) => if let Err(error) = served {
                            webrtc.metrics.foreign.inc();
                            tracing::debug!(%peer, %error, "a connection of no WebRTC session");
                        },
                        _ = stop.wait_for(|stop| *stop) => {}
                    }
                    drop(slot);
                });
            }
            Some(Err(error)) => {
                tracing::warn!(%error, "cannot accept a connection of WebRTC");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            None => break,
        }
    }
    webrtc.tcp.store(None);
}

/// Serves a connection, whose first datagram must be a check of ICE that names a session.
///
/// # Errors
/// It is no connection of a session, or its client has too many.
async fn serve(
    mut stream: TcpStream,
    peer: SocketAddr,
    (webrtc, gates): (&WebRtc, &Gates),
    stranger: OwnedSemaphorePermit,
) -> io::Result<()> {
    let peer = gates.proxies().arrive(&mut stream, peer, FIRST).await?.address;
    let limited = |limited| io::Error::new(io::ErrorKind::ConnectionRefused, format!("{limited}"));
    let _counted = gates.count_connection(peer.ip()).map_err(limited)?;
    let _ = stream.set_nodelay(true);
    let (wire, mut input) = (Arc::new(Wire::new(stream)), BytesMut::new());
    let first = timeout(FIRST, next(&wire, &mut input)).await??;
    let inbox = ice::name_of_check(&first).and_then(|name| webrtc.sessions.inbox(&name));
    let inbox = inbox.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "its first datagram names no session"))?;
    drop(stranger);
    pass(&wire, input, (canonical(peer), first), &inbox).await;
    wire.shut();
    Ok(())
}

fn canonical(from: SocketAddr) -> SocketAddr {
    SocketAddr::new(from.ip().to_canonical(), from.port())
}

/// Gives the datagrams of a connection to a session, until one of both ends.
async fn pass(
    wire: &Arc<Wire>,
    mut input: BytesMut,
    (from, first): (SocketAddr, Bytes),
    inbox: &mpsc::Sender<Received>,
) {
    let give = |bytes| _ = inbox.try_send(Received { from, bytes, wire: Some(wire.clone()) });
    give(first);
    let receive = async {
        while let Ok(datagram) = next(wire, &mut input).await {
            give(datagram);
        }
    };
    tokio::select! {
        () = receive => {}
        _ = wire.drain(STALLED) => {}
        () = inbox.closed() => {}
    }
}

/// Reads the next datagram. Cancel safe.
///
/// # Errors
/// The connection has ended, or what arrives is no datagram.
async fn next(wire: &Wire, input: &mut BytesMut) -> io::Result<Bytes> {
    loop {
        if let Some(datagram) = cut(input)? {
            return Ok(datagram);
        }
        if wire.read(input).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

/// Cuts off the first datagram, once it is whole.
///
/// # Errors
/// It is longer than any that a peer sends.
fn cut(input: &mut BytesMut) -> io::Result<Option<Bytes>> {
    let Some(prefix) = input.first_chunk::<PREFIX>() else { return Ok(None) };
    let length = usize::from(u16::from_be_bytes(*prefix));
    if length > DATAGRAM {
        return Err(io::ErrorKind::InvalidData.into());
    }
    if input.len() < PREFIX + length {
        return Ok(None);
    }
    input.advance(PREFIX);
    Ok(Some(input.split_to(length).freeze()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_are_cut_at_their_lengths() {
        let mut input = BytesMut::from(&[0, 3, 1, 2][..]);
        assert_eq!(cut(&mut input).unwrap(), None);
        input.extend_from_slice(&[3, 0, 0, 0]);
        assert_eq!(cut(&mut input).unwrap().unwrap()[..], [1, 2, 3]);
        assert!(cut(&mut input).unwrap().unwrap().is_empty());
        assert_eq!((cut(&mut input).unwrap(), input.len()), (None, 1));
        assert!(cut(&mut BytesMut::from("GET /")).is_err(), "17,733 bytes");
    }
}
