//! Replies on intercepted connections, each of which has one request.

use super::{
    error::SendError,
    exchange::{Exchange, Protocol},
    h1,
    reply_head::{Persistence, framing},
    service::Service,
    socket::ClientSocket,
};
use crate::http::{
    AnswerError,
    answer::{Target, answer_translated},
    request::head::RequestHead,
};
use millpond_package::hls::Container;
use millpond_stream::Program;
use std::{net::SocketAddr, time::Instant};
use tokio::net::TcpStream;

pub(crate) use super::socket::closed;

/// A GET of an intercepted connection, and what it is answered with.
pub(crate) struct Intercepted {
    /// The connection.
    pub(crate) stream: TcpStream,
    /// Address of the client.
    pub(crate) peer: SocketAddr,
    /// The request.
    pub(crate) head: RequestHead,
    /// Time at which the request was complete.
    pub(crate) started: Instant,
    /// Container of the stream.
    pub(crate) container: Container,
}

/// Answers a GET with a stream, or with the reason why there is none, and ends the connection.
pub(crate) async fn answer_intercepted(
    intercepted: Intercepted,
    program: Result<Program, AnswerError>,
    service: &Service,
) {
    let Intercepted { stream, peer, head, started, container } = intercepted;
    let mut socket = ClientSocket::plain(stream, service.timeouts().write, service.budget.clone());
    let asset = head.request.split().0.to_owned();
    let meter = socket.meter().clone();
    let client = (peer, Protocol::of_http1(head.http10));
    let front = service.front();
    let target = Target::of(&front, &head.request);
    let mut exchange = Exchange::begin(front.clone(), (head.request, target), client, started, meter);
    let (reply, info) = tokio::select! {
        biased;
        answer = answer_translated(&front, program, container, &asset) => answer,
        () = socket.closed() => return,
    };
    exchange.replied(info, &reply);
    let framing = framing(&reply, head.http10);
    let sent = tokio::select! {
        biased;
        sent = h1::send(&mut socket, reply, framing, Persistence::Close, false) => sent,
        () = exchange.cut() => Err(SendError::Kicked),
    };
    exchange.finish(&sent);
    if sent.is_ok() {
        socket.linger().await;
    }
}
