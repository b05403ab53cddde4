//! Reception of a stream that an RTMP server sends.

mod source;

use crate::{
    graph::{Inputs, Module, ModuleError, Output},
    kind::ModuleKind,
    reception::{
        Connector,
        assembly::{Assembly, COUNT},
        attendance::Rhythm,
        backoff::Backoff,
        flv::FlvFrames,
        rtsp::{link::Stopwatch, wire::Wire},
        source::AfterLoss,
        transport::Faults,
    },
    report::Reporter,
    source_health::{SourceError, SourceErrorKind},
};
use futures_util::future::BoxFuture;
use millpond_rtmp::{ClientEvent, RtmpClient, RtmpError, RtmpPurpose};
pub use source::RtmpSource;
pub(crate) use source::endpoint;
use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::time::timeout;

pub(crate) const KIND: ModuleKind =
    ModuleKind { name: "rtmp", about: "receives frames that an RTMP server sends", inputs: 0, outputs: 1 };

/// Silence of frames after which a source is lost.
const STALL: Duration = Duration::from_secs(5);
/// Time between two looks at the clock.
const CLOCK: Duration = Duration::from_secs(5);

/// Plays a stream of a server, and tells by a [`Reporter`] what becomes of its source.
///
/// It connects again until no module takes its frames. The frames of another connection are a new epoch.
#[derive(Debug)]
pub struct RtmpReception {
    source: RtmpSource,
    connector: Arc<dyn Connector>,
    reporter: Reporter,
}

/// The end of a session.
enum End {
    /// Nobody takes frames any more.
    Closed,
    /// The source is lost.
    Lost(SourceError),
}

impl RtmpReception {
    /// Creates a reception, which connects by `connector` when it runs.
    #[must_use]
    pub fn new(source: RtmpSource, connector: Arc<dyn Connector>, reporter: Reporter) -> Self {
        Self { source, connector, reporter }
    }

    /// Receives until nobody takes frames any more.
    async fn receive(&self, output: &Output) {
        let watch = Stopwatch::start();
        let began = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut assembly = Assembly::new(self.reporter.clone(), AfterLoss::Pass, began);
        assembly.share_clock(true);
        let mut backoff = Backoff::new();
        loop {
            self.reporter.asks(self.source.to_string());
            let mut sitting = Sitting::new(self, watch);
            let end = sitting.run(&mut assembly, output).await;
            assembly.end(sitting.frames.counts());
            let End::Lost(error) = end else { return };
            if sitting.frames.rhythm().is_some() {
                backoff.succeeded();
            }
            tracing::warn!(source = %self.source, %error, "source lost");
            let error = Arc::new(error);
            if assembly.frames() > 0 {
                self.reporter.lost(error)
            } else {
                self.reporter.failed(error)
            }
            tokio::time::sleep(backoff.failed(fastrand::f64())).await;
            if matches!(output, Output::Fork(fork) if fork.is_closed()) {
                return;
            }
        }
    }
}

impl Module for RtmpReception {
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

/// One connection.
struct Sitting<'a> {
    reception: &'a RtmpReception,
    client: RtmpClient,
    frames: FlvFrames,
    faults: Faults,
    watch: Stopwatch,
    /// Time from which frames are waited for: that of the last answer before the first frame.
    since: Duration,
    /// Time of the next look at the clock.
    clock: Duration,
    /// Time from which counts are told again.
    counts: Duration,
}

impl<'a> Sitting<'a> {
    fn new(reception: &'a RtmpReception, watch: Stopwatch) -> Self {
        let now = watch.now();
        let client = RtmpClient::new(reception.source.url.clone(), RtmpPurpose::Play);
        let (frames, faults) = (FlvFrames::new(reception.source.to_string()), Faults::default());
        Self { reception, client, frames, faults, watch, since: now, clock: now, counts: now }
    }

    /// Connects, and receives until the source is lost.
    async fn run(&mut self, assembly: &mut Assembly, output: &Output) -> End {
        let endpoint = endpoint(&self.reception.source.url);
        let connected = timeout(self.reception.source.timeout, self.reception.connector.connect(&endpoint)).await;
        let connection = match connected {
            Ok(Ok(connection)) => connection,
            Ok(Err(error)) => return self.lost(SourceErrorKind::Unreachable, error.to_string()),
            Err(_) => return self.lost(SourceErrorKind::TimedOut, "no connection in time".to_owned()),
        };
        self.since = self.watch.now();
        let mut wire = Wire::new(connection);
        let end = self.receive(&mut wire, assembly, output).await;
        self.client.finish();
        wire.send(&self.client.take_output());
        wire.write_now();
        assembly.flush();
        if let (End::Lost(_), Some(run)) = (&end, assembly.take_run()) {
            // It is the last one of the session.
            let _ = output.send(run).await;
        }
        end
    }

