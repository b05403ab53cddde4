//! A session: which tracks of an asset go where, and what is being played of them.

mod begin;
mod tune;

use super::{
    admission::{Admission, Full, Place, Share},
    block::LoadError,
    channel::{Channel, Supplies},
    channels::{Channels, Group, Program},
    deadline::Lateness,
    intervals::{Intervals, Subject},
    keys::{self, Keys},
    loader::{self, Loader},
    media::Media,
    origins::{Origin, Origins},
    record::Record,
    srtp::Srtp,
    track::{SentTrack, Sink},
    transmit::{Progress, Stream, Transmitter},
};
use crate::{library::Asset, metrics::StreamCounters};
use millpond_graph::{Graph, Member, Outlet};
use millpond_rtp::{
    description::Described,
    play::{self, NptRange},
    rtcp::{self, RtcpItem},
};
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
    /// What it watches together with others, where that is a channel.
    pub(super) program: Option<Program>,
    /// Where it receives that by multicast: it has no tracks of its own then.
    group: Option<Arc<Group>>,
    /// Tracks that were set up; they are with the transmitter while it plays.
    pub(super) tracks: Vec<SentTrack>,
    pub(super) progress: Arc<Progress>,
    state: State,
    transmitter: Transmitter,
    /// What it takes of the machine, once it has played.
    share: Option<Share>,
    place: Place,
}

enum State {
    Ready,
    /// By a task that loads; through key frames only, where it says so.
    Playing(AbortHandle, Option<Keys>),
    /// With what would have been due next.
    Paused(Duration),
    /// On a way through key frames, at this time: what comes next is looked for again.
    Left(Duration),
    /// A channel, by itself.
    Tuned(Arc<Channel>),
    /// A channel's group.
    Grouped,
}

/// What a PLAY asks for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) part: NptRange,
    /// Of sending, times the pace of what is played.
    pub(super) speed: f64,
    /// Seconds of the presentation in a second.
    pub(super) scale: f64,
}

/// What a PLAY came to.
#[derive(Debug)]
pub(super) struct Played {
    /// The part that is played, in seconds; nothing where it has no end, and begins now.
    pub(super) part: Option<(f64, f64)>,
    pub(super) scale: f64,
    pub(super) speed: f64,
    /// Name, first sequence number and the timestamp of `from`, track by track.
    pub(super) tracks: Vec<(String, u16, u32)>,
}

/// Why it can't be played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CannotPlay {
    /// The part lies behind the end, or is empty: 457.
    OutOfRange,
    /// There is no room for it beside what plays already: 453.
    Full(Full),
    /// The channel can't be played: 503.
    Ended,
}

impl Session {
    pub(super) fn new(
        id: u64,
        path: String,
        asset: Arc<Asset>,
        program: Option<Program>,
        place: Place,
        transmitter: Transmitter,
        record: Record,
    ) -> Self {
        let progress = Arc::new(Progress::new(record));
        let (tracks, state, share, group) = (Vec::new(), State::Ready, None, None);
        Self { id, path, asset, program, group, tracks, progress, state, transmitter, share, place }
    }

    /// The server's ports for its packets.
    pub(super) fn ports(&self) -> (u16, u16) {
        self.transmitter.ports
    }

    pub(super) fn is_playing(&self) -> bool {
        matches!(self.state, State::Playing(..) | State::Tuned(_) | State::Grouped)
    }

    /// Whether it plays and has not come to its end.
    pub(super) fn is_sent(&self) -> bool {
        self.is_playing() && !self.progress.has_ended()
    }

    /// Whether it has ever played.
    pub(super) fn has_played(&self) -> bool {
        self.place.has_played()
    }

    /// Counts it among those that have played, in the log too.
    pub(super) fn count_played(&mut self) {
        self.place.play();
        self.progress.record.plays(self.transport());
    }

