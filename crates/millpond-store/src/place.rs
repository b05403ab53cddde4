//! Places as an operator writes them, and their origins.

mod build;
mod credentials;
mod faults;
mod options;
mod rtsp_urls;

use std::fmt;
use std::path::{Path, PathBuf};

use percent_encoding::percent_decode_str;
use url::Url;

pub(crate) use build::store;
pub use build::{build, build_with_homes};
pub use credentials::credentials;
pub use faults::{OptionFault, faults};
pub use options::{OriginOptions, Titles};
pub use rtsp_urls::RtspUrls;

/// A place whose streams are pushed, as operators write it.
const PUBLISH: &str = "publish:";

/// Location of the objects of a place.
#[derive(Clone, PartialEq, Eq)]
pub enum PlaceSource {
    /// A folder on disk, or one file, which is then the whole place.
    Folder(PathBuf),
    /// A base URL, `http` or `https`. User, password and query are secrets.
    Http(Url),
    /// A bucket of S3 or a compatible service.
    S3 {
        /// The name of the bucket.
        bucket: String,
        /// Common prefix of all keys, without slashes at its ends; may be empty.
        prefix: String,
    },
    /// A bucket of Google Cloud Storage.
    Gs {
        /// The name of the bucket.
        bucket: String,
        /// Common prefix of all keys, without slashes at its ends; may be empty.
        prefix: String,
    },
    /// A container of Azure Blob Storage.
    Az {
        /// The name of the container.
        container: String,
        /// Common prefix of all keys, without slashes at its ends; may be empty.
        prefix: String,
    },
    /// RTSP servers, `rtsp` or `rtsps`, with live streams instead of objects. User, password and query are secrets.
    Rtsp(RtspUrls),
    /// Live streams that publishers push: `publish:`.
    Publish,
    /// An address that an MPEG transport stream arrives at, `udp` or `rtp`, with live streams instead of objects.
    Transport(Url),
}

impl fmt::Display for PlaceSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, bucket, prefix) = match self {
            Self::Folder(folder) => return write!(f, "{}", folder.display()),
            Self::Http(url) | Self::Transport(url) => return f.write_str(&without_secrets(url)),
            Self::Rtsp(urls) => return urls.fmt(f),
            Self::Publish => return f.write_str(PUBLISH),
            Self::S3 { bucket, prefix } => ("s3", bucket, prefix),
            Self::Gs { bucket, prefix } => ("gs", bucket, prefix),
            Self::Az { container, prefix } => ("az", container, prefix),
        };
        let slash = if prefix.is_empty() { "" } else { "/" };
        write!(f, "{scheme}://{bucket}{slash}{prefix}")
    }
}

impl fmt::Debug for PlaceSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Returns a URL without user, password and query.
pub(crate) fn without_secrets(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    let port = url.port().map(|port| format!(":{port}"));
    let path = url.path().trim_end_matches('/');
    format!("{}://{host}{}{path}", url.scheme(), port.unwrap_or_default())
}

/// A place: its name and its location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlaceSpec {
    /// The name; empty without one.
    pub name: String,
    /// The location of the objects.
    pub source: PlaceSource,
}

/// Why a place cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlaceError {
    /// An empty text in place of a folder or URL.
    #[error("place {text:?}: expected a folder or a URL, found nothing")]
    Empty {
        /// The text.
        text: String,
    },
    /// A URL with an unknown scheme.
    #[error(
        "place {text:?}: unknown scheme {scheme:?}; known are a folder, http, https, s3, gs, az, rtsp, rtsps, udp, rtp and \
         publish:"
    )]
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
    /// The folder does not exist.
    #[error("folder {}: does not exist: {}", folder.display(), cure(folder))]
    NoSuchFolder {
        /// The folder.
        folder: PathBuf,
    },
    /// The path is neither a folder nor a file.
    #[error("folder {}: is neither a folder nor a file", folder.display())]
    NotAFolder {
        /// The path.
        folder: PathBuf,
    },
    /// A file of settings, given as a place.
    #[error("file {}: is a configuration and no place: write --config {0}", file.display())]
    Configuration {
        /// The file.
        file: PathBuf,
    },
    /// A file that refers to other files, which a place of one file does not have.
    #[error("file {}: names other files; serve its folder {}", file.display(), folder.display())]
    NamesOthers {
        /// The file.
        file: PathBuf,
        /// The folder of the file.
        folder: PathBuf,
    },
    /// The folder cannot be opened.
    #[error("folder {}: {detail}", folder.display())]
    Unreadable {
        /// The folder.
        folder: PathBuf,
        /// Error of the system.
        detail: String,
    },
    /// The place has live streams, where objects are needed.
    #[error("{place}: has live streams and no files")]
    Live {
        /// The location.
        place: String,
    },
    /// The client for a remote origin cannot be made.
    #[error("{place}: {detail}")]
    Client {
        /// The origin.
        place: String,
        /// Description of the fault.
        detail: String,
    },
}

