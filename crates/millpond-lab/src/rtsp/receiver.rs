//! The thread that receives UDP: it looks at all its sockets many times a second, never at single packets.
//!
//! Packets wait in the kernel with their exact time on them, so looking seldom costs no precision, and one system call
//! takes all packets of a client since the last look.

use super::{
    batch::Batch,
    clock::Clock,
    figures::{Counters, MediaCounts, MediaFigures},
    media::{Event, HEAD, Media},
    ports::{Ports, keep_stamping},
};
use std::{
    collections::BTreeMap,
    io,
    net::SocketAddr,
    sync::{
        Arc,
        mpsc::{Receiver as Commands, Sender, TryRecvError, channel},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};
use tokio::sync::mpsc;

/// Between two looks at the media.
const LOOK: Duration = Duration::from_millis(20);
/// Between two looks at RTCP and for silence.
const LOOK_AROUND: Duration = Duration::from_secs(1);
/// Between two receiver reports, in looks around: 5 s (RFC 3550 6.2).
const REPORT_EVERY: u64 = 5;
/// Packets taken in one call: those of a few frames.
const PACKETS: usize = 32;
/// The longest RTCP packet that is read whole: a report and a BYE have some 100 bytes.
const CONTROL: usize = 1500;
/// Events that wait for a client. One that finds no room is offered again with the next look.
const EVENTS: usize = 4;

/// A command to a receiving thread.
enum Command {
    Add(u64, Box<ClientMedia>),
    Play(u64, Duration),
    Pause(u64),
    Remove(u64),
    Stop,
}

/// The session of one client.
struct ClientMedia {
    media: Media,
    /// Each track's, and where its receiver reports go.
    ports: Vec<(Arc<Ports>, Option<SocketAddr>)>,
    events: mpsc::Sender<(Duration, Event)>,
    /// Found no room.
    waiting: Option<(Duration, Event)>,
}

/// The way to a receiving thread.
#[derive(Clone, Debug)]
pub(crate) struct Receiver {
    /// A queue without a bound: a client has a handful of commands in all, and the thread takes them many times a second.
    commands: Sender<Command>,
}

/// A session at a receiving thread: gone from there when dropped.
#[derive(Debug)]
pub(crate) struct Reception {
    number: u64,
    receiver: Receiver,
    events: mpsc::Receiver<(Duration, Event)>,
    /// When the last PLAY was sent: events of one before are of no use any more.
    since: Duration,
}

/// Starts a thread. It ends when it is told to, or when its last handle is dropped, and returns its measurements.
pub(crate) fn start(
    name: String,
    clock: Clock,
    counters: Arc<Counters>,
) -> io::Result<(Receiver, JoinHandle<MediaFigures>)> {
    let (commands, told) = channel();
    let stamping = keep_stamping()?;
    let body = move || {
        let figures = Looking::new(clock, counters).run(&told);
        drop(stamping);
        figures
    };
    let thread = std::thread::Builder::new().name(name).spawn(body)?;
    Ok((Receiver { commands }, thread))
}

impl Receiver {
    /// Hands a session over, with a number that no other has.
    pub(crate) fn add(&self, number: u64, media: Media, ports: Vec<(Arc<Ports>, Option<SocketAddr>)>) -> Reception {
        let (sender, events) = mpsc::channel(EVENTS);
        self.tell(Command::Add(number, Box::new(ClientMedia { media, ports, events: sender, waiting: None })));
        Reception { number, receiver: self.clone(), events, since: Duration::ZERO }
    }

    /// Has the thread end.
    pub(crate) fn stop(&self) {
        self.tell(Command::Stop);
    }

    fn tell(&self, command: Command) {
        // The thread lives as long as a sender of commands.
        let _ = self.commands.send(command);
    }
}

impl Reception {
    /// See [`Media::play`].
    pub(crate) fn play(&mut self, now: Duration) {
        self.since = now;
        self.receiver.tell(Command::Play(self.number, now));
    }

    /// See [`Media::pause`].
    pub(crate) fn pause(&self) {
        self.receiver.tell(Command::Pause(self.number));
    }

    /// Returns what happens next.
    pub(crate) async fn event(&mut self) -> Event {
        loop {
            match self.events.recv().await {
                Some((since, event)) if since == self.since => return event,
                Some(_) => {}
                // Only when the thread has ended before its clients, which is a defect here.
                None => std::future::pending().await,
            }
        }
    }
}

impl Drop for Reception {
    fn drop(&mut self) {
        self.receiver.tell(Command::Remove(self.number));
    }
}

/// The thread's own.
struct Looking {
    clock: Clock,
    counters: Arc<Counters>,
    streams: BTreeMap<u64, ClientMedia>,
    figures: MediaFigures,
    told: MediaCounts,
    packets: Batch<PACKETS>,
    control: Batch<8>,
    /// Looks around so far.
    around: u64,
}

impl Looking {
    fn new(clock: Clock, counters: Arc<Counters>) -> Self {
        Self {
            clock,
            counters,
            streams: BTreeMap::new(),
            figures: MediaFigures::default(),
            told: MediaCounts::default(),
            packets: Batch::new(HEAD),
            control: Batch::new(CONTROL),
            around: 0,
        }
    }

    fn run(mut self, commands: &Commands<Command>) -> MediaFigures {
        let mut around = Instant::now() + LOOK_AROUND;
        loop {
            let began = Instant::now();
            loop {
                match commands.try_recv() {
                    Ok(Command::Stop) | Err(TryRecvError::Disconnected) => return self.finish(),
                    Ok(command) => self.obey(command),
                    Err(TryRecvError::Empty) => break,
                }
            }
            self.look();
            if began >= around {
                self.look_around();
                around = began + LOOK_AROUND;
            }
            std::thread::sleep(LOOK.saturating_sub(began.elapsed()));
        }
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Stop => {}
            Command::Add(number, stream) => drop(self.streams.insert(number, *stream)),
            Command::Remove(number) => {
                let Some(mut stream) = self.streams.remove(&number) else { return };
                stream.look(self.clock, &mut self.packets, &mut self.figures);
                stream.media.finish(&mut self.figures);
            }
            Command::Play(number, now) => {
                let Some(stream) = self.streams.get_mut(&number) else { return };
                stream.waiting = None;
                stream.media.play(now);
            }
            Command::Pause(number) => {
                let Some(stream) = self.streams.get_mut(&number) else { return };
                stream.media.pause();
            }
        }
    }

    fn finish(mut self) -> MediaFigures {
        // Of clients that did not leave in time.
        for stream in self.streams.values_mut() {
            stream.media.finish(&mut self.figures);
        }
        self.figures
    }

    fn look(&mut self) {
        for stream in self.streams.values_mut() {
            stream.look(self.clock, &mut self.packets, &mut self.figures);
            stream.feed_back(self.clock, &mut self.control);
            stream.tell();
        }
        self.counters.add(&mut self.told, self.figures.counts);
    }

    fn look_around(&mut self) {
        self.around += 1;
        for (number, stream) in &mut self.streams {
            stream.look_around(self.clock, &mut self.control);
            // Spread over the time between two: not all at once.
            if (self.around + number).is_multiple_of(REPORT_EVERY) {
                stream.report(self.clock.now());
            }
        }
    }
}

