//! HTTP/1.1, plain and inside TLS: one task a connection, file ranges by `sendfile` where nothing is encrypted.

use super::{
    Body, BodyError,
    chunk::Chunk,
    head::{self, Framing, Head, Persistence},
    listen::{SendError, Service},
    residency,
    rules::Bad,
    wire::Wire,
};
use crate::front::{Exchange, Reply, Visit};
use bytes::{Buf, Bytes, BytesMut};
use http::{Method, StatusCode};
use std::{io, io::IoSlice, net::SocketAddr};
use tokio::{sync::watch, time::timeout};

/// Ranges of files are sent together until they have this many bytes.
const TOGETHER_BYTES: u64 = 512 << 10;
/// Chunks gathered into one `writev`.
const GATHER: usize = 64;
/// `writev` is called once this many bytes are gathered.
const GATHER_BYTES: usize = 512 << 10;

/// How a connection ended.
pub(crate) enum End {
    /// It is over.
    Closed,
    /// The client speaks HTTP/2: the connection with the bytes already read.
    Http2(Wire, BytesMut),
}

/// Serves one connection until it ends.
pub(crate) async fn serve(wire: Wire, peer: SocketAddr, service: &Service, stop: &mut watch::Receiver<bool>) -> End {
    let visit = service.front.visit(peer);
    let mut connection = Connection { wire, peer, visit, service, input: BytesMut::new() };
    loop {
        let read = match connection.next_request(stop).await {
            Ok(Some(read)) => read,
            Ok(None) | Err(_) => break,
        };
        match read {
            Read::Request(mut head) => {
                head.keep_alive &= !*stop.borrow();
                let keep_alive = head.keep_alive;
                // On the heap, so that an idle connection has no room for it in its task.
                if Box::pin(connection.answer(*head)).await.is_err() || !keep_alive {
                    break;
                }
            }
            Read::Http2 => return End::Http2(connection.wire, connection.input),
        }
    }
    connection.wire.linger().await;
    End::Closed
}

enum Read {
    Request(Box<Head>),
    Http2,
}

struct Connection<'a> {
    wire: Wire,
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
                first = timeout(self.service.limits.idle, self.wire.read(&mut self.input)) => match first {
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
                let why = "the request head did not arrive in time";
                self.refuse(Bad::new(StatusCode::REQUEST_TIMEOUT, why)).await?;
                Ok(None)
            }
        }
    }

    async fn read_head(&mut self) -> io::Result<Option<Read>> {
        loop {
            if !self.input.is_empty() {
                match head::parse(&self.input) {
                    head::Parsed::Request(mut head) => {
                        self.input.advance(head.used);
                        // No resource here takes a body: the connection can't be kept in step behind one.
                        head.keep_alive &= !head.has_body;
                        return Ok(Some(Read::Request(head)));
                    }
                    head::Parsed::Http2Preface => return Ok(Some(Read::Http2)),
                    head::Parsed::Bad(bad) => {
                        self.refuse(bad).await?;
                        return Ok(None);
                    }
                    head::Parsed::Partial => {}
                }
            }
            if !self.wire.read(&mut self.input).await? {
                return Ok(None);
            }
        }
    }

    async fn refuse(&mut self, bad: Bad) -> io::Result<()> {
        let reply = self.service.front.refusal(bad.status, bad.why, self.peer);
        let framing = framing(&reply, false);
        self.send(reply, framing, Persistence::Ends, false).await.map_err(SendError::into_io)
    }

    async fn answer(&mut self, head: Head) -> io::Result<()> {
        let started = std::time::Instant::now();
        let head_only = head.request.method == Method::HEAD;
        let front = self.service.front.clone();
        self.wire.meter().restart();
        let mut exchange = Exchange::begin(front.clone(), head.request, self.peer, started, self.wire.meter().clone());
        let (reply, note) = {
            let gone = self.wire.closed();
            let begun = async {
                let answer = front.handle(exchange.request(), &self.visit).await;
                front.begin(exchange.request(), &self.visit, started, answer).await
            };
            tokio::select! {
                biased;
                answer = begun => answer,
                () = gone => return Err(io::ErrorKind::ConnectionReset.into()),
            }
        };
        exchange.replied(note, reply.status);
        let framing = framing(&reply, head.http10);
        let keep_alive = head.keep_alive && (framing != Framing::Close || head_only);
        let persistence = match (keep_alive, head.http10) {
            (true, false) => Persistence::Stays,
            (true, true) => Persistence::StaysTold,
            (false, _) => Persistence::Ends,
        };
        let sent = self.send(reply, framing, persistence, head_only).await;
        exchange.finish(&sent);
        sent.map_err(SendError::into_io)?;
        if head.keep_alive && !keep_alive {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        Ok(())
    }

    /// Sends a reply. The wire's meter counts what is sent of it.
    async fn send(
        &mut self,
        reply: Reply,
        framing: Framing,
        persistence: Persistence,
        head_only: bool,
    ) -> Result<(), SendError> {
        let mut out = Vec::with_capacity(512);
        head::write(&reply, framing, persistence, &mut out);
        self.wire.meter().framed(out.len());
        if head_only || matches!(framing, Framing::None | Framing::Length(0)) {
            self.wire.write_all(&mut [IoSlice::new(&out)]).await?;
            self.wire.flush().await?;
            return Ok(());
        }
        let chunked = framing == Framing::Chunked;
        let encrypted = self.wire.begin_body(reply.body.is_rewritten());
        let mut writer = BodyWriter { wire: &mut self.wire, corked: false, chunked, encrypted, alone: false };
        let sent = writer.run(out, reply.body).await;
        self.wire.end_body();
        sent
    }
}

