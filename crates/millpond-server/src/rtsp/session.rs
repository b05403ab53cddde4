//! A session: the tracks of an asset that a client set up, and their playback.

use super::{
    interleaved::Interleaved,
    medium::Medium,
    patch_speed::patch_speed,
    record::{End, Record},
    shift::{CannotPlay, Shift, Wanted},
    signalling::{Asked, Course, Signs, Viewer},
};
use crate::{
    cluster::{Booked, Cluster},
    live::PhasedTitle,
    wire::Wire,
};
use millpond_access::{ClientHold, Pass};
use millpond_cluster::{Bitrate, Demand, Shortage};
use millpond_rtp::{play::NptRange, sdp_writer::Described};
use millpond_stream::{
    Admitted, Counters, Feed, Group, Manager, Opened, PastStart, PlayedPart, Playing, Program, Progress, Protection,
    Request, StoredMedia, Subscriber, Udp,
};
use std::{
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::sync::Mutex;

/// The bandwidth that a playback of tracks of a stored title needs. `place` is that of its path.
pub(super) fn stored_demand(media: &Arc<StoredMedia>, place: Option<Arc<str>>, tracks: &[u16]) -> Demand {
    let feed: &dyn Feed = &**media;
    Demand {
        storage: place.filter(|_| media.is_remote()),
        stores: media.stores(),
        rate: Bitrate::from_bps(feed.rate(tracks.iter().copied())),
        length: Duration::try_from_secs_f64(media.duration()).ok(),
        is_read_only: false,
    }
}

/// A session that several connections may ask for something.
pub(super) struct Shared {
    /// A lock: held while a request of the session is performed.
    pub(super) session: Mutex<Session>,
    progress: Arc<Progress>,
    record: Arc<Record>,
    is_interleaved: AtomicBool,
    /// Connection of the first SETUP.
    wire: Weak<Wire>,
    /// The pass with which its client was admitted.
    pass: Pass,
    /// Counts it among the sessions of its client and token.
    _hold: ClientHold,
}

/// A session, from its first SETUP on.
pub(super) struct Session {
    /// Path of the first SETUP. All tracks belong to the same presentation.
    pub(super) path: String,
    pub(super) medium: Medium,
    /// Multicast group that receives the channel. The session then has no tracks of its own.
    group: Option<Arc<Group>>,
    pub(super) subscriber: Subscriber,
    /// Tracks that are interleaved on the connection, with their channels of RTP and RTCP.
    channels: Vec<(usize, (u8, u8))>,
    course: Course<Playing>,
    shift: Shift,
    admitted: Admitted,
    /// Bandwidth that is booked in the cluster, from the first PLAY on.
    booked: Option<Booked>,
    record: Arc<Record>,
}

/// Transport of a track's packets.
pub(super) enum Way {
    /// UDP, to the client's ports.
    Udp(Udp),
    /// Interleaved on the connection.
    Interleaved(Interleaved),
}

impl Shared {
    pub(super) fn new(session: Session, wire: &Arc<Wire>, (pass, hold): (Pass, ClientHold)) -> Arc<Self> {
        let (progress, record) = (session.subscriber.progress().clone(), session.record.clone());
        let is_interleaved = AtomicBool::new(session.is_interleaved());
        let wire = Arc::downgrade(wire);
        Arc::new(Self { session: Mutex::new(session), progress, record, is_interleaved, wire, pass, _hold: hold })
    }

    /// The session's record, and the bytes that it was sent.
    pub(super) fn record(&self) -> (&Record, u64) {
        (&self.record, self.progress.sent())
    }

    /// Ends the connection of the first SETUP.
    pub(super) fn disconnect(&self) {
        if let Some(wire) = self.wire.upgrade() {
            wire.shut();
        }
    }

    /// Notes the way of a session's packets, after it was set up.
    pub(super) fn is_set_up(&self, session: &Session) {
        self.is_interleaved.store(session.is_interleaved(), Ordering::Relaxed);
    }
}

impl Viewer for Arc<Shared> {
    fn signs(&self) -> Option<Signs> {
        let session = self.session.try_lock().ok()?;
        Some(Signs {
            heard: Duration::from_millis(self.progress.heard()),
            is_stuck: self.progress.is_stuck(),
            is_sent: session.is_playing() && !self.progress.has_ended(),
            has_played: session.admitted.has_played(),
        })
    }

    fn is_interleaved(&self) -> bool {
        self.is_interleaved.load(Ordering::Relaxed)
    }

    fn is_over(&self) -> bool {
        self.pass.is_over()
    }

    fn heard(&self, now: Duration) {
        self.progress.set_heard(now.as_millis() as u64);
    }

    fn ends(&self, why: End) {
        self.record.ends(why);
    }
}

impl Session {
    pub(super) fn new(
        path: String,
        medium: Medium,
        subscriber: Subscriber,
        admitted: Admitted,
        record: Arc<Record>,
    ) -> Self {
        let (group, channels, course) = (None, Vec::new(), Course::Ready);
        let (shift, booked) = (Shift::default(), None);
        Self { path, medium, group, subscriber, channels, course, shift, admitted, booked, record }
    }

    pub(super) fn is_playing(&self) -> bool {
        self.course.playing().is_some()
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

    /// Whether its packets go over the connection that it was set up on.
    fn is_interleaved(&self) -> bool {
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
            self.group = manager.group(self.medium.program()?);
        }
        self.group.clone()
    }

    /// Books the bandwidth of the whole playback in the cluster, unless the session has it. A viewer who pauses for long needs it for longer.
    ///
    /// # Errors
    /// The node or the storage lacks bandwidth.
    pub(super) async fn book(&mut self, cluster: &Arc<Cluster>, place: Option<Arc<str>>) -> Result<(), Shortage> {
        if self.group.is_some() || self.booked.as_ref().is_some_and(Booked::lasts) {
            return Ok(());
        }
        let tracks: Vec<u16> = self.subscriber.set_up_tracks().collect();
        let demand = match self.medium.stored() {
            Some(media) => stored_demand(media, place, &tracks),
            None => Demand { rate: Bitrate::from_bps(self.medium.feed().rate(tracks)), ..Demand::default() },
        };
        match cluster.book(demand).await {
            Ok(booked) => self.booked = booked,
            // The booking of the session is still its own.
            Err(_) if self.booked.as_ref().is_some_and(|booked| !booked.is_over()) => {}
            Err(shortage) => return Err(shortage),
        }
        Ok(())
    }

    /// Gives the booked bandwidth back, because nothing plays: PLAY was refused for another reason. The next one books again.
    pub(super) fn refuse_booking(&mut self) {
        if !self.is_playing()
            && let Some(booked) = self.booked.take()
        {
            booked.refuse();
        }
    }

    /// Pauses playback at its current position.
    pub(super) async fn pause(&mut self) {
        if let Some(playing) = self.course.take() {
            let stopped = playing.stop(&mut self.subscriber).await;
            self.course.stopped(stopped);
        }
    }

    /// Makes a part ready, in place of what plays. [`start`](Self::start) sends it.
    pub(super) async fn open(&mut self, manager: &Manager, asked: Asked) -> Result<Opened, CannotPlay> {
        let wanted = match self.medium.program() {
            Some(program) if self.group.is_none() => {
                self.shift.wanted(asked.range, manager.kept(program.path()), !self.admitted.has_played())?
            }
            Some(_) => Wanted::Edge,
            None if asked.range.npt().is_none() => return Err(CannotPlay::Units),
            None => Wanted::Next,
        };
        // A viewer that joins again finds the channel as it left it.
        let _shared = self.course.playing().and_then(Playing::keep_alive);
        // PLAY without a range changes nothing for a viewer of the live edge.
        let stays = self.is_playing() && self.shift.is_at_edge;
        self.pause().await;
        if let Some(group) = &self.group {
            return Ok(manager.open_group(group).await?);
        }
        let request = match &self.medium {
            Medium::Program(program) => self.live(program, wanted, (stays, asked.speed)),
            Medium::Stored(media) => self.request(media, asked),
            Medium::Phased(phased) => self.phased(phased, asked),
            Medium::Remote(title) => {
                let NptRange { from, to } = asked.range.npt().unwrap_or_default();
                let from = self.course.start(from, 1.0, title.length().as_secs_f64());
                Request::Remote { title: title.clone(), from, to, speed: asked.speed }
            }
        };
        Ok(manager.open(&mut self.subscriber, request).await?)
    }

    fn live(&self, program: &Program, wanted: Wanted, (stays, speed): (bool, f64)) -> Request {
        let (from, to) = match (wanted, self.course.shifted()) {
            (Wanted::Part(from, to), _) => (PastStart::At(from), to),
            (Wanted::Next, Some(start)) if !stays => (start.clone(), None),
            (Wanted::Edge | Wanted::Next, _) => return Request::Channel(program.clone()),
        };
        Request::Past { program: program.clone(), from, to, speed }
    }

    /// The `Range` of what is ready.
    pub(super) fn range(&self, opened: &Opened) -> String {
        self.shift.range(opened.played().part)
    }

    /// Begins to send. The session counts among those that have played, and the log tells it.
    pub(super) fn start(&mut self, opened: Opened) {
        self.shift.is_at_edge = opened.played().part == PlayedPart::Now;
        self.course = Course::Playing(opened.start());
        self.admitted.play();
        self.record.plays(self.transport());
    }

    /// A title that plays in phases. A part with an end is the patch of a receiver of multicast, and is sent as it is.
    fn phased(&self, phased: &PhasedTitle, asked: Asked) -> Request {
        let PhasedTitle { media, phases, .. } = phased;
        let NptRange { from, to } = asked.range.npt().unwrap_or_default();
        if to.is_some() || self.subscriber.scale(media, asked.scale) != 1.0 {
            return self.request(media, asked);
        }
        let from = self.course.start(from, 1.0, media.duration());
        let (media, phases) = (media.clone(), phases.clone());
        Request::Phased { media, from, speed: patch_speed(asked.speed, self.is_interleaved()), phases }
    }

    fn request(&self, media: &Arc<StoredMedia>, asked: Asked) -> Request {
        let media = media.clone();
        let scale = self.subscriber.scale(&media, asked.scale);
        let NptRange { from, to } = asked.range.npt().unwrap_or_default();
        let from = self.course.start(from, scale, media.duration());
        Request::Stored { media, from, to, scale, speed: asked.speed }
    }
}
