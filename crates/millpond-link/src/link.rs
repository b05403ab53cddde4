//! Two TUN devices, and a thread for each direction between them.

use crate::direction::{Direction, Fate, Impairments};
use crate::lateness::Lateness;
use crate::pending::Pending;
use crate::report::{DirectionReport, Report};
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use std::{io, thread};
use thiserror::Error;
use tun_rs::{DeviceBuilder, Layer, SyncDevice};

/// Packets of one direction that may be on their way at once: half a second of 1 Gbit/s. Later ones are dropped and counted.
pub const PENDING: usize = 1 << 16;

/// MTU of the devices, in bytes.
const MTU: u16 = 1500;

/// Packets that a device holds until the link has read them.
const DEVICE_QUEUE: u32 = 10_000;

/// Packets read before packets that are due are delivered.
const READ_AT_ONCE: usize = 64;

/// The greatest interval between looks at whether the link has ended or changed.
const LOOK: Duration = Duration::from_millis(20);

/// The nice value of the threads, where permitted: a link that is late impairs more than it was told to.
const NICE: i32 = -19;

/// Why a link can't start.
#[derive(Debug, Error)]
pub enum LinkError {
    /// A TUN device can't be made. This needs the capability CAP_NET_ADMIN and `/dev/net/tun`.
    #[error("a TUN device can't be made: {0}")]
    Device(io::Error),
    /// A thread can't start.
    #[error("a thread can't start: {0}")]
    Thread(io::Error),
}

/// A running link. It ends when dropped, and its devices vanish.
///
/// The devices pass whole packets without link-layer headers, and announce no offloads. So the kernel hands over packets of at
/// most the MTU with their checksums, never a train of them.
#[derive(Debug)]
pub struct Link {
    names: [String; 2],
    is_ended: Arc<AtomicBool>,
    changes: [Sender<Impairments>; 2],
    threads: Vec<JoinHandle<DirectionReport>>,
}

impl Link {
    /// Makes two devices and carries packets between them: those of the first device as the first direction decides.
    ///
    /// # Errors
    /// See [`LinkError`].
    pub fn start(directions: [Direction; 2]) -> Result<Self, LinkError> {
        let (a, b) = (device()?, device()?);
        let names = [a.name().map_err(LinkError::Device)?, b.name().map_err(LinkError::Device)?];
        let (a, b) = (Arc::new(a), Arc::new(b));
        let (change_ab, changes_ab) = channel();
        let (change_ba, changes_ba) = channel();
        let is_ended = Arc::new(AtomicBool::new(false));
        let mut link = Self {
            names,
            is_ended: Arc::clone(&is_ended),
            changes: [change_ab, change_ba],
            threads: Vec::with_capacity(2),
        };
        let [ab, ba] = directions;
        for (name, from, to, direction, changes) in
            [("link-ab", &a, &b, ab, changes_ab), ("link-ba", &b, &a, ba, changes_ba)]
        {
            let carrier = Carrier::new(from, to, direction, changes, &is_ended);
            let thread = thread::Builder::new().name(name.to_owned()).spawn(|| carrier.run());
            link.threads.push(thread.map_err(LinkError::Thread)?);
        }
        Ok(link)
    }

    /// The names of the devices as they were made.
    pub fn names(&self) -> [&str; 2] {
        [&self.names[0], &self.names[1]]
    }

    /// Replaces the impairments of a direction, 0 or 1. It takes effect within 20 ms.
    ///
    /// # Panics
    /// If there is no such direction.
    pub fn change(&self, direction: usize, impairments: Impairments) {
        // The thread receives as long as the link lives.
        let _ = self.changes[direction].send(impairments);
    }

