//! Reception of streams whose segments a web server lists: HLS and DASH.
//!
//! A [`Rendition`] follows the list of its protocol ([`hls`], [`dash`]) and requests its pieces. A [`Reader`](reader::Reader) makes frames
//! of them, which arrive in bursts. The [`Pacer`](pacer::Pacer) lets them leave at the pace of their times, and the
//! [`Lineup`](lineup::Lineup) gives lanes their tracks.

mod dash;
mod event;
mod hls;
mod lineup;
mod media_time;
mod pacer;
mod reader;
mod rendition;
mod segment;
mod session;
mod source;

use crate::{
    graph::{Inputs, Module, ModuleError, Output},
    kind::ModuleKind,
    reception::{assembly::Assembly, backoff::Backoff, fetching::Fetcher, rtsp::link::Stopwatch},
    report::Reporter,
    source_health::SourceError,
    web::Web,
};
use dash::DashRendition;
use futures_util::future::BoxFuture;
use hls::HlsRendition;
use rendition::Rendition;
use session::{End, Session};
pub use source::{PulledProtocol, PulledSource};
use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

pub(crate) const HLS: ModuleKind =
    ModuleKind { name: "hls", about: "receives frames of an HLS stream from a web server", inputs: 0, outputs: 1 };
pub(crate) const DASH: ModuleKind =
    ModuleKind { name: "dash", about: "receives frames of a DASH stream from a web server", inputs: 0, outputs: 1 };

/// Length of a session after which a loss is a new one: attempts begin with the shortest delay again.
const STEADY: Duration = Duration::from_secs(10);

/// Receives the frames of an HLS or DASH stream, and tells by a [`Reporter`] what becomes of its source.
///
/// It opens the source again whenever it is lost, with growing delays, until no module takes its frames. Each session, and each
/// discontinuity, is an epoch.
#[derive(Debug)]
pub struct PulledReception {
    source: PulledSource,
    fetcher: Fetcher,
    reporter: Reporter,
}

impl PulledReception {
    /// Creates a reception, which sends requests by `web` when it runs.
    #[must_use]
    pub fn new(source: PulledSource, web: Arc<dyn Web>, reporter: Reporter) -> Self {
        let fetcher = Fetcher::new(web, source.url().clone(), source.hosts.clone(), source.timeout);
        Self { source, fetcher, reporter }
    }

    /// Receives until nobody takes frames any more.
    async fn receive<R: Rendition>(&self, output: &Output) {
        let watch = Stopwatch::start();
        let began = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let (mut assembly, mut backoff) = (Assembly::of_transport(self.reporter.clone(), began), Backoff::new());
        let mut before: Vec<R> = Vec::new();
        loop {
            let (started, frames) = (watch.now(), assembly.frames());
            let end = self.session(&mut before, &mut assembly, watch, output).await;
            let End::Lost(error) = end else { return };
            if assembly.frames() > frames && watch.now() >= started + STEADY {
                backoff.succeeded();
            }
            self.lost(error, &assembly);
            tokio::time::sleep(backoff.failed(fastrand::f64())).await;
            if matches!(output, Output::Fork(fork) if fork.is_closed()) {
                return;
            }
        }
    }

    /// Receives one session. Renditions go on from where they were `before`.
    async fn session<R: Rendition>(
        &self,
        before: &mut Vec<R>,
        assembly: &mut Assembly,
        watch: Stopwatch,
        output: &Output,
    ) -> End {
        self.reporter.asks(self.source.to_string());
        let renditions = match R::open(&self.source, &self.fetcher, watch).await {
            Ok(renditions) => renditions,
            Err(error) => return End::Lost(error),
        };
        let mut known = std::mem::take(before).into_iter();
        let following = |new: R| match known.next() {
            Some(known) => new.following(known),
            None => new,
        };
        *before = renditions.into_iter().map(following).collect();
        Session::new(&self.source, assembly, watch, before.len()).run(before, &self.fetcher, output).await
    }

    fn lost(&self, error: SourceError, assembly: &Assembly) {
        tracing::warn!(source = %self.source, %error, "source lost");
        let error = Arc::new(error);
        if assembly.frames() > 0 { self.reporter.lost(error) } else { self.reporter.failed(error) }
    }
}

impl Module for PulledReception {
    fn kind(&self) -> &'static str {
        match self.source.protocol {
            PulledProtocol::Hls => HLS.name,
            PulledProtocol::Dash => DASH.name,
        }
    }

    fn run(self: Box<Self>, _: Inputs, output: Output) -> BoxFuture<'static, Result<(), ModuleError>> {
        Box::pin(async move {
            match self.source.protocol {
                PulledProtocol::Hls => self.receive::<HlsRendition>(&output).await,
                PulledProtocol::Dash => self.receive::<DashRendition>(&output).await,
            }
            if let Output::Fork(fork) = &output {
                fork.close();
            }
            Ok(())
        })
    }
}
