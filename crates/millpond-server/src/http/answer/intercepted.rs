//! Replies on intercepted connections, each of which has one request.

use super::{
    Front, Target,
    exchange::Exchange,
    live::{TranslatedMedia, answer_translated},
};
use crate::http::AnswerError;
use millpond_http::{
    request::head::RequestHead,
    wire::{Exchange as _, LastReply, Protocol, Service},
};
use millpond_package::hls::Container;
use std::{net::SocketAddr, time::Instant};
use tokio::net::TcpStream;

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

/// Answers a GET with media, or with the reason why there is none, and ends the connection.
pub(crate) async fn answer_intercepted(
    intercepted: Intercepted,
    media: Result<TranslatedMedia, AnswerError>,
    service: &Service<Front>,
) {
    let Intercepted { stream, peer, mut head, started, container } = intercepted;
    let last = LastReply::new(stream, head.http10, service);
    let asset = head.request.split().0.to_owned();
    let client = (peer, Protocol::of_http1(head.http10));
    let front = service.front();
    let target = Target::of(&front, &head.request);
    front.note_client(&mut head.request, peer, false);
    let mut exchange = Exchange::begin(front.clone(), (head.request, target), client, started, last.meter());
    let (reply, info) = tokio::select! {
        biased;
        answer = answer_translated(&front, media, container, &asset) => answer,
        () = last.closed() => return,
    };
    let reply = reply.into();
    exchange.replied(info, &reply);
    last.send(reply, exchange).await;
}
