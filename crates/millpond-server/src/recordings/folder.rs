//! The folder of recorded files on the disk.
//!
//! A file that is being written has the name `.NAME.part`, and its writer holds a lock on it. A complete one has the marks of
//! [`millpond_media::recorded`], by which it is known as one of a recording: files without them are never touched.

use super::name_pattern::numbered;
use millpond_media::recorded::{END, FileHead, FileTail, FoundHead, FragmentWalk, HeadSearch, LONGEST_HEADER};
use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Write as _},
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

/// Most files of one name.
const MOST: u32 = 10_000;
/// Deepest folder that is read.
const DEPTH: usize = 32;
/// Age below which an empty file may still wait for the lock of its writer.
const YOUNG: Duration = Duration::from_secs(10);
/// Ends of the names of files that are no complete ones.
const PART: &str = ".part";
/// End of the name of an upload's note.
const NOTE: &str = ".upload";

/// A complete file of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecordedFile {
    /// Its path below the folder, and the name of its object.
    pub(crate) name: String,
    /// Path of the stream.
    pub(crate) stream: String,
    /// Wall time of its first frame.
    pub(crate) began: Duration,
    /// Its duration, frames and gaps.
    pub(crate) tail: FileTail,
    /// Its bytes.
    pub(crate) bytes: u64,
}

impl RecordedFile {
    /// Wall time of its end.
    pub(crate) fn ended(&self) -> Duration {
        self.began.saturating_add(self.tail.duration)
    }
}

/// The recorded files that a scan of the folder has found.
#[derive(Debug, Default)]
pub(super) struct Scan {
    /// The complete files, by name.
    pub(super) files: BTreeMap<String, Arc<RecordedFile>>,
    /// Files that are not complete, with their bytes.
    pub(super) parts: Vec<(PathBuf, u64)>,
    /// Names of files of which only the note of an upload is left.
    pub(super) orphans: Vec<String>,
}

/// The result of the recovery of an incomplete file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Recovered {
    /// Another file is written by a process that runs.
    Written,
    /// It had no whole fragment, and is removed.
    Removed,
    /// It is complete now, without the bytes behind its last whole fragment.
    Complete { name: String, cut: u64 },
}

/// The folder.
#[derive(Clone, Debug)]
pub(super) struct RecordFolder(PathBuf);

impl RecordFolder {
    pub(super) fn new(root: PathBuf) -> Self {
        Self(root)
    }

    pub(super) fn root(&self) -> &Path {
        &self.0
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Makes the file that gets a name, or one with a number behind it, when it is complete.
    pub(super) fn create(&self, name: &str) -> io::Result<(File, PathBuf)> {
        for number in 1..=MOST {
            let path = self.0.join(numbered(name, number));
            if path.symlink_metadata().is_ok() {
                continue;
            }
            let part = part_of(&path);
            match make(&part) {
                Ok(file) => {
                    // It is new, so that nobody else holds its lock.
                    file.try_lock().map_err(io::Error::from)?;
                    return Ok((file, part));
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(io::Error::new(error.kind(), format!("{}: {error}", part.display()))),
            }
        }
        Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("{MOST} files have the name {name}")))
    }

