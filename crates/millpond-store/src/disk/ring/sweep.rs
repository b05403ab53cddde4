//! Bounds all rings in a folder together, and removes rings that are not written any more.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::error::RingError;
use super::recovery::{data_path, index_path, numbers};
use super::ring_file::remove;
use super::shared::{folder_of, lock_existing};

/// Bounds of all rings in a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SweepLimits {
    /// Time since its last write after which a ring that is not open is removed.
    pub age: Duration,
    /// Most bytes of all rings; `None` where only the rings' own limits count.
    pub total: Option<u64>,
}

/// The result of a sweep.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Bytes of all rings that are left, once the excess is removed.
    pub bytes: u64,
    /// Rings removed.
    pub removed: usize,
    /// Names of open rings, and bytes of their oldest files that exceed the total. Their writers must remove those.
    pub excess: Vec<(String, u64)>,
}

/// The files of one ring.
struct Kept {
    name: String,
    folder: PathBuf,
    /// `None` where it is open.
    lock: Option<File>,
    files: Vec<Pair>,
}

/// A data file with its index.
struct Pair {
    number: u32,
    bytes: u64,
    changed: SystemTime,
}

/// Removes rings of `folder` that are not open and too old, then the oldest files of all rings while these have too many bytes.
/// Rings are folders that are named by the hash of the name in them; nothing else is touched. It blocks the thread.
///
/// A process that is killed leaves at most one file too many.
///
/// # Errors
///
/// The folder can't be listed, or a file not be removed.
pub fn sweep(folder: &Path, limits: SweepLimits, now: SystemTime) -> Result<Swept, RingError> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Swept::default()),
        entries => entries.map_err(RingError::of(folder, "listing"))?,
    };
    let mut rings = Vec::new();
    for entry in entries {
        let path = entry.map_err(RingError::of(folder, "listing"))?.path();
        rings.extend(kept(folder, path)?);
    }
    let mut swept = Swept::default();
    let is_old = |ring: &Kept| {
        let newest = ring.files.iter().map(|file| file.changed).max();
        let age = |changed| now.duration_since(changed).unwrap_or_default();
        ring.lock.is_some() && newest.is_none_or(|newest| age(newest) > limits.age)
    };
    let (old, mut rings): (Vec<_>, Vec<_>) = rings.into_iter().partition(is_old);
    for ring in old {
        ring.remove()?;
        swept.removed += 1;
    }
    swept.bytes = rings.iter().flat_map(|ring| &ring.files).map(|file| file.bytes).sum();
    if let Some(total) = limits.total {
        bound(&mut rings, total, &mut swept)?;
    }
    Ok(swept)
}

/// Removes the oldest files of all rings until they have at most `total` bytes.
fn bound(rings: &mut [Kept], total: u64, swept: &mut Swept) -> Result<(), RingError> {
    let mut all: Vec<_> =
        (0..).zip(rings.iter()).flat_map(|(ring, of)| of.removable().map(move |at| (ring, at))).collect();
    let changed = |(ring, at): &(usize, usize)| Some(rings.get(*ring)?.files.get(*at)?.changed);
    all.sort_by_key(changed);
    let mut excess = vec![0_u64; rings.len()];
    for (place, at) in all {
        if swept.bytes <= total {
            break;
        }
        let Some((ring, file)) = rings.get(place).and_then(|ring| Some((ring, ring.files.get(at)?))) else { continue };
        swept.bytes = swept.bytes.saturating_sub(file.bytes);
        if ring.lock.is_some() {
            remove(&ring.folder, file.number)?;
        } else if let Some(excess) = excess.get_mut(place) {
            *excess += file.bytes;
        }
    }
    let named = rings.iter().zip(excess).filter(|(_, bytes)| *bytes > 0);
    swept.excess = named.map(|(ring, bytes)| (ring.name.clone(), bytes)).collect();
    Ok(())
}

/// Returns the ring in a folder; `None` where that is none.
fn kept(parent: &Path, folder: PathBuf) -> Result<Option<Kept>, RingError> {
    let Ok(name) = fs::read_to_string(folder.join("name")) else { return Ok(None) };
    if folder_of(parent, &name) != folder || fs::symlink_metadata(&folder).is_ok_and(|of| of.is_symlink()) {
        return Ok(None);
    }
    let lock = lock_existing(&folder)?;
    let mut files = Vec::new();
    for number in numbers(&folder)? {
        // Files of an open ring can leave at any moment.
        let parts = [data_path(&folder, number), index_path(&folder, number)];
        let parts: Vec<_> = parts.iter().filter_map(|path| fs::metadata(path).ok()).collect();
        let changed = parts.iter().filter_map(|of| of.modified().ok()).max().unwrap_or(SystemTime::UNIX_EPOCH);
        files.push(Pair { number, bytes: parts.iter().map(fs::Metadata::len).sum(), changed });
    }
    Ok(Some(Kept { name, folder, lock, files }))
}

impl Kept {
    /// Places of the files that may leave: all but the one that is being written.
    fn removable(&self) -> std::ops::Range<usize> {
        0..self.files.len() - usize::from(self.lock.is_none() && !self.files.is_empty())
    }

    /// Removes all files, and the folder where nothing else is in it. The lock is held until its file is gone.
    fn remove(self) -> Result<(), RingError> {
        for file in &self.files {
            remove(&self.folder, file.number)?;
        }
        for name in ["name", "lock"] {
            let path = self.folder.join(name);
            fs::remove_file(&path).map_err(RingError::of(&path, "removing"))?;
        }
        // Something else may be there: it stays.
        let _ = fs::remove_dir(&self.folder);
        Ok(())
    }
}
