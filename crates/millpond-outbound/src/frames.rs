//! The frames of an HTTP/2 connection.

use crate::error::Excess;
use crate::frame_walk::{FrameKind, FrameWalk};

/// Heads of replies that a server may send beyond [`HEADS_A_REQUEST`].
pub(crate) const SPARE_HEADS: u64 = 64;

/// Frames without content that a server may send beyond [`FRAMES_A_REQUEST`].
pub(crate) const SPARE_FRAMES: u64 = 4096;

/// Heads for each request: interim replies, the reply, trailers.
pub(crate) const HEADS_A_REQUEST: u64 = 16;

/// Frames without content for each request.
pub(crate) const FRAMES_A_REQUEST: u64 = 64;

/// Counter of the frames on a connection, in both directions (RFC 9113 4.1).
#[derive(Debug)]
pub(crate) struct Frames {
    sent: FrameWalk,
    received: FrameWalk,
    requests: u64,
    heads: u64,
    /// Frames without content, less one for each frame with content.
    idle: u64,
}

impl Default for Frames {
    fn default() -> Self {
        Self { sent: FrameWalk::of_client(), received: FrameWalk::default(), requests: 0, heads: 0, idle: 0 }
    }
}

impl Frames {
    /// Takes notice of bytes that were sent.
    pub(crate) fn wrote(&mut self, bytes: &[u8]) {
        let mut requests = 0;
        self.sent.each(bytes, |head| requests += u64::from(head.kind == FrameKind::Headers));
        self.requests += requests;
    }

    /// Takes notice of bytes that arrived.
    ///
    /// # Errors
    /// They exceed a bound.
    pub(crate) fn read(&mut self, bytes: &[u8]) -> Result<(), Excess> {
        let most_heads = SPARE_HEADS + HEADS_A_REQUEST * self.requests;
        let most_idle = SPARE_FRAMES + FRAMES_A_REQUEST * self.requests;
        let (heads, idle, mut result) = (&mut self.heads, &mut self.idle, Ok(()));
        // Each frame is compared, so that the result does not depend on how the bytes arrive.
        self.received.each(bytes, |head| {
            match head.kind {
                FrameKind::Headers => *heads += 1,
                FrameKind::Data if head.length > 0 => *idle = idle.saturating_sub(1),
                _ => *idle += 1,
            }
            if *heads > most_heads {
                result = result.and(Err(Excess::Heads));
            } else if *idle > most_idle {
                result = result.and(Err(Excess::Frames));
            }
        });
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, length: u8) -> Vec<u8> {
        let mut frame = vec![0, 0, length, kind, 0, 0, 0, 0, 1];
        frame.resize(9 + usize::from(length), 1);
        frame
    }

    fn with_requests(count: usize) -> Frames {
        let mut frames = Frames::default();
        frames.wrote(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        (0..count).for_each(|_| frame(1, 30).chunks(4).for_each(|piece| frames.wrote(piece)));
        frames
    }

    #[test]
    fn endless_heads_are_an_excess_however_they_are_cut() {
        let heads = frame(1, 3).repeat(200);
        for length in [1, 5, 9, heads.len()] {
            let mut frames = with_requests(1);
            let results: Vec<_> = heads.chunks(length).map(|piece| frames.read(piece)).collect();
            assert!(results.contains(&Err(Excess::Heads)), "pieces of {length}");
        }
    }

    #[test]
    fn content_after_an_excess_excuses_nothing() {
        let (empty, content) = (frame(6, 0).repeat(5000), frame(0, 1).repeat(5000));
        let whole = [empty, content].concat();
        for length in [1, 1000, whole.len()] {
            let mut frames = with_requests(1);
            let mut pieces = whole.chunks(length);
            assert_eq!(pieces.try_for_each(|piece| frames.read(piece)), Err(Excess::Frames), "pieces of {length}");
        }
    }

    #[test]
    fn replies_of_many_requests_are_fine() {
        let mut frames = with_requests(10_000);
        for _ in 0..10_000 {
            frames.read(&[frame(1, 20), frame(0, 200), frame(6, 8), frame(0, 0)].concat()).unwrap();
        }
    }

    #[test]
    fn endless_empty_frames_are_an_excess() {
        for kind in [0, 4, 6, 8, 99] {
            let mut frames = with_requests(1);
            let empty = frame(kind, 0);
            assert!((0..10_000).any(|_| frames.read(&empty) == Err(Excess::Frames)), "kind {kind}");
        }
    }
}
