//! The task of one session that fetches segments of a title.

use super::{
    cutter::{TitleCutter, TitleSample},
    error::RemoteError,
    queue::{PATIENCE, SessionId, Step},
    seeking::{BEGINNING, Seek},
    title::RemoteTitle,
};
use crate::{reception::Playback, source_health::SourceErrorKind};
use std::{sync::Arc, time::Duration};

/// Time before a segment from which the server is asked to play. Servers seek to the key frame before or after, and some give frames before
/// the requested time that time.
const MARGIN: Duration = Duration::from_millis(100);

/// A session that fetches one segment after another, while they are asked for.
pub(super) struct Fetching {
    title: Arc<RemoteTitle>,
    id: SessionId,
}

impl Fetching {
    pub(super) fn new(title: Arc<RemoteTitle>, id: SessionId) -> Self {
        Self { title, id }
    }

    /// Begins a session that plays from before a segment.
    pub(super) fn start(self, number: u64) {
        tokio::spawn(async move {
            let error = self.play(number).await.err();
            self.title.over(self.id, error);
        });
    }

    async fn play(&self, number: u64) -> Result<(), RemoteError> {
        let mut playback = self.described().await?;
        let from = self.title.start(number).saturating_sub(MARGIN);
        let faster = self.title.faster();
        let seek = match playback.play(from, faster).await {
            Ok(plays) => {
                if faster.is_some() && !plays.is_faster {
                    self.title.cannot_hurry();
                }
                Seek::of_reply(from, plays.from)
            }
            Err(error) => match Seek::of_failure(error.kind).filter(|_| number > 0) {
                Some(Seek::OutOfRange) => Seek::OutOfRange,
                // A server may refuse a header that it does not know.
                _ if faster.is_some() && matches!(error.kind, SourceErrorKind::Refused(_)) => {
                    self.title.cannot_hurry();
                    return Ok(());
                }
                Some(seek) if !self.title.has_sought() => seek,
                _ => return Err(error.into()),
            },
        };
        self.sought(playback, seek, number).await
    }

    /// Goes on after the server's reply to a PLAY from before a segment.
    async fn sought(&self, playback: Playback, seek: Seek, number: u64) -> Result<(), RemoteError> {
        match seek {
            Seek::There { is_proof } => {
                if is_proof {
                    self.title.can_seek();
                }
                self.run(playback, number, None).await
            }
            Seek::Elsewhere(_) if number == 0 => self.run(playback, number, None).await,
            Seek::Unable => {
                self.title.cannot_seek();
                Ok(())
            }
            Seek::Elsewhere(_) | Seek::OutOfRange if !self.title.has_sought() => {
                drop(playback);
                self.probe().await
            }
            // The title ends before, as the server seeks.
            Seek::OutOfRange => self.nothing_after(&playback, number),
            Seek::Elsewhere(begins) if begins <= BEGINNING => self.nothing_after(&playback, number),
            // It may play the last part of the title, whose end then is seen.
            Seek::Elsewhere(begins) => {
                let begins = Duration::try_from_secs_f64(begins).unwrap_or_default();
                self.run(playback, number, Some(begins.saturating_add(PATIENCE))).await
            }
        }
    }

    /// Connects and reads the description.
    async fn described(&self) -> Result<Playback, RemoteError> {
        let (source, connector) = self.title.source();
        let playback = Playback::describe(source, connector).await?;
        if self.title.is_described_by(&playback) { Ok(playback) } else { Err(RemoteError::Changed) }
    }

    /// Decides whether the server can seek, by a time that the title surely has. Another session then fetches the segment.
    async fn probe(&self) -> Result<(), RemoteError> {
        let at = self.title.early_time();
        let mut playback = self.described().await?;
        let seek = match playback.play(at, None).await {
            Ok(plays) => Seek::of_reply(at, plays.from),
            Err(error) => Seek::of_failure(error.kind).ok_or(error)?,
        };
        if seek == (Seek::There { is_proof: true }) {
            self.title.can_seek();
        } else {
            self.title.cannot_seek();
        }
        Ok(())
    }

    /// Notes that the server has nothing after `count` segments. An error lets another session decide: this one may have been cut off.
    fn nothing_after(&self, playback: &Playback, count: u64) -> Result<(), RemoteError> {
        let kind = if count == 0 { SourceErrorKind::NoMedia } else { SourceErrorKind::Protocol };
        self.title.ended(count).map_err(|words| RemoteError::from(playback.error(kind, words)))
    }

    /// Fetches segments from `first` on. Where none begins until a time of the title, it has none there.
    async fn run(&self, mut playback: Playback, first: u64, until: Option<Duration>) -> Result<(), RemoteError> {
        let title = &self.title;
        let (mut cutter, mut next) = (title.cutter(first), first);
        loop {
            let frame = playback.next().await?;
            let is_over = frame.is_none();
            let done = match frame {
                Some(frame) => {
                    let Some(track) = title.place(frame.track) else { continue };
                    cutter.push(track, TitleSample::from(frame)).map_err(|_| RemoteError::TooLarge)?
                }
                None => cutter.finish(),
            };
            let mut step = Step::GoOn;
            for segment in done {
                next = segment.number + 1;
                step = title.complete(self.id, &segment);
            }
            if is_over {
                return self.nothing_after(&playback, if next > first { next } else { end(&cutter, first) });
            }
            let has_passed = until.zip(cutter.reached()).is_some_and(|(until, reached)| reached > until);
            if has_passed && cutter.is_searching() {
                return self.nothing_after(&playback, first);
            }
            match step {
                Step::GoOn => {}
                Step::Hold => {
                    if !title.may_go_on(self.id).await {
                        return Ok(());
                    }
                    playback.resume();
                }
                Step::End => return Ok(()),
            }
        }
    }
}

/// Returns the number of segments up to the last frame of a session that ended before segment `first` began.
fn end(cutter: &TitleCutter, first: u64) -> u64 {
    let last = cutter.grid().zip(cutter.reached());
    last.map_or(first, |(grid, last)| first.min(grid.of(last) + 1))
}
