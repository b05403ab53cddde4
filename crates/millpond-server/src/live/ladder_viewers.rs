//! Viewers of a ladder by one long response or RTSP: each gets the stream that his network carries.

use super::{LadderAt, Sources, StreamPath};
use crate::library::LibraryError;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use millpond_stream::{CannotOpen, LiveFeed, Program, reception::SourceError};
use std::{sync::Arc, time::Duration};
use tokio::time::{Instant, timeout_at};

/// Longest wait for the formats of the first stream.
const PATIENCE: Duration = Duration::from_secs(15);
/// Time for which a viewer waits for further streams.
const LATE: Duration = Duration::from_secs(1);

/// Why a ladder can't be followed.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum CannotFollow {
    #[error(transparent)]
    Library(#[from] LibraryError),
    #[error(transparent)]
    Stream(#[from] CannotOpen),
    #[error(transparent)]
    Source(#[from] Arc<SourceError>),
}

impl Sources {
    /// Returns the frames of the ladder at a path for one viewer. Its streams are opened. `None` where the path is that of no
    /// ladder, or none of its streams is pushed now.
    ///
    /// # Errors
    /// None of its streams can be opened.
    pub(crate) async fn follow(&self, path: &StreamPath) -> Result<Option<Program>, CannotFollow> {
        let streams = match self.ladder(path) {
            Some(LadderAt::Named(streams)) => streams,
            Some(LadderAt::Folder) if !self.manager().is_running(path) => {
                self.manager().running_in(path).iter().map(|stream| stream.to_string()).collect()
            }
            _ => return Ok(None),
        };
        if streams.is_empty() {
            return Ok(None);
        }
        let mut opening: FuturesUnordered<_> = streams.iter().map(|stream| self.feed(stream)).collect();
        let (mut feeds, mut failure, mut until) = (Vec::new(), None, Instant::now() + PATIENCE);
        while let Ok(Some(feed)) = timeout_at(until, opening.next()).await {
            match feed {
                Ok(feed) => {
                    feeds.push(feed);
                    until = until.min(Instant::now() + LATE);
                }
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        match failure {
            Some(failure) if feeds.is_empty() => Err(failure),
            _ => Ok(Some(self.manager().follow(path, feeds).await?)),
        }
    }

    /// Opens a stream.
    async fn feed(&self, path: &str) -> Result<Arc<LiveFeed>, CannotFollow> {
        let request = self.live(&self.find(path))?.ok_or_else(|| LibraryError::NoAsset(path.to_owned()))?;
        let stream = self.manager().live(request)?;
        Ok(self.manager().live_feed(&stream, PATIENCE).await?)
    }
}
