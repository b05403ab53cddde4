//! The socket of an HTTP/1.1 connection, plain or with TLS. The write timeout limits every wait for the client.

use super::{
    budget::{ReplyBudget, Reservation},
    meter::SendMeter,
    splice::{Progress, Splice},
};
use crate::body::{Chunk, buffers, residency};
use bytes::BytesMut;
use rustix::net::SendFlags;
use std::{
    fs::File,
    io::{self, IoSlice},
    ops::Range,
    sync::Arc,
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, Interest},
    net::TcpStream,
    task::consume_budget,
    time::{sleep, timeout},
};
use tokio_rustls::server::TlsStream;

/// Most bytes of one `sendfile`, so that one fast client does not occupy a thread.
const SENDFILE_MOST: u64 = 1 << 20;
/// Most bytes that are read and encrypted ahead of the client.
const ENCRYPT_MOST: usize = 64 << 10;
/// The same while memory is short: one TLS record.
const ENCRYPT_LEAST: usize = 16 << 10;
/// Interval between checks whether a client with unread input has left.
const PRESENCE: Duration = Duration::from_millis(500);
/// Time for the last bytes to arrive before the socket closes.
const LINGER: Duration = Duration::from_millis(500);

/// A TCP stream, plain or with TLS.
pub(super) enum SocketIo {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// The socket of a client.
pub(super) struct ClientSocket {
    io: SocketIo,
    /// Longest time in which the client takes no bytes.
    write_timeout: Duration,
    budget: Arc<ReplyBudget>,
    /// Memory for the body in progress.
    reservation: Option<Reservation>,
    meter: SendMeter,
}

impl ClientSocket {
    /// Returns the counter of the response in progress.
    pub(super) fn meter(&self) -> &SendMeter {
        &self.meter
    }

    /// Wraps a plain stream.
    pub(super) fn plain(stream: TcpStream, write_timeout: Duration, budget: Arc<ReplyBudget>) -> Self {
        Self::new(SocketIo::Plain(stream), write_timeout, budget)
    }

    /// Wraps a stream with TLS.
    pub(super) fn tls(mut stream: TlsStream<TcpStream>, write_timeout: Duration, budget: Arc<ReplyBudget>) -> Self {
        stream.get_mut().1.set_buffer_limit(Some(ENCRYPT_LEAST));
        Self::new(SocketIo::Tls(Box::new(stream)), write_timeout, budget)
    }

    fn new(io: SocketIo, write_timeout: Duration, budget: Arc<ReplyBudget>) -> Self {
        Self { io, write_timeout, budget, reservation: None, meter: SendMeter::default() }
    }

    /// Begins a body. Over TLS, returns the most bytes that are gathered for one write.
    ///
    /// Encrypted bytes stay in memory until the client takes them, so larger steps need a reservation. The same holds
    /// for bytes that are `rewritten` for this client.
    pub(super) fn begin_body(&mut self, rewritten: bool) -> Option<usize> {
        if rewritten || matches!(self.io, SocketIo::Tls(_)) {
            self.reservation = self.budget.try_body();
        }
        let SocketIo::Tls(stream) = &mut self.io else { return None };
        let step = if self.reservation.is_some() { ENCRYPT_MOST } else { ENCRYPT_LEAST };
        stream.get_mut().1.set_buffer_limit(Some(step));
        Some(step)
    }

    /// Ends a body and releases its memory.
    pub(super) fn end_body(&mut self) {
        self.reservation = None;
    }

    /// Returns the stream.
    pub(super) fn into_io(self) -> SocketIo {
        self.io
    }

    fn stream(&self) -> &TcpStream {
        match &self.io {
            SocketIo::Plain(stream) => stream,
            SocketIo::Tls(stream) => stream.get_ref().0,
        }
    }

    /// Waits for bytes and appends them. Returns false at the end of the stream. Dropping the future loses no bytes.
    pub(super) async fn read(&mut self, input: &mut BytesMut) -> io::Result<bool> {
        match &mut self.io {
            SocketIo::Plain(stream) => loop {
                // The attempts take no budget themselves: a client that sends without end would hold the thread.
                consume_budget().await;
                stream.readable().await?;
                input.reserve(2048);
                match stream.try_read_buf(input) {
                    Ok(0) => return Ok(false),
                    Ok(_) => return Ok(true),
                    // The readiness may be outdated.
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock && input.is_empty() => *input = BytesMut::new(),
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                    Err(e) => return Err(e),
                }
            },
            SocketIo::Tls(stream) => {
                input.reserve(512);
                Ok(stream.read_buf(input).await? > 0)
            }
        }
    }

