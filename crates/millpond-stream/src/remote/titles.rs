//! The titles that are known, by their paths.

use super::title::RemoteTitle;
use crate::{
    reception::{Alternatives, Connector, Playback},
    source_health::{SourceError, SourceErrorKind},
};
use millpond_store::Cache;
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{sync::Mutex as AsyncMutex, time::Instant};

/// Most paths that are remembered.
const MOST: u64 = 1024;
/// Time for which a title is used before the server is asked whether it has changed.
const TRUSTED: Duration = Duration::from_secs(60);
/// Time for which a path counts as that of a live stream.
const LIVE: Duration = Duration::from_secs(600);
/// Longest time for which viewers wait until the formats and the first segments of a title are known.
const LONGEST_OPENING: Duration = Duration::from_secs(30);
/// Most parent folders of a path that are looked up as a title. The resources of a title lie a few folders below the title's path.
const FOLDERS: usize = 8;
/// Time for which a failure is remembered.
const FAILED: Duration = Duration::from_secs(1);

/// The stored titles and live streams that RTSP servers have under the paths of this server.
#[derive(Debug)]
pub struct RemoteTitles {
    connector: Arc<dyn Connector>,
    /// Entries that were not used for long are forgotten. The lock is held while one is made.
    by_path: Mutex<Cache<Arc<str>, Arc<Entry>>>,
}

#[derive(Debug)]
struct Entry {
    source: Alternatives,
    least: Duration,
    /// A lock: held while the server is asked, so that concurrent requests wait for one answer.
    found: AsyncMutex<Option<(Found, Instant)>>,
}

#[derive(Clone, Debug)]
enum Found {
    Title(Arc<RemoteTitle>),
    Live,
    /// Something that can't be opened as a title, but may be a live stream, and the reason.
    Unopened(Option<Arc<SourceError>>),
    /// Nothing.
    Failed(Arc<SourceError>),
    /// Nobody answers in time: a live stream may still begin.
    Unanswered(Option<Arc<SourceError>>),
}

impl RemoteTitles {
    /// Creates an empty registry.
    pub(crate) fn new(connector: Arc<dyn Connector>) -> Self {
        Self { connector, by_path: Mutex::new(Cache::new(MOST)) }
    }

    fn lock(&self) -> MutexGuard<'_, Cache<Arc<str>, Arc<Entry>>> {
        self.by_path.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the stored title that a server has for a path; `None` where it has a live stream. The server is asked where that is not known.
    /// `place` is the length of the place's name, with which the path begins. Segments last `least` or more.
    ///
    /// # Errors
    /// The only server of the source refuses the path.
    pub async fn find(
        &self,
        (path, place): (&str, usize),
        source: &Alternatives,
        least: Duration,
    ) -> Result<Option<Arc<RemoteTitle>>, Arc<SourceError>> {
        let entry = self.entry(path, source, least);
        let mut found = entry.found.lock().await;
        match found.as_mut() {
            Some((known, at)) if at.elapsed() < known.lasts() => return known.result(),
            Some((Found::Title(title), at)) if !title.has_changed() && title.unplayable().is_none() => {
                *at = Instant::now();
                let asked = title.clone();
                tokio::spawn(async move { asked.check().await });
                return Ok(Some(title.clone()));
            }
            _ => {}
        }
        let new = self.opened((path, place), &entry).await;
        let result = new.result();
        *found = Some((new, Instant::now()));
        result
    }

    /// Returns the known title of a path without asking the server.
    pub async fn known(&self, path: &str) -> Option<Arc<RemoteTitle>> {
        let entry = self.lock().get(path)?;
        let found = entry.found.lock().await;
        found.as_ref().and_then(|(found, _)| found.title())
    }

    /// Returns the known title of a path, or of the nearest folder above it, without asking the server.
    pub async fn known_above(&self, path: &str) -> Option<Arc<RemoteTitle>> {
        for path in std::iter::successors(Some(path), |path| Some(path.rsplit_once('/')?.0)).take(FOLDERS) {
            if let Some(title) = self.known(path).await {
                return Some(title);
            }
        }
        None
    }

