//! A source that gives what a test tells it to, and an engine for it.

use crate::{
    Bounds, Counters, Format, Frame, HeavyWork, Lateness, NoticeBoard, ROUND, RateRule,
    epoch::{Epoch, EpochReason},
    graph::{Inputs, Module, ModuleError, Output},
    manager::{Manager, Options},
    outlet::{Datagrams, Outlet, Packets},
    reception::{TcpConnector, Upstream, Web, WebMessage, WebReply, WebRequest},
    report::{Reporter, WeakReporter},
    source_health::{SourceError, SourceErrorKind},
    streams::{Linger, LiveRequest, Source},
};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use millpond_media::{
    Importance, Orientation, SampleTable,
    codec::{Codec, Color, Vp9Config},
    movie::{Track, TrackKind},
    units::Timescale,
};
use millpond_package::MediaKind;
use millpond_store::{Store, StoreOptions};
use std::{
    error::Error,
    net::Ipv4Addr,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::sync::mpsc::{self, UnboundedSender};

/// Pictures are 40 ms apart.
const INTERVAL: Duration = Duration::from_millis(40);

/// A source whose frames a test gives. Clones are the same one.
#[derive(Clone, Default)]
pub struct Fake(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    opened: usize,
    /// Of the last module.
    reporter: Option<Reporter>,
    frames: Option<UnboundedSender<Frame>>,
}

impl PartialEq for Fake {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Fake {}

struct FakeReception(mpsc::UnboundedReceiver<Frame>);

impl Module for FakeReception {
    fn kind(&self) -> &'static str {
        "fake"
    }

    fn run(mut self: Box<Self>, _: Inputs, output: Output) -> BoxFuture<'static, Result<(), ModuleError>> {
        Box::pin(async move {
            while let Some(frame) = self.0.recv().await {
                output.send([frame].into()).await?;
            }
            Ok(())
        })
    }
}

impl Fake {
    pub(crate) fn module(&self, reporter: Reporter) -> Box<dyn Module> {
        let (sender, frames) = mpsc::unbounded_channel();
        let mut state = self.0.lock().unwrap();
        *state = State { opened: state.opened + 1, reporter: Some(reporter), frames: Some(sender) };
        Box::new(FakeReception(frames))
    }

    /// Number of times that it was opened.
    pub(super) fn opened(&self) -> usize {
        self.0.lock().unwrap().opened
    }

    /// Whether somebody takes its frames.
    pub(super) fn is_open(&self) -> bool {
        self.0.lock().unwrap().frames.as_ref().is_some_and(|frames| !frames.is_closed())
    }

    pub(super) fn reporter(&self) -> Reporter {
        self.0.lock().unwrap().reporter.clone().unwrap()
    }

    /// Keeps nothing of what was reported any longer.
    pub(super) fn forget_reporter(&self) -> WeakReporter {
        self.0.lock().unwrap().reporter.take().unwrap().downgrade()
    }

    /// Ends its module.
    pub(super) fn end(&self) {
        self.0.lock().unwrap().frames = None;
    }

    pub(super) fn begin(&self, number: u32, formats: Vec<Option<Format>>) {
        self.begin_at(number, Duration::from_secs(10), formats);
    }

    /// Begins an epoch at a stream time. Wall time is that and a constant.
    pub(super) fn begin_at(&self, number: u32, from: Duration, formats: Vec<Option<Format>>) {
        let reason = if number == 0 { EpochReason::Start } else { EpochReason::Jump };
        let wall = Duration::from_secs(1_699_999_990) + from;
        self.reporter().begin(Epoch { number, from, wall, arrival: wall, formats: formats.into(), reason });
    }

    pub(super) fn fail(&self) {
        let kind = SourceErrorKind::NotFound;
        self.reporter().failed(Arc::new(SourceError { kind, address: "fake".into(), words: "404".into() }));
    }

    pub(super) fn put(&self, frame: Frame) {
        let _ = self.0.lock().unwrap().frames.as_ref().unwrap().send(frame);
    }

    pub(super) fn request(&self, path: &str, linger: Duration) -> LiveRequest {
        let source = Source::Fake(self.clone());
        LiveRequest { path: path.into(), source, relayed: None, linger: Linger::For(linger), shift: None }
    }
}

