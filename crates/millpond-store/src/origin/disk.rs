//! A folder on disk.

use std::fs::File;
use std::io::{self, IoSliceMut};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use futures_util::stream;
use rustix::fs::{AtFlags, Dir, FileType, OFlags, Stat, fstat, statat};
use rustix::io::{ReadWriteFlags, preadv2};

use crate::error::{At, OriginError};
use crate::freshness::Freshness;
use crate::origin::links::{FoldersAbove, LeftOutLinks};
use crate::origin::odd_keys::OddKeys;
use crate::origin::resolve::{ResolveError, Root};
use crate::origin::{
    BoxFuture, Entry, Fetched, Listing, ObjectMeta, OpenFile, Origin, OriginBody, OriginFacts, SentBy,
};
use crate::path::ObjectPath;
use crate::tags::StatedTags;
use crate::version::Version;

/// Bytes of one read of a file.
const CHUNK: u64 = 256 * 1024;

/// A folder and its contents. Only regular files are objects. Symbolic links are followed while they stay inside. Lists leave out links
/// that lead out of the folder, and links that lead to a folder above them. So a walk over all lists ends in spite of links.
///
/// System calls run on the runtime's blocking threads, so a slow disk delays only its own readers.
#[derive(Debug, Clone)]
pub struct DiskOrigin {
    root: Arc<Root>,
    name: Arc<str>,
    odd_names: OddKeys,
    left_out: LeftOutLinks,
}

impl DiskOrigin {
    /// Opens an existing folder by its real path.
    ///
    /// # Errors
    ///
    /// The folder does not exist, is not a folder, or cannot be read.
    pub fn new(folder: &Path) -> io::Result<Self> {
        let root = Root::new(folder)?;
        let name = Arc::from(root.path().display().to_string());
        Ok(Self { root: Arc::new(root), name, odd_names: OddKeys::default(), left_out: LeftOutLinks::default() })
    }

    /// Returns the real path of the folder.
    pub fn folder(&self) -> &Path {
        self.root.path()
    }

    fn at(&self, path: &ObjectPath) -> At {
        At { origin: self.name.clone(), path: Arc::from(path.as_str()) }
    }