    /// Ends the link and returns its counters. `None` if a thread panicked.
    pub fn end(mut self) -> Option<Report> {
        self.is_ended.store(true, Ordering::Relaxed);
        let mut reports = self.threads.drain(..).map(|thread| thread.join().ok());
        let (ab, ba) = (reports.next()??, reports.next()??);
        drop(reports);
        Some(Report { ab, ba })
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.is_ended.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

fn device() -> Result<SyncDevice, LinkError> {
    let made = DeviceBuilder::new()
        .name("mplink%d")
        .layer(Layer::L3)
        .mtu(MTU)
        .tx_queue_len(DEVICE_QUEUE)
        .packet_information(false)
        .offload(false)
        .enable(false)
        .build_sync()
        .map_err(LinkError::Device)?;
    made.set_nonblocking(true).map_err(LinkError::Device)?;
    Ok(made)
}

/// One direction at work.
struct Carrier {
    from: Arc<SyncDevice>,
    to: Arc<SyncDevice>,
    direction: Direction,
    changes: Receiver<Impairments>,
    is_ended: Arc<AtomicBool>,
    start: Instant,
    pending: Pending,
    late: Lateness,
    written: u64,
    written_bytes: u64,
    overflowed: u64,
    refused: u64,
}

impl Carrier {
    fn new(
        from: &Arc<SyncDevice>,
        to: &Arc<SyncDevice>,
        direction: Direction,
        changes: mpsc::Receiver<Impairments>,
        is_ended: &Arc<AtomicBool>,
    ) -> Self {
        Self {
            from: Arc::clone(from),
            to: Arc::clone(to),
            direction,
            changes,
            is_ended: Arc::clone(is_ended),
            start: Instant::now(),
            pending: Pending::default(),
            late: Lateness::default(),
            written: 0,
            written_bytes: 0,
            overflowed: 0,
            refused: 0,
        }
    }

    fn run(mut self) -> DirectionReport {
        // Timers of 1 ns instead of 50 us of slack. Both calls may fail: the lateness in the report shows it.
        let _ = nix::sys::prctl::set_timerslack(1);
        let _ = rustix::process::setpriority_process(None, NICE);
        let mut buffer = vec![0; usize::from(MTU)];
        while !self.is_ended.load(Ordering::Relaxed) {
            while let Ok(impairments) = self.changes.try_recv() {
                self.direction.change(impairments);
            }
            self.deliver();
            self.wait();
            self.read(&mut buffer);
        }
        DirectionReport {
            written: self.written,
            written_bytes: self.written_bytes,
            overflowed: self.overflowed,
            refused: self.refused,
            ..DirectionReport::new(self.direction.tally(), self.late.report())
        }
    }

    /// Writes packets that are due.
    fn deliver(&mut self) {
        while let Some((due, packet)) = self.pending.pop(self.start.elapsed()) {
            match self.to.send(&packet) {
                Ok(_) => {
                    self.written += 1;
                    self.written_bytes += packet.len() as u64;
                    self.late.add(self.start.elapsed().saturating_sub(due));
                }
                // A device that is down refuses packets, as an unplugged cable would.
                Err(_) => self.refused += 1,
            }
        }
    }

    /// Waits for a packet, the next delivery or the next look.
    fn wait(&self) {
        let due = self.pending.due().map_or(LOOK, |due| due.saturating_sub(self.start.elapsed()));
        let timeout = TimeSpec::from_duration(due.min(LOOK));
        let mut polled = [PollFd::new(self.from.as_fd(), PollFlags::POLLIN)];
        // Interruptions and timeouts are the same here: the caller reads what there is.
        let _ = ppoll(&mut polled, Some(timeout), None);
    }

    /// Reads packets and decides about them.
    fn read(&mut self, buffer: &mut [u8]) {
        for _ in 0..READ_AT_ONCE {
            // Errors other than an empty device are those of a device that is down.
            let Ok(length) = self.from.recv(buffer) else { return };
            let packet = &buffer[..length];
            if let Fate::Delivered { at, copy } = self.direction.arrive(self.start.elapsed(), length) {
                for at in [Some(at), copy].into_iter().flatten() {
                    self.keep(at, packet);
                }
            }
        }
    }

    fn keep(&mut self, at: Duration, packet: &[u8]) {
        if self.pending.len() < PENDING {
            self.pending.push(at, packet.to_vec());
        } else {
            self.overflowed += 1;
        }
    }
}
