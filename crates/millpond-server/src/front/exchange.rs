//! The end of a request: what the log and the counters learn.

use super::{Front, Request, viewers::Receipt};
use crate::{
    delivery::SendError,
    logging::RequestId,
    metrics::{Held, Kind, PlaceBytes},
};
use http::StatusCode;
use std::{net::SocketAddr, sync::Arc, time::Instant};

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

/// A request being answered, for protocols whose library sends the body.
pub(crate) struct Exchange {
    front: Arc<Front>,
    note: Note,
    request: Request,
    peer: SocketAddr,
    status: StatusCode,
    started: Instant,
}

impl Exchange {
    pub(crate) fn new(
        front: Arc<Front>,
        note: Note,
        request: Request,
        peer: SocketAddr,
        status: StatusCode,
        started: Instant,
    ) -> Self {
        Self { front, note, request, peer, status, started }
    }

    pub(crate) fn finish(self, sent: &Result<u64, SendError>) {
        self.front.done(self.note, &self.request, self.peer, self.status, self.started, sent);
    }
}
