//! The session of one viewer: a task that owns the connection's state machine and its playback.

use super::{
    connection::{Connection, ConnectionEvent, told},
    end::End,
    metrics::WebRtcMetrics,
    negotiation::SentTrack,
    outlet::PeerOutlet,
    record::Record,
    viewed::Sound,
};
use bytes::BytesMut;
use millpond_access::{ClientHold, Pass};
use millpond_rtp::{
    rtcp::{self, RtcpItem},
    sdp_writer::Described,
    srtp::{MasterKey, Unprotector},
};
use millpond_stream::{
    Admitted, CannotOpen, Manager, Playing, Program, Protection, Request, Subscriber, outlet::SHARED_PACKET,
};
use millpond_webrtc::SrtpKeys;
use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::watch;

/// Interval between looks at the rights and the stream of a session.
const LOOK: Duration = Duration::from_secs(1);
/// Least time between two key frames that a viewer is sent because it asked for one.
const KEY_FRAMES: Duration = Duration::from_millis(500);
/// Sources of a peer whose reports are read: browsers report from one for each section.
const SOURCES: usize = 8;

/// A session of a viewer.
pub(super) struct Viewer {
    pub(super) manager: Arc<Manager>,
    pub(super) connection: Connection,
    pub(super) program: Program,
    pub(super) _sound: Sound,
    pub(super) tracks: Vec<SentTrack>,
    pub(super) subscriber: Subscriber,
    pub(super) admitted: Admitted,
    pub(super) record: Arc<Record>,
    pub(super) metrics: WebRtcMetrics,
    /// Rights of the client, and its place among the sessions of its address.
    pub(super) rights: (Pass, ClientHold),
}

/// The playback of a connected peer: its media, and the keys of its reports.
struct Playback {
    outlet: PeerOutlet,
    playing: Option<Playing>,
    /// Key of the peer's reports, and their sources.
    key: MasterKey,
    sources: HashMap<u32, Unprotector>,
    /// When the viewer began, or was sent a key frame that it asked for.
    began: Instant,
}

impl Viewer {
    /// Serves the session to its end.
    pub(super) async fn run(mut self, mut stop: watch::Receiver<bool>) {
        let mut playback = None;
        let end = self.serve(&mut playback, &mut stop).await;
        if let Some(Playback { playing: Some(playing), .. }) = playback {
            playing.stop(&mut self.subscriber).await;
        }
        self.connection.close();
        self.metrics.end(end.reason());
        self.record.ends(&end);
    }

    async fn serve(&mut self, playback: &mut Option<Playback>, stop: &mut watch::Receiver<bool>) -> End {
        let mut end = self.connection.end();
        // Datagrams of a peer that sends often don't put it off.
        let mut look = Instant::now() + LOOK;
        loop {
            let next = self.connection.peer.next().min(look);
            let event = tokio::select! {
                received = self.connection.entry.inbox.recv() => match received {
                    Some(received) => self.connection.receive(received).map_err(End::from),
                    None => Err(End::Deleted),
                },
                () = tokio::time::sleep_until(next.into()) => {
                    look = Instant::now() + LOOK;
                    self.tick(playback.as_ref())
                }
                by = told(&mut end) => Err(by.flatten().map_or(End::Stop, End::from)),
                _ = told(stop) => Err(End::Stop),
            };
            if let Err(end) = self.take(event, playback).await {
                return end;
            }
            if let Some(playback) = &playback {
                self.connection.direct(&playback.outlet);
            }
        }
    }

    /// Takes an event of the connection.
    async fn take(
        &mut self,
        event: Result<Option<ConnectionEvent>, End>,
        playback: &mut Option<Playback>,
    ) -> Result<(), End> {
        match event? {
            Some(ConnectionEvent::Connected(keys)) => *playback = Some(self.begin(&keys).await?),
            Some(ConnectionEvent::Media(bytes)) => {
                if let Some(playback) = playback {
                    self.hear(&bytes, playback).await?;
                }
            }
            None => {}
        }
        Ok(())
    }

    /// Takes the time, and looks whether the session goes on.
    fn tick(&mut self, playback: Option<&Playback>) -> Result<Option<ConnectionEvent>, End> {
        let event = self.connection.tick()?;
        if self.rights.0.is_over() {
            return Err(End::Rights);
        }
        if playback.is_some() && self.subscriber.progress().has_ended() {
            return Err(End::Over);
        }
        Ok(event)
    }

    /// Sets the tracks up under the keys of the connection, and begins to send.
    async fn begin(&mut self, keys: &SrtpKeys) -> Result<Playback, End> {
        let Some(outlet) = self.connection.outlet() else { return Err(End::Over) };
        let shared = Arc::new(outlet.clone());
        let protection = || Box::new(Protection::new(&keys.sent, None));
        for SentTrack { track, payload_type, ssrc, repeats } in &self.tracks {
            let number = usize::from(*track);
            let format = self.program.feed().format(*track);
            let Some(described) = format.and_then(|format| format.described(number)) else { continue };
            let described = Described { payload_type: *payload_type, ..described };
            self.subscriber.set_up(number, &described, shared.clone(), (*ssrc, Some(protection())));
            if let Some((payload_type, ssrc)) = repeats {
                self.subscriber.keep_encrypted_packets(number, *payload_type, (*ssrc, protection()));
            }
        }
        self.subscriber.play_in_real_time(SHARED_PACKET);
        let playing = Some(self.play().await?);
        self.admitted.play();
        self.record.plays();
        let key = keys.received.clone();
        Ok(Playback { outlet, playing, key, sources: HashMap::new(), began: Instant::now() })
    }

    /// Begins to send from the last key frame on.
    async fn play(&mut self) -> Result<Playing, End> {
        match self.manager.open(&mut self.subscriber, Request::Channel(self.program.clone())).await {
            Ok(opened) => Ok(opened.start()),
            Err(error) => {
                if let CannotOpen::Full(full) = error {
                    self.manager.counters().refuse(full);
                }
                Err(error.into())
            }
        }
    }

    /// Takes reports of the peer: the sending thread answers them. Where pictures were lost, they begin with a key frame again.
    async fn hear(&mut self, bytes: &[u8], playback: &mut Playback) -> Result<(), End> {
        let Some(source) = bytes.get(4..8).and_then(|source| source.try_into().ok()).map(u32::from_be_bytes) else {
            return Ok(());
        };
        let mut packet = BytesMut::from(bytes);
        let is_full = playback.sources.len() == SOURCES;
        let opened = match playback.sources.get_mut(&source) {
            Some(unprotector) => unprotector.rtcp(&mut packet).map(|packet| &*packet),
            None if is_full => return Ok(()),
            None => {
                let mut unprotector = Unprotector::new(&playback.key, 0);
                let opened = unprotector.rtcp(&mut packet).map(|packet| &*packet);
                // Strangers make no entries.
                if opened.is_ok() {
                    playback.sources.insert(source, unprotector);
                }
                opened
            }
        };
        let Ok(opened) = opened else { return Ok(()) };
        let asks = rtcp::parse(opened).is_ok_and(|items| items.contains(&RtcpItem::KeyFrame));
        self.subscriber.report(opened);
        if asks && playback.began.elapsed() >= KEY_FRAMES {
            playback.began = Instant::now();
            if let Some(playing) = playback.playing.take() {
                let _shared = playing.keep_alive();
                playing.stop(&mut self.subscriber).await;
                playback.playing = Some(self.play().await?);
            }
        }
        Ok(())
    }
}