    /// Runs `work` on a blocking thread.
    async fn blocking<T: Send + 'static>(
        &self,
        path: &ObjectPath,
        work: impl FnOnce(&Self, &ObjectPath) -> Result<T, OriginError> + Send + 'static,
    ) -> Result<T, OriginError> {
        let (origin, owned) = (self.clone(), path.clone());
        tokio::task::spawn_blocking(move || work(&origin, &owned)).await.unwrap_or_else(|error| {
            Err(OriginError::Io { at: self.at(path), kind: io::ErrorKind::Other, detail: error.to_string() })
        })
    }

    /// Opens a regular file.
    fn open_now(&self, path: &ObjectPath) -> Result<OpenFile, OriginError> {
        let fd = self.open_fd(path, OFlags::empty())?;
        let stat = fstat(&fd).map_err(|errno| self.error(path, errno.into()))?;
        let kind = FileType::from_raw_mode(stat.st_mode);
        if kind != FileType::RegularFile {
            return Err(self.not_a(path, "a file", kind));
        }
        Ok((Arc::new(File::from(fd)), meta_of(&stat)))
    }

    fn open_fd(&self, path: &ObjectPath, extra: OFlags) -> Result<OwnedFd, OriginError> {
        self.root.open(path, extra).map_err(|error| match error {
            ResolveError::Outside => OriginError::Outside { at: self.at(path) },
            ResolveError::Io(error) => self.error(path, error),
        })
    }

    fn list_now(&self, folder: &ObjectPath) -> Result<Vec<Entry>, OriginError> {
        let fd = self.open_fd(folder, OFlags::empty())?;
        let stat = fstat(&fd).map_err(|errno| self.error(folder, errno.into()))?;
        let kind = FileType::from_raw_mode(stat.st_mode);
        if kind != FileType::Directory {
            return Err(self.not_a(folder, "a folder", kind));
        }
        let dir = Dir::read_from(&fd).map_err(|errno| self.error(folder, errno.into()))?;
        let (mut entries, mut odd, mut above) = (Vec::new(), Vec::new(), None);
        for entry in dir {
            let entry = entry.map_err(|errno| self.error(folder, errno.into()))?;
            // No URL path has a name that is not UTF-8.
            let Ok(name) = entry.file_name().to_str() else {
                odd.push(within(folder, &entry.file_name().to_string_lossy()));
                continue;
            };
            if ObjectPath::parse(name).is_err() && !matches!(name, "." | "..") {
                odd.push(within(folder, name));
            } else if !name.starts_with('.') {
                entries.extend(self.entry(&fd, folder, name, &mut above));
            }
        }
        self.odd_names.tell(&self.name, &odd);
        entries.sort();
        Ok(entries)
    }

    /// Returns the entry of a name in a folder; `None` where the name is no file or folder, is a link that is left out, or has been
    /// removed meanwhile. `above` has the folder and all folders above it, once a link to a folder was found.
    fn entry(&self, fd: &OwnedFd, folder: &ObjectPath, name: &str, above: &mut Option<FoldersAbove>) -> Option<Entry> {
        let mut stat = statat(fd, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink {
            stat = self.target(&folder.join(name).ok()?)?;
            if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
                let above = above.get_or_insert_with(|| FoldersAbove::of(self.root.path(), folder));
                if above.contain(&stat) {
                    self.left_out.tell_back(&self.name, folder.join(name).ok()?.as_str());
                    return None;
                }
            }
        }
        let (folder, len, modified) = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => (true, 0, None),
            FileType::RegularFile => (false, len_of(&stat), modified(&stat)),
            _ => return None,
        };
        let name = name.to_owned();
        Some(Entry { name, folder, len, modified })
    }

    /// Returns the target of a link; `None` where the target is missing, or outside of the place.
    fn target(&self, link: &ObjectPath) -> Option<Stat> {
        match self.root.open(link, OFlags::empty()) {
            Ok(target) => fstat(&target).ok(),
            Err(ResolveError::Outside) => {
                self.left_out.tell_outside(&self.name, link.as_str());
                None
            }
            Err(ResolveError::Io(_)) => None,
        }
    }

    fn not_a(&self, path: &ObjectPath, expected: &'static str, kind: FileType) -> OriginError {
        OriginError::NotAFile {
            at: self.at(path),
            expected,
            found: match kind {
                FileType::RegularFile => "a file",
                FileType::Directory => "a folder",
                FileType::Fifo => "a FIFO",
                FileType::Socket => "a socket",
                FileType::CharacterDevice | FileType::BlockDevice => "a device",
                _ => "something else",
            },
        }
    }

    fn error(&self, path: &ObjectPath, error: io::Error) -> OriginError {
        let at = self.at(path);
        let detail = error.to_string();
        // ENXIO is the error of opening a socket, or a FIFO without a writer.
        if error.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error()) {
            return OriginError::NotAFile { at, expected: "a file", found: "a socket or a device" };
        }
        match error.kind() {
            // A file in place of a folder, or a name that is too long: there is no such object.
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::InvalidFilename => {
                OriginError::NotFound { at }
            }
            io::ErrorKind::PermissionDenied => OriginError::Forbidden { at, detail },
            kind => OriginError::Io { at, kind, detail },
        }
    }

    async fn read_range(
        &self,
        path: &ObjectPath,
        range: Range<u64>,
        expected: Option<&ObjectMeta>,
    ) -> Result<Fetched, OriginError> {
        let (file, meta) = self.blocking(path, |origin, path| origin.open_now(path)).await?;
        let at = self.at(path);
        let range = check(&at, &meta, range, expected)?;
        let body = file_body(self.clone(), path.clone(), file, range.clone());
        Ok(Fetched { meta, range, body, sender: SentBy::Origin })
    }
}

