//! Indexes on the disk, across restarts: a bounded number of files, evicted in the order of their last use.
//!
//! A file is written under another name and renamed, so that a killed process leaves whole files or none. Every index
//! can be built again; files are therefore removed whenever there are too many.

use millpond_media::Movie;
use std::{
    collections::{BTreeMap, HashMap},
    fs::File,
    io::{self, Read as _},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

/// Version of the file format. Files of another version are removed.
const FORMAT: &[u8; 8] = b"MPINDX20";
/// Most index files: listing them at a start takes well below a second.
const MOST_FILES: usize = 16_384;
/// Index files may take `cache-size` divided by this.
const SHARE: u64 = 16;
/// Files that are being written are younger than this.
const BEING_WRITTEN: Duration = Duration::from_secs(600);
/// Offset basis of FNV-1a.
pub(crate) const SEED: u64 = 0xcbf2_9ce4_8422_2325;

/// Bytes before the key: format, checksum, and the memory that the index takes.
const HEAD: usize = FORMAT.len() + 16;

/// Cost of loading a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    /// Bytes of the file.
    file: u64,
    /// Bytes of memory that the index in it takes.
    heap: u64,
}

impl Cost {
    /// Bytes of memory while it is loaded.
    pub(crate) fn memory(self) -> u64 {
        self.file.saturating_add(self.heap)
    }
}

/// The folder of index files, and a list of them.
#[derive(Debug)]
pub(crate) struct IndexFiles {
    folder: PathBuf,
    most_bytes: u64,
    most_files: usize,
    // The lock is held for look-ups in maps; files are read, written and removed without it.
    known: Mutex<Known>,
}

/// Files by name and by their last use.
#[derive(Debug, Default)]
struct Known {
    files: HashMap<String, (u64, u64)>,
    by_use: BTreeMap<u64, String>,
    bytes: u64,
    clock: u64,
}

impl IndexFiles {
    /// Files in `folder`, which may take a sixteenth of `cache_size` bytes.
    pub(crate) fn new(folder: PathBuf, cache_size: u64) -> Self {
        Self { folder, most_bytes: cache_size / SHARE, most_files: MOST_FILES, known: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lists the files of an earlier process. Removes files of other formats, unfinished ones, and those over the bounds.
    /// Blocks while the disk works.
    pub(crate) fn scan(&self) {
        let Ok(entries) = std::fs::read_dir(&self.folder) else { return };
        let mut found = Vec::new();
        for entry in entries.flatten() {
            let Ok(meta) = entry.metadata() else { continue };
            let (Ok(name), true) = (entry.file_name().into_string(), meta.is_file()) else { continue };
            let modified = meta.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            if name.ends_with(".index") && is_current(&entry.path()) {
                found.push((modified, name, meta.len()));
            } else if name.ends_with(".index") || (is_part(&name) && is_old(modified)) {
                remove(&entry.path());
            }
        }
        found.sort();
        let mut known = self.lock();
        // Files used since the start are younger than all of these.
        let used: Vec<String> = known.by_use.values().cloned().collect();
        found.into_iter().for_each(|(_, name, len)| known.add(name, len));
        used.iter().for_each(|name| known.touch(name));
        drop(known);
        self.shrink();
    }

    /// Returns the cost of loading a file, where there is one.
    pub(crate) fn cost(&self, name: &str) -> Option<Cost> {
        let mut file = File::open(self.folder.join(name)).ok()?;
        let mut head = [0; HEAD];
        file.read_exact(&mut head).ok()?;
        let heap = head.last_chunk::<8>().map(|heap| u64::from_le_bytes(*heap))?;
        Some(Cost { file: file.metadata().ok()?.len(), heap })
    }

    /// Reads the index in a file of this cost, and marks it as used.
    pub(crate) fn load(&self, name: &str, key: &[u8], cost: Cost) -> Option<Movie> {
        let path = self.folder.join(name);
        let file = File::open(&path).ok()?;
        let mut bytes = Vec::new();
        (&file).take(cost.file).read_to_end(&mut bytes).ok()?;
        let movie = decode(&bytes, key);
        if movie.is_none() {
            tracing::warn!(file = %path.display(), "a stored index is damaged or of another version: it is built again");
            self.forget(name);
            return None;
        }
        let mut known = self.lock();
        known.add(name.to_owned(), bytes.len() as u64);
        drop(known);
        // The files' times keep the order of use across restarts. A file system without them is no fault.
        let _ = file.set_modified(SystemTime::now());
        movie
    }

    /// Writes the index of an object, and removes others over the bounds.
    pub(crate) fn save(&self, name: &str, key: &[u8], movie: &Movie) {
        let Some(bytes) = encode(key, movie) else { return };
        let len = bytes.len() as u64;
        if len > self.most_bytes {
            return;
        }
        let path = self.folder.join(name);
        if let Err(error) = write(&path, &bytes) {
            tracing::warn!(file = %path.display(), %error, "can't keep an index on disk: it is built again after a restart");
            return;
        }
        self.lock().add(name.to_owned(), len);
        self.shrink();
    }

    /// Removes a file.
    pub(crate) fn forget(&self, name: &str) {
        self.lock().remove(name);
        remove(&self.folder.join(name));
    }

    /// Removes the least recently used files until the rest is within the bounds.
    fn shrink(&self) {
        let mut gone = Vec::new();
        let mut known = self.lock();
        while known.bytes > self.most_bytes || known.files.len() > self.most_files {
            let Some((_, name)) = known.by_use.first_key_value() else { break };
            let name = name.clone();
            known.remove(&name);
            gone.push(name);
        }
        drop(known);
        gone.iter().for_each(|name| remove(&self.folder.join(name)));
    }
}

impl Known {
    /// Records a use of a file of this size.
    fn add(&mut self, name: String, len: u64) {
        self.remove(&name);
        self.clock += 1;
        self.bytes += len;
        self.by_use.insert(self.clock, name.clone());
        self.files.insert(name, (len, self.clock));
    }

    fn touch(&mut self, name: &str) {
        if let Some((len, _)) = self.files.get(name) {
            self.add(name.to_owned(), *len);
        }
    }

    fn remove(&mut self, name: &str) {
        if let Some((len, used)) = self.files.remove(name) {
            self.bytes -= len;
            self.by_use.remove(&used);
        }
    }
}

fn is_current(path: &Path) -> bool {
    let mut format = [0; FORMAT.len()];
    File::open(path).and_then(|mut file| file.read_exact(&mut format)).is_ok() && format == *FORMAT
}

fn is_part(name: &str) -> bool {
    Path::new(name).extension().and_then(|e| e.to_str()).is_some_and(|e| e.starts_with("part"))
}

fn is_old(modified: SystemTime) -> bool {
    modified.elapsed().is_ok_and(|age| age > BEING_WRITTEN)
}

fn remove(path: &Path) {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(file = %path.display(), %error, "can't remove a stored index");
        }
        _ => {}
    }
}