impl PlaceSpec {
    /// Returns whether the place is reached over a network: its slices are worth keeping.
    pub fn is_remote(&self) -> bool {
        !matches!(self.source, PlaceSource::Folder(_)) && !self.is_live()
    }

    /// Returns whether the place has live streams instead of objects. It is then none of the store's.
    pub fn is_live(&self) -> bool {
        matches!(self.source, PlaceSource::Rtsp(_) | PlaceSource::Transport(_) | PlaceSource::Publish)
    }

    /// Parses `PLACE` or `NAME=PLACE`. A name consists of letters, digits, `-` and `_`. A folder with a `=` in its name
    /// is written `./a=b`.
    ///
    /// # Errors
    ///
    /// The text is neither a folder nor a supported URL. Its existence is not checked.
    pub fn parse(text: &str) -> Result<Self, PlaceError> {
        let (name, place) = match text.split_once('=') {
            Some((name, place)) if is_name(name) => (name, place),
            _ => ("", text),
        };
        if place.is_empty() {
            let text = text.to_owned();
            return Err(PlaceError::Empty { text });
        }
        let source = match place.split_once("://") {
            Some((scheme, rest)) => remote(place, scheme, rest)?,
            None if place == PUBLISH => PlaceSource::Publish,
            None => local(place)?,
        };
        Ok(Self { name: name.to_owned(), source })
    }
}

/// Returns the folder of a text without a scheme.
fn local(text: &str) -> Result<PlaceSource, PlaceError> {
    match cut_scheme(text) {
        Some(scheme) => {
            let text = shown(text);
            let detail = format!("expected {scheme}:// with two slashes, or ./{text} for a folder of this name");
            Err(PlaceError::Url { text, detail })
        }
        None => Ok(PlaceSource::Folder(PathBuf::from(text))),
    }
}

/// Tells what to write in place of a folder that does not exist.
fn cure(folder: &Path) -> String {
    let text = shown(&folder.to_string_lossy());
    let first = text.split('/').next().unwrap_or_default();
    let known = |scheme: &&&str| scheme.eq_ignore_ascii_case(first);
    if text == "publish" || text.starts_with(PUBLISH) || text.starts_with("publish/") {
        return format!("for streams that are pushed write {PUBLISH} alone: publishers name their streams");
    }
    if text.starts_with('~') {
        return "write the path of the home folder: only a shell replaces ~, at the beginning of a word".to_owned();
    }
    if let Some(scheme) = SCHEMES.iter().find(known) {
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
    if folder.extension().is_some_and(|of| MEDIA.iter().any(|known| of.eq_ignore_ascii_case(known))) {
        return "copy the file there, or correct the path".to_owned();
    }
    "create it, or correct the path".to_owned()
}

/// Extensions of media files.
const MEDIA: [&str; 8] = ["mp4", "m4v", "mov", "m4a", "3gp", "mkv", "webm", "ts"];
/// Schemes of URLs.
const SCHEMES: [&str; 9] = ["http", "https", "s3", "gs", "az", "rtsp", "rtsps", "udp", "rtp"];

/// Returns the scheme of a text such as `http:/host`, which is no URL for want of a slash.
fn cut_scheme(text: &str) -> Option<&'static str> {
    let (scheme, _) = text.split_once(':')?;
    SCHEMES.into_iter().find(|known| known.eq_ignore_ascii_case(scheme))
}

fn is_name(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    !text.is_empty() && text.chars().all(allowed)
}

fn remote(text: &str, scheme: &str, rest: &str) -> Result<PlaceSource, PlaceError> {
    match scheme.to_ascii_lowercase().as_str() {
        "http" | "https" => url(text).map(PlaceSource::Http),
        "rtsp" | "rtsps" => RtspUrls::parse(text).map(PlaceSource::Rtsp),
        "udp" | "rtp" => hosted(text).map(PlaceSource::Transport),
        "s3" => bucket(text, rest).map(|(bucket, prefix)| PlaceSource::S3 { bucket, prefix }),
        "gs" => bucket(text, rest).map(|(bucket, prefix)| PlaceSource::Gs { bucket, prefix }),
        "az" => bucket(text, rest).map(|(container, prefix)| PlaceSource::Az { container, prefix }),
        _ => Err(PlaceError::Scheme { text: shown(text), scheme: scheme.to_owned() }),
    }
}

