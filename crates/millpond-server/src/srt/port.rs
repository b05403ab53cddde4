//! The UDP port of all sessions.

use super::{
    CurrentSrt, Srt, SrtSettings, metrics::SrtMetrics, refusal::Refused, session::NewSession, sessions::Sessions,
};
use millpond_access::random;
use millpond_connections::Slots;
use millpond_srt::{ConnectionRequest, Destination, SrtArrival, SrtListener};
use socket2::{Domain, Protocol, Socket, Type};
use std::{
    io,
    net::{SocketAddr, UdpSocket},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::sync::watch;

/// Longest datagram that is read: more than any peer sends.
const DATAGRAM: usize = 2048;
/// Datagrams that are read before other tasks get a turn.
const TURN: usize = 64;
/// Bytes of the kernel's buffers: bursts of publishers, and pictures for many viewers.
const BUFFER: usize = 4 << 20;

/// The SRT end of a server.
pub(crate) struct SrtPort {
    pub(super) socket: Arc<UdpSocket>,
    address: SocketAddr,
    listener: SrtListener,
    pub(super) sessions: Arc<Sessions>,
    /// Places of sessions, and of callers whose request is looked at.
    pub(super) slots: Arc<Slots>,
    pub(super) metrics: SrtMetrics,
    /// Start of the clock of all connections.
    pub(super) clock: Instant,
    numbers: AtomicU64,
    stop: watch::Sender<bool>,
}

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

impl SrtPort {
    /// Opens the port; `None` where SRT is off.
    ///
    /// # Errors
    /// The port is taken, or the system gives no random bytes.
    pub(crate) fn open(
        settings: &SrtSettings,
        max_connections: usize,
        metrics: &SrtMetrics,
    ) -> io::Result<Option<Arc<Self>>> {
        let Some(address) = settings.address else { return Ok(None) };
        let socket = open(address)?;
        Ok(Some(Arc::new(Self {
            address: socket.local_addr()?,
            socket: Arc::new(socket),
            listener: SrtListener::new(random::bytes()?),
            sessions: Arc::default(),
            slots: Slots::new(max_connections),
            metrics: metrics.clone(),
            clock: Instant::now(),
            numbers: AtomicU64::new(1),
            stop: watch::Sender::new(false),
        })))
    }

    /// The address of the port.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Puts a limit of sessions in force.
    pub(crate) fn take_over(&self, max_connections: usize) {
        self.slots.set_most(max_connections);
    }

    /// The time of the connections' clock.
    pub(super) fn now(&self) -> Duration {
        self.clock.elapsed()
    }

    /// A number for a session, which no other one has.
    pub(super) fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// Takes datagrams until `stop` turns true. Then all sessions end.
    pub(crate) async fn run(self: Arc<Self>, current: CurrentSrt, mut stop: watch::Receiver<bool>) {
        tokio::select! {
            () = self.receive(&current) => {}
            _ = stop.wait_for(|stop| *stop) => {}
        }
        self.stop.send_replace(true);
    }

    /// Takes datagrams, without an end.
    async fn receive(self: &Arc<Self>, current: &CurrentSrt) {
        let socket = match self.socket.try_clone().and_then(tokio::net::UdpSocket::from_std) {
            Ok(socket) => socket,
            Err(error) => return tracing::error!(%error, "the SRT port can't be read"),
        };
        let mut buffer = [0; DATAGRAM];
        while socket.readable().await.is_ok() {
            for _ in 0..TURN {
                match socket.try_recv_from(&mut buffer) {
                    Ok((length, from)) => self.take(&buffer[..length], from, current),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    // An earlier datagram could not be delivered (ICMP).
                    Err(_) => {}
                }
            }
            tokio::task::yield_now().await;
        }
    }

    /// Gives a datagram to its session, or answers it. A caller that has not returned its cookie leaves nothing here.
    fn take(self: &Arc<Self>, datagram: &[u8], from: SocketAddr, current: &CurrentSrt) {
        let is_taken = match Destination::of(datagram) {
            Some(Destination::Connection(socket)) => self.sessions.give(socket, from, datagram),
            Some(Destination::Listener(socket)) if self.sessions.give_again((from, socket), datagram) => true,
            Some(Destination::Listener(_)) => match self.listener.receive(from, datagram, self.now()) {
                SrtArrival::Nothing => false,
                SrtArrival::Answer(answer) => {
                    let _ = self.socket.send_to(&answer, from);
                    true
                }
                SrtArrival::Request(request) => {
                    self.begin(request, &current.load_full());
                    true
                }
            },
            None => false,
        };
        if !is_taken {
            self.metrics.foreign.inc();
        }
    }

    /// Begins the session of a request, which may still be refused.
    fn begin(self: &Arc<Self>, request: Box<ConnectionRequest>, srt: &Arc<Srt>) {
        let client = request.peer().ip().to_canonical();
        let Some(slot) = self.slots.take() else {
            return self.refuse(&request, None, &Refused::Busy(self.slots.why()), srt);
        };
        let now = srt.sources.manager().clock().elapsed();
        let counted = srt.gates.count_request(client, now).and_then(|()| srt.gates.count_connection(client));
        let counted = match counted {
            Ok(counted) => counted,
            Err(limited) => return self.refuse(&request, None, &limited.into(), srt),
        };
        let caller = (request.peer(), request.socket());
        let Some(entry) = self.sessions.enter(caller, || fastrand::u32(..)) else { return };
        let new = NewSession { port: self.clone(), srt: srt.clone(), entry, holds: (slot, counted) };
        tokio::spawn(new.run(request, self.stop.subscribe()));
    }

    /// Refuses a request. `path` is that of the stream, where it is known.
    pub(super) fn refuse(&self, request: &ConnectionRequest, path: Option<&str>, why: &Refused, srt: &Srt) {
        self.metrics.refused.inc();
        let (peer, code) = (request.peer(), why.code());
        let _ = self.socket.send_to(&request.refuse(code, self.now()), peer);
        if srt.access_log {
            let code = code.code();
            tracing::info!(target: millpond_logging::ACCESS, %peer, asset = path, code, why = %why, "SRT connection refused");
        }
    }
}
