//! The connection of a session: bytes that were read, and bytes to write.

use crate::reception::rtsp::connector::{Connection, ConnectionEnds};
use bytes::BytesMut;
use std::{
    future::Future as _,
    io,
    pin::{Pin, pin},
    task::{Context, Poll, Waker, ready},
};
use tokio::io::{AsyncReadExt as _, AsyncWrite as _, AsyncWriteExt as _};

/// Room for one read, in bytes.
const READ: usize = 64 << 10;
/// Bytes to write from which on nothing is read and no report is written: the server takes nothing.
const MOST_UNWRITTEN: usize = 64 << 10;

/// A connection with its buffers.
pub(crate) struct Wire {
    connection: Box<dyn Connection>,
    /// Bytes that were read. Their user takes them from the front.
    pub(crate) input: BytesMut,
    output: BytesMut,
    is_flushed: bool,
}

impl Wire {
    pub(crate) fn new(connection: Box<dyn Connection>) -> Self {
        Self { connection, input: BytesMut::new(), output: BytesMut::new(), is_flushed: true }
    }

    /// See [`Connection::addresses`].
    pub(crate) fn addresses(&self) -> io::Result<ConnectionEnds> {
        self.connection.addresses()
    }

    /// Queues bytes. [`exchange`](Wire::exchange) writes them.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.output.extend_from_slice(bytes);
        self.is_flushed = false;
    }

    /// Queues a packet of an interleaved channel (RFC 2326 10.12). It is dropped while the server takes nothing.
    pub(crate) fn offer(&mut self, channel: u8, packet: &[u8]) {
        if self.output.len() < MOST_UNWRITTEN {
            self.send_packet(channel, &[packet]);
        }
    }

    /// Queues a packet of an interleaved channel, which is given in parts.
    pub(crate) fn send_packet(&mut self, channel: u8, parts: &[&[u8]]) {
        let Ok(length) = u16::try_from(parts.iter().map(|part| part.len()).sum::<usize>()) else { return };
        let [high, low] = length.to_be_bytes();
        self.send(&[b'$', channel, high, low]);
        parts.iter().for_each(|part| self.send(part));
    }

    /// Writes queued bytes, and returns when bytes were read. Cancel safe.
    ///
    /// # Errors
    /// The connection ended or failed.
    pub(crate) async fn exchange(&mut self) -> io::Result<()> {
        std::future::poll_fn(|context| self.poll(context)).await
    }

    /// Writes all queued bytes. Cancel safe: what was not written stays queued.
    ///
    /// # Errors
    /// The connection failed.
    pub(crate) async fn flush(&mut self) -> io::Result<()> {
        std::future::poll_fn(|context| self.poll_write(context)).await
    }

    /// Writes queued bytes, as many as the system accepts without waiting. Errors show at the next exchange.
    pub(crate) fn write_now(&mut self) {
        let _ = self.poll_write(&mut Context::from_waker(Waker::noop()));
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Poll::Ready(Err(error)) = self.poll_write(context) {
            return Poll::Ready(Err(error));
        }
        if self.output.len() >= MOST_UNWRITTEN {
            return Poll::Pending;
        }
        self.input.reserve(READ);
        // Reading keeps no state between two polls.
        let read = ready!(pin!(self.connection.read_buf(&mut self.input)).poll(context))?;
        Poll::Ready(if read > 0 { Ok(()) } else { Err(closed()) })
    }

    fn poll_write(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.output.is_empty() {
            let written = ready!(pin!(self.connection.write_buf(&mut self.output)).poll(context))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
        }
        if !self.is_flushed {
            ready!(Pin::new(&mut self.connection).poll_flush(context))?;
            self.is_flushed = true;
        }
        Poll::Ready(Ok(()))
    }
}

fn closed() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the connection")
}