    /// Returns whether it is known that a path has a stored title, or none that can be opened as such.
    pub async fn is_known(&self, path: &str) -> bool {
        let Some(entry) = self.lock().get(path) else { return false };
        let found = entry.found.lock().await;
        matches!(&*found, Some((Found::Title(_) | Found::Live | Found::Unopened(_), _)))
    }

    /// Returns the failure of the server of a path, if it was asked just now.
    pub async fn failure(&self, path: &str) -> Option<Arc<SourceError>> {
        let entry = self.lock().get(path)?;
        let found = entry.found.lock().await;
        let (found, _) = found.as_ref().filter(|(found, at)| at.elapsed() < found.lasts())?;
        found.failure()
    }

    fn entry(&self, path: &str, source: &Alternatives, least: Duration) -> Arc<Entry> {
        let entries = self.lock();
        if let Some(known) = entries.get(path).filter(|entry| entry.source == *source && entry.least == least) {
            return known;
        }
        let entry = Arc::new(Entry { source: source.clone(), least, found: AsyncMutex::default() });
        entries.insert(path.into(), entry.clone(), 1);
        entry
    }

    async fn opened(&self, (path, place): (&str, usize), entry: &Entry) -> Found {
        let (mut described, mut refused) = (None, None);
        for source in entry.source.iter() {
            match Playback::describe(source, &self.connector).await {
                Ok(playback) => {
                    described = Some((source.clone(), playback));
                    break;
                }
                Err(error) => {
                    tracing::debug!(%path, %error, "whether a server has a stored title is not known");
                    refused = Some(Arc::new(error));
                }
            }
        }
        let Some((source, playback)) = described else {
            return match refused {
                // Another server may still have the stream.
                refused if entry.source.iter().nth(1).is_some() => Found::Unopened(refused),
                Some(error) if matches!(error.kind, SourceErrorKind::Refused(_)) => Found::Failed(error),
                refused => Found::Unanswered(refused),
            };
        };
        let connector = self.connector.clone();
        let opening = RemoteTitle::open((path.into(), place), (source, connector), playback, entry.least);
        match tokio::time::timeout(LONGEST_OPENING, opening).await {
            Ok(Ok(Some(title))) => Found::Title(title),
            Ok(Ok(None)) => Found::Live,
            Err(_) => {
                tracing::warn!(%path, limit = ?LONGEST_OPENING, "a stored title takes too long to open, and is a live stream");
                Found::Unopened(None)
            }
            Ok(Err(error)) => {
                tracing::warn!(%path, %error, "a stored title can't be opened as such, and is a live stream");
                Found::Unopened(Some(Arc::new(error)))
            }
        }
    }
}

impl Found {
    fn title(&self) -> Option<Arc<RemoteTitle>> {
        match self {
            Self::Title(title) => Some(title.clone()),
            Self::Live | Self::Unopened(_) | Self::Failed(_) | Self::Unanswered(_) => None,
        }
    }

    fn failure(&self) -> Option<Arc<SourceError>> {
        match self {
            Self::Failed(error) => Some(error.clone()),
            Self::Unopened(error) | Self::Unanswered(error) => error.clone(),
            Self::Title(_) | Self::Live => None,
        }
    }

    fn result(&self) -> Result<Option<Arc<RemoteTitle>>, Arc<SourceError>> {
        match self {
            Self::Failed(error) => Err(error.clone()),
            found => Ok(found.title()),
        }
    }

    /// Returns the time for which it is used without asking the server.
    fn lasts(&self) -> Duration {
        match self {
            Self::Title(title) if title.has_changed() => Duration::ZERO,
            Self::Title(_) => TRUSTED,
            Self::Live | Self::Unopened(_) => LIVE,
            Self::Failed(_) | Self::Unanswered(_) => FAILED,
        }
    }
}