    async fn receive(&mut self, wire: &mut Wire, assembly: &mut Assembly, output: &Output) -> End {
        loop {
            let bytes = self.client.take_output();
            if !bytes.is_empty() {
                wire.send(&bytes);
            }
            let wake = [Some(self.clock), Some(self.silent()), self.frames.wake(), assembly.wake()];
            let read = tokio::select! {
                read = wire.exchange() => read,
                () = self.watch.sleep_until(wake.into_iter().flatten().min()) => Ok(()),
            };
            let now = self.watch.now();
            let taken = self.take(wire, now, assembly);
            self.frames.tick(now, assembly);
            assembly.tick(now);
            if let Some(run) = assembly.take_run()
                && output.send(run).await.is_err()
            {
                return End::Closed;
            }
            if output.ready().await.is_err() {
                return End::Closed;
            }
            self.look(now, assembly);
            if let Err(end) = taken {
                return end;
            }
            if let Err(error) = read {
                return self.lost(SourceErrorKind::Unreachable, error.to_string());
            }
            if now >= self.silent() {
                return self.lost(SourceErrorKind::TimedOut, self.missing(now));
            }
        }
    }

    /// Takes what has arrived.
    fn take(&mut self, wire: &mut Wire, now: Duration, assembly: &mut Assembly) -> Result<(), End> {
        loop {
            let awaited = self.client.awaits();
            let event = self.client.receive(&mut wire.input).map_err(|error| self.refused(&error))?;
            if self.client.awaits() != awaited {
                self.since = now;
            }
            match event {
                None => return Ok(()),
                Some(ClientEvent::Ready) => {}
                Some(ClientEvent::Media(tag)) => {
                    self.frames.push(&tag, now, assembly, &mut self.faults).map_err(End::Lost)?;
                }
                Some(ClientEvent::Ended(why)) => return Err(self.lost(SourceErrorKind::Unreachable, why.to_owned())),
            }
        }
    }

    /// Time at which a source that answers nothing, or gives no frame, is lost.
    fn silent(&self) -> Duration {
        match self.frames.rhythm() {
            Some(Rhythm { last, longest }) => last + STALL.max(3 * longest),
            None => self.since + self.reception.source.timeout,
        }
    }

    /// The event that was waited for.
    fn missing(&self, now: Duration) -> String {
        let since = |from: Duration| now.saturating_sub(from).as_secs_f64();
        match (self.client.awaits(), self.frames.rhythm()) {
            (Some(awaited), _) => format!("{awaited} did not come for {:.1} s", since(self.since)),
            (None, Some(rhythm)) => format!("no frame for {:.1} s", since(rhythm.last)),
            (None, None) => {
                format!("no frame for {:.1} s after the server began: is the stream published?", since(self.since))
            }
        }
    }

    fn refused(&self, error: &RtmpError) -> End {
        let kind = match error {
            RtmpError::Refused { words, .. } if words.contains("NotFound") => SourceErrorKind::NotFound,
            RtmpError::Refused { command: "connect", .. } => SourceErrorKind::Unauthorized,
            // RTMP has no numbers for reasons; this is the one of HTTP.
            RtmpError::Refused { .. } => SourceErrorKind::Refused(403),
            _ => SourceErrorKind::Protocol,
        };
        self.lost(kind, error.to_string())
    }

    fn lost(&self, kind: SourceErrorKind, words: String) -> End {
        End::Lost(SourceError { kind, address: self.reception.source.to_string(), words })
    }

    /// Tells damage and counts, and looks at the clock.
    fn look(&mut self, now: Duration, assembly: &mut Assembly) {
        if let Some((count, last)) = self.faults.due(now) {
            tracing::warn!(source = %self.reception.source, count, last, "damage in a stream by RTMP");
        }
        if now >= self.counts {
            self.counts = now + COUNT;
            assembly.count(self.frames.counts());
        }
        if now >= self.clock {
            self.clock = now + CLOCK;
            if let Ok(unix) = SystemTime::now().duration_since(UNIX_EPOCH) {
                assembly.set_clock(unix, now);
            }
        }
    }
}
