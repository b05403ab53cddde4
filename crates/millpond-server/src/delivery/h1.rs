//! HTTP/1.1 on a plain connection: one task a connection, file ranges by `sendfile`, nothing copied.

use super::{
    Body, BodyError,
    chunk::Chunk,
    head,
    head::Framing,
    listen::{SendError, Service},
    residency,
};
use crate::front::{Reply, Request, Visit};
use bytes::{Buf, BytesMut};
use http::{Method, StatusCode};
use rustix::net::SendFlags;
use std::{fs::File, io, io::IoSlice, net::SocketAddr, ops::Range, time::Duration};
use tokio::{io::Interest, net::TcpStream, sync::watch, time::timeout};

/// Largest single `sendfile`, so that one fast client doesn't hold a thread.
const SENDFILE_MOST: u64 = 1 << 20;
/// Chunks gathered into one `writev`.
const GATHER: usize = 64;
/// `writev` is called once this many bytes are gathered.
const GATHER_BYTES: usize = 512 << 10;

/// How a connection ended.
pub(crate) enum End {
    /// It is over.
    Closed,
    /// The client speaks HTTP/2: the connection with the bytes already read.
    Http2(TcpStream, BytesMut),
}

/// Serves one connection until it ends.
pub(crate) async fn serve(
    stream: TcpStream,
    peer: SocketAddr,
    service: &Service,
    stop: &mut watch::Receiver<bool>,
) -> End {
    let visit = service.front.visit(peer);
    let mut connection = Connection { stream, peer, visit, service, input: BytesMut::new() };
    loop {
        let read = match connection.next_request(stop).await {
            Ok(Some(read)) => read,
            Ok(None) | Err(_) => return End::Closed,
        };
        match read {
            Read::Request { request, keep_alive } => {
                let keep_alive = keep_alive && !*stop.borrow();
                if connection.answer(request, keep_alive).await.is_err() || !keep_alive {
                    connection.linger().await;
                    return End::Closed;
                }
            }
            Read::Http2 => return End::Http2(connection.stream, connection.input),
        }
    }
}

enum Read {
    Request { request: Request, keep_alive: bool },
    Http2,
}

struct Connection<'a> {
    stream: TcpStream,
    peer: SocketAddr,
    visit: Visit,
    service: &'a Service,
    input: BytesMut,
}

