//! The state machine of a sending thread: many subscribers, in rounds.

use super::{
    Arrival, Now, Pace, Progress, SentTotals, Stopped, TrackSender, Transmission,
    packets::Packetizing,
    sending::{Next, ROUND, Sending},
    track::octets,
    transmitter::Command,
    wheel::Wheel,
};
use crate::{Counters, outlet::Datagrams, registry::NodeId};
use millpond_rtp::{
    feedback::GenericNack,
    rtcp::{self, ReportBlock, RtcpItem},
};
use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

/// Time between two rounds in which permits of taken blocks are returned: that wakes loaders together.
const REFILL: Duration = ROUND.saturating_mul(4);

/// Rounds between two looks at what receivers say, while some may ask for packets again.
const LISTEN: u64 = 2;
/// Least share of lost packets in a report, in 1/256, of which the graph is told: 5 %.
const MANY: u8 = 13;
/// Most packets of one request that are looked for.
const MOST_ASKED: usize = 512;

/// Sends many subscribers' frames in rounds. It has no sockets and reads no clock.
///
/// [`handle`](Self::handle) takes commands and [`hear`](Self::hear) receivers' reports, at any time. When the time of
/// [`next`](Self::next) has come, or a command was handled, call [`run`](Self::run). Times never go back.
pub(super) struct Rounds {
    /// The moment from which [`Progress::heard`] counts.
    clock: Instant,
    /// Time of round 0.
    began: Instant,
    /// Time between two rounds.
    round: Duration,
    subscribers: HashMap<u64, Scheduled>,
    wheel: Wheel<Entry>,
    /// Numbers of entries in the wheel.
    last: u64,
    /// Subscribers that took blocks since permits were returned.
    owing: Vec<u64>,
    /// Subscribers of live streams by the fork that gives their frames.
    live: HashMap<NodeId, Vec<u64>>,
    /// Subscribers by their tracks' SSRC, for reports.
    sources: HashMap<u32, u64>,
    /// SSRC of encrypted tracks, by the address that their receivers report from.
    encrypted: HashMap<SocketAddr, u32>,
    /// Subscribers that may ask for packets again.
    repeating: usize,
    /// Whether a look at what receivers say is in the wheel.
    listens: bool,
    packets: Packetizing,
}

/// Work of a round.
#[derive(Clone, Copy, Debug)]
enum Entry {
    /// A visit to the subscriber of an id, unless its entry has another number by then.
    Visit(u64, u64),
    /// Permits are returned.
    Refill,
    /// The thread wakes to read what receivers say.
    Listen,
}

/// A subscriber, and the number of its valid entry in the wheel.
struct Scheduled {
    number: u64,
    /// Whether it is visited when frames have arrived: it has sent those before.
    awaits: bool,
    sending: Sending,
}

impl Rounds {
    /// Begins at a time, with rounds of [`ROUND`] or longer. `clock` is the moment from which [`Progress::heard`] counts.
    pub(super) fn new(counters: Arc<Counters>, round: Duration, clock: Instant, now: Instant) -> Self {
        let round = round.max(ROUND);
        Self {
            clock,
            began: now,
            round,
            subscribers: HashMap::new(),
            wheel: Wheel::new(),
            last: 0,
            owing: Vec::new(),
            live: HashMap::new(),
            sources: HashMap::new(),
            encrypted: HashMap::new(),
            repeating: 0,
            listens: false,
            packets: Packetizing::new(counters, round.div_duration_f64(ROUND) as usize, now),
        }
    }

    /// The time at which [`run`](Self::run) has something to do; `None` while nothing plays.
    pub(super) fn next(&self) -> Option<Instant> {
        self.wheel.next().map(|round| self.began + self.round.mul_f64(round as f64))
    }

    /// The last round that has begun.
    fn round_of(&self, at: Instant) -> u64 {
        (at.saturating_duration_since(self.began).as_nanos() / self.round.as_nanos()) as u64
    }