/// Returns the path of a name in a folder. The path may be invalid for objects.
fn within(folder: &ObjectPath, name: &str) -> String {
    if folder.is_root() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// Checks version and bounds, for origins that know the metadata before they read.
pub(crate) fn check(
    at: &At,
    meta: &ObjectMeta,
    range: Range<u64>,
    expected: Option<&ObjectMeta>,
) -> Result<Range<u64>, OriginError> {
    if let Some(expected) = expected
        && expected.version != meta.version
    {
        return Err(OriginError::Changed {
            at: at.clone(),
            expected: expected.version.clone(),
            found: Some(meta.version.clone()),
        });
    }
    if range.start > meta.len {
        return Err(OriginError::OutOfRange { at: at.clone(), start: range.start, len: Some(meta.len) });
    }
    Ok(range.start..range.end.clamp(range.start, meta.len))
}

fn file_body(origin: DiskOrigin, path: ObjectPath, file: Arc<File>, range: Range<u64>) -> OriginBody {
    let total = range.end - range.start;
    Box::pin(stream::try_unfold(range, move |rest| {
        let (origin, path, file) = (origin.clone(), path.clone(), file.clone());
        async move {
            if rest.is_empty() {
                return Ok(None);
            }
            let part = rest.start..rest.end.min(rest.start + CHUNK);
            let next = part.end..rest.end;
            let received = rest.start + total - rest.end;
            let bytes = origin
                .blocking(&path, move |origin, path| {
                    read_at(&file, part).map_err(|error| match error.kind() {
                        io::ErrorKind::UnexpectedEof => OriginError::Truncated {
                            at: origin.at(path),
                            expected: total,
                            received,
                            detail: "the file became shorter".into(),
                        },
                        _ => origin.error(path, error),
                    })
                })
                .await?;
            Ok(Some((bytes, next)))
        }
    }))
}

/// Reads exactly one range of a file. At most one chunk is allocated ahead of its bytes.
pub(crate) fn read_at(file: &File, range: Range<u64>) -> io::Result<Bytes> {
    let mut buffer = Vec::new();
    let mut offset = range.start;
    while offset < range.end {
        let part = usize::try_from((range.end - offset).min(CHUNK * 16)).unwrap_or(usize::MAX);
        let begin = buffer.len();
        buffer.resize(begin.saturating_add(part), 0);
        file.read_exact_at(&mut buffer[begin..], offset)?;
        offset += part as u64;
    }
    Ok(buffer.into())
}

/// Reads a range that is in the page cache. Returns `None` where a part of it would need the disk.
pub(crate) fn read_resident(file: &File, range: &Range<u64>) -> Option<Bytes> {
    let length = usize::try_from(range.end.checked_sub(range.start)?).ok()?;
    let mut buffer = vec![0; length];
    let mut read = 0;
    while read < length {
        let part = &mut [IoSliceMut::new(&mut buffer[read..])];
        match preadv2(file, part, range.start + read as u64, ReadWriteFlags::NOWAIT) {
            Ok(count) if count > 0 => read += count,
            _ => return None,
        }
    }
    Some(buffer.into())
}

/// Returns whether an open file is still the version that was opened: another program may have written into it.
pub(crate) fn is_unchanged(file: &File, meta: &ObjectMeta) -> io::Result<bool> {
    Ok(meta_of(&fstat(file)?).version == meta.version)
}

fn len_of(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}

fn meta_of(stat: &Stat) -> ObjectMeta {
    let len = len_of(stat);
    let nanoseconds = i128::from(stat.st_mtime) * 1_000_000_000 + i128::from(stat.st_mtime_nsec);
    let version = format!("d{nanoseconds:x}-{:x}-{len:x}", stat.st_ino);
    ObjectMeta {
        len,
        version: Version::new(&version),
        etag: None,
        modified: modified(stat),
        content_type: None,
        content_disposition: None,
        content_language: None,
        content_encoding: None,
        freshness: Freshness::default(),
        tags: StatedTags::default(),
    }
}

fn modified(stat: &Stat) -> Option<SystemTime> {
    let seconds = u64::try_from(stat.st_mtime).ok()?;
    let nanoseconds = u32::try_from(stat.st_mtime_nsec).ok()?;
    UNIX_EPOCH.checked_add(Duration::new(seconds, nanoseconds))
}

impl Origin for DiskOrigin {
    fn describe(&self) -> String {
        self.name.to_string()
    }

    fn head<'a>(&'a self, path: &'a ObjectPath) -> BoxFuture<'a, Result<ObjectMeta, OriginError>> {
        Box::pin(async move {
            let (_, meta) = self.blocking(path, |origin, path| origin.open_now(path)).await?;
            Ok(meta)
        })
    }

    fn read<'a>(
        &'a self,
        path: &'a ObjectPath,
        range: Range<u64>,
        expected: Option<&'a ObjectMeta>,
    ) -> BoxFuture<'a, Result<Fetched, OriginError>> {
        Box::pin(self.read_range(path, range, expected))
    }

    fn list<'a>(&'a self, folder: &'a ObjectPath) -> BoxFuture<'a, Result<Listing, OriginError>> {
        Box::pin(self.blocking(folder, |origin, folder| origin.list_now(folder).map(Listing::from)))
    }

    fn open_file<'a>(&'a self, path: &'a ObjectPath) -> BoxFuture<'a, Result<Option<OpenFile>, OriginError>> {
        Box::pin(async move { self.blocking(path, |origin, path| origin.open_now(path)).await.map(Some) })
    }

    fn facts(&self) -> OriginFacts {
        OriginFacts { is_local: true, ..OriginFacts::default() }
    }
}

