//! The assets of a channel.

use super::TimedStart;
use crate::{StoredMedia, broadcast::BroadcastPhase, source_health::SourceError};
use futures_util::future::BoxFuture;
use std::{fmt, sync::Arc};

/// Opens stored titles.
pub trait Titles: fmt::Debug + Send + Sync + 'static {
    /// Opens the title of an asset by its path.
    ///
    /// # Errors
    /// There is none, or it can't be opened.
    fn open<'a>(&'a self, asset: &'a str) -> BoxFuture<'a, Result<Arc<StoredMedia>, SourceError>>;
}

/// The assets of a channel, in the order in which they play.
#[derive(Clone, Debug)]
pub struct ChannelSource {
    titles: Arc<dyn Titles>,
    assets: Arc<[Box<str>]>,
    /// Name of the rendition that plays; `None` for the best one.
    rendition: Option<Box<str>>,
    /// The phase that plays, where the channel has phases.
    phase: Option<BroadcastPhase>,
    /// When its only asset begins; `None` where it begins when the channel is opened.
    start: Option<TimedStart>,
}

impl ChannelSource {
    /// Makes that of some assets, by their paths.
    pub fn new(titles: Arc<dyn Titles>, assets: impl IntoIterator<Item = impl Into<Box<str>>>) -> Self {
        let assets = assets.into_iter().map(Into::into).collect();
        Self { titles, assets, rendition: None, phase: None, start: None }
    }

    /// Plays the only asset as if it had begun at a moment.
    #[must_use]
    pub fn with_start(self, start: TimedStart) -> Self {
        Self { start: Some(start), ..self }
    }

    /// Plays the rendition of a name instead of the best one.
    #[must_use]
    pub fn with_rendition(self, name: &str) -> Self {
        Self { rendition: Some(name.into()), ..self }
    }

    /// Plays one of several phases. It begins when its turn comes.
    #[must_use]
    pub fn with_phase(self, phase: BroadcastPhase) -> Self {
        Self { phase: Some(phase), ..self }
    }

    /// The assets, by their paths.
    pub fn assets(&self) -> &[Box<str>] {
        &self.assets
    }

    /// Name of the rendition that plays; `None` for the best one.
    pub(crate) fn rendition(&self) -> Option<&str> {
        self.rendition.as_deref()
    }

    /// The phase that plays, where the channel has phases.
    pub(crate) fn phase(&self) -> Option<&BroadcastPhase> {
        self.phase.as_ref()
    }

    /// When its only asset begins; `None` where it begins when the channel is opened.
    pub(crate) fn start(&self) -> Option<TimedStart> {
        self.start
    }

    /// Opens the title of an asset.
    pub(crate) async fn open(&self, asset: &str) -> Result<Arc<StoredMedia>, SourceError> {
        self.titles.open(asset).await
    }
}

/// Sources with the same assets, phase and start are the same.
impl PartialEq for ChannelSource {
    fn eq(&self, other: &Self) -> bool {
        (&self.assets, &self.rendition, &self.phase, self.start)
            == (&other.assets, &other.rendition, &other.phase, other.start)
    }
}

impl Eq for ChannelSource {}

impl fmt::Display for ChannelSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "channel:{}", self.assets.join(" "))?;
        self.phase.as_ref().map_or(Ok(()), |phase| write!(f, " ({phase})"))
    }
}
