//! Reception of an RTSP source.

pub(super) mod connector;
mod key_frames;
pub(super) mod link;
mod npt_clock;
mod pace;
pub(super) mod playback;
pub(super) mod played_track;
mod session;
mod teardown;
pub(super) mod track;
pub(super) mod tracks;
pub(super) mod turns;
pub(super) mod wire;

use crate::{
    graph::{Inputs, Module, ModuleError, Output},
    kind::ModuleKind,
    reception::{
        Alternatives,
        assembly::Assembly,
        balance::{Balance, Choice, Servers},
        rtsp::{
            connector::{Connector, Relay},
            link::{Link, Stopwatch},
            session::{End, Session},
            turns::Turns,
        },
        source::{AfterEnd, RtspSource, SourceTransport},
    },
    report::Reporter,
    source_health::{SourceError, SourceErrorKind},
};
use futures_util::future::BoxFuture;
use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::time::{Instant, sleep_until};

pub(crate) const KIND: ModuleKind =
    ModuleKind { name: "reception", about: "receives frames from an RTSP source", inputs: 0, outputs: 1 };

/// Length of a session after which a loss is a new one: attempts begin with the shortest delay again.
const STEADY: Duration = Duration::from_secs(10);

/// Pause before another server is looked up again.
const RELAY_PAUSE: Duration = Duration::from_millis(300);

/// Time without frames of other servers after which the source itself is asked. Two nodes with different views may each take the other one
/// for the owner.
const RELAY_PATIENCE: Duration = Duration::from_secs(20);

/// Receives the frames of an RTSP source, and tells by a [`Reporter`] what becomes of it.
///
/// It connects again whenever the source is lost, with growing delays, until no module takes its frames. Where several servers
/// have the source, another one is tried at once. Each session is an epoch. Dropping its future tears the session down: a task of
/// its own sends TEARDOWN, for 2 s at most.
#[derive(Debug)]
pub struct RtspReception {
    sources: Alternatives,
    connector: Arc<dyn Connector>,
    reporter: Reporter,
    turns: Turns,
    balance: Balance,
    /// Other servers that may receive the stream of a path already.
    relay: Option<(Arc<dyn Relay>, Arc<str>)>,
}

impl RtspReception {
    /// Creates a reception, which connects when it runs.
    #[must_use]
    pub fn new(sources: impl Into<Alternatives>, connector: Arc<dyn Connector>, reporter: Reporter) -> Self {
        let (turns, balance) = (Turns::default(), Balance::default());
        Self { sources: sources.into(), connector, reporter, turns, balance, relay: None }
    }

    /// Opens each session when it has a turn, on a server that `balance` favours.
    pub(crate) fn with_turns(self, turns: Turns, balance: Balance) -> Self {
        Self { turns, balance, ..self }
    }

    /// Asks another server, where `relay` knows one that receives the stream of a path already.
    pub(crate) fn with_relay(self, relay: Option<(Arc<dyn Relay>, Arc<str>)>) -> Self {
        Self { relay, ..self }
    }

    /// The stream at another server that receives it already.
    async fn relayed(&self) -> Option<RtspSource> {
        let (relay, path) = self.relay.as_ref()?;
        let mut source = relay.source(path).await?;
        source.policies.stored = self.sources.first().policies.stored;
        Some(source)
    }

