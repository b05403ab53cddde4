//! A request and its reply, from the head to the end: the log line and the counters.

use super::{error::SendError, meter::SendMeter};
use crate::{
    http::{
        Unfinished,
        answer::{Front, ReplyInfo},
        request::Request,
    },
    logging::RequestId,
};
use http::{StatusCode, header};
use std::{io, net::SocketAddr, sync::Arc, time::Instant};

/// Most characters of a user agent in the log.
const AGENT_LENGTH: usize = 200;

/// A request being answered. It is logged and counted when it is finished or dropped.
pub(super) struct Exchange {
    front: Arc<Front>,
    request: Request,
    peer: SocketAddr,
    started: Instant,
    meter: SendMeter,
    /// Facts about the reply and its status, once there is one.
    reply: Option<(ReplyInfo, StatusCode)>,
    is_recorded: bool,
}

/// The end of an exchange.
enum Outcome<'a> {
    Complete,
    Broken(&'a dyn std::error::Error),
    Unfinished(Unfinished, Option<&'a io::Error>),
}

impl Exchange {
    /// Begins an exchange whose head has arrived.
    pub(super) fn begin(
        front: Arc<Front>,
        request: Request,
        peer: SocketAddr,
        started: Instant,
        meter: SendMeter,
    ) -> Self {
        Self { front, request, peer, started, meter, reply: None, is_recorded: false }
    }

    /// Returns the request.
    pub(super) fn request(&self) -> &Request {
        &self.request
    }

    /// Notes the reply, which is sent from now on.
    pub(super) fn replied(&mut self, info: ReplyInfo, status: StatusCode) {
        self.reply = Some((info, status));
    }

    /// Records the end of sending.
    pub(super) fn finish(mut self, sent: &Result<(), SendError>) {
        self.record(&match sent {
            Ok(()) => Outcome::Complete,
            Err(SendError::Body(error)) => Outcome::Broken(error),
            Err(SendError::Client(error)) if error.kind() == io::ErrorKind::TimedOut => {
                Outcome::Unfinished(Unfinished::ClientSlow, Some(error))
            }
            Err(SendError::Client(error)) => Outcome::Unfinished(Unfinished::ClientLeft, Some(error)),
        });
    }

    /// Writes the log line and counts the response.
    fn record(&mut self, outcome: &Outcome<'_>) {
        self.is_recorded = true;
        let (metrics, elapsed, bytes) = (self.front.metrics(), self.started.elapsed(), self.meter.body());
        let (peer, method, uri) = (&self.peer, &self.request.method, self.request.logged_target());
        let (ended, error) = match outcome {
            Outcome::Complete => ("complete", None),
            Outcome::Broken(error) => {
                metrics.response_broken();
                ("broken", Some(error.to_string()))
            }
            Outcome::Unfinished(why, error) => {
                metrics.response_unfinished(*why);
                (why.label(), error.map(io::Error::to_string))
            }
        };
        let id = match &self.reply {
            Some((info, status)) => {
                metrics.request(info.kind, *status, elapsed.saturating_sub(info.waited));
                if !info.counts_itself {
                    metrics.sent(info.kind, info.place.as_ref(), bytes);
                }
                info.id
            }
            None => RequestId::next(),
        };
        if let (Outcome::Broken(_), Some(error)) = (outcome, &error) {
            tracing::error!(%id, %peer, %uri, bytes, error, "response broken off");
        }
        if self.front.logs_requests() {
            let status = self.reply.as_ref().map(|(_, status)| status.as_u16());
            let (us, agent) = (elapsed.as_micros() as u64, agent(&self.request));
            tracing::info!(%id, %peer, %method, %uri, status, bytes, us, agent, ended, error, "request");
        }
    }
}

impl Drop for Exchange {
    /// Records an exchange whose connection ended first.
    fn drop(&mut self) {
        if !self.is_recorded {
            let is_cut = self.front.is_cut();
            let why = if is_cut { Unfinished::Shutdown } else { Unfinished::ClientLeft };
            self.record(&Outcome::Unfinished(why, None));
        }
    }
}

/// Returns the start of the user agent, if there is one.
fn agent(request: &Request) -> Option<String> {
    let value = request.headers.get(header::USER_AGENT)?;
    Some(String::from_utf8_lossy(value.as_bytes()).chars().take(AGENT_LENGTH).collect())
}
