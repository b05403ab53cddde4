//! Paths in places with streams: the cache has no object of such a name, but segments of stored titles below it.

use super::super::{Front, Target};
use crate::{http::render::AnswerError, library::LibraryError};
use millpond_stream::{Feed as _, remote::RemoteTitle};
use std::sync::Arc;

/// Returns the stored title that an RTSP server has at a path; `None` where the place has no streams. The server is asked, unless it is known.
///
/// # Errors
/// The path can't be the name of a stream, or is that of a live stream; the server refuses it, or does not answer.
pub(crate) async fn remote_title_at(front: &Front, path: &str) -> Result<Option<Arc<RemoteTitle>>, AnswerError> {
    let found = front.sources.title(&front.sources.find(path), true).await;
    match found.map_err(|error| AnswerError::of_title(path, error))? {
        Some(title) => Ok(Some(title)),
        None => refuse_as(front, path, Known::Live).await.map(|()| None),
    }
}

/// The facts about a path in a place with streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    /// It is a stored title of an RTSP server.
    Title,
    /// It is none.
    Live,
    /// The server was not asked.
    Nothing,
}

/// Refuses a path in a place with streams, which has no files and assets.
///
/// # Errors
/// The path is that of a live stream, or of a stored title of an RTSP server. The error tells what works instead.
pub(super) async fn refuse(front: &Front, path: &str) -> Result<(), AnswerError> {
    refuse_as(front, path, Known::Nothing).await
}

/// As [`refuse`], where a path that is not known to be a stored title is what `otherwise` says.
async fn refuse_as(front: &Front, path: &str, otherwise: Known) -> Result<(), AnswerError> {
    let path = path.trim_matches('/');
    if !front.sources.place(path).is_some_and(|place| front.sources.is_live(&place)) {
        return Ok(());
    }
    let target = Target::of_media(front, path);
    let stream = target.live().map_or(path, |live| &*live.stream);
    let titles = front.sources.manager().remote_titles();
    let title = titles.known_above(stream).await;
    if title.is_none()
        && let Some(error) = titles.failure(stream).await
    {
        return Err(AnswerError::Source { path: stream.to_owned(), error });
    }
    let asset = title.as_ref().map_or(stream, |title| title.path()).to_owned();
    let what = advice(&asset, if title.is_some() { Known::Title } else { otherwise });
    Err(LibraryError::NoResource { asset, what }.into())
}

/// Describes what an operator can do with a stream or title instead.
fn advice(stream: &str, known: Known) -> String {
    match known {
        Known::Title => format!(
            "a stored title of an RTSP server, which is cached by segments: `millpond cache ls` lists them, \
             `millpond cache warm {stream}` fetches all of them, `millpond cache purge {stream}` removes them"
        ),
        Known::Live => "no stored title of an RTSP server, but a live stream, of which nothing can be fetched in \
                        advance: `millpond streams ls` lists those that run"
            .to_owned(),
        Known::Nothing => format!(
            "no file or asset, because its place has streams: `millpond streams ls` lists those that run. If it is a stored \
             title of an RTSP server, `millpond cache warm {stream}` fetches it"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operator_reads_what_works() {
        assert!(advice("cams/film", Known::Title).contains("`millpond cache warm cams/film` fetches all"));
        let unknown = advice("cams/door", Known::Nothing);
        assert!(unknown.contains("millpond streams ls") && unknown.contains("warm cams/door"), "{unknown}");
        let live = advice("cams/door", Known::Live);
        assert!(live.contains("millpond streams ls") && !live.contains("cache warm"), "{live}");
    }
}