    /// The way of its packets, as the log has it.
    fn transport(&self) -> &'static str {
        match self.group {
            Some(_) => "multicast",
            None if self.is_interleaved() => "tcp",
            None => "udp",
        }
    }

    /// Whether a track was set up.
    pub(super) fn is_set_up(&self) -> bool {
        self.group.is_some() || !self.tracks.is_empty()
    }

    /// Whether it receives by multicast.
    pub(super) fn is_grouped(&self) -> bool {
        self.group.is_some()
    }

    /// Whether its packets go over the connection that it was set up on.
    pub(super) fn is_interleaved(&self) -> bool {
        self.tracks.iter().any(|track| matches!(track.sink, Sink::Tcp { .. }))
    }

    /// What came on a channel of the connection: its receiver's reports.
    pub(super) fn hear(&mut self, channel: u8, packet: &mut [u8], counters: &StreamCounters) {
        let is_theirs =
            |track: &&mut SentTrack| matches!(track.sink, Sink::Tcp { channels, .. } if channels.1 == channel);
        let Some(track) = self.tracks.iter_mut().find(is_theirs) else { return };
        let reports = track.open(packet).and_then(|packet| rtcp::parse(packet).ok()).unwrap_or_default();
        for report in reports {
            if let RtcpItem::Reception(reception) = report
                && reception.ssrc == track.ssrc
            {
                track.hear(&reception, counters);
            }
        }
    }

    /// Adds a track of the session's asset, or sets one up again.
    pub(super) fn set_up(
        &mut self,
        number: usize,
        described: &Described<'_>,
        sink: Sink,
        source: (u32, Option<Box<Srtp>>),
    ) {
        let new = SentTrack::new(number, described, sink, source);
        match self.tracks.iter_mut().find(|known| known.track == number) {
            Some(known) => *known = new,
            None => self.tracks.push(new),
        }
    }

    /// Stops what plays; what is being sent then stays where it is.
    pub(super) async fn pause(&mut self) {
        self.state = match std::mem::replace(&mut self.state, State::Ready) {
            State::Playing(loading, keys) => {
                loading.abort();
                let position = self.stop().await;
                match keys {
                    None => State::Paused(position),
                    Some(keys) => State::Left(keys.position(position)),
                }
            }
            State::Tuned(_) => {
                self.stop().await;
                State::Ready
            }
            State::Grouped => State::Ready,
            silent @ (State::Ready | State::Paused(_) | State::Left(_)) => silent,
        }
    }

    /// Takes the tracks back from the transmitter; says what would have been due next.
    async fn stop(&mut self) -> Duration {
        let stopped = self.transmitter.stop(self.id).await;
        // Where it isn't being sent any more it had come to its end.
        let end = Duration::from_secs_f64(self.asset.presentation.duration());
        let stopped =
            stopped.map_or_else(|| Some((self.progress.take_ended()?.tracks, end)), |s| Some((s.tracks, s.position)));
        let Some((mut tracks, position)) = stopped else { return end };
        // Reports on the connection were heard here.
        for (track, known) in tracks.iter_mut().zip(&self.tracks) {
            track.lost = track.lost.max(known.lost);
        }
        self.tracks = tracks;
        position
    }

    /// Begins to play a part. `start` is called when all is ready, before the first packet goes out.
    pub(super) async fn play(
        &mut self,
        source: &Source<'_>,
        asked: Asked,
        start: impl FnOnce(&Played),
    ) -> Result<(), CannotPlay> {
        // Who joins again finds the channel as it left it.
        let _channel = match &self.state {
            State::Tuned(channel) => Some(channel.clone()),
            _ => None,
        };
        self.pause().await;
        if let Some(ended) = self.progress.take_ended() {
            // A pause that nobody waited for: the tracks are where they were left.
            self.tracks = ended.tracks;
        }
        if let Some(program) = self.program.clone() {
            return self.tune(&program, source, start).await;
        }
        let resumes = asked.part.from.is_none();
        let duration = self.asset.presentation.duration();
        let scale = if self.video().is_some() { keys::honest(asked.scale) } else { 1.0 };
        let (paused, at) = match self.state {
            State::Paused(at) if resumes => (Some(at).filter(|_| scale == 1.0), at.as_secs_f64()),
            State::Left(at) if resumes => (None, at.as_secs_f64()),
            _ if resumes && scale < 0.0 => (None, duration),
            _ => (None, asked.part.from.unwrap_or(0.0)),
        };
        let to = match asked.part.to {
            Some(to) => to.min(duration),
            None if scale < 0.0 => 0.0,
            None => duration,
        };
        if at > duration || (scale > 0.0 && at >= to) || (scale < 0.0 && at <= to) {
            return Err(CannotPlay::OutOfRange);
        }
        let tracks = self.cursors().0;
        self.take_share(source, source.read_from(&self.asset, &tracks, at))?;
        let from = match paused {
            Some(_) => at,
            None if scale == 1.0 => self.seek(at),
            None => self.begin_keys(at),
        };
        let keys = (scale != 1.0).then_some(Keys { from, to, scale });
        let position = match keys {
            Some(_) => Duration::ZERO,
            None => paused.unwrap_or_else(|| self.first_due()),
        };
        let end = asked.part.to.filter(|_| keys.is_none()).map_or(Duration::MAX, Duration::from_secs_f64);
        let member = |kind| source.graph.add(kind, self.label());
        let (loading, sending) = (member("loader"), member("transmission"));
        let (inlet, frames) = millpond_graph::pipe(source.graph, loading.id(), sending.id(), DEPTH);
        let task = match (keys, self.video()) {
            (Some(keys), Some(track)) => {
                let (media, asset, look) = (source.media.clone(), self.asset.clone(), self.look());
                let load = async move { loader::load_keys(&media, &asset, (track, keys), &inlet, look).await };
                self.spawn(loading, load)
            }
            _ => {
                let loader = self.loader(source, end, position);
                let look = self.look();
                self.spawn(loading, async move { loader.run(&inlet, look).await })
            }
        };
        start(&Played { part: Some((from, to)), scale, speed: asked.speed, tracks: self.beginnings(from) });
        let (lateness, origin) = (source.lateness, source.origins.of(&self.asset).cloned());
        let stream = self.stream(frames, position, sending);
        self.transmitter.play(Stream { to: end, speed: asked.speed, lateness, origin, ..stream });
        self.state = State::Playing(task, keys);
        Ok(())
    }

    /// Takes what it needs of the machine, and of an origin: of that also later, when it goes where nothing is in memory.
    fn take_share(&mut self, source: &Source<'_>, origin: Option<&Arc<Origin>>) -> Result<(), CannotPlay> {
        if let Some(share) = &mut self.share {
            let has_it = origin.is_none_or(|origin| share.reads(origin));
            return has_it.then_some(()).ok_or(CannotPlay::Full(Full::Origin));
        }
        let rate = self.asset.rate(self.tracks.iter().map(|sent| sent.track));
        self.share = Some(source.admission.share(rate, origin).map_err(CannotPlay::Full)?);
        Ok(())
    }

    /// What comes out of a pipe, as it is sent: to its end, as it plays.
    fn stream(&self, frames: Outlet, position: Duration, member: Member) -> Stream {
        Stream::new(self.id, self.tracks.clone(), (frames, position), self.progress.clone(), member)
    }

    /// What its modules are called in the graph.
    fn label(&self) -> String {
        format!("{} {:x}", self.path, self.id)
    }

    /// The track of pictures, where it was set up.
    fn video(&self) -> Option<u16> {
        let tracks = self.asset.presentation.tracks();
        let video = self.tracks.iter().find(|sent| tracks[sent.track].kind() == millpond_package::Kind::Video);
        video.map(|sent| sent.track as u16)
    }

    /// Has the transmitter look for the first frames.
    fn look(&self) -> impl FnOnce() + use<> {
        let (id, transmitter) = (self.id, self.transmitter.clone());
        move || transmitter.look(id)
    }

    fn loader(&self, source: &Source<'_>, to: Duration, position: Duration) -> Loader {
        let (tracks, next) = self.cursors();
        let seat = source.intervals.enter(Subject::of(&self.asset, tracks.clone()), position);
        Loader { media: source.media.clone(), asset: self.asset.clone(), tracks, next, to, seat }
    }

    /// Loads in a task of its own.
    fn spawn(&self, member: Member, load: impl Future<Output = Result<(), LoadError>> + Send + 'static) -> AbortHandle {
        let path = self.asset.path.clone();
        let task = async move {
            if let Err(error) = load.await {
                tracing::error!(asset = %path, %error, "session ends early");
            }
            drop(member);
        };
        tokio::spawn(task).abort_handle()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if let State::Playing(loading, _) = &self.state {
            loading.abort();
        }
        if matches!(self.state, State::Playing(..) | State::Tuned(_)) {
            self.transmitter.forget(self.id);
        }
    }
}

