//! A publication at another server.

use super::{PushError, RtmpUrl};
use crate::{
    Program, Run,
    flv_stream::FlvStream,
    reception::{Connection, Connector, rtmp_endpoint},
};
use bytes::{Buf as _, BytesMut};
use millpond_media::flv::FlvMessage;
use millpond_rtmp::{ClientEvent, RtmpClient, RtmpMedia, RtmpPurpose};
use std::{
    future::{Future as _, poll_fn},
    pin::pin,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    time::timeout,
};

/// Time limit of a connection, and of each answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time in which the server takes nothing of what is sent to it.
const STALL: Duration = Duration::from_secs(10);
/// Time for the last words.
const FAREWELL: Duration = Duration::from_secs(2);
/// Room for one read, in bytes: servers send little.
const READ: usize = 4096;
/// Bytes of replies above which nothing is read: a server that asks takes answers too.
const MOST_REPLIES: usize = 64 << 10;

/// Sends a channel or live stream to an RTMP server, as an encoder does.
///
/// The caller drives it: it gives it the runs of a [`Viewing`](crate::Viewing) with [`send`](Self::send), and awaits
/// [`watch`](Self::watch) while there are none. While `send` waits, frames wait in the viewing, which drops those that are needed least
/// once its [`hold`](crate::Viewing::hold) was called.
#[derive(Debug)]
pub struct RtmpPusher<S = Box<dyn Connection>> {
    stream: S,
    client: RtmpClient,
    muxer: FlvStream,
    program: Program,
    /// Number of the current epoch; `None` before the first frame.
    epoch: Option<u32>,
    input: BytesMut,
    output: BytesMut,
    messages: Vec<FlvMessage>,
    /// Bytes of media and their heads so far.
    sent: u64,
}

