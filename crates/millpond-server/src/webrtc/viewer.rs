//! The session of one viewer: a task that owns the connection's state machine and its playback.

use super::{
    metrics::{Reason, WebRtcMetrics},
    negotiation::SentTrack,
    record::Record,
    sessions::{EndedBy, Entry, Received},
};
use bytes::BytesMut;
use millpond_access::{ClientHold, Pass};
use millpond_rtp::{
    rtcp::{self, RtcpItem},
    sdp_writer::Described,
    srtp::{MasterKey, Unprotector},
};
use millpond_stream::{
    Admitted, CannotOpen, Manager, Playing, Program, Protection, Request, SharedPort, Subscriber, outlet::SHARED_PACKET,
};
use millpond_webrtc::{Datagram, Ended, PeerEvent, RtcPeer, SrtpKeys};
use std::{
    collections::HashMap,
    net::{SocketAddr, UdpSocket},
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
    pub(super) socket: Arc<UdpSocket>,
    pub(super) program: Program,
    pub(super) tracks: Vec<SentTrack>,
    pub(super) peer: RtcPeer,
    pub(super) subscriber: Subscriber,
    pub(super) admitted: Admitted,
    pub(super) entry: Entry,
    pub(super) record: Arc<Record>,
    pub(super) metrics: WebRtcMetrics,
    /// Rights of the client, and its place among the sessions of its address.
    pub(super) rights: (Pass, ClientHold),
}

