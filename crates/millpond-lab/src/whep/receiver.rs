//! The thread that receives: it looks at all its sockets many times a second, never at single packets.

use super::{
    failure::{Failure, FailureKind},
    media::{Event, Media},
    session::Common,
    tally::Step,
};
use crate::rtsp::{
    batch::Batch,
    figures::{MediaCounts, MediaFigures},
    ports::keep_stamping,
};
use std::{
    io,
    net::UdpSocket,
    sync::{
        Arc,
        mpsc::{Receiver as Commands, Sender, TryRecvError, channel},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

/// Between two looks at the media.
const LOOK: Duration = Duration::from_millis(20);
/// Between two looks for silence.
const LOOK_AROUND: Duration = Duration::from_secs(1);
/// Packets taken in one call: those of a few frames.
const PACKETS: usize = 32;
/// Bytes kept of each packet: checks of ICE and reports are read whole.
const KEPT: usize = 320;

/// A command to a receiving thread.
enum Command {
    Add(Box<Reception>),
    Stop,
}

/// A viewer that has connected.
pub(crate) struct Reception {
    pub(crate) media: Media,
    /// Connected to the server.
    pub(crate) socket: Arc<UdpSocket>,
    /// When the offer was sent.
    pub(crate) asked: Duration,
}

/// The way to a receiving thread.
#[derive(Clone, Debug)]
pub(crate) struct Receiver {
    /// A queue without a bound: a viewer has one command in all, and the thread takes them many times a second.
    commands: Sender<Command>,
}

impl Receiver {
    /// Hands a viewer over.
    pub(crate) fn add(&self, reception: Reception) {
        self.tell(Command::Add(Box::new(reception)));
    }

    /// Has the thread end.
    pub(crate) fn stop(&self) {
        self.tell(Command::Stop);
    }

    fn tell(&self, command: Command) {
        // After the end of the run nobody counts.
        let _ = self.commands.send(command);
    }
}

/// A thread that will start: sessions know the way to it first.
pub(crate) struct Receiving(Commands<Command>);

/// Makes the way to a thread.
pub(crate) fn prepare() -> (Receiver, Receiving) {
    let (commands, told) = channel();
    (Receiver { commands }, Receiving(told))
}

impl Receiving {
    /// Starts the thread. It ends when it is told to, or when its last handle is dropped, and returns its measurements.
    pub(crate) fn start(self, name: String, common: Arc<Common>) -> io::Result<JoinHandle<MediaFigures>> {
        let stamping = keep_stamping()?;
        std::thread::Builder::new().name(name).spawn(move || {
            let figures = Looking::new(common).run(&self.0);
            drop(stamping);
            figures
        })
    }
}

/// The thread's own.
struct Looking {
    common: Arc<Common>,
    viewers: Vec<Reception>,
    figures: MediaFigures,
    told: MediaCounts,
    packets: Batch<PACKETS>,
}

impl Looking {
    fn new(common: Arc<Common>) -> Self {
        Self {
            common,
            viewers: Vec::new(),
            figures: MediaFigures::default(),
            told: MediaCounts::default(),
            packets: Batch::new(KEPT),
        }
    }

    fn run(mut self, commands: &Commands<Command>) -> MediaFigures {
        let mut around = Instant::now() + LOOK_AROUND;
        loop {
            let began = Instant::now();
            loop {
                match commands.try_recv() {
                    Ok(Command::Add(reception)) => self.viewers.push(*reception),
                    Ok(Command::Stop) | Err(TryRecvError::Disconnected) => return self.finish(),
                    Err(TryRecvError::Empty) => break,
                }
            }
            self.look(began >= around);
            if began >= around {
                around = began + LOOK_AROUND;
            }
            std::thread::sleep(LOOK.saturating_sub(began.elapsed()));
        }
    }

    fn finish(mut self) -> MediaFigures {
        for viewer in &mut self.viewers {
            viewer.media.finish(&mut self.figures);
        }
        self.figures
    }

    fn look(&mut self, around: bool) {
        let clock = self.common.clock;
        for viewer in &mut self.viewers {
            let Reception { media, socket, .. } = viewer;
            self.packets.receive(socket, |packet| {
                let arrival = packet.stamp.map_or_else(|| clock.now(), |stamp| clock.at(stamp));
                if let Some(answer) = media.datagram(packet.bytes, packet.length, arrival, &mut self.figures) {
                    // A datagram that can't be sent is one that was lost.
                    let _ = socket.send(&answer);
                }
            });
            for datagram in media.due(clock.now()).into_iter().flatten() {
                let _ = socket.send(&datagram);
            }
            if around {
                media.check_silence(clock.now());
            }
            viewer.tell(&self.common);
        }
        self.common.counters.add(&mut self.told, self.figures.counts);
    }
}

impl Reception {
    /// Notes what happened.
    fn tell(&mut self, common: &Common) {
        match self.media.event() {
            None => {}
            Some(Event::First(at)) => {
                let mut tally = common.tally();
                tally.starts += 1;
                tally.startup.record(at.saturating_sub(self.asked));
                tally.took(Step::Packet, at.saturating_sub(self.media.connected()));
                common.counters.started();
            }
            Some(Event::Silent(has_started)) => {
                let kind = if has_started { FailureKind::Stopped } else { FailureKind::NoMedia };
                let why = if has_started { "packets stopped" } else { "no packet came" };
                common.tally().failure(Failure::new(kind, why), &common.counters);
                if has_started {
                    common.counters.stopped();
                }
            }
        }
    }
}