/// How the end of a reply is told (RFC 9112 section 6.3).
fn framing(reply: &Reply, http10: bool) -> Framing {
    match (reply.status, reply.body.len()) {
        (StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED, _) => Framing::None,
        (_, Some(len)) => Framing::Length(len),
        (_, None) if http10 => Framing::Close,
        (_, None) => Framing::Chunked,
    }
}

struct BodyWriter<'a> {
    wire: &'a mut Wire,
    corked: bool,
    chunked: bool,
    /// Most bytes that are encrypted at a time, where they are.
    encrypted: Option<usize>,
    /// Whether each range of a file is sent alone.
    alone: bool,
}

impl BodyWriter<'_> {
    async fn run(&mut self, head: Vec<u8>, mut body: Body) -> Result<(), SendError> {
        let mut pending: Vec<Chunk> = vec![Chunk::Owned(head)];
        let mut pending_bytes = 0;
        let mut files = 0;
        let gather_bytes = self.encrypted.unwrap_or(GATHER_BYTES);
        while let Some(chunk) = self.next(&mut body, &mut pending).await? {
            if pending.is_empty() {
                pending_bytes = 0;
            }
            let len = chunk.len();
            if self.chunked {
                self.frame(&mut pending, format!("{len:x}\r\n").into_bytes().into());
            }
            let mut ranges = self.ranges(&chunk, &mut body).await;
            match self.gathered(chunk).await {
                chunk @ Chunk::File { .. } if !ranges.is_empty() => {
                    ranges.insert(0, chunk);
                    files += ranges.len();
                    // The head leaves at once: the first byte doesn't wait for a full packet.
                    self.flush(&mut pending, Some(&mut body)).await?;
                    self.cork(true);
                    pending_bytes = 0;
                    let all: u64 = ranges.iter().map(Chunk::len).sum();
                    let passed = self.wire.send_files(&ranges).await?;
                    // The range that stopped them tells why when it is sent alone.
                    if passed < all {
                        self.alone = true;
                        body.rewind(all - passed);
                    }
                }
                Chunk::File { file, range, pin: _pin } => {
                    // One file behind a head needs no cork: the head says that more comes.
                    files += 1;
                    self.cork(files > 1);
                    let head = self.lone_head(&mut pending);
                    self.flush(&mut pending, Some(&mut body)).await?;
                    pending_bytes = 0;
                    let end = range.end;
                    let stopped = self.wire.send_file(&head, &file, range).await?;
                    if stopped < end {
                        let cut = BodyError::cut(stopped);
                        // The length of an HTTP chunk is on its way already.
                        if self.chunked {
                            return Err(cut.into());
                        }
                        body.resume(end - stopped, cut)?;
                    }
                }
                chunk => {
                    let owned = matches!(chunk, Chunk::Owned(_));
                    pending.push(chunk);
                    pending_bytes += len as usize;
                    if owned || pending.len() >= GATHER || pending_bytes >= gather_bytes {
                        self.flush(&mut pending, Some(&mut body)).await?;
                        pending_bytes = 0;
                    }
                }
            }
            if self.chunked {
                self.frame(&mut pending, Bytes::from_static(b"\r\n"));
            }
        }
        if self.chunked {
            self.frame(&mut pending, Bytes::from_static(b"0\r\n\r\n"));
        }
        self.flush(&mut pending, None).await?;
        self.cork(false);
        self.wire.flush().await?;
        Ok(())
    }

    /// Adds bytes that are no part of the body.
    fn frame(&self, pending: &mut Vec<Chunk>, bytes: Bytes) {
        self.wire.meter().framed(bytes.len());
        pending.push(Chunk::Bytes(bytes));
    }

    /// The next chunk of the body; what is ready goes out before anything is waited for.
    async fn next(&mut self, body: &mut Body, pending: &mut Vec<Chunk>) -> Result<Option<Chunk>, SendError> {
        let next = body.next();
        tokio::pin!(next);
        if let Some(chunk) = futures_util::future::poll_immediate(&mut next).await {
            return Ok(chunk?);
        }
        self.flush(pending, None).await?;
        self.cork(false);
        self.wire.flush().await?;
        let gone = self.wire.closed();
        tokio::select! {
            biased;
            chunk = &mut next => Ok(chunk?),
            () = gone => Err(io::Error::from(io::ErrorKind::ConnectionReset).into()),
        }
    }

    /// The ranges of files that can be sent together with a chunk.
    async fn ranges(&self, first: &Chunk, body: &mut Body) -> Vec<Chunk> {
        let mut ranges = Vec::new();
        if self.chunked || self.encrypted.is_some() || self.alone || !matches!(first, Chunk::File { .. }) {
            return ranges;
        }
        let mut bytes = first.len();
        while bytes < TOGETHER_BYTES
            && let Some(range) = body.beside().await
        {
            bytes += range.len();
            ranges.push(range);
        }
        ranges
    }

    /// A chunk as it goes out best: small ranges that must be encrypted are read, so that they share records and writes.
    /// What can't be read stays a range: sending it tells where it stops.
    async fn gathered(&self, chunk: Chunk) -> Chunk {
        if let Chunk::File { file, range, pin: _ } = &chunk
            && self.encrypted.is_some_and(|most| range.end - range.start < most as u64 / 2)
        {
            let mut bytes = Vec::with_capacity((range.end - range.start) as usize);
            if residency::append(file, range.clone(), &mut bytes).await.is_ok() {
                return Chunk::Bytes(bytes.into());
            }
        }
        chunk
    }

    /// The bytes that wait, where they are one buffer: it shares a packet with the file that follows.
    fn lone_head(&self, pending: &mut Vec<Chunk>) -> Vec<u8> {
        match (pending.pop(), self.corked) {
            (Some(Chunk::Owned(only)), false) if pending.is_empty() => only,
            (Some(last), _) => {
                pending.push(last);
                Vec::new()
            }
            (None, _) => Vec::new(),
        }
    }

    async fn flush(&mut self, pending: &mut Vec<Chunk>, mut body: Option<&mut Body>) -> io::Result<()> {
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
        {
            let write = self.wire.write_all(&mut slices);
            tokio::pin!(write);
            match futures_util::future::poll_immediate(&mut write).await {
                Some(written) => written?,
                None => {
                    if let Some(body) = &mut body {
                        body.rest();
                    }
                    write.await?;
                }
            }
        }
        drop(slices);
        let last = pending.pop();
        pending.clear();
        if let (Some(Chunk::Owned(buffer)), Some(body)) = (last, body) {
            body.recycle(buffer);
        }
        Ok(())
    }

    fn cork(&mut self, on: bool) {
        if self.corked != on {
            self.corked = on;
            self.wire.cork(on);
        }
    }
}
