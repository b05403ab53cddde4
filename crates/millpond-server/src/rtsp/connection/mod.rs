//! One RTSP connection: reads its bytes, sends its replies, and performs the actions that a [`Dialogue`] gives.

mod describe;
mod play;
mod set_up;

use super::{
    Rtsp,
    inlet::Inlet,
    record::End,
    reply::Reply,
    session::Shared,
    signalling::{Action, Dialogue, Ended, Named, Outcome, Step, Terms, Viewer as _},
    srtp::Promises,
    wire::Wire,
};
use crate::library::LibraryError;
use bytes::BytesMut;
use http::StatusCode as HttpStatus;
use millpond_rtp::message::StatusCode;
use millpond_stream::Full;
use std::{
    io,
    net::SocketAddr,
    sync::{Arc, atomic::AtomicUsize},
};
use tokio::time::timeout_at;

/// Serves a connection until it ends. Sessions whose packets go over it end with it, and those that never played. `input` has the
/// bytes that came already.
///
/// # Errors
/// The reason why it ended, where that was not the client.
pub(super) async fn serve(
    wire: Arc<Wire>,
    inlet: Inlet,
    input: BytesMut,
    peer: SocketAddr,
    rtsp: &Arc<Rtsp>,
) -> io::Result<()> {
    let terms = Terms {
        peer,
        timeouts: rtsp.timeouts,
        is_secure: inlet.is_secure(),
        session_timeout: rtsp.settings.session_timeout,
        overflow: rtsp.settings.overflow.clone(),
        access_log: rtsp.access_log,
        access: rtsp.access.clone(),
    };
    let dialogue = Dialogue::new(terms, input, rtsp.now());
    let (waiting, promises) = (Arc::default(), Promises::default());
    let mut connection = Connection { wire: wire.clone(), inlet, peer, rtsp, dialogue, waiting, promises };
    let ended = tokio::select! {
        ended = connection.run() => ended,
        drained = wire.drain(rtsp.timeouts.write) => drained,
    };
    wire.close();
    ended
}

struct Connection<'a> {
    wire: Arc<Wire>,
    inlet: Inlet,
    peer: SocketAddr,
    rtsp: &'a Arc<Rtsp>,
    dialogue: Dialogue,
    /// Sessions of the connection that have not played.
    waiting: Arc<AtomicUsize>,
    /// Keys that were sent on the connection.
    promises: Promises,
}

/// Sessions that can't outlive their connection end with it, on shutdown too.
impl Drop for Connection<'_> {
    fn drop(&mut self) {
        self.dialogue.leave(&self.rtsp.sessions, self.rtsp.is_stopping());
    }
}

impl Connection<'_> {
    async fn run(&mut self) -> io::Result<()> {
        loop {
            match self.dialogue.next(&self.rtsp.sessions, self.rtsp.now()) {
                Step::Read { until } => {
                    let until = self.rtsp.instant(until);
                    match timeout_at(until, self.inlet.read(self.dialogue.input())).await {
                        Ok(Ok(0)) => return Ok(()),
                        Ok(read) => {
                            read?;
                        }
                        Err(_) => match self.dialogue.timed_out(&self.rtsp.sessions, self.rtsp.now()) {
                            Ok(()) => {}
                            Err(Ended::Silent) => return Ok(()),
                            Err(ended) => return Err(failure(ended)),
                        },
                    }
                }
                Step::Send(reply) => {
                    self.send(&reply);
                    self.sent()?;
                }
                Step::Perform(action) => {
                    self.perform(action).await;
                    self.sent()?;
                }
                Step::Hear { session, channel, packet } => {
                    let mut packet = Vec::from(packet);
                    session.session.lock().await.hear(channel, &mut packet, self.rtsp.manager.counters());
                }
                Step::Refuse { reply, error } => {
                    self.send(reply.as_bytes());
                    return Err(io::Error::new(io::ErrorKind::InvalidData, error));
                }
            }
        }
    }

    fn send(&self, reply: &[u8]) {
        self.wire.send(|pending| pending.extend_from_slice(reply));
    }

    fn sent(&mut self) -> io::Result<()> {
        self.dialogue.sent(self.wire.backlog(), self.rtsp.now()).map_err(failure)
    }

    fn finish(&mut self, outcome: Outcome<'_>) {
        let reply = self.dialogue.finish(outcome);
        self.send(&reply);
    }

    /// Performs an action, and sends the reply to its request.
    async fn perform(&mut self, action: Action<Arc<Shared>>) {
        let outcome = match action {
            Action::Describe { path, most, elsewhere } => self.describe(&path, most, elsewhere).await,
            Action::SetUp(set_up) => self.set_up(set_up).await,
            Action::Play(Named { session, .. }, asked) => return self.play(&session, asked).await,
            Action::Pause(Named { session, .. }) => {
                session.session.lock().await.pause().await;
                Outcome::Done
            }
            Action::TearDown(Named { name, session }) => {
                let mut locked = session.session.lock().await;
                session.ends(End::Teardown);
                locked.pause().await;
                drop(locked);
                self.rtsp.sessions.remove(&name);
                // It ends before the reply is sent.
                drop(session);
                Outcome::Done
            }
        };
        self.finish(outcome);
    }

    /// Counts a session that admission refuses.
    fn full(&self, full: Full) -> Outcome<'static> {
        self.rtsp.manager.counters().refuse(full);
        Outcome::Full(full)
    }
}

fn failure(ended: Ended) -> io::Error {
    let kind = match ended {
        Ended::WrongPasswords => io::ErrorKind::PermissionDenied,
        Ended::Silent | Ended::Incomplete | Ended::Unread => io::ErrorKind::TimedOut,
    };
    io::Error::new(kind, ended)
}

/// The outcome of a request that is refused with a status.
fn refused(status: StatusCode) -> Outcome<'static> {
    Outcome::Refused(Reply::new(status))
}

fn failed(error: &LibraryError) -> Outcome<'static> {
    let status = match crate::problem::status(error) {
        HttpStatus::NOT_FOUND => StatusCode::NotFound,
        HttpStatus::BAD_REQUEST => StatusCode::BadRequest,
        HttpStatus::FORBIDDEN => StatusCode::Forbidden,
        HttpStatus::UNPROCESSABLE_ENTITY => StatusCode::UnsupportedMediaType,
        HttpStatus::SERVICE_UNAVAILABLE => StatusCode::ServiceUnavailable,
        HttpStatus::GATEWAY_TIMEOUT => StatusCode::GatewayTimeout,
        HttpStatus::BAD_GATEWAY => StatusCode::BadGateway,
        _ => StatusCode::InternalServerError,
    };
    Outcome::Refused(Reply::new(status).because(error))
}
