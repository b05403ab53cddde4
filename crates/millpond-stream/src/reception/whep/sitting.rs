//! One connection to a WHEP endpoint.

use super::{AnsweredTracks, Closed, Loss, WhepSource};
use crate::{
    calling_webrtc::{Called, CalledSession, Link},
    graph::Output,
    reception::{
        ReceivedPackets,
        announced::Received,
        assembly::{Assembly, COUNT},
        attendance::Rhythm,
        rtsp::{link::Stopwatch, tracks::Tracks},
    },
    source_health::{SourceCounts, SourceErrorKind},
};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Silence of frames after which a source is lost.
const STALL: Duration = Duration::from_secs(5);
/// Time between two receiver reports, and between two looks at the clock.
const REPORT: Duration = Duration::from_secs(5);
/// Most changes of the format in which a track is sent. Later packets of other formats are left out.
const CHANGES: u32 = 16;

/// A connection, and what the server sends on it.
pub(super) type Opened = (Called, AnsweredTracks);

/// One connection. The server is told its end when it is dropped.
pub(super) struct Sitting<'a> {
    source: &'a WhepSource,
    /// Closed before the session is ended.
    link: Link,
    _session: CalledSession,
    answered: AnsweredTracks,
    tracks: Tracks,
    /// Channel of each track.
    channels: Vec<Option<u8>>,
    packets: ReceivedPackets,
    watch: Stopwatch,
    began: Duration,
    /// Changes of formats so far.
    changes: u32,
    /// Time of the next receiver reports.
    reports: Duration,
    /// Time from which counts are told again.
    counts: Duration,
}

impl<'a> Sitting<'a> {
    /// Begins to receive.
    ///
    /// # Errors
    /// The media can't be received.
    pub(super) fn new(
        source: &'a WhepSource,
        (Called { link, keys, session }, answered): Opened,
        assembly: &mut Assembly,
        watch: Stopwatch,
    ) -> Result<Self, Loss> {
        let began = watch.now();
        let Received { mut tracks, passed: channels, .. } = answered.media()?.receive(assembly, began)?;
        tracks.ask_as_of_a_server();
        let packets = ReceivedPackets::new(&keys, answered.received(), answered.arrivals);
        Ok(Self {
            source,
            link,
            _session: session,
            answered,
            tracks,
            channels,
            packets,
            watch,
            began,
            changes: 0,
            reports: began + REPORT,
            counts: began,
        })
    }

    /// Whether it has given a frame.
    pub(super) fn has_given(&self) -> bool {
        self.tracks.rhythm().is_some()
    }

    /// Returns the counts so far.
    pub(super) fn counts(&self) -> SourceCounts {
        self.tracks.counts()
    }

    /// Receives until the source is lost. Returns why.
    pub(super) async fn run(&mut self, assembly: &mut Assembly, output: &Output) -> Result<Loss, Closed> {
        loop {
            self.link.wait(Some(self.next(assembly))).await;
            let turned = self.turn(assembly);
            let now = self.watch.now();
            assembly.tick(now);
            let loss = turned.err().or_else(|| self.problem(now, assembly));
            if loss.is_some() {
                assembly.flush();
            }
            if let Some(run) = assembly.take_run() {
                output.send(run).await.map_err(|_| Closed)?;
            }
            if matches!(output, Output::Fork(fork) if fork.is_closed()) {
                return Err(Closed);
            }
            if let Some(loss) = loss {
                return Ok(loss);
            }
        }
    }

    /// Time of the next turn.
    fn next(&self, assembly: &Assembly) -> Instant {
        let times = [Some(self.reports), Some(self.silent()), self.tracks.wake(), assembly.wake()];
        let wake = times.into_iter().flatten().fold(self.reports, Duration::min);
        let wake = Instant::now() + wake.saturating_sub(self.watch.now());
        self.packets.next().map_or(wake, |report| report.min(wake))
    }

