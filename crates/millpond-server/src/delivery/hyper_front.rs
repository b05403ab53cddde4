//! HTTP/2, and HTTP/1.1 over TLS, by hyper.

use super::{
    Body,
    chunk::Chunk,
    listen::{SendError, Service},
    residency,
};
use crate::front::{Exchange, Request, Visit};
use bytes::Bytes;
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use millpond_store::Pin;
use std::{convert::Infallible, io, net::SocketAddr, sync::Arc, time::Instant};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    sync::watch,
};
use tokio_rustls::server::TlsStream;

/// File ranges become buffers of this size where they must be encrypted or framed.
const READ: u64 = 64 << 10;

type ReplyBody = UnsyncBoxBody<Bytes, io::Error>;

/// Serves a plain connection whose client began with the HTTP/2 preface, of which `read` was taken already.
pub(crate) async fn serve_http2(
    stream: TcpStream,
    read: Bytes,
    peer: SocketAddr,
    service: Arc<Service>,
    stop: watch::Receiver<bool>,
) {
    serve(TokioIo::new(Rewound { read, stream }), peer, service, stop).await;
}

/// Serves a TLS connection in the protocol that ALPN chose.
pub(crate) async fn serve_tls(
    stream: TlsStream<TcpStream>,
    peer: SocketAddr,
    service: Arc<Service>,
    stop: watch::Receiver<bool>,
) {
    serve(TokioIo::new(stream), peer, service, stop).await;
}

async fn serve<I>(io: I, peer: SocketAddr, service: Arc<Service>, mut stop: watch::Receiver<bool>)
where
    I: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
{
    let mut builder = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(service.limits.head);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(128)
        .keep_alive_interval(service.limits.idle)
        .initial_stream_window_size(1 << 20)
        .initial_connection_window_size(4 << 20);
    let visit = Arc::new(service.front.visit(peer));
    let handler = {
        let service = service.clone();
        service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
            let (service, visit) = (service.clone(), visit.clone());
            async move { Ok::<_, Infallible>(answer(&service, request, peer, &visit).await) }
        })
    };
    let connection = builder.serve_connection(io, handler);
    tokio::pin!(connection);
    let ended = tokio::select! {
        result = &mut connection => Some(result),
        () = async { drop(stop.wait_for(|stop| *stop).await) } => None,
    };
    let result = match ended {
        Some(result) => result,
        None => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = result {
        tracing::debug!(%peer, %error, "connection ended");
    }
}

async fn answer(
    service: &Service,
    request: hyper::Request<hyper::body::Incoming>,
    peer: SocketAddr,
    visit: &Visit,
) -> hyper::Response<ReplyBody> {
    let started = Instant::now();
    let (parts, _) = request.into_parts();
    let target = parts.uri.path_and_query().map_or("/", |t| t.as_str()).to_owned();
    let request = Request { method: parts.method, target, headers: parts.headers };
    let front = service.front.clone();
    let (reply, note) = front.handle(&request, visit, started).await;
    let head_only = request.method == http::Method::HEAD;
    let mut response = hyper::Response::new(());
    *response.status_mut() = reply.status;
    response.headers_mut().extend(reply.headers);
    if let Some(len) = reply.body.len()
        && reply.status != http::StatusCode::NOT_MODIFIED
        && reply.status != http::StatusCode::NO_CONTENT
    {
        response.headers_mut().insert(http::header::CONTENT_LENGTH, len.into());
    }
    let body = if head_only { Body::empty() } else { reply.body };
    let exchange = Exchange::new(front, note, request, peer, reply.status, started);
    let pump = Pump { body, exchange: Some(exchange), sent: 0, file: None };
    let stream = futures_util::stream::unfold(pump, |mut pump| async move {
        let frame = pump.next().await?;
        Some((frame.map(Frame::data), pump))
    });
    response.map(|()| UnsyncBoxBody::new(http_body_util::StreamBody::new(stream)))
}

/// Turns a body into frames, and notes the end of the exchange, whichever way it comes.
struct Pump {
    body: Body,
    exchange: Option<Exchange>,
    sent: u64,
    file: Option<(Arc<std::fs::File>, std::ops::Range<u64>, Option<Pin>)>,
}

impl Pump {
    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        self.exchange.as_ref()?;
        match self.pull().await {
            Ok(Some(bytes)) => {
                self.sent += bytes.len() as u64;
                Some(Ok(bytes))
            }
            Ok(None) => {
                self.exchange.take()?.finish(&Ok(self.sent));
                None
            }
            Err(error) => {
                let error = Err(error);
                self.exchange.take()?.finish(&error);
                error.err().map(|e: SendError| Err(e.into_io()))
            }
        }
    }

    async fn pull(&mut self) -> Result<Option<Bytes>, SendError> {
        loop {
            if self.file.is_none() {
                match self.body.next().await? {
                    None => return Ok(None),
                    Some(Chunk::Bytes(bytes)) => return Ok(Some(bytes)),
                    Some(Chunk::Owned(buffer)) => return Ok(Some(buffer.into())),
                    Some(Chunk::File { file, range, pin }) => self.file = Some((file, range, pin)),
                }
            }
            let Some((file, range, _)) = &mut self.file else { return Ok(None) };
            let end = range.end.min(range.start + READ);
            let mut buffer = Vec::with_capacity((end - range.start) as usize);
            if let Err(error) = residency::append(file, range.start..end, &mut buffer).await {
                let rest = range.end - range.start;
                self.file = None;
                self.body.resume(rest, error)?;
                continue;
            }
            range.start = end;
            if range.is_empty() {
                self.file = None;
            }
            return Ok(Some(buffer.into()));
        }
    }
}

impl Drop for Pump {
    fn drop(&mut self) {
        if let Some(exchange) = self.exchange.take() {
            exchange.finish(&Err(io::Error::from(io::ErrorKind::ConnectionReset).into()));
        }
    }
}

/// A connection some of whose bytes were read already.
struct Rewound {
    read: Bytes,
    stream: TcpStream,
}

impl AsyncRead for Rewound {
    fn poll_read(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
        buf: &mut tokio::io::ReadBuf<'_>,
    ) -> std::task::Poll<io::Result<()>> {
        if !self.read.is_empty() {
            let take = self.read.len().min(buf.remaining());
            buf.put_slice(&self.read.split_to(take));
            return std::task::Poll::Ready(Ok(()));
        }
        std::pin::Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Rewound {
    fn poll_write(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
        buf: &[u8],
    ) -> std::task::Poll<io::Result<usize>> {
        std::pin::Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> std::task::Poll<io::Result<usize>> {
        std::pin::Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<io::Result<()>> {
        std::pin::Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<io::Result<()>> {
        std::pin::Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
