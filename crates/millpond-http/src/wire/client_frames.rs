//! The frames of an HTTP/2 client that carry no content: PING, SETTINGS, PRIORITY, WINDOW_UPDATE, empty DATA, unknown ones.

use millpond_outbound::{FrameHead, FrameKind, FrameWalk};
use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::Instant,
};

/// Frames without content that a client may send at once.
const SPARE: u64 = 1024;
/// Further ones for each request: its priority, its windows, its end.
const OF_A_REQUEST: u64 = 64;
/// Further ones for each frame of content that it gets: windows of the stream and of the connection.
const OF_A_FRAME: u64 = 4;
/// Further ones each second.
const OF_A_SECOND: u64 = 64;

/// More frames without content than requests and replies account for (RFC 9113 10.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("more frames without content than the requests and replies account for")]
pub(super) struct TooManyFrames;

/// Counter of a client's frames. Times are those since the connection began.
#[derive(Debug)]
struct ClientFrames {
    received: FrameWalk,
    sent: FrameWalk,
    /// Frames without content, less those that were accounted for.
    idle: u64,
    /// Seconds that were accounted for.
    seconds: u64,
}

impl ClientFrames {
    fn new() -> Self {
        Self { received: FrameWalk::of_client(), sent: FrameWalk::default(), idle: 0, seconds: 0 }
    }

    /// Takes notice of bytes that were sent.
    fn wrote(&mut self, bytes: &[u8]) {
        let idle = &mut self.idle;
        self.sent.each(bytes, |head| {
            if has_content(head) {
                *idle = idle.saturating_sub(OF_A_FRAME);
            }
        });
    }

    /// Takes notice of bytes that arrived.
    ///
    /// # Errors
    /// They have too many frames without content.
    fn read(&mut self, bytes: &[u8], now: Duration) -> Result<(), TooManyFrames> {
        let passed = now.as_secs().saturating_sub(self.seconds);
        self.seconds += passed;
        self.idle = self.idle.saturating_sub(passed.saturating_mul(OF_A_SECOND));
        let (idle, mut most) = (&mut self.idle, 0);
        self.received.each(bytes, |head| {
            match head.kind {
                FrameKind::Headers => *idle = idle.saturating_sub(OF_A_REQUEST),
                _ if has_content(head) => *idle = idle.saturating_sub(1),
                _ => *idle += 1,
            }
            most = most.max(*idle);
        });
        if most > SPARE { Err(TooManyFrames) } else { Ok(()) }
    }
}

fn has_content(head: FrameHead) -> bool {
    head.kind == FrameKind::Data && head.length > 0
}

/// A connection that fails when its client sends too many frames without content.
pub(super) struct BoundedFrames<S> {
    stream: S,
    frames: ClientFrames,
    began: Instant,
}

impl<S> BoundedFrames<S> {
    /// Counts the frames of a connection from its preface on.
    pub(super) fn new(stream: S) -> Self {
        Self { stream, frames: ClientFrames::new(), began: Instant::now() }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for BoundedFrames<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(cx, buf))?;
        let read = this.frames.read(&buf.filled()[before..], this.began.elapsed());
        Poll::Ready(read.map_err(io::Error::other))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for BoundedFrames<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let count = ready!(Pin::new(&mut this.stream).poll_write(cx, buf))?;
        this.frames.wrote(&buf[..count]);
        Poll::Ready(Ok(count))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let count = ready!(Pin::new(&mut this.stream).poll_write_vectored(cx, bufs))?;
        let mut left = count;
        for slice in bufs {
            let part = left.min(slice.len());
            this.frames.wrote(&slice[..part]);
            left -= part;
        }
        Poll::Ready(Ok(count))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

    fn frame(kind: u8, length: u8) -> Vec<u8> {
        let mut frame = vec![0, 0, length, kind, 0, 0, 0, 0, 1];
        frame.resize(9 + usize::from(length), 1);
        frame
    }

    fn begun() -> ClientFrames {
        let mut frames = ClientFrames::new();
        assert_eq!(frames.read(PREFACE, Duration::ZERO), Ok(()));
        frames
    }

    #[test]
    fn frames_without_content_are_too_many_however_they_are_cut() {
        for kind in [0, 2, 4, 6, 8, 9, 77] {
            let flood = frame(kind, 0).repeat(5000);
            for length in [1, 7, 4000, flood.len()] {
                let mut frames = begun();
                let mut pieces = flood.chunks(length);
                let found = pieces.try_for_each(|piece| frames.read(piece, Duration::ZERO));
                assert_eq!(found, Err(TooManyFrames), "kind {kind}, pieces of {length}");
            }
        }
    }

    #[test]
    fn players_are_far_from_the_bound() {
        let mut frames = begun();
        // A film of 40 GB in frames of 16 KiB: two windows are updated for each of them.
        for number in 0..2_500_000_u64 {
            if number % 256 == 0 {
                frames.read(&frame(1, 30), Duration::ZERO).unwrap();
            }
            frames.wrote(&frame(0, 1));
            frames.read(&frame(8, 4).repeat(2), Duration::ZERO).unwrap();
        }
        // A page that stays open for a year, with a PING each second.
        let mut idle = begun();
        for second in 0..31_536_000 {
            idle.read(&[0, 0, 0, 6, 0, 0, 0, 0, 0], Duration::from_secs(second)).unwrap();
        }
    }

    #[test]
    fn a_second_gives_back_some() {
        let mut frames = begun();
        let at = Duration::from_secs;
        let full = frame(6, 0).repeat(1024);
        assert_eq!(frames.read(&full, at(0)), Ok(()));
        assert_eq!(frames.read(&frame(6, 0).repeat(64), at(1)), Ok(()));
        assert_eq!(frames.read(&frame(6, 0), at(1)), Err(TooManyFrames));
    }
}
