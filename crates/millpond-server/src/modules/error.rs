//! Why a module can't be attached.

use super::kinds::BadModuleLine;
use crate::{library::LibraryError, live::UnpublishablePath};
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
    #[error("{}", unpublished_words(.kind, .to, .why, .places))]
    NotPublished {
        /// The kind of the module.
        kind: &'static str,
        /// Path of its output.
        to: String,
        why: UnpublishablePath,
        /// Names of the places of publishers.
        places: Vec<Arc<str>>,
    },
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

fn unpublished_words(kind: &str, to: &str, why: &UnpublishablePath, places: &[Arc<str>]) -> String {
    let cure = match places {
        [] => "add such a place, such as live=publish:".to_owned(),
        places => {
            let names: Vec<&str> = places.iter().map(|name| if name.is_empty() { "/" } else { &**name }).collect();
            format!("give a path in one of them ({})", names.join(", "))
        }
    };
    format!("to: {to} is not in a place of publishers, where {kind} publishes: {why}: {cure}")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_takes_no_publishers_is_named_with_the_kind_and_the_cure() {
        let refused = |why, places: &[&str]| {
            let places = places.iter().map(|name| Arc::from(*name)).collect();
            AttachError::NotPublished { kind: "tee", to: "films/copy".to_owned(), why, places }.to_string()
        };
        assert_eq!(
            refused(UnpublishablePath::Place("films".into()), &["live", "talks"]),
            "to: films/copy is not in a place of publishers, where tee publishes: the place \"films\" takes no publishers: \
             give a path in one of them (live, talks)"
        );
        let none = refused(UnpublishablePath::NoPlace, &[]);
        assert!(none.ends_with("no place has this path: add such a place, such as live=publish:"), "{none}");
    }
}