    /// Receives until nobody takes frames any more.
    async fn receive(&self, output: &Output) {
        let watch = Stopwatch::start();
        let began = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let policies = self.sources.first().policies;
        let mut assembly = Assembly::new(self.reporter.clone(), policies.after_loss, began);
        let mut servers = Servers::new(&self.sources, self.balance.clone(), Instant::now());
        let mut is_relayed = true;
        // Since when other servers give no frames.
        let mut fruitless: Option<Instant> = None;
        loop {
            let is_patient = fruitless.is_none_or(|since| since.elapsed() < RELAY_PATIENCE);
            if is_relayed
                && is_patient
                && let Some(source) = self.relayed().await
            {
                let (frames, asked) = (assembly.frames(), Instant::now());
                match self.session((&source, source.first_transport()), &mut assembly, watch, output).await {
                    End::Closed => return,
                    End::Unheard => {}
                    // That server has rules of access which this one can't satisfy.
                    End::Lost(error) if error.kind == SourceErrorKind::Unauthorized => {
                        is_relayed = false;
                        continue;
                    }
                    End::Lost(error) if error.kind == SourceErrorKind::StoredTitle => {
                        return self.reporter.failed(Arc::new(error));
                    }
                    End::Lost(error) => self.relay_lost(error, assembly.frames() > frames),
                }
                fruitless = if assembly.frames() > frames { None } else { fruitless.or(Some(asked)) };
                sleep_until(Instant::now() + RELAY_PAUSE).await;
                if matches!(output, Output::Fork(fork) if fork.is_closed()) {
                    return;
                }
                continue;
            }
            let (number, load) = match servers.choose(Instant::now()) {
                Choice::Now(number, load) => (number, load),
                Choice::Later(at) => {
                    sleep_until(at).await;
                    if matches!(output, Output::Fork(fork) if fork.is_closed()) {
                        return;
                    }
                    continue;
                }
            };
            let candidate = servers.get(number);
            let (started, frames) = (watch.now(), assembly.frames());
            let end = self.session((&candidate.source, candidate.transport), &mut assembly, watch, output).await;
            drop(load);
            if assembly.frames() > frames && watch.now() >= started + STEADY {
                servers.succeeded(number);
            }
            let error = match end {
                End::Closed => return,
                End::Unheard => {
                    let candidate = servers.get(number);
                    tracing::info!(source = %candidate.source, "no packet by UDP, so media uses the connection");
                    candidate.transport = SourceTransport::Tcp;
                    continue;
                }
                // Asked again, it would answer the same.
                End::Lost(error) if error.kind == SourceErrorKind::StoredTitle => {
                    return self.reporter.failed(Arc::new(error));
                }
                End::Lost(error) => error,
            };
            fruitless = None;
            servers.failed(number, error.kind, Instant::now(), fastrand::f64());
            self.lost(error, assembly.frames() > 0, &servers);
            // A session that gave frames is followed by one attempt at least.
            let is_gone = frames > 0 && assembly.frames() == frames;
            if is_gone && policies.after_end == AfterEnd::Close {
                return;
            }
        }
    }

    /// Receives one session with a server.
    async fn session(
        &self,
        (source, transport): (&RtspSource, SourceTransport),
        assembly: &mut Assembly,
        watch: Stopwatch,
        output: &Output,
    ) -> End {
        let turn = self.turns.take(&source.server()).await;
        self.reporter.asks(source.to_string());
        match Link::new(source, self.connector.clone(), watch) {
            Ok(link) => Session::new(source, transport, assembly, watch, (link, turn)).run(output).await,
            Err(error) => End::Lost(SourceError::of(&error, source)),
        }
    }

    /// Notes that another server does not give the stream. It is looked up again.
    fn relay_lost(&self, error: SourceError, had_frames: bool) {
        tracing::info!(source = %error.address, %error, "the server that receives the stream does not give it");
        if had_frames {
            self.reporter.lost(Arc::new(error));
        } else {
            self.reporter.failed(Arc::new(error));
        }
    }

    fn lost(&self, error: SourceError, had_frames: bool, servers: &Servers) {
        let source = &error.address;
        if had_frames || self.sources.first().policies.after_end == AfterEnd::Reconnect {
            tracing::warn!(source, %error, "source lost");
        } else {
            // The path is whatever a client asked for.
            tracing::debug!(source, %error, "no such source");
        }
        if had_frames {
            self.reporter.lost(Arc::new(error));
        } else if !servers.has_another(Instant::now()) {
            // Viewers wait for the servers that were not tried.
            self.reporter.failed(Arc::new(error));
        }
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