    /// Sends all frames that are due. `flush` sends the datagrams; it is called after each round.
    pub(super) fn run(&mut self, now: Now, mut flush: impl FnMut(&mut Datagrams, &Counters)) {
        let mut entries = Vec::new();
        let round = self.round_of(now.at);
        self.packets.now = now.at;
        while self.wheel.take(round, &mut entries) {
            for entry in entries.drain(..) {
                match entry {
                    Entry::Visit(id, number) => self.visit(id, number, now),
                    Entry::Refill => self.refill(),
                    Entry::Listen => self.listen(now.at),
                }
            }
            // Where rounds were missed, the frames of the first one are sent before the next one is made.
            flush(&mut self.packets.datagrams, &self.packets.counters);
        }
        flush(&mut self.packets.datagrams, &self.packets.counters);
        self.packets.forget();
    }

    /// Sends the datagrams of packets that receivers asked for since the last round.
    pub(super) fn flush(&mut self, mut flush: impl FnMut(&mut Datagrams, &Counters)) {
        flush(&mut self.packets.datagrams, &self.packets.counters);
    }

    /// Wakes the thread again, as long as some receiver may ask for packets.
    fn listen(&mut self, now: Instant) {
        self.listens = self.repeating > 0;
        if self.listens {
            self.wheel.put(self.round_of(now) + LISTEN, Entry::Listen);
        }
    }

    /// Takes a command.
    pub(super) fn handle(&mut self, command: Command, now: Now) {
        self.packets.now = now.at;
        match command {
            Command::Play(transmission) => {
                for track in &transmission.tracks {
                    self.sources.insert(track.ssrc, transmission.id);
                    if let (Some(from), true) = (track.outlet.reports_from(), track.protection.is_some()) {
                        self.encrypted.insert(from, track.ssrc);
                    }
                }
                self.packets.counters.playing.fetch_add(1, Ordering::Relaxed);
                self.last += 1;
                let (id, number) = (transmission.id, self.last);
                self.repeating += usize::from(transmission.tracks.iter().any(|track| track.history.is_some()));
                if !self.listens {
                    self.listen(now.at);
                }
                if let Some(arrival) = &transmission.arrival {
                    self.live.entry(arrival.fork()).or_default().push(id);
                }
                let sending = Sending::new(*transmission);
                self.subscribers.insert(id, Scheduled { number, awaits: false, sending });
                self.visit(id, number, now);
            }
            Command::Look(id) => {
                if let Some(scheduled) = self.subscribers.get_mut(&id) {
                    self.last += 1;
                    scheduled.number = self.last;
                    self.visit(id, self.last, now);
                    // The first block may be a short one.
                    self.return_permits(id);
                }
            }
            Command::Arrived(fork, is_told) => {
                // A run that is put from now on tells again.
                is_told.swap(false, Ordering::AcqRel);
                self.arrived(fork, now);
            }
            Command::Hear(id, report) => self.hear_of(id, &report.packet, now),
            Command::Stop(id, reply) => {
                let Some(mut sending) = self.remove(id) else { return };
                let position = sending.resumes_at();
                let Transmission { tracks, pace, progress, .. } = sending.transmission;
                // Where nobody waits for it, the next PLAY finds it there.
                if let Err(stopped) = reply.send(Stopped { tracks, pace, position }) {
                    progress.leave(stopped);
                }
            }
        }
    }

    fn remove(&mut self, id: u64) -> Option<Sending> {
        let Scheduled { sending, .. } = self.subscribers.remove(&id)?;
        let Transmission { tracks, progress, arrival, .. } = &sending.transmission;
        if let Some(fork) = arrival.as_ref().map(Arrival::fork)
            && let Some(subscribers) = self.live.get_mut(&fork)
        {
            subscribers.retain(|known| *known != id);
            if subscribers.is_empty() {
                self.live.remove(&fork);
            }
        }
        self.repeating -= usize::from(tracks.iter().any(|track| track.history.is_some()));
        progress.stopped(SentTotals {
            packets: tracks.iter().map(|track| track.packets).sum(),
            bytes: octets(tracks),
            lost: tracks.iter().map(|track| u64::try_from(track.lost).unwrap_or(0)).sum(),
        });
        for track in tracks {
            self.sources.remove(&track.ssrc);
            if let Some(from) = track.outlet.reports_from()
                && self.encrypted.get(&from) == Some(&track.ssrc)
            {
                self.encrypted.remove(&from);
            }
        }
        self.packets.counters.playing.fetch_sub(1, Ordering::Relaxed);
        Some(sending)
    }

