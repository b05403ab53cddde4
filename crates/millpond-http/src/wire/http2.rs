//! HTTP/2 connections: one task per connection and one per stream. Bodies are read as the client's window opens, never
//! ahead of it.

use super::{
    budget::{ConnectionBudget, Reservation},
    client_frames::BoundedFrames,
    error::ReplyError,
    front_end::{Exchange, FrontEnd, Reply},
    http2_body::StreamBody,
    meter::SendMeter,
    protocol::Protocol,
    rewind::Rewind,
    service::Service,
    socket::{ClientSocket, SocketIo},
    upload::Http2Body,
};
use crate::request::{
    HeadError, Request, authority, framing,
    head::{self, MAX_HEAD},
};
use bytes::Bytes;
use h2::{
    Reason, RecvStream,
    server::{Connection, SendResponse},
};
use http::{Method, StatusCode, header};
use millpond_connections::{ConnectionTimeouts, proxies::ConnectionClient};
use std::{
    future::poll_fn,
    io,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::{Notify, watch},
    task::JoinSet,
    time::{sleep_until, timeout},
};
use tracing::Instrument as _;

/// Most streams that a client may have open on one connection.
const STREAMS_MOST: u32 = 128;
/// Most bytes of one body that wait for the socket.
const SEND_BUFFER: usize = 128 << 10;

/// Most bytes of a request's body that are read.
const REQUEST_BODY_MOST: usize = 16 << 10;

/// State that the streams of a connection share.
struct ConnectionState<F: FrontEnd> {
    service: Arc<Service<F>>,
    budget: ConnectionBudget,
    viewers: F::Viewers,
    peer: SocketAddr,
    /// Told of replies that are the last ones of their connection.
    last: Notify,
}

/// Serves a connection that speaks HTTP/2. The bytes `read` have been read already.
pub(super) async fn serve<F: FrontEnd>(
    socket: ClientSocket,
    read: Bytes,
    client: ConnectionClient,
    service: Arc<Service<F>>,
    stop: watch::Receiver<bool>,
) {
    match socket.into_io() {
        SocketIo::Plain(stream) => handshake(Rewind::new(read, stream), client, service, stop).await,
        SocketIo::Tls(stream) => handshake(Rewind::new(read, *stream), client, service, stop).await,
    }
}

/// Waits for the client's preface, then serves.
async fn handshake<I, F>(io: I, client: ConnectionClient, service: Arc<Service<F>>, stop: watch::Receiver<bool>)
where
    F: FrontEnd,
    I: AsyncRead + AsyncWrite + Unpin,
{
    let peer = client.address;
    let mut builder = h2::server::Builder::new();
    builder
        .max_concurrent_streams(STREAMS_MOST)
        .max_header_list_size(MAX_HEAD as u32)
        .max_send_buffer_size(SEND_BUFFER);
    let connection = match timeout(service.timeouts().head, builder.handshake(BoundedFrames::new(io))).await {
        Ok(Ok(connection)) => connection,
        Ok(Err(error)) => return tracing::debug!(%peer, %error, "HTTP/2 handshake failed"),
        Err(_) => return tracing::debug!(%peer, "the HTTP/2 preface did not arrive in time"),
    };
    let timeouts = service.timeouts();
    let budget = service.budget.of_connection();
    let viewers = service.front().connected(client);
    run(connection, Arc::new(ConnectionState { service, budget, viewers, peer, last: Notify::new() }), timeouts, stop)
        .await;
}

