//! Bodies over HTTP/1.1: few system calls, and file ranges without a copy.

use super::{error::SendError, socket::ClientSocket};
use crate::http::body::{Body, BodyError, Chunk, residency};
use bytes::Bytes;
use std::io::{self, IoSlice};

/// Length up to which file ranges are sent together, in bytes.
const TOGETHER_BYTES: u64 = 512 << 10;
/// Most chunks of one `writev`.
const GATHER_CHUNKS: usize = 64;
/// Number of queued bytes from which `writev` is called.
const GATHER_BYTES: usize = 512 << 10;

/// Writes one body.
pub(super) struct BodyWriter<'a> {
    socket: &'a mut ClientSocket,
    /// Whether the socket holds partial packets back.
    is_corked: bool,
    /// Whether the body has the chunked transfer coding.
    chunked: bool,
    /// Most bytes that are encrypted at a time, over TLS.
    encrypted: Option<usize>,
    /// Whether each file range is sent alone.
    alone: bool,
}

impl<'a> BodyWriter<'a> {
    /// Creates a writer. `encrypted` is the most bytes that are encrypted at a time, over TLS.
    pub(super) fn new(socket: &'a mut ClientSocket, chunked: bool, encrypted: Option<usize>) -> Self {
        Self { socket, is_corked: false, chunked, encrypted, alone: false }
    }

    /// Sends a head and the body after it.
    ///
    /// # Errors
    /// Those of the body and of the connection.
    pub(super) async fn run(&mut self, head: Vec<u8>, mut body: Body) -> Result<(), SendError> {
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
            let mut ranges = self.files_beside(&chunk, &mut body).await;
            match self.read_if_small(chunk).await {
                chunk @ Chunk::File { .. } if !ranges.is_empty() => {
                    ranges.insert(0, chunk);
                    files += ranges.len();
                    // The head leaves at once, without waiting for a full packet.
                    self.flush(&mut pending, Some(&mut body)).await?;
                    self.cork(true);
                    pending_bytes = 0;
                    let all: u64 = ranges.iter().map(Chunk::len).sum();
                    let sent = self.socket.send_files(&ranges).await?;
                    // Sending the range that stopped them alone reports its error.
                    if sent < all {
                        self.alone = true;
                        body.rewind(all - sent);
                    }
                }
                Chunk::File { file, range, pin: _pin } => {
                    // One file after a head needs no cork: the head is sent with MSG_MORE.
                    files += 1;
                    self.cork(files > 1);
                    let head = self.take_lone_head(&mut pending);
                    self.flush(&mut pending, Some(&mut body)).await?;
                    pending_bytes = 0;
                    let end = range.end;
                    let end_sent = self.socket.send_file(&head, &file, range).await?;
                    if end_sent < end {
                        let error = BodyError::end_of_file(end_sent);
                        // The length of the HTTP chunk has left already.
                        if self.chunked {
                            return Err(error.into());
                        }
                        body.resume(end - end_sent, error)?;
                    }
                }
                chunk => {
                    let owned = matches!(chunk, Chunk::Owned(_));
                    pending.push(chunk);
                    pending_bytes += len as usize;
                    if owned || pending.len() >= GATHER_CHUNKS || pending_bytes >= gather_bytes {
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
        self.socket.flush().await?;
        Ok(())
    }

    /// Queues bytes of the chunked coding.
    fn frame(&self, pending: &mut Vec<Chunk>, bytes: Bytes) {
        self.socket.meter().framed(bytes.len());
        pending.push(Chunk::Bytes(bytes));
    }

    /// Returns the next chunk of the body. Queued chunks are sent before a wait.
    async fn next(&mut self, body: &mut Body, pending: &mut Vec<Chunk>) -> Result<Option<Chunk>, SendError> {
        let next = body.next();
        tokio::pin!(next);
        if let Some(chunk) = futures_util::future::poll_immediate(&mut next).await {
            return Ok(chunk?);
        }
        self.flush(pending, None).await?;
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
    fn take_lone_head(&self, pending: &mut Vec<Chunk>) -> Vec<u8> {
        match (pending.pop(), self.is_corked) {
            (Some(Chunk::Owned(only)), false) if pending.is_empty() => only,
            (Some(last), _) => {
                pending.push(last);
                Vec::new()
            }
            (None, _) => Vec::new(),
        }
    }

    /// Writes the queued chunks. A body releases buffers while the client takes nothing.
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
            let write = self.socket.write_all(&mut slices);
            tokio::pin!(write);
            match futures_util::future::poll_immediate(&mut write).await {
                Some(written) => written?,
                None => {
                    if let Some(body) = &mut body {
                        body.release_buffers();
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

    /// Holds partial packets back, or stops that.
    fn cork(&mut self, on: bool) {
        if self.is_corked != on {
            self.is_corked = on;
            self.socket.cork(on);
        }
    }
}
