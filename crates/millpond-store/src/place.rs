//! Places as an operator writes them, and their origins.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use url::Url;

use crate::origin::cloud::{CloudKind, CloudOrigin};
use crate::origin::disk::DiskOrigin;
use crate::origin::http::HttpOrigin;
use crate::origin::neighbours::NeighbourOrigin;
use crate::origin::retry::{RetryOrigin, RetryPolicy};
use crate::origin::single::{Single, SingleOrigin};
use crate::origin::visible::VisibleOrigin;
use crate::origin::{Origin, Timeouts};

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
}

impl fmt::Display for PlaceSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, bucket, prefix) = match self {
            Self::Folder(folder) => return write!(f, "{}", folder.display()),
            Self::Http(url) => return f.write_str(&without_secrets(url)),
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
    #[error("place {text:?}: unknown scheme {scheme:?}; known are a folder, http, https, s3, gs and az")]
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
    #[error("folder {}: does not exist", folder.display())]
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
        !matches!(self.source, PlaceSource::Folder(_))
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
            None => PlaceSource::Folder(PathBuf::from(place)),
        };
        Ok(Self { name: name.to_owned(), source })
    }
}

fn is_name(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    !text.is_empty() && text.chars().all(allowed)
}

fn remote(text: &str, scheme: &str, rest: &str) -> Result<PlaceSource, PlaceError> {
    match scheme.to_ascii_lowercase().as_str() {
        "http" | "https" => http(text),
        "s3" => bucket(text, rest).map(|(bucket, prefix)| PlaceSource::S3 { bucket, prefix }),
        "gs" => bucket(text, rest).map(|(bucket, prefix)| PlaceSource::Gs { bucket, prefix }),
        "az" => bucket(text, rest).map(|(container, prefix)| PlaceSource::Az { container, prefix }),
        _ => Err(PlaceError::Scheme { text: shown(text), scheme: scheme.to_owned() }),
    }
}

fn http(text: &str) -> Result<PlaceSource, PlaceError> {
    let wrong = |detail: String| PlaceError::Url { text: shown(text), detail };
    let url = Url::parse(text).map_err(|error| wrong(error.to_string()))?;
    if url.fragment().is_some() {
        return Err(wrong("expected no fragment (#...)".into()));
    }
    Ok(PlaceSource::Http(url))
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
    let prefix = prefix.trim_matches('/').to_owned();
    if prefix.split('/').any(|part| part == "." || part == "..") {
        return Err(wrong("expected no `.` or `..` in the prefix"));
    }
    Ok((bucket.to_owned(), prefix))
}

/// Returns a text that failed to parse, without possible passwords and tokens.
fn shown(text: &str) -> String {
    let text = text.split(['?', '#']).next().unwrap_or_default();
    match (text.find("://"), text.rfind('@')) {
        (Some(scheme), Some(at)) if at > scheme => {
            format!("{}{}", &text[..scheme + 3], &text[at + 1..])
        }
        _ => text.to_owned(),
    }
}

/// The rule by which media files of a folder are renditions of one title.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Titles {
    /// Files with matching names and content are one title.
    #[default]
    Alike,
    /// All files of a folder are one title.
    Folder,
    /// Each file is a title.
    File,
}

impl Titles {
    /// The names of all rules, as operators write them.
    pub const NAMES: [&'static str; 3] = ["alike", "folder", "file"];

    /// Returns the rule of a name.
    pub fn named(name: &str) -> Option<Self> {
        let place = Self::NAMES.iter().position(|known| *known == name)?;
        [Self::Alike, Self::Folder, Self::File].get(place).copied()
    }
}

/// Options of an origin. Those that do not apply to an origin are ignored.
#[derive(Clone, PartialEq, Eq)]
pub struct OriginOptions {
    /// Time limit for connecting, name lookup and TLS included.
    pub connect_timeout: Duration,
    /// Time limit from the request to the head of the reply.
    pub first_byte_timeout: Duration,
    /// Longest pause of a body. The whole has no limit.
    pub stall_timeout: Duration,
    /// Number of further attempts after a transient failure.
    pub retries: u32,
    /// Longest first pause before a further attempt. It doubles each time; the real one is random below it.
    pub retry_base: Duration,
    /// Hosts, as `host` or `host:port`, to which an HTTP origin may redirect besides itself.
    pub follow_redirects_to: Vec<String>,
    /// Base URLs of sibling caches, asked for a range before the origin.
    pub siblings: Vec<Url>,
    /// Time limit for the first byte of a sibling's reply.
    pub sibling_timeout: Duration,
    /// Whether files and folders whose names begin with a dot can be read; by default not. They are never listed.
    pub hidden_files: Option<bool>,
    /// The rule by which files of a folder are one title.
    pub titles: Titles,
    /// The URL of an S3 service; by default that of the environment, the profile, or AWS.
    pub s3_endpoint: Option<String>,
    /// The region of the bucket; by default that of the environment, the profile, or `us-east-1`.
    pub s3_region: Option<String>,
    /// Whether the bucket is named in the path rather than the host name; by default with an endpoint.
    pub s3_path_style: Option<bool>,
    /// Whether S3 requests are unsigned.
    pub s3_anonymous: bool,
    /// The base URL of a service compatible with Google Cloud Storage.
    pub gs_endpoint: Option<String>,
    /// Whether Google Cloud Storage requests are unsigned.
    pub gs_anonymous: bool,
    /// The Azure storage account; by default that of the environment.
    pub az_account: Option<String>,
    /// The URL of a service compatible with Azure Blob Storage.
    pub az_endpoint: Option<String>,
    /// Whether Azure requests are unsigned.
    pub az_anonymous: bool,
    /// Whether the machine's cloud role is asked for keys where none are configured. By default only if the environment
    /// names the service that provides them.
    pub instance_credentials: bool,
}

impl Default for OriginOptions {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(5),
            first_byte_timeout: Duration::from_secs(10),
            stall_timeout: Duration::from_secs(10),
            retries: 2,
            retry_base: Duration::from_millis(100),
            follow_redirects_to: Vec::new(),
            siblings: Vec::new(),
            sibling_timeout: Duration::from_millis(100),
            hidden_files: None,
            titles: Titles::default(),
            s3_endpoint: None,
            s3_region: None,
            s3_path_style: None,
            s3_anonymous: false,
            gs_endpoint: None,
            gs_anonymous: false,
            az_account: None,
            az_endpoint: None,
            az_anonymous: false,
            instance_credentials: false,
        }
    }
}

