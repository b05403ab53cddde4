//! The connection under HTTP/1.1, plain or TLS. Every wait for the client ends after the write timeout, on either.

use super::{
    buffers,
    chunk::Chunk,
    meter::Meter,
    pipe::{Passage, Passed},
    residency,
    room::{Room, Ticket},
};
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
    time::{sleep, timeout},
};
use tokio_rustls::server::TlsStream;

/// Largest single `sendfile`, so that one fast client doesn't hold a thread.
const SENDFILE_MOST: u64 = 1 << 20;
/// Step in which a file is read to be encrypted, and the most that is encrypted ahead of the client.
const ENCRYPT_MOST: usize = 64 << 10;
/// The same where memory is short: one TLS record.
const ENCRYPT_LEAST: usize = 16 << 10;
/// Interval between looks whether a client whose input waits has left.
const PRESENCE: Duration = Duration::from_millis(500);
/// How long the last bytes may take to arrive.
const LINGER: Duration = Duration::from_millis(500);

/// A socket with or without TLS on it.
pub(crate) enum Io {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// A connection to a client, with the patience of the server.
pub(crate) struct Wire {
    io: Io,
    /// Longest time in which the client takes no bytes.
    patience: Duration,
    room: Arc<Room>,
    /// Room in memory for a body under way.
    ticket: Option<Ticket>,
    meter: Meter,
}

impl Wire {
    /// Counts what is sent of the response under way.
    pub(crate) fn meter(&self) -> &Meter {
        &self.meter
    }

    pub(crate) fn plain(stream: TcpStream, patience: Duration, room: Arc<Room>) -> Self {
        Self { io: Io::Plain(stream), patience, room, ticket: None, meter: Meter::default() }
    }

    pub(crate) fn tls(mut stream: TlsStream<TcpStream>, patience: Duration, room: Arc<Room>) -> Self {
        stream.get_mut().1.set_buffer_limit(Some(ENCRYPT_LEAST));
        Self { io: Io::Tls(Box::new(stream)), patience, room, ticket: None, meter: Meter::default() }
    }

    /// Begins a body; gives the most that is gathered for one write, where it is encrypted. What is encrypted can't be made
    /// again, so it is in memory until the client takes it: larger steps need room there. So it is with what is `made`
    /// for this client alone.
    pub(crate) fn begin_body(&mut self, made: bool) -> Option<usize> {
        if made || matches!(self.io, Io::Tls(_)) {
            self.ticket = self.room.body();
        }
        let Io::Tls(stream) = &mut self.io else { return None };
        let step = if self.ticket.is_some() { ENCRYPT_MOST } else { ENCRYPT_LEAST };
        stream.get_mut().1.set_buffer_limit(Some(step));
        Some(step)
    }

    /// Ends a body and gives its room back.
    pub(crate) fn end_body(&mut self) {
        self.ticket = None;
    }

    pub(crate) fn into_io(self) -> Io {
        self.io
    }

    fn socket(&self) -> &TcpStream {
        match &self.io {
            Io::Plain(stream) => stream,
            Io::Tls(stream) => stream.get_ref().0,
        }
    }

    /// Waits for bytes and appends them; false at the end of the stream. Dropping the future loses nothing.
    pub(crate) async fn read(&mut self, input: &mut BytesMut) -> io::Result<bool> {
        match &mut self.io {
            Io::Plain(stream) => loop {
                stream.readable().await?;
                input.reserve(2048);
                match stream.try_read_buf(input) {
                    Ok(0) => return Ok(false),
                    Ok(_) => return Ok(true),
                    // Readiness may be out of date.
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock && input.is_empty() => *input = BytesMut::new(),
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                    Err(e) => return Err(e),
                }
            },
            Io::Tls(stream) => {
                input.reserve(512);
                Ok(stream.read_buf(input).await? > 0)
            }
        }
    }

    /// Writes everything.
    pub(crate) async fn write_all(&mut self, mut slices: &mut [IoSlice<'_>]) -> io::Result<()> {
        while !slices.is_empty() {
            let written = match &mut self.io {
                Io::Plain(stream) => match stream.try_write_vectored(slices) {
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                        within(self.patience, stream.writable()).await?;
                        continue;
                    }
                    written => written?,
                },
                Io::Tls(stream) => within(self.patience, stream.write_vectored(slices)).await?,
            };
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            self.meter.wrote(written as u64);
            IoSlice::advance_slices(&mut slices, written);
        }
        Ok(())
    }

    /// Hands everything written to the system.
    pub(crate) async fn flush(&mut self) -> io::Result<()> {
        match &mut self.io {
            Io::Plain(_) => Ok(()),
            Io::Tls(stream) => within(self.patience, stream.flush()).await,
        }
    }

