//! One connection of a publisher or viewer.

use super::{
    Rtmp,
    metrics::Reason,
    publication::{NoPublication, Published},
    refusal::Refused,
    rights::Client,
    sessions::Held,
    viewer::{self, Viewed},
};
use bytes::{Buf as _, BytesMut};
use millpond_connections::proxies::ConnectionClient;
use millpond_rtmp::{Refusal, RtmpError, RtmpEvent, RtmpMedia, Session, StreamTarget};
use millpond_stream::{PublicationEnd, Viewing};
use std::{
    future::{Future as _, poll_fn},
    io,
    net::SocketAddr,
    pin::pin,
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    time::timeout,
};

/// Room for one read before the client publishes, and while it does, in bytes.
const READ_COMMANDS: usize = 2048;
const READ_MEDIA: usize = 32 << 10;
/// Bytes of replies above which nothing is read: a client that asks takes answers too.
const MOST_UNWRITTEN: usize = 64 << 10;
/// Time for the last words to a client.
const FAREWELL: Duration = Duration::from_secs(1);

/// Why a connection ends.
#[derive(Debug, thiserror::Error)]
pub(super) enum End {
    #[error("its client stopped")]
    Stopped,
    #[error("its client left")]
    Left,
    #[error("{0}")]
    Connection(#[from] io::Error),
    #[error("{0}")]
    Protocol(#[from] RtmpError),
    #[error("{0}")]
    NoPublication(#[from] NoPublication),
    #[error("{0}")]
    Refused(#[from] Refused),
    #[error("{0}")]
    Publication(#[from] PublicationEnd),
    #[error("nothing arrived for {} s", .0.as_secs_f64())]
    Silent(Duration),
    #[error("no stream was published or played within {} s", .0.as_secs_f64())]
    Idle(Duration),
    #[error("its client took nothing for {} s", .0.as_secs_f64())]
    Slow(Duration),
    #[error("the stream ended")]
    Over,
    #[error("its token expired, or its client was sent away")]
    Rights,
    #[error("an operator ended it")]
    Kicked,
}

impl End {
    /// The reason for which a viewer's session ends.
    fn reason(&self) -> Reason {
        match self {
            Self::Slow(_) => Reason::Slow,
            Self::Over | Self::Refused(_) => Reason::Stream,
            Self::Rights => Reason::Rights,
            Self::Kicked => Reason::Operator,
            _ => Reason::Client,
        }
    }

    /// The refusal that a publisher or player is sent when its session ends so; `None` where the connection closes without one.
    fn refusal(&self) -> Option<Refusal> {
        match self {
            Self::NoPublication(why) => Some(why.refusal()),
            Self::Refused(why) => Some(why.refusal()),
            Self::Publication(PublicationEnd::Replaced) => Some(Refusal::Name),
            Self::Publication(_) | Self::Silent(_) | Self::Kicked => Some(Refusal::Failed),
            _ => None,
        }
    }
}

/// A connection.
pub(super) struct Connection<'a, S> {
    stream: S,
    session: Session,
    input: BytesMut,
    output: BytesMut,
    /// Room for the next read.
    room: usize,
    /// Bytes that were written so far.
    pub(super) sent: u64,
    pub(super) rtmp: &'a Rtmp,
}

/// Serves a connection from its first byte to its end.
pub(super) async fn serve<S: AsyncRead + AsyncWrite + Unpin>(stream: S, client: ConnectionClient, rtmp: &Rtmp) {
    let (session, room) = (Session::default(), READ_COMMANDS);
    let (input, output) = (BytesMut::new(), BytesMut::new());
    let mut connection = Connection { stream, session, input, output, room, sent: 0, rtmp };
    let end = connection.run(client.address, client.kind.is_secure()).await;
    match end.refusal() {
        Some(refusal) => connection.session.refuse(refusal, &end.to_string()),
        None => connection.session.finish(&end.to_string()),
    }
    connection.leave().await;
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<'_, S> {
    async fn run(&mut self, peer: SocketAddr, is_secure: bool) -> End {
        let (limit, client) = (self.rtmp.timeouts.head, Client { address: peer.ip(), is_secure });
        match timeout(limit, self.request()).await {
            Ok(Ok(RtmpEvent::Publish(target))) => self.publish(peer, client, &target).await,
            Ok(Ok(RtmpEvent::Play(target))) => Box::pin(self.play(peer, client, &target)).await,
            Ok(Ok(RtmpEvent::Media(_) | RtmpEvent::End)) => End::Stopped,
            Ok(Err(End::Left)) => End::Left,
            Ok(Err(end)) => self.refused(peer, "RTMP publication refused", end),
            Err(_) => self.refused(peer, "RTMP publication refused", End::Idle(limit)),
        }
    }

    /// Logs a client that is refused.
    fn refused(&self, peer: SocketAddr, words: &str, end: End) -> End {
        if self.rtmp.access_log {
            tracing::info!(target: millpond_logging::ACCESS, %peer, why = %end, "{words}");
        }
        end
    }

    /// Receives the stream of a target, until it ends.
    async fn publish(&mut self, peer: SocketAddr, client: Client, target: &StreamTarget) -> End {
        let rtmp = self.rtmp;
        let published = match Box::pin(rtmp.publish(target, client)).await {
            Ok(published) => published,
            Err(why) => return self.refused(peer, "RTMP publication refused", why.into()),
        };
        self.session.accept();
        self.room = READ_MEDIA;
        let (path, began, transport) = (&published.path, Instant::now(), client.protocol());
        let held = rtmp.sessions.begin(peer, path, true);
        if rtmp.access_log {
            tracing::info!(target: millpond_logging::ACCESS, %peer, asset = path, transport, "RTMP session publishes");
        }
        let end = self.receive(&published, &held).await.err().unwrap_or(End::Stopped);
        if rtmp.access_log {
            let (messages, bytes) = published.publication.received();
            let ms = began.elapsed().as_millis() as u64;
            let (client, method, protocol) = (peer.ip(), "PUBLISH", "RTMP/1.0");
            tracing::info!(target: millpond_logging::ACCESS, %peer, %client, method, asset = path, protocol,
                status = 200_u16, transport, messages, bytes, ms, why = %end, "RTMP session ended");
        }
        end
    }

    /// Sends the stream of a target, until it ends.
    async fn play(&mut self, peer: SocketAddr, client: Client, target: &StreamTarget) -> End {
        let rtmp = self.rtmp;
        let reads_tracks = self.session.reads_tracks();
        let mut opening = Box::pin(viewer::open(rtmp, target, (peer, client), reads_tracks));
        let opened = loop {
            tokio::select! {
                opened = &mut opening => break opened.map_err(End::from),
                read = self.exchange() => if let Err(end) = read.and_then(|()| self.waits()) {
                    break Err(end);
                },
            }
        };
        drop(opening);
        let mut viewed: Viewed = match opened {
            Ok(viewed) => viewed,
            Err(end) => return self.refused(peer, "RTMP viewer refused", end),
        };
        self.session.accept();
        let (mut counted, path) = (rtmp.metrics.viewer(), viewed.path.clone());
        let (began, before, transport) = (Instant::now(), self.sent, client.protocol());
        if rtmp.access_log {
            tracing::info!(target: millpond_logging::ACCESS, %peer, asset = path, transport, "RTMP session plays");
        }
        let end = viewed.serve(self, &counted).await.err().unwrap_or(End::Stopped);
        counted.end(end.reason());
        if rtmp.access_log {
            let (bytes, ms) = (self.sent - before, began.elapsed().as_millis() as u64);
            let (client, method, protocol) = (peer.ip(), "PLAY", "RTMP/1.0");
            tracing::info!(target: millpond_logging::ACCESS, %peer, %client, method, asset = path, protocol,
                status = 200_u16, transport, bytes, ms, why = %end, "RTMP session ended");
        }
        end
    }

    /// Reads until the client asks to publish or play.
    async fn request(&mut self) -> Result<RtmpEvent, End> {
        loop {
            match self.next_event()? {
                Some(event @ (RtmpEvent::Publish(_) | RtmpEvent::Play(_))) => return Ok(event),
                Some(RtmpEvent::Media(_) | RtmpEvent::End) => {}
                None => self.exchange().await?,
            }
        }
    }

    /// Takes what a client says whose stream is waited for.
    fn waits(&mut self) -> Result<(), End> {
        while let Some(event) = self.next_event()? {
            if event == RtmpEvent::End {
                return Err(End::Stopped);
            }
        }
        Ok(())
    }

    /// Gives what arrives to the publication, until the client stops.
    async fn receive(&mut self, Published { publication, patience, .. }: &Published, held: &Held) -> Result<(), End> {
        let mut kicked = held.kicked();
        loop {
            match self.next_event()? {
                Some(RtmpEvent::Media(tag)) => publication.push(0, tag).await?,
                Some(RtmpEvent::End) => return Ok(publication.taken().await?),
                Some(RtmpEvent::Publish(_) | RtmpEvent::Play(_)) => {}
                None => {
                    tokio::select! {
                        read = timeout(*patience, self.exchange()) => read.map_err(|_| End::Silent(*patience))??,
                        _ = kicked.wait_for(|kicked| *kicked) => return Err(End::Kicked),
                    }
                    held.count(publication.received().1);
                    // Bytes that never become a message hold no name.
                    if publication.silence() > *patience {
                        return Err(End::Silent(*patience));
                    }
                    if let Some(end) = publication.ended() {
                        return Err(end.into());
                    }
                }
            }
        }
    }

    /// Returns what the client does, of the bytes that were read.
    pub(super) fn next_event(&mut self) -> Result<Option<RtmpEvent>, End> {
        Ok(self.session.receive(&mut self.input)?)
    }

    /// Gives media to the session. [`queue`](Self::queue) makes bytes of them.
    pub(super) fn send(&mut self, media: &RtmpMedia<'_>) {
        self.session.send(media);
    }

    /// Moves the bytes of the session to those that are to be written. Returns whether there are any.
    pub(super) fn queue(&mut self) -> bool {
        let bytes = self.session.take_output();
        if self.output.is_empty() {
            // Without another copy.
            self.output = BytesMut::from(bytes::Bytes::from(bytes));
        } else {
            self.output.extend_from_slice(&bytes);
        }
        !self.output.is_empty()
    }

    /// Writes the replies, and reads. Cancel safe.
    async fn exchange(&mut self) -> Result<(), End> {
        self.queue();
        poll_fn(|context| match self.poll_write(context) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending if self.output.len() >= MOST_UNWRITTEN => Poll::Pending,
            _ => self.poll_read(context),
        })
        .await
    }

    /// Reads. Cancel safe.
    pub(super) async fn read(&mut self) -> Result<(), End> {
        poll_fn(|context| self.poll_read(context)).await
    }

    /// Writes until all is written, and reads. While the client takes nothing, its frames wait in `viewing`. Cancel safe.
    pub(super) async fn exchange_or_hold(&mut self, viewing: &Viewing) -> Result<(), End> {
        let before = self.sent;
        poll_fn(|context| {
            let written = self.poll_write(context)?;
            if written.is_pending() {
                viewing.hold();
            }
            match self.poll_read(context)? {
                Poll::Pending if written.is_pending() && self.sent == before => Poll::Pending,
                _ => Poll::Ready(Ok(())),
            }
        })
        .await
    }

    fn poll_write(&mut self, context: &mut Context<'_>) -> Poll<Result<(), End>> {
        while !self.output.is_empty() {
            let written = ready!(pin!(self.stream.write(&self.output)).poll(context))?;
            if written == 0 {
                return Poll::Ready(Err(End::Left));
            }
            self.sent += written as u64;
            self.output.advance(written);
        }
        ready!(pin!(self.stream.flush()).poll(context))?;
        Poll::Ready(Ok(()))
    }

    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<Result<(), End>> {
        self.input.reserve(self.room);
        // Reading keeps no state between two polls.
        let read = ready!(pin!(self.stream.read_buf(&mut self.input)).poll(context))?;
        Poll::Ready(if read > 0 { Ok(()) } else { Err(End::Left) })
    }

    /// Sends the last replies. Further bytes of the client are read and discarded: a reset would take the replies from it.
    async fn leave(mut self) {
        self.queue();
        let farewell = async {
            self.stream.write_all(&self.output).await?;
            self.stream.shutdown().await?;
            let mut rest = [0; 1024];
            while self.stream.read(&mut rest).await? > 0 {}
            io::Result::Ok(())
        };
        let _ = timeout(FAREWELL, farewell).await;
    }
}