    /// Takes what has arrived, and sends what is due.
    fn turn(&mut self, assembly: &mut Assembly) -> Result<(), Loss> {
        let mut received = Vec::new();
        let Self { link, packets, .. } = self;
        let turned = link.turn(Instant::now(), |_, datagram| received.extend(packets.take(datagram)));
        let now = self.watch.now();
        for (channel, packet) in received {
            // Channels of RTP are even numbers.
            let (rtp, is_rtcp) = (channel & !1, channel & 1 == 1);
            if let Some(place) = self.channels.iter().position(|own| *own == Some(rtp)) {
                self.tracks.packet(place, is_rtcp, &packet, now, assembly);
            }
        }
        self.follow(now, assembly)?;
        self.tracks.tick(now, assembly);
        self.report(now, assembly);
        Ok(turned?)
    }

    /// Goes on with the format in which the server sends, where it is another one than before.
    fn follow(&mut self, now: Duration, assembly: &mut Assembly) -> Result<(), Loss> {
        let other = self.packets.take_other().filter(|_| self.changes < CHANGES);
        if !other.is_some_and(|payload_type| self.answered.turn_to(payload_type)) {
            return Ok(());
        }
        self.changes += 1;
        assembly.end(self.tracks.counts());
        let Received { mut tracks, passed, .. } = self.answered.media()?.receive(assembly, now)?;
        tracks.ask_as_of_a_server();
        (self.tracks, self.channels) = (tracks, passed);
        self.packets.turn_to(self.answered.received());
        Ok(())
    }

    /// Sends requests and reports that are due. Tells counts, and looks at the clock.
    fn report(&mut self, now: Duration, assembly: &mut Assembly) {
        let mut compounds: Vec<Vec<u8>> = self.tracks.feedback(now).map(|(_, request)| request).collect();
        if now >= self.reports {
            self.reports = now + REPORT;
            compounds.extend(self.tracks.reports(now).map(|(_, report)| report));
            if let Ok(unix) = SystemTime::now().duration_since(UNIX_EPOCH) {
                assembly.set_clock(unix, now);
            }
        }
        let Self { link, packets, .. } = self;
        let sealed = compounds.into_iter().filter_map(|compound| packets.seal(compound));
        sealed.for_each(|compound| link.send(compound));
        if let Some(arrivals) = packets.report() {
            link.send(arrivals);
        }
        if now >= self.counts {
            self.counts = now + COUNT;
            assembly.count(self.tracks.counts());
        }
    }

    /// Time at which a source that gives no frame is lost.
    fn silent(&self) -> Duration {
        match self.tracks.rhythm() {
            Some(Rhythm { last, longest }) if self.tracks.has_begun() => last + STALL.max(3 * longest),
            _ => self.began + self.source.timeout,
        }
    }

    /// Why there are no frames, or no more.
    fn problem(&mut self, now: Duration, assembly: &mut Assembly) -> Option<Loss> {
        if self.has_given() && self.tracks.have_ended() {
            return Some(Loss::new(SourceErrorKind::Unreachable, "the server has ended the tracks (BYE)"));
        }
        if now < self.silent() {
            return None;
        }
        let since = now.saturating_sub(self.began).as_secs_f64();
        let (kind, words) = match self.tracks.rhythm() {
            // Sound may go on where pictures show no parameter sets.
            Some(_) if !self.tracks.has_begun() && self.tracks.begin_without(assembly) => return None,
            Some(_) if !self.tracks.has_begun() => {
                (SourceErrorKind::NoMedia, format!("no key frame with parameter sets for {since:.1} s"))
            }
            Some(Rhythm { last, .. }) => {
                let silence = now.saturating_sub(last).as_secs_f64();
                (SourceErrorKind::TimedOut, format!("no frame for {silence:.1} s"))
            }
            None if self.tracks.counts().packets > 0 => {
                (SourceErrorKind::TimedOut, format!("packets arrive, but no whole frame for {since:.1} s"))
            }
            None => {
                let words = format!("no packet for {since:.1} s after the connection: is the stream published?");
                (SourceErrorKind::TimedOut, words)
            }
        };
        Some(Loss::new(kind, words))
    }
}