/// Accepts streams until the client closes the connection, the server stops, or no stream is open for the idle timeout.
async fn run<I, F>(
    mut connection: Connection<I, Bytes>,
    shared: Arc<ConnectionState<F>>,
    timeouts: ConnectionTimeouts,
    mut stop: watch::Receiver<bool>,
) where
    F: FrontEnd,
    I: AsyncRead + AsyncWrite + Unpin,
{
    // Dropping the set with the connection ends the tasks of its streams.
    let mut streams = JoinSet::new();
    let mut quiet_since = tokio::time::Instant::now();
    let mut closing = false;
    loop {
        let timeout = if closing { timeouts.write } else { timeouts.idle };
        tokio::select! {
            biased;
            Some(_) = streams.join_next() => {
                if streams.is_empty() {
                    quiet_since = tokio::time::Instant::now();
                }
            }
            next = connection.accept() => match next {
                Some(Ok((request, respond))) => accept(&shared, &mut streams, request, respond),
                Some(Err(error)) => return tracing::debug!(peer = %shared.peer, %error, "connection ended"),
                None => return,
            },
            // A client that does not take the GOAWAY frame in time loses the connection.
            () = sleep_until(quiet_since + timeout), if streams.is_empty() => {
                if closing {
                    return;
                }
                closing = true;
                quiet_since = tokio::time::Instant::now();
                connection.graceful_shutdown();
            }
            () = async { drop(stop.wait_for(|stop| *stop).await) }, if !closing => {
                closing = true;
                quiet_since = tokio::time::Instant::now();
                connection.graceful_shutdown();
            }
            () = shared.last.notified(), if !closing => {
                closing = true;
                quiet_since = tokio::time::Instant::now();
                connection.graceful_shutdown();
            }
        }
    }
}

/// Begins a stream, if the budget has memory for one.
fn accept<F: FrontEnd>(
    shared: &Arc<ConnectionState<F>>,
    streams: &mut JoinSet<()>,
    request: http::Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
) {
    let Some(reservation) = shared.budget.try_stream() else {
        // The client may repeat the request (RFC 9113 section 8.7).
        return respond.send_reset(Reason::REFUSED_STREAM);
    };
    streams.spawn(answer(shared.clone(), request, respond, reservation));
}

/// Answers a request and sends the reply.
async fn answer<F: FrontEnd>(
    shared: Arc<ConnectionState<F>>,
    request: http::Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
    _reservation: Reservation,
) {
    let started = Instant::now();
    let front = shared.service.front();
    let (parts, mut body) = request.into_parts();
    let target = parts.uri.path_and_query().map_or("/", |t| t.as_str()).to_owned();
    let request = Request::new(parts.method.clone(), target, with_host(&parts));
    let target = front.target(&request);
    let publishes = front.takes_body(&request, &target);
    if !publishes && read_whole(&mut body, &parts.headers, shared.service.timeouts().head).await.is_err() {
        return;
    }
    if let Err(error) = check(&parts) {
        let reply = front.refuse(error, shared.peer);
        // A refused client may leave before the reply arrives.
        let _ = send(&shared, reply, None, respond, false, SendMeter::default()).await;
        return;
    }
    let head_only = request.method == Method::HEAD;
    let meter = SendMeter::default();
    let client = (shared.peer, Protocol::Http2);
    let mut exchange = front.begin(&shared.viewers, (request, target), client, started, meter.clone());
    let begun = async {
        if publishes {
            let mut upload = Http2Body(body);
            return Some((exchange.publish(&shared.viewers, &mut upload).await, None));
        }
        let answer = exchange.handle(&shared.viewers).await;
        let begins_in_memory = F::Exchange::body(&answer).begins_in_memory();
        let reservation = match begins_in_memory && exchange.request().method == Method::GET {
            true => timeout(shared.service.timeouts().write, shared.budget.body()).await.ok()?,
            false => None,
        };
        Some((exchange.begin(&shared.viewers, answer).await, reservation))
    };
    let span = exchange.span();
    let begun = tokio::select! {
        biased;
        begun = begun.instrument(span.clone()) => begun,
        _ = poll_fn(|cx| respond.poll_reset(cx)) => None,
    };
    let Some(((reply, info), reservation)) = begun else { return };
    let pass = exchange.replied(info, &reply);
    if reply.is_last {
        shared.last.notify_one();
    }
    let sent = tokio::select! {
        biased;
        sent = send(&shared, reply, reservation, respond, head_only, meter).instrument(span) => sent,
        () = exchange.cut() => Err(ReplyError::Kicked),
        () = pass.over() => Err(ReplyError::Expired),
    };
    exchange.finish(&sent);
}