    /// Gives a complete file its name, or one with a number behind it. Returns the name.
    pub(super) fn finish(&self, part: &Path) -> io::Result<String> {
        let outside = || io::Error::new(io::ErrorKind::InvalidInput, format!("{} is no such file", part.display()));
        let name = self.name(part).and_then(|name| complete_name(&name)).ok_or_else(outside)?;
        for number in 1..=MOST {
            let name = numbered(&name, number);
            match rename_new(part, &self.0.join(&name)) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                outcome => return outcome.map(|()| name),
            }
        }
        Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("{MOST} files have the name {name}")))
    }

    /// Reads what the folder has. Files that are `known` are not read again.
    ///
    /// # Errors
    /// The folder itself can't be read.
    pub(super) fn scan(&self, known: &BTreeMap<String, Arc<RecordedFile>>) -> io::Result<Scan> {
        let mut scan = Scan::default();
        let mut folders = vec![(self.0.clone(), 0)];
        while let Some((folder, depth)) = folders.pop() {
            let entries = match fs::read_dir(&folder) {
                Ok(entries) => entries,
                // Folders are removed once they are empty.
                Err(_) if depth > 0 => continue,
                Err(error) => return Err(error),
            };
            for entry in entries.flatten() {
                let Ok(kind) = entry.file_type() else { continue };
                if kind.is_dir() && depth < DEPTH {
                    folders.push((entry.path(), depth + 1));
                } else if kind.is_file() {
                    self.take(&entry, known, &mut scan);
                }
            }
        }
        scan.orphans.retain(|name| !scan.files.contains_key(name));
        Ok(scan)
    }

    fn take(&self, entry: &fs::DirEntry, known: &BTreeMap<String, Arc<RecordedFile>>, scan: &mut Scan) {
        let path = entry.path();
        let Some((name, bytes)) = self.name(&path).zip(entry.metadata().ok().map(|data| data.len())) else { return };
        if complete_name(&name).is_some() {
            scan.parts.push((path, bytes));
        } else if let Some(name) = visible(&name, NOTE) {
            scan.orphans.push(name);
        } else if let Some(file) = known.get(&name).filter(|file| file.bytes == bytes) {
            scan.files.insert(name, file.clone());
        } else if name.ends_with(".mp4")
            && let Some((head, tail)) = File::open(&path).ok().and_then(|file| marks(&file, bytes))
        {
            let FileHead { stream, began } = head;
            scan.files.insert(name.clone(), Arc::new(RecordedFile { name, stream, began, tail, bytes }));
        }
    }

    /// Completes a file that a process left behind: cuts it behind its last whole fragment, and gives it its name.
    ///
    /// # Errors
    /// The file can't be read or changed.
    pub(super) fn recover(&self, part: &Path) -> io::Result<Recovered> {
        let mut file = OpenOptions::new().read(true).write(true).open(part)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(Recovered::Written),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let data = file.metadata()?;
        let changed = data.modified()?;
        if data.len() == 0 && changed.elapsed().is_ok_and(|age| age < YOUNG) {
            return Ok(Recovered::Written);
        }
        if marks(&file, data.len()).is_some() {
            let name = self.finish(part)?;
            return Ok(Recovered::Complete { name, cut: 0 });
        }
        let mut walk = FragmentWalk::new(data.len());
        while walk.take(&read_up_to(&file, walk.at(), LONGEST_HEADER)?) {}
        let head = head(&file);
        let (whole, Some(FileHead { began, .. })) = (walk.whole(), head) else {
            fs::remove_file(part)?;
            return Ok(Recovered::Removed);
        };
        if whole == 0 {
            fs::remove_file(part)?;
            return Ok(Recovered::Removed);
        }
        // The last fragment was written when it ended.
        let ended = changed.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let tail = FileTail { duration: ended.saturating_sub(began), ..FileTail::default() };
        file.set_len(whole)?;
        io::Seek::seek(&mut file, io::SeekFrom::End(0))?;
        let written = file.write_all(&tail.write()).and_then(|()| file.sync_all());
        if let Err(error) = written {
            // It is tried again later, with the same end.
            let _ = file.set_len(whole).and_then(|()| file.set_modified(changed));
            return Err(error);
        }
        let name = self.finish(part)?;
        Ok(Recovered::Complete { name, cut: data.len() - whole })
    }

    /// Reads one complete file.
    pub(super) fn read(&self, name: &str) -> Option<RecordedFile> {
        let file = File::open(self.0.join(name)).ok()?;
        let bytes = file.metadata().ok()?.len();
        let (FileHead { stream, began }, tail) = marks(&file, bytes)?;
        Some(RecordedFile { name: name.to_owned(), stream, began, tail, bytes })
    }

    /// Removes a file, and the folders that are empty then. One that is gone is no error.
    ///
    /// # Errors
    /// The file can't be removed.
    pub(super) fn remove(&self, name: &str) -> io::Result<()> {
        let path = self.0.join(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        self.remove_empty_above(&path);
        Ok(())
    }

    /// Removes the note of a file's upload, and the folders that are empty then.
    pub(super) fn remove_note(&self, name: &str) {
        let note = hidden(&self.0.join(name), NOTE);
        // It is not there where no upload has begun.
        let _ = fs::remove_file(&note);
        self.remove_empty_above(&note);
    }

    fn remove_empty_above(&self, path: &Path) {
        let above = path.ancestors().skip(1).take_while(|folder| *folder != self.0 && folder.starts_with(&self.0));
        for folder in above {
            // Fails for a folder that is not empty.
            if fs::remove_dir(folder).is_err() {
                break;
            }
        }
    }

    /// Gives a complete file another name, which no file has.
    ///
    /// # Errors
    /// A file has the name.
    pub(super) fn rename(&self, name: &str, new: &str) -> io::Result<()> {
        rename_new(&self.0.join(name), &self.0.join(new))
    }

    /// Reads the note of a file's upload; `None` where there is none.
    pub(super) fn note(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        match fs::read(hidden(&self.0.join(name), NOTE)) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes the note of a file's upload, whole or not at all.
    ///
    /// # Errors
    /// It can't be written.
    pub(super) fn set_note(&self, name: &str, text: &[u8]) -> io::Result<()> {
        let note = hidden(&self.0.join(name), NOTE);
        let new = hidden(&self.0.join(name), ".upload-new");
        let mut file = File::create(&new)?;
        file.write_all(text)?;
        file.sync_data()?;
        fs::rename(new, note)
    }

    /// Reads bytes of a complete file.
    ///
    /// # Errors
    /// It can't be read, or is shorter.
    pub(super) fn bytes(&self, name: &str, range: std::ops::Range<u64>) -> io::Result<Vec<u8>> {
        let wanted = range.end.saturating_sub(range.start);
        let bytes = read_up_to(&File::open(self.0.join(name))?, range.start, wanted)?;
        if bytes.len() as u64 == wanted { Ok(bytes) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    fn name(&self, path: &Path) -> Option<String> {
        path.strip_prefix(&self.0).ok()?.to_str().map(str::to_owned)
    }
}

/// The path of a file while it is written.
fn part_of(path: &Path) -> PathBuf {
    hidden(path, PART)
}

/// The path of a hidden file beside another one.
fn hidden(path: &Path, end: &str) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}{end}"))
}

/// The name that a file gets when it is complete; `None` where the name is none of a file that is written.
fn complete_name(part: &str) -> Option<String> {
    visible(part, PART)
}

/// The name of the file that a hidden one stands beside.
fn visible(hidden: &str, end: &str) -> Option<String> {
    let (folder, name) = hidden.rsplit_once('/').map_or(("", hidden), |(folder, name)| (folder, name));
    let name = name.strip_prefix('.')?.strip_suffix(end).filter(|name| name.ends_with(".mp4"))?;
    Some(if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") })
}

/// Makes a new file and its folders.
fn make(path: &Path) -> io::Result<File> {
    let create = || OpenOptions::new().read(true).write(true).create_new(true).open(path);
    // The folder may be removed meanwhile, since it is empty.
    for _ in 0..3 {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        match create() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            outcome => return outcome,
        }
    }
    create()
}

/// Renames a file to a name that no other file has.
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE).map_err(io::Error::from) {
        // Not every file system can.
        Err(error) if matches!(error.raw_os_error(), Some(22 | 38 | 95)) => {
            if to.symlink_metadata().is_ok() {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            fs::rename(from, to)
        }
        outcome => outcome,
    }
}