impl fmt::Debug for OriginOptions {
    /// Omits the endpoints, which may contain credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OriginOptions")
            .field("connect_timeout", &self.connect_timeout)
            .field("first_byte_timeout", &self.first_byte_timeout)
            .field("stall_timeout", &self.stall_timeout)
            .field("retries", &self.retries)
            .finish_non_exhaustive()
    }
}

impl OriginOptions {
    fn timeouts(&self) -> Timeouts {
        Timeouts { connect: self.connect_timeout, first_byte: self.first_byte_timeout, stall: self.stall_timeout }
    }
}

/// Creates the origin of a place. Remote ones repeat requests after transient failures.
///
/// # Errors
///
/// A folder does not exist or a client cannot be made. A remote origin is not asked yet.
pub fn build(spec: &PlaceSpec, options: &OriginOptions) -> Result<Arc<dyn Origin>, PlaceError> {
    let origin = with_hidden_names(spec, options)?;
    Ok(if options.hidden_files == Some(true) { origin } else { Arc::new(VisibleOrigin::new(origin)) })
}

fn with_hidden_names(spec: &PlaceSpec, options: &OriginOptions) -> Result<Arc<dyn Origin>, PlaceError> {
    let timeouts = options.timeouts();
    let client = |detail: String| PlaceError::Client { place: spec.source.to_string(), detail };
    let origin: Arc<dyn Origin> = match &spec.source {
        PlaceSource::Folder(folder) => return disk(folder.clone()),
        PlaceSource::Http(url) => {
            let allowed = &options.follow_redirects_to;
            Arc::new(HttpOrigin::new(url, timeouts, allowed).map_err(client)?)
        }
        PlaceSource::S3 { bucket, prefix } => {
            Arc::new(CloudOrigin::new(CloudKind::S3, bucket, prefix, options, timeouts).map_err(client)?)
        }
        PlaceSource::Gs { bucket, prefix } => {
            Arc::new(CloudOrigin::new(CloudKind::Gs, bucket, prefix, options, timeouts).map_err(client)?)
        }
        PlaceSource::Az { container, prefix } => {
            Arc::new(CloudOrigin::new(CloudKind::Az, container, prefix, options, timeouts).map_err(client)?)
        }
    };
    let origin = match options.siblings.as_slice() {
        [] => origin,
        siblings => Arc::new(NeighbourOrigin::new(
            siblings.iter().map(|url| sibling(url, options).map_err(client)).collect::<Result<_, _>>()?,
            origin,
            options.sibling_timeout,
        )),
    };
    // Around the siblings: a body that breaks off at one of them is resumed from another one or from the origin.
    let policy = RetryPolicy { tries: options.retries.saturating_add(1), base: options.retry_base };
    Ok(Arc::new(RetryOrigin::new(origin, policy)))
}

fn sibling(url: &Url, options: &OriginOptions) -> Result<Arc<dyn Origin>, String> {
    let begin = options.sibling_timeout;
    let timeouts = Timeouts { connect: begin, first_byte: begin, stall: begin.max(options.stall_timeout / 5) };
    Ok(Arc::new(HttpOrigin::sibling(url, timeouts)?))
}

fn disk(folder: PathBuf) -> Result<Arc<dyn Origin>, PlaceError> {
    match DiskOrigin::new(&folder) {
        Ok(origin) => Ok(Arc::new(origin)),
        Err(error) => Err(match error.kind() {
            io::ErrorKind::NotFound => PlaceError::NoSuchFolder { folder },
            io::ErrorKind::NotADirectory if folder.is_file() => return file(folder),
            io::ErrorKind::NotADirectory => PlaceError::NotAFolder { folder },
            _ => PlaceError::Unreadable { folder, detail: error.to_string() },
        }),
    }
}

/// Creates a place of one file and the subtitles beside it.
fn file(file: PathBuf) -> Result<Arc<dyn Origin>, PlaceError> {
    let unreadable = |detail: &str| PlaceError::Unreadable { folder: file.clone(), detail: detail.to_owned() };
    let name =
        file.file_name().and_then(|name| name.to_str()).ok_or_else(|| unreadable("its name is no UTF-8 text"))?;
    // The folder of `film.mp4` is the empty path.
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.map_or_else(|| PathBuf::from("."), PathBuf::from);
    let Some(single) = Single::new(name) else { return Err(PlaceError::NamesOthers { file, folder }) };
    let origin = DiskOrigin::new(&folder).map_err(|error| unreadable(&error.to_string()))?;
    Ok(Arc::new(SingleOrigin::new(origin, single)))
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
        assert_eq!(PlaceSpec::parse("films="), Err(PlaceError::Empty { text: "films=".into() }));
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
    fn what_is_wrong_is_said_without_secrets() {
        for text in [
            "ftp://user:secret@host/x",
            "s3://key:secret@bucket/x",
            "https://user:secret@host:port/x",
            "https://user:secret@host/x#y",
            "s3:///x",
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
