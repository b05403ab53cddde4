//! Reception of an RTSP source.

use super::{
    SourceError, SourceErrorKind,
    assembly::Assembly,
    backoff::Backoff,
    connector::Connector,
    link::{Link, Stopwatch},
    session::{End, Session},
    source::{AfterEnd, RtspSource, SourceTransport},
    turns::Turns,
};
use crate::{
    graph::{Inputs, Module, ModuleError, Output},
    live::Reporter,
    modules::ModuleKind,
};
use futures_util::future::BoxFuture;
use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

pub(crate) const KIND: ModuleKind =
    ModuleKind { name: "reception", about: "receives frames from an RTSP source", inputs: 0, outputs: 1 };

/// Length of a session after which a loss is a new one: attempts begin with the shortest delay again.
const STEADY: Duration = Duration::from_secs(10);

/// Delay after a refused password: cameras lock accounts after some attempts.
const UNAUTHORIZED: Duration = Duration::from_secs(60);

/// Receives the frames of an RTSP source, and tells by a [`Reporter`] what becomes of it.
///
/// It connects again whenever the source is lost, with growing delays, until nobody takes its frames. Each session is an
/// epoch. Dropping its future tears the session down: a task of its own sends TEARDOWN, for 2 s at most.
#[derive(Debug)]
pub struct RtspReception {
    source: RtspSource,
    connector: Arc<dyn Connector>,
    reporter: Reporter,
    turns: Turns,
}

impl RtspReception {
    /// Creates a reception, which connects when it runs.
    #[must_use]
    pub fn new(source: RtspSource, connector: Arc<dyn Connector>, reporter: Reporter) -> Self {
        Self { source, connector, reporter, turns: Turns::default() }
    }

    /// Opens each session when it has a turn.
    pub(crate) fn with_turns(self, turns: Turns) -> Self {
        Self { turns, ..self }
    }

    /// Receives until nobody takes frames any more.
    async fn receive(&self, output: &Output) {
        let watch = Stopwatch::start();
        let began = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut assembly = Assembly::new(self.reporter.clone(), self.source.policies.after_loss, began);
        let mut transport = self.source.first_transport();
        let mut backoff = Backoff::new();
        loop {
            let turn = self.turns.take(&self.source.server()).await;
            let started = watch.now();
            let frames = assembly.frames();
            let end = match Link::new(&self.source, self.connector.clone(), watch) {
                Ok(link) => Session::new(&self.source, transport, &mut assembly, watch, (link, turn)).run(output).await,
                Err(error) => End::Lost(SourceError::of(&error, &self.source)),
            };
            let is_refused = matches!(&end, End::Lost(error) if error.kind == SourceErrorKind::Unauthorized);
            match end {
                End::Closed => return,
                End::Unheard => {
                    tracing::info!(source = %self.source, "no packet by UDP, so media uses the connection");
                    transport = SourceTransport::Tcp;
                    continue;
                }
                End::Lost(error) => {
                    self.lost(error, assembly.frames() > 0);
                    // A session that gave frames is followed by one attempt at least.
                    let is_gone = frames > 0 && assembly.frames() == frames;
                    if is_gone && self.source.policies.after_end == AfterEnd::Close {
                        return;
                    }
                }
            }
            if assembly.frames() > frames && watch.now() >= started + STEADY {
                backoff.succeeded();
            }
            let delay = if is_refused { UNAUTHORIZED } else { backoff.failed(fastrand::f64()) };
            tokio::time::sleep(delay).await;
            if matches!(output, Output::Fork(fork) if fork.is_closed()) {
                return;
            }
        }
    }

    fn lost(&self, error: SourceError, had_frames: bool) {
        if had_frames || self.source.policies.after_end == AfterEnd::Reconnect {
            tracing::warn!(source = %self.source, %error, "source lost");
        } else {
            // The path is whatever a client asked for.
            tracing::debug!(source = %self.source, %error, "no such source");
        }
        let error = Arc::new(error);
        if had_frames { self.reporter.lost(error) } else { self.reporter.failed(error) }
    }
}

impl Module for RtspReception {
    fn kind(&self) -> &'static str {
        KIND.name
    }

    fn run(self: Box<Self>, _: Inputs, output: Output) -> BoxFuture<'static, Result<(), ModuleError>> {
        Box::pin(async move {
            self.receive(&output).await;
            if let Output::Fork(fork) = &output {
                fork.close();
            }
            Ok(())
        })
    }
}