/// Reads at most `most` bytes at an offset.
fn read_up_to(file: &File, at: u64, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(most).unwrap_or_default()];
    let mut read = 0;
    while let Some(rest) = bytes.get_mut(read..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, at.saturating_add(read as u64)) {
            Ok(0) => break,
            Ok(count) => read += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(read);
    Ok(bytes)
}

fn head(file: &File) -> Option<FileHead> {
    let mut search = HeadSearch::default();
    loop {
        match search.take(&read_up_to(file, search.at(), LONGEST_HEADER).ok()?) {
            FoundHead::GoOn => {}
            FoundHead::At(at, length) => return FileHead::parse(&read_up_to(file, at, length).ok()?),
            FoundHead::None => return None,
        }
    }
}

/// Reads the marks of a file; `None` where it does not have both.
fn marks(file: &File, length: u64) -> Option<(FileHead, FileTail)> {
    let end = read_up_to(file, length.checked_sub(END)?, END).ok()?;
    let tail = FileTail::length(&end)?;
    let tail = FileTail::parse(&read_up_to(file, length.checked_sub(tail)?, tail).ok()?)?;
    Some((head(file)?, tail))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boxed(kind: &[u8; 4], content: &[u8]) -> Vec<u8> {
        [&(8 + content.len() as u32).to_be_bytes()[..], kind, content].concat()
    }

    fn init(stream: &str) -> Vec<u8> {
        let head = FileHead { stream: stream.to_owned(), began: Duration::from_secs(1_795_362_716) };
        [boxed(b"ftyp", b"isom"), boxed(b"moov", &[0; 50]), head.write()].concat()
    }

    fn fragment() -> Vec<u8> {
        [boxed(b"moof", &[0; 30]), boxed(b"mdat", &[1; 100])].concat()
    }

    fn written(folder: &RecordFolder, name: &str, bytes: &[u8]) -> PathBuf {
        let (mut file, part) = folder.create(name).unwrap();
        file.write_all(bytes).unwrap();
        part
    }

    #[test]
    fn files_that_a_process_left_behind_are_completed() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = RecordFolder::new(scratch.path().to_owned());
        let torn = [init("cams/door"), fragment(), fragment(), fragment()[..77].to_vec()].concat();
        let whole = torn.len() as u64 - 77;
        let part = written(&folder, "cams/door/2026-11-22/15-51-56Z.mp4", &torn);
        assert_eq!(part.file_name().unwrap(), ".15-51-56Z.mp4.part");
        let Recovered::Complete { name, cut } = folder.recover(&part).unwrap() else { panic!() };
        assert_eq!((&*name, cut), ("cams/door/2026-11-22/15-51-56Z.mp4", 77));
        let scan = folder.scan(&BTreeMap::new()).unwrap();
        let file = &scan.files[&name];
        assert_eq!((&*file.stream, scan.parts.len()), ("cams/door", 0));
        assert_eq!(fs::read(folder.path(&name)).unwrap()[..whole as usize], torn[..whole as usize]);
        // Nothing of it was a fragment.
        for bytes in [init("a"), init("a")[..20].to_vec(), [init("a"), fragment()[..30].to_vec()].concat()] {
            let part = written(&folder, "a.mp4", &bytes);
            assert_eq!(folder.recover(&part).unwrap(), Recovered::Removed);
            assert!(!part.exists());
        }
        // Complete, but without its name.
        let bytes = [init("b"), fragment(), FileTail::default().write()].concat();
        let part = written(&folder, "b.mp4", &bytes);
        assert_eq!(folder.recover(&part).unwrap(), Recovered::Complete { name: "b.mp4".into(), cut: 0 });
        assert_eq!(fs::read(folder.path("b.mp4")).unwrap(), bytes);
    }

    #[test]
    fn files_of_a_process_that_runs_are_left_alone() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = RecordFolder::new(scratch.path().to_owned());
        let (mut file, part) = folder.create("a.mp4").unwrap();
        file.write_all(&[init("a"), fragment()].concat()).unwrap();
        assert_eq!(folder.recover(&part).unwrap(), Recovered::Written);
        // Another one of the same time has another name.
        let (other, other_part) = folder.create("a.mp4").unwrap();
        assert_eq!(other_part.file_name().unwrap(), ".a-2.mp4.part");
        drop(other);
        assert_eq!(folder.recover(&other_part).unwrap(), Recovered::Written, "it is new");
        fs::write(folder.path("a.mp4"), "somebody's").unwrap();
        drop(file);
        assert_eq!(folder.finish(&part).unwrap(), "a-2.mp4");
        assert_eq!(fs::read_to_string(folder.path("a.mp4")).unwrap(), "somebody's");
    }

    #[test]
    fn files_of_others_are_not_seen() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = RecordFolder::new(scratch.path().to_owned());
        fs::write(folder.path("film.mp4"), [init("a"), fragment()].concat()).unwrap();
        fs::write(folder.path("notes.txt"), FileTail::default().write()).unwrap();
        std::os::unix::fs::symlink("/", folder.path("root")).unwrap();
        let scan = folder.scan(&BTreeMap::new()).unwrap();
        assert!(scan.files.is_empty() && scan.parts.is_empty(), "{scan:?}");
        fs::create_dir_all(folder.path("x/y")).unwrap();
        fs::write(folder.path("x/y/a.mp4"), "").unwrap();
        fs::write(folder.path("x/b.mp4"), "").unwrap();
        folder.remove("x/y/a.mp4").unwrap();
        folder.remove("x/y/a.mp4").unwrap();
        assert!(!folder.path("x/y").exists() && folder.path("x/b.mp4").exists(), "empty folders are removed");
    }
}