    /// Sends `head`, which may be empty, and a range of a file behind it. Returns where it ended: before the range does
    /// where the file has no more bytes, or its disk fails.
    pub(crate) async fn send_file(&mut self, head: &[u8], file: &Arc<File>, range: Range<u64>) -> io::Result<u64> {
        if matches!(self.io, Io::Tls(_)) {
            return self.encrypt_file(head, file, range).await;
        }
        if !head.is_empty() {
            self.announce(head).await?;
        }
        residency::ensure(file, &range).await;
        let stream = self.socket();
        let mut at = range.start;
        while at < range.end {
            let want = (range.end - at).min(SENDFILE_MOST) as usize;
            let sent = stream.try_io(Interest::WRITABLE, || {
                rustix::fs::sendfile(stream, file, Some(&mut at), want).map_err(io::Error::from)
            });
            match sent {
                Ok(0) => break,
                Ok(sent) => self.meter.wrote(sent as u64),
                // Only the file's side fails in this way (sendfile(2)).
                Err(e) if e.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error()) => break,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => within(self.patience, stream.writable()).await?,
                Err(e) => return Err(e),
            }
        }
        Ok(at)
    }

    /// Sends ranges of files one behind the other over a plain connection. Returns how many bytes: fewer than the ranges
    /// have where a file has no more bytes, or can't be sent together with others.
    pub(crate) async fn send_files(&mut self, ranges: &[Chunk]) -> io::Result<u64> {
        let (mut begin, mut sent) = (0, 0);
        for (at, chunk) in ranges.iter().enumerate() {
            let Chunk::File { file, range, .. } = chunk else { continue };
            if futures_util::future::poll_immediate(residency::ensure(file, range)).await.is_none() {
                // What is there doesn't wait for what isn't.
                let (passed, whole) = self.pass(&ranges[begin..at]).await?;
                (begin, sent) = (at, sent + passed);
                if !whole {
                    return Ok(sent);
                }
                residency::ensure(file, range).await;
            }
        }
        let (passed, _) = self.pass(&ranges[begin..]).await?;
        Ok(sent + passed)
    }

    /// Sends ranges that are in memory; gives how many bytes, and whether these are all.
    async fn pass(&self, ranges: &[Chunk]) -> io::Result<(u64, bool)> {
        let stream = self.socket();
        let mut passage = Passage::new(ranges);
        loop {
            let before = passage.sent();
            let passed = stream.try_io(Interest::WRITABLE, || match passage.advance(stream)? {
                Passed::Blocked => Err(io::ErrorKind::WouldBlock.into()),
                passed => Ok(passed),
            });
            self.meter.wrote(passage.sent() - before);
            match passed {
                Ok(passed) => return Ok((passage.sent(), matches!(passed, Passed::All))),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => within(self.patience, stream.writable()).await?,
                Err(e) => return Err(e),
            }
        }
    }

    /// Writes bytes that share a packet with what follows (send(2), MSG_MORE).
    async fn announce(&mut self, head: &[u8]) -> io::Result<()> {
        let stream = self.socket();
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

    /// As [`send_file`](Self::send_file) over TLS. While the client takes nothing, no bytes of the file are held: they
    /// are read again, from the page cache.
    async fn encrypt_file(&mut self, mut head: &[u8], file: &Arc<File>, range: Range<u64>) -> io::Result<u64> {
        let mut at = range.start;
        let step = if self.ticket.is_some() { ENCRYPT_MOST } else { ENCRYPT_LEAST };
        while !head.is_empty() || at < range.end {
            let mut buffer = buffers::Lent::new();
            let want = step.min(usize::try_from(range.end - at).unwrap_or(usize::MAX));
            if residency::read(file, at, &mut buffer[..want]).await.is_err() {
                drop(buffer);
                self.write_all(&mut [IoSlice::new(head)]).await?;
                return Ok(at);
            }
            let Io::Tls(stream) = &mut self.io else { return Ok(at) };
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
    pub(crate) fn cork(&self, on: bool) {
        if let Io::Plain(stream) = &self.io {
            // Without it the response is the same, in more packets.
            let _ = rustix::net::sockopt::set_tcp_cork(stream, on);
        }
    }

    /// Resolves when the client has closed its side, be there input before that or not.
    pub(crate) async fn closed(&self) {
        let socket = self.socket();
        let mut byte = [0];
        loop {
            match socket.ready(Interest::READABLE).await {
                Ok(ready) if !ready.is_read_closed() => {}
                _ => return,
            }
            // Readiness may be out of date, which a vain attempt corrects; input that waits keeps it.
            match futures_util::future::poll_immediate(socket.peek(&mut byte)).await {
                None => {}
                Some(Ok(waiting)) if waiting > 0 => sleep(PRESENCE).await,
                Some(_) => return,
            }
        }
    }

    /// Gives the last bytes time to arrive before the socket goes: closing with unread input would reset them.
    pub(crate) async fn linger(&mut self) {
        let ended = match &mut self.io {
            Io::Plain(stream) => timeout(LINGER, stream.shutdown()).await,
            Io::Tls(stream) => timeout(LINGER, stream.shutdown()).await,
        };
        if !matches!(ended, Ok(Ok(()))) {
            return;
        }
        let stream = self.socket();
        let mut scratch = [0; 512];
        let drain = async {
            while stream.readable().await.is_ok() {
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

/// Waits until the client takes bytes again; one that takes none for too long is gone.
async fn within<T>(patience: Duration, taking: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    timeout(patience, taking)
        .await
        .unwrap_or_else(|_| Err(io::Error::new(io::ErrorKind::TimedOut, "the client took no bytes in time")))
}