    /// Visits the subscribers of a fork that has given a run. Their entries in the wheel stay, for reports.
    fn arrived(&mut self, fork: NodeId, now: Now) {
        let Some(mut subscribers) = self.live.get_mut(&fork).map(std::mem::take) else { return };
        let all = self.subscribers.len();
        for id in &subscribers {
            let Some(scheduled) = self.subscribers.get_mut(id).filter(|scheduled| scheduled.awaits) else { continue };
            let next = scheduled.sending.visit(now, &mut self.packets);
            if !matches!(next, Next::Arrival(_)) {
                self.last += 1;
                scheduled.number = self.last;
                self.schedule(*id, next, now);
            }
        }
        // Transmissions that are over did not find themselves in the list.
        if self.subscribers.len() < all {
            subscribers.retain(|id| self.subscribers.contains_key(id));
        }
        if !subscribers.is_empty() {
            self.live.insert(fork, subscribers);
        }
    }

    fn visit(&mut self, id: u64, number: u64, now: Now) {
        let Some(scheduled) = self.subscribers.get_mut(&id).filter(|scheduled| scheduled.number == number) else {
            return;
        };
        let owed = scheduled.sending.transmission.frames.owes_permits();
        let next = scheduled.sending.visit(now, &mut self.packets);
        if next != Next::Over && !owed && scheduled.sending.transmission.frames.owes_permits() {
            self.owe(id, now.at);
        }
        self.schedule(id, next, now);
    }

    /// Puts a subscriber that was visited in the wheel again, or ends its transmission.
    fn schedule(&mut self, id: u64, next: Next, now: Now) {
        match next {
            Next::Round | Next::At(_) | Next::Arrival(_) => {
                let Some(scheduled) = self.subscribers.get_mut(&id) else { return };
                scheduled.awaits = matches!(next, Next::Arrival(_));
                let number = scheduled.number;
                // In the first round that begins no earlier.
                let at = if let Next::At(at) | Next::Arrival(at) = next { at } else { now.at };
                let round = self.round_of(at) + 1;
                self.wheel.put(round, Entry::Visit(id, number));
            }
            Next::Over => {
                let Some(Sending { transmission, last, .. }) = self.remove(id) else { return };
                // Its client may have been silent while it played. It has the full time-out to ask for more.
                transmission.progress.set_heard(self.milliseconds(now.at));
                let stopped = Stopped { tracks: transmission.tracks, pace: transmission.pace, position: last };
                transmission.progress.leave(stopped);
            }
        }
    }

    /// Milliseconds of the engine's clock.
    fn milliseconds(&self, at: Instant) -> u64 {
        at.saturating_duration_since(self.clock).as_millis() as u64
    }

    /// A subscriber took a block: its loader is woken in the next round for that.
    fn owe(&mut self, id: u64, now: Instant) {
        if self.owing.is_empty() {
            let rounds = (REFILL.div_duration_f64(self.round) as u64).max(1);
            self.wheel.put((self.round_of(now) / rounds + 1) * rounds, Entry::Refill);
        }
        self.owing.push(id);
    }

    fn refill(&mut self) {
        let mut owing = std::mem::take(&mut self.owing);
        for id in owing.drain(..) {
            self.return_permits(id);
        }
        self.owing = owing;
    }

    fn return_permits(&mut self, id: u64) {
        if let Some(scheduled) = self.subscribers.get_mut(&id) {
            scheduled.sending.transmission.frames.return_permits();
        }
    }

    /// Takes RTCP packets from an address. Those of strangers are ignored.
    pub(super) fn hear(&mut self, packet: &mut [u8], from: SocketAddr, now: Now) {
        // Encrypted reports are recognized by their address, others by the source that they are about.
        let encrypted = self.encrypted.get(&from).copied();
        let open = match encrypted {
            Some(ssrc) => self.track(ssrc, from).and_then(|(track, ..)| track.open(packet)),
            None => Some(&*packet),
        };
        let reports = open.and_then(|packet| rtcp::parse(packet).ok()).unwrap_or_default();
        self.take(reports, from, encrypted.is_some(), now);
    }

