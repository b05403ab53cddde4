//! Sends frames when they are due: a thread a core, in rounds, many sessions each (AMPS, row A4).
//!
//! A round sends what is due of every session on the thread, all packets by UDP in as few system calls as that takes.
//! Rounds are [`ROUND`] apart; in between the thread sleeps, or until there is something to do at all.

use super::{
    deadline::Lateness,
    origins::Origin,
    record::Record,
    sending::{Next, Outputs, ROUND, Sending},
    thread_time,
    track::{SentTrack, Sink},
    wheel::Wheel,
};
use crate::{
    metrics::StreamCounters,
    priority::{self, Duty},
};
use millpond_graph::{Member, Outlet};
use millpond_rtp::rtcp::{self, ReportBlock, RtcpItem};
use rustix::thread::Pid;
use std::{
    collections::HashMap,
    io,
    net::{IpAddr, SocketAddr, UdpSocket},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    time::{Duration, Instant},
};
use tokio::sync::oneshot;

/// Attempts to find two free ports in a row.
const PORTS: usize = 64;
/// Rounds between two in which the room that sessions took blocks from is given back: their loaders are woken together.
const REFILL: u64 = 4;
/// Most reports that are read in a round: whoever floods with them keeps nobody else waiting.
const REPORTS: usize = 256;

/// What is known of a session while it is being sent, and after.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// When its receiver was last heard, in milliseconds of the server's clock.
    pub(super) heard: AtomicU64,
    /// Its receiver doesn't read.
    pub(super) is_stuck: AtomicBool,
    /// Deadlines that were missed.
    pub(super) missed: AtomicU64,
    /// What the log tells of it.
    pub(super) record: Record,
    /// What is left of it where all frames went out. A lock: taken at the end, and when it plays again.
    ended: Mutex<Option<Stopped>>,
}

impl Progress {
    pub(super) fn new(record: Record) -> Self {
        Self { record, ..Self::default() }
    }

    fn leave(&self, stopped: Stopped) {
        *self.ended.lock().unwrap_or_else(PoisonError::into_inner) = Some(stopped);
    }

