//! Reception of a stream that a WHEP endpoint sends by WebRTC.
//!
//! The server is called as by WHIP ([`calling_webrtc`](crate::calling_webrtc)). [`AnsweredTracks`] is what it sends, and a [`Sitting`] is
//! one connection: packets in, frames and requests for lost packets and key frames out.

mod answered_tracks;
mod error;
mod sitting;
mod source;

use crate::{
    calling_webrtc::{Call, CallPurpose},
    graph::{Inputs, Module, ModuleError, Output},
    kind::ModuleKind,
    reception::{assembly::Assembly, backoff::Backoff, rtsp::link::Stopwatch, source::AfterLoss},
    report::Reporter,
    source_health::SourceError,
    web::Web,
};
use answered_tracks::AnsweredTracks;
use error::{Loss, WhepError};
use futures_util::future::BoxFuture;
use sitting::Sitting;
pub use source::WhepSource;
use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

pub(crate) const KIND: ModuleKind =
    ModuleKind { name: "whep", about: "receives frames that a WHEP endpoint sends by WebRTC", inputs: 0, outputs: 1 };

/// Longest time for which a server may ask to be left alone.
const LONGEST_RETRY: Duration = Duration::from_secs(60);

/// Plays a stream of a server, and tells by a [`Reporter`] what becomes of its source.
///
/// It calls again until no module takes its frames. The frames of another connection are a new epoch.
#[derive(Debug)]
pub struct WhepReception {
    source: WhepSource,
    web: Arc<dyn Web>,
    reporter: Reporter,
}

/// Nobody takes frames any more.
struct Closed;

impl WhepReception {
    /// Creates a reception, which sends its offer by `web` when it runs.
    #[must_use]
    pub fn new(source: WhepSource, web: Arc<dyn Web>, reporter: Reporter) -> Self {
        Self { source, web, reporter }
    }

    /// Receives until nobody takes frames any more.
    async fn receive(&self, output: &Output) -> Result<(), Closed> {
        let watch = Stopwatch::start();
        let began = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut assembly = Assembly::new(self.reporter.clone(), AfterLoss::Pass, began);
        let mut backoff = Backoff::new();
        loop {
            self.reporter.asks(self.source.to_string());
            let called = tokio::select! {
                called = self.call() => called,
                () = closed(output) => return Err(Closed),
            };
            let opened = called.map_err(Loss::from);
            let loss = match opened.and_then(|called| Sitting::new(&self.source, called, &mut assembly, watch)) {
                Ok(mut sitting) => {
                    let loss = sitting.run(&mut assembly, output).await?;
                    assembly.end(sitting.counts());
                    if sitting.has_given() {
                        backoff.succeeded();
                    }
                    loss
                }
                Err(loss) => loss,
            };
            let pause = loss.retry_after.map_or(Duration::ZERO, |after| after.min(LONGEST_RETRY));
            self.lost(loss, &assembly);
            tokio::select! {
                () = tokio::time::sleep(backoff.failed(fastrand::f64()).max(pause)) => {}
                () = closed(output) => return Err(Closed),
            }
        }
    }

    /// Sends an offer, and connects to the server that answers it.
    async fn call(&self) -> Result<sitting::Opened, WhepError> {
        let WhepSource { endpoint, timeout } = &self.source;
        let call = Call { endpoint, web: &self.web, purpose: CallPurpose::Play, patience: *timeout };
        call.make(&answered_tracks::offered(), AnsweredTracks::of).await
    }

    fn lost(&self, loss: Loss, assembly: &Assembly) {
        let error = SourceError { kind: loss.kind, address: self.source.to_string(), words: loss.words };
        tracing::warn!(source = %self.source, %error, "source lost");
        let error = Arc::new(error);
        if assembly.frames() > 0 { self.reporter.lost(error) } else { self.reporter.failed(error) }
    }
}

/// Waits until nobody takes frames any more. Cancel safe.
async fn closed(output: &Output) {
    match output {
        Output::Fork(fork) => fork.closed().await,
        _ => std::future::pending().await,
    }
}

impl Module for WhepReception {
    fn kind(&self) -> &'static str {
        KIND.name
    }

    fn run(self: Box<Self>, _: Inputs, output: Output) -> BoxFuture<'static, Result<(), ModuleError>> {
        Box::pin(async move {
            let (Ok(()) | Err(Closed)) = self.receive(&output).await;
            if let Output::Fork(fork) = &output {
                fork.close();
            }
            Ok(())
        })
    }
}
