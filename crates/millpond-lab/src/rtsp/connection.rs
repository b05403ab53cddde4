//! A client's connection: bytes out, messages and interleaved packets in.

use super::clock::Clock;
use bytes::BytesMut;
use millpond_rtp::client::{Received, RtspClient};
use std::{cell::RefCell, io, rc::Rc, time::Duration};
use tokio::{io::AsyncWriteExt as _, net::TcpStream};

/// Bytes read at once: some hundred packets.
const READ: usize = 256 << 10;

/// The buffer that all connections of a thread read into, one after the other. Between two reads a connection keeps only
/// the beginning of a message that is not complete.
pub(crate) type Scratch = Rc<RefCell<BytesMut>>;

/// Takes interleaved packets: when they were read, their channel, their bytes.
pub(crate) trait Frames {
    /// One packet.
    fn frame(&mut self, arrival: Duration, channel: u8, bytes: &[u8]);
}

/// An open connection.
pub(crate) struct Connection {
    stream: TcpStream,
    clock: Clock,
    scratch: Scratch,
    rest: Vec<u8>,
}

impl Connection {
    pub(crate) fn new(stream: TcpStream, clock: Clock, scratch: Scratch) -> Self {
        // Without it a request waits for the last one's acknowledgement.
        let _ = stream.set_nodelay(true);
        Self { stream, clock, scratch, rest: Vec::new() }
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Sends all bytes.
    ///
    /// # Errors
    /// The connection broke.
    pub(crate) async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await
    }

    /// Reads once: gives packets to `frames` and messages to `client`. Returns whether there were messages, after which
    /// the client may have actions. Dropping the future loses nothing.
    ///
    /// # Errors
    /// The connection ended or broke.
    pub(crate) async fn hear(&mut self, client: &mut RtspClient, frames: &mut impl Frames) -> io::Result<bool> {
        self.stream.readable().await?;
        let mut input = self.scratch.borrow_mut();
        input.clear();
        input.extend_from_slice(&self.rest);
        input.reserve(READ);
        match self.stream.try_read_buf(&mut *input) {
            Ok(0) => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the connection")),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error),
        }
        let (arrival, now) = (self.clock.now(), self.clock.elapsed());
        let mut has_messages = false;
        while let Some(received) = client.receive(&mut input, now) {
            match received {
                Received::Media { channel, bytes } => frames.frame(arrival, channel, &bytes),
                Received::Control => has_messages = true,
                Received::Skipped(bytes) => {
                    let why = format!("{bytes} bytes between packets that are no RTSP message");
                    return Err(io::Error::new(io::ErrorKind::InvalidData, why));
                }
            }
        }
        self.rest.clear();
        self.rest.extend_from_slice(&input);
        Ok(has_messages)
    }

    /// Sends interleaved bytes, where there is room now: what is not sent is lost, as a report may be.
    pub(crate) fn offer(&self, channel: u8, bytes: &[u8]) {
        let mut framed = Vec::with_capacity(4 + bytes.len());
        framed.extend_from_slice(&[b'$', channel]);
        framed.extend_from_slice(&(bytes.len() as u16).to_be_bytes());
        framed.extend_from_slice(bytes);
        // Of so few bytes the kernel takes all or none, unless its buffer is full to the brim.
        let _ = self.stream.try_write(&framed);
    }
}
