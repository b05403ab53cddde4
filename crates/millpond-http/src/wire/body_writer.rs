//! Bodies over HTTP/1.1: few system calls, and file ranges without a copy.

use super::{error::ReplyError, socket::ClientSocket};
use crate::body::{Body, BodyError, Chunk, residency};
use bytes::Bytes;
use futures_util::future::poll_immediate;
use std::{
    fs::File,
    io::{self, IoSlice},
    ops::Range,
    sync::Arc,
};

/// Length up to which file ranges are sent together, in bytes.
const TOGETHER_BYTES: u64 = 512 << 10;
/// Most chunks of one `writev`.
const GATHER_CHUNKS: usize = 64;
/// Number of queued bytes from which `writev` is called.
const GATHER_BYTES: usize = 512 << 10;
/// Most bytes of a body that is made while it is sent which wait in the kernel for room in the client's window: what a slow
/// client gets next is that old. Bodies of a fixed length may fill the socket's buffer.
const UNSENT_BYTES: u32 = 32 << 10;
/// Number of queued bytes of such a body from which `writev` is called: what waits behind can still be dropped.
const GATHER_STREAM_BYTES: usize = 16 << 10;

/// Writes one body.
pub(super) struct BodyWriter<'a> {
    socket: &'a mut ClientSocket,
    /// Chunks that wait for a common write.
    queue: Vec<Chunk>,
    /// Number of body bytes in the queue.
    queued_bytes: usize,
    /// Number of file ranges sent.
    files: usize,
    /// Whether the socket holds partial packets back.
    is_corked: bool,
    /// Whether the body has the chunked transfer coding.
    chunked: bool,
    /// Most bytes that are encrypted at a time, over TLS.
    encrypted: Option<usize>,
    /// Number of queued bytes from which they are written.
    gathers: usize,
    /// Whether each file range is sent alone.
    alone: bool,
}

impl<'a> BodyWriter<'a> {
    /// Creates a writer. `encrypted` is the most bytes that are encrypted at a time, over TLS.
    pub(super) fn new(socket: &'a mut ClientSocket, chunked: bool, encrypted: Option<usize>) -> Self {
        let queue = Vec::new();
        let gathers = encrypted.unwrap_or(GATHER_BYTES);
        Self { socket, queue, queued_bytes: 0, files: 0, is_corked: false, chunked, encrypted, gathers, alone: false }
    }

    /// Sends a head and the body after it.
    ///
    /// # Errors
    /// Those of the body and of the connection.
    pub(super) async fn run(mut self, head: Vec<u8>, mut body: Body) -> Result<(), ReplyError> {
        if body.is_stream() {
            self.socket.bound_unsent(UNSENT_BYTES);
            self.gathers = self.gathers.min(GATHER_STREAM_BYTES);
        }
        self.queue.push(Chunk::Owned(head));
        while let Some(chunk) = self.next(&mut body).await? {
            if self.chunked {
                self.frame(format!("{:x}\r\n", chunk.len()).into_bytes().into());
            }
            let mut ranges = self.files_beside(&chunk, &mut body).await;
            match self.read_if_small(chunk).await {
                chunk @ Chunk::File { .. } if !ranges.is_empty() => {
                    ranges.insert(0, chunk);
                    self.send_together(&ranges, &mut body).await?;
                }
                Chunk::File { file, range, pin: _pin } => self.send_alone(&file, range, &mut body).await?,
                chunk => self.gather(chunk, &mut body).await?,
            }
            if self.chunked {
                self.frame(Bytes::from_static(b"\r\n"));
            }
        }
        if self.chunked {
            self.frame(Bytes::from_static(b"0\r\n\r\n"));
        }
        self.flush(None).await?;
        self.cork(false);
        self.socket.flush().await?;
        Ok(())
    }

    /// Sends several file ranges.
    async fn send_together(&mut self, ranges: &[Chunk], body: &mut Body) -> Result<(), ReplyError> {
        self.files += ranges.len();
        // The head leaves at once, without waiting for a full packet.
        self.flush(Some(body)).await?;
        self.cork(true);
        let all: u64 = ranges.iter().map(Chunk::len).sum();
        let sent = self.socket.send_files(ranges).await?;
        // Sending the range that stopped them alone reports its error.
        if sent < all {
            self.alone = true;
            body.rewind(all - sent);
        }
        Ok(())
    }

