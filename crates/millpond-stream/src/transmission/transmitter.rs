//! A sending thread: sockets and clock around [`Rounds`].

use super::{Now, Pace, Progress, TrackSender, Transmission, rounds::Rounds, thread_time};
use crate::{Counters, graph::Listener, outlet::Datagrams, registry::NodeId};
use rustix::thread::Pid;
use std::{
    io,
    net::{IpAddr, UdpSocket},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    time::{Duration, Instant},
};
use tokio::sync::oneshot;

/// Attempts to find two free ports in a row.
const PORTS: usize = 64;
/// Most reports that are read in a round, so that a flood of them delays no frame.
const REPORTS: usize = 256;

/// Tracks and position of a transmission that stopped.
#[derive(Debug)]
pub(crate) struct Stopped {
    pub(crate) tracks: Vec<TrackSender>,
    pub(crate) pace: Option<Box<Pace>>,
    /// Due time of the next frame.
    pub(crate) position: Duration,
}

/// RTCP packets that wait for a sending thread.
#[derive(Debug)]
pub(super) struct ReceivedReport {
    pub(super) packet: Box<[u8]>,
    progress: Arc<Progress>,
}

impl ReceivedReport {
    /// Counts it; `None` where too many wait.
    fn new(packet: &[u8], progress: &Arc<Progress>) -> Option<Self> {
        progress.report_given().then(|| Self { packet: packet.into(), progress: progress.clone() })
    }
}

impl Drop for ReceivedReport {
    fn drop(&mut self) {
        self.progress.report_taken();
    }
}

/// Command to a sending thread.
pub(super) enum Command {
    /// Begins a transmission.
    Play(Box<Transmission>),
    /// The first frames of a subscriber have arrived.
    Look(u64),
    /// A fork has given a run. The flag is cleared before the frames are taken.
    Arrived(NodeId, Arc<AtomicBool>),
    /// A subscriber's receiver reports, in RTCP packets that are decrypted.
    Hear(u64, ReceivedReport),
    /// Ends a transmission.
    Stop(u64, oneshot::Sender<Stopped>),
}

/// A handle to a sending thread. The thread ends when all handles are dropped.
#[derive(Clone, Debug)]
pub(crate) struct Transmitter {
    /// Bounded by the subscribers and the forks: each of them has three commands at most, and a subscriber few reports.
    commands: Sender<Command>,
    /// Its ports of RTP and RTCP.
    pub(crate) ports: (u16, u16),
    /// Its name in the system.
    pub(crate) thread: Pid,
}

impl Transmitter {
    /// Starts a sending thread on two free ports of `address`. `ttl` is the hop limit of multicast packets, `round` the time
    /// between two rounds. The thread calls `on_start` first.
    ///
    /// # Errors
    /// No ports are free, or the system gives no thread.
    pub(crate) fn start(
        (address, ttl): (IpAddr, Option<u8>),
        number: usize,
        counters: Arc<Counters>,
        clock: Instant,
        (round, on_start): (Duration, fn()),
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
            on_start();
            let _ = told.send(thread_time::current());
            let rounds = Rounds::new(counters, round, clock, Instant::now());
            Thread { rtp, rtcp, inbox, rounds }.run();
        };
        std::thread::Builder::new().name(format!("rtp-{number}")).spawn(run)?;
        let thread = thread.recv().map_err(io::Error::other)?;
        Ok(Self { commands, ports, thread })
    }

    /// Begins a transmission.
    pub(crate) fn play(&self, transmission: Transmission) {
        let _ = self.commands.send(Command::Play(Box::new(transmission)));
    }

    /// Sends the first frames of a subscriber, which have arrived.
    pub(crate) fn look(&self, id: u64) {
        let _ = self.commands.send(Command::Look(id));
    }

    /// Takes RTCP packets of a subscriber's receiver, which are decrypted. Where too many wait, they are dropped: others follow.
    pub(crate) fn hear(&self, id: u64, packet: &[u8], progress: &Arc<Progress>) {
        if let Some(report) = ReceivedReport::new(packet, progress) {
            let _ = self.commands.send(Command::Hear(id, report));
        }
    }

    /// Returns it as a listener of forks.
    pub(crate) fn listener(&self) -> Arc<dyn Listener> {
        Arc::new(self.clone())
    }

    /// Ends a transmission without waiting for it.
    pub(crate) fn forget(&self, id: u64) {
        let (reply, _) = oneshot::channel();
        let _ = self.commands.send(Command::Stop(id, reply));
    }

    /// Ends a transmission; `None` where it had ended already.
    pub(crate) async fn stop(&self, id: u64) -> Option<Stopped> {
        let (reply, stopped) = oneshot::channel();
        self.commands.send(Command::Stop(id, reply)).ok()?;
        stopped.await.ok()
    }
}

impl Listener for Transmitter {
    fn thread(&self) -> Pid {
        self.thread
    }

    fn arrived(&self, fork: NodeId, is_told: &Arc<AtomicBool>) {
        let _ = self.commands.send(Command::Arrived(fork, is_told.clone()));
    }
}

/// Binds two free ports in a row, the first one even (RFC 3550 11).
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
    rounds: Rounds,
}

impl Thread {
    fn run(mut self) {
        loop {
            let command = match self.rounds.next() {
                Some(next) => self.inbox.recv_timeout(next.saturating_duration_since(Instant::now())),
                None => self.inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match command {
                Ok(command) => {
                    self.rounds.handle(command, Now::read());
                    while let Ok(command) = self.inbox.try_recv() {
                        self.rounds.handle(command, Now::read());
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            let Self { rtp, rtcp, rounds, .. } = &mut self;
            rounds.run(Now::read(), |datagrams, counters| flush(rtp, rtcp, datagrams, counters));
            self.listen();
            let Self { rtp, rtcp, rounds, .. } = &mut self;
            rounds.flush(|datagrams, counters| flush(rtp, rtcp, datagrams, counters));
        }
    }

    /// Reads what receivers report.
    fn listen(&mut self) {
        let mut buffer = [0; 1500];
        for _ in 0..REPORTS {
            let Ok((length, from)) = self.rtcp.recv_from(&mut buffer) else { return };
            self.rounds.hear(&mut buffer[..length], from, Now::read());
        }
    }
}

fn flush(rtp: &UdpSocket, rtcp: &UdpSocket, datagrams: &mut Datagrams, counters: &Counters) {
    datagrams.rtp.flush(rtp);
    datagrams.rtcp.flush(rtcp);
    datagrams.again.flush(rtp);
    let failed = datagrams.rtp.failures() + datagrams.rtcp.failures() + datagrams.again.failures();
    let failed = failed + datagrams.flush_shared();
    if failed > 0 {
        counters.failed_sends.fetch_add(failed, Ordering::Relaxed);
    }
}
