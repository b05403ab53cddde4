//! The task of one session that fetches segments of a title.

use super::{
    cutter::{TitleCutter, TitleSample},
    error::RemoteError,
    fragment::fragments,
    queue::SessionId,
    title::RemoteTitle,
};
use crate::{reception::Playback, source_health::SourceErrorKind};
use std::{sync::Arc, time::Duration};

/// Time before a segment from which the server is asked to play. Servers seek to the key frame before or after, and some give frames before
/// the requested time that time.
const MARGIN: Duration = Duration::from_millis(100);
/// Time from the requested to the stated beginning from which on the server did not seek.
const MISSED: f64 = 40.0;

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
        let (source, connector) = self.title.source();
        let mut playback = Playback::describe(source, connector).await?;
        if !self.title.is_described_by(&playback) {
            return Err(RemoteError::Changed);
        }
        let from = self.title.start(number).saturating_sub(MARGIN);
        let faster = self.title.faster();
        let plays = match playback.play(from, faster).await {
            // A server may refuse a header that it does not know.
            Err(error) if faster.is_some() && matches!(error.kind, SourceErrorKind::Refused(_)) => {
                self.title.cannot_hurry();
                return Ok(());
            }
            // RFC 2326 11.3.6 to 11.3.8, and servers that do not know the header.
            Err(error) if number > 0 && matches!(error.kind, SourceErrorKind::Refused(455..=457 | 501)) => {
                self.title.cannot_seek();
                return Ok(());
            }
            result => result?,
        };
        if faster.is_some() && !plays.is_faster {
            self.title.cannot_hurry();
        }
        let has_sought = plays.from.is_none_or(|begins| (from.as_secs_f64() - begins).abs() < MISSED);
        if !has_sought {
            self.title.cannot_seek();
        }
        self.run(playback, (self.title.cutter(number), number)).await
    }

    /// Fetches segments from `next` on.
    async fn run(&self, mut playback: Playback, (mut cutter, mut next): (TitleCutter, u64)) -> Result<(), RemoteError> {
        let title = &self.title;
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
            let mut goes_on = true;
            for segment in done {
                next = segment.number + 1;
                goes_on &= title.complete(self.id, segment.number, fragments(&segment, title.reorderings()));
            }
            if is_over {
                title.ended(next).map_err(|error| {
                    // An early end may be that of the session alone: another one goes on there.
                    let kind = if next == 0 { SourceErrorKind::NoMedia } else { SourceErrorKind::Protocol };
                    playback.error(kind, error)
                })?;
            }
            if is_over || !goes_on {
                return Ok(());
            }
        }
    }
}
