//! Reception of an MPEG transport stream from an SRT listener that is called.

mod link;
mod source;

use crate::{
    graph::{Inputs, Module, ModuleError, Output},
    kind::ModuleKind,
    reception::{
        assembly::{Assembly, COUNT},
        attendance::Rhythm,
        backoff::Backoff,
        rtsp::link::Stopwatch,
        transport::{Faults, ProgrammeFrames},
    },
    report::Reporter,
    source_health::{SourceError, SourceErrorKind},
};
use futures_util::future::BoxFuture;
pub(crate) use link::{Link, LinkError};
use millpond_srt::SrtReceived;
pub use source::{SrtSource, SrtUrlError};
use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

pub(crate) const KIND: ModuleKind =
    ModuleKind { name: "srt", about: "receives frames of a programme from an SRT listener", inputs: 0, outputs: 1 };

/// Silence of frames after which a source is lost.
const STALL: Duration = Duration::from_secs(5);
/// Time between two looks at the clock.
const CLOCK: Duration = Duration::from_secs(5);
/// Transport packets of a payload: what one that is lost has had.
const PACKETS: u64 = 7;

/// Calls a listener, receives the frames of a programme, and tells by a [`Reporter`] what becomes of its source.
///
/// It calls again until no module takes its frames. The frames of another connection are a new epoch.
#[derive(Debug)]
pub struct SrtReception {
    source: SrtSource,
    reporter: Reporter,
}

/// Nobody takes frames any more.
struct Closed;

impl SrtReception {
    /// Creates a reception, which calls when it runs.
    #[must_use]
    pub fn new(source: SrtSource, reporter: Reporter) -> Self {
        Self { source, reporter }
    }

    /// Receives until nobody takes frames any more.
    async fn receive(&self, output: &Output) -> Result<(), Closed> {
        let watch = Stopwatch::start();
        let began = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let (mut assembly, mut backoff) = (Assembly::of_transport(self.reporter.clone(), began), Backoff::new());
        let mut faults = Faults::default();
        loop {
            match Link::call(&self.source, watch).await {
                Ok(link) => {
                    let mut sitting = Sitting::new(&self.source, link, watch);
                    let (kind, words) = sitting.run(&mut assembly, &mut faults, output).await?;
                    assembly.end(sitting.programme.counts());
                    if sitting.programme.rhythm().is_some() {
                        backoff.succeeded();
                    }
                    self.lost(kind, words, &assembly);
                }
                Err(error) => self.lost(error.kind(), error.to_string(), &assembly),
            }
            tokio::time::sleep(backoff.failed(fastrand::f64())).await;
            if matches!(output, Output::Fork(fork) if fork.is_closed()) {
                return Err(Closed);
            }
        }
    }

    fn lost(&self, kind: SourceErrorKind, words: String, assembly: &Assembly) {
        let error = SourceError { kind, address: self.source.to_string(), words };
        tracing::warn!(source = %self.source, %error, "source lost");
        let error = Arc::new(error);
        if assembly.frames() > 0 { self.reporter.lost(error) } else { self.reporter.failed(error) }
    }
}

impl Module for SrtReception {
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

/// One connection.
struct Sitting<'a> {
    source: &'a SrtSource,
    link: Link,
    watch: Stopwatch,
    programme: ProgrammeFrames,
    began: Duration,
    /// Time of the next look at the clock.
    clock: Duration,
    /// Time from which counts are told again.
    counts: Duration,
}

impl<'a> Sitting<'a> {
    fn new(source: &'a SrtSource, link: Link, watch: Stopwatch) -> Self {
        let began = watch.now();
        let programme = ProgrammeFrames::new(source.wanted(), source.timeout);
        Self { source, link, watch, programme, began, clock: began, counts: began }
    }

    /// Receives until the source is lost. Returns why.
    async fn run(
        &mut self,
        assembly: &mut Assembly,
        faults: &mut Faults,
        output: &Output,
    ) -> Result<(SourceErrorKind, String), Closed> {
        loop {
            let stepped = self.step(assembly).await;
            let now = self.watch.now();
            while let Some(received) = self.link.deliver() {
                match received {
                    SrtReceived::Payload(bytes) => self.programme.push(&bytes, now, assembly, faults),
                    SrtReceived::Lost(payloads) => self.programme.lose(u64::from(payloads) * PACKETS),
                }
            }
            self.programme.tick(now, assembly);
            assembly.tick(now);
            let end = match stepped {
                Err(error) => Some((error.kind(), error.to_string())),
                Ok(()) => self.problem(now),
            };
            if end.is_some() {
                assembly.flush();
            }
            if let Some(run) = assembly.take_run() {
                output.send(run).await.map_err(|_| Closed)?;
            }
            if matches!(output, Output::Fork(fork) if fork.is_closed()) {
                return Err(Closed);
            }
            self.look(now, assembly, faults);
            if let Some(end) = end {
                return Ok(end);
            }
        }
    }

    /// Sends what is to be sent, and waits until something has arrived or is due.
    async fn step(&mut self, assembly: &Assembly) -> Result<(), LinkError> {
        self.link.advance()?;
        let wake = [Some(self.clock), Some(self.silent()), self.programme.wake(), assembly.wake()];
        let wake = wake.into_iter().flatten().min();
        tokio::select! {
            waited = self.link.wait() => waited,
            () = self.watch.sleep_until(wake) => Ok(()),
        }
    }

    /// Time at which a source that gives no frame is lost.
    fn silent(&self) -> Duration {
        match self.programme.rhythm() {
            Some(Rhythm { last, longest }) => last + STALL.max(3 * longest),
            None => self.began + self.source.timeout,
        }
    }

    /// Why there are no frames, or no more.
    fn problem(&self, now: Duration) -> Option<(SourceErrorKind, String)> {
        if let Some((kind, words)) = self.programme.problem() {
            return Some((*kind, words.clone()));
        }
        if now < self.silent() {
            return None;
        }
        let words = match self.programme.rhythm() {
            None => format!("{} for {} s", self.programme.missing(), now.saturating_sub(self.began).as_secs()),
            Some(Rhythm { last, .. }) => format!("no frame for {:.1} s", now.saturating_sub(last).as_secs_f64()),
        };
        Some((SourceErrorKind::TimedOut, words))
    }

    /// Tells damage and counts, and looks at the clock.
    fn look(&mut self, now: Duration, assembly: &mut Assembly, faults: &mut Faults) {
        if let Some((count, last)) = faults.due(now) {
            tracing::warn!(source = %self.source, count, last, "damage in a transport stream");
        }
        if now >= self.counts {
            self.counts = now + COUNT;
            assembly.count(self.programme.counts());
        }
        if now >= self.clock {
            self.clock = now + CLOCK;
            if let Ok(unix) = SystemTime::now().duration_since(UNIX_EPOCH) {
                assembly.set_clock(unix, now);
            }
        }
    }
}
