//! One session with a source, from the connection to its end.

use crate::{
    graph::Output,
    reception::{
        assembly::{Assembly, COUNT},
        attendance::Rhythm,
        rtsp::{
            connector::ConnectionEnds,
            link::{Link, LinkEvent, Stopwatch},
            teardown::TeardownGuard,
            tracks::{Chosen, Tracks, choose},
            turns::Turn,
        },
        source::{AfterEnd, LONGEST_TITLE, RtspSource, SourceTransport, StoredPolicy},
        udp::UdpMedia,
    },
    source_health::{SourceError, SourceErrorKind},
};
use millpond_rtp::{
    client::{ClientTrack, TrackTransport},
    play::NptRange,
    sdp_reader::SessionDescription,
    setup::Offer,
};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Silence after which a source is lost.
const STALL: Duration = Duration::from_secs(5);
/// The same after all of its tracks said BYE. Some servers say it, and go on.
const AFTER_BYE: Duration = Duration::from_secs(1);
/// Time by which the last frame may come before the end that the description states.
const EARLY_END: Duration = Duration::from_secs(1);
/// Time after PLAY within which the first UDP packet must arrive.
const UNHEARD: Duration = Duration::from_secs(3);
/// Time between two receiver reports, and between two looks at the clock.
const REPORT: Duration = Duration::from_secs(5);

/// A session with a source.
pub(in crate::reception) struct Session<'a> {
    source: &'a RtspSource,
    /// Transport of this session; `Auto` is UDP.
    transport: SourceTransport,
    assembly: &'a mut Assembly,
    watch: Stopwatch,
    guard: TeardownGuard,
    /// Kept until the session plays.
    turn: Option<Turn>,
    chosen: Vec<Chosen>,
    /// Length of the media, where the description states it.
    length: Option<Duration>,
    /// Shortest time from a request to its reply.
    round_trip: Option<Duration>,
    udp: UdpMedia,
    /// The tracks, once they are set up.
    tracks: Option<Tracks>,
    /// Time of the reply to PLAY.
    playing: Option<Duration>,
    /// Time of the next receiver reports.
    reports: Duration,
    /// Time from which counts are told again.
    counts: Duration,
    /// Whether a packet of RTP or RTCP arrived by UDP: packets can come this way.
    is_heard: bool,
}

/// The end of a session.
#[derive(Debug)]
pub(in crate::reception) enum End {
    /// Nobody takes frames any more, or the media is over.
    Closed,
    /// The source is lost.
    Lost(SourceError),
    /// No packet arrived by UDP.
    Unheard,
}

impl<'a> Session<'a> {
    pub(in crate::reception) fn new(
        source: &'a RtspSource,
        transport: SourceTransport,
        assembly: &'a mut Assembly,
        watch: Stopwatch,
        (link, turn): (Link, Turn),
    ) -> Self {
        Self {
            guard: TeardownGuard::new(link, source.policies.teardown),
            turn: Some(turn),
            source,
            transport,
            assembly,
            watch,
            chosen: Vec::new(),
            length: None,
            round_trip: None,
            udp: UdpMedia::default(),
            tracks: None,
            playing: None,
            reports: Duration::ZERO,
            counts: Duration::ZERO,
            is_heard: false,
        }
    }

    /// Receives until the session ends. Dropping the future tears the session down.
    pub(in crate::reception) async fn run(&mut self, output: &Output) -> End {
        let end = loop {
            if let Err(end) = self.advance() {
                break end;
            }
            if let Some(run) = self.assembly.take_run()
                && output.send(run).await.is_err()
            {
                break End::Closed;
            }
            let wake = self.wake();
            tokio::select! {
                () = self.guard.link().wait() => {}
                () = self.udp.readable() => self.read_udp(),
                () = self.watch.sleep_until(wake) => {}
            }
        };
        // Frames that were complete before the loss.
        self.assembly.flush();
        if let Some(run) = self.assembly.take_run()
            && output.send(run).await.is_err()
        {
            return End::Closed;
        }
        end
    }

    /// Handles all that happened, and all that is due.
    fn advance(&mut self) -> Result<(), End> {
        while let Some(event) = self.guard.link().take() {
            self.event(event)?;
        }
        let now = self.watch.now();
        let Some(tracks) = &mut self.tracks else { return Ok(()) };
        tracks.tick(now, self.assembly);
        self.assembly.tick(now);
        for (place, request) in tracks.feedback(now) {
            self.udp.report(place, &request);
        }
        if now >= self.counts {
            self.counts = now + COUNT;
            self.assembly.count(tracks.counts());
        }
        let Some(playing) = self.playing else { return Ok(()) };
        if now >= self.reports {
            self.reports = now + REPORT;
            self.report(now);
            if let Ok(unix) = SystemTime::now().duration_since(UNIX_EPOCH) {
                self.assembly.set_clock(unix, now);
            }
        }
        self.check(playing, now)
    }