impl ClientMedia {
    fn look(&mut self, clock: Clock, batch: &mut Batch<PACKETS>, figures: &mut MediaFigures) {
        for (track, (ports, _)) in self.ports.iter().enumerate() {
            batch.receive(&ports.rtp, |packet| {
                let arrival = packet.stamp.map_or_else(|| clock.now(), |stamp| clock.at(stamp));
                self.media.rtp(track, packet.bytes, packet.length, arrival, figures);
            });
        }
    }

    /// Sends the reports that are due as feedback, after the sender reports that they answer were read.
    fn feed_back(&mut self, clock: Clock, batch: &mut Batch<8>) {
        let now = clock.now();
        let due: Vec<usize> = (0..self.ports.len()).filter(|track| self.media.is_feedback_due(*track, now)).collect();
        if due.is_empty() {
            return;
        }
        self.control(clock, batch);
        due.into_iter().for_each(|track| self.report_track(track, now));
    }

    fn look_around(&mut self, clock: Clock, batch: &mut Batch<8>) {
        self.control(clock, batch);
        self.media.check(clock.now());
        self.tell();
    }

    /// Reads RTCP.
    fn control(&mut self, clock: Clock, batch: &mut Batch<8>) {
        for (track, (ports, _)) in self.ports.iter().enumerate() {
            batch.receive(&ports.rtcp, |packet| {
                let arrival = packet.stamp.map_or_else(|| clock.now(), |stamp| clock.at(stamp));
                self.media.rtcp(track, packet.bytes, arrival);
            });
        }
    }

    fn tell(&mut self) {
        while let Some(event) = self.waiting.take().or_else(|| self.media.event()) {
            match self.events.try_send(event) {
                Ok(()) => {}
                Err(mpsc::error::TrySendError::Full(event)) => {
                    self.waiting = Some(event);
                    return;
                }
                // The session has ended, and the command to forget it is on its way.
                Err(mpsc::error::TrySendError::Closed(_)) => return,
            }
        }
    }

    fn report(&mut self, now: Duration) {
        (0..self.ports.len()).for_each(|track| self.report_track(track, now));
    }

    fn report_track(&mut self, track: usize, now: Duration) {
        let (ports, to) = &self.ports[track];
        if let (Some(to), Some(report)) = (to, self.media.report(track, now)) {
            // A report that can't be sent is one that was lost.
            let _ = ports.rtcp.send_to(&report, to);
        }
    }
}
