//! Reception of a stream that publishers push.

use super::{
    SourceError, SourceErrorKind,
    announced::{Backchannel, Received},
    assembly::Assembly,
    link::Stopwatch,
    source::AfterLoss,
    tracks::Tracks,
    udp::UdpMedia,
};
use crate::{
    graph::{Inputs, Module, ModuleError, Output},
    live::{Desk, Entry, Piece, Presence, PublicationEnd, PublishedMedia, Queue, Reporter},
    modules::ModuleKind,
};
use futures_util::future::BoxFuture;
use millpond_rtp::client::TrackTransport;
use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

pub(crate) const PUBLISHED: ModuleKind =
    ModuleKind { name: "publication", about: "receives frames that publishers push", inputs: 0, outputs: 1 };

/// Address of publishers in errors.
pub(crate) const ADDRESS: &str = "publisher";

/// Time that viewers stay without a publisher.
const RESUME: Duration = Duration::from_secs(15);
/// Time within which parameter sets must arrive.
const FORMATS: Duration = Duration::from_secs(10);
/// Time between two receiver reports, and between two looks at the clock.
const REPORT: Duration = Duration::from_secs(5);
/// Pieces that are taken at a time: their frames make one run.
const PIECES: usize = 64;

/// Receives the publications of a stream, one after another, and tells by a [`Reporter`] what becomes of them.
///
/// It waits for the first publisher as long as viewers do. It ends when no publisher came for 15 s after the last one.
#[derive(Debug)]
pub(crate) struct PublishedReception {
    desk: Arc<Desk>,
    reporter: Reporter,
}

/// The end of a publication.
enum End {
    /// Nobody takes frames any more.
    Closed,
    /// The publisher left, or another one came.
    Left,
    /// Its media can't be received.
    Failed(SourceError),
}

impl PublishedReception {
    pub(crate) fn new(desk: Arc<Desk>, reporter: Reporter) -> Self {
        Self { desk, reporter }
    }

    async fn receive(&self, output: &Output) {
        let watch = Stopwatch::start();
        let began = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut assembly = Assembly::new(self.reporter.clone(), AfterLoss::Pass, began);
        loop {
            let entry = if assembly.frames() == 0 {
                self.desk.next().await
            } else {
                match tokio::time::timeout(RESUME, self.desk.next()).await {
                    Ok(entry) => entry,
                    Err(_) if self.desk.close() => return,
                    Err(_) => continue,
                }
            };
            let Entry { media: PublishedMedia::Rtp(media), queue, presence } = entry;
            let end = match media.receive(&mut assembly, watch.now()) {
                Ok(received) => {
                    let mut intake = Intake::new(received, queue, presence.clone(), &mut assembly, watch);
                    intake.run(output, &self.desk).await
                }
                Err(error) => End::Failed(error),
            };
            let error = match end {
                End::Closed => return,
                End::Left => SourceError {
                    kind: SourceErrorKind::Unreachable,
                    address: ADDRESS.to_owned(),
                    words: "it left".to_owned(),
                },
                End::Failed(error) => error,
            };
            let error = Arc::new(error);
            tracing::info!(%error, "publication ends");
            presence.end(PublicationEnd::Failed(error.clone()));
            if assembly.frames() > 0 {
                self.reporter.lost(error);
            }
        }
    }
}

impl Module for PublishedReception {
    fn kind(&self) -> &'static str {
        PUBLISHED.name
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

/// One publication.
struct Intake<'a> {
    tracks: Tracks,
    udp: UdpMedia,
    back: Option<Backchannel>,
    queue: Queue,
    presence: Arc<Presence>,
    assembly: &'a mut Assembly,
    watch: Stopwatch,
    began: Duration,
    /// Time of the next receiver reports.
    reports: Duration,
}

impl<'a> Intake<'a> {
    fn new(
        received: Received,
        queue: Queue,
        presence: Arc<Presence>,
        assembly: &'a mut Assembly,
        watch: Stopwatch,
    ) -> Self {
        let Received { tracks, udp, back } = received;
        let began = watch.now();
        Self { tracks, udp, back, queue, presence, assembly, watch, began, reports: began + REPORT }
    }

    /// Receives until the publication ends.
    async fn run(&mut self, output: &Output, desk: &Desk) -> End {
        let mut has_left = false;
        loop {
            let due = self.advance();
            if let Some(run) = self.assembly.take_run()
                && output.send(run).await.is_err()
            {
                return End::Closed;
            }
            if let Err(error) = due {
                return End::Failed(error);
            }
            if has_left {
                return End::Left;
            }
            let wake = self.wake();
            tokio::select! {
                piece = self.queue.recv() => match piece {
                    Some(piece) => self.take(piece),
                    // Frames that were complete follow.
                    None => has_left = true,
                },
                () = self.udp.readable() => self.read_udp(),
                () = desk.has_next() => has_left = true,
                () = self.watch.sleep_until(wake) => {}
            }
        }
    }

    /// Takes a piece, and others that wait.
    fn take(&mut self, piece: Piece) {
        let now = self.watch.now();
        let waiting = std::iter::from_fn(|| self.queue.try_recv().ok()).take(PIECES);
        for Piece { channel, bytes, .. } in std::iter::once(piece).chain(waiting) {
            self.presence.hear(bytes.len());
            self.tracks.interleaved(channel, &bytes, now, self.assembly);
        }
    }

    fn read_udp(&mut self) {
        let now = self.watch.now();
        let Self { udp, tracks, assembly, presence, .. } = self;
        udp.receive(|place, is_rtcp, packet| {
            presence.hear(packet.len());
            tracks.packet(place, is_rtcp, &packet, now, assembly);
        });
    }

    /// Does all that is due.
    fn advance(&mut self) -> Result<(), SourceError> {
        let now = self.watch.now();
        self.tracks.tick(now, self.assembly);
        if now >= self.reports {
            self.reports = now + REPORT;
            self.report(now);
            if let Ok(unix) = SystemTime::now().duration_since(UNIX_EPOCH) {
                self.assembly.set_clock(unix, now);
            }
        }
        let is_late = !self.tracks.has_begun() && self.tracks.rhythm().is_some() && now >= self.began + FORMATS;
        if is_late && !self.tracks.begin_without(self.assembly) {
            let (address, words) = (ADDRESS.to_owned(), "no parameter sets".to_owned());
            return Err(SourceError { kind: SourceErrorKind::NoMedia, address, words });
        }
        Ok(())
    }

    fn report(&mut self, now: Duration) {
        for (place, (transport, report)) in self.tracks.reports(now).enumerate() {
            match (transport, &self.back) {
                (TrackTransport::Interleaved { channels: (_, rtcp) }, Some(back)) => back(rtcp, &report),
                _ => self.udp.report(place, &report),
            }
        }
    }

    fn wake(&self) -> Option<Duration> {
        let formats = (!self.tracks.has_begun() && self.tracks.rhythm().is_some()).then_some(self.began + FORMATS);
        [Some(self.reports), formats, self.tracks.wake()].into_iter().flatten().min()
    }
}