/// Pictures in VP8, of a track with ticks of 90 kHz.
pub(crate) fn pictures(fourcc: [u8; 4]) -> Option<Format> {
    let kind = TrackKind::Video { width: 16, height: 16, orientation: Orientation::UPRIGHT, pixel_aspect: (1, 1) };
    let config = Vp9Config { fourcc, profile: 0, level: 10, bit_depth: 8, chroma: 1, color: Color::UNSPECIFIED };
    let track = Track {
        id: 1,
        kind,
        timescale: Timescale::MPEG,
        language: String::new(),
        name: None,
        enabled: true,
        alternate_group: 0,
        purposes: Default::default(),
        captions: None,
        codec: Codec::Vp9(config),
        sample_entry: Vec::new(),
        edits: Vec::new(),
        samples: SampleTable::default(),
        descriptions: None,
        protection: None,
    };
    Some(Format {
        name: "v1".into(),
        kind: MediaKind::Video,
        language: None,
        is_default: true,
        is_alternative: false,
        bandwidth: 1000,
        is_encrypted: false,
        track,
    })
}

/// Picture of track 0 by its number: key frames where that is divisible by 10. Its first bytes are the number.
pub(crate) fn picture(number: u32) -> Frame {
    Frame {
        track: 0,
        number,
        due: Duration::from_secs(10) + INTERVAL * number,
        pts: 900_000 + 3600 * i64::from(number),
        epoch: 0,
        is_sync: number.is_multiple_of(10),
        importance: Importance::BASE,
        data: Bytes::copy_from_slice(&number.to_be_bytes()),
    }
}

/// An outlet that records the numbers of frames with the first sequence numbers of their packets, and reports.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    pub(super) frames: Mutex<Vec<(u32, [u8; 12])>>,
    pub(super) reports: Mutex<Vec<Vec<u8>>>,
}

impl Outlet for Recorder {
    fn send(&self, _: &mut Datagrams, packets: &Packets<'_>) {
        let number = u32::from_be_bytes(packets.frame[..4].try_into().unwrap());
        self.frames.lock().unwrap().push((number, packets.headers[0]));
    }

    fn send_whole(&self, _: &mut Datagrams, _: &[u8]) {}

    fn send_reports(&self, _: &mut Datagrams, reports: &[u8]) {
        self.reports.lock().unwrap().push(reports.to_vec());
    }
}

impl Recorder {
    pub(super) fn numbers(&self) -> Vec<u32> {
        self.frames.lock().unwrap().iter().map(|(number, _)| *number).collect()
    }
}

#[derive(Debug)]
struct NoWork;

impl HeavyWork for NoWork {
    fn run(&self, job: Box<dyn FnOnce() + Send>) -> BoxFuture<'_, Result<(), Box<dyn Error + Send + Sync>>> {
        job();
        Box::pin(async { Ok(()) })
    }
}

/// No web server.
#[derive(Debug)]
struct NoWeb;

impl Web for NoWeb {
    fn get(&self, _: WebRequest) -> BoxFuture<'static, Result<WebReply, String>> {
        Box::pin(async { Err("no web server".to_owned()) })
    }

    fn send(&self, _: WebMessage) -> BoxFuture<'static, Result<WebReply, String>> {
        Box::pin(async { Err("no web server".to_owned()) })
    }
}

pub(crate) fn manager() -> Arc<Manager> {
    manager_with(None)
}

/// A manager whose notices a board takes.
pub(super) fn manager_with(notices: Option<Arc<dyn NoticeBoard>>) -> Arc<Manager> {
    let store = Store::new(&StoreOptions { memory: 4 << 20, ..StoreOptions::default() }).unwrap();
    let bounds = Bounds {
        sessions: 10,
        sessions_per_client: 10,
        waiting_per_client: 10,
        bandwidth: None,
        origin_bandwidth: None,
    };
    let options = Options {
        viewer_queue: Duration::from_secs(3),
        dropping: crate::Dropping::LeastNeeded,
        address: Ipv4Addr::LOCALHOST.into(),
        threads: 1,
        on_thread_start: || {},
        bounds,
        round: ROUND,
        window: Duration::ZERO,
        lateness: Lateness::None,
        start_wait: Duration::ZERO,
        rate_rule: RateRule::Off,
        channels: Vec::new(),
        max_streams: 2,
        stream_memory: 64 << 20,
        clock: millpond_utc::WallClock::system(),
        upstream: Upstream { connector: Arc::new(TcpConnector::default()), web: Arc::new(NoWeb), relay: None },
        notices,
        groups: None,
    };
    Arc::new(Manager::new(store, Arc::new(NoWork), [], options, &Arc::new(Counters::default())).unwrap())
}

/// Waits until something is so. The limit is far above what a busy machine needs.
pub(super) async fn until(is_so: impl Fn() -> bool) {
    for _ in 0..6000 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("not so within 30 s");
}
