//! The medium of a path, which a session plays.

use super::Rtsp;
use crate::{
    library::LibraryError,
    live::{CannotFollow, NoPhases, NoTitle, PhasedTitle, StreamPath},
};
use millpond_stream::{
    CannotOpen, Feed, Format, Program, SourceErrorKind, StoredMedia, reception::SourceError, remote::RemoteTitle,
};
use std::{sync::Arc, time::Duration};

/// Longest wait for the formats of a live stream: what players wait for the reply to DESCRIBE.
const PATIENCE: Duration = Duration::from_secs(15);

/// The medium that a session plays.
#[derive(Clone, Debug)]
pub(super) enum Medium {
    /// A stored title.
    Stored(Arc<StoredMedia>),
    /// A stored title that plays in phases.
    Phased(PhasedTitle),
    /// A stored title of an RTSP server.
    Remote(Arc<RemoteTitle>),
    /// A channel, or a live stream.
    Program(Program),
}

/// Why a path has no medium.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoMedium {
    #[error(transparent)]
    Library(#[from] LibraryError),
    #[error(transparent)]
    Stream(#[from] CannotOpen),
    #[error(transparent)]
    Source(#[from] Arc<SourceError>),
    #[error("{0}")]
    Phases(NoPhases),
    #[error("the connection is for another stream")]
    Other,
}

impl NoMedium {
    /// Describes for viewers why a path has no medium. Addresses of sources and origins are for operators.
    pub(super) fn for_viewers(&self, path: &str) -> String {
        let words = match self {
            Self::Library(error) => error.for_viewers(),
            Self::Source(error) => error.for_viewers(),
            error => error.to_string(),
        };
        if words.contains(path) { words } else { format!("{path}: {words}") }
    }
}

impl From<NoTitle> for NoMedium {
    fn from(error: NoTitle) -> Self {
        match error {
            NoTitle::Library(error) => Self::Library(error),
            NoTitle::Source(error) => Self::Source(error),
        }
    }
}

impl From<NoPhases> for NoMedium {
    fn from(error: NoPhases) -> Self {
        match error {
            NoPhases::Library(error) => Self::Library(error),
            NoPhases::Stream(error) => Self::Stream(error),
            endless @ NoPhases::Endless(_) => Self::Phases(endless),
        }
    }
}

impl From<CannotFollow> for NoMedium {
    fn from(error: CannotFollow) -> Self {
        match error {
            CannotFollow::Library(error) => Self::Library(error),
            CannotFollow::Stream(error) => Self::Stream(error),
            CannotFollow::Source(error) => Self::Source(error),
        }
    }
}

impl Medium {
    /// The feed that frames come from.
    pub(super) fn feed(&self) -> &dyn Feed {
        match self {
            Self::Stored(media) | Self::Phased(PhasedTitle { media, .. }) => &**media,
            Self::Remote(title) => &**title,
            Self::Program(program) => program.feed(),
        }
    }

    /// The title, unless it plays as a channel.
    pub(super) fn stored(&self) -> Option<&Arc<StoredMedia>> {
        match self {
            Self::Stored(media) | Self::Phased(PhasedTitle { media, .. }) => Some(media),
            Self::Remote(_) | Self::Program(_) => None,
        }
    }

    /// Seconds of a title; `None` of a channel or live stream.
    pub(super) fn duration(&self) -> Option<f64> {
        match self {
            Self::Stored(media) | Self::Phased(PhasedTitle { media, .. }) => Some(media.duration()),
            Self::Remote(title) => Some(title.length().as_secs_f64()),
            Self::Program(_) => None,
        }
    }

    /// The channel or the live stream.
    pub(super) fn program(&self) -> Option<&Program> {
        match self {
            Self::Stored(_) | Self::Phased(_) | Self::Remote(_) => None,
            Self::Program(program) => Some(program),
        }
    }

    /// The title that plays in phases.
    pub(super) fn phased(&self) -> Option<&PhasedTitle> {
        match self {
            Self::Phased(phased) => Some(phased),
            Self::Stored(_) | Self::Remote(_) | Self::Program(_) => None,
        }
    }

    /// The index of the track of a name. Tracks of a title without frames have one too.
    pub(super) fn track(&self, name: &str) -> Option<usize> {
        match self {
            Self::Stored(media) | Self::Phased(PhasedTitle { media, .. }) => {
                media.presentation().tracks().iter().position(|track| track.name() == name)
            }
            Self::Remote(title) => {
                title.formats().iter().position(|format| format.as_ref().is_some_and(|format| format.name == name))
            }
            Self::Program(program) => {
                let track = program.formats().find(|(_, format)| format.name == name).map(|(track, _)| track);
                track.map(usize::from)
            }
        }
    }

    /// Names and codecs of all tracks.
    pub(super) fn codecs(&self) -> Vec<String> {
        let of = |(_, format): (u16, &Format)| format!("{} ({})", format.name, format.track.codec.parameter());
        match self {
            Self::Stored(media) | Self::Phased(PhasedTitle { media, .. }) => {
                let tracks = media.presentation().tracks().iter();
                tracks.map(|track| format!("{} ({})", track.name(), track.codec_and_encryption())).collect()
            }
            Self::Remote(title) => (0..).zip(title.formats().iter().flatten()).map(of).collect(),
            Self::Program(program) => program.formats().map(of).collect(),
        }
    }
}

impl Rtsp {
    /// The medium of a path, and the rendition that its last part names, where it does. A live stream is opened; waits until its
    /// formats are known. That of a ladder is for one viewer. Where another node `is_asking`, only streams that this node receives itself count.
    pub(super) async fn medium(&self, path: &str, is_asking: bool) -> Result<(Medium, Option<String>), NoMedium> {
        if let Some(phased) = self.sources.phased(path).await? {
            return Ok((Medium::Phased(phased), None));
        }
        let at = self.sources.find(path);
        if let Some(program) = self.sources.follow(&at).await? {
            return Ok((Medium::Program(program), None));
        }
        if let Some(title) = self.sources.title(&at, false).await? {
            return Ok((Medium::Remote(title), None));
        }
        match self.stream(&at, is_asking).await {
            Err(NoMedium::Source(error)) if error.kind == SourceErrorKind::StoredTitle => {
                if let Some(title) = self.sources.title(&at, true).await? {
                    return Ok((Medium::Remote(title), None));
                }
                if let Some(program) = self.stream(&at, is_asking).await? {
                    return Ok((Medium::Program(program), None));
                }
            }
            found => {
                if let Some(program) = found? {
                    return Ok((Medium::Program(program), None));
                }
            }
        }
        let (asset, rendition) = self.sources.open(path).await?;
        Ok((Medium::Stored(self.sources.media(&asset)), rendition))
    }

    /// The channel or live stream of a path, which is opened; `None` where there is none.
    async fn stream(&self, at: &StreamPath, is_asking: bool) -> Result<Option<Program>, NoMedium> {
        let request = if is_asking { self.sources.own_stream(at).await? } else { self.sources.stream(at).await? };
        let Some(request) = request else { return Ok(None) };
        let stream = self.manager.live(request)?;
        let feed = self.manager.live_feed(&stream, PATIENCE).await?;
        Ok(Some(Program::live(&feed)))
    }
}
