//! A request with all that its handlers need.

use super::{ConnectionViewers, Front, Target};
use millpond_http::request::Request;
use std::net::IpAddr;

/// A request with all that its handlers need.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    /// Front end that answers.
    pub(crate) front: &'a Front,
    /// The request.
    pub(crate) request: &'a Request,
    /// The target of the request: page, stream, asset or file.
    pub(crate) target: &'a Target,
    /// Viewers of the connection.
    pub(crate) viewers: &'a ConnectionViewers,
}

impl<'a> Context<'a> {
    /// Returns the address of the client.
    pub(super) fn client(&self) -> IpAddr {
        self.request.client(self.viewers.address())
    }

    /// Tells whether the client is connected by TLS.
    pub(super) fn is_secure(&self) -> bool {
        self.request.is_secure(self.viewers.is_secure())
    }

    /// Returns the query, percent-encoded.
    pub(super) fn query(&self) -> &'a str {
        self.request.split().1
    }
}