    fn event(&mut self, event: LinkEvent) -> Result<(), End> {
        match event {
            LinkEvent::Described(description) => self.described(description),
            LinkEvent::Replied(took) => {
                self.round_trip = Some(self.round_trip.map_or(took, |shortest| shortest.min(took)));
                if let (Some(tracks), Some(took)) = (&mut self.tracks, self.round_trip) {
                    tracks.requested(took);
                }
                Ok(())
            }
            LinkEvent::Opened(agreed) => self.opened(&agreed),
            LinkEvent::Playing(playback) => {
                let now = self.watch.now();
                self.turn = None;
                if self.playing.is_none() {
                    self.reports = now + REPORT;
                    self.playing = Some(now);
                }
                if let Some(tracks) = &mut self.tracks {
                    tracks.playing(&playback, self.source.policies.rtp_info, self.assembly);
                }
                // Again, because the first packets may have met a server that did not expect them yet.
                self.udp.punch();
                Ok(())
            }
            LinkEvent::Media { channel, bytes } => {
                if let Some(tracks) = &mut self.tracks {
                    tracks.interleaved(channel, &bytes, self.watch.now(), self.assembly);
                }
                Ok(())
            }
            LinkEvent::Ended(Some(error)) => Err(End::Lost(SourceError::of(&error, self.source))),
            LinkEvent::Ended(None) => Err(self.lost(SourceErrorKind::Protocol, "the session is over")),
        }
    }

    fn lost(&self, kind: SourceErrorKind, words: impl Into<String>) -> End {
        End::Lost(SourceError { kind, address: self.source.to_string(), words: words.into() })
    }

    fn described(&mut self, mut description: SessionDescription) -> Result<(), End> {
        description.skip_back_channels();
        let description = &description;
        (self.tracks, self.playing, self.udp, self.is_heard) = (None, None, UdpMedia::default(), false);
        self.chosen = choose(description, self.assembly);
        self.length = description.range.and_then(|range| length(&range));
        let is_title = self.length.is_some_and(|length| length <= LONGEST_TITLE);
        if is_title && self.source.policies.stored == StoredPolicy::Refuse {
            return Err(self.lost(SourceErrorKind::StoredTitle, "it is a stored title, not a live stream"));
        }
        if self.chosen.is_empty() {
            let found: Vec<&str> = description.streams.iter().map(|stream| stream.encoding.as_str()).collect();
            let skipped = description.skipped.iter().map(|skipped| format!("; {skipped}")).collect::<String>();
            return Err(self.lost(SourceErrorKind::NoMedia, format!("no supported track among {found:?}{skipped}")));
        }
        if matches!(self.transport, SourceTransport::Auto | SourceTransport::Udp) {
            let opened =
                self.guard.link().addresses().and_then(|agreed| UdpMedia::open(self.chosen.len(), agreed.local.ip()));
            match opened {
                Ok(udp) => self.udp = udp,
                // A connection through something that is no TCP has no addresses.
                Err(error) if self.transport == SourceTransport::Auto => {
                    tracing::debug!(source = %self.source, %error, "no UDP ports, so media uses the connection");
                }
                Err(error) => return Err(self.lost(SourceErrorKind::Unreachable, format!("no UDP ports: {error}"))),
            }
        }
        let offers: Vec<(usize, Offer)> =
            self.chosen.iter().enumerate().map(|(place, chosen)| (chosen.stream, self.offer(place))).collect();
        self.guard.link().set_up(&offers);
        Ok(())
    }

    fn offer(&self, place: usize) -> Offer {
        match (self.transport, self.udp.ports(place)) {
            (SourceTransport::Multicast, _) => Offer::Multicast,
            (_, Some(ports)) => Offer::Unicast { ports, destination: None },
            (_, None) => Offer::Interleaved(None),
        }
    }

    /// Leaves out the tracks that the server did not set up.
    fn leave_out(&mut self, agreed: &[ClientTrack]) {
        let is_agreed = |chosen: &Chosen| agreed.iter().any(|track| track.stream == chosen.stream);
        let kept: Vec<bool> = self.chosen.iter().map(is_agreed).collect();
        for chosen in self.chosen.iter().filter(|chosen| !is_agreed(chosen)) {
            tracing::warn!(source = %self.source, section = chosen.stream, "the source refuses to set up a track, which is left out");
        }
        self.chosen.retain(is_agreed);
        self.udp.keep(&kept);
    }

    fn opened(&mut self, agreed: &[ClientTrack]) -> Result<(), End> {
        self.leave_out(agreed);
        let transports: Vec<TrackTransport> = agreed.iter().map(|track| track.transport).collect();
        if transports.iter().any(|transport| !matches!(transport, TrackTransport::Interleaved { .. })) {
            let agreed = self.guard.link().addresses();
            let agreed =
                agreed.and_then(|ConnectionEnds { local, peer }| self.udp.agree(&transports, local.ip(), peer.ip()));
            agreed.map_err(|error| self.lost(SourceErrorKind::Unreachable, format!("UDP: {error}")))?;
        } else {
            self.udp = UdpMedia::default();
        }
        let tracks = Tracks::new(std::mem::take(&mut self.chosen), agreed, self.watch.now());
        let mut tracks = tracks.map_err(|error| self.lost(SourceErrorKind::NoMedia, error.to_string()))?;
        if let Some(took) = self.round_trip {
            tracks.requested(took);
        }
        self.tracks = Some(tracks);
        self.udp.punch();
        self.guard.link().play();
        Ok(())
    }

