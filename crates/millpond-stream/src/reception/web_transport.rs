//! Reception of an MPEG transport stream that a web server sends without an end.

use crate::{
    graph::{Closed, Inputs, Module, ModuleError, Output},
    kind::ModuleKind,
    reception::{
        assembly::{Assembly, COUNT},
        attendance::Rhythm,
        backoff::Backoff,
        fetching::{Fetcher, Resource, error},
        rtsp::link::Stopwatch,
        transport::{Faults, ProgrammeFrames},
    },
    report::Reporter,
    source_health::{SourceError, SourceErrorKind},
    web::{Web, WebUrlError, inner_url},
};
use futures_util::future::BoxFuture;
use millpond_store::without_secrets;
use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use url::Url;

pub(crate) const KIND: ModuleKind = ModuleKind {
    name: "web-transport",
    about: "receives frames of a programme of an MPEG transport stream from a web server",
    inputs: 0,
    outputs: 1,
};

/// Silence after which a source is lost.
const STALL: Duration = Duration::from_secs(5);
/// Time between two looks at the clock.
const CLOCK: Duration = Duration::from_secs(5);
/// Length of a session after which a loss is a new one: attempts begin with the shortest delay again.
const STEADY: Duration = Duration::from_secs(10);

/// An MPEG transport stream in one response of a web server. `Debug` and `Display` show neither credentials nor the query.
#[derive(Clone, PartialEq, Eq)]
pub struct WebTransportSource {
    url: Url,
    programme: Option<u16>,
    /// Time limit of a connection, of the reply, and of the first frame. Default: 10 s.
    pub timeout: Duration,
    /// Hosts, as `host` or `host:port` in small letters, that a redirect may lead to, besides that of the URL.
    pub hosts: Arc<[String]>,
}

impl WebTransportSource {
    /// Creates the source of a URL with the scheme `ts+http` or `ts+https`.
    ///
    /// # Errors
    /// Any other URL.
    pub fn new(url: &str) -> Result<Self, WebUrlError> {
        let url = inner_url(url, "ts+").ok_or(WebUrlError { expected: "ts+https" })?;
        Ok(Self { url, programme: None, timeout: Duration::from_secs(10), hosts: Arc::default() })
    }

    /// Returns the source of one programme. Without a number it is the only programme of the stream.
    #[must_use]
    pub fn programme(&self, number: u16) -> Self {
        Self { programme: Some(number), ..self.clone() }
    }
}

impl fmt::Display for WebTransportSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ts+{}", without_secrets(&self.url))?;
        self.programme.map_or(Ok(()), |number| write!(f, ", programme {number}"))
    }
}

impl fmt::Debug for WebTransportSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WebTransportSource({self}, timeout {:?}, hosts {:?})", self.timeout, self.hosts)
    }
}

/// Receives the frames of a programme, and tells by a [`Reporter`] what becomes of its source.
///
/// It requests the stream again whenever it ends, with growing delays, until no module takes its frames. Each response is an epoch.
#[derive(Debug)]
pub struct WebTransportReception {
    source: WebTransportSource,
    fetcher: Fetcher,
    reporter: Reporter,
}

/// The end of a session.
enum End {
    /// Nobody takes frames any more.
    Closed,
    /// The source is lost.
    Lost(SourceError),
}

impl From<Closed> for End {
    fn from(_: Closed) -> Self {
        Self::Closed
    }
}

impl From<SourceError> for End {
    fn from(error: SourceError) -> Self {
        Self::Lost(error)
    }
}

impl WebTransportReception {
    /// Creates a reception, which sends requests by `web` when it runs.
    #[must_use]
    pub fn new(source: WebTransportSource, web: Arc<dyn Web>, reporter: Reporter) -> Self {
        let fetcher = Fetcher::new(web, source.url.clone(), source.hosts.clone(), source.timeout);
        Self { source, fetcher, reporter }
    }

