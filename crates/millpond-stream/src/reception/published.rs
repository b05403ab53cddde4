//! Reception of a stream that publishers push.

use crate::{
    graph::{Inputs, Module, ModuleError, Output},
    kind::ModuleKind,
    reception::{
        Desk, Entry, Piece, Presence, PublicationEnd, Queue, assembly::Assembly, pushed::PushedMedia,
        rtsp::link::Stopwatch, source::AfterLoss,
    },
    report::Reporter,
    source_health::{SourceError, SourceErrorKind},
};
use futures_util::future::BoxFuture;
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
/// Time between two receiver reports, and between two looks at the clock.
const REPORT: Duration = Duration::from_secs(5);
/// Pieces that are taken at a time: their frames make one run.
const PIECES: usize = 64;

/// Receives the publications of a stream, one after another, and tells by a [`Reporter`] what becomes of them.
///
/// It waits for the first publisher for the time that viewers wait. It ends when no publisher arrives for 15 s after the last one
/// left.
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
            let Entry { media, queue, presence } = entry;
            let end = match PushedMedia::new(media, &mut assembly, watch.now()) {
                Ok(media) => {
                    let mut intake = Intake::new(media, queue, presence.clone(), &mut assembly, watch);
                    let end = intake.run(output, &self.desk).await;
                    intake.assembly.end(intake.media.counts());
                    end
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
            if self.desk.goes_on() {
                self.reporter.pause();
            } else if assembly.frames() > 0 {
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
    media: PushedMedia,
    queue: Queue,
    presence: Arc<Presence>,
    assembly: &'a mut Assembly,
    watch: Stopwatch,
    /// Time of the next receiver reports.
    reports: Duration,
}

impl<'a> Intake<'a> {
    fn new(
        media: PushedMedia,
        queue: Queue,
        presence: Arc<Presence>,
        assembly: &'a mut Assembly,
        watch: Stopwatch,
    ) -> Self {
        Self { media, queue, presence, assembly, watch, reports: watch.now() + REPORT }
    }

    /// Receives until the publication ends.
    async fn run(&mut self, output: &Output, desk: &Desk) -> End {
        let (mut has_left, mut taken) = (false, Ok(()));
        loop {
            let due = taken.and_then(|()| self.advance());
            if has_left || due.is_err() {
                self.assembly.flush();
            }
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
            let wake = [Some(self.reports), self.media.wake(), self.assembly.wake()].into_iter().flatten().min();
            taken = Ok(());
            tokio::select! {
                piece = self.queue.recv() => match piece {
                    Some(piece) => taken = self.take(piece),
                    // Frames that were complete follow.
                    None => has_left = true,
                },
                () = self.media.readable() => self.read(),
                () = desk.has_next() => has_left = true,
                () = self.watch.sleep_until(wake) => {}
            }
        }
    }

    /// Takes a piece, and others that wait.
    ///
    /// # Errors
    /// The media can't be received. The publisher knows before its piece is counted as taken.
    fn take(&mut self, piece: Piece) -> Result<(), SourceError> {
        let now = self.watch.now();
        let waiting = std::iter::from_fn(|| self.queue.try_recv().ok()).take(PIECES);
        for piece in std::iter::once(piece).chain(waiting) {
            if self.media.is_media(piece.channel) {
                self.presence.hear(piece.bytes.len());
            }
            if let Err(error) = self.media.push(piece.channel, &piece.bytes, now, self.assembly) {
                self.presence.end(PublicationEnd::Failed(Arc::new(error.clone())));
                return Err(error);
            }
        }
        Ok(())
    }

    fn read(&mut self) {
        let now = self.watch.now();
        let Self { media, assembly, presence, .. } = self;
        media.read(now, assembly, |bytes| presence.hear(bytes));
    }

    /// Does all that is due.
    fn advance(&mut self) -> Result<(), SourceError> {
        let now = self.watch.now();
        if now >= self.reports {
            self.reports = now + REPORT;
            self.media.report(now);
            if let Ok(unix) = SystemTime::now().duration_since(UNIX_EPOCH) {
                self.assembly.set_clock(unix, now);
            }
        }
        self.media.advance(now, self.assembly)?;
        self.assembly.tick(now);
        Ok(())
    }
}