/// Parses a URL with a host.
fn hosted(text: &str) -> Result<Url, PlaceError> {
    let url = url(text)?;
    if url.host_str().is_none_or(str::is_empty) {
        return Err(PlaceError::Url { text: shown(text), detail: "expected a host".to_owned() });
    }
    Ok(url)
}

fn url(text: &str) -> Result<Url, PlaceError> {
    let wrong = |detail: String| PlaceError::Url { text: shown(text), detail };
    let scheme = text.split(':').next().unwrap_or_default();
    let url = Url::parse(text)
        .map_err(|error| wrong(format!("expected {scheme}://HOST:PORT/PATH, found an error: {error}")))?;
    if url.fragment().is_some() {
        return Err(wrong("expected no fragment (#...)".into()));
    }
    Ok(url)
}

fn bucket(text: &str, rest: &str) -> Result<(String, String), PlaceError> {
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    let wrong = |detail: &str| PlaceError::Url { text: shown(text), detail: detail.to_owned() };
    if bucket.is_empty() {
        return Err(wrong("expected the name of a bucket"));
    }
    if bucket.contains(['@', '?', '#', ':']) {
        return Err(wrong("expected a bucket name only: credentials and endpoints are options"));
    }
    if !bucket.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | '$')) {
        return Err(wrong("expected a bucket name of letters, digits, \"-\", \".\" and \"_\""));
    }
    let prefix = prefix.trim_matches('/').to_owned();
    if prefix.split('/').any(|part| part == "." || part == "..") {
        return Err(wrong("expected no `.` or `..` in the prefix"));
    }
    Ok((bucket.to_owned(), prefix))
}

/// Returns a text that failed to parse, without possible passwords and tokens.
pub(crate) fn shown(text: &str) -> String {
    // A user and password end at the last `@`: a mistyped one may contain anything. Without `://` they follow the scheme.
    let (begin, end) = match (text.find("://"), text.rfind('@')) {
        (Some(scheme), Some(at)) if at > scheme => (scheme + 3, at + 1),
        (None, Some(at)) => (cut_scheme(text).map_or(0, |scheme| (scheme.len() + 1).min(at)), at + 1),
        _ => (0, 0),
    };
    let rest = text[end..].split(['?', '#']).next().unwrap_or_default();
    format!("{}{rest}", &text[..begin])
}