/// What sessions are played from.
pub(super) struct Source<'a> {
    pub(super) media: &'a Media,
    pub(super) origins: &'a Origins,
    pub(super) graph: &'a Graph,
    pub(super) intervals: &'a Arc<Intervals>,
    pub(super) admission: &'a Arc<Admission>,
    pub(super) channels: &'a Channels,
    pub(super) counters: &'a Arc<StreamCounters>,
    pub(super) lateness: Lateness,
}

impl<'a> Source<'a> {
    /// The origin that tracks of an asset would have to be read from, where that could refuse anybody: they neither lie here nor are
    /// read by somebody a little ahead.
    pub(super) fn read_from(&self, asset: &Asset, tracks: &Arc<[u16]>, at: f64) -> Option<&'a Arc<Origin>> {
        let origin = self.origins.of(asset).filter(|origin| origin.is_scarce())?;
        let subject = Subject::of(asset, tracks.clone());
        let position = Duration::try_from_secs_f64(at).unwrap_or_default();
        let all = asset.presentation.tracks();
        let objects = tracks.iter().filter_map(|track| all.get(usize::from(*track))?.object());
        let mut objects = objects.filter_map(|object| asset.objects.get(usize::from(object.0)));
        let reads = !self.intervals.is_led(&subject, position)
            && objects.any(|object| !self.media.store.is_near(object, &(0..object.meta().len)));
        reads.then_some(origin)
    }

    /// What channels are made with.
    pub(super) fn supplies(&self) -> Supplies<'a> {
        let Self { media, graph, intervals, counters, .. } = *self;
        Supplies { media, graph, intervals, counters }
    }
}

/// The range of a reply.
pub(super) fn range(played: &Played) -> String {
    played.part.map_or_else(|| "npt=now-".to_owned(), |(from, to)| play::range(from, to))
}
