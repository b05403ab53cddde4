//! Channels as they are asked for, and their multicast groups.

use super::{
    LiveMemory, Manager,
    shared::{Joined, Shared},
};
use crate::{
    CannotOpen, Feed, Format, Udp,
    admission::Booking,
    fragmenter::{FragmentLimits, Fragmenter},
    graph::Closed,
    live::LiveFeed,
    transmission::{Arrival, Epochs, Lateness, Progress, TrackSender, Transmission, Transmitter},
    transport_stream::TransportStream,
};
use std::{
    net::{IpAddr, SocketAddr},
    sync::{Arc, Weak},
    time::Duration,
};
use tokio::sync::OnceCell;

/// A channel as it is asked for, whether it runs or not.
#[derive(Clone, Debug)]
pub struct Program {
    pub(crate) feed: Arc<dyn Feed>,
    pub(super) tracks: Arc<[u16]>,
    /// The graph.
    pub(super) shared: Arc<Shared>,
}

impl Program {
    /// All tracks of a live feed. The stream stays open as long as this is there.
    #[must_use]
    pub fn live(feed: &Arc<LiveFeed>) -> Self {
        let tracks = (0..).zip(feed.formats()).filter(|(_, format)| format.is_some()).map(|(track, _)| track).collect();
        Self { feed: feed.clone(), tracks, shared: feed.shared().clone() }
    }

    /// Whether a track of the feed is one of it.
    pub fn has(&self, track: usize) -> bool {
        self.tracks.iter().any(|known| usize::from(*known) == track)
    }

    /// What its frames come from.
    pub fn feed(&self) -> &dyn Feed {
        &*self.feed
    }

    /// Path of its asset.
    pub fn path(&self) -> &str {
        self.feed.path()
    }

    /// Its tracks, by their indexes in the feed.
    pub fn formats(&self) -> impl Iterator<Item = (u16, &Format)> {
        self.tracks.iter().filter_map(|track| Some((*track, self.feed.format(*track)?)))
    }

    /// The memory of its live stream; `None` for a channel.
    pub(crate) fn memory(&self) -> Option<&LiveMemory> {
        self.shared.memory()
    }

    /// The track whose key frames viewers begin with: the first one with pictures, else the first one.
    pub fn lead(&self) -> u16 {
        let video = self.formats().find(|(_, format)| format.is_video()).map(|(track, _)| track);
        video.or(self.tracks.first().copied()).unwrap_or(0)
    }

    /// Makes a fragmenter of its frames. `None` where fragmented MP4 can't carry the leading track.
    #[must_use]
    pub fn fragmenter(&self, limits: FragmentLimits) -> Option<Fragmenter> {
        Some(Fragmenter::new(self.formats(), self.lead(), limits)?.with_clean_holes())
    }

    /// Makes a transport stream of its frames. `None` where it can't carry the leading track.
    #[must_use]
    pub fn transport_stream(&self) -> Option<TransportStream> {
        TransportStream::new(self.formats(), self.lead())
    }

    /// Tells whether frames of an epoch fit the sample entries and timescales of its formats.
    #[must_use]
    pub fn fits(&self, epoch: u32) -> bool {
        let Some(epoch) = self.feed.epoch(epoch) else { return true };
        let of = |track: u16| epoch.formats.get(usize::from(track))?.as_ref();
        self.formats().all(|(track, known)| {
            let is_same = |new: &Format| {
                new.track.sample_entry == known.track.sample_entry && new.timescale() == known.timescale()
            };
            of(track).is_some_and(is_same)
        })
    }

    /// Bits a second of its tracks.
    pub(super) fn rate(&self) -> u64 {
        self.feed.rate(self.tracks.iter().copied())
    }

    /// Differs from that of any program with other frames. All programs of a run have the same.
    pub(crate) fn key(&self) -> u64 {
        self.feed.id()
    }

    /// Time that its graph is kept for after its last viewer.
    pub(crate) fn linger(&self) -> Duration {
        self.shared.linger()
    }

    fn is_same(&self, other: &Self) -> bool {
        self.feed.id() == other.feed.id() && self.tracks == other.tracks
    }
}

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
    fn new(
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

    fn is_over(&self) -> bool {
        self.playing.get().is_some_and(|(shared, _)| shared.is_over())
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

    /// Begins to send, unless it does.
    pub(super) async fn play(&self, manager: &Manager) -> Result<(), CannotOpen> {
        let begin = async || {
            let booking = manager.admission().book(self.program.rate(), None)?;
            let shared = self.program.shared.clone();
            let node = manager.registry().add("multicast", self.program.feed.path());
            let mut tracks = self.tracks.clone();
            let listener = self.transmitter.listener();
            let way = (node.id(), Some(&listener), manager.viewer_limits());
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

impl Manager {
    /// The group of a channel: the one that somebody has, else a new one. `None` where there is no multicast, or the channel's
    /// address is still used by an earlier run of it.
    pub fn group(&self, program: &Program) -> Option<Arc<Group>> {
        let options = self.options();
        let addresses = options.groups?;
        let number = options.channels.iter().position(|name| name == program.path())?;
        self.running(|running| {
            running.groups.retain(|_, group| group.strong_count() > 0);
            let known = running.groups.get(&number).and_then(Weak::upgrade).filter(|group| !group.is_over());
            if let Some(known) = known {
                return Some(known).filter(|known| known.program.is_same(program));
            }
            let address = IpAddr::V4(addresses.address(number)?);
            let ports = |track| addresses.ports(track);
            let new = Group::new(self.sender(), program, (address, addresses.ttl()), ports)?;
            let new = Arc::new(new);
            running.groups.insert(number, Arc::downgrade(&new));
            Some(new)
        })
    }
}
