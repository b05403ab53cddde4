//! Sends frames when they are due: a thread a core, in rounds, many sessions each (AMPS, row A4).
//!
//! A round sends what is due of every session on the thread, all packets by UDP in as few system calls as that takes.
//! Rounds are at least [`ROUND`] apart; in between the thread sleeps, or until there is something to do at all.

use super::{
    batch::{Batch, PACKET},
    track::{SentTrack, Sink, ntp},
    wire::Room,
};
use crate::metrics::StreamCounters;
use millpond_graph::{Gone, Member, Outlet};
use millpond_rtp::{
    packet::HEADER,
    payload::Piece,
    rtcp::{self, Report},
};
use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
    io,
    net::{IpAddr, SocketAddr, UdpSocket},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc::{self, Receiver, RecvTimeoutError, SyncSender},
    },
    time::{Duration, Instant, SystemTime},
};
use tokio::sync::oneshot;

/// Between two rounds.
const ROUND: Duration = Duration::from_millis(5);
/// Between two sender reports of a track (RFC 3550 6.2: at least 5 s).
const REPORTS: Duration = Duration::from_secs(5);
/// A frame that goes out later than this is late.
const LATE: Duration = Duration::from_millis(100);
/// From the last frame to the end of the source: who reads the report first would miss the frame.
const LINGER: Duration = Duration::from_millis(500);
/// Commands that may wait.
const COMMANDS: usize = 4096;
/// Attempts to find two free ports in a row.
const PORTS: usize = 64;

/// What is known of a session while it is being sent, and after.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// When its receiver was last heard, in milliseconds of the server's clock.
    pub(super) heard: AtomicU64,
    /// Its receiver doesn't read.
    pub(super) is_stuck: AtomicBool,
    /// What is left of it where all frames went out. A lock: taken at the end, and when it plays again.
    ended: Mutex<Option<Stopped>>,
}

impl Progress {
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
    /// What is due when it begins to play.
    pub(super) position: Duration,
    /// Times the natural pace.
    pub(super) speed: f64,
    pub(super) progress: Arc<Progress>,
    /// Its place in the graph.
    pub(super) _member: Member,
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
    Stop(u64, oneshot::Sender<Stopped>),
}

/// A thread that sends.
#[derive(Clone, Debug)]
pub(super) struct Transmitter {
    commands: SyncSender<Command>,
    /// Its ports of RTP and RTCP.
    pub(super) ports: (u16, u16),
}

impl Transmitter {
    /// Starts a thread that sends from two free ports of an address.
    ///
    /// # Errors
    /// No ports, or no thread.
    pub(super) fn start(
        address: IpAddr,
        number: usize,
        counters: Arc<StreamCounters>,
        clock: Instant,
    ) -> io::Result<Self> {
        let (rtp, rtcp) = ports(address)?;
        rtcp.set_nonblocking(true)?;
        let ports = (rtp.local_addr()?.port(), rtcp.local_addr()?.port());
        let (commands, inbox) = mpsc::sync_channel(COMMANDS);
        let run = move || {
            let thread = Thread {
                rtp,
                rtcp,
                inbox,
                counters,
                clock,
                streams: HashMap::new(),
                due: BinaryHeap::new(),
                sources: HashMap::new(),
                rtp_batch: Batch::new(),
                rtcp_batch: Batch::new(),
                pieces: Vec::new(),
            };
            thread.run();
        };
        std::thread::Builder::new().name(format!("rtp-{number}")).spawn(run)?;
        Ok(Self { commands, ports })
    }

    /// Begins to send a session; `false` where there are too many.
    pub(super) fn play(&self, stream: Stream) -> bool {
        self.commands.try_send(Command::Play(Box::new(stream))).is_ok()
    }

