//! TLS of one connection. Bytes are encrypted on their way into the socket or into its queue.

use bytes::BytesMut;
use std::{
    fmt,
    io::{self, BufRead as _, IoSlice, Read, Write},
};
use tokio::net::TcpStream;
use tokio_rustls::rustls::ServerConnection;

/// TLS state of a connection after its handshake.
pub(super) struct Secure(Box<ServerConnection>);

impl Secure {
    pub(super) fn new(connection: ServerConnection) -> Self {
        Self(Box::new(connection))
    }

    /// Encrypts slices of bytes and sends them behind `waiting`. Bytes that the socket does not accept now are appended
    /// to `waiting`. Afterwards no bytes wait inside the TLS library.
    ///
    /// # Errors
    /// The connection has failed.
    pub(super) fn seal(
        &mut self,
        mut slices: &mut [IoSlice<'_>],
        stream: &TcpStream,
        waiting: &mut Vec<u8>,
    ) -> io::Result<()> {
        // Skips empty slices in front.
        IoSlice::advance_slices(&mut slices, 0);
        while !slices.is_empty() {
            let count = self.0.writer().write_vectored(slices)?;
            if count == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            IoSlice::advance_slices(&mut slices, count);
            // The TLS library buffers a limited number of bytes, and accepts more after they are sent.
            self.flush(stream, waiting)?;
        }
        Ok(())
    }

    /// Sends TLS's own messages, such as new keys.
    pub(super) fn flush(&mut self, stream: &TcpStream, waiting: &mut Vec<u8>) -> io::Result<()> {
        while waiting.is_empty() && self.0.wants_write() {
            match self.0.write_tls(&mut Socket(stream)) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        while self.0.wants_write() {
            self.0.write_tls(waiting)?;
        }
        Ok(())
    }

    /// Sends the end of the TLS stream (close_notify).
    pub(super) fn close(&mut self) {
        self.0.send_close_notify();
    }

    /// Reads from the socket and appends the decrypted bytes. Returns their number, 0 at the end.
    ///
    /// # Errors
    /// `WouldBlock` where no complete record has arrived, and errors that end the connection.
    pub(super) fn read(&mut self, stream: &TcpStream, input: &mut BytesMut) -> io::Result<usize> {
        if self.0.read_tls(&mut Socket(stream))? == 0 {
            return Ok(0);
        }
        let state = self.0.process_new_packets().map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        match self.take(input) {
            0 if state.peer_has_closed() => Ok(0),
            0 => Err(io::ErrorKind::WouldBlock.into()),
            count => Ok(count),
        }
    }

    /// Appends bytes that are decrypted already. Returns their number.
    pub(super) fn take(&mut self, input: &mut BytesMut) -> usize {
        let before = input.len();
        let mut reader = self.0.reader();
        while let Ok(bytes @ [_, ..]) = reader.fill_buf() {
            let count = bytes.len();
            input.extend_from_slice(bytes);
            reader.consume(count);
        }
        input.len() - before
    }
}

/// Shows no keys.
impl fmt::Debug for Secure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secure").finish_non_exhaustive()
    }
}

/// A socket that returns `WouldBlock` instead of waiting.
struct Socket<'a>(&'a TcpStream);

impl Read for Socket<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.try_read(buffer)
    }
}

impl Write for Socket<'_> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.0.try_write(buffer)
    }

    fn write_vectored(&mut self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.try_write_vectored(buffers)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
