//! Reception of an MPEG transport stream (ISO/IEC 13818-1) by UDP or RTP (RFC 2250).
//!
//! All programmes of a [`TransportSource`] share its sockets. Each one that is watched has a [`TransportReception`].

mod datagrams;
mod elementary;
mod faults;
mod inlet;
mod legs;
mod programme;
mod senders;
mod socket;
mod source;
#[cfg(test)]
mod tests;

use crate::{
    graph::{Inputs, Module, ModuleError, Output},
    kind::ModuleKind,
    reception::{
        assembly::{Assembly, COUNT},
        attendance::Rhythm,
        backoff::Backoff,
        rtsp::link::Stopwatch,
    },
    report::Reporter,
    source_health::{SourceError, SourceErrorKind},
};
use datagrams::Piece;
pub(super) use elementary::{Elementary, Found};
pub(super) use faults::Faults;
use futures_util::future::BoxFuture;
use inlet::Subscription;
pub(super) use programme::ProgrammeFrames;
pub(crate) use socket::Interface;
pub use source::{TransportSource, TransportUrlError};
use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

pub(crate) const KIND: ModuleKind = ModuleKind {
    name: "transport",
    about: "receives frames of a programme of an MPEG transport stream",
    inputs: 0,
    outputs: 1,
};

/// Silence after which a source is lost.
const STALL: Duration = Duration::from_secs(5);
/// Time between two looks at the clock.
const CLOCK: Duration = Duration::from_secs(5);

/// Receives the frames of a programme, and tells by a [`Reporter`] what becomes of its source.
///
/// It listens until no module takes its frames. A source that was silent for 5 s is lost; the frames after that are a new epoch.
#[derive(Debug)]
pub struct TransportReception {
    source: TransportSource,
    reporter: Reporter,
}

/// Nobody takes frames any more.
struct Closed;

impl TransportReception {
    /// Creates a reception, which listens when it runs.
    #[must_use]
    pub fn new(source: TransportSource, reporter: Reporter) -> Self {
        Self { source, reporter }
    }

    /// Receives until nobody takes frames any more.
    async fn receive(&self, output: &Output) -> Result<(), Closed> {
        let watch = Stopwatch::start();
        let began = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let (mut assembly, mut backoff) = (Assembly::of_transport(self.reporter.clone(), began), Backoff::new());
        let subscription = loop {
            match self.source.inlet().subscribe() {
                Ok(subscription) => break subscription,
                Err(error) => self.lost(SourceErrorKind::Unreachable, &format!("socket: {error}"), &assembly),
            }
            tokio::time::sleep(backoff.failed(fastrand::f64())).await;
            if matches!(output, Output::Fork(fork) if fork.is_closed()) {
                return Err(Closed);
            }
        };
        let mut faults = Faults::default();
        loop {
            let sitting = Sitting::new(self, &subscription, watch);
            sitting.run(&mut assembly, &mut faults, output).await?;
        }
    }

    fn lost(&self, kind: SourceErrorKind, words: &str, assembly: &Assembly) {
        let error = SourceError { kind, address: self.source.to_string(), words: words.to_owned() };
        tracing::warn!(source = %self.source, %error, "source lost");
        let error = Arc::new(error);
        if assembly.frames() > 0 { self.reporter.lost(error) } else { self.reporter.failed(error) }
    }
}

impl Module for TransportReception {
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

/// The time from one loss of a source to the next.
struct Sitting<'a> {
    reception: &'a TransportReception,
    subscription: &'a Subscription,
    watch: Stopwatch,
    programme: ProgrammeFrames,
    /// Time at which it began.
    began: Duration,
    /// Whether it was told that there are no frames.
    has_told: bool,
    /// Time of the next look at the clock.
    clock: Duration,
    /// Time from which counts are told again.
    counts: Duration,
}

impl<'a> Sitting<'a> {
    fn new(reception: &'a TransportReception, subscription: &'a Subscription, watch: Stopwatch) -> Self {
        let TransportSource { timeout, .. } = reception.source;
        let began = watch.now();
        let programme = ProgrammeFrames::new(reception.source.wanted(), timeout);
        Self { reception, subscription, watch, programme, began, has_told: false, clock: began + CLOCK, counts: began }
    }

    /// Receives until the source is lost.
    async fn run(mut self, assembly: &mut Assembly, faults: &mut Faults, output: &Output) -> Result<(), Closed> {
        // What was told of a loss is not told again.
        self.has_told = assembly.frames() > 0;
        loop {
            tokio::select! {
                pieces = self.subscription.next() => {
                    let now = self.watch.now();
                    for piece in pieces {
                        match piece {
                            Piece::Bytes(bytes) => self.programme.push(&bytes, now, assembly, faults),
                            Piece::Gap(packets) => self.programme.lose(packets),
                            Piece::Anew => self.begin_anew(now, assembly),
                        }
                    }
                }
                () = self.watch.sleep_until(self.wake(assembly)) => {}
            }
            let now = self.watch.now();
            self.programme.tick(now, assembly);
            assembly.tick(now);
            if self.silent().is_some_and(|silent| now >= silent) {
                assembly.flush();
            }
            if let Some(run) = assembly.take_run() {
                output.send(run).await.map_err(|_| Closed)?;
            }
            self.look(now, assembly, faults);
            if self.check(now, assembly) {
                assembly.end(self.programme.counts());
                return Ok(());
            }
        }
    }

    /// Takes the stream of another sender, whose tables, counters and clock have nothing to do with those before.
    fn begin_anew(&mut self, now: Duration, assembly: &mut Assembly) {
        assembly.end(self.programme.counts());
        let TransportReception { source, .. } = self.reception;
        tracing::info!(%source, "another sender");
        self.programme = ProgrammeFrames::new(source.wanted(), source.timeout);
        (self.began, self.has_told) = (now, false);
    }

    /// Tells damage and counts, and looks at the clock.
    fn look(&mut self, now: Duration, assembly: &mut Assembly, faults: &mut Faults) {
        faults.dropped(self.subscription.dropped());
        if let Some((count, last)) = faults.due(now) {
            tracing::warn!(source = %self.reception.source, count, last, "damage in a transport stream");
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

    /// Tells why there are no frames. Returns whether the source is lost.
    fn check(&mut self, now: Duration, assembly: &Assembly) -> bool {
        let problem = self.programme.problem().filter(|_| !self.has_told);
        if let Some((kind, words)) = problem {
            self.reception.lost(*kind, words, assembly);
            self.has_told = true;
            return false;
        }
        if self.silent().is_none_or(|silent| now < silent) {
            return false;
        }
        let words = match self.programme.rhythm() {
            None => format!("{} for {} s", self.programme.missing(), now.saturating_sub(self.began).as_secs()),
            Some(Rhythm { last, .. }) => format!("no frame for {:.1} s", now.saturating_sub(last).as_secs_f64()),
        };
        self.reception.lost(SourceErrorKind::TimedOut, &words, assembly);
        self.has_told = true;
        self.programme.rhythm().is_some()
    }

    /// Time at which a source that remains silent is lost; `None` where that was told.
    fn silent(&self) -> Option<Duration> {
        match self.programme.rhythm() {
            Some(Rhythm { last, longest }) => Some(last + STALL.max(3 * longest)),
            None => (!self.has_told).then_some(self.began + self.reception.source.timeout),
        }
    }

    fn wake(&self, assembly: &Assembly) -> Option<Duration> {
        [Some(self.clock), self.silent(), self.programme.wake(), assembly.wake()].into_iter().flatten().min()
    }
}