    /// Stops sending a session; nothing where it isn't being sent.
    pub(super) async fn stop(&self, id: u64) -> Option<Stopped> {
        let (reply, stopped) = oneshot::channel();
        self.commands.try_send(Command::Stop(id, reply)).ok()?;
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

struct Sending {
    stream: Stream,
    /// When `position` was due.
    began: Instant,
    reported: Option<Instant>,
    /// What was due last.
    last: Duration,
    /// When the end is told, once all frames went out.
    ends: Option<Instant>,
}

struct Thread {
    rtp: UdpSocket,
    rtcp: UdpSocket,
    inbox: Receiver<Command>,
    counters: Arc<StreamCounters>,
    /// The moment from which [`Progress::heard`] counts.
    clock: Instant,
    streams: HashMap<u64, Sending>,
    due: BinaryHeap<Reverse<(Instant, u64)>>,
    /// Whose source it is, for reports.
    sources: HashMap<u32, u64>,
    rtp_batch: Batch,
    rtcp_batch: Batch,
    pieces: Vec<Piece>,
}

/// What becomes of a session after a round.
enum Next {
    At(Instant),
    Over,
}

impl Thread {
    fn run(mut self) {
        let mut round = Instant::now();
        loop {
            let until = self.due.peek().map(|Reverse((at, _))| (*at).max(round + ROUND));
            let command = match until {
                Some(until) => match self.inbox.recv_timeout(until.saturating_duration_since(Instant::now())) {
                    Ok(command) => Some(command),
                    Err(RecvTimeoutError::Timeout) => None,
                    Err(RecvTimeoutError::Disconnected) => return,
                },
                None => match self.inbox.recv() {
                    Ok(command) => Some(command),
                    Err(_) => return,
                },
            };
            if let Some(command) = command {
                self.obey(command);
                while let Ok(command) = self.inbox.try_recv() {
                    self.obey(command);
                }
            } else {
                round = Instant::now();
            }
            self.round();
        }
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Play(stream) => {
                let now = Instant::now();
                for track in &stream.tracks {
                    self.sources.insert(track.ssrc, stream.id);
                }
                self.counters.playing.fetch_add(1, Ordering::Relaxed);
                self.due.push(Reverse((now, stream.id)));
                let last = stream.position;
                self.streams
                    .insert(stream.id, Sending { stream: *stream, began: now, reported: None, last, ends: None });
            }
            Command::Stop(id, reply) => {
                let Some(mut sending) = self.remove(id) else { return };
                let next = sending.stream.frames.peek().ok().flatten().map(|frame| frame.due);
                let position = next.unwrap_or(sending.last);
                let _ = reply.send(Stopped { tracks: sending.stream.tracks, position });
            }
        }
    }

    fn remove(&mut self, id: u64) -> Option<Sending> {
        let sending = self.streams.remove(&id)?;
        for track in &sending.stream.tracks {
            self.sources.remove(&track.ssrc);
        }
        self.counters.playing.fetch_sub(1, Ordering::Relaxed);
        Some(sending)
    }

    fn round(&mut self) {
        let now = Instant::now();
        while let Some(Reverse((at, id))) = self.due.peek().copied().filter(|Reverse((at, _))| *at <= now) {
            let _ = at;
            self.due.pop();
            let Some(mut sending) = self.streams.remove(&id) else { continue };
            let next = self.send(&mut sending, now);
            self.streams.insert(id, sending);
            match next {
                Next::At(at) => self.due.push(Reverse((at, id))),
                Next::Over => {
                    let Some(Sending { stream, last, .. }) = self.remove(id) else { continue };
                    let stopped = Stopped { tracks: stream.tracks, position: last };
                    *stream.progress.ended.lock().unwrap_or_else(PoisonError::into_inner) = Some(stopped);
                }
            }
        }
        self.rtp_batch.flush(&self.rtp);
        self.rtcp_batch.flush(&self.rtcp);
        let failed = self.rtp_batch.failures() + self.rtcp_batch.failures();
        self.counters.failed_sends.fetch_add(failed, Ordering::Relaxed);
        self.listen();
    }

    /// Sends what is due of a session.
    fn send(&mut self, sending: &mut Sending, now: Instant) -> Next {
        let Sending { stream, began, reported, last, ends } = sending;
        let elapsed = now.saturating_duration_since(*began).mul_f64(stream.speed.max(0.01));
        let position = stream.position + elapsed;
        if reported.is_none_or(|at| now.saturating_duration_since(at) >= REPORTS) {
            *reported = Some(now);
            for track in &stream.tracks {
                self.rtcp_batch.report(&track.sink, &track.rtcp(position, None));
            }
        }
        loop {
            let frame = match stream.frames.peek() {
                Ok(Some(frame)) if frame.due <= position => frame,
                Ok(Some(frame)) => {
                    let wait = (frame.due - position).div_f64(stream.speed.max(0.01));
                    return Next::At(now + wait);
                }
                Ok(None) => return Next::At(now + ROUND),
                Err(Gone) => {
                    let end = *ends.get_or_insert(now + LINGER);
                    if now < end {
                        return Next::At(end);
                    }
                    for track in &stream.tracks {
                        self.rtcp_batch.report(&track.sink, &track.rtcp(position, Some("end of stream")));
                    }
                    return Next::Over;
                }
            };
            *last = frame.due;
            if position - frame.due > LATE {
                self.counters.late_frames.fetch_add(1, Ordering::Relaxed);
            }
            let Some(frame) = stream.frames.take() else { return Next::At(now + ROUND) };
            let Some(track) = stream.tracks.get_mut(usize::from(frame.track)) else { continue };
            track.next = frame.number.saturating_add(1);
            // Over a full connection frames are left out; then pictures up to the next that stands alone.
            let room = track.sink.room();
            track.skips = room != Room::Enough || (track.skips && !frame.is_sync);
            if room == Room::None {
                stream.progress.is_stuck.store(true, Ordering::Relaxed);
                return Next::Over;
            }
            if track.skips {
                self.counters.dropped_frames.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            self.pieces.clear();
            if track.packetizer.cut(&frame.data, PACKET - HEADER, &mut self.pieces).is_err() {
                self.counters.dropped_frames.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            match track.sink.clone() {
                Sink::Udp { rtp, .. } => {
                    for piece in &self.pieces {
                        let header = track.header(frame.pts, piece.marker, piece.len());
                        self.rtp_batch.add(rtp, &header, piece, &frame.data);
                    }
                }
                Sink::Tcp { wire, channels } => {
                    wire.send(|pending| {
                        for piece in &self.pieces {
                            let header = track.header(frame.pts, piece.marker, piece.len());
                            interleave(pending, channels.0, &[&header, piece.head(), &frame.data[piece.body.clone()]]);
                        }
                    });
                }
            }
            let bytes: usize = self.pieces.iter().map(|piece| HEADER + piece.len()).sum();
            self.counters.frames.fetch_add(1, Ordering::Relaxed);
            self.counters.packets.fetch_add(self.pieces.len() as u64, Ordering::Relaxed);
            self.counters.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        }
    }

    /// Reads what receivers report; what comes from strangers is left unread.
    fn listen(&mut self) {
        let mut buffer = [0; 1500];
        while let Ok((length, from)) = self.rtcp.recv_from(&mut buffer) {
            let Ok(reports) = rtcp::parse(&buffer[..length]) else { continue };
            for report in reports {
                if let Report::Reception(reception) = report {
                    self.hear(reception, from);
                }
            }
        }
    }

    fn hear(&self, reception: rtcp::Reception, from: SocketAddr) {
        let sending = self.sources.get(&reception.ssrc).and_then(|id| self.streams.get(id));
        let Some(sending) = sending else { return };
        let is_theirs = |track: &SentTrack| match track.sink {
            Sink::Udp { rtcp, .. } => track.ssrc == reception.ssrc && rtcp.ip() == from.ip(),
            Sink::Tcp { .. } => false,
        };
        if sending.stream.tracks.iter().any(is_theirs) {
            let heard = self.clock.elapsed().as_millis() as u64;
            sending.stream.progress.heard.store(heard, Ordering::Relaxed);
            self.counters.reports.fetch_add(1, Ordering::Relaxed);
            let trip = reception.round_trip((ntp(SystemTime::now()) >> 16) as u32);
            tracing::trace!(?reception, ?trip, "receiver report");
        }
    }
}

impl Batch {
    /// An RTCP packet, to where it goes.
    fn report(&mut self, sink: &Sink, bytes: &[u8]) {
        match sink {
            Sink::Udp { rtcp, .. } => self.add_plain(*rtcp, bytes),
            Sink::Tcp { wire, channels } => {
                wire.send(|pending| interleave(pending, channels.1, &[bytes]));
            }
        }
    }
}

/// A packet on a channel (RFC 2326 10.12).
fn interleave(pending: &mut Vec<u8>, channel: u8, parts: &[&[u8]]) {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let Ok(length) = u16::try_from(length) else { return };
    pending.extend_from_slice(&[b'$', channel]);
    pending.extend_from_slice(&length.to_be_bytes());
    parts.iter().for_each(|part| pending.extend_from_slice(part));
}

impl Transmitter {
    /// Stops sending a session, and waits for nothing.
    pub(super) fn forget(&self, id: u64) {
        let (reply, _) = oneshot::channel();
        let _ = self.commands.try_send(Command::Stop(id, reply));
    }
}
