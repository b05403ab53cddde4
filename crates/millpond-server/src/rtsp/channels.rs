//! The channels of a server: which assets are channels, and those that run.

use super::{
    admission::Share,
    channel::{Channel, Supplies},
    described::{chosen, described},
    groups::Groups,
    intervals::Subject,
    session::{CannotPlay, Source},
    track::{SentTrack, Sink},
    transmit::{Stream, Transmitter},
};
use crate::library::Asset;
use millpond_graph::Gone;
use millpond_rtp::setup::TransportHeader;
use std::{
    collections::HashMap,
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex, PoisonError, Weak},
};
use tokio::sync::OnceCell;

/// All channels.
pub(super) struct Channels {
    /// Paths of assets, as in URLs.
    names: Vec<String>,
    groups: Option<Groups>,
    /// A lock: taken when somebody begins to watch one.
    running: Mutex<Running>,
}

#[derive(Default)]
struct Running {
    channels: HashMap<Subject, Weak<Channel>>,
    /// By the place of their channel in the list: each has one address.
    groups: HashMap<usize, Weak<Group>>,
}

/// A channel as it is asked for, whether it runs or not.
#[derive(Clone, Debug)]
pub(super) struct Program {
    /// Its place in the list; nothing for another rendition than the best one, which has no group.
    number: Option<usize>,
    subject: Subject,
}

impl Program {
    /// Whether a track of the presentation is one of it.
    pub(super) fn has(&self, track: usize) -> bool {
        self.subject.tracks.iter().any(|known| usize::from(*known) == track)
    }
}

impl Channels {
    pub(super) fn new(names: Vec<String>, groups: Option<Groups>) -> Self {
        Self { names, groups, running: Mutex::default() }
    }

    /// Hops of multicast packets, where there are such.
    pub(super) fn ttl(&self) -> Option<u8> {
        self.groups.map(Groups::ttl)
    }

    /// An asset as a channel, where it is one: with the rendition that a URL names, else the best one.
    pub(super) fn program(&self, asset: &Asset, rendition: Option<&str>) -> Option<Program> {
        let number = self.names.iter().position(|name| name == asset.path.trim_matches('/'))?;
        let chosen = chosen(asset, rendition, None);
        let mut tracks: Vec<u16> = chosen.iter().map(|(track, _)| *track as u16).collect();
        tracks.sort_unstable();
        let number = Some(number).filter(|_| rendition.is_none());
        Some(Program { number, subject: Subject::of(asset, tracks.into()) })
    }

    fn running<T>(&self, act: impl FnOnce(&mut Running) -> T) -> T {
        act(&mut self.running.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The channel that runs, else a new one.
    pub(super) fn tune(&self, supplies: &Supplies<'_>, program: &Program, asset: &Arc<Asset>) -> Arc<Channel> {
        let subject = &program.subject;
        self.running(|Running { channels, .. }| {
            channels.retain(|_, channel| channel.strong_count() > 0);
            let known = channels.get(subject).and_then(Weak::upgrade).filter(|channel| !channel.is_over());
            known.unwrap_or_else(|| {
                let new = Arc::new(Channel::start(supplies, asset.clone(), subject.tracks.clone()));
                channels.insert(subject.clone(), Arc::downgrade(&new));
                new
            })
        })
    }

    /// The group of a channel that somebody has, else a new one, which a transmitter sends under a number; nothing where there is
    /// no multicast, or the channel's address still has what its asset was before.
    pub(super) fn group(
        &self,
        program: &Program,
        asset: &Arc<Asset>,
        (id, transmitter): (u64, &Transmitter),
    ) -> Option<Arc<Group>> {
        let (addresses, number) = (self.groups?, program.number?);
        self.running(|Running { groups, .. }| {
            groups.retain(|_, group| group.strong_count() > 0);
            let known = groups.get(&number).and_then(Weak::upgrade).filter(|group| !group.is_over());
            if let Some(known) = known {
                return Some(known).filter(|known| known.program.subject == program.subject);
            }
            let address = IpAddr::V4(addresses.of(number)?);
            let ports = |place| addresses.ports(place);
            let new = Arc::new(Group::new((id, transmitter), program, asset, (address, addresses.ttl()), ports)?);
            groups.insert(number, Arc::downgrade(&new));
            Some(new)
        })
    }
}

/// A channel's multicast: one transmission for all of its receivers.
pub(super) struct Group {
    id: u64,
    asset: Arc<Asset>,
    program: Program,
    tracks: Vec<SentTrack>,
    ttl: u8,
    transmitter: Transmitter,
    /// What it is sent from, from the first PLAY on.
    playing: OnceCell<(Arc<Channel>, Share)>,
}

impl Group {
    fn new(
        (id, transmitter): (u64, &Transmitter),
        program: &Program,
        asset: &Arc<Asset>,
        (address, ttl): (IpAddr, u8),
        ports: impl Fn(usize) -> Option<(u16, u16)>,
    ) -> Option<Self> {
        let sent = |(place, track): (usize, &u16)| {
            let (rtp, rtcp) = ports(place)?;
            let sink = Sink::Udp { rtp: SocketAddr::new(address, rtp), rtcp: SocketAddr::new(address, rtcp) };
            let number = usize::from(*track);
            let described = described(number, asset.presentation.tracks().get(number)?)?;
            Some(SentTrack::new(number, &described, sink, (fastrand::u32(..), None)))
        };
        let tracks = program.subject.tracks.iter().enumerate().map(sent).collect::<Option<_>>()?;
        let (asset, program, transmitter) = (asset.clone(), program.clone(), transmitter.clone());
        Some(Self { id, asset, program, tracks, ttl, transmitter, playing: OnceCell::new() })
    }

    fn is_over(&self) -> bool {
        self.playing.get().is_some_and(|(channel, _)| channel.is_over())
    }

    /// How a track of it is received.
    pub(super) fn transport(&self, track: usize) -> Option<TransportHeader> {
        let sent = self.tracks.iter().find(|sent| sent.track == track)?;
        let Sink::Udp { rtp, rtcp } = &sent.sink else { return None };
        let ports = (rtp.port(), rtcp.port());
        Some(TransportHeader::Multicast { group: rtp.ip(), ports, ttl: self.ttl, ssrc: sent.ssrc })
    }

    /// Begins to send, where that hasn't begun.
    pub(super) async fn play(&self, source: &Source<'_>) -> Result<(), CannotPlay> {
        let begin = async || {
            let rate = self.asset.rate(self.tracks.iter().map(|sent| sent.track));
            let share = source.admission.share(rate, None).map_err(CannotPlay::Full)?;
            let channel = source.channels.tune(&source.supplies(), &self.program, &self.asset);
            let member = source.graph.add("multicast", self.asset.path.clone());
            let mut tracks = self.tracks.clone();
            let joined = channel.join(member.id(), &mut tracks).await;
            let joined = joined.map_err(|Gone| CannotPlay::Ended)?;
            self.transmitter.play(Stream::new(self.id, tracks, joined, Arc::default(), member));
            Ok((channel, share))
        };
        let (channel, _) = self.playing.get_or_try_init(begin).await?;
        if channel.is_over() { Err(CannotPlay::Ended) } else { Ok(()) }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if self.playing.initialized() {
            self.transmitter.forget(self.id);
        }
    }
}