impl Connection<'_> {
    /// The next request; `None` at the end of the connection or of the server's patience.
    async fn next_request(&mut self, stop: &mut watch::Receiver<bool>) -> io::Result<Option<Read>> {
        if self.input.is_empty() {
            // An idle connection holds no buffer.
            self.input = BytesMut::new();
            tokio::select! {
                biased;
                first = timeout(self.service.limits.idle, self.more_bytes()) => match first {
                    Ok(Ok(true)) => {}
                    Ok(Ok(false)) | Err(_) => return Ok(None),
                    Ok(Err(error)) => return Err(error),
                },
                () = async { drop(stop.wait_for(|stop| *stop).await) } => return Ok(None),
            }
        }
        match timeout(self.service.limits.head, self.read_head()).await {
            Ok(read) => read,
            Err(_) => {
                self.refuse(StatusCode::REQUEST_TIMEOUT, "the request head did not arrive in time").await?;
                Ok(None)
            }
        }
    }

    async fn read_head(&mut self) -> io::Result<Option<Read>> {
        loop {
            if !self.input.is_empty() {
                match head::parse(&self.input) {
                    head::Parsed::Request { request, used, keep_alive, has_body } => {
                        self.input.advance(used);
                        // No resource here takes a body: the connection can't be kept in step behind one.
                        return Ok(Some(Read::Request { request, keep_alive: keep_alive && !has_body }));
                    }
                    head::Parsed::Http2Preface => return Ok(Some(Read::Http2)),
                    head::Parsed::Bad(why) => {
                        self.refuse(StatusCode::BAD_REQUEST, why).await?;
                        return Ok(None);
                    }
                    head::Parsed::Partial => {}
                }
            }
            if !self.more_bytes().await? {
                return Ok(None);
            }
        }
    }

    /// Waits for bytes and takes them; false at the end of the stream.
    async fn more_bytes(&mut self) -> io::Result<bool> {
        loop {
            self.stream.readable().await?;
            self.input.reserve(2048);
            match self.stream.try_read_buf(&mut self.input) {
                Ok(0) => return Ok(false),
                Ok(_) => return Ok(true),
                // Readiness may be out of date.
                Err(e) if e.kind() == io::ErrorKind::WouldBlock && self.input.is_empty() => {
                    self.input = BytesMut::new()
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                Err(e) => return Err(e),
            }
        }
    }

    async fn refuse(&mut self, status: StatusCode, why: &str) -> io::Result<()> {
        let reply = self.service.front.refusal(status, why);
        self.send(reply, false, false).await.map(drop).map_err(SendError::into_io)
    }

    async fn answer(&mut self, request: Request, keep_alive: bool) -> io::Result<()> {
        let started = std::time::Instant::now();
        let head_only = request.method == Method::HEAD;
        let front = self.service.front.clone();
        let (reply, note) = {
            let gone = closed(&self.stream);
            tokio::select! {
                biased;
                answer = front.handle(&request, &self.visit, started) => answer,
                () = gone => return Err(io::ErrorKind::ConnectionReset.into()),
            }
        };
        let status = reply.status;
        let sent = self.send(reply, keep_alive, head_only).await;
        front.done(note, &request, self.peer, status, started, &sent);
        sent.map(drop).map_err(SendError::into_io)
    }

    /// Sends a reply; gives the body bytes sent.
    async fn send(&mut self, reply: Reply, keep_alive: bool, head_only: bool) -> Result<u64, SendError> {
        let framing = match (reply.status, reply.body.len()) {
            (StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED, _) => Framing::None,
            (_, Some(len)) => Framing::Length(len),
            (_, None) => Framing::Chunked,
        };
        let mut out = Vec::with_capacity(512);
        head::write(&reply, framing, keep_alive, &mut out);
        if head_only || matches!(framing, Framing::None | Framing::Length(0)) {
            self.write_all(&mut [IoSlice::new(&out)]).await?;
            return Ok(0);
        }
        let chunked = framing == Framing::Chunked;
        let mut writer = BodyWriter { connection: self, corked: false, chunked };
        writer.run(out, reply.body).await
    }

    async fn write_all(&self, mut slices: &mut [IoSlice<'_>]) -> io::Result<()> {
        while !slices.is_empty() {
            let written = match self.stream.try_write_vectored(slices) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => n,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    self.writable().await?;
                    continue;
                }
                Err(e) => return Err(e),
            };
            IoSlice::advance_slices(&mut slices, written);
        }
        Ok(())
    }

    /// Waits until the client takes bytes again; one that takes none for too long is gone.
    async fn writable(&self) -> io::Result<()> {
        timeout(self.service.limits.write, self.stream.writable())
            .await
            .unwrap_or_else(|_| Err(io::Error::new(io::ErrorKind::TimedOut, "the client took no bytes in time")))
    }

    /// Sends a range of a file, and returns where it ended: before the range does where the file has no more bytes, or its
    /// disk fails.
    async fn send_file(&self, file: &File, range: Range<u64>) -> io::Result<u64> {
        let mut at = range.start;
        while at < range.end {
            let want = (range.end - at).min(SENDFILE_MOST) as usize;
            let sent = self.stream.try_io(Interest::WRITABLE, || {
                rustix::fs::sendfile(&self.stream, file, Some(&mut at), want).map_err(io::Error::from)
            });
            match sent {
                Ok(0) => break,
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => self.writable().await?,
                // Only the file's side fails in this way (sendfile(2)).
                Err(e) if e.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error()) => break,
                Err(e) => return Err(e),
            }
        }
        Ok(at)
    }

    /// Gives the last bytes time to arrive before the socket goes: closing with unread input would reset them.
    async fn linger(&mut self) {
        use tokio::io::AsyncWriteExt as _;
        if self.stream.shutdown().await.is_err() {
            return;
        }
        let mut scratch = [0; 512];
        let drain = async {
            while self.stream.readable().await.is_ok() {
                match self.stream.try_read(&mut scratch) {
                    Ok(0) => return,
                    Ok(_) => {}
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                    Err(_) => return,
                }
            }
        };
        let _ = timeout(Duration::from_millis(500), drain).await;
    }
}

struct BodyWriter<'a, 'b> {
    connection: &'a mut Connection<'b>,
    corked: bool,
    chunked: bool,
}

