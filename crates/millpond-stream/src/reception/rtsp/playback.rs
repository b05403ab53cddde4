//! A session that plays a stored title of a server from a time on.

use super::{
    connector::Connector,
    link::{Link, LinkEvent, Stopwatch},
    pace::Pace,
    played_track::{Fault, PlayedFrame, PlayedTrack},
    teardown::TeardownGuard,
};
use crate::{
    Format,
    reception::{format::StreamFormat, source::RtspSource},
    source_health::{SourceError, SourceErrorKind},
};
use bytes::Bytes;
use millpond_rtp::{
    client::{ClientPlayback, ClientTrack},
    sdp_reader::{MediaDescription, SessionDescription},
    setup::Offer,
};
use std::{
    collections::VecDeque,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Arc,
    time::Duration,
};

/// Most tracks of a title.
const MOST_TRACKS: usize = 8;
/// Silence after which the server counts as gone, or the title as ended.
const STALL: Duration = Duration::from_secs(5);
/// Time before the stated end within which silence is the end.
const NEAR_END: Duration = Duration::from_secs(2);
/// Time between two receiver reports.
const REPORT: Duration = Duration::from_secs(5);
/// Most packets that may arrive before the reply to PLAY.
const MOST_EARLY: usize = 4096;

/// A session with an RTSP server that plays a stored title. Media comes by the connection, so that none is lost.
///
/// Dropping it tears the session down.
pub(crate) struct Playback {
    guard: TeardownGuard,
    source: RtspSource,
    watch: Stopwatch,
    length: Option<Duration>,
    fingerprint: u64,
    described: Vec<(usize, MediaDescription)>,
    tracks: Vec<PlayedTrack>,
    frames: VecDeque<PlayedFrame>,
    /// Finds what timestamps mean at another speed than the usual one, and the frames before that is known.
    pace: Option<(Pace, VecDeque<PlayedFrame>)>,
    /// Packets before the reply to PLAY.
    early: Vec<(u8, Bytes)>,
    /// Time of the last frame from the beginning of the title.
    reached: Duration,
    /// Arrival of the last frame.
    heard: Duration,
    reports: Duration,
    is_over: bool,
}

/// A speed to ask for, and the usual ticks from one frame to the next of each track.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Faster<'a> {
    pub(crate) speed: f64,
    pub(crate) usual: &'a [i64],
}

/// The server's reply to PLAY.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Plays {
    /// The time from which it plays in seconds; `None` where it states none.
    pub(crate) from: Option<f64>,
    /// Whether it sends faster than usual.
    pub(crate) is_faster: bool,
}

impl Playback {
    /// Connects and reads the description.
    ///
    /// # Errors
    /// The server can't be reached, refuses, or has no track that can be received.
    pub(crate) async fn describe(source: &RtspSource, connector: &Arc<dyn Connector>) -> Result<Self, SourceError> {
        let watch = Stopwatch::start();
        let link = Link::new(source, connector.clone(), watch);
        let link = link.map_err(|error| SourceError::of(&error, source))?;
        let mut guard = TeardownGuard::new(link, source.policies.teardown);
        let mut description = loop {
            match guard.link().take() {
                Some(LinkEvent::Described(description)) => break description,
                Some(LinkEvent::Ended(error)) => return Err(ended(source, error.as_ref())),
                Some(_) => {}
                None => guard.link().wait().await,
            }
        };
        description.skip_back_channels();
        let length = description.range.and_then(|range| super::session::length(&range));
        let fingerprint = fingerprint(&description, length);
        let is_received = |(_, media): &(usize, MediaDescription)| StreamFormat::new(media, 1, 1).is_ok();
        let described: Vec<_> = description.streams.into_iter().enumerate().filter(is_received).collect();
        let described: Vec<_> = described.into_iter().take(MOST_TRACKS).collect();
        let now = watch.now();
        Ok(Self {
            guard,
            source: source.clone(),
            watch,
            length,
            fingerprint,
            described,
            tracks: Vec::new(),
            frames: VecDeque::new(),
            pace: None,
            early: Vec::new(),
            reached: Duration::ZERO,
            heard: now,
            reports: now + REPORT,
            is_over: false,
        })
    }

    /// Returns the length that the description states; `None` of a live stream.
    pub(crate) fn length(&self) -> Option<Duration> {
        self.length
    }

