//! One file of a folder as a place of its own, with the subtitles beside it.

use std::ops::Range;

use crate::error::{At, OriginError};
use crate::origin::disk::DiskOrigin;
use crate::origin::{BoxFuture, Fetched, Listing, ObjectMeta, OpenFile, Origin, OriginFacts};
use crate::path::ObjectPath;

/// The names that belong to one file.
#[derive(Clone, Debug)]
pub(crate) struct Single {
    name: String,
    /// The name without its extension, with a dot behind it.
    stem: String,
}

impl Single {
    /// Returns the names of a file; `None` for a server manifest or an index file, which refer to other files.
    pub(crate) fn new(name: &str) -> Option<Self> {
        let lower = name.to_ascii_lowercase();
        if [".smil", ".ism", ".m3u8", ".dref.mp4"].iter().any(|end| lower.ends_with(end)) {
            return None;
        }
        let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
        Some(Self { name: name.to_owned(), stem: format!("{stem}.") })
    }

    /// Returns whether a name is the file's or that of its subtitles (`film.en.vtt` of `film.mp4`).
    fn has(&self, name: &str) -> bool {
        let is_subtitle = || {
            let lower = name.to_ascii_lowercase();
            lower.ends_with(".vtt") || lower.ends_with(".srt")
        };
        name == self.name || (name.starts_with(&self.stem) && is_subtitle())
    }
}

/// A folder that shows only one file and its subtitles.
#[derive(Debug)]
pub(crate) struct SingleOrigin {
    inner: DiskOrigin,
    single: Single,
}

impl SingleOrigin {
    pub(crate) fn new(inner: DiskOrigin, single: Single) -> Self {
        Self { inner, single }
    }

    fn check(&self, path: &ObjectPath) -> Result<(), OriginError> {
        if self.single.has(path.as_str()) {
            return Ok(());
        }
        Err(OriginError::NotFound { at: At::new(&self.describe(), path.as_str()) })
    }
}

impl Origin for SingleOrigin {
    fn describe(&self) -> String {
        format!("{}/{}", self.inner.describe().trim_end_matches('/'), self.single.name)
    }

    fn head<'a>(&'a self, path: &'a ObjectPath) -> BoxFuture<'a, Result<ObjectMeta, OriginError>> {
        match self.check(path) {
            Ok(()) => self.inner.head(path),
            Err(error) => Box::pin(async { Err(error) }),
        }
    }

    fn read<'a>(
        &'a self,
        path: &'a ObjectPath,
        range: Range<u64>,
        expected: Option<&'a ObjectMeta>,
    ) -> BoxFuture<'a, Result<Fetched, OriginError>> {
        match self.check(path) {
            Ok(()) => self.inner.read(path, range, expected),
            Err(error) => Box::pin(async { Err(error) }),
        }
    }

    fn list<'a>(&'a self, folder: &'a ObjectPath) -> BoxFuture<'a, Result<Listing, OriginError>> {
        Box::pin(async move {
            if !folder.is_root() {
                return Err(OriginError::NotFound { at: At::new(&self.describe(), folder.as_str()) });
            }
            let mut listing = self.inner.list(folder).await?;
            listing.entries.retain(|entry| !entry.folder && self.single.has(&entry.name));
            Ok(listing)
        })
    }

    fn open_file<'a>(&'a self, path: &'a ObjectPath) -> BoxFuture<'a, Result<Option<OpenFile>, OriginError>> {
        match self.check(path) {
            Ok(()) => self.inner.open_file(path),
            Err(error) => Box::pin(async { Err(error) }),
        }
    }

    fn facts(&self) -> OriginFacts {
        OriginFacts { is_local: true, ..OriginFacts::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_the_file_and_its_subtitles_are_there() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["film.mp4", "film.en.vtt", "film.de.SRT", "film.txt", "film2.vtt", "other.mp4", "film.2.mp4"] {
            std::fs::write(dir.path().join(name), "x").unwrap();
        }
        std::fs::create_dir(dir.path().join("film.folder.vtt")).unwrap();
        let single = Single::new("film.mp4").unwrap();
        let origin = SingleOrigin::new(DiskOrigin::new(dir.path()).unwrap(), single);
        let listing = origin.list(&ObjectPath::root()).await.unwrap();
        let names: Vec<&str> = listing.entries.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, ["film.de.SRT", "film.en.vtt", "film.mp4"]);
        for name in ["other.mp4", "film.txt", "film2.vtt", "film.2.mp4"] {
            let path = ObjectPath::parse(name).unwrap();
            assert!(origin.head(&path).await.unwrap_err().is_not_found(), "{name}");
            assert!(origin.read(&path, 0..1, None).await.unwrap_err().is_not_found(), "{name}");
            assert!(origin.open_file(&path).await.unwrap_err().is_not_found(), "{name}");
        }
        assert!(origin.open_file(&ObjectPath::parse("film.mp4").unwrap()).await.unwrap().is_some());
        assert!(origin.list(&ObjectPath::parse("folder").unwrap()).await.unwrap_err().is_not_found());
        assert!(["a.smil", "a.ISM", "a.m3u8", "a.dref.mp4"].iter().all(|name| Single::new(name).is_none()));
    }
}