/// Why a session ends.
#[derive(Debug, thiserror::Error)]
enum End {
    #[error("its client ended it")]
    Deleted,
    #[error("an operator ended it")]
    Kicked,
    #[error("{0}")]
    Connection(#[from] Ended),
    #[error("the stream can't be played: {0}")]
    Stream(#[from] CannotOpen),
    #[error("the stream ended")]
    Over,
    #[error("its token expired, or its client was sent away")]
    Rights,
    #[error("shutdown")]
    Stop,
}

/// What is sent, once the peer has connected.
struct Playback {
    port: SharedPort,
    playing: Option<Playing>,
    /// Key of the peer's reports, and their sources.
    key: MasterKey,
    sources: HashMap<u32, Unprotector>,
    /// When the viewer began, or was sent a key frame that it asked for.
    began: Instant,
}

impl From<EndedBy> for End {
    fn from(by: EndedBy) -> Self {
        match by {
            EndedBy::Client => Self::Deleted,
            EndedBy::Operator => Self::Kicked,
        }
    }
}

impl End {
    fn reason(&self) -> Reason {
        match self {
            Self::Deleted | Self::Connection(Ended::Closed) => Reason::Client,
            Self::Kicked => Reason::Operator,
            Self::Connection(Ended::Silent(_)) => Reason::Silent,
            Self::Connection(Ended::Unconnected | Ended::Certificate | Ended::Suite | Ended::Dtls(_)) => Reason::Failed,
            Self::Stream(_) | Self::Over => Reason::Stream,
            Self::Rights => Reason::Rights,
            Self::Stop => Reason::Shutdown,
        }
    }
}

/// Waits until something other than its default is told. `None` where nobody can tell it any more.
async fn told<T: Copy + Default + PartialEq>(word: &mut watch::Receiver<T>) -> Option<T> {
    word.wait_for(|word| *word != T::default()).await.ok().map(|word| *word)
}

impl Viewer {
    /// Serves the session to its end.
    pub(super) async fn run(mut self, mut stop: watch::Receiver<bool>) {
        let mut playback = None;
        let end = self.serve(&mut playback, &mut stop).await;
        if let Some(Playback { playing: Some(playing), .. }) = playback {
            playing.stop(&mut self.subscriber).await;
        }
        self.peer.close(Instant::now());
        let _ = self.take_events();
        self.metrics.end(end.reason());
        self.record.ends(&end);
    }

    async fn serve(&mut self, playback: &mut Option<Playback>, stop: &mut watch::Receiver<bool>) -> End {
        let mut end = self.entry.end.clone();
        // Datagrams of a peer that sends often don't put it off.
        let mut look = Instant::now() + LOOK;
        loop {
            let next = self.peer.next().min(look);
            let result = tokio::select! {
                received = self.entry.inbox.recv() => match received {
                    Some(received) => self.receive(received, playback.as_mut()).await,
                    None => Err(End::Deleted),
                },
                () = tokio::time::sleep_until(next.into()) => {
                    look = Instant::now() + LOOK;
                    self.tick(playback.as_ref())
                }
                by = told(&mut end) => Err(by.flatten().map_or(End::Stop, End::from)),
                _ = told(stop) => Err(End::Stop),
            };
            if let Err(end) = result {
                return end;
            }
            if let Some((address, keys)) = self.take_events() {
                match self.begin(address, &keys).await {
                    Ok(begun) => *playback = Some(begun),
                    Err(end) => return end,
                }
            }
            if let (Some(playback), Some(address)) = (&playback, self.peer.address()) {
                playback.port.move_to(address);
            }
        }
    }

    /// Sends what the peer has to be sent. Returns its address and keys when it has connected.
    fn take_events(&mut self) -> Option<(SocketAddr, Box<SrtpKeys>)> {
        let mut connected = None;
        while let Some(event) = self.peer.poll() {
            match event {
                // What can't be sent is lost, as on the network: the peer asks again.
                PeerEvent::Send(to, bytes) => _ = self.socket.send_to(&bytes, to),
                PeerEvent::Connected(address, keys) => connected = Some((address, keys)),
                PeerEvent::Moved(_) => {}
            }
        }
        connected
    }

    /// Takes a datagram of the peer.
    async fn receive(&mut self, (from, bytes): Received, playback: Option<&mut Playback>) -> Result<(), End> {
        match Datagram::of(&bytes) {
            Some(Datagram::Rtcp) if self.peer.has_checked(from) => {
                if let Some(playback) = playback {
                    self.hear(&bytes, playback).await?;
                }
            }
            _ => {
                self.peer.receive(from, &bytes, Instant::now())?;
                if self.peer.has_checked(from) {
                    self.entry.claim(from);
                }
            }
        }
        Ok(())
    }

    /// Takes the time, and looks whether the session goes on.
    fn tick(&mut self, playback: Option<&Playback>) -> Result<(), End> {
        self.peer.tick(Instant::now())?;
        if self.rights.0.is_over() {
            return Err(End::Rights);
        }
        if playback.is_some() && self.subscriber.progress().has_ended() {
            return Err(End::Over);
        }
        Ok(())
    }

    /// Sets the tracks up under the keys of the connection, and begins to send.
    async fn begin(&mut self, address: SocketAddr, keys: &SrtpKeys) -> Result<Playback, End> {
        let port = SharedPort::new(self.socket.clone(), address);
        let outlet = Arc::new(port.clone());
        let protection = || Box::new(Protection::new(&keys.sent, None));
        for SentTrack { track, payload_type, ssrc, repeats } in &self.tracks {
            let number = usize::from(*track);
            let format = self.program.feed().format(*track);
            let Some(described) = format.and_then(|format| format.described(number)) else { continue };
            let described = Described { payload_type: *payload_type, ..described };
            self.subscriber.set_up(number, &described, outlet.clone(), (*ssrc, Some(protection())));
            if let Some((payload_type, ssrc)) = repeats {
                self.subscriber.keep_encrypted_packets(number, *payload_type, (*ssrc, protection()));
            }
        }
        self.subscriber.play_in_real_time(SHARED_PACKET);
        let playing = Some(self.play().await?);
        self.admitted.play();
        self.record.plays();
        let key = keys.received.clone();
        Ok(Playback { port, playing, key, sources: HashMap::new(), began: Instant::now() })
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
