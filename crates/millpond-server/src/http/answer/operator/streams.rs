//! Paths in places with streams: the cache has no object of such a name, but segments of stored titles below it.

use super::super::{Front, Target};
use crate::{http::render::AnswerError, library::LibraryError};
use millpond_stream::{Feed as _, remote::RemoteTitle};
use std::sync::Arc;

/// Returns the stored title that an RTSP server has at a path; `None` where there is none. The server is asked, unless it is known.
///
/// # Errors
/// The path can't be the name of a stream, or the server refuses it.
pub(crate) async fn remote_title_at(front: &Front, path: &str) -> Result<Option<Arc<RemoteTitle>>, AnswerError> {
    let found = front.sources.title(&front.sources.find(path), true).await;
    found.map_err(|error| AnswerError::of_title(path, error))
}

/// Refuses a path in a place with streams, which has no files and assets.
///
/// # Errors
/// The path is that of a live stream, or of a stored title of an RTSP server. The error tells what works instead.
pub(super) async fn refuse(front: &Front, path: &str) -> Result<(), AnswerError> {
    let path = path.trim_matches('/');
    if !front.sources.place(path).is_some_and(|place| front.sources.is_live(&place)) {
        return Ok(());
    }
    let target = Target::of_media(front, path);
    let stream = target.live().map_or(path, |live| &*live.stream);
    let title = front.sources.manager().remote_titles().known_above(stream).await;
    let asset = title.as_ref().map_or(stream, |title| title.path()).to_owned();
    let what = advice(&asset, title.is_some());
    Err(LibraryError::NoResource { asset, what }.into())
}

/// Describes what an operator can do with a stream or title instead.
fn advice(stream: &str, is_title: bool) -> String {
    if is_title {
        return format!(
            "a stored title of an RTSP server, which is cached by segments: `millpond cache ls` lists them, \
             `millpond cache warm {stream}` fetches all of them, `millpond cache purge {stream}` removes them"
        );
    }
    format!(
        "no file or asset, because its place has streams: `millpond streams ls` lists those that run. If it is a stored \
         title of an RTSP server, `millpond cache warm {stream}` fetches it"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operator_reads_what_works() {
        assert!(advice("cams/film", true).contains("`millpond cache warm cams/film` fetches all"));
        let unknown = advice("cams/door", false);
        assert!(unknown.contains("millpond streams ls") && unknown.contains("warm cams/door"), "{unknown}");
    }
}
