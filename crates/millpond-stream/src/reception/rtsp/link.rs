//! The session of an RTSP client together with its connection.

use crate::reception::{
    rtsp::{
        connector::{Connection, ConnectionEnds, Connector},
        wire::Wire,
    },
    source::RtspSource,
};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use millpond_rtp::{
    client::{ClientAction, ClientError, ClientPlayback, ClientTrack, Endpoint, Received, RtspClient},
    sdp_reader::SessionDescription,
    setup::Offer,
};
use std::{io, sync::Arc, time::Duration};
use tokio::time::{Instant, sleep_until, timeout};

/// Time limit of a TEARDOWN that nobody waits for.
const LEAVING: Duration = Duration::from_secs(2);

/// Times from one moment on: arrivals, and deadlines of state machines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn now(self) -> Duration {
        self.0.elapsed()
    }

    /// Sleeps until a time; forever where there is none.
    pub(crate) async fn sleep_until(self, time: Option<Duration>) {
        match time.and_then(|time| self.0.checked_add(time)) {
            Some(time) => sleep_until(time).await,
            None => std::future::pending().await,
        }
    }
}

/// A client and its connection.
pub(in crate::reception) struct Link {
    client: RtspClient,
    connector: Arc<dyn Connector>,
    carrier: Carrier,
    watch: Stopwatch,
    /// Whether bytes were skipped.
    has_skipped: bool,
}

/// The connection of a client.
enum Carrier {
    None,
    Opening(BoxFuture<'static, io::Result<Box<dyn Connection>>>),
    Open(Box<Wire>),
}

/// An event of a session.
#[derive(Debug)]
pub(in crate::reception) enum LinkEvent {
    /// The server's description: call [`Link::set_up`].
    Described(SessionDescription),
    /// The server accepted a request within a time.
    Replied(Duration),
    /// All tracks are set up: call [`Link::play`].
    Opened(Vec<ClientTrack>),
    /// The server plays.
    Playing(ClientPlayback),
    /// A packet of an interleaved channel.
    Media { channel: u8, bytes: Bytes },
    /// The session failed or is over.
    Ended(Option<ClientError>),
}

impl Link {
    /// Begins a session.
    ///
    /// # Errors
    /// The URL can't be requested.
    pub(in crate::reception) fn new(
        source: &RtspSource,
        connector: Arc<dyn Connector>,
        watch: Stopwatch,
    ) -> Result<Self, ClientError> {
        let options = source.client_options(fastrand::u64(..));
        let client = RtspClient::new(source.url(), options, watch.now())?;
        Ok(Self { client, connector, carrier: Carrier::None, watch, has_skipped: false })
    }

    /// Returns the next event that needs no waiting.
    pub(in crate::reception) fn take(&mut self) -> Option<LinkEvent> {
        loop {
            while let Some(action) = self.client.poll() {
                match action {
                    ClientAction::Connect(endpoint) => self.connect(endpoint),
                    ClientAction::Send(bytes) => {
                        if let Carrier::Open(wire) = &mut self.carrier {
                            wire.send(&bytes);
                        }
                    }
                    ClientAction::Described(description) => return Some(LinkEvent::Described(description)),
                    ClientAction::Opened(tracks) => return Some(LinkEvent::Opened(tracks)),
                    ClientAction::Playing(playback) => return Some(LinkEvent::Playing(playback)),
                    ClientAction::Closed => return Some(LinkEvent::Ended(None)),
                    ClientAction::Failed(error) => return Some(LinkEvent::Ended(Some(error))),
                    ClientAction::Accepted { took, .. } => return Some(LinkEvent::Replied(took)),
                    ClientAction::Paused | ClientAction::Recording(_) => {}
                }
            }
            let Carrier::Open(wire) = &mut self.carrier else { return None };
            match self.client.receive(&mut wire.input, self.watch.now())? {
                Received::Media { channel, bytes } => return Some(LinkEvent::Media { channel, bytes }),
                Received::Control => {}
                Received::Skipped(bytes) => self.skipped(bytes),
            }
        }
    }