impl RtmpPusher {
    /// Connects to the server of a URL, over TLS for `rtmps`, and publishes `program` there. Use the program of the
    /// [`Viewing`](crate::Viewing) whose runs are sent: it knows the clips of that viewer.
    ///
    /// # Errors
    /// No connection, a refusal of the server, or tracks that RTMP can't carry.
    pub async fn connect(url: &RtmpUrl, connector: &dyn Connector, program: &Program) -> Result<Self, PushError> {
        let endpoint = rtmp_endpoint(url);
        let connected = timeout(PATIENCE, connector.connect(&endpoint)).await;
        let connection = connected.map_err(|_| PushError::TimedOut { what: "no connection", after: PATIENCE })??;
        Self::begin(connection, url, program).await
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> RtmpPusher<S> {
    /// Publishes `program` at the server at the other end of a byte stream. Returns when the server accepts it.
    ///
    /// # Errors
    /// A refusal of the server, or tracks that RTMP can't carry.
    pub async fn begin(stream: S, url: &RtmpUrl, program: &Program) -> Result<Self, PushError> {
        let muxer = |reads_tracks| FlvStream::new(program.formats(), program.lead(), reads_tracks);
        let mut pusher = Self {
            stream,
            client: RtmpClient::new(url.clone(), RtmpPurpose::Publish),
            // Nothing is asked of a server that could not be sent.
            muxer: muxer(false).ok_or(PushError::Unfit)?,
            program: program.clone(),
            epoch: None,
            input: BytesMut::new(),
            output: BytesMut::new(),
            messages: Vec::new(),
            sent: 0,
        };
        let accepted = timeout(PATIENCE, pusher.accepted()).await;
        let what = pusher.client.awaits().unwrap_or("no answer");
        accepted.map_err(|_| PushError::TimedOut { what, after: PATIENCE })??;
        pusher.muxer = muxer(pusher.client.reads_tracks()).ok_or(PushError::Unfit)?;
        Ok(pusher)
    }

    /// Talks to the server until it accepts the stream.
    async fn accepted(&mut self) -> Result<(), PushError> {
        while self.client.awaits().is_some() {
            self.queue();
            if self.progress(true).await? {
                self.take()?;
            }
        }
        Ok(())
    }

    /// Bytes of media that were sent so far.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Sends a run. Returns when the system has taken all of its bytes. Not cancel safe: the rest of a run is lost.
    ///
    /// # Errors
    /// The connection or the publication ended, the server takes nothing, or the tracks of another epoch can't follow.
    pub async fn send(&mut self, run: &Run) -> Result<(), PushError> {
        for frame in run.iter() {
            if self.epoch.replace(frame.epoch) != Some(frame.epoch) {
                let epoch = self.program.feed().epoch(frame.epoch);
                if !epoch.is_none_or(|epoch| self.muxer.enter(&epoch.formats)) {
                    return Err(PushError::Unfit);
                }
            }
            self.muxer.push(frame, &mut self.messages);
            for FlvMessage { kind, timestamp, head, data } in self.messages.drain(..) {
                self.sent += (head.len() + data.len()) as u64;
                self.client.send(&RtmpMedia { kind, timestamp, head: &head, data: &data });
            }
        }
        self.flush().await
    }

    /// Answers the server until it ends the publication or the connection. Returns the reason. Cancel safe.
    pub async fn watch(&mut self) -> PushError {
        loop {
            self.queue();
            let read = poll_fn(|context| match self.poll_write(context) {
                Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
                // The next frames find out whether the server takes anything.
                Poll::Pending if self.output.len() >= MOST_REPLIES => Poll::Pending,
                _ => self.poll_read(context),
            });
            if let Err(error) = read.await.and_then(|()| self.take()) {
                return error;
            }
        }
    }

    /// Ends the publication, and closes the connection.
    pub async fn finish(mut self) {
        self.client.finish();
        let farewell = async {
            self.flush().await?;
            self.stream.shutdown().await?;
            Ok::<_, PushError>(())
        };
        // The server notices a connection that is closed without words, too.
        let _ = timeout(FAREWELL, farewell).await;
    }

    /// Writes all that is to be sent.
    async fn flush(&mut self) -> Result<(), PushError> {
        let mut replies = 0;
        self.queue();
        loop {
            let progress = timeout(STALL, self.progress(false)).await;
            let silent = || PushError::TimedOut { what: "the server took nothing", after: STALL };
            if progress.map_err(|_| silent())?? {
                self.take()?;
                replies += self.queue();
                if replies >= MOST_REPLIES && !self.output.is_empty() {
                    return Err(PushError::Ended("the server asks for more than it takes answers"));
                }
            }
            if self.queue() == 0 && self.output.is_empty() {
                return Ok(());
            }
        }
    }

    /// Writes and reads. Returns whether bytes were read, once some were read or written. If the server `answers`, bytes that were
    /// written are not enough when none is left.
    async fn progress(&mut self, answers: bool) -> Result<bool, PushError> {
        poll_fn(|context| self.poll_progress(context, answers)).await
    }

    /// Moves the bytes of the client to the output. Returns their number.
    fn queue(&mut self) -> usize {
        let bytes = self.client.take_output();
        self.output.extend_from_slice(&bytes);
        bytes.len()
    }

    /// Takes what the server has said.
    fn take(&mut self) -> Result<(), PushError> {
        while let Some(event) = self.client.receive(&mut self.input)? {
            if let ClientEvent::Ended(why) = event {
                return Err(PushError::Ended(why));
            }
        }
        Ok(())
    }

    fn poll_progress(&mut self, context: &mut Context<'_>, answers: bool) -> Poll<Result<bool, PushError>> {
        let length = self.output.len();
        let written = self.poll_write(context)?;
        if let Poll::Ready(read) = self.poll_read(context) {
            return Poll::Ready(read.map(|()| true));
        }
        let is_done = written.is_ready() && !answers;
        let has_written = self.output.len() < length && written.is_pending();
        if is_done || has_written { Poll::Ready(Ok(false)) } else { Poll::Pending }
    }

    fn poll_write(&mut self, context: &mut Context<'_>) -> Poll<Result<(), PushError>> {
        while !self.output.is_empty() {
            let written = ready!(pin!(self.stream.write(&self.output)).poll(context))?;
            if written == 0 {
                return Poll::Ready(Err(PushError::Closed));
            }
            self.output.advance(written);
        }
        ready!(pin!(self.stream.flush()).poll(context))?;
        Poll::Ready(Ok(()))
    }

    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<Result<(), PushError>> {
        self.input.reserve(READ);
        // Reading keeps no state between two polls.
        let read = ready!(pin!(self.stream.read_buf(&mut self.input)).poll(context))?;
        Poll::Ready(if read > 0 { Ok(()) } else { Err(PushError::Closed) })
    }
}
