//! A running stream in one response of unknown length: fragmented MP4, or a transport stream, from a key frame on.
//!
//! Frames are sent whole. Those that a slow client can't take in time are left out by the engine, up to a key frame.

use crate::{
    http::{HttpMetrics, Kind},
    storage::PlaceBytes,
};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use millpond_http::{
    body::{BodyError, ChunkStream},
    wire::Held,
};
use millpond_package::hls::Container;
use millpond_stream::{
    Program, Run, Tempo, Viewing,
    fragmenter::{Fragment, FragmentLimits, Fragmenter},
    transport_stream::TransportStream,
};
use std::{collections::VecDeque, sync::Arc, time::Duration};
use tokio::sync::watch;

/// A fragment ends with the first frame behind this time, so that delay is little. A key frame begins another one.
const FRAGMENT: FragmentLimits =
    FragmentLimits { least: Duration::ZERO, most: Duration::from_millis(100), bytes: 4 << 20 };

/// The stream, as chunks of a body.
pub(crate) struct LongResponse {
    /// Number of the current epoch; `None` before the first frame.
    epoch: Option<u32>,
    viewing: Viewing,
    muxer: Muxer,
    /// Chunks of complete fragments.
    ready: VecDeque<Bytes>,
    is_over: bool,
    /// Turns true when the server stops.
    stop: watch::Receiver<bool>,
    sent: Sent,
}

/// Makes the bytes of a container.
pub(crate) enum Muxer {
    /// Fragmented MP4.
    Fragments(Box<Fragmenter>),
    /// MPEG-2 transport stream.
    Transport(Box<TransportStream>),
}

/// Counts what the responses of a stream send while they are under way.
pub(crate) struct Sent {
    metrics: Arc<HttpMetrics>,
    place: Option<PlaceBytes>,
    _viewer: Held,
}

impl Muxer {
    /// Makes that of a stream; `None` where the container can't carry its leading track.
    pub(crate) fn of(program: &Program, container: Container) -> Option<Self> {
        match container {
            Container::Fmp4 => program.fragmenter(FRAGMENT).map(|muxer| Self::Fragments(Box::new(muxer))),
            Container::Ts => program.transport_stream().map(|muxer| Self::Transport(Box::new(muxer))),
        }
    }

    /// Notes what earlier frames of the stream have shown.
    fn expect(&mut self, tempo: Option<Tempo>) {
        if let (Self::Fragments(muxer), Some(tempo)) = (self, tempo) {
            muxer.expect(tempo);
        }
    }

    /// Returns the first fragment, where its frames need not wait for others.
    fn start(&mut self) -> Option<Fragment> {
        match self {
            Self::Fragments(muxer) => muxer.start(),
            Self::Transport(_) => None,
        }
    }

    /// Begins the epoch of the next frame. Returns whether its media can follow in the same response.
    fn enter(&mut self, program: &Program, epoch: u32) -> bool {
        match self {
            Self::Fragments(_) => program.fits(epoch),
            Self::Transport(muxer) => program.feed().epoch(epoch).is_none_or(|epoch| muxer.enter(&epoch.formats)),
        }
    }
}

impl Sent {
    /// Counts a viewer until it is dropped. Bytes are those of `place`.
    pub(crate) fn new(metrics: Arc<HttpMetrics>, place: Option<PlaceBytes>) -> Self {
        Self { _viewer: metrics.stream_viewer(), metrics, place }
    }

    /// Counts a chunk.
    pub(super) fn count(&self, chunk: &Bytes) {
        self.metrics.sent(Kind::Stream, self.place.as_ref(), chunk.len() as u64);
    }
}

impl LongResponse {
    /// Sends what `viewing` gives in the container of `muxer`, until the stream ends or `stop` turns true.
    pub(crate) fn new(viewing: Viewing, mut muxer: Muxer, stop: watch::Receiver<bool>, sent: Sent) -> Self {
        muxer.expect(viewing.tempo());
        Self { epoch: None, viewing, muxer, ready: VecDeque::new(), is_over: false, stop, sent }
    }

    /// Notes the epoch of the next frame. Returns whether its media can follow in the same response.
    fn enter(&mut self, number: u32) -> bool {
        if self.epoch == Some(number) {
            return true;
        }
        self.epoch = Some(number);
        self.muxer.enter(self.viewing.program(), number)
    }

    /// Takes frames; `None` is the end of the stream. Frames that can't follow in the same response are the end too.
    fn take(&mut self, run: Option<Run>) {
        self.is_over = run.is_none();
        let mut packets = Vec::new();
        for frame in run.iter().flat_map(|run| run.iter()) {
            if !self.enter(frame.epoch) {
                self.is_over = true;
                break;
            }
            match &mut self.muxer {
                Muxer::Fragments(muxer) => self.ready.extend(muxer.push(frame).into_iter().flat_map(chunks)),
                Muxer::Transport(muxer) => muxer.push(frame, &mut packets),
            }
        }
        if self.is_over {
            match &mut self.muxer {
                Muxer::Fragments(muxer) => self.ready.extend(muxer.finish().into_iter().flat_map(chunks)),
                Muxer::Transport(muxer) => muxer.finish(&mut packets),
            }
        }
        if !packets.is_empty() {
            self.ready.push_back(packets.into());
        }
    }
}

impl ChunkStream for LongResponse {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Bytes>, BodyError>> {
        Box::pin(async {
            loop {
                if let Some(chunk) = self.ready.pop_front() {
                    self.sent.count(&chunk);
                    return Ok(Some(chunk));
                }
                if self.is_over {
                    return Ok(None);
                }
                if self.viewing.is_drained()
                    && let Some(first) = self.muxer.start()
                {
                    self.ready.extend(chunks(first));
                    continue;
                }
                let run = tokio::select! {
                    biased;
                    _ = self.stop.wait_for(|stop| *stop) => None,
                    run = self.viewing.next() => run.ok(),
                };
                self.take(run);
            }
        })
    }

    fn held_up(&mut self) {
        self.viewing.hold();
    }
}

/// The parts of a fragment, in the order of sending.
fn chunks(fragment: Fragment) -> impl Iterator<Item = Bytes> {
    fragment.init.into_iter().chain([fragment.head]).chain(fragment.frames)
}