    /// Sends one file range.
    async fn send_alone(&mut self, file: &Arc<File>, range: Range<u64>, body: &mut Body) -> Result<(), ReplyError> {
        // One file after a head needs no cork: the head is sent with MSG_MORE.
        self.files += 1;
        self.cork(self.files > 1);
        let head = self.take_lone_head();
        self.flush(Some(body)).await?;
        let end = range.end;
        let end_sent = self.socket.send_file(&head, file, range).await?;
        if end_sent < end {
            let error = BodyError::end_of_file(end_sent);
            // The length of the HTTP chunk has left already.
            if self.chunked {
                return Err(error.into());
            }
            body.resume(end - end_sent, error)?;
        }
        Ok(())
    }

    /// Queues bytes, and writes the queue when it is long enough.
    async fn gather(&mut self, chunk: Chunk, body: &mut Body) -> io::Result<()> {
        let is_owned = matches!(chunk, Chunk::Owned(_));
        self.queued_bytes += chunk.len() as usize;
        self.queue.push(chunk);
        if is_owned || self.queue.len() >= GATHER_CHUNKS || self.queued_bytes >= self.gathers {
            self.flush(Some(body)).await?;
        }
        Ok(())
    }

    /// Queues bytes of the chunked coding.
    fn frame(&mut self, bytes: Bytes) {
        self.socket.meter().framed(bytes.len());
        self.queue.push(Chunk::Bytes(bytes));
    }

    /// Returns the next chunk of the body. Queued chunks are sent before a wait.
    async fn next(&mut self, body: &mut Body) -> Result<Option<Chunk>, ReplyError> {
        if body.is_stream() {
            if let Some(chunk) = poll_immediate(body.next()).await {
                return Ok(chunk?);
            }
            // The stream is told where its client takes nothing.
            self.flush(Some(body)).await?;
        }
        let next = body.next();
        tokio::pin!(next);
        if let Some(chunk) = poll_immediate(&mut next).await {
            return Ok(chunk?);
        }
        self.flush(None).await?;
        self.cork(false);
        self.socket.flush().await?;
        let closed = self.socket.closed();
        tokio::select! {
            biased;
            chunk = &mut next => Ok(chunk?),
            () = closed => Err(io::Error::from(io::ErrorKind::ConnectionReset).into()),
        }
    }

    /// Returns the file ranges that can be sent together with a chunk.
    async fn files_beside(&self, first: &Chunk, body: &mut Body) -> Vec<Chunk> {
        let mut ranges = Vec::new();
        if self.chunked || self.encrypted.is_some() || self.alone || !matches!(first, Chunk::File { .. }) {
            return ranges;
        }
        let mut bytes = first.len();
        while bytes < TOGETHER_BYTES
            && let Some(range) = body.next_ready_file().await
        {
            bytes += range.len();
            ranges.push(range);
        }
        ranges
    }

    /// Reads a small file range that will be encrypted, so that several share records and writes.
    ///
    /// An unreadable range stays one: sending it reports the offset of the error.
    async fn read_if_small(&self, chunk: Chunk) -> Chunk {
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

    /// Takes the queued bytes if they are one buffer, which then shares a packet with the file after it.
    fn take_lone_head(&mut self) -> Vec<u8> {
        match (self.queue.pop(), self.is_corked) {
            (Some(Chunk::Owned(only)), false) if self.queue.is_empty() => only,
            (Some(last), _) => {
                self.queue.push(last);
                Vec::new()
            }
            (None, _) => Vec::new(),
        }
    }

    /// Writes the queued chunks. The body is told where the client takes nothing.
    async fn flush(&mut self, mut body: Option<&mut Body>) -> io::Result<()> {
        self.queued_bytes = 0;
        if self.queue.is_empty() {
            return Ok(());
        }
        let mut slices: Vec<IoSlice<'_>> = self
            .queue
            .iter()
            .filter_map(|chunk| match chunk {
                Chunk::Bytes(b) => Some(IoSlice::new(b)),
                Chunk::Owned(v) => Some(IoSlice::new(v)),
                Chunk::File { .. } => None,
            })
            .collect();
        {
            let write = self.socket.write_all(&mut slices);
            tokio::pin!(write);
            match poll_immediate(&mut write).await {
                Some(written) => written?,
                None => {
                    if let Some(body) = &mut body {
                        body.held_up();
                    }
                    write.await?;
                }
            }
        }
        drop(slices);
        let last = self.queue.pop();
        self.queue.clear();
        if let (Some(Chunk::Owned(buffer)), Some(body)) = (last, body) {
            body.recycle(buffer);
        }
        Ok(())
    }

    /// Holds partial packets back, or stops that.
    fn cork(&mut self, on: bool) {
        if self.is_corked != on {
            self.is_corked = on;
            self.socket.cork(on);
        }
    }
}
