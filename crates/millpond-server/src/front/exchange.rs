//! The end of a request: what the log and the counters learn.

use super::{Front, Request, viewers::Receipt};
use crate::{
    delivery::{Meter, SendError},
    logging::RequestId,
    metrics::{Held, Kind, PlaceBytes, Unfinished},
};
use http::{StatusCode, header};
use std::{
    io,
    net::SocketAddr,
    sync::{Arc, atomic::Ordering},
    time::Instant,
};

/// Most characters of a user agent in the log.
const AGENT: usize = 200;

/// What was found out about a request while it was answered.
#[derive(Debug)]
pub(crate) struct Note {
    pub(crate) id: RequestId,
    pub(crate) kind: Kind,
    /// Whose storage the body comes from.
    pub(crate) place: Option<PlaceBytes>,
    /// Counts the response as under way.
    pub(crate) _in_flight: Held,
    /// Tells when a viewer has what it asked for.
    pub(crate) receipt: Option<Receipt>,
}

/// A request being answered. It is noted in the log and the counters when it is finished, and when it is dropped.
pub(crate) struct Exchange {
    front: Arc<Front>,
    request: Request,
    peer: SocketAddr,
    started: Instant,
    meter: Meter,
    /// Note and status, once there is a reply.
    replied: Option<(Note, StatusCode)>,
    is_noted: bool,
}

/// How an exchange ended.
enum End<'a> {
    Complete,
    Broken(&'a dyn std::error::Error),
    Unfinished(Unfinished, Option<&'a io::Error>),
}

impl Exchange {
    pub(crate) fn begin(front: Arc<Front>, request: Request, peer: SocketAddr, started: Instant, meter: Meter) -> Self {
        Self { front, request, peer, started, meter, replied: None, is_noted: false }
    }

    pub(crate) fn request(&self) -> &Request {
        &self.request
    }

    /// There is a reply, which is sent from now on.
    pub(crate) fn replied(&mut self, note: Note, status: StatusCode) {
        self.replied = Some((note, status));
    }

    pub(crate) fn finish(mut self, sent: &Result<(), SendError>) {
        self.note(&match sent {
            Ok(()) => End::Complete,
            Err(SendError::Body(error)) => End::Broken(error),
            Err(SendError::Client(error)) if error.kind() == io::ErrorKind::TimedOut => {
                End::Unfinished(Unfinished::ClientSlow, Some(error))
            }
            Err(SendError::Client(error)) => End::Unfinished(Unfinished::ClientLeft, Some(error)),
        });
    }

    fn note(&mut self, end: &End<'_>) {
        self.is_noted = true;
        let (metrics, elapsed, bytes) = (self.front.metrics(), self.started.elapsed(), self.meter.body());
        let (peer, method, uri) = (&self.peer, &self.request.method, &self.request.target);
        let (ended, error) = match end {
            End::Complete => ("complete", None),
            End::Broken(error) => {
                metrics.response_broken();
                ("broken", Some(error.to_string()))
            }
            End::Unfinished(why, error) => {
                metrics.response_unfinished(*why);
                (why.label(), error.map(io::Error::to_string))
            }
        };
        let id = match &self.replied {
            Some((note, status)) => {
                metrics.request(note.kind, *status, elapsed);
                metrics.sent(note.kind, note.place.as_ref(), bytes);
                note.id
            }
            None => RequestId::next(),
        };
        if let (End::Broken(_), Some(error)) = (end, &error) {
            tracing::error!(%id, %peer, %uri, bytes, error, "response broken off");
        }
        if self.front.logs_requests() {
            let status = self.replied.as_ref().map(|(_, status)| status.as_u16());
            let (us, agent) = (elapsed.as_micros() as u64, agent(&self.request));
            tracing::info!(%id, %peer, %method, %uri, status, bytes, us, agent, ended, error, "request");
        }
    }
}

impl Drop for Exchange {
    /// The connection ended, and what was sent on it with it.
    fn drop(&mut self) {
        if !self.is_noted {
            let is_cut = self.front.is_cut.load(Ordering::Relaxed);
            let why = if is_cut { Unfinished::Shutdown } else { Unfinished::ClientLeft };
            self.note(&End::Unfinished(why, None));
        }
    }
}

/// The client's program as it calls itself, where it does.
fn agent(request: &Request) -> Option<String> {
    let value = request.headers.get(header::USER_AGENT)?;
    Some(String::from_utf8_lossy(value.as_bytes()).chars().take(AGENT).collect())
}
