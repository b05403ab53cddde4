//! A live segment that is sent while it is made: each part when it is complete.

use bytes::Bytes;
use futures_util::future::BoxFuture;
use millpond_http::body::{BodyError, ChunkStream};
use millpond_package::live::{SegmentNumber, TrackSegment, Window};
use millpond_stream::live::LiveWindow;
use std::{collections::VecDeque, sync::Arc, time::Duration};

/// The parts of an unfinished segment, as chunks of a body.
pub(crate) struct SegmentStream {
    window: Arc<LiveWindow>,
    track: usize,
    number: SegmentNumber,
    /// Index of the next part.
    part: usize,
    /// Bytes of the part before, which are sent next.
    ready: VecDeque<Bytes>,
    /// Longest wait for a part.
    patience: Duration,
}

/// The part after those that were sent.
enum Next {
    Part(Arc<[Bytes]>),
    End,
    /// The segment was evicted.
    Lost,
}

/// Whether a segment of a track has a part, or never will have one.
pub(crate) fn is_begun(window: &Window, track: usize, number: SegmentNumber) -> bool {
    of_track(window, track, number).is_some_and(|segment| segment.is_closed() || !segment.parts().is_empty())
}

fn of_track(window: &Window, track: usize, number: SegmentNumber) -> Option<&TrackSegment> {
    window.segment(number)?.track(track)
}

impl SegmentStream {
    /// Sends a segment of a track. The response is broken off where no part comes for `patience`.
    pub(crate) fn new(window: Arc<LiveWindow>, (track, number): (usize, SegmentNumber), patience: Duration) -> Self {
        Self { window, track, number, part: 0, ready: VecDeque::new(), patience }
    }

    /// Looks for what follows; `None` until that is known.
    fn look(&self, window: &Window) -> Option<Next> {
        let Some(segment) = of_track(window, self.track, self.number) else { return Some(Next::Lost) };
        match segment.parts().get(self.part) {
            Some(part) => Some(Next::Part(part.bytes.clone())),
            None if segment.parts().len() < self.part => Some(Next::Lost),
            None => segment.is_closed().then_some(Next::End),
        }
    }
}

impl ChunkStream for SegmentStream {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Bytes>, BodyError>> {
        Box::pin(async {
            loop {
                if let Some(chunk) = self.ready.pop_front() {
                    return Ok(Some(chunk));
                }
                match self.window.when_track(self.track, self.patience, |window| self.look(window)).await {
                    Some(Next::Part(bytes)) => {
                        self.part += 1;
                        self.ready.extend(bytes.iter().cloned());
                        self.window.renew();
                    }
                    Some(Next::End) => return Ok(None),
                    Some(Next::Lost) | None => {
                        return Err(BodyError::Cut { segment: self.number.0, part: self.part });
                    }
                }
            }
        })
    }
}