    /// Waits until there may be an event, and writes meanwhile. Cancel safe.
    pub(in crate::reception) async fn wait(&mut self) {
        let wake = self.client.wake();
        let failure = tokio::select! {
            result = carry(&mut self.carrier) => match result {
                Ok(Some(wire)) => {
                    self.carrier = Carrier::Open(wire);
                    return self.client.connected(self.watch.now());
                }
                Ok(None) => return,
                Err(error) => error,
            },
            () = self.watch.sleep_until(wake) => return self.client.tick(self.watch.now()),
        };
        self.carrier = Carrier::None;
        self.client.disconnected(&failure.to_string());
    }

    fn connect(&mut self, endpoint: Endpoint) {
        if let Carrier::Open(wire) = &mut self.carrier {
            // The TEARDOWN before a redirect.
            wire.write_now();
        }
        let connector = self.connector.clone();
        self.carrier = Carrier::Opening(Box::pin(async move { connector.connect(&endpoint).await }));
    }

    /// Tells of the first bytes that are no message.
    fn skipped(&mut self, bytes: usize) {
        if !std::mem::replace(&mut self.has_skipped, true) {
            tracing::warn!(
                bytes,
                "a source sends bytes between packets that are no message; all such bytes are skipped"
            );
        }
    }

    /// See [`RtspClient::set_up`].
    pub(in crate::reception) fn set_up(&mut self, offers: &[(usize, Offer)]) {
        self.client.set_up(offers, self.watch.now());
    }

    /// Plays from the live edge, or the beginning.
    pub(in crate::reception) fn play(&mut self) {
        self.client.play(None, self.watch.now());
    }

    /// Plays from a time in seconds, at a speed where there is one.
    pub(in crate::reception) fn play_from(&mut self, from: f64, speed: Option<f64>) {
        match speed {
            Some(speed) => self.client.play_faster(from, speed, self.watch.now()),
            None => self.client.play(Some(from), self.watch.now()),
        }
    }

    /// See [`RtspClient::media_arrived`].
    pub(in crate::reception) fn media_arrived(&mut self) {
        self.client.media_arrived();
    }

    /// Sends a packet on an interleaved channel, unless the server takes nothing.
    pub(in crate::reception) fn offer(&mut self, channel: u8, packet: &[u8]) {
        if let Carrier::Open(wire) = &mut self.carrier {
            wire.offer(channel, packet);
        }
    }

    /// See [`Connection::addresses`].
    pub(in crate::reception) fn addresses(&self) -> io::Result<ConnectionEnds> {
        match &self.carrier {
            Carrier::Open(wire) => wire.addresses(),
            Carrier::None | Carrier::Opening(_) => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// Sends TEARDOWN and waits for the reply, for 2 s at most.
    pub(in crate::reception) async fn leave(mut self) {
        self.client.tear_down(self.watch.now());
        let ended = async {
            loop {
                match self.take() {
                    Some(LinkEvent::Ended(_)) => break,
                    Some(_) => {}
                    None => self.wait().await,
                }
            }
        };
        // A server that doesn't reply ends the session by its own timeout.
        let _ = timeout(LEAVING, ended).await;
    }

    /// Whether there is a connection.
    pub(in crate::reception) fn is_open(&self) -> bool {
        matches!(self.carrier, Carrier::Open(_))
    }
}

/// Opens the connection, which is returned, or exchanges bytes. Cancel safe.
async fn carry(carrier: &mut Carrier) -> io::Result<Option<Box<Wire>>> {
    match carrier {
        Carrier::None => std::future::pending().await,
        Carrier::Opening(opening) => Ok(Some(Box::new(Wire::new(opening.await?)))),
        Carrier::Open(wire) => wire.exchange().await.map(|()| None),
    }
}
