//! The past of streams on the disk, which is kept without viewers.

use super::{LiveStream, Streams, stream::REST};
use crate::live::{Program, TimeShift, WindowOptions};
use std::{
    sync::{Arc, Weak},
    time::Duration,
};
use tokio::time::{sleep, timeout};

/// Longest wait for the disk before a stream begins without its past.
const OPENING: Duration = Duration::from_secs(2);
/// Longest wait for the first frame of a stream whose past is kept.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);
/// Time between two windows of a stream whose past is kept.
const PAUSE: Duration = Duration::from_secs(1);

impl Streams {
    /// Keeps the past of a stream that runs, where it has one, until the stream ends.
    pub(super) async fn keep_past(self: &Arc<Self>, stream: &Arc<LiveStream>) {
        let past = self.open_past(stream).await;
        if stream.shift().is_some() && !stream.keeps(true) {
            tokio::spawn(keep(Arc::downgrade(self), stream.clone(), past));
        }
    }

    /// Opens the past of a stream on the disk, where it has one. It waits for the disk for [`OPENING`] at most.
    async fn open_past(&self, stream: &LiveStream) -> Option<(Arc<TimeShift>, WindowOptions)> {
        let options = stream.shift()?.clone();
        let (windows, path, window) = (self.windows.clone(), stream.path().to_owned(), options.window.clone());
        if let Some(known) = windows.shift(&path) {
            return Some((known, window));
        }
        if stream.lacks_past() {
            return None;
        }
        let opening = tokio::task::spawn_blocking(move || windows.open_shift(&path, &options));
        let why = match timeout(OPENING, opening).await {
            Ok(Ok(Ok(past))) => {
                stream.tell_past(None);
                return Some((past, window));
            }
            Ok(Ok(Err(error))) => error.to_string(),
            Ok(Err(_)) | Err(_) => format!("the disk did not answer within {OPENING:?}"),
        };
        stream.tell_past(Some(&why));
        tracing::warn!(stream = stream.path(), why, "time shift is off");
        None
    }
}

/// Keeps a window of a stream running, and so its past, until the stream ends. A past that can't be opened is tried again.
async fn keep(streams: Weak<Streams>, stream: Arc<LiveStream>, mut past: Option<(Arc<TimeShift>, WindowOptions)>) {
    while let Some(streams) = streams.upgrade() {
        if past.is_none() {
            past = streams.open_past(&stream).await;
        }
        let Some((_, options)) = &past else {
            drop(streams);
            sleep(REST).await;
            if !stream.is_busy() {
                break;
            }
            continue;
        };
        let Ok(feed) = stream.feed(&streams.means, PATIENCE).await else { break };
        let window = streams.window(&Program::live(&feed), options.clone());
        drop((feed, streams));
        let Ok(window) = window else { break };
        if !window.has_past() {
            // Viewers began it while the past could not be opened.
            window.end();
        }
        window.over().await;
        drop(window);
        sleep(PAUSE).await;
        if !stream.is_busy() {
            break;
        }
    }
    drop(past);
    stream.keeps(false);
}