/// FNV-1a, for names and checksums of files that no adversary writes.
pub(crate) fn fnv(bytes: &[u8], seed: u64) -> u64 {
    bytes.iter().fold(seed, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

fn decode(bytes: &[u8], key: &[u8]) -> Option<Movie> {
    let rest = bytes.strip_prefix(FORMAT)?;
    let (sum, rest) = rest.split_first_chunk::<8>()?;
    if u64::from_le_bytes(*sum) != fnv(rest, SEED) {
        return None;
    }
    let (_heap, rest) = rest.split_first_chunk::<8>()?;
    postcard::from_bytes(rest.strip_prefix(key)?).ok()
}

fn encode(key: &[u8], movie: &Movie) -> Option<Vec<u8>> {
    let heap = (movie.heap_bytes() as u64).to_le_bytes();
    let movie = postcard::to_stdvec(movie).ok()?;
    let body = [&heap[..], key, &movie].concat();
    let sum = fnv(&body, SEED).to_le_bytes();
    Some([FORMAT, &sum[..], &body].concat())
}

fn write(file: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let part = file.with_extension(format!("part{}", std::process::id()));
    std::fs::write(&part, bytes).and_then(|()| std::fs::rename(&part, file)).inspect_err(|_| {
        let _ = std::fs::remove_file(&part);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &[u8] = include_bytes!("../../../assets/sample/180p.mp4");

    fn movie() -> Movie {
        millpond_media::index_bytes(SAMPLE).unwrap()
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn files(folder: &Path, most_bytes: u64, most_files: usize) -> IndexFiles {
        IndexFiles { most_bytes, most_files, ..IndexFiles::new(folder.to_owned(), 0) }
    }

    #[test]
    fn the_least_recently_used_go_first_by_count_and_by_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let files = files(folder.path(), u64::MAX, 3);
        for name in ["a.index", "b.index", "c.index"] {
            files.save(name, b"key", &movie());
        }
        let cost = files.cost("a.index").unwrap();
        let len = cost.file;
        assert_eq!(cost.memory(), len + movie().heap_bytes() as u64);
        assert_eq!(files.load("a.index", b"key", cost), Some(movie()));
        files.save("d.index", b"key", &movie());
        assert_eq!(names(folder.path()), ["a.index", "c.index", "d.index"], "b was used longest ago");

        // A new process knows the order by the files' times.
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        for (name, seconds) in [("a.index", 3), ("c.index", 1), ("d.index", 2)] {
            File::open(folder.path().join(name)).unwrap().set_modified(at(seconds)).unwrap();
        }
        let files = super::tests::files(folder.path(), len * 2, 3);
        files.scan();
        assert_eq!(names(folder.path()), ["a.index", "d.index"]);
        files.save("e.index", b"key", &movie());
        assert_eq!(names(folder.path()), ["a.index", "e.index"]);
        assert_eq!(files.lock().bytes, len * 2);
    }

    #[test]
    fn a_start_removes_older_formats_and_what_was_left_half_written() {
        let folder = tempfile::tempdir().unwrap();
        let put = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
        put("old.index", b"MPINDX03 and more");
        put("short.index", b"MP");
        put("left.part17", b"half");
        put("fresh.part18", b"half");
        put("README", b"not ours");
        let old = SystemTime::now() - BEING_WRITTEN * 2;
        File::options().write(true).open(folder.path().join("left.part17")).unwrap().set_modified(old).unwrap();
        let files = files(folder.path(), u64::MAX, 3);
        files.save("new.index", b"key", &movie());
        files.scan();
        assert_eq!(names(folder.path()), ["README", "fresh.part18", "new.index"]);
        assert_eq!(files.lock().files.len(), 1);
    }

    #[test]
    fn a_damaged_file_or_one_of_another_key_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let files = files(folder.path(), u64::MAX, 3);
        files.save("a.index", b"key", &movie());
        assert_eq!(files.load("a.index", b"other", files.cost("a.index").unwrap()), None);
        assert_eq!(names(folder.path()), [""; 0]);
        files.save("a.index", b"key", &movie());
        let path = folder.path().join("a.index");
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[40] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(files.load("a.index", b"key", files.cost("a.index").unwrap()), None);
        assert!(names(folder.path()).is_empty());
    }

    #[test]
    fn without_a_share_of_the_disk_nothing_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let files = IndexFiles::new(folder.path().to_owned(), 0);
        files.save("a.index", b"key", &movie());
        assert!(names(folder.path()).is_empty());
    }
}
