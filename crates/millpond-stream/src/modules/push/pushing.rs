//! A module that pushes: frames in, and a connection that it feeds.

use super::{
    KIND, PushCounts,
    datagrams::{DatagramError, DatagramWay},
    destination::PushDestination,
    rtsp::{RtspWay, RtspWayError},
    srt::{SrtWay, SrtWayError},
    whip::{WhipError, WhipWay},
};
use crate::{
    Counters, Run,
    graph::{Inputs, Module, ModuleError, Output},
    live::{FormatsChanged, Program},
    pushing::{PushError, RtmpPusher},
    reception::Upstream,
};
use futures_util::future::BoxFuture;
use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use tokio::time::timeout;

/// Time for which a destination may take nothing.
const STALL: Duration = Duration::from_secs(10);

/// An open connection to a destination.
pub(super) enum Way {
    Srt(Box<SrtWay>),
    Datagrams(Box<DatagramWay>),
    Rtsp(Box<RtspWay>),
    Rtmp(Box<RtmpPusher>),
    Whip(Box<WhipWay>),
}

/// Why a connection to a destination ends, or can't be opened.
#[derive(Debug, thiserror::Error)]
pub(super) enum WayError {
    #[error("a transport stream can't carry the tracks of this stream")]
    Unfit,
    #[error("no track of this stream can be sent by RTP")]
    NoPayloads,
    #[error(transparent)]
    Formats(#[from] FormatsChanged),
    #[error(transparent)]
    Srt(#[from] SrtWayError),
    #[error(transparent)]
    Datagrams(#[from] DatagramError),
    #[error(transparent)]
    Rtsp(#[from] RtspWayError),
    #[error(transparent)]
    Rtmp(#[from] PushError),
    #[error(transparent)]
    Whip(#[from] WhipError),
}

impl Way {
    /// Connects.
    ///
    /// # Errors
    /// The destination can't be reached, refuses, or can't carry the stream.
    pub(super) async fn open(
        destination: &PushDestination,
        Upstream { connector, web, .. }: &Upstream,
        program: &Program,
    ) -> Result<Self, ModuleError> {
        Ok(match destination {
            PushDestination::Srt(listener) => Self::Srt(Box::new(SrtWay::open(listener, program).await?)),
            PushDestination::Datagrams(target) => Self::Datagrams(Box::new(DatagramWay::open(target, program).await?)),
            PushDestination::Rtsp(server) => Self::Rtsp(Box::new(RtspWay::open(server, connector, program).await?)),
            PushDestination::Rtmp(server) => {
                Self::Rtmp(Box::new(RtmpPusher::connect(server, &**connector, program).await?))
            }
            PushDestination::Whip(endpoint) => Self::Whip(Box::new(WhipWay::open(endpoint, web, program).await?)),
        })
    }

    /// Sends a run of frames. Waits while the connection takes nothing.
    async fn send(&mut self, run: &Run, program: &Program) -> Result<(), WayError> {
        match self {
            Self::Srt(way) => way.send(run, program),
            Self::Datagrams(way) => way.send(run, program),
            Self::Rtsp(way) => way.send(run, program).await,
            Self::Rtmp(way) => Ok(way.send(run).await?),
            Self::Whip(way) => Ok(way.send(run)?),
        }
    }

    /// Serves the connection until it ends. Cancel safe.
    async fn serve(&mut self) -> WayError {
        match self {
            Self::Srt(way) => way.serve().await.into(),
            Self::Datagrams(way) => way.serve().await.into(),
            Self::Rtsp(way) => way.serve().await.into(),
            Self::Rtmp(way) => way.watch().await.into(),
            Self::Whip(way) => way.serve().await.into(),
        }
    }
}

/// A module that pushes.
pub(super) struct Pushing {
    program: Program,
    way: Way,
    label: String,
    counts: Arc<PushCounts>,
    counters: Arc<Counters>,
}

/// Counts a module while it runs.
struct Counted(Arc<Counters>);

impl Counted {
    fn new(counters: Arc<Counters>) -> Self {
        counters.pushes.fetch_add(1, Ordering::Relaxed);
        Self(counters)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.pushes.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Pushing {
    pub(super) fn new(
        program: Program,
        way: Way,
        (label, counts, counters): (String, Arc<PushCounts>, Arc<Counters>),
    ) -> Self {
        Self { program, way, label, counts, counters }
    }

    /// Pushes until the stream ends.
    ///
    /// # Errors
    /// The connection ends before.
    async fn push(&mut self, inputs: &mut Inputs) -> Result<(), ModuleError> {
        let Some(input) = inputs.first_mut() else { return Ok(()) };
        loop {
            let run = tokio::select! {
                biased;
                run = input.next() => run,
                error = self.way.serve() => return Err(error.into()),
            };
            let Ok(run) = run else { return Ok(()) };
            let sent = timeout(STALL, self.way.send(&run, &self.program)).await;
            sent.map_err(|_| format!("it took no bytes for {} s", STALL.as_secs()))??;
            let (frames, bytes) = (run.len() as u64, run.iter().map(|frame| frame.data.len() as u64).sum());
            self.counts.add(frames, bytes);
            self.counters.pushed_frames.fetch_add(frames, Ordering::Relaxed);
            self.counters.pushed_bytes.fetch_add(bytes, Ordering::Relaxed);
        }
    }
}

impl Module for Pushing {
    fn kind(&self) -> &'static str {
        KIND.name
    }

    fn run(mut self: Box<Self>, mut inputs: Inputs, _: Output) -> BoxFuture<'static, Result<(), ModuleError>> {
        Box::pin(async move {
            let _counted = Counted::new(self.counters.clone());
            let ended = self.push(&mut inputs).await;
            ended.map_err(|error| {
                self.counters.failed_pushes.fetch_add(1, Ordering::Relaxed);
                format!("{}: {error}", self.label).into()
            })
        })
    }
}
