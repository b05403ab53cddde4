//! A connection with bounds on what arrives.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use hyper_util::client::legacy::connect::{Connected, Connection};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::error::Excess;
use crate::frames::Frames;
use crate::heads::Heads;

/// Bytes that are read before other tasks of the thread run. The framing of that many takes about a millisecond at worst.
const AT_ONCE: usize = 64 << 10;

/// A stream of bytes to a server.
pub(crate) trait Wire: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Wire for T {}

/// A connection to a server that is not trusted.
pub(crate) struct Guard {
    wire: Box<dyn Wire>,
    version: Version,
    is_proxy: bool,
    /// Bytes read since the last pause.
    run: usize,
}

enum Version {
    One(Heads),
    Two(Frames),
}

impl Guard {
    pub(crate) fn new(wire: Box<dyn Wire>, is_http2: bool, is_proxy: bool) -> Self {
        let version = if is_http2 { Version::Two(Frames::default()) } else { Version::One(Heads::default()) };
        Self { wire, version, is_proxy, run: 0 }
    }

    fn wrote(&mut self, bytes: &[u8]) {
        match &mut self.version {
            Version::One(heads) => heads.wrote(),
            Version::Two(frames) => frames.wrote(bytes),
        }
    }

    fn arrived(&mut self, bytes: &[u8]) -> Result<(), Excess> {
        match &mut self.version {
            Version::One(heads) => heads.read(bytes),
            Version::Two(frames) => frames.read(bytes),
        }
    }
}

impl AsyncRead for Guard {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.run >= AT_ONCE {
            this.run = 0;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let before = into.filled().len();
        let read = Pin::new(&mut this.wire).poll_read(context, into);
        if read.is_pending() {
            this.run = 0;
        }
        ready!(read)?;
        let bytes = &into.filled()[before..];
        this.run += bytes.len();
        Poll::Ready(this.arrived(bytes).map_err(io::Error::other))
    }
}

impl AsyncWrite for Guard {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let count = ready!(Pin::new(&mut this.wire).poll_write(context, bytes))?;
        this.wrote(&bytes[..count]);
        Poll::Ready(Ok(count))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().wire).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().wire).poll_shutdown(context)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let count = ready!(Pin::new(&mut this.wire).poll_write_vectored(context, slices))?;
        let mut left = count;
        for slice in slices {
            let part = left.min(slice.len());
            if part > 0 {
                this.wrote(&slice[..part]);
            }
            left -= part;
        }
        Poll::Ready(Ok(count))
    }

    fn is_write_vectored(&self) -> bool {
        self.wire.is_write_vectored()
    }
}

impl Connection for Guard {
    fn connected(&self) -> Connected {
        let connected = Connected::new().proxy(self.is_proxy);
        match self.version {
            Version::One(_) => connected,
            Version::Two(_) => connected.negotiated_h2(),
        }
    }
}
