//! A session from its request to its end.

use super::{
    Srt, SrtPort, link::Link, metrics::Reason, publisher, record::Record, refusal::Refused, rights::Asker,
    sessions::Entry, viewer,
};
use millpond_connections::{Slot, Tallied};
use millpond_srt::{ConnectionRequest, Counts, SrtConnection, SrtEnded, StreamAction, StreamId, UnlockedRequest};
use millpond_stream::{CannotOpen, ClientAddress, PublicationEnd, reception::SourceError};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::watch;

/// Interval between looks at the rights of a session, its stream and its counts.
pub(super) const LOOK: Duration = Duration::from_secs(1);

/// A request that is being looked at.
pub(super) struct NewSession {
    pub(super) port: Arc<SrtPort>,
    pub(super) srt: Arc<Srt>,
    pub(super) entry: Entry,
    /// Its place among all sessions, and among those of its address.
    pub(super) holds: (Slot, Option<Tallied<ClientAddress>>),
}

/// Why a session ends.
#[derive(Debug, thiserror::Error)]
pub(super) enum End {
    #[error("{0}")]
    Connection(#[from] SrtEnded),
    #[error("an operator ended it")]
    Kicked,
    #[error("{0}")]
    Publication(#[from] PublicationEnd),
    #[error("no media arrived for {} s", .0.as_secs_f64())]
    Silent(Duration),
    #[error("the stream can't be played: {0}")]
    Stream(#[from] CannotOpen),
    #[error("the stream can't be played: {0}")]
    Source(Arc<SourceError>),
    #[error("a transport stream can't carry the tracks of this stream")]
    Unfit,
    #[error("the stream ended")]
    Over,
    #[error("its token expired, or its client was sent away")]
    Rights,
    #[error("shutdown")]
    Stop,
}

impl End {
    fn reason(&self) -> Reason {
        match self {
            Self::Connection(SrtEnded::Closed) => Reason::Client,
            Self::Connection(SrtEnded::Silent(_)) | Self::Silent(_) => Reason::Silent,
            Self::Connection(SrtEnded::KeyUsedUp) | Self::Publication(PublicationEnd::Failed(_)) => Reason::Failed,
            Self::Publication(PublicationEnd::Replaced) => Reason::Replaced,
            Self::Publication(PublicationEnd::Closed | PublicationEnd::HandedOver) => Reason::Stream,
            Self::Kicked => Reason::Operator,
            Self::Stream(_) | Self::Source(_) | Self::Unfit | Self::Over => Reason::Stream,
            Self::Rights => Reason::Rights,
            Self::Stop => Reason::Shutdown,
        }
    }
}

/// A session that was accepted: its connection and its record.
pub(super) struct Session {
    pub(super) link: Link,
    pub(super) record: Arc<Record>,
    port: Arc<SrtPort>,
    /// The counts that the metrics have already, and the time of the next look.
    counted: Counts,
    look: Instant,
    stop: watch::Receiver<bool>,
    /// Its place among all sessions, and among those of its address.
    _holds: (Slot, Option<Tallied<ClientAddress>>),
}

impl NewSession {
    /// Serves the session to its end.
    pub(super) async fn run(self, request: Box<ConnectionRequest>, stop: watch::Receiver<bool>) {
        let (port, srt) = (self.port.clone(), self.srt.clone());
        // The key is derived first: who lacks the passphrase learns nothing of streams and users.
        let unlocked = match request.unlock(srt.passphrase.as_ref()) {
            Ok(unlocked) => unlocked,
            Err((request, code)) => return port.refuse(&request, None, &Refused::Handshake(code), &srt),
        };
        match StreamId::parse(unlocked.request().stream_id()) {
            Err(error) => port.refuse(unlocked.request(), None, &error.into(), &srt),
            Ok(id) => self.serve(unlocked, &id, stop).await,
        }
    }

    async fn serve(self, unlocked: UnlockedRequest, id: &StreamId, stop: watch::Receiver<bool>) {
        let (port, srt) = (self.port.clone(), self.srt.clone());
        let request = unlocked.request();
        let (major, minor, patch) = request.version();
        let agent = format!("SRT {major}.{minor}.{patch}");
        let (client, is_encrypted) = (request.peer().ip().to_canonical(), request.is_encrypted());
        let asker = Asker { client, id, is_encrypted, agent: &agent };
        match id.action {
            StreamAction::Publish => match publisher::open(&srt, &asker).await {
                Ok(published) => {
                    let mut session = self.accept(unlocked, (&id.path, true), agent, stop);
                    let ended = publisher::serve(&mut session, &published).await;
                    session.end(ended);
                }
                Err(why) => port.refuse(unlocked.request(), Some(&id.path), &why, &srt),
            },
            StreamAction::Play => match viewer::open(&srt, &asker).await {
                Ok(viewed) => {
                    let mut session = self.accept(unlocked, (&id.path, false), agent, stop);
                    let ended = viewer::serve(&mut session, viewed).await;
                    session.end(ended);
                }
                Err(why) => port.refuse(unlocked.request(), Some(&id.path), &why, &srt),
            },
        }
    }

    /// Accepts the request.
    fn accept(
        self,
        unlocked: UnlockedRequest,
        (path, publishes): (&str, bool),
        agent: String,
        stop: watch::Receiver<bool>,
    ) -> Session {
        let Self { port, srt, entry, holds } = self;
        let (peer, is_encrypted) = (unlocked.request().peer(), unlocked.request().is_encrypted());
        let connection: SrtConnection = unlocked.accept(entry.socket, srt.latency, port.now());
        let record = Record::new(port.number(), (peer, agent), (path, publishes), srt.access_log);
        let record = Arc::new(record);
        entry.show(record.clone());
        let link = Link::new(connection, (port.socket.clone(), peer), port.clock, entry);
        let (receive, send) = link.latency();
        record.begins(is_encrypted, if publishes { receive } else { send });
        port.metrics.begin(publishes);
        let look = Instant::now() + LOOK;
        Session { link, record, port, counted: Counts::default(), look, stop, _holds: holds }
    }
}

impl Session {
    /// Ends it, and tells why.
    fn end(mut self, ended: Result<(), End>) {
        let end = ended.err().unwrap_or(End::Over);
        self.count();
        let Self { link, record, port, .. } = self;
        record.ends(&link.counts(), &end);
        port.metrics.end(record.publishes, end.reason());
        link.close();
    }

    /// Sends what is to be sent, and waits until something has arrived or is due.
    ///
    /// # Errors
    /// The session ends.
    pub(super) async fn step(&mut self) -> Result<(), End> {
        self.link.advance()?;
        let look = self.look;
        tokio::select! {
            ended = self.link.wait() => ended?,
            () = tokio::time::sleep_until(look.into()) => {}
            _ = self.stop.wait_for(|stop| *stop) => return Err(End::Stop),
        }
        Ok(())
    }

    /// Whether a look at rights and streams is due. Then the counts are told, and the next look is set.
    ///
    /// # Errors
    /// An operator ends the session.
    pub(super) fn looks(&mut self) -> Result<bool, End> {
        if Instant::now() < self.look {
            return Ok(false);
        }
        self.look = Instant::now() + LOOK;
        self.count();
        if self.link.is_kicked() { Err(End::Kicked) } else { Ok(true) }
    }

    fn count(&mut self) {
        let counts = self.link.counts();
        self.port.metrics.add(&self.counted, &counts);
        self.record.count(&counts);
        self.counted = counts;
    }
}
