//! The multicast of one channel.

use crate::{
    CannotOpen, Udp,
    admission::{Admission, Booking},
    graph::{Closed, Joined, QueueLimits, Shared},
    live::Program,
    registry::Registry,
    transmission::{self, Arrival, Epochs, Lateness, Progress, TrackSender, Transmission, Transmitter},
};
use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};
use tokio::sync::OnceCell;

/// How a track of a group is received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupAddress {
    /// Address of the group.
    pub group: IpAddr,
    /// Ports of RTP and RTCP.
    pub ports: (u16, u16),
    /// Hop limit of packets.
    pub ttl: u8,
    /// Source of the packets.
    pub ssrc: u32,
}

/// A channel's multicast: one transmission for all of its receivers. It ends when this is dropped.
#[derive(Debug)]
pub struct Group {
    id: u64,
    program: Program,
    tracks: Vec<TrackSender>,
    addresses: Vec<GroupAddress>,
    transmitter: Transmitter,
    /// Transmission to the group, from the first request on.
    playing: OnceCell<(Arc<Shared>, Booking)>,
}

impl Group {
    pub(super) fn new(
        (id, transmitter): (u64, Transmitter),
        program: &Program,
        (group, ttl): (IpAddr, u8),
        ports: impl Fn(usize) -> Option<(u16, u16)>,
    ) -> Option<Self> {
        let track = |(index, track): (usize, &u16)| {
            let ports = ports(index)?;
            let [rtp, rtcp] = [ports.0, ports.1].map(|port| SocketAddr::new(group, port));
            let described = program.feed.format(*track)?.described((*track).into())?;
            let ssrc = fastrand::u32(..);
            let sender = TrackSender::new(*track, &described, Arc::new(Udp { rtp, rtcp }), (ssrc, None));
            Some((sender, GroupAddress { group, ports, ttl, ssrc }))
        };
        let both: Option<Vec<_>> = program.tracks.iter().enumerate().map(track).collect();
        let (tracks, addresses) = both?.into_iter().unzip();
        Some(Self { id, program: program.clone(), tracks, addresses, transmitter, playing: OnceCell::new() })
    }

    pub(super) fn is_over(&self) -> bool {
        self.playing.get().is_some_and(|(shared, _)| shared.is_over())
    }

    /// Whether it sends the frames of a program.
    pub(super) fn is_of(&self, program: &Program) -> bool {
        self.program.is_same(program)
    }

    pub(super) fn id(&self) -> u64 {
        self.id
    }

    pub(super) fn transmitter(&self) -> &Transmitter {
        &self.transmitter
    }

    /// How a track of the feed is received; `None` where it is not sent.
    pub fn address(&self, track: usize) -> Option<GroupAddress> {
        let index = self.tracks.iter().position(|sender| usize::from(sender.track) == track)?;
        self.addresses.get(index).copied()
    }

    /// Begins to send, unless it does. Frames wait within `limits`.
    pub(super) async fn play(
        &self,
        admission: &Arc<Admission>,
        registry: &Registry,
        limits: QueueLimits,
    ) -> Result<(), CannotOpen> {
        let begin = async || {
            let booking = admission.book(self.program.rate(), None)?;
            let shared = self.program.shared.clone();
            let node = registry.add(transmission::MULTICAST.name, self.program.feed.path());
            let mut tracks = self.tracks.clone();
            let listener = self.transmitter.listener();
            let way = (node.id(), Some(&listener), limits);
            let joined = shared.join(way, &self.program.feed).await.map_err(|Closed| CannotOpen::Ended)?;
            for sender in &mut tracks {
                sender.begin(joined.first_of(sender.track), joined.from);
            }
            let Joined { frames, begins, span, feed, .. } = joined;
            self.transmitter.play(Transmission {
                id: self.id,
                tracks,
                pace: None,
                frames,
                position: begins,
                to: Duration::MAX,
                speed: 1.0,
                catch_up: None,
                lateness: Lateness::All,
                origin: None,
                arrival: Some(Arrival::new(shared.id(), span)),
                epochs: Some(Epochs::new(feed)),
                progress: Arc::new(Progress::default()),
                _node: node,
            });
            Ok::<_, CannotOpen>((shared, booking))
        };
        let (shared, _) = self.playing.get_or_try_init(begin).await?;
        if shared.is_over() { Err(CannotOpen::Ended) } else { Ok(()) }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if self.playing.initialized() {
            self.transmitter.forget(self.id);
        }
    }
}
