//! Places by name, and their origins.

use crate::{LiveLocation, LiveReach, OptionGroup, PlaceError, PlaceKind, PlaceSource, objects, urls};
use millpond_store::{
    BucketOptions, Homes, OptionFault, Origin, OriginLocation, OriginOptions, build_with_homes, credentials, faults,
};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};
use url::Url;

/// A place: its name and its location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlaceSpec {
    /// The name; empty without one.
    pub name: String,
    /// The location of the objects or streams.
    pub source: PlaceSource,
}

impl PlaceSpec {
    /// Parses `PLACE` or `NAME=PLACE`. A name consists of letters, digits, `-` and `_`. A folder with a `=` in its name
    /// is written `./a=b`.
    ///
    /// # Errors
    ///
    /// The text is neither a folder nor a supported URL. Its existence is not checked.
    pub fn parse(text: &str) -> Result<Self, PlaceError> {
        let (name, place) = match text.split_once('=') {
            Some((name, place)) if is_name(name) => (name, place),
            // A folder may have such a name, as ./a=b.
            Some((name, place)) if !name.contains(['/', ':']) && is_no_folder(place) => {
                return Err(PlaceError::Name { name: name.to_owned() });
            }
            _ => ("", text),
        };
        if place.is_empty() {
            let text = text.to_owned();
            return Err(PlaceError::Empty { text });
        }
        let source = match (place.split_once("://"), LiveLocation::parse_word(place)) {
            (Some((scheme, _)), _) => remote(place, scheme)?,
            (None, Some(live)) => PlaceSource::Live(live),
            (None, None) => PlaceSource::Objects(local(place)?),
        };
        Ok(Self { name: name.to_owned(), source })
    }

    /// Returns whether the place is reached over a network: its slices are worth keeping.
    pub fn is_remote(&self) -> bool {
        matches!(&self.source, PlaceSource::Objects(location) if !matches!(location, OriginLocation::Folder(_)))
    }

    /// Returns whether the place has live streams instead of objects. It is then none of the store's.
    pub fn is_live(&self) -> bool {
        self.live().is_some()
    }

    /// Returns whether it may have stored titles of live servers, whose segments are worth keeping.
    pub fn has_titles(&self) -> bool {
        self.live().is_some_and(|live| live.kind().place.takes(OptionGroup::RtspServer))
    }

    /// Returns whether its streams are pushed.
    pub fn is_pushed(&self) -> bool {
        self.live().is_some_and(|live| live.kind().reach == LiveReach::Pushed)
    }

    /// Returns the location of its live streams, if it has such.
    pub fn live(&self) -> Option<&LiveLocation> {
        match &self.source {
            PlaceSource::Live(location) => Some(location),
            PlaceSource::Objects(_) => None,
        }
    }

    /// Returns its folder, or its only file, if it is on disk.
    pub fn folder(&self) -> Option<&Path> {
        match &self.source {
            PlaceSource::Objects(OriginLocation::Folder(folder)) => Some(folder),
            _ => None,
        }
    }

    /// Returns its kind.
    pub fn kind(&self) -> &'static PlaceKind {
        self.source.kind()
    }

    /// Creates its origin, where `homes` are the nodes of a cluster that are asked before a remote one.
    ///
    /// # Errors
    ///
    /// A folder does not exist, a client cannot be made, or the place has live streams. A remote origin is not asked yet.
    pub fn origin(
        &self,
        options: &OriginOptions,
        homes: Option<Arc<dyn Homes>>,
    ) -> Result<Arc<dyn Origin>, PlaceError> {
        let location = self.objects().ok_or_else(|| PlaceError::Live { place: self.source.to_string() })?;
        if let Some(file) = self.folder().filter(|path| is_configuration(path)) {
            return Err(PlaceError::Configuration { file: file.to_owned() });
        }
        Ok(build_with_homes(location, options, homes)?)
    }

    /// Returns the location of its objects, if it has such.
    pub fn objects(&self) -> Option<&OriginLocation> {
        match &self.source {
            PlaceSource::Objects(location) => Some(location),
            PlaceSource::Live(_) => None,
        }
    }

    /// Returns the faults of its options. Neither folders nor servers are asked.
    pub fn faults(&self, options: &OriginOptions) -> Vec<OptionFault> {
        self.objects().map_or_else(Vec::new, |location| faults(location, options))
    }

    /// Describes the source of the keys that requests to it are signed with, without any secret; `None` for a place that is no
    /// bucket. Nothing is asked.
    pub fn credentials(&self, options: &BucketOptions) -> Option<String> {
        credentials(self.objects()?, options)
    }

    /// Returns a URL of the server of its objects; `None` for a folder, or where only the environment names the server. It may
    /// hold secrets.
    pub fn server(&self, options: &BucketOptions) -> Option<Url> {
        objects::server(self.objects()?, options)
    }
}

/// Returns whether a path is a file of settings.
fn is_configuration(path: &Path) -> bool {
    path.extension().is_some_and(|end| end.eq_ignore_ascii_case("toml")) && path.is_file()
}

