//! The reply on a connection whose request was read elsewhere.

use super::{
    error::ReplyError,
    front_end::{Exchange, FrontEnd, Reply},
    h1,
    meter::SendMeter,
    reply_head::{Persistence, framing},
    service::Service,
    socket::ClientSocket,
};
use tokio::net::TcpStream;

/// The reply to the only request of a connection, in HTTP/1.1.
pub struct LastReply {
    socket: ClientSocket,
    is_http10: bool,
}

impl LastReply {
    /// Takes a connection whose client waits for a reply.
    pub fn new<F: FrontEnd>(stream: TcpStream, is_http10: bool, service: &Service<F>) -> Self {
        let socket = ClientSocket::plain(stream, service.timeouts().write, service.budget.clone());
        Self { socket, is_http10 }
    }

    /// Returns the counter of the reply's bytes.
    pub fn meter(&self) -> SendMeter {
        self.socket.meter().clone()
    }

    /// Waits until the client has closed its side.
    pub async fn closed(&self) {
        self.socket.closed().await;
    }

    /// Sends the reply of an exchange that has noted it, and ends both.
    pub async fn send(mut self, reply: Reply, exchange: impl Exchange) {
        let framing = framing(&reply, self.is_http10);
        let sent = tokio::select! {
            biased;
            sent = h1::send(&mut self.socket, reply, framing, Persistence::Close, false) => sent,
            () = exchange.cut() => Err(ReplyError::Kicked),
        };
        exchange.finish(&sent);
        if sent.is_ok() {
            self.socket.linger().await;
        }
    }
}