    fn read_udp(&mut self) {
        let (now, assembly) = (self.watch.now(), &mut *self.assembly);
        let Some(tracks) = &mut self.tracks else { return };
        let is_heard = &mut self.is_heard;
        self.udp.receive(|place, is_rtcp, packet| {
            *is_heard = true;
            tracks.packet(place, is_rtcp, &packet, now, assembly);
        });
        if self.is_heard {
            self.guard.link().media_arrived();
        }
    }

    fn report(&mut self, now: Duration) {
        let Some(tracks) = &mut self.tracks else { return };
        for (place, (transport, report)) in tracks.reports(now).enumerate() {
            match transport {
                TrackTransport::Interleaved { channels: (_, rtcp) } => self.guard.link().offer(rtcp, &report),
                TrackTransport::Unicast { .. } | TrackTransport::Multicast { .. } => self.udp.report(place, &report),
            }
        }
    }

    /// Whether the source is lost, or its formats must be waited for no longer.
    fn check(&mut self, playing: Duration, now: Duration) -> Result<(), End> {
        if self.awaits_udp() && now >= playing + UNHEARD {
            return Err(End::Unheard);
        }
        if now >= self.silent(playing) {
            if self.source.policies.after_end == AfterEnd::Close && (self.have_ended() || self.is_played(playing)) {
                return Err(End::Closed);
            }
            let silence = now.saturating_sub(self.heard(playing)).as_secs_f64();
            return Err(self.lost(SourceErrorKind::TimedOut, format!("no frame for {silence:.1} s")));
        }
        let Some(tracks) = &mut self.tracks else { return Ok(()) };
        if !tracks.has_begun() && now >= playing + self.source.timeout && !tracks.begin_without(self.assembly) {
            return Err(self.lost(SourceErrorKind::NoMedia, "no parameter sets"));
        }
        Ok(())
    }

    /// Whether nothing arrived by UDP, while the connection could be used instead.
    fn awaits_udp(&self) -> bool {
        self.transport == SourceTransport::Auto && self.udp.is_used() && !self.is_heard
    }

    fn heard(&self, playing: Duration) -> Duration {
        self.tracks.as_ref().and_then(Tracks::rhythm).map_or(playing, |rhythm| rhythm.last)
    }

    /// Whether all tracks said BYE.
    fn have_ended(&self) -> bool {
        self.tracks.as_ref().is_some_and(Tracks::have_ended)
    }

    /// Whether media whose length is known has been played to its end. Servers that could seek in it send no BYE.
    fn is_played(&self, playing: Duration) -> bool {
        self.length.is_some_and(|length| self.heard(playing).saturating_sub(playing) + EARLY_END >= length)
    }

    /// Time at which a source that remains silent is lost.
    fn silent(&self, playing: Duration) -> Duration {
        match self.tracks.as_ref().and_then(|tracks| Some((tracks, tracks.rhythm()?))) {
            None => playing + self.source.timeout,
            Some((tracks, Rhythm { last, .. })) if tracks.have_ended() => last + AFTER_BYE,
            Some((_, Rhythm { last, .. }))
                if self.source.policies.after_end == AfterEnd::Close && self.is_played(playing) =>
            {
                last + AFTER_BYE
            }
            Some((_, Rhythm { last, longest })) => last + STALL.max(3 * longest),
        }
    }

    fn wake(&self) -> Option<Duration> {
        let playing = self.playing.into_iter().flat_map(|playing| {
            let udp = self.awaits_udp().then_some(playing + UNHEARD);
            let formats = self.tracks.as_ref().filter(|tracks| !tracks.has_begun());
            let formats = formats.map(|_| playing + self.source.timeout);
            [Some(self.reports), Some(self.silent(playing)), udp, formats]
        });
        playing.flatten().chain(self.tracks.as_ref().and_then(Tracks::wake)).chain(self.assembly.wake()).min()
    }
}

/// Sums up what was received.
impl Drop for Session<'_> {
    fn drop(&mut self) {
        if let Some(tracks) = &self.tracks {
            self.assembly.end(tracks.counts());
        }
        for track in self.tracks.iter().flat_map(Tracks::all) {
            let counts = track.counts();
            tracing::info!(
                source = %self.source,
                track = track.track(),
                packets = counts.packets,
                lost = counts.lost_packets,
                asked = counts.asked_packets,
                repaired = counts.repaired_packets,
                reordered = counts.reordered_packets,
                unused = counts.unused_packets,
                broken_frames = counts.broken_frames,
                "session with a source ends"
            );
        }
    }
}

/// The length of a time range; `None` where it has no end, and where that is not after its beginning.
pub(super) fn length(range: &NptRange) -> Option<Duration> {
    let seconds = range.to? - range.from.unwrap_or(0.0);
    Duration::try_from_secs_f64(seconds).ok().filter(|length| !length.is_zero())
}
