//! A session: which tracks of an asset go where, and what is being played of them.

use super::{
    admission::{Admission, Place, Share},
    block::{block_of, seconds},
    deadline::Lateness,
    intervals::{Intervals, Subject},
    loader::Loader,
    track::{SentTrack, Sink},
    transmit::{Progress, Stream, Transmitter},
};
use crate::library::Asset;
use millpond_graph::{Graph, Inlet, Member};
use millpond_package::PresentedTrack;
use millpond_rtp::{
    payload::Packetizer,
    play::{self, Part},
    setup::Transport,
};
use millpond_store::Store;
use std::{sync::Arc, time::Duration};
use tokio::task::AbortHandle;

/// Blocks of frames between loader and transmission, beside that which is being sent.
const DEPTH: usize = 1;

/// A session, from its first SETUP on.
pub(super) struct Session {
    pub(super) id: u64,
    /// The path that it was set up with: all tracks are of one presentation.
    pub(super) path: String,
    pub(super) asset: Arc<Asset>,
    /// Tracks that were set up; they are with the transmitter while it plays.
    pub(super) tracks: Vec<SentTrack>,
    pub(super) progress: Arc<Progress>,
    state: State,
    transmitter: Transmitter,
    /// What it takes of the machine, once it has played.
    share: Option<Share>,
    _place: Place,
}

enum State {
    Ready,
    Playing(AbortHandle),
    /// With what would have been due next.
    Paused(Duration),
}

/// What a PLAY came to.
#[derive(Debug)]
pub(super) struct Played {
    /// The part that is played, in seconds.
    pub(super) from: f64,
    pub(super) to: f64,
    /// Name, first sequence number and the timestamp of `from`, track by track.
    pub(super) tracks: Vec<(String, u16, u32)>,
}

/// Why it can't be played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CannotPlay {
    /// The part lies behind the end, or is empty: 457.
    OutOfRange,
    /// There is no room for it beside what plays already: 453.
    Full,
}

impl Session {
    pub(super) fn new(id: u64, path: String, asset: Arc<Asset>, place: Place, transmitter: Transmitter) -> Self {
        let progress = Arc::new(Progress::default());
        let (tracks, state, share) = (Vec::new(), State::Ready, None);
        Self { id, path, asset, tracks, progress, state, transmitter, share, _place: place }
    }

    /// The server's ports for its packets.
    pub(super) fn ports(&self) -> (u16, u16) {
        self.transmitter.ports
    }

    pub(super) fn is_playing(&self) -> bool {
        matches!(self.state, State::Playing(_))
    }

    /// Whether its packets go over the connection that it was set up on.
    pub(super) fn is_interleaved(&self) -> bool {
        self.tracks.iter().any(|track| matches!(track.sink, Sink::Tcp { .. }))
    }

    /// Adds a track of the session's asset, or sets one up again.
    pub(super) fn set_up(
        &mut self,
        track: usize,
        packetizer: Packetizer,
        payload_type: u8,
        sink: Sink,
        transport: Transport,
    ) {
        let presented = &self.asset.presentation.tracks()[track];
        let source = presented.source_track();
        let (Transport::Interleaved { ssrc, .. } | Transport::Unicast { ssrc, .. }) = transport;
        let new = SentTrack {
            track,
            sink,
            packetizer,
            payload_type,
            ssrc,
            clock: source.map_or(90_000, |source| packetizer.clock_rate(source)),
            timescale: source.map_or(90_000, |source| source.timescale.get()),
            // Random (RFC 3550 5.1).
            sequence: fastrand::u16(..),
            base: fastrand::u32(..),
            start: 0,
            next: 0,
            packets: 0,
            octets: 0,
            last: 0,
            skips: false,
        };
        match self.tracks.iter_mut().find(|known| known.track == track) {
            Some(known) => *known = new,
            None => self.tracks.push(new),
        }
    }

    /// Stops what plays; what is being sent then stays where it is.
    pub(super) async fn pause(&mut self) {
        let State::Playing(loading) = &self.state else { return };
        loading.abort();
        // Where it isn't being sent any more it had come to its end.
        let stopped = self.transmitter.stop(self.id).await;
        let end = Duration::from_secs_f64(self.asset.presentation.duration());
        let stopped =
            stopped.map_or_else(|| Some((self.progress.take_ended()?.tracks, end)), |s| Some((s.tracks, s.position)));
        let (tracks, position) = stopped.unwrap_or_else(|| (std::mem::take(&mut self.tracks), end));
        self.tracks = tracks;
        self.state = State::Paused(position);
    }