impl BodyWriter<'_, '_> {
    async fn run(&mut self, head: Vec<u8>, mut body: Body) -> Result<u64, SendError> {
        let mut pending: Vec<Chunk> = vec![Chunk::Owned(head)];
        let mut pending_bytes = 0;
        let mut sent = 0;
        let mut files = 0;
        loop {
            let chunk = {
                let next = body.next();
                tokio::pin!(next);
                // What is ready goes out before anything is waited for.
                match futures_util::future::poll_immediate(&mut next).await {
                    Some(chunk) => chunk?,
                    None => {
                        self.flush(&mut pending, None).await?;
                        pending_bytes = 0;
                        self.cork(false);
                        let gone = closed(&self.connection.stream);
                        tokio::select! {
                            biased;
                            chunk = &mut next => chunk?,
                            () = gone => return Err(io::Error::from(io::ErrorKind::ConnectionReset).into()),
                        }
                    }
                }
            };
            let Some(chunk) = chunk else { break };
            let len = chunk.len();
            sent += len;
            if self.chunked {
                pending.push(Chunk::Owned(format!("{len:x}\r\n").into_bytes()));
            }
            match chunk {
                Chunk::File { file, range, pin: _pin } => {
                    // One file behind a head needs no cork: the head says that more comes.
                    files += 1;
                    self.cork(files > 1);
                    self.flush_before_more(&mut pending, &mut body).await?;
                    residency::ensure(&file, &range).await;
                    let end = range.end;
                    let stopped = self.connection.send_file(&file, range).await?;
                    if stopped < end {
                        let cut = BodyError::cut(stopped);
                        // The length of an HTTP chunk is on its way already.
                        if self.chunked {
                            return Err(cut.into());
                        }
                        body.resume(end - stopped, cut)?;
                        sent -= end - stopped;
                    }
                }
                chunk => {
                    let owned = matches!(chunk, Chunk::Owned(_));
                    pending.push(chunk);
                    pending_bytes += len as usize;
                    if owned || pending.len() >= GATHER || pending_bytes >= GATHER_BYTES {
                        self.flush(&mut pending, Some(&mut body)).await?;
                        pending_bytes = 0;
                    }
                }
            }
            if self.chunked {
                pending.push(Chunk::Bytes(bytes::Bytes::from_static(b"\r\n")));
            }
        }
        if self.chunked {
            pending.push(Chunk::Bytes(bytes::Bytes::from_static(b"0\r\n\r\n")));
        }
        self.flush(&mut pending, None).await?;
        self.cork(false);
        Ok(sent)
    }

    /// As [`flush`](Self::flush), where a file follows at once: its bytes share the packet (send(2), MSG_MORE).
    async fn flush_before_more(&self, pending: &mut Vec<Chunk>, body: &mut Body) -> io::Result<()> {
        if let ([Chunk::Owned(only)], false) = (pending.as_slice(), self.corked) {
            let sent = self.connection.stream.try_io(Interest::WRITABLE, || {
                rustix::net::send(&self.connection.stream, only, SendFlags::MORE | SendFlags::NOSIGNAL)
                    .map_err(io::Error::from)
            });
            match sent {
                Ok(count) if count == only.len() => {
                    pending.clear();
                    return Ok(());
                }
                Ok(count) => {
                    let rest = only.get(count..).unwrap_or_default().to_vec();
                    *pending = vec![Chunk::Owned(rest)];
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        self.flush(pending, Some(body)).await
    }

    async fn flush(&self, pending: &mut Vec<Chunk>, body: Option<&mut Body>) -> io::Result<()> {
        if pending.is_empty() {
            return Ok(());
        }
        let mut slices: Vec<IoSlice<'_>> = pending
            .iter()
            .filter_map(|chunk| match chunk {
                Chunk::Bytes(b) => Some(IoSlice::new(b)),
                Chunk::Owned(v) => Some(IoSlice::new(v)),
                Chunk::File { .. } => None,
            })
            .collect();
        self.connection.write_all(&mut slices).await?;
        drop(slices);
        let last = pending.pop();
        pending.clear();
        if let (Some(Chunk::Owned(buffer)), Some(body)) = (last, body) {
            body.recycle(buffer);
        }
        Ok(())
    }

    /// Holds back partial packets between the pieces of one response (tcp(7), TCP_CORK).
    fn cork(&mut self, on: bool) {
        if self.corked != on {
            self.corked = on;
            // Without it the response is the same, in more packets.
            let _ = rustix::net::sockopt::set_tcp_cork(&self.connection.stream, on);
        }
    }
}

/// Resolves when the client has closed its side; input that waits (pipelining) counts as presence.
async fn closed(stream: &TcpStream) {
    let mut byte = [0];
    match stream.peek(&mut byte).await {
        Ok(0) | Err(_) => {}
        Ok(_) => std::future::pending().await,
    }
}
