//! HTTP/2: one task a connection, one a stream. Bodies are read as the client's window opens, never ahead of it.

use super::{
    Limits,
    head::MAX_HEAD,
    listen::{SendError, Service},
    meter::Meter,
    rewound::Rewound,
    room::{Share, Ticket},
    rules::{self, Bad},
    stream::Flow,
    wire::{Io, Wire},
};
use crate::front::{Exchange, Reply, Request, Visit};
use bytes::Bytes;
use h2::{
    Reason, RecvStream,
    server::{Connection, SendResponse},
};
use http::{Method, StatusCode, header};
use std::{
    future::poll_fn,
    io,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::watch,
    task::JoinSet,
    time::{sleep_until, timeout},
};

/// Streams that a client may have open on one connection.
const STREAMS: u32 = 128;
/// Bytes of one body that wait for the socket.
const SEND_BUFFER: usize = 128 << 10;

/// Bytes of a request's body that are waited for.
const BODY_MOST: usize = 16 << 10;

/// What the streams of a connection share.
struct Shared {
    service: Arc<Service>,
    share: Share,
    visit: Visit,
    peer: SocketAddr,
}

/// Serves a connection that speaks HTTP/2, of which `read` was taken already.
pub(crate) async fn serve(
    wire: Wire,
    read: Bytes,
    peer: SocketAddr,
    service: Arc<Service>,
    stop: watch::Receiver<bool>,
) {
    match wire.into_io() {
        Io::Plain(stream) => greet(Rewound::new(read, stream), peer, service, stop).await,
        Io::Tls(stream) => greet(Rewound::new(read, *stream), peer, service, stop).await,
    }
}

/// Waits for the client's preface, then serves.
async fn greet<I>(io: I, peer: SocketAddr, service: Arc<Service>, stop: watch::Receiver<bool>)
where
    I: AsyncRead + AsyncWrite + Unpin,
{
    let mut builder = h2::server::Builder::new();
    builder.max_concurrent_streams(STREAMS).max_header_list_size(MAX_HEAD as u32).max_send_buffer_size(SEND_BUFFER);
    let connection = match timeout(service.limits.head, builder.handshake(io)).await {
        Ok(Ok(connection)) => connection,
        Ok(Err(error)) => return tracing::debug!(%peer, %error, "no HTTP/2 connection"),
        Err(_) => return tracing::debug!(%peer, "the HTTP/2 preface did not arrive in time"),
    };
    let limits = service.limits;
    let share = service.room.share();
    let visit = service.front.visit(peer);
    run(connection, Arc::new(Shared { service, share, visit, peer }), limits, stop).await;
}

/// Accepts streams until the connection ends: by the client, by a stop, or after `idle` without a stream.
async fn run<I>(
    mut connection: Connection<I, Bytes>,
    shared: Arc<Shared>,
    limits: Limits,
    mut stop: watch::Receiver<bool>,
) where
    I: AsyncRead + AsyncWrite + Unpin,
{
    // Dropped with the connection, which ends what still runs for it.
    let mut streams = JoinSet::new();
    let mut quiet_since = tokio::time::Instant::now();
    let mut closing = false;
    loop {
        let patience = if closing { limits.write } else { limits.idle };
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
            // A client that doesn't even take the farewell is left without one.
            () = sleep_until(quiet_since + patience), if streams.is_empty() => {
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
        }
    }
}

/// Begins a stream, where there is room for one.
fn accept(
    shared: &Arc<Shared>,
    streams: &mut JoinSet<()>,
    request: http::Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
) {
    let Some(ticket) = shared.share.stream() else {
        // The client may send the same again (RFC 9113 section 8.7).
        return respond.send_reset(Reason::REFUSED_STREAM);
    };
    streams.spawn(answer(shared.clone(), request, respond, ticket));
}

async fn answer(
    shared: Arc<Shared>,
    request: http::Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
    _ticket: Ticket,
) {
    let started = Instant::now();
    let front = shared.service.front.clone();
    let (parts, body) = request.into_parts();
    if whole(body, &parts.headers, shared.service.limits.head).await.is_err() {
        return;
    }
    if let Err(bad) = check(&parts) {
        let reply = front.refusal(bad.status, bad.why, shared.peer);
        // The client that is refused may leave too.
        let _ = send(&shared, reply, None, respond, false, Meter::default()).await;
        return;
    }
    let target = parts.uri.path_and_query().map_or("/", |t| t.as_str()).to_owned();
    let request = Request { method: parts.method, target, headers: parts.headers };
    let head_only = request.method == Method::HEAD;
    let meter = Meter::default();
    let mut exchange = Exchange::begin(front.clone(), request, shared.peer, started, meter.clone());
    let begun = async {
        let request = exchange.request();
        let answer = front.handle(request, &shared.visit).await;
        let room = match answer.0.body.begins_in_memory() && request.method == Method::GET {
            true => timeout(shared.service.limits.write, shared.share.body()).await.ok()?,
            false => None,
        };
        Some((front.begin(request, &shared.visit, started, answer).await, room))
    };
    let begun = tokio::select! {
        biased;
        begun = begun => begun,
        _ = poll_fn(|cx| respond.poll_reset(cx)) => None,
    };
    let Some(((reply, note), room)) = begun else { return };
    exchange.replied(note, reply.status);
    let sent = send(&shared, reply, room, respond, head_only, meter).await;
    exchange.finish(&sent);
}

/// Waits until a request is there to its end, for it may turn out malformed (RFC 9113 section 8.1.1). No resource takes a
/// body: one that is large, late or waits for a reply first is left unread. An error is of a stream that was reset.
async fn whole(mut body: RecvStream, headers: &http::HeaderMap, patience: Duration) -> Result<(), h2::Error> {
    if body.is_end_stream() || headers.contains_key(header::EXPECT) {
        return Ok(());
    }
    let drain = async {
        let mut taken = 0;
        while let Some(data) = body.data().await {
            taken += data?.len();
            if taken > BODY_MOST {
                return Ok(());
            }
        }
        body.trailers().await.map(drop)
    };
    timeout(patience, drain).await.unwrap_or(Ok(()))
}

/// What h2 leaves to the server (RFC 9113 section 8.3.1, RFC 9110).
fn check(parts: &http::request::Parts) -> Result<(), Bad> {
    rules::check_authority(parts.uri.authority().map(|a| a.as_str()), &parts.headers)?;
    rules::content_length(&parts.headers)?;
    rules::check_expectation(&parts.headers, false)
}

/// Sends the head at once and the body, for whose bytes there may be room already, as the client takes it.
async fn send(
    shared: &Shared,
    reply: Reply,
    room: Option<Ticket>,
    mut respond: SendResponse<Bytes>,
    head_only: bool,
    meter: Meter,
) -> Result<(), SendError> {
    let bodiless = matches!(reply.status, StatusCode::NOT_MODIFIED | StatusCode::NO_CONTENT);
    let mut response = http::Response::new(());
    *response.status_mut() = reply.status;
    *response.headers_mut() = reply.headers;
    if let Some(len) = reply.body.len().filter(|_| !bodiless) {
        response.headers_mut().insert(header::CONTENT_LENGTH, len.into());
    }
    let ends = head_only || bodiless || reply.body.len() == Some(0);
    match respond.send_response(response, ends) {
        Ok(_) if ends => Ok(()),
        Ok(stream) => {
            Flow::new(stream, reply.body, &shared.share, room, shared.service.limits.write, meter).run().await
        }
        Err(error) => Err(io::Error::other(error).into()),
    }
}
