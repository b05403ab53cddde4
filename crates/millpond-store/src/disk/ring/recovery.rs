//! Finds the files of a ring when it is opened.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::Read as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::Xxh3Default;

use super::error::RingError;
use super::index;
use super::limits::MOST_INDEX;
use super::record::{Entry, Found, SIZE};
use super::ring_file::{KeptFile, remove};

/// Bytes read at once for a checksum.
const BLOCK: usize = 256 << 10;

/// Path of the index of a file.
pub(super) fn index_path(folder: &Path, number: u32) -> PathBuf {
    folder.join(format!("index-{number:06}"))
}

/// Path of the payloads of a file.
pub(super) fn data_path(folder: &Path, number: u32) -> PathBuf {
    folder.join(format!("data-{number:06}"))
}

/// Returns the files of a ring and their records, the oldest first. Bytes behind the last good payload are cut off; a
/// file without a good payload is removed.
///
/// # Errors
///
/// A file can't be read or cut.
pub(super) fn recover(folder: &Path) -> Result<(Vec<KeptFile>, Vec<Found>), RingError> {
    let (mut files, mut found) = (Vec::new(), Vec::new());
    for number in numbers(folder)? {
        let entries = entries(folder, number)?;
        let (Some(last), Some(newest)) = (entries.last(), entries.iter().map(KeptFile::time).max()) else {
            remove(folder, number)?;
            continue;
        };
        let (data, index) = (last.found.place.end(), (entries.len() * SIZE) as u64);
        cut(&data_path(folder, number), data)?;
        cut(&index_path(folder, number), index)?;
        files.push(KeptFile { number, bytes: data + index, newest });
        found.extend(entries.iter().map(|entry| entry.found));
    }
    Ok((files, found))
}

/// Numbers of all files, in order.
pub(super) fn numbers(folder: &Path) -> Result<BTreeSet<u32>, RingError> {
    let mut numbers = BTreeSet::new();
    for entry in fs::read_dir(folder).map_err(RingError::of(folder, "listing"))? {
        let name = entry.map_err(RingError::of(folder, "listing"))?.file_name();
        let text = name.to_str().and_then(|name| name.strip_prefix("index-").or(name.strip_prefix("data-")));
        // Half of the numbers are left for later files.
        numbers.extend(text.and_then(|number| number.parse::<u32>().ok()).filter(|number| *number < u32::MAX / 2));
    }
    Ok(numbers)
}

/// Returns the good records of a file: none where the index or the data are missing.
fn entries(folder: &Path, number: u32) -> Result<Vec<Entry>, RingError> {
    let (Some((index, path)), Some((data, data_path))) =
        (open(index_path(folder, number))?, open(data_path(folder, number))?)
    else {
        return Ok(Vec::new());
    };
    let mut bytes = Vec::new();
    index.take(MOST_INDEX).read_to_end(&mut bytes).map_err(RingError::of(&path, "reading"))?;
    let length = data.metadata().map_err(RingError::of(&data_path, "examining"))?.len();
    let mut entries = index::entries(number, &bytes, length);
    // Power may have failed before the last payloads were on the disk.
    while let Some(last) = entries.iter().rposition(|entry| entry.found.place.length > 0) {
        if is_sound(&data, &entries[last]) {
            break;
        }
        entries.truncate(last);
    }
    Ok(entries)
}

fn open(path: PathBuf) -> Result<Option<(File, PathBuf)>, RingError> {
    match File::open(&path) {
        Ok(file) => Ok(Some((file, path))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(RingError::of(&path, "opening")(error)),
    }
}

/// Whether a payload has its checksum.
fn is_sound(data: &File, entry: &Entry) -> bool {
    let mut hash = Xxh3Default::new();
    let mut rest = entry.found.place.range();
    let mut block = vec![0; BLOCK.min(entry.found.place.length as usize)];
    while !rest.is_empty() {
        let count = block.len().min((rest.end - rest.start) as usize);
        if data.read_exact_at(&mut block[..count], rest.start).is_err() {
            return false;
        }
        hash.update(&block[..count]);
        rest.start += count as u64;
    }
    hash.digest() == entry.sum
}

fn cut(path: &Path, length: u64) -> Result<(), RingError> {
    // Sweeps go by the time of the last change.
    if fs::metadata(path).is_ok_and(|found| found.len() == length) {
        return Ok(());
    }
    let file = OpenOptions::new().write(true).open(path).map_err(RingError::of(path, "opening"))?;
    file.set_len(length).map_err(RingError::of(path, "cutting"))
}