/// Returns percent-decoded text for messages. Bytes that are not text are replaced.
pub(crate) fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> (String, PlaceSource) {
        let spec = PlaceSpec::parse(text).unwrap();
        (spec.name, spec.source)
    }

    #[test]
    fn names_and_folders() {
        let folder = |path: &str| PlaceSource::Folder(PathBuf::from(path));
        assert_eq!(parse("/data"), (String::new(), folder("/data")));
        assert_eq!(parse("films=/data"), ("films".into(), folder("/data")));
        assert_eq!(parse("./a=b"), (String::new(), folder("./a=b")));
        assert_eq!(parse("a=b=c"), ("a".into(), folder("b=c")));
        let cut = PlaceSpec::parse("films=http:/media.example").unwrap_err().to_string();
        assert!(cut.contains("expected http:// with two slashes"), "{cut}");
        assert!(PlaceSpec::parse("./s3:x").is_ok());
        assert_eq!(PlaceSpec::parse("films="), Err(PlaceError::Empty { text: "films=".into() }));
    }

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
            ("films.2026/a", "create it"),
            ("/nowhere/films", "create it"),
            ("user:hush@10.0.0.7/films", "write http://10.0.0.7/films or"),
        ] {
            let error = PlaceError::NoSuchFolder { folder: PathBuf::from(text) };
            assert!(error.to_string().contains(expected), "{error}");
        }
    }

    #[test]
    fn buckets_store_objects_whole_through_all_wrappers() {
        let sibling = Url::parse("http://127.0.0.1:1/").unwrap();
        let options = OriginOptions { siblings: vec![sibling], ..OriginOptions::default() };
        for (place, whole) in [("s3://bucket", true), ("http://127.0.0.1:1/films", false), ("/", false)] {
            let origin = build(&PlaceSpec::parse(place).unwrap(), &options).unwrap();
            assert_eq!(origin.stores_whole(), whole, "{place}");
        }
    }

    #[test]
    fn urls() {
        let (name, source) = parse("web=https://user:secret@media.example:8443/a/?token=x");
        assert_eq!(name, "web");
        assert_eq!(source.to_string(), "https://media.example:8443/a");
        assert!(!format!("{source:?}").contains("secret"));
        let (name, source) = parse("https://media.example/a?b=c");
        assert_eq!((name.as_str(), source.to_string()), ("", "https://media.example/a".into()));
        for (text, shown) in [
            ("s3://bucket", "s3://bucket"),
            ("s3://bucket/a/b/", "s3://bucket/a/b"),
            ("gs://bucket/a", "gs://bucket/a"),
            ("az://container/a", "az://container/a"),
        ] {
            assert_eq!(parse(text).1.to_string(), shown);
        }
    }

    #[test]
    fn texts_that_are_no_urls_are_shown_without_passwords() {
        for (text, expected) in [
            ("https://u:hush@h/a?token=hush", "https://h/a"),
            ("http://u:hu#sh@h/a", "http://h/a"),
            ("http://u:hu?sh@h", "http://h"),
            ("http:u:hush@h/a", "http:h/a"),
            ("https:\\u:hush@h:bad", "https:h:bad"),
            ("u:hush@h", "h"),
            ("a/b?c", "a/b"),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
        let error = PlaceSpec::parse("http:u:hush@h/a").unwrap_err().to_string();
        assert!(error.contains("http://") && !error.contains("hush"), "{error}");
    }

    #[test]
    fn rtsp_servers_are_no_origins() {
        let spec = PlaceSpec::parse("cams=rtsp://user:secret@10.0.0.7:8554/a?x=secret").unwrap();
        assert!(spec.is_live() && !spec.is_remote());
        assert_eq!((spec.name.as_str(), spec.source.to_string()), ("cams", "rtsp://10.0.0.7:8554/a".into()));
        let error = build(&spec, &OriginOptions::default()).unwrap_err();
        assert_eq!(error, PlaceError::Live { place: "rtsp://10.0.0.7:8554/a".into() });
        assert_eq!(error.to_string(), "rtsp://10.0.0.7:8554/a: has live streams and no files");
        assert!(PlaceSpec::parse("rtsps://host").unwrap().is_live());
    }

    #[test]
    fn streams_may_be_pushed() {
        let spec = PlaceSpec::parse("live=publish:").unwrap();
        assert!(spec.is_live() && !spec.is_remote());
        assert_eq!((spec.name.as_str(), spec.source.to_string()), ("live", "publish:".into()));
        assert!(matches!(build(&spec, &OriginOptions::default()), Err(PlaceError::Live { .. })));
    }

    #[test]
    fn transport_streams_are_no_origins() {
        for text in ["udp://239.1.1.1:5000?interface=eth0", "rtp://[ff15::1]:5000", "udp://@0.0.0.0:5000"] {
            let spec = PlaceSpec::parse(&format!("tv={text}")).unwrap();
            assert!(spec.is_live() && !spec.is_remote(), "{text}");
        }
        let spec = PlaceSpec::parse("udp://239.1.1.1:5000?interface=eth0").unwrap();
        assert_eq!(spec.source.to_string(), "udp://239.1.1.1:5000");
        assert!(matches!(build(&spec, &OriginOptions::default()), Err(PlaceError::Live { .. })));
        assert!(PlaceSpec::parse("udp://").is_err());
    }

    #[test]
    fn what_is_wrong_is_said_without_secrets() {
        for text in [
            "ftp://user:secret@host/x",
            "s3://key:secret@bucket/x",
            "https://user:secret@host:port/x",
            "https://user:secret@host/x#y",
            "s3:///x",
            "rtsp://user:secret@",
            "rtsp://user:secret@host/x#y",
            "s3://bucket/../x",
        ] {
            let error = PlaceSpec::parse(text).unwrap_err().to_string();
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn folders_are_looked_at() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "x").unwrap();
        let build = |path: PathBuf| {
            let spec = PlaceSpec { name: String::new(), source: PlaceSource::Folder(path) };
            build(&spec, &OriginOptions::default())
        };
        assert!(build(dir.path().to_owned()).unwrap().is_local());
        assert!(build(file).unwrap().is_local(), "one file is a place too");
        let manifest = dir.path().join("film.smil");
        std::fs::write(&manifest, "x").unwrap();
        assert!(build(manifest).unwrap_err().to_string().contains("serve its folder"));
        let fifo = dir.path().join("fifo");
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RUSR).unwrap();
        assert_eq!(build(fifo.clone()).unwrap_err(), PlaceError::NotAFolder { folder: fifo });
        let none = dir.path().join("none");
        let error = build(none.clone()).unwrap_err();
        assert!(error.to_string().contains(&none.display().to_string()));
        assert_eq!(error, PlaceError::NoSuchFolder { folder: none });
    }
}
