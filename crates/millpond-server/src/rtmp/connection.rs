//! One connection of a publisher.

use super::{
    Rtmp,
    publication::{NoPublication, Published},
};
use bytes::BytesMut;
use millpond_rtmp::{PublishTarget, Refusal, RtmpError, RtmpEvent, Session};
use millpond_stream::PublicationEnd;
use std::{
    io,
    net::SocketAddr,
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    time::timeout,
};

/// Room for one read before the client publishes, and while it does, in bytes.
const READ_COMMANDS: usize = 2048;
const READ_MEDIA: usize = 32 << 10;
/// Time for the last words to a client.
const FAREWELL: Duration = Duration::from_secs(1);

/// Why a connection ends.
#[derive(Debug, thiserror::Error)]
enum End {
    #[error("its client stopped")]
    Stopped,
    #[error("its client left")]
    Left,
    #[error("{0}")]
    Connection(#[from] io::Error),
    #[error("{0}")]
    Protocol(#[from] RtmpError),
    #[error("{0}")]
    Refused(#[from] NoPublication),
    #[error("{0}")]
    Publication(#[from] PublicationEnd),
    #[error("nothing arrived for {} s", .0.as_secs_f64())]
    Silent(Duration),
    #[error("no stream was published within {} s", .0.as_secs_f64())]
    Idle(Duration),
}

/// A connection.
struct Connection<'a, S> {
    stream: S,
    session: Session,
    input: BytesMut,
    /// Room for the next read.
    room: usize,
    rtmp: &'a Rtmp,
}

/// Serves a connection from its first byte to its end. `is_secure` tells whether it is over TLS.
pub(super) async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    (peer, is_secure): (SocketAddr, bool),
    rtmp: &Rtmp,
) {
    let input = BytesMut::new();
    let mut connection = Connection { stream, session: Session::default(), input, room: READ_COMMANDS, rtmp };
    let end = connection.run((peer, is_secure)).await;
    if let End::Refused(_) | End::Publication(_) | End::Silent(_) = &end {
        let refusal = match &end {
            End::Refused(why) => why.refusal(),
            End::Publication(PublicationEnd::Replaced) => Refusal::Name,
            _ => Refusal::Failed,
        };
        connection.session.refuse(refusal, &end.to_string());
    }
    connection.leave().await;
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<'_, S> {
    async fn run(&mut self, (peer, is_secure): (SocketAddr, bool)) -> End {
        let rtmp = self.rtmp;
        let published = match self.open((peer, is_secure)).await {
            Ok(published) => published,
            Err(End::Left) => return End::Left,
            Err(end) => {
                if rtmp.access_log {
                    tracing::info!(target: millpond_logging::ACCESS, %peer, why = %end, "RTMP publication refused");
                }
                return end;
            }
        };
        let (path, began) = (&published.path, Instant::now());
        let transport = if is_secure { "rtmps" } else { "rtmp" };
        if rtmp.access_log {
            tracing::info!(target: millpond_logging::ACCESS, %peer, asset = path, transport, "RTMP session publishes");
        }
        let end = self.receive(&published).await.err().unwrap_or(End::Stopped);
        if rtmp.access_log {
            let (messages, bytes) = published.publication.received();
            let ms = began.elapsed().as_millis() as u64;
            let (client, method, protocol) = (peer.ip(), "PUBLISH", "RTMP/1.0");
            tracing::info!(target: millpond_logging::ACCESS, %peer, %client, method, asset = path, protocol,
                status = 200_u16, transport, messages, bytes, ms, why = %end, "RTMP session ended");
        }
        end
    }

    /// Waits until the client publishes, and begins to receive.
    async fn open(&mut self, (peer, is_secure): (SocketAddr, bool)) -> Result<Published, End> {
        let limit = self.rtmp.timeouts.head;
        let target = timeout(limit, self.target()).await.map_err(|_| End::Idle(limit))??;
        let published = Box::pin(self.rtmp.publish(&target, (peer.ip(), is_secure))).await?;
        self.session.accept();
        self.room = READ_MEDIA;
        Ok(published)
    }

    /// Reads until the client asks to publish.
    async fn target(&mut self) -> Result<PublishTarget, End> {
        loop {
            match self.session.receive(&mut self.input)? {
                Some(RtmpEvent::Publish(target)) => return Ok(target),
                Some(RtmpEvent::Media(_) | RtmpEvent::End) => {}
                None => self.exchange().await?,
            }
        }
    }

    /// Gives what arrives to the publication, until the client stops.
    async fn receive(&mut self, Published { publication, patience, .. }: &Published) -> Result<(), End> {
        loop {
            match self.session.receive(&mut self.input)? {
                Some(RtmpEvent::Media(tag)) => publication.push(0, tag).await?,
                Some(RtmpEvent::End) => return Ok(publication.taken().await?),
                Some(RtmpEvent::Publish(_)) => {}
                None => {
                    timeout(*patience, self.exchange()).await.map_err(|_| End::Silent(*patience))??;
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

    /// Writes the replies, and reads.
    async fn exchange(&mut self) -> Result<(), End> {
        let output = self.session.take_output();
        if !output.is_empty() {
            self.stream.write_all(&output).await?;
            self.stream.flush().await?;
        }
        self.input.reserve(self.room);
        match self.stream.read_buf(&mut self.input).await? {
            0 => Err(End::Left),
            _ => Ok(()),
        }
    }

    /// Sends the last replies. Further bytes of the client are read and discarded: a reset would take the replies from it.
    async fn leave(mut self) {
        let farewell = async {
            self.stream.write_all(&self.session.take_output()).await?;
            self.stream.shutdown().await?;
            let mut rest = [0; 1024];
            while self.stream.read(&mut rest).await? > 0 {}
            io::Result::Ok(())
        };
        let _ = timeout(FAREWELL, farewell).await;
    }
}