    /// Returns a hash of the description, without what differs from session to session.
    pub(crate) fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// Sets the tracks up, and plays from a time, faster than usual where that is asked for and the server does.
    ///
    /// # Errors
    /// The server refuses the connection as a transport, or the time; it has no track that can be received.
    pub(crate) async fn play(&mut self, from: Duration, faster: Option<Faster<'_>>) -> Result<Plays, SourceError> {
        if self.described.is_empty() {
            return Err(self.error(SourceErrorKind::NoMedia, "no supported track"));
        }
        let offers: Vec<_> = self.described.iter().map(|(stream, _)| (*stream, Offer::Interleaved(None))).collect();
        self.guard.link().set_up(&offers);
        loop {
            match self.guard.link().take() {
                Some(LinkEvent::Opened(agreed)) => {
                    self.opened(&agreed)?;
                    self.guard.link().play_from(from.as_secs_f64(), faster.map(|faster| faster.speed));
                }
                Some(LinkEvent::Playing(playback)) => return self.playing(&playback, from, faster),
                Some(LinkEvent::Media { channel, bytes }) if self.early.len() < MOST_EARLY => {
                    self.early.push((channel, bytes));
                }
                Some(LinkEvent::Ended(error)) => return Err(ended(&self.source, error.as_ref())),
                Some(_) => {}
                None => self.guard.link().wait().await,
            }
        }
    }

    fn opened(&mut self, agreed: &[ClientTrack]) -> Result<(), SourceError> {
        let now = self.watch.now();
        let mut numbers = std::collections::HashMap::<&str, u16>::new();
        let mut tracks = Vec::new();
        for (stream, media) in &self.described {
            let Some(agreed) = agreed.iter().find(|track| track.stream == *stream) else { continue };
            let number = numbers.entry(&media.media).and_modify(|number| *number += 1).or_insert(1);
            let format = StreamFormat::new(media, tracks.len() as u32 + 1, *number);
            let format = format.map_err(|error| self.error(SourceErrorKind::NoMedia, error.to_string()))?;
            let track = PlayedTrack::new(tracks.len(), (media, format), agreed, now);
            let track = track.map_err(|error| self.error(SourceErrorKind::NoMedia, error.to_string()))?;
            let why = "the server does not send media by the connection";
            tracks.push(track.ok_or_else(|| self.error(SourceErrorKind::Protocol, why))?);
        }
        self.tracks = tracks;
        Ok(())
    }

    fn playing(
        &mut self,
        playback: &ClientPlayback,
        asked: Duration,
        faster: Option<Faster<'_>>,
    ) -> Result<Plays, SourceError> {
        let stated = playback.range.and_then(|range| range.from);
        let from = stated.unwrap_or(asked.as_secs_f64());
        for (index, track) in self.tracks.iter_mut().enumerate() {
            track.begin(from, playback.starts.get(index).copied().unwrap_or_default());
        }
        let granted = playback.speed.filter(|speed| faster.is_some() && *speed > 1.0);
        self.pace = granted.zip(faster).map(|(speed, faster)| (Pace::new(speed, faster.usual), VecDeque::new()));
        self.heard = self.watch.now();
        for (channel, bytes) in std::mem::take(&mut self.early) {
            self.packet(channel, &bytes)?;
        }
        Ok(Plays { from: stated, is_faster: granted.is_some() })
    }

    /// Notes that nothing was read for a while. The server is not late because of that.
    pub(crate) fn resume(&mut self) {
        self.heard = self.watch.now();
    }

    /// Returns the next frame; `None` at the end of the title. Cancel safe.
    ///
    /// # Errors
    /// The server is gone, packets are missing, or a track needs another decoder than before.
    pub(crate) async fn next(&mut self) -> Result<Option<PlayedFrame>, SourceError> {
        loop {
            if let Some(frame) = self.frames.pop_front() {
                return Ok(Some(frame));
            }
            if self.is_over {
                if self.pace.is_none() {
                    return Ok(None);
                }
                // Too few frames to tell: timestamps are those of the standard.
                self.settle(1.0);
                continue;
            }
            while let Some(event) = self.guard.link().take() {
                match event {
                    LinkEvent::Media { channel, bytes } => self.packet(channel, &bytes)?,
                    LinkEvent::Ended(_) if self.is_near_end() => self.is_over = true,
                    LinkEvent::Ended(error) => return Err(ended(&self.source, error.as_ref())),
                    _ => {}
                }
            }
            let now = self.watch.now();
            if self.tracks.iter().all(PlayedTrack::has_ended) {
                self.is_over = true;
            }
            if !self.frames.is_empty() || self.is_over {
                continue;
            }
            if now >= self.heard + STALL {
                if self.is_near_end() {
                    self.is_over = true;
                    continue;
                }
                return Err(self.error(SourceErrorKind::TimedOut, format!("no frame for {} s", STALL.as_secs())));
            }
            if now >= self.reports {
                self.reports = now + REPORT;
                self.report(now);
            }
            let (wake, watch) = (self.reports.min(self.heard + STALL), self.watch);
            tokio::select! {
                () = self.guard.link().wait() => {}
                () = watch.sleep_until(Some(wake)) => {}
            }
        }
    }

