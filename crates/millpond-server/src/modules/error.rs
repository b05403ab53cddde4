//! Why a module can't be attached.

use super::kinds::BadModuleLine;
use crate::library::LibraryError;
use millpond_stream::{CannotAttach, CannotOpen, NoInput, PublishRefused, reception::SourceError};
use std::{error::Error, sync::Arc};

/// Why a module can't be attached.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AttachError {
    /// Its kind or options are not known.
    #[error(transparent)]
    Line(#[from] BadModuleLine),
    /// The asset can't be opened.
    #[error(transparent)]
    Library(#[from] LibraryError),
    /// The asset is no channel and no live stream.
    #[error("{0} is not a channel or live stream: the setting rtsp-channels names channels")]
    NoStream(String),
    /// The path of the output takes no publishers.
    #[error("to: {0} is not in a place of publishers, such as live=publish:")]
    NotPublished(String),
    /// There are too many streams.
    #[error(transparent)]
    Open(#[from] CannotOpen),
    /// The source of a live stream failed.
    #[error("{}", .0.for_viewers())]
    Source(#[from] Arc<SourceError>),
    /// The stream has no track that the kind needs.
    #[error(transparent)]
    Input(#[from] NoInput),
    /// The kind can't make the module.
    #[error(transparent)]
    Make(Box<dyn Error + Send + Sync>),
    /// The engine can't attach it.
    #[error("{}", attach_words(.to, .error))]
    Attach {
        /// Path of its output.
        to: Option<String>,
        error: CannotAttach,
    },
    /// The server ends.
    #[error("the server is shutting down")]
    Ending,
}

fn attach_words(to: &Option<String>, error: &CannotAttach) -> String {
    match (to, error) {
        (Some(to), CannotAttach::Publish(PublishRefused::Taken)) => format!(
            "to: {to}: {error}: give the module another path, or remove the one that publishes there (`millpond module ls`)"
        ),
        (Some(to), CannotAttach::Publish(_) | CannotAttach::Circle(_)) => format!("to: {to}: {error}"),
        _ => error.to_string(),
    }
}
