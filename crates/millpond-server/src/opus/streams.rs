//! Streams with Opus, for viewers whose player takes no other sound.

use super::{feed::is_transcoded, module::OpusKind};
use crate::own_streams;
use millpond_stream::{Attached, CannotAttach, Linger, LiveRequest, Manager, Program, Source, SourceError};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

/// Longest wait for the first sound.
const PATIENCE: Duration = Duration::from_secs(15);

/// Why a stream can't be had with Opus.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoOpus {
    /// Its frames can't be passed on.
    #[error(transparent)]
    Attach(#[from] CannotAttach),
    /// It gives none.
    #[error(transparent)]
    Source(#[from] Arc<SourceError>),
}

/// A stream with Opus. Its module ends when the last one that holds it is gone.
#[derive(Debug)]
pub(crate) struct OpusStream {
    request: LiveRequest,
    attached: Attached,
}

/// The stream with Opus of one path, if somebody views it. While it begins, others wait.
type Shared = Arc<tokio::sync::Mutex<Weak<OpusStream>>>;

/// The streams with Opus of a server: one for each stream, for all of its viewers.
#[derive(Debug)]
pub(crate) struct OpusStreams {
    manager: Arc<Manager>,
    /// A lock: taken for look-ups.
    streams: Mutex<HashMap<Arc<str>, Shared>>,
}

impl OpusStreams {
    pub(crate) fn new(manager: Arc<Manager>) -> Self {
        Self { manager, streams: Mutex::default() }
    }

    /// Whether a stream has sound that would be transcoded.
    pub(crate) fn takes(program: &Program) -> bool {
        program.formats().any(|(_, format)| is_transcoded(format))
    }

    /// Returns a stream with its sound as Opus. The module runs while the second part of the result exists.
    ///
    /// # Errors
    /// The stream has ended, or gives no frames.
    pub(crate) async fn of(&self, program: &Program) -> Result<(Program, Arc<OpusStream>), NoOpus> {
        let path: Arc<str> = own_streams::with_opus(program.path()).into();
        let shared = self.shared(&path);
        let mut known = shared.lock().await;
        let stream = match known.upgrade().filter(|stream| stream.attached.end().borrow().is_none()) {
            Some(stream) => stream,
            None => {
                let stream = Arc::new(self.begin(program, path).await?);
                *known = Arc::downgrade(&stream);
                stream
            }
        };
        let live = self.manager.live(stream.request.clone()).map_err(CannotAttach::from)?;
        let feed = self.manager.live_feed(&live, PATIENCE).await?;
        Ok((Program::live(&feed), stream))
    }

    fn shared(&self, path: &Arc<str>) -> Shared {
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        // Those that nobody views and nobody waits for.
        streams.retain(|_, shared| {
            Arc::strong_count(shared) > 1 || shared.try_lock().is_ok_and(|known| known.strong_count() > 0)
        });
        streams.entry(path.clone()).or_default().clone()
    }

    async fn begin(&self, program: &Program, path: Arc<str>) -> Result<OpusStream, NoOpus> {
        let request = LiveRequest {
            path,
            source: Source::Published,
            relayed: None,
            linger: Linger::For(Duration::ZERO),
            shift: None,
        };
        let module = OpusKind::module(program);
        let attached = self.manager.attach(program, module, "opus", Some(request.clone())).await?;
        Ok(OpusStream { request, attached })
    }
}
