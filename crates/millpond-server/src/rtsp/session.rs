//! A session: the tracks of an asset that a client set up, and their playback.

use super::{interleaved::Interleaved, record::Record};
use millpond_rtp::{
    description::Described,
    play::{self, NptRange},
};
use millpond_stream::{
    Admitted, CannotOpen, Counters, Group, Manager, Played, Playing, Program, Protection, Request, Start, Stopped,
    StoredMedia, Subscriber, Udp,
};
use std::{sync::Arc, time::Duration};

/// A session, from its first SETUP on.
pub(super) struct Session {
    /// Path of the first SETUP. All tracks belong to the same presentation.
    pub(super) path: String,
    pub(super) media: Arc<StoredMedia>,
    /// Channel that the session watches, if the asset is one.
    pub(super) program: Option<Program>,
    /// Multicast group that receives the channel. The session then has no tracks of its own.
    group: Option<Arc<Group>>,
    pub(super) subscriber: Subscriber,
    /// Tracks that are interleaved on the connection, with their channels of RTP and RTCP.
    channels: Vec<(usize, (u8, u8))>,
    state: State,
    admitted: Admitted,
    pub(super) record: Arc<Record>,
}

enum State {
    Ready,
    Playing(Playing),
    /// Paused before the frame that is due at this time.
    Paused(Duration),
    /// Stopped between key frames at this time. PLAY finds the next frame anew.
    Left(Duration),
}

/// Parameters of a PLAY request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) part: NptRange,
    /// Speed of sending, as a multiple of the pace of playing.
    pub(super) speed: f64,
    /// Seconds of the presentation in a second.
    pub(super) scale: f64,
}

/// Transport of a track's packets.
pub(super) enum Way {
    /// UDP, to the client's ports.
    Udp(Udp),
    /// Interleaved on the connection.
    Interleaved(Interleaved),
}

impl Session {
    pub(super) fn new(
        path: String,
        (media, program): (Arc<StoredMedia>, Option<Program>),
        subscriber: Subscriber,
        admitted: Admitted,
        record: Arc<Record>,
    ) -> Self {
        let (group, channels, state) = (None, Vec::new(), State::Ready);
        Self { path, media, program, group, subscriber, channels, state, admitted, record }
    }

    /// Returns the session's number, as the graph and the log show it.
    pub(super) fn id(&self) -> u64 {
        self.subscriber.id()
    }

    pub(super) fn is_playing(&self) -> bool {
        matches!(self.state, State::Playing(_))
    }

    /// Whether the session plays and has not reached its end.
    pub(super) fn is_sent(&self) -> bool {
        self.is_playing() && !self.subscriber.progress().has_ended()
    }

    /// Whether the session has ever played.
    pub(super) fn has_played(&self) -> bool {
        self.admitted.has_played()
    }

    /// Counts the session among those that have played, and logs it.
    pub(super) fn count_played(&mut self) {
        self.admitted.play();
        self.record.plays(self.transport());
    }

    /// Returns the transport's name for the log.
    fn transport(&self) -> &'static str {
        match self.group {
            Some(_) => "multicast",
            None if self.is_interleaved() => "tcp",
            None => "udp",
        }
    }

    /// Whether a track was set up.
    pub(super) fn is_set_up(&self) -> bool {
        self.group.is_some() || self.subscriber.has_tracks()
    }

    /// Whether the session receives by multicast.
    pub(super) fn is_grouped(&self) -> bool {
        self.group.is_some()
    }

    /// Whether packets are interleaved on the connection of the SETUP.
    pub(super) fn is_interleaved(&self) -> bool {
        !self.channels.is_empty()
    }

    /// Handles reports of the receiver on a channel of the connection.
    pub(super) fn hear(&mut self, channel: u8, packet: &mut [u8], counters: &Counters) {
        if let Some((track, _)) = self.channels.iter().find(|(_, channels)| channels.1 == channel) {
            self.subscriber.hear(*track, packet, counters);
        }
    }

    /// Adds a track of the session's asset, or sets it up again. `source` has its SSRC and its keys.
    pub(super) fn set_up(
        &mut self,
        track: usize,
        described: &Described<'_>,
        way: Way,
        source: (u32, Option<Box<Protection>>),
    ) {
        self.channels.retain(|(known, _)| *known != track);
        match way {
            Way::Udp(udp) => self.subscriber.set_up(track, described, Arc::new(udp), source),
            Way::Interleaved(interleaved) => {
                self.channels.push((track, interleaved.channels()));
                self.subscriber.set_up(track, described, Arc::new(interleaved), source);
            }
        }
    }

    /// Returns the multicast group of the channel, where there is one and the session has no other transport.
    pub(super) fn group(&mut self, manager: &Manager) -> Option<Arc<Group>> {
        if self.group.is_none() && !self.subscriber.has_tracks() {
            self.group = manager.group(self.program.as_ref()?);
        }
        self.group.clone()
    }

    /// Pauses playback at its current position.
    pub(super) async fn pause(&mut self) {
        self.state = match std::mem::replace(&mut self.state, State::Ready) {
            State::Playing(playing) => match playing.stop(&mut self.subscriber).await {
                Stopped::Before(due) => State::Paused(due),
                Stopped::At(at) => State::Left(at),
                Stopped::Live => State::Ready,
            },
            silent @ (State::Ready | State::Paused(_) | State::Left(_)) => silent,
        }
    }

    /// Starts playback. `reply` is called when all is ready, before the first packet is sent.
    pub(super) async fn play(
        &mut self,
        manager: &Manager,
        asked: Asked,
        reply: impl FnOnce(&Played),
    ) -> Result<(), CannotOpen> {
        // Keeps the channel running while its only viewer leaves and joins again.
        let _shared = match &self.state {
            State::Playing(playing) => playing.keep_alive(),
            _ => None,
        };
        self.pause().await;
        let opened = match (&self.group, &self.program) {
            (Some(group), _) => manager.open_group(group).await?,
            (None, Some(program)) => manager.open(&mut self.subscriber, Request::Channel(program.clone())).await?,
            (None, None) => {
                let request = self.request(asked);
                manager.open(&mut self.subscriber, request).await?
            }
        };
        reply(opened.played());
        self.state = State::Playing(opened.start());
        Ok(())
    }

    /// Returns the request to the manager for a PLAY. Without a range, playback resumes where it was paused (RFC 2326
    /// 10.5).
    fn request(&self, asked: Asked) -> Request {
        let media = self.media.clone();
        let scale = self.subscriber.scale(&media, asked.scale);
        let from = match (asked.part.from, &self.state) {
            (Some(from), _) => Start::At(from),
            (None, State::Paused(due)) if scale == 1.0 => Start::Next(*due),
            (None, State::Paused(at) | State::Left(at)) => Start::At(at.as_secs_f64()),
            (None, _) if scale < 0.0 => Start::At(media.duration()),
            (None, _) => Start::At(0.0),
        };
        Request::Stored { media, from, to: asked.part.to, scale, speed: asked.speed }
    }
}

/// Returns the `Range` header of a reply.
pub(super) fn range(played: &Played) -> String {
    played.part.map_or_else(|| "npt=now-".to_owned(), |(from, to)| play::range(from, to))
}