    /// Writes all bytes.
    pub(super) async fn write_all(&mut self, mut slices: &mut [IoSlice<'_>]) -> io::Result<()> {
        while !slices.is_empty() {
            consume_budget().await;
            let written = match &mut self.io {
                SocketIo::Plain(stream) => match stream.try_write_vectored(slices) {
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                        within(self.write_timeout, stream.writable()).await?;
                        continue;
                    }
                    written => written?,
                },
                SocketIo::Tls(stream) => within(self.write_timeout, stream.write_vectored(slices)).await?,
            };
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            self.meter.wrote(written as u64);
            IoSlice::advance_slices(&mut slices, written);
        }
        Ok(())
    }

    /// Passes all written bytes to the system.
    pub(super) async fn flush(&mut self) -> io::Result<()> {
        match &mut self.io {
            SocketIo::Plain(_) => Ok(()),
            SocketIo::Tls(stream) => within(self.write_timeout, stream.flush()).await,
        }
    }

    /// Sends `head`, which may be empty, and a file range after it. Returns the offset of its end, which lies inside
    /// the range if the file is shorter or its disk fails.
    pub(super) async fn send_file(&mut self, head: &[u8], file: &Arc<File>, range: Range<u64>) -> io::Result<u64> {
        if matches!(self.io, SocketIo::Tls(_)) {
            return self.encrypt_file(head, file, range).await;
        }
        if !head.is_empty() {
            self.send_with_more(head).await?;
        }
        residency::ensure(file, &range).await;
        let stream = self.stream();
        let mut at = range.start;
        while at < range.end {
            consume_budget().await;
            let want = (range.end - at).min(SENDFILE_MOST) as usize;
            let sent = stream.try_io(Interest::WRITABLE, || {
                rustix::fs::sendfile(stream, file, Some(&mut at), want).map_err(io::Error::from)
            });
            match sent {
                Ok(0) => break,
                Ok(sent) => self.meter.wrote(sent as u64),
                // Only reading the file fails in this way (sendfile(2)).
                Err(e) if e.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error()) => break,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    within(self.write_timeout, stream.writable()).await?
                }
                Err(e) => return Err(e),
            }
        }
        Ok(at)
    }

    /// Sends file ranges one after another over a plain connection. Returns the number of sent bytes: fewer than those
    /// of the ranges if a file is shorter or can't be spliced.
    pub(super) async fn send_files(&mut self, ranges: &[Chunk]) -> io::Result<u64> {
        let (mut begin, mut sent) = (0, 0);
        for (at, chunk) in ranges.iter().enumerate() {
            let Chunk::File { file, range, .. } = chunk else { continue };
            if futures_util::future::poll_immediate(residency::ensure(file, range)).await.is_none() {
                // Resident ranges leave before the wait for this one.
                let (passed, is_complete) = self.splice(&ranges[begin..at]).await?;
                (begin, sent) = (at, sent + passed);
                if !is_complete {
                    return Ok(sent);
                }
                residency::ensure(file, range).await;
            }
        }
        let (passed, _) = self.splice(&ranges[begin..]).await?;
        Ok(sent + passed)
    }

    /// Sends resident ranges. Returns the number of sent bytes, and whether these are all.
    async fn splice(&self, ranges: &[Chunk]) -> io::Result<(u64, bool)> {
        let stream = self.stream();
        let mut splice = Splice::new(ranges);
        loop {
            consume_budget().await;
            let before = splice.sent();
            let progress = stream.try_io(Interest::WRITABLE, || match splice.advance(stream)? {
                Progress::Blocked => Err(io::ErrorKind::WouldBlock.into()),
                progress => Ok(progress),
            });
            self.meter.wrote(splice.sent() - before);
            match progress {
                Ok(progress) => return Ok((splice.sent(), matches!(progress, Progress::All))),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    within(self.write_timeout, stream.writable()).await?
                }
                Err(e) => return Err(e),
            }
        }
    }

    /// Writes bytes that share a packet with later ones (send(2), MSG_MORE).
    async fn send_with_more(&mut self, head: &[u8]) -> io::Result<()> {
        let stream = self.stream();
        let sent = stream.try_io(Interest::WRITABLE, || {
            rustix::net::send(stream, head, SendFlags::MORE | SendFlags::NOSIGNAL).map_err(io::Error::from)
        });
        let count = match sent {
            Ok(count) => count,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => 0,
            Err(e) => return Err(e),
        };
        self.meter.wrote(count as u64);
        match head.get(count..) {
            Some(rest) if !rest.is_empty() => self.write_all(&mut [IoSlice::new(rest)]).await,
            _ => Ok(()),
        }
    }

    /// Does the same as [`send_file`](Self::send_file) over TLS. While the client takes nothing, no bytes of the file
    /// stay in memory: they are read again from the page cache.
    async fn encrypt_file(&mut self, mut head: &[u8], file: &Arc<File>, range: Range<u64>) -> io::Result<u64> {
        let mut at = range.start;
        let step = if self.reservation.is_some() { ENCRYPT_MOST } else { ENCRYPT_LEAST };
        while !head.is_empty() || at < range.end {
            let mut buffer = buffers::PooledBuffer::new();
            let want = step.min(usize::try_from(range.end - at).unwrap_or(usize::MAX));
            if residency::read(file, at, &mut buffer[..want]).await.is_err() {
                drop(buffer);
                self.write_all(&mut [IoSlice::new(head)]).await?;
                return Ok(at);
            }
            let SocketIo::Tls(stream) = &mut self.io else { return Ok(at) };
            let slices = [IoSlice::new(head), IoSlice::new(&buffer[..want])];
            let written = futures_util::future::poll_immediate(stream.write_vectored(&slices)).await;
            drop(buffer);
            match written.transpose()? {
                Some(0) => return Err(io::ErrorKind::WriteZero.into()),
                Some(written) => {
                    self.meter.wrote(written as u64);
                    let of_head = written.min(head.len());
                    head = &head[of_head..];
                    at += (written - of_head) as u64;
                }
                None => self.flush().await?,
            }
        }
        Ok(at)
    }

    /// Holds back partial packets between the pieces of one response (tcp(7), TCP_CORK).
    pub(super) fn cork(&self, on: bool) {
        if let SocketIo::Plain(stream) = &self.io {
            // An error only means more packets.
            let _ = rustix::net::sockopt::set_tcp_cork(stream, on);
        }
    }

    /// Bounds the bytes that wait in the kernel before they are sent (tcp(7), TCP_NOTSENT_LOWAT), from now on.
    pub(super) fn bound_unsent(&self, bytes: u32) {
        // An error only means older media for slow clients.
        let _ = socket2::SockRef::from(self.stream()).set_tcp_notsent_lowat(bytes);
    }

    /// Waits until the client has closed its side, whether its input was read or not.
    pub(super) async fn closed(&self) {
        closed(self.stream()).await;
    }

    /// Waits for the last bytes to arrive before the socket closes. Closing with unread input would discard them.
    pub(super) async fn linger(&mut self) {
        let ended = match &mut self.io {
            SocketIo::Plain(stream) => timeout(LINGER, stream.shutdown()).await,
            SocketIo::Tls(stream) => timeout(LINGER, stream.shutdown()).await,
        };
        if !matches!(ended, Ok(Ok(()))) {
            return;
        }
        let stream = self.stream();
        let mut scratch = [0; 512];
        let drain = async {
            while stream.readable().await.is_ok() {
                consume_budget().await;
                match stream.try_read(&mut scratch) {
                    Ok(0) => return,
                    Ok(_) => {}
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                    Err(_) => return,
                }
            }
        };
        let _ = timeout(LINGER, drain).await;
    }
}

/// Waits until the other end of a connection has closed its side, whether its bytes were read or not.
pub async fn closed(stream: &TcpStream) {
    let mut byte = [0];
    loop {
        match stream.ready(Interest::READABLE).await {
            Ok(ready) if !ready.is_read_closed() => {}
            _ => return,
        }
        // A failed attempt corrects outdated readiness. Unread input keeps it.
        match futures_util::future::poll_immediate(stream.peek(&mut byte)).await {
            None => {}
            Some(Ok(waiting)) if waiting > 0 => sleep(PRESENCE).await,
            Some(_) => return,
        }
    }
}

/// Waits until the client takes bytes again.
///
/// # Errors
/// A client that takes none within the timeout.
async fn within<T>(write_timeout: Duration, taking: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    timeout(write_timeout, taking)
        .await
        .unwrap_or_else(|_| Err(io::Error::new(io::ErrorKind::TimedOut, "the client took no bytes in time")))
}