    /// Receives until nobody takes frames any more.
    async fn receive(&self, output: &Output) {
        let watch = Stopwatch::start();
        let began = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let (mut assembly, mut backoff) = (Assembly::of_transport(self.reporter.clone(), began), Backoff::new());
        loop {
            let (started, frames) = (watch.now(), assembly.frames());
            self.reporter.asks(self.source.to_string());
            let opened = self.fetcher.open(self.source.url.clone(), None, Duration::ZERO).await;
            let end = match opened {
                Ok(resource) => Sitting::new(self, watch).run(resource, &mut assembly, output).await,
                Err(error) => End::Lost(error),
            };
            let End::Lost(error) = end else { return };
            if assembly.frames() > frames && watch.now() >= started + STEADY {
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

impl Module for WebTransportReception {
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

/// One response.
struct Sitting<'a> {
    source: &'a WebTransportSource,
    watch: Stopwatch,
    programme: ProgrammeFrames,
    faults: Faults,
    began: Duration,
    /// Time of the next look at the clock.
    clock: Duration,
    /// Time from which counts are told again.
    counts: Duration,
}

impl<'a> Sitting<'a> {
    fn new(reception: &'a WebTransportReception, watch: Stopwatch) -> Self {
        let source = &reception.source;
        let (programme, began) = (ProgrammeFrames::new(source.programme, source.timeout), watch.now());
        let faults = Faults::default();
        Self { source, watch, programme, faults, began, clock: began + CLOCK, counts: began }
    }

    /// Receives until the response ends.
    async fn run(mut self, mut resource: Resource, assembly: &mut Assembly, output: &Output) -> End {
        let end = self.receive(&mut resource, assembly, output).await;
        assembly.flush();
        if let Some(run) = assembly.take_run() {
            // It is the last one.
            let _ = output.send(run).await;
        }
        assembly.end(self.programme.counts());
        end
    }

    async fn receive(&mut self, resource: &mut Resource, assembly: &mut Assembly, output: &Output) -> End {
        loop {
            let wake = [Some(self.clock), Some(self.silent()), self.programme.wake(), assembly.wake()];
            tokio::select! {
                bytes = resource.next() => match bytes {
                    Ok(Some(bytes)) => self.programme.push(&bytes, self.watch.now(), assembly, &mut self.faults),
                    Ok(None) => {
                        let has_frames = self.programme.rhythm().is_some();
                        let missing = if has_frames { String::new() } else { format!(": {}", self.programme.missing()) };
                        let words = format!("the response has ended{missing}");
                        return error(SourceErrorKind::Unreachable, &resource.url, words).into();
                    }
                    Err(error) => return error.into(),
                },
                () = self.watch.sleep_until(wake.into_iter().flatten().min()) => {}
            }
            let now = self.watch.now();
            self.programme.tick(now, assembly);
            assembly.tick(now);
            if let Some(run) = assembly.take_run()
                && let Err(closed) = output.send(run).await
            {
                return closed.into();
            }
            if let Err(closed) = output.ready().await {
                return closed.into();
            }
            if let Some(error) = self.problem(now, resource) {
                return error.into();
            }
            self.look(now, assembly);
        }
    }

    /// Returns why there are no frames, once they have been waited for long enough.
    fn problem(&self, now: Duration, resource: &Resource) -> Option<SourceError> {
        if let Some((kind, words)) = self.programme.problem() {
            return Some(error(*kind, &resource.url, words.clone()));
        }
        let since = self.programme.rhythm().map_or(self.began, |rhythm| rhythm.last);
        let words = || format!("{} for {:.1} s", self.programme.missing(), now.saturating_sub(since).as_secs_f64());
        (now >= self.silent()).then(|| error(SourceErrorKind::TimedOut, &resource.url, words()))
    }

    /// Time at which a source that remains silent is lost.
    fn silent(&self) -> Duration {
        match self.programme.rhythm() {
            Some(Rhythm { last, longest }) => last + STALL.max(3 * longest),
            None => self.began + self.source.timeout,
        }
    }

    /// Tells damage and counts, and looks at the clock.
    fn look(&mut self, now: Duration, assembly: &mut Assembly) {
        if let Some((count, last)) = self.faults.due(now) {
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