    fn packet(&mut self, channel: u8, packet: &Bytes) -> Result<(), SourceError> {
        let now = self.watch.now();
        let Some(track) = self.tracks.iter_mut().find(|track| track.has_channel(channel)) else { return Ok(()) };
        let mut new = Vec::new();
        let result = track.packet(channel, packet, now, |frame| new.push(frame));
        if !new.is_empty() {
            self.heard = now;
            self.take(new);
        }
        result.map_err(|fault| match fault {
            Fault::Lost => self.error(SourceErrorKind::Protocol, "packets are missing on the connection"),
            Fault::Changed(at) => {
                self.error(SourceErrorKind::NoMedia, format!("a track of the title changes its decoder at {at} s"))
            }
        })
    }

    /// Passes frames on, once it is known what timestamps mean.
    fn take(&mut self, new: Vec<PlayedFrame>) {
        let Some((pace, held)) = &mut self.pace else { return new.into_iter().for_each(|frame| self.pass(frame)) };
        let factor = new.iter().find_map(|frame| pace.take(frame.track, frame.time));
        held.extend(new);
        if let Some(factor) = factor {
            self.settle(factor);
        }
    }

    /// Passes the frames on that waited for a factor.
    fn settle(&mut self, factor: f64) {
        self.tracks.iter_mut().for_each(|track| track.set_factor(factor));
        let held = self.pace.take().map(|(_, held)| held).unwrap_or_default();
        held.into_iter().for_each(|frame| self.pass(frame));
    }

    fn pass(&mut self, frame: PlayedFrame) {
        let Some(track) = self.tracks.get(frame.track) else { return };
        let frame = PlayedFrame { time: track.stretched(frame.time), ..frame };
        if let Some(format) = track.format() {
            let seconds = frame.time as f64 / f64::from(format.timescale());
            self.reached = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        }
        self.frames.push_back(frame);
    }

    fn report(&mut self, now: Duration) {
        let ssrc = fastrand::u32(..);
        for track in &mut self.tracks {
            let (channel, report) = track.report(ssrc, now);
            self.guard.link().offer(channel, &report);
        }
    }

    /// Returns whether the last frame was one of the last.
    fn is_near_end(&self) -> bool {
        self.length.is_some_and(|length| self.reached + NEAR_END >= length)
    }

    /// Returns the formats of the tracks; `None` of a track without a first frame.
    pub(crate) fn formats(&self) -> impl ExactSizeIterator<Item = Option<&Format>> {
        self.tracks.iter().map(PlayedTrack::format)
    }

    /// Returns a failure of the server.
    pub(crate) fn error(&self, kind: SourceErrorKind, words: impl Into<String>) -> SourceError {
        SourceError { kind, address: self.source.to_string(), words: words.into() }
    }
}

/// Returns the error of a session that ended.
fn ended(source: &RtspSource, error: Option<&millpond_rtp::client::ClientError>) -> SourceError {
    let over = || SourceError {
        kind: SourceErrorKind::Protocol,
        address: source.to_string(),
        words: "the session is over".to_owned(),
    };
    error.map_or_else(over, |error| SourceError::of(error, source))
}

/// Returns a hash of what a description says about the title.
fn fingerprint(description: &SessionDescription, length: Option<Duration>) -> u64 {
    let mut hasher = DefaultHasher::new();
    length.hash(&mut hasher);
    for stream in &description.streams {
        let MediaDescription { media, control, encoding, clock_rate, channels, parameters, .. } = stream;
        (media, control, encoding, clock_rate, channels, parameters).hash(&mut hasher);
    }
    hasher.finish()
}