#[cfg(test)]
mod tests {
    use rustix::fs::{CWD, Mode, mkfifoat};

    use super::*;

    fn path(text: &str) -> ObjectPath {
        ObjectPath::parse(text).unwrap()
    }

    #[tokio::test]
    async fn only_regular_files_are_objects() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("folder")).unwrap();
        std::fs::write(dir.path().join("file"), "12345").unwrap();
        mkfifoat(CWD, dir.path().join("fifo"), Mode::RUSR | Mode::WUSR).unwrap();
        let socket = std::os::unix::net::UnixListener::bind(dir.path().join("socket")).unwrap();
        let origin = DiskOrigin::new(dir.path()).unwrap();

        for (name, found) in [("folder", "a folder"), ("fifo", "a FIFO"), ("socket", "a socket or a device")] {
            let error = origin.open_file(&path(name)).await.unwrap_err();
            assert!(matches!(error, OriginError::NotAFile { found: f, .. } if f == found), "{name}: {error}");
            assert_eq!(error.status(), 404);
        }
        drop(socket);
        for name in ["none", "file/below", &"n".repeat(300)] {
            let error = origin.head(&path(name)).await.unwrap_err();
            assert!(error.is_not_found(), "{error}");
        }
        assert!(matches!(origin.list(&path("file")).await, Err(OriginError::NotAFile { .. })));
        let names = origin.list(&ObjectPath::root()).await.unwrap().entries;
        assert_eq!(names.len(), 2, "the FIFO and the socket are left out");
    }

    #[tokio::test]
    async fn names_that_no_path_has_are_left_out_alone() {
        use std::os::unix::ffi::OsStrExt as _;
        let dir = tempfile::tempdir().unwrap();
        for name in [&b"a\\b.mp4"[..], b"caf\xe9.mp4", b"c.mp4"] {
            std::fs::write(dir.path().join(std::ffi::OsStr::from_bytes(name)), "1").unwrap();
        }
        let entries = DiskOrigin::new(dir.path()).unwrap().list(&ObjectPath::root()).await.unwrap().entries;
        let names: Vec<_> = entries.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, ["c.mp4"]);
        // The log names the left-out files with their folder.
        assert_eq!([path("tv/one"), ObjectPath::root()].map(|folder| within(&folder, "a\\b")), ["tv/one/a\\b", "a\\b"]);
    }

    #[tokio::test]
    async fn a_link_out_of_the_folder_is_refused_and_not_listed() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        std::fs::create_dir(&root).unwrap();
        std::fs::write(dir.path().join("secret"), "s").unwrap();
        std::fs::write(root.join("file"), "12345").unwrap();
        std::os::unix::fs::symlink("../secret", root.join("out")).unwrap();
        std::os::unix::fs::symlink("file", root.join("in")).unwrap();
        let origin = DiskOrigin::new(&root).unwrap();
        let error = origin.head(&path("out")).await.unwrap_err();
        assert!(matches!(error, OriginError::Outside { .. }));
        assert_eq!(error.status(), 404);
        let entries = origin.list(&ObjectPath::root()).await.unwrap().entries;
        let names: Vec<_> = entries.iter().map(|e| (e.name.as_str(), e.len)).collect();
        assert_eq!(names, [("file", 5), ("in", 5)]);
    }

    /// Returns the paths of all folders and files that a walk over lists finds, sorted.
    async fn walked(origin: &DiskOrigin) -> Vec<String> {
        let (mut found, mut folders) = (Vec::new(), vec![ObjectPath::root()]);
        while let Some(folder) = folders.pop() {
            for entry in origin.list(&folder).await.unwrap().entries {
                let path = folder.join(&entry.name).unwrap();
                found.push(path.as_str().to_owned());
                assert!(found.len() < 100, "no end: {path:?}");
                folders.extend(entry.folder.then_some(path));
            }
        }
        found.sort();
        found
    }

    #[tokio::test]
    async fn a_link_to_a_folder_above_it_is_not_listed() {
        use std::os::unix::fs::symlink;
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::fs::create_dir_all(root.join("c/d")).unwrap();
        std::fs::write(root.join("a/film"), "1").unwrap();
        symlink("..", root.join("a/b/up")).unwrap();
        symlink(".", root.join("a/b/same")).unwrap();
        symlink("../..", root.join("a/b/top")).unwrap();
        symlink(&root, root.join("whole")).unwrap();
        // Two folders with links to each other, and a link to a folder whose real place is below another one.
        symlink("../c", root.join("a/c")).unwrap();
        symlink("../a", root.join("c/a")).unwrap();
        symlink("c/d", root.join("d")).unwrap();
        symlink("..", root.join("c/d/back")).unwrap();
        let origin = DiskOrigin::new(&root).unwrap();
        let expected = ["a", "a/b", "a/c", "a/c/d", "a/film", "c", "c/a", "c/a/b", "c/a/film", "c/d", "d"];
        assert_eq!(walked(&origin).await, expected);
        // A path through the links still opens.
        assert!(origin.head(&path("a/b/up/film")).await.is_ok());
    }

    #[tokio::test]
    async fn writing_into_a_file_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let name = dir.path().join("file");
        std::fs::write(&name, "12345").unwrap();
        let origin = DiskOrigin::new(dir.path()).unwrap();
        let (file, meta) = origin.open_file(&path("file")).await.unwrap().unwrap();
        assert!(is_unchanged(&file, &meta).unwrap());
        std::fs::write(&name, "123456").unwrap();
        assert!(!is_unchanged(&file, &meta).unwrap());
    }

    #[test]
    fn a_folder_that_is_not_there_is_an_error() {
        assert!(DiskOrigin::new(Path::new("/nonexistent/folder")).is_err());
    }
}
