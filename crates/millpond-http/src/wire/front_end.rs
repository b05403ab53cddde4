//! The front end: the interface by which connections get replies to their requests.

use super::{error::ReplyError, meter::SendMeter, metrics::ConnectionMetrics, protocol::Protocol, upload::Upload};
use crate::{
    body::Body,
    request::{HeadError, Request},
};
use http::{HeaderMap, StatusCode};
use millpond_access::{Gates, Pass};
use millpond_connections::proxies::ConnectionClient;
use millpond_store::Memory;
use std::{net::SocketAddr, sync::Arc, time::Instant};
use tracing::Span;

/// A reply: head and body.
pub struct Reply {
    /// Status code.
    pub status: StatusCode,
    /// Header fields, except those of the connection and its framing.
    pub headers: HeaderMap,
    /// Body, empty for replies without one.
    pub body: Body,
    /// Whether the connection takes no request after it, so that another process of the server accepts the next one.
    pub is_last: bool,
}

/// The client of a request: its address, and the version of HTTP that it speaks.
pub type Peer = (SocketAddr, Protocol);

/// The part of a server that answers the requests of connections, with one configuration.
pub trait FrontEnd: Send + Sync + Sized + 'static {
    /// Target of a request: the page, stream, asset or file that its path names.
    type Target: Send;
    /// The viewers of a connection.
    type Viewers: Send + Sync;
    /// A request being answered.
    type Exchange: Exchange<Viewers = Self::Viewers> + Send + Sync;

    /// Returns the memory that replies in progress are charged to.
    fn memory(&self) -> &Arc<Memory>;

    /// Returns the metrics of connections.
    fn connection_metrics(&self) -> &ConnectionMetrics;

    /// Returns the rules of access, which connections are counted by.
    fn gates(&self) -> &Gates;

    /// Registers a new connection.
    fn connected(&self, client: ConnectionClient) -> Self::Viewers;

    /// Finds the target of a request.
    fn target(&self, request: &Request) -> Self::Target;

    /// Tells whether a request has a body that must be read.
    fn takes_body(&self, request: &Request, target: &Self::Target) -> bool;

    /// Begins an exchange whose head has arrived on a connection. The meter counts the bytes of its reply.
    fn begin(
        self: Arc<Self>,
        viewers: &Self::Viewers,
        request: (Request, Self::Target),
        peer: Peer,
        started: Instant,
        meter: SendMeter,
    ) -> Self::Exchange;

    /// Answers bytes that are no valid request.
    fn refuse(&self, error: HeadError, peer: SocketAddr) -> Reply;

    /// Notes that the server ends responses in progress.
    fn cut(&self);
}

/// A request being answered. It is logged and counted when it is finished or dropped.
pub trait Exchange {
    /// The viewers of a connection.
    type Viewers;
    /// A reply whose body has not begun.
    type Answer: Send;
    /// Facts about a reply.
    type Info: Send;

    /// Returns the span of the request's trace. All work for the request runs inside it.
    fn span(&self) -> Span;

    /// Returns the request.
    fn request(&self) -> &Request;

    /// Takes the body of a request, up to its end.
    fn publish(
        &self,
        viewers: &Self::Viewers,
        upload: &mut impl Upload,
    ) -> impl Future<Output = (Reply, Self::Info)> + Send;

    /// Answers a request, body excluded.
    fn handle(&self, viewers: &Self::Viewers) -> impl Future<Output = Self::Answer> + Send;

    /// Returns the body of an answer.
    fn body(answer: &Self::Answer) -> &Body;

    /// Begins the body of an answer, so that the status reports a failure to read its first bytes.
    fn begin(&self, viewers: &Self::Viewers, answer: Self::Answer) -> impl Future<Output = (Reply, Self::Info)> + Send;

    /// Notes the reply, which is sent from now on. Returns the admission that may end before it does.
    fn replied(&mut self, info: Self::Info, reply: &Reply) -> Pass;

    /// Waits until an operator ends the response, for ever where nobody can.
    fn cut(&self) -> impl Future<Output = ()> + Send;

    /// Records the end of sending.
    fn finish(self, sent: &Result<(), ReplyError>);
}