    /// Takes RTCP packets of a subscriber's receiver, which were encrypted.
    fn hear_of(&mut self, id: u64, packet: &[u8], now: Now) {
        let Some(Scheduled { sending, .. }) = self.subscribers.get(&id) else { return };
        let tracks = &sending.transmission.tracks;
        let Some(from) = tracks.first().and_then(|track| track.outlet.reports_from()) else { return };
        self.take(rtcp::parse(packet).unwrap_or_default(), from, true, now);
    }

    fn take(&mut self, reports: Vec<RtcpItem>, from: SocketAddr, is_encrypted: bool, now: Now) {
        for report in reports {
            match report {
                RtcpItem::Reception(reception) => self.count(&reception, from, is_encrypted, now),
                RtcpItem::Nack(nack) => self.repeat(&nack, from, is_encrypted, now),
                RtcpItem::Sender(_) | RtcpItem::Bye(_) | RtcpItem::KeyFrame => {}
            }
        }
    }

    /// Sends packets again. Requests that are not of the receiver of that source are counted and ignored. The pace learns of lost
    /// packets earlier from requests than from reports.
    fn repeat(&mut self, nack: &GenericNack, from: SocketAddr, is_encrypted: bool, now: Now) {
        let heard = self.milliseconds(now.at);
        self.packets.now = now.at;
        let Self { sources, subscribers, packets, .. } = self;
        match track(sources, subscribers, nack.source, from) {
            Some((track, progress, pace)) => {
                progress.set_heard(heard);
                let mut pace = pace.filter(|_| track.protection.is_some() == is_encrypted);
                if let Some(pace) = &mut pace {
                    pace.miss(nack, now.at, &packets.counters);
                }
                let most = pace.as_ref().map_or(usize::MAX, |pace| pace.repeats());
                let repeated = packets.repeat(track, nack.sequences().take(MOST_ASKED), most);
                if let Some(pace) = pace {
                    pace.repeated(repeated);
                }
            }
            None => _ = packets.counters.foreign_feedback.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// The track of a source, where its receiver is at that address.
    fn track(&mut self, ssrc: u32, from: SocketAddr) -> Option<(&mut TrackSender, &Progress, Option<&mut Pace>)> {
        track(&self.sources, &mut self.subscribers, ssrc, from)
    }

    fn count(&mut self, reception: &ReportBlock, from: SocketAddr, is_encrypted: bool, now: Now) {
        let heard = self.milliseconds(now.at);
        let counters = self.packets.counters.clone();
        let Some((track, progress, pace)) = self.track(reception.ssrc, from) else { return };
        if track.protection.is_some() == is_encrypted {
            track.count(reception, now.wall, &counters);
            progress.set_heard(heard);
            match pace {
                // Its rate is found by losses.
                Some(pace) => pace.report(reception, now.at, &counters),
                None if reception.fraction_lost >= MANY => self.report_loss(reception.ssrc),
                None => {}
            }
        }
    }

    /// Tells the graph of a source's subscriber that many packets were lost.
    fn report_loss(&self, ssrc: u32) {
        if let Some(scheduled) = self.sources.get(&ssrc).and_then(|id| self.subscribers.get(id)) {
            scheduled.sending.transmission.frames.report_loss();
        }
    }
}

/// Finds the track of a source, where its receiver is at an address.
fn track<'a>(
    sources: &HashMap<u32, u64>,
    subscribers: &'a mut HashMap<u64, Scheduled>,
    ssrc: u32,
    from: SocketAddr,
) -> Option<(&'a mut TrackSender, &'a Progress, Option<&'a mut Pace>)> {
    let scheduled = sources.get(&ssrc).and_then(|id| subscribers.get_mut(id))?;
    let Transmission { tracks, progress, pace, .. } = &mut scheduled.sending.transmission;
    let is_theirs = |track: &&mut TrackSender| {
        track.ssrc == ssrc && track.outlet.reports_from().is_some_and(|known| known.ip() == from.ip())
    };
    Some((tracks.iter_mut().find(is_theirs)?, progress, pace.as_deref_mut()))
}