    /// Whether all frames went out.
    pub(super) fn has_ended(&self) -> bool {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Takes what was left when all frames had gone out.
    pub(super) fn take_ended(&self) -> Option<Stopped> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// A session that plays.
pub(super) struct Stream {
    pub(super) id: u64,
    pub(super) tracks: Vec<SentTrack>,
    pub(super) frames: Outlet,
    /// What is due when it begins to play, and the end of what is played.
    pub(super) position: Duration,
    pub(super) to: Duration,
    /// Times the natural pace: above 0.
    pub(super) speed: f64,
    pub(super) lateness: Lateness,
    /// That of its place, which is told what comes late.
    pub(super) origin: Option<Arc<Origin>>,
    pub(super) progress: Arc<Progress>,
    /// Its place in the graph.
    pub(super) _member: Member,
}

impl Stream {
    /// What comes out of a pipe, to its end, as it plays.
    pub(super) fn new(
        id: u64,
        tracks: Vec<SentTrack>,
        (frames, position): (Outlet, Duration),
        progress: Arc<Progress>,
        member: Member,
    ) -> Self {
        Self {
            id,
            tracks,
            frames,
            position,
            to: Duration::MAX,
            speed: 1.0,
            lateness: Lateness::All,
            origin: None,
            progress,
            _member: member,
        }
    }
}

/// What is left of a session that stopped.
#[derive(Debug)]
pub(super) struct Stopped {
    pub(super) tracks: Vec<SentTrack>,
    /// What would have been due next.
    pub(super) position: Duration,
}

enum Command {
    Play(Box<Stream>),
    /// Its first frames are there.
    Look(u64),
    Stop(u64, oneshot::Sender<Stopped>),
}

/// A thread that sends.
#[derive(Clone, Debug)]
pub(super) struct Transmitter {
    /// Bounded by the sessions there are: of each there are no more than three.
    commands: Sender<Command>,
    /// Its ports of RTP and RTCP.
    pub(super) ports: (u16, u16),
    /// What the system calls it.
    pub(super) thread: Pid,
}

impl Transmitter {
    /// Starts a thread that sends from two free ports of an address; what is multicast lives for so many hops.
    ///
    /// # Errors
    /// No ports, or no thread.
    pub(super) fn start(
        (address, ttl): (IpAddr, Option<u8>),
        number: usize,
        counters: Arc<StreamCounters>,
        clock: Instant,
    ) -> io::Result<Self> {
        let (rtp, rtcp) = ports(address)?;
        rtcp.set_nonblocking(true)?;
        if let Some(ttl) = ttl {
            rtp.set_multicast_ttl_v4(ttl.into())?;
            rtcp.set_multicast_ttl_v4(ttl.into())?;
        }
        let ports = (rtp.local_addr()?.port(), rtcp.local_addr()?.port());
        let (commands, inbox) = mpsc::channel();
        let (told, thread) = mpsc::sync_channel(1);
        let run = move || {
            priority::raise(Duty::Sending);
            let _ = told.send(thread_time::current());
            let thread = Thread {
                rtp,
                rtcp,
                inbox,
                clock,
                began: Instant::now(),
                streams: HashMap::new(),
                wheel: Wheel::new(),
                turns: 0,
                owing: Vec::new(),
                sources: HashMap::new(),
                sealed: HashMap::new(),
                outputs: Outputs::new(counters),
            };
            thread.run();
        };
        std::thread::Builder::new().name(format!("rtp-{number}")).spawn(run)?;
        let thread = thread.recv().map_err(io::Error::other)?;
        Ok(Self { commands, ports, thread })
    }

    /// Begins to send a session.
    pub(super) fn play(&self, stream: Stream) {
        let _ = self.commands.send(Command::Play(Box::new(stream)));
    }

    /// The first frames of a session are there: they go out now.
    pub(super) fn look(&self, id: u64) {
        let _ = self.commands.send(Command::Look(id));
    }

    /// Stops sending a session, and waits for nothing.
    pub(super) fn forget(&self, id: u64) {
        let (reply, _) = oneshot::channel();
        let _ = self.commands.send(Command::Stop(id, reply));
    }

    /// Stops sending a session; nothing where it isn't being sent.
    pub(super) async fn stop(&self, id: u64) -> Option<Stopped> {
        let (reply, stopped) = oneshot::channel();
        self.commands.send(Command::Stop(id, reply)).ok()?;
        stopped.await.ok()
    }
}

/// Two free ports in a row, the first one even (RFC 3550 11).
fn ports(address: IpAddr) -> io::Result<(UdpSocket, UdpSocket)> {
    let mut last = None;
    for _ in 0..PORTS {
        let first = UdpSocket::bind((address, 0))?;
        let port = first.local_addr()?.port();
        if !port.is_multiple_of(2) || port == u16::MAX {
            continue;
        }
        match UdpSocket::bind((address, port + 1)) {
            Ok(second) => return Ok((first, second)),
            Err(error) => last = Some(error),
        }
    }
    Err(last.unwrap_or_else(|| io::ErrorKind::AddrInUse.into()))
}

struct Thread {
    rtp: UdpSocket,
    rtcp: UdpSocket,
    inbox: Receiver<Command>,
    /// The moment from which [`Progress::heard`] counts.
    clock: Instant,
    /// When round 0 was.
    began: Instant,
    streams: HashMap<u64, Turn>,
    wheel: Wheel<Entry>,
    turns: u64,
    /// Sessions that took blocks since room was given back.
    owing: Vec<u64>,
    /// Whose source it is, for reports.
    sources: HashMap<u32, u64>,
    /// Sources whose reports are sealed, by where those come from.
    sealed: HashMap<SocketAddr, u32>,
    outputs: Outputs,
}

/// What is to be done in a round.
#[derive(Clone, Copy, Debug)]
enum Entry {
    /// A session by its id is looked at, where it is still the entry of this number.
    Visit(u64, u64),
    /// Room is given back.
    Refill,
}

/// A session, and the number of its entry in the wheel: others of it are of no use.
struct Turn {
    number: u64,
    sending: Sending,
}

impl Thread {
    fn run(mut self) {
        let mut entries = Vec::new();
        loop {
            let next = self.wheel.next().map(|round| self.began + ROUND.mul_f64(round as f64));
            let command = match next {
                Some(next) => self.inbox.recv_timeout(next.saturating_duration_since(Instant::now())),
                None => self.inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match command {
                Ok(command) => {
                    self.obey(command);
                    while let Ok(command) = self.inbox.try_recv() {
                        self.obey(command);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            let now = Instant::now();
            let round = self.round_of(now);
            while self.wheel.take(round, &mut entries) {
                for entry in entries.drain(..) {
                    match entry {
                        Entry::Visit(id, number) => self.visit(id, number, now),
                        Entry::Refill => self.refill(),
                    }
                }
                // Where rounds were missed, what was due first goes out before the next round is made.
                self.flush();
            }
            self.flush();
            self.listen();
        }
    }

    /// The last round that has begun.
    fn round_of(&self, at: Instant) -> u64 {
        (at.saturating_duration_since(self.began).as_nanos() / ROUND.as_nanos()) as u64
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Play(stream) => {
                for track in &stream.tracks {
                    self.sources.insert(track.ssrc, stream.id);
                    if let (Sink::Udp { rtcp, .. }, true) = (&track.sink, track.srtp.is_some()) {
                        self.sealed.insert(*rtcp, track.ssrc);
                    }
                }
                self.outputs.counters.playing.fetch_add(1, Ordering::Relaxed);
                self.turns += 1;
                let (id, number) = (stream.id, self.turns);
                self.streams.insert(id, Turn { number, sending: Sending::new(*stream) });
                self.visit(id, number, Instant::now());
            }
            Command::Look(id) => {
                if let Some(turn) = self.streams.get_mut(&id) {
                    self.turns += 1;
                    turn.number = self.turns;
                    self.visit(id, self.turns, Instant::now());
                    // The first block may be a short one.
                    self.give_back(id);
                }
            }
            Command::Stop(id, reply) => {
                let Some(mut sending) = self.remove(id) else { return };
                let position = sending.resumes_at();
                let Stream { tracks, progress, .. } = sending.stream;
                // Where nobody waits for it, it is found there by the next PLAY.
                if let Err(stopped) = reply.send(Stopped { tracks, position }) {
                    progress.leave(stopped);
                }
            }
        }
    }

    fn remove(&mut self, id: u64) -> Option<Sending> {
        let Turn { sending, .. } = self.streams.remove(&id)?;
        let Stream { tracks, progress, .. } = &sending.stream;
        progress.record.sent(tracks.iter().map(|t| t.packets).sum(), tracks.iter().map(|t| t.octets).sum());
        for track in tracks {
            self.sources.remove(&track.ssrc);
            if let Sink::Udp { rtcp, .. } = &track.sink
                && self.sealed.get(rtcp) == Some(&track.ssrc)
            {
                self.sealed.remove(rtcp);
            }
        }
        self.outputs.counters.playing.fetch_sub(1, Ordering::Relaxed);
        Some(sending)
    }

    fn visit(&mut self, id: u64, number: u64, now: Instant) {
        let Some(turn) = self.streams.get_mut(&id).filter(|turn| turn.number == number) else { return };
        let owed = turn.sending.stream.frames.owes();
        match turn.sending.visit(now, &mut self.outputs) {
            // In the first round that begins no earlier.
            Next::At(at) => {
                let owes = !owed && turn.sending.stream.frames.owes();
                let round = self.round_of(at) + 1;
                self.wheel.put(round, Entry::Visit(id, number));
                if owes {
                    self.owe(id, now);
                }
            }
            Next::Over => {
                let Some(Sending { stream, last, .. }) = self.remove(id) else { return };
                // Its client may have been silent while it played: it has as long as any other to ask for more.
                stream.progress.heard.store(self.clock.elapsed().as_millis() as u64, Ordering::Relaxed);
                let stopped = Stopped { tracks: stream.tracks, position: last };
                stream.progress.leave(stopped);
            }
        }
    }

    /// A session took a block: its loader hears of it in the next round for that.
    fn owe(&mut self, id: u64, now: Instant) {
        if self.owing.is_empty() {
            self.wheel.put((self.round_of(now) / REFILL + 1) * REFILL, Entry::Refill);
        }
        self.owing.push(id);
    }

    fn refill(&mut self) {
        let mut owing = std::mem::take(&mut self.owing);
        for id in owing.drain(..) {
            self.give_back(id);
        }
        self.owing = owing;
    }

    fn give_back(&mut self, id: u64) {
        if let Some(turn) = self.streams.get_mut(&id) {
            turn.sending.stream.frames.give_back();
        }
    }

    fn flush(&mut self) {
        let Outputs { rtp, rtcp, counters, .. } = &mut self.outputs;
        rtp.flush(&self.rtp);
        rtcp.flush(&self.rtcp);
        let failed = rtp.failures() + rtcp.failures();
        if failed > 0 {
            counters.failed_sends.fetch_add(failed, Ordering::Relaxed);
        }
    }

    /// Reads what receivers report; what comes from strangers is left unread.
    fn listen(&mut self) {
        let mut buffer = [0; 1500];
        for _ in 0..REPORTS {
            let Ok((length, from)) = self.rtcp.recv_from(&mut buffer) else { return };
            let packet = &mut buffer[..length];
            // Sealed reports are known by where they come from, others by what they are of.
            let sealed = self.sealed.get(&from).copied();
            let open = match sealed {
                Some(ssrc) => self.track(ssrc, from).and_then(|(track, _)| track.open(packet)),
                None => Some(&*packet),
            };
            for report in open.and_then(|packet| rtcp::parse(packet).ok()).unwrap_or_default() {
                if let RtcpItem::Reception(reception) = report {
                    self.hear(&reception, from, sealed.is_some());
                }
            }
        }
    }

    /// The track of a source, where its receiver is at that address.
    fn track(&mut self, ssrc: u32, from: SocketAddr) -> Option<(&mut SentTrack, &Progress)> {
        let turn = self.sources.get(&ssrc).and_then(|id| self.streams.get_mut(id))?;
        let Stream { tracks, progress, .. } = &mut turn.sending.stream;
        let is_theirs = |track: &&mut SentTrack| match track.sink {
            Sink::Udp { rtcp, .. } => track.ssrc == ssrc && rtcp.ip() == from.ip(),
            Sink::Tcp { .. } => false,
        };
        Some((tracks.iter_mut().find(is_theirs)?, progress))
    }

    fn hear(&mut self, reception: &ReportBlock, from: SocketAddr, is_sealed: bool) {
        let now = self.clock.elapsed().as_millis() as u64;
        let counters = self.outputs.counters.clone();
        let Some((track, progress)) = self.track(reception.ssrc, from) else { return };
        if track.srtp.is_some() == is_sealed {
            track.hear(reception, &counters);
            progress.heard.store(now, Ordering::Relaxed);
        }
    }
}
