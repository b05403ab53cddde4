//! Errors of places.

use crate::{kind::schemes, publish::PUBLISH, spec::is_name, urls::shown};
use millpond_media::is_media_extension;
use millpond_store::{LocationError, MAP_SUFFIX};
use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

/// Why a place cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlaceError {
    /// An empty text in place of a folder or URL.
    #[error("place {text:?}: expected a folder or a URL, found nothing")]
    Empty {
        /// The text.
        text: String,
    },
    /// A name with other characters, before what is a place for sure.
    #[error("place {name:?}: expected letters, digits, - and _ in the name of a place")]
    Name {
        /// The name.
        name: String,
    },
    /// A URL with an unknown scheme.
    #[error("place {text:?}: unknown scheme {scheme:?}; known are a folder, {} and {PUBLISH}", known())]
    Scheme {
        /// The text, without secrets.
        text: String,
        /// The scheme.
        scheme: String,
    },
    /// A URL that is not well-formed.
    #[error("place {text:?}: {detail}")]
    Url {
        /// The text, without secrets.
        text: String,
        /// Description of the fault.
        detail: String,
    },
    /// A name that is no map's.
    #[error("{name}: expected a name that ends in {MAP_SUFFIX}")]
    MapName {
        /// The name.
        name: String,
    },
    /// The folder does not exist.
    #[error("folder {}: does not exist: {}", folder.display(), cure(folder))]
    NoSuchFolder {
        /// The folder.
        folder: PathBuf,
    },
    /// A file of settings, given as a place.
    #[error("file {}: is a configuration and no place: write --config {0}", file.display())]
    Configuration {
        /// The file.
        file: PathBuf,
    },
    /// The place has live streams, where objects are needed.
    #[error("{place}: has live streams and no files")]
    Live {
        /// The location.
        place: String,
    },
    /// No origin can be made of its location.
    #[error(transparent)]
    Location(LocationError),
}

impl From<LocationError> for PlaceError {
    fn from(error: LocationError) -> Self {
        match error {
            LocationError::NoSuchFolder { folder } => Self::NoSuchFolder { folder },
            error => Self::Location(error),
        }
    }
}

/// Lists the known schemes.
fn known() -> String {
    schemes().collect::<Vec<_>>().join(", ")
}

/// Tells what to write in place of a folder that does not exist.
fn cure(folder: &Path) -> String {
    let text = shown(&folder.to_string_lossy());
    let first = text.split('/').next().unwrap_or_default();
    if text == "publish" || text.starts_with(PUBLISH) || text.starts_with("publish/") {
        return format!("for streams that are pushed write {PUBLISH} alone: publishers name their streams");
    }
    if text.starts_with('~') {
        return "write the path of the home folder: only a shell replaces ~, at the beginning of a word".to_owned();
    }
    if let Some(scheme) = schemes().find(|scheme| scheme.eq_ignore_ascii_case(first)) {
        let rest = text[first.len()..].trim_start_matches('/');
        return format!("did you mean {scheme}://{rest}?");
    }
    let is_host = |host: &str| {
        let labels: Vec<_> = host.split(':').next().unwrap_or_default().split('.').collect();
        labels.len() > 2 && labels.iter().all(|label| is_name(label))
    };
    if is_host(first) {
        return format!("for a web server write http://{text} or https://{text}");
    }
    if folder.extension().and_then(OsStr::to_str).is_some_and(is_media_extension) {
        return "copy the file there, or correct the path".to_owned();
    }
    "create it, or correct the path".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_that_is_no_folder_is_told_what_it_may_be() {
        for (text, expected) in [
            ("publish", "write publish: alone"),
            ("publish:cam", "write publish: alone"),
            ("~/films", "the home folder"),
            ("s3//films/2026", "did you mean s3://films/2026?"),
            ("http/media.example/x", "did you mean http://media.example/x?"),
            ("www.example.com/films", "write http://www.example.com/films or"),
            ("10.0.0.7:8080/films", "write http://10.0.0.7:8080/films or"),
            ("film.mp4", "copy the file there"),
            ("films/song.FLAC", "copy the file there"),
            ("films.2026/a", "create it"),
            ("/nowhere/films", "create it"),
            ("user:hush@10.0.0.7/films", "write http://10.0.0.7/films or"),
        ] {
            let error = PlaceError::from(LocationError::NoSuchFolder { folder: PathBuf::from(text) });
            assert!(error.to_string().contains(expected), "{error}");
        }
    }

    #[test]
    fn known_schemes_are_told() {
        let error = PlaceError::Scheme { text: "ftp://h".to_owned(), scheme: "ftp".to_owned() };
        let known = "known are a folder, http, https, s3, gs, az, rtsp, rtsps, udp, rtp, srt, rtmp, rtmps, hls+http, hls+https, dash+http, dash+https, ts+http, ts+https, whep+http, whep+https and publish:";
        assert_eq!(error.to_string(), format!("place \"ftp://h\": unknown scheme \"ftp\"; {known}"));
    }
}
