//! Media of a session by UDP.

mod batch;
mod ports;

pub(super) use batch::Batch;
use bytes::Bytes;
use millpond_rtp::{client::TrackTransport, packet::Header, rtcp};
use ports::Ports;
pub(super) use ports::{bound, enlarge};
use std::{
    io,
    net::{IpAddr, SocketAddr},
    task::{Context, Poll},
};

/// The sockets of a session's tracks.
#[derive(Default)]
pub(super) struct UdpMedia {
    /// By place of the track; `None` for tracks on the connection.
    tracks: Vec<Option<UdpTrack>>,
    batch: Batch,
}

#[derive(Debug)]
pub(super) struct UdpTrack {
    ports: Ports,
    /// ConnectionEnds that the server receives RTP and RTCP at, if known.
    server: Option<(SocketAddr, SocketAddr)>,
    /// Address of the sender, if known: packets of others are dropped.
    sender: Option<IpAddr>,
}

impl UdpTrack {
    /// Opens unicast ports at a local address, for packets of the host `peer`. `peer` receives reports at its second port.
    pub(super) fn open(local: IpAddr, peer: IpAddr, (rtp, rtcp): (u16, u16)) -> io::Result<Self> {
        let server = Some((SocketAddr::new(peer, rtp), SocketAddr::new(peer, rtcp)));
        Ok(Self { ports: Ports::open(local)?, server, sender: Some(peer.to_canonical()) })
    }

    /// Port numbers of RTP and RTCP.
    pub(super) fn ports(&self) -> (u16, u16) {
        self.ports.numbers
    }
}

impl UdpMedia {
    /// Takes tracks by place; `None` for tracks on the connection.
    pub(super) fn of(tracks: Vec<Option<UdpTrack>>) -> Self {
        Self { tracks, batch: Batch::default() }
    }

    /// Opens unicast ports for a number of tracks, at the local address of the connection.
    pub(super) fn open(tracks: usize, local: IpAddr) -> io::Result<Self> {
        let track = |_| Ok(Some(UdpTrack { ports: Ports::open(local)?, server: None, sender: None }));
        Ok(Self { tracks: (0..tracks).map(track).collect::<io::Result<_>>()?, batch: Batch::default() })
    }

    /// Port numbers of a track.
    pub(super) fn ports(&self, place: usize) -> Option<(u16, u16)> {
        Some(self.tracks.get(place)?.as_ref()?.ports.numbers)
    }

    /// Keeps some of the tracks, by place. Those without a place have no ports.
    pub(super) fn keep(&mut self, kept: &[bool]) {
        let mut kept = kept.iter();
        self.tracks.retain(|_| kept.next().copied().unwrap_or_default());
    }

    /// Takes note of the transports that a server at `peer` chose, and joins its groups. Sockets that it does not use are
    /// closed. `local` is the local address of the connection.
    pub(super) fn agree(&mut self, transports: &[TrackTransport], local: IpAddr, peer: IpAddr) -> io::Result<()> {
        self.tracks.resize_with(transports.len(), || None);
        for (track, transport) in self.tracks.iter_mut().zip(transports) {
            match *transport {
                TrackTransport::Interleaved { .. } => *track = None,
                TrackTransport::Unicast { server, source } => {
                    let sender = source.filter(|source| !source.is_unspecified()).unwrap_or(peer);
                    if let Some(track) = track {
                        let at = |port| SocketAddr::new(sender, port);
                        track.sender = Some(sender.to_canonical());
                        track.server = server.map(|(rtp, rtcp)| (at(rtp), at(rtcp)));
                    }
                }
                TrackTransport::Multicast { group, ports, source } => {
                    let ports = Ports::join(group, ports, local)?;
                    *track = Some(UdpTrack { ports, server: None, sender: source });
                }
            }
        }
        Ok(())
    }

    /// Whether a track uses UDP.
    pub(super) fn is_used(&self) -> bool {
        self.tracks.iter().any(Option::is_some)
    }

    /// Sends a packet from each port to the server's, so that firewalls and address translators on the way let the
    /// server's packets in.
    pub(super) fn punch(&self) {
        for track in self.tracks.iter().flatten() {
            if let Some((rtp, rtcp)) = track.server {
                // A packet that can't be sent is one that was lost.
                let _ = track.ports.rtp.try_send_to(&Header::default().to_bytes(), rtp);
                let _ = track.ports.rtcp.try_send_to(&rtcp::receiver_report(0, &[], ""), rtcp);
            }
        }
    }

    /// Sends a report of the track at a place.
    pub(super) fn report(&self, place: usize, report: &[u8]) {
        if let Some(Some(UdpTrack { ports, server: Some((_, rtcp)), .. })) = self.tracks.get(place) {
            let _ = ports.rtcp.try_send_to(report, *rtcp);
        }
    }

    /// Waits until a packet may have arrived. Cancel safe.
    pub(super) async fn readable(&self) {
        std::future::poll_fn(|context| self.poll_readable(context)).await;
    }

    fn poll_readable(&self, context: &mut Context<'_>) -> Poll<()> {
        // Each must be polled, so that each wakes the task.
        let ready = self.sockets().filter(|(_, _, socket)| socket.poll_recv_ready(context).is_ready()).count();
        if ready > 0 { Poll::Ready(()) } else { Poll::Pending }
    }

    fn sockets(&self) -> impl Iterator<Item = (usize, bool, &tokio::net::UdpSocket)> {
        let used = self.tracks.iter().enumerate().filter_map(|(place, track)| Some((place, &track.as_ref()?.ports)));
        used.flat_map(|(place, ports)| [(place, false, &ports.rtp), (place, true, &ports.rtcp)])
    }

    /// Takes the packets that wait: the place of their track, whether they are RTCP, and their bytes.
    pub(super) fn receive(&mut self, mut each: impl FnMut(usize, bool, Bytes)) {
        for (place, track) in self.tracks.iter().enumerate() {
            let Some(UdpTrack { ports, sender, .. }) = track else { continue };
            for (is_rtcp, socket) in [(false, &ports.rtp), (true, &ports.rtcp)] {
                self.batch.receive(socket, |from, packet| {
                    if sender.is_none_or(|sender| from.is_some_and(|from| from.ip() == sender)) {
                        each(place, is_rtcp, packet);
                    }
                });
            }
        }
    }
}
