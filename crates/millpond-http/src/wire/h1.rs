//! HTTP/1.1 connections, plain and over TLS, one task each.

use super::{
    body_writer::BodyWriter,
    error::ReplyError,
    front_end::{Exchange, FrontEnd, Reply},
    protocol::Protocol,
    reply_head::{self, Framing, Persistence, framing},
    service::Service,
    socket::ClientSocket,
    upload::Http1Body,
};
use crate::request::{
    HeadError,
    head::{self, ParsedHead, RequestHead},
};
use bytes::{Buf, BytesMut};
use http::{Method, StatusCode};
use millpond_connections::proxies::ConnectionClient;
use std::{
    io::{self, IoSlice},
    net::SocketAddr,
    time::Instant,
};
use tokio::{sync::watch, task::yield_now, time::timeout};
use tracing::Instrument as _;

/// The end of HTTP/1.1 on a connection.
pub(super) enum ConnectionEnd {
    /// The connection is closed.
    Closed,
    /// The client speaks HTTP/2. The bytes have been read already.
    Http2(ClientSocket, BytesMut),
}

/// Serves one connection until it ends.
pub(super) async fn serve<F: FrontEnd>(
    socket: ClientSocket,
    client: ConnectionClient,
    service: &Service<F>,
    stop: &mut watch::Receiver<bool>,
) -> ConnectionEnd {
    let viewers = service.front().connected(client);
    let mut connection = Connection { socket, peer: client.address, viewers, service, input: BytesMut::new() };
    loop {
        let read = match connection.next_request(stop).await {
            Ok(Some(read)) => read,
            Ok(None) | Err(_) => break,
        };
        match read {
            Input::Request(mut head) => {
                head.keep_alive &= !*stop.borrow();
                let keep_alive = head.keep_alive;
                // The box keeps the task of an idle connection small.
                if Box::pin(connection.answer(*head)).await.is_err() || !keep_alive {
                    break;
                }
                // Requests that are here already take turns with other connections.
                if !connection.input.is_empty() {
                    yield_now().await;
                }
            }
            Input::Http2 => return ConnectionEnd::Http2(connection.socket, connection.input),
        }
    }
    connection.socket.linger().await;
    ConnectionEnd::Closed
}

/// Input of a connection.
enum Input {
    Request(Box<RequestHead>),
    Http2,
}

struct Connection<'a, F: FrontEnd> {
    socket: ClientSocket,
    peer: SocketAddr,
    viewers: F::Viewers,
    service: &'a Service<F>,
    /// Bytes that were read and not parsed.
    input: BytesMut,
}