/// Returns the folder of a text without a scheme.
fn local(text: &str) -> Result<OriginLocation, PlaceError> {
    match urls::cut_scheme(text) {
        Some(scheme) => {
            let text = urls::shown(text);
            let detail = format!("expected {scheme}:// with two slashes, or ./{text} for a folder of this name");
            Err(PlaceError::Url { text, detail })
        }
        None => Ok(OriginLocation::Folder(PathBuf::from(text))),
    }
}

/// Whether a text is a URL, or a word for live streams.
fn is_no_folder(text: &str) -> bool {
    text.split_once("://").is_some_and(|(scheme, _)| is_name(scheme)) || LiveLocation::parse_word(text).is_some()
}

/// Returns whether a text can be the name of a place.
pub(crate) fn is_name(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    !text.is_empty() && text.chars().all(allowed)
}

fn remote(text: &str, scheme: &str) -> Result<PlaceSource, PlaceError> {
    let small = scheme.to_ascii_lowercase();
    if let Some(location) = objects::parse(text, &small) {
        return location.map(PlaceSource::Objects);
    }
    match LiveLocation::parse(text, &small) {
        Some(location) => location.map(PlaceSource::Live),
        None => Err(PlaceError::Scheme { text: urls::shown(text), scheme: scheme.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> (String, PlaceSource) {
        let spec = PlaceSpec::parse(text).unwrap();
        (spec.name, spec.source)
    }

    fn folder(path: &str) -> PlaceSource {
        PlaceSource::Objects(OriginLocation::Folder(PathBuf::from(path)))
    }

    #[test]
    fn names_and_folders() {
        assert_eq!(parse("/data"), (String::new(), folder("/data")));
        assert_eq!(parse("films=/data"), ("films".into(), folder("/data")));
        assert_eq!(parse("./a=b"), (String::new(), folder("./a=b")));
        assert_eq!(parse("a=b=c"), ("a".into(), folder("b=c")));
        let cut = PlaceSpec::parse("films=http:/media.example").unwrap_err().to_string();
        assert!(cut.contains("expected http:// with two slashes"), "{cut}");
        assert!(PlaceSpec::parse("./s3:x").is_ok());
        assert_eq!(PlaceSpec::parse("films="), Err(PlaceError::Empty { text: "films=".into() }));
        for (text, name) in [("live.tv=publish:", "live.tv"), ("a b=http://h/", "a b"), ("=publish:", "")] {
            assert_eq!(PlaceSpec::parse(text), Err(PlaceError::Name { name: name.into() }), "{text}");
        }
        assert_eq!(parse("a b=films"), (String::new(), folder("a b=films")));
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
    fn rtsp_servers_are_no_origins() {
        let spec = PlaceSpec::parse("cams=rtsp://user:secret@10.0.0.7:8554/a?x=secret").unwrap();
        assert!(spec.is_live() && !spec.is_remote());
        assert_eq!((spec.name.as_str(), spec.source.to_string()), ("cams", "rtsp://10.0.0.7:8554/a".into()));
        let error = spec.origin(&OriginOptions::default(), None).unwrap_err();
        assert_eq!(error, PlaceError::Live { place: "rtsp://10.0.0.7:8554/a".into() });
        assert_eq!(error.to_string(), "rtsp://10.0.0.7:8554/a: has live streams and no files");
        assert!(PlaceSpec::parse("rtsps://host").unwrap().is_live());
    }

    #[test]
    fn streams_may_be_pushed() {
        let spec = PlaceSpec::parse("live=publish:").unwrap();
        assert!(spec.is_live() && !spec.is_remote());
        assert_eq!((spec.name.as_str(), spec.source.to_string()), ("live", "publish:".into()));
        assert!(matches!(spec.origin(&OriginOptions::default(), None), Err(PlaceError::Live { .. })));
    }

    #[test]
    fn transport_streams_are_no_origins() {
        for text in ["udp://239.1.1.1:5000?interface=eth0", "rtp://[ff15::1]:5000", "udp://@0.0.0.0:5000"] {
            let spec = PlaceSpec::parse(&format!("tv={text}")).unwrap();
            assert!(spec.is_live() && !spec.is_remote(), "{text}");
        }
        let spec = PlaceSpec::parse("udp://239.1.1.1:5000?interface=eth0").unwrap();
        assert_eq!(spec.source.to_string(), "udp://239.1.1.1:5000");
        assert!(matches!(spec.origin(&OriginOptions::default(), None), Err(PlaceError::Live { .. })));
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
    fn a_file_of_settings_is_no_place() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("millpond.TOML");
        std::fs::write(&file, "x").unwrap();
        let origin = |path: PathBuf| {
            let source = PlaceSource::Objects(OriginLocation::Folder(path));
            PlaceSpec { name: String::new(), source }.origin(&OriginOptions::default(), None)
        };
        assert_eq!(origin(file.clone()).unwrap_err(), PlaceError::Configuration { file });
        let none = dir.path().join("none.toml");
        assert_eq!(origin(none.clone()).unwrap_err(), PlaceError::NoSuchFolder { folder: none });
        assert!(origin(dir.path().to_owned()).is_ok());
    }
}