    /// Begins to play a part. `start` is called when all is ready, before the first packet goes out.
    pub(super) async fn play(
        &mut self,
        source: &Source<'_>,
        part: Part,
        speed: f64,
        start: impl FnOnce(&Played),
    ) -> Result<(), CannotPlay> {
        let Source { store, graph, intervals, admission, lateness } = source;
        let resumes = part.from.is_none() && !matches!(self.state, State::Ready);
        self.pause().await;
        let duration = self.asset.presentation.duration();
        let to = part.to.unwrap_or(duration).min(duration);
        let paused = match self.state {
            State::Paused(at) if resumes => Some(at),
            _ => None,
        };
        let asked = paused.map_or(part.from.unwrap_or(0.0), |at| at.as_secs_f64());
        if asked > duration || asked >= to {
            return Err(CannotPlay::OutOfRange);
        }
        if self.share.is_none() {
            self.share = Some(admission.share(self.rate()).ok_or(CannotPlay::Full)?);
        }
        let from = if paused.is_some() { asked } else { self.seek(asked) };
        let position = paused.unwrap_or_else(|| self.first_due());
        let member = |kind| graph.add(kind, format!("{} {:x}", self.path, self.id));
        let (loading, sending) = (member("loader"), member("transmission"));
        let (inlet, frames) = millpond_graph::pipe(graph, loading.id(), sending.id(), DEPTH);
        let end = if part.to.is_some() { Duration::from_secs_f64(to) } else { Duration::MAX };
        let (numbers, next) = self.cursors();
        let subject = Subject { asset: self.asset.id, tracks: numbers.clone() };
        let loader = Loader {
            store: (*store).clone(),
            asset: self.asset.clone(),
            tracks: numbers,
            next,
            to: end,
            seat: intervals.enter(subject, block_of(position)),
        };
        let (id, transmitter) = (self.id, self.transmitter.clone());
        let task = tokio::spawn(run(loader, inlet, loading, move || transmitter.look(id)));
        let tracks = self.tracks.iter().map(|track| {
            let name = self.asset.presentation.tracks()[track.track].name().to_owned();
            (name, track.sequence, track.timestamp(ticks(from, track.timescale)))
        });
        start(&Played { from, to, tracks: tracks.collect() });
        drop(self.progress.take_ended());
        let stream = Stream {
            id: self.id,
            tracks: self.tracks.clone(),
            frames,
            position,
            to: end,
            speed,
            lateness: *lateness,
            progress: self.progress.clone(),
            _member: sending,
        };
        if !self.transmitter.play(stream) {
            task.abort();
            return Err(CannotPlay::Full);
        }
        self.state = State::Playing(task.abort_handle());
        Ok(())
    }

    /// Bits a second of its tracks.
    fn rate(&self) -> u64 {
        let tracks = self.asset.presentation.tracks();
        self.tracks.iter().map(|sent| tracks[sent.track].bandwidth().average).sum()
    }

    /// Moves every track to a time: pictures to the key frame before it, sound along with them. Gives the time at which
    /// playing begins.
    fn seek(&mut self, asked: f64) -> f64 {
        let tracks = self.asset.presentation.tracks();
        let video = self.tracks.iter().find_map(|track| key_frame(&tracks[track.track], asked));
        let from = video.map_or(asked, |(_, at)| at.max(0.0));
        for sent in &mut self.tracks {
            let presented = &tracks[sent.track];
            let ordinal = match key_frame(presented, from) {
                Some((ordinal, _)) => ordinal,
                // What lies before the beginning primes the decoder.
                None if from <= 0.0 => 0,
                None => presented.ordinal_at(from).unwrap_or(0),
            };
            sent.next = ordinal;
            // What was sent before lies before: timestamps go on, a moment later.
            sent.base = if sent.packets == 0 { sent.base } else { sent.last.wrapping_add(sent.clock / 10) };
            sent.start = ticks(from, sent.timescale);
        }
        from
    }

    /// When the first of the next frames is due.
    fn first_due(&self) -> Duration {
        let tracks = self.asset.presentation.tracks();
        let due = self.tracks.iter().filter_map(|sent| {
            let first = tracks[sent.track].samples_of(sent.next..sent.next.saturating_add(1)).pop()?;
            Some(seconds(first.dts, sent.timescale))
        });
        due.min().unwrap_or_default()
    }

    /// The tracks in the presentation, in order, and the next sample of each.
    fn cursors(&self) -> (Arc<[u16]>, Vec<u32>) {
        let mut cursors: Vec<_> = self.tracks.iter().map(|sent| (sent.track as u16, sent.next)).collect();
        cursors.sort_unstable();
        (cursors.iter().map(|(track, _)| *track).collect(), cursors.iter().map(|(_, next)| *next).collect())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if let State::Playing(loading) = &self.state {
            loading.abort();
            self.transmitter.forget(self.id);
        }
    }
}

/// What sessions are played from.
pub(super) struct Source<'a> {
    pub(super) store: &'a Store,
    pub(super) graph: &'a Graph,
    pub(super) intervals: &'a Arc<Intervals>,
    pub(super) admission: &'a Arc<Admission>,
    pub(super) lateness: Lateness,
}

/// Loads until the end; `look` is called when the first frames are there.
async fn run(loader: Loader, inlet: Inlet, member: Member, look: impl FnOnce()) {
    let asset = loader.asset.clone();
    if let Err(error) = loader.run(&inlet, look).await {
        tracing::error!(asset = %asset.path, %error, "session ends early");
    }
    drop(member);
}

/// The key frame that decoding begins with to show a moment, where the track has such, and when it shows.
fn key_frame(track: &PresentedTrack, at: f64) -> Option<(u32, f64)> {
    if track.kind() != millpond_package::Kind::Video {
        return None;
    }
    let timescale = f64::from(track.source_track()?.timescale.get());
    let ordinal = track.sync_before(at)?;
    let sample = track.samples_of(ordinal..ordinal.saturating_add(1)).pop()?;
    Some((ordinal, sample.pts as f64 / timescale))
}

fn ticks(seconds: f64, timescale: u32) -> i64 {
    (seconds * f64::from(timescale)).round() as i64
}

/// The range of a reply.
pub(super) fn range(played: &Played) -> String {
    play::range(played.from, played.to)
}