impl<F: FrontEnd> Connection<'_, F> {
    /// Reads the next request. Returns `None` at the end of the connection, after a timeout or at a stop.
    async fn next_request(&mut self, stop: &mut watch::Receiver<bool>) -> io::Result<Option<Input>> {
        if self.input.is_empty() {
            // An idle connection has no buffer.
            self.input = BytesMut::new();
            tokio::select! {
                biased;
                first = timeout(self.service.timeouts().idle, self.socket.read(&mut self.input)) => match first {
                    Ok(Ok(true)) => {}
                    Ok(Ok(false)) | Err(_) => return Ok(None),
                    Ok(Err(error)) => return Err(error),
                },
                () = async { drop(stop.wait_for(|stop| *stop).await) } => return Ok(None),
            }
        }
        match timeout(self.service.timeouts().head, self.read_head()).await {
            Ok(read) => read,
            Err(_) => {
                let reason = "the request head did not arrive in time";
                self.refuse(HeadError { status: StatusCode::REQUEST_TIMEOUT, reason }).await?;
                Ok(None)
            }
        }
    }

    /// Reads until a head is complete.
    async fn read_head(&mut self) -> io::Result<Option<Input>> {
        loop {
            if !self.input.is_empty() {
                match head::parse(&self.input) {
                    ParsedHead::Request(head) => {
                        self.input.advance(head.used);
                        return Ok(Some(Input::Request(head)));
                    }
                    ParsedHead::Http2Preface => return Ok(Some(Input::Http2)),
                    ParsedHead::Invalid(error) => {
                        self.refuse(error).await?;
                        return Ok(None);
                    }
                    ParsedHead::Partial => {}
                }
            }
            if !self.socket.read(&mut self.input).await? {
                return Ok(None);
            }
        }
    }

    /// Refuses a request and ends the connection.
    async fn refuse(&mut self, error: HeadError) -> io::Result<()> {
        let reply = self.service.front().refuse(error, self.peer);
        let framing = framing(&reply, false);
        send(&mut self.socket, reply, framing, Persistence::Close, false).await.map_err(ReplyError::into_io)
    }

    /// Answers a request. An error ends the connection.
    async fn answer(&mut self, head: RequestHead) -> io::Result<()> {
        let started = Instant::now();
        let head_only = head.request.method == Method::HEAD;
        let front = self.service.front();
        self.socket.meter().restart();
        let client = (self.peer, Protocol::of_http1(head.http10));
        let target = front.target(&head.request);
        let takes_body = front.takes_body(&head.request, &target);
        let (request, meter) = ((head.request, target), self.socket.meter().clone());
        let mut exchange = front.begin(&self.viewers, request, client, started, meter);
        let mut is_read = true;
        // Other bodies are not read, so the connection ends.
        let is_framed = takes_body || !head.has_body;
        let (reply, info) = if takes_body {
            let headers = &exchange.request().headers;
            let body = Http1Body::new(&mut self.socket, &mut self.input, headers, head.http10);
            let mut body = body.map_err(|_| io::ErrorKind::InvalidData)?;
            let answer = exchange.publish(&self.viewers, &mut body).await;
            is_read = body.is_over();
            answer
        } else {
            let closed = self.socket.closed();
            let begun = async {
                let answer = exchange.handle(&self.viewers).await;
                exchange.begin(&self.viewers, answer).await
            }
            .instrument(exchange.span());
            tokio::select! {
                biased;
                answer = begun => answer,
                () = closed => return Err(io::ErrorKind::ConnectionReset.into()),
            }
        };
        let pass = exchange.replied(info, &reply);
        let framing = framing(&reply, head.http10);
        let keep_alive =
            head.keep_alive && !reply.is_last && is_read && is_framed && (framing != Framing::Close || head_only);
        let persistence = match (keep_alive, head.http10) {
            (true, false) => Persistence::Default,
            (true, true) => Persistence::KeepAlive,
            (false, _) => Persistence::Close,
        };
        let sent = tokio::select! {
            biased;
            sent = send(&mut self.socket, reply, framing, persistence, head_only).instrument(exchange.span()) => sent,
            () = exchange.cut() => Err(ReplyError::Kicked),
            () = pass.over() => Err(ReplyError::Expired),
        };
        exchange.finish(&sent);
        sent.map_err(ReplyError::into_io)?;
        if head.keep_alive && !keep_alive {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        Ok(())
    }
}

/// Sends a reply. The socket's meter counts its bytes.
///
/// # Errors
/// Those of the body and of the connection.
pub(super) async fn send(
    socket: &mut ClientSocket,
    reply: Reply,
    framing: Framing,
    persistence: Persistence,
    head_only: bool,
) -> Result<(), ReplyError> {
    let mut out = Vec::with_capacity(512);
    reply_head::write(&reply, framing, persistence, &mut out);
    socket.meter().framed(out.len());
    if head_only || matches!(framing, Framing::None | Framing::Length(0)) {
        socket.write_all(&mut [IoSlice::new(&out)]).await?;
        socket.flush().await?;
        return Ok(());
    }
    let chunked = framing == Framing::Chunked;
    let encrypted = socket.begin_body(reply.body.is_rewritten());
    let sent = BodyWriter::new(socket, chunked, encrypted).run(out, reply.body).await;
    socket.end_body();
    sent
}
