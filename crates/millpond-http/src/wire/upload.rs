//! Bodies of requests, as connections read them.

use super::socket::ClientSocket;
use crate::request::{
    HeadError,
    body::{BodyDecoder, Decoded},
};
use bytes::{Bytes, BytesMut};
use h2::RecvStream;
use http::{HeaderMap, header};
use std::io::{self, IoSlice};

/// Bytes of a body that are read at a time.
const READ: usize = 64 << 10;
/// The reply that asks for a body (RFC 9110 section 15.2.1).
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// The body of a request.
pub trait Upload: Send {
    /// Waits for the next bytes; `None` at the end.
    ///
    /// # Errors
    /// The client left, or its framing is invalid.
    fn next(&mut self) -> impl Future<Output = Result<Option<Bytes>, UploadError>> + Send;
}

/// Why a body ended early.
#[derive(Debug, thiserror::Error)]
pub enum UploadError {
    /// The connection failed.
    #[error("the client left: {0}")]
    Client(#[from] io::Error),
    /// The framing is invalid.
    #[error(transparent)]
    Framing(#[from] HeadError),
}

/// The body of a request of HTTP/1.1.
pub(super) struct Http1Body<'a> {
    socket: &'a mut ClientSocket,
    /// Bytes that were read and not used.
    input: &'a mut BytesMut,
    decoder: BodyDecoder,
    /// Whether the client waits for a reply before it sends the body.
    is_awaited: bool,
}

impl<'a> Http1Body<'a> {
    /// Creates the reader of the body that follows a head.
    ///
    /// # Errors
    /// An invalid `Content-Length`.
    pub(super) fn new(
        socket: &'a mut ClientSocket,
        input: &'a mut BytesMut,
        headers: &HeaderMap,
        http10: bool,
    ) -> Result<Self, HeadError> {
        let is_awaited = headers.contains_key(header::EXPECT) && !http10;
        Ok(Self { socket, input, decoder: BodyDecoder::new(headers)?, is_awaited })
    }

    /// Tells whether the body was read to its end.
    pub(super) fn is_over(&self) -> bool {
        self.decoder.is_over()
    }
}

impl Upload for Http1Body<'_> {
    async fn next(&mut self) -> Result<Option<Bytes>, UploadError> {
        if std::mem::take(&mut self.is_awaited) && self.input.is_empty() {
            self.socket.write_all(&mut [IoSlice::new(CONTINUE)]).await?;
            self.socket.flush().await?;
            self.socket.meter().restart();
        }
        loop {
            match self.decoder.next(self.input)? {
                Decoded::Bytes(bytes) => return Ok(Some(bytes)),
                Decoded::Over => return Ok(None),
                Decoded::Partial => {}
            }
            self.input.reserve(READ);
            if !self.socket.read(self.input).await? {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            }
        }
    }
}

/// The body of a request of HTTP/2.
pub(super) struct Http2Body(pub(super) RecvStream);

impl Upload for Http2Body {
    async fn next(&mut self) -> Result<Option<Bytes>, UploadError> {
        while let Some(data) = self.0.data().await {
            let data = data.map_err(io::Error::other)?;
            let released = self.0.flow_control().release_capacity(data.len());
            released.map_err(io::Error::other)?;
            if !data.is_empty() {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }
}