/// Returns the fields of a request. `Host` is its `:authority`, as in HTTP/1.1 (RFC 9113 section 8.3.1).
fn with_host(parts: &http::request::Parts) -> http::HeaderMap {
    let mut headers = parts.headers.clone();
    let authority = parts.uri.authority().and_then(|authority| authority.as_str().parse().ok());
    if let Some(authority) = authority {
        headers.insert(header::HOST, authority);
    }
    headers
}

/// Reads a request to its end, because it may turn out malformed (RFC 9113 section 8.1.1).
///
/// Its body has no use, so one that is long, late or waits for a reply stays unread.
///
/// # Errors
/// A stream that was reset.
async fn read_whole(body: &mut RecvStream, headers: &http::HeaderMap, limit: Duration) -> Result<(), h2::Error> {
    if body.is_end_stream() || headers.contains_key(header::EXPECT) {
        return Ok(());
    }
    let drain = async {
        let mut taken = 0;
        while let Some(data) = body.data().await {
            taken += data?.len();
            if taken > REQUEST_BODY_MOST {
                return Ok(());
            }
        }
        body.trailers().await.map(drop)
    };
    timeout(limit, drain).await.unwrap_or(Ok(()))
}

/// Checks the rules that `h2` leaves to servers (RFC 9113 section 8.3.1, RFC 9110).
fn check(parts: &http::request::Parts) -> Result<(), HeadError> {
    head::check_target(parts.uri.path_and_query().map_or("", |target| target.as_str()))?;
    authority::check_authority(parts.uri.authority().map(|a| a.as_str()), &parts.headers)?;
    framing::content_length(&parts.headers)?;
    framing::check_expectation(&parts.headers, false)
}

/// Sends the head at once, and the body as the client takes it. A body that has begun in memory comes with its
/// reservation.
async fn send<F: FrontEnd>(
    shared: &ConnectionState<F>,
    reply: Reply,
    reservation: Option<Reservation>,
    mut respond: SendResponse<Bytes>,
    head_only: bool,
    meter: SendMeter,
) -> Result<(), ReplyError> {
    let has_no_body = matches!(reply.status, StatusCode::NOT_MODIFIED | StatusCode::NO_CONTENT);
    let mut response = http::Response::new(());
    *response.status_mut() = reply.status;
    *response.headers_mut() = reply.headers;
    if let Some(len) = reply.body.len().filter(|_| !has_no_body) {
        response.headers_mut().insert(header::CONTENT_LENGTH, len.into());
    }
    let ends = head_only || has_no_body || reply.body.len() == Some(0);
    match respond.send_response(response, ends) {
        Ok(_) if ends => Ok(()),
        Ok(stream) => {
            let timeout = shared.service.timeouts().write;
            StreamBody::new(stream, reply.body, &shared.budget, reservation, timeout, meter).run().await
        }
        Err(error) => Err(io::Error::other(error).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::head::MAX_TARGET;

    #[test]
    fn targets_have_the_limit_of_http1() {
        let checked = |target: String| {
            let request = http::Request::builder().uri(format!("http://h{target}")).body(()).unwrap();
            check(&request.into_parts().0).map_err(|error| error.status.as_u16())
        };
        let filled = |start: &str, length: usize| format!("{start}{}", "a".repeat(length - start.len()));
        for start in ["/", "/a?"] {
            assert_eq!(checked(filled(start, MAX_TARGET)), Ok(()));
            assert_eq!(checked(filled(start, MAX_TARGET + 1)), Err(414));
        }
    }
}
