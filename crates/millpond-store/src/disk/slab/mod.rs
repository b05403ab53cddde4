//! Slab files: slots of one size for slices. A hit is an open file, an offset and a length.
//!
//! The folder contains `lock`, `slots` (a header of 4096 bytes, then a record of 64 bytes for each slot), `names` (the names of
//! objects) and the slabs `slab-0000` and so on. A slab has 1 GiB. The last slab is only as long as necessary. Together the files
//! keep to the quota. The caller chooses the slot of each slice.
//!
//! A slot's record is erased before its data are overwritten, and written after them. A process killed at any moment
//! loses at most the slice that it was writing. After a loss of power a record may exist without its data, and disks
//! lose bits: so [`Slabs::verify`] compares a checksum before the first use after a start, and from time to time. A
//! slab that another program has truncated is replaced by a new file ([`Slabs::renew`]). A write into the old one would
//! make the missing part before it read as zeros.

mod error;
mod names;
mod record;

#[cfg(test)]
mod tests;

pub use error::SlabError;
pub use names::ObjectName;

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, IoSlice, Read as _};
use std::num::NonZeroU64;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use bytes::Bytes;
use rustix::fs::{Advice, FallocateFlags, FlockOperation};
use xxhash_rust::xxh3::Xxh3Default;

use crate::{origin::disk, policy::Slot, tags::ObjectTags};
use record::Record;

/// Bytes of a slab, except the last one.
const SLAB: u64 = 1 << 30;
/// Bytes before the first record.
const HEADER: u64 = 4096;
/// Most slices of one write: the system accepts 1024.
const PARTS: usize = 1024;
/// Identifies the format of the files. Files with another value are discarded.
const FORM: [u8; 16] = *b"millpond slots 1";
/// Divisor of the quota that gives the share of the names.
const NAMES_SHARE: u64 = 256;
/// Least bytes for names.
const NAMES_LEAST: u64 = 64 << 10;
/// Divisor of the names' bytes that gives the share of tags, so that tags leave room for names.
const TAGS_SHARE: u64 = 8;

/// A slice that was found at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StoredSlice {
    /// Its slot.
    pub(crate) slot: Slot,
    /// Its key.
    pub(crate) key: u64,
    /// The hash of its object.
    pub(crate) object: u64,
    /// Number of the slice in the object.
    pub(crate) index: u32,
    /// Number of slices of the object.
    pub(crate) of: u32,
}

/// A slice to write.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewSlice<'a> {
    /// Its key.
    pub(crate) key: u64,
    /// The hash of its object.
    pub(crate) object: u64,
    /// Number of the slice in the object.
    pub(crate) index: u32,
    /// Number of slices of the object.
    pub(crate) of: u32,
    /// Name of the object.
    pub(crate) name: &'a ObjectName,
}

/// Slab files in a folder.
#[derive(Debug)]
pub(crate) struct Slabs {
    folder: PathBuf,
    slice: u64,
    slots: u32,
    /// Files, opened and allocated when their first slot is written. A lock each: taken to read it, and to replace a
    /// truncated file.
    slabs: Vec<RwLock<Option<Arc<File>>>>,
    records: File,
    /// A lock: one slice is written at a time.
    state: Mutex<SlotTable>,
    /// Whether bytes on their way to a client stay unchanged when their slot is overwritten.
    detaches: AtomicBool,
    /// Objects whose tags had no room.
    untagged: AtomicU64,
    /// Held while the folder is used.
    lock: File,
}

#[derive(Debug)]
struct SlotTable {
    /// The record of each slot.
    held: Vec<Option<Record>>,
    /// Slots whose data may have been read since the start.
    used: Vec<bool>,
    names: HashMap<u64, Known>,
    /// Number of versions of the object at each place and path, by their hash.
    paths: HashMap<u64, u32>,
    log: File,
    log_len: u64,
    log_most: u64,
    /// Bytes of the tags of all names.
    tag_bytes: u64,
}

/// An object with slices on the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HeldObject {
    pub(crate) hash: u64,
    pub(crate) name: ObjectName,
    /// Number of its slices.
    pub(crate) slices: u64,
}

#[derive(Debug)]
struct Known {
    name: ObjectName,
    /// Slots that hold slices of the object, or are being filled with one.
    slices: u32,
}

impl Slabs {
    /// Lets another process use the folder. Nothing may be read or written afterwards. Returns whether the system agrees.
    pub(crate) fn unlock(&self) -> bool {
        rustix::fs::flock(&self.lock, FlockOperation::Unlock).is_ok()
    }

    /// Opens or creates the files in a folder, of at most `quota` bytes in all, for slices of `slice` bytes. Returns
    /// the slices found, none where the format or the size of slices differs.
    ///
    /// # Errors
    ///
    /// Another process uses the folder, the quota is too small, or a system call fails.
    pub(crate) fn open(folder: &Path, quota: u64, slice: u32) -> Result<(Self, Vec<StoredSlice>), SlabError> {
        fs::create_dir_all(folder).map_err(SlabError::of(folder, "making the folder", 0))?;
        let lock = lock(folder)?;
        let slice = u64::from(slice);
        let log_most = (quota / NAMES_SHARE).max(NAMES_LEAST);
        // While the names are rewritten, a file half as large exists beside them.
        let rest = quota.saturating_sub(HEADER + log_most + log_most / 2);
        let slots = u32::try_from(rest / (slice + record::SIZE as u64)).unwrap_or(u32::MAX - 1).min(u32::MAX - 1);
        if slots == 0 {
            let least = HEADER + NAMES_LEAST + NAMES_LEAST / 2 + slice + record::SIZE as u64;
            return Err(SlabError::TooSmall { folder: folder.to_owned(), quota, least });
        }
        let path = folder.join("slots");
        let records = open(&path)?;
        let mut header = FORM.to_vec();
        header.extend_from_slice(&slice.to_le_bytes());
        let mut there = vec![0; header.len()];
        let same = records.read_exact_at(&mut there, 0).is_ok() && there == header;
        if !same {
            start_anew(folder, &records, &header).map_err(SlabError::of(&path, "starting anew", 0))?;
        }
        records.set_len(HEADER + u64::from(slots) * record::SIZE as u64).map_err(SlabError::of(
            &path,
            "setting the length",
            0,
        ))?;
        let per_slab = SLAB / slice;
        let count = u64::from(slots).div_ceil(per_slab) as usize;
        remove_slabs(folder, count);
        let (log, names, log_len) = open_log(&folder.join("names"))?;
        let mut state = SlotTable {
            held: vec![None; slots as usize],
            used: vec![false; slots as usize],
            names: names.into_iter().map(|(object, name)| (object, Known { name, slices: 0 })).collect(),
            paths: HashMap::new(),
            log,
            log_len,
            log_most,
            tag_bytes: 0,
        };
        let found = read_records(&records, &path, slots, &mut state)?;
        state.names.retain(|_, known| known.slices > 0);
        for known in state.names.values() {
            *state.paths.entry(known.name.location()).or_default() += 1;
            state.tag_bytes += known.name.tags.as_str().len() as u64;
        }
        let slabs = Self {
            folder: folder.to_owned(),
            slice,
            slots,
            slabs: (0..count).map(|_| RwLock::default()).collect(),
            records,
            state: Mutex::new(state),
            detaches: AtomicBool::new(true),
            untagged: AtomicU64::new(0),
            lock,
        };
        Ok((slabs, found))
    }

    /// Returns the number of slots.
    pub(crate) fn slots(&self) -> u32 {
        self.slots
    }

    /// Returns whether bytes that the kernel has not sent yet stay unchanged when their slot is overwritten. File
    /// systems that cannot detach a range lack this: there, bytes must be copied out.
    pub(crate) fn detaches(&self) -> bool {
        self.detaches.load(Ordering::Relaxed)
    }

    /// Returns the file and the offset of a slot's data.
    ///
    /// # Errors
    ///
    /// The slab cannot be opened.
    pub(crate) fn location(&self, slot: Slot) -> Result<(Arc<File>, u64), SlabError> {
        let per_slab = SLAB / self.slice;
        let number = (u64::from(slot) / per_slab) as usize;
        let offset = u64::from(slot) % per_slab * self.slice;
        let Some(slab) = self.slabs.get(number) else {
            let error = io::Error::new(io::ErrorKind::InvalidInput, "no such slot");
            return Err(SlabError::of(&self.folder, "finding a slot", u64::from(slot))(error));
        };
        if let Some(file) = &*slab.read().unwrap_or_else(PoisonError::into_inner) {
            return Ok((file.clone(), offset));
        }
        let mut slab = slab.write().unwrap_or_else(PoisonError::into_inner);
        let file = match &*slab {
            Some(file) => file.clone(),
            None => slab.insert(self.open_slab(number)?).clone(),
        };
        Ok((file, offset))
    }

    /// Returns the file and offset of a slot, for messages.
    pub(crate) fn place(&self, slot: Slot) -> (PathBuf, u64) {
        let file = self.folder.join(slab_name(slot_slab(slot, self.slice)));
        (file, u64::from(slot) % (SLAB / self.slice) * self.slice)
    }

    /// Returns whether the slab of a slot is shorter than it was made.
    pub(crate) fn is_cut(&self, slot: Slot) -> bool {
        let Ok((file, _)) = self.location(slot) else { return false };
        let most = self.slab_len(slot_slab(slot, self.slice));
        file.metadata().is_ok_and(|meta| meta.len() < most)
    }

    /// Returns the slots of the slab that contains `slot`, itself included.
    pub(crate) fn neighbours(&self, slot: Slot) -> Range<Slot> {
        let per_slab = SLAB / self.slice;
        let first = (slot_slab(slot, self.slice) as u64 * per_slab) as Slot;
        first..first.saturating_add(per_slab as Slot).min(self.slots)
    }

    /// Replaces a truncated slab by a new file, in which all slots are empty. Readers of the old file keep it.
    ///
    /// # Errors
    ///
    /// A new file cannot be made.
    pub(crate) fn renew(&self, slot: Slot) -> Result<(), SlabError> {
        let number = slot_slab(slot, self.slice);
        let Some(slab) = self.slabs.get(number) else { return Ok(()) };
        let mut slab = slab.write().unwrap_or_else(PoisonError::into_inner);
        let whole = |file: &Arc<File>| file.metadata().is_ok_and(|meta| meta.len() >= self.slab_len(number));
        if slab.as_ref().is_some_and(whole) {
            // Another thread has replaced it already.
            return Ok(());
        }
        let path = self.folder.join(slab_name(number));
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(SlabError::of(&path, "removing", 0)(error));
            }
            _ => *slab = Some(self.open_slab(number)?),
        }
        Ok(())
    }

    /// Returns whether a written slot still lies in that file, and the file is complete.
    pub(crate) fn is_current(&self, slot: Slot, file: &Arc<File>) -> bool {
        self.location(slot).is_ok_and(|(now, _)| Arc::ptr_eq(&now, file)) && !self.is_cut(slot)
    }

    /// Writes a slice into a slot and replaces its content. Returns the slot's file.
    ///
    /// # Errors
    ///
    /// The disk is full, read-only or fails. The slot is then empty.
    pub(crate) fn write<'a>(
        &self,
        slot: Slot,
        slice: &NewSlice<'_>,
        data: impl Iterator<Item = &'a Bytes>,
    ) -> Result<Arc<File>, SlabError> {
        let (file, start) = self.location(slot)?;
        let mut state = self.state();
        self.take_back(&mut state, slot)?;
        let path = self.folder.join(slab_name(slot_slab(slot, self.slice)));
        if std::mem::replace(&mut state.used[slot as usize], true) {
            self.set_aside(&file, start);
        }
        self.name(&mut state, slice)?;
        // The lock is not held while data are written: the slot has no record, so no reader finds it.
        drop(state);
        let written = fill(&file, start, self.slice, data).map_err(SlabError::of(&path, "writing", start));
        let mut state = self.state();
        let recorded = written.and_then(|(len, sum)| {
            let NewSlice { key, object, index, of, .. } = *slice;
            let record = Record { len, key, object, index, of, sum };
            self.put_record(slot, &record.encode(slot)).map(|()| record)
        });
        match recorded {
            Ok(record) => {
                state.held[slot as usize] = Some(record);
                Ok(file)
            }
            Err(error) => {
                state.forget(slice.object);
                Err(error)
            }
        }
    }

    /// Empties a slot that holds the slice of that key.
    ///
    /// # Errors
    ///
    /// Its record cannot be erased.
    pub(crate) fn free(&self, slot: Slot, key: u64) -> Result<(), SlabError> {
        let mut state = self.state();
        let held = state.held.get(slot as usize).copied().flatten();
        if held.is_some_and(|record| record.key == key) { self.take_back(&mut state, slot) } else { Ok(()) }
    }

    /// Reads all data of a slot, and returns whether they match its checksum.
    pub(crate) fn verify(&self, slot: Slot) -> bool {
        let Some(record) = self.state().held.get(slot as usize).copied().flatten() else { return false };
        let Ok((file, start)) = self.location(slot) else { return false };
        // Data that were not in the page cache are not kept there.
        let is_cold = disk::read_resident(&file, &(start..start + 1)).is_none();
        let mut data = vec![0; (record.len as usize).min(self.slice as usize)];
        let sound = file.read_exact_at(&mut data, start).is_ok() && record::sum(&data) == record.sum;
        if is_cold {
            let _ = rustix::fs::fadvise(&*file, start, NonZeroU64::new(self.slice), Advice::DontNeed);
        }
        self.state().used[slot as usize] = true;
        sound
    }

    /// Returns all objects with slices in slots.
    pub(crate) fn objects(&self) -> Vec<HeldObject> {
        let state = self.state();
        let all = state.names.iter().filter(|(_, known)| known.slices > 0);
        let held = |(hash, known): (&u64, &Known)| HeldObject {
            hash: *hash,
            name: known.name.clone(),
            slices: u64::from(known.slices),
        };
        all.map(held).collect()
    }

    /// Returns whether any slot holds a slice of any version of an object.
    pub(crate) fn knows(&self, place: &str, path: &str) -> bool {
        self.state().paths.contains_key(&names::location(place, path))
    }

    /// Returns the name of an object, all of whose slices are there.
    pub(crate) fn whole(&self, place: &str, path: &str) -> Option<ObjectName> {
        let state = self.state();
        state.paths.get(&names::location(place, path))?;
        let is_whole = |known: &&Known| {
            let slices = known.name.len.div_ceil(self.slice.max(1));
            *known.name.path == *path && *known.name.place == *place && u64::from(known.slices) >= slices
        };
        state.names.values().find(is_whole).map(|known| known.name.clone())
    }

    fn open_slab(&self, number: usize) -> Result<Arc<File>, SlabError> {
        let path = self.folder.join(slab_name(number));
        let file = open(&path)?;
        let len = self.slab_len(number);
        let allocated = rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, len).map_err(io::Error::from);
        match allocated {
            // Not every file system supports it. There, blocks are allocated by writes.
            Err(error) if error.kind() == io::ErrorKind::Unsupported => file.set_len(len),
            // A slab of an earlier, larger quota.
            Ok(()) => file.set_len(len),
            Err(error) => Err(error),
        }
        .map_err(SlabError::of(&path, "allocating", 0))?;
        Ok(Arc::new(file))
    }

    fn slab_len(&self, number: usize) -> u64 {
        let per_slab = SLAB / self.slice;
        u64::from(self.slots).saturating_sub(number as u64 * per_slab).min(per_slab) * self.slice
    }

    /// Replaces the pages of a range of a slab and keeps its blocks. Bytes of the old pages that the kernel has not
    /// sent stay unchanged.
    fn set_aside(&self, file: &File, start: u64) {
        let ways = [
            FallocateFlags::ZERO_RANGE | FallocateFlags::KEEP_SIZE,
            FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE,
        ];
        let done = ways.into_iter().any(|way| rustix::fs::fallocate(file, way, start, self.slice).is_ok());
        if !done {
            self.detaches.store(false, Ordering::Relaxed);
        }
    }

    fn take_back(&self, state: &mut SlotTable, slot: Slot) -> Result<(), SlabError> {
        let Some(record) = state.held.get(slot as usize).copied().flatten() else { return Ok(()) };
        self.put_record(slot, &[0; record::SIZE])?;
        state.held[slot as usize] = None;
        state.used[slot as usize] = true;
        state.forget(record.object);
        Ok(())
    }

    fn put_record(&self, slot: Slot, bytes: &[u8; record::SIZE]) -> Result<(), SlabError> {
        let at = HEADER + u64::from(slot) * record::SIZE as u64;
        self.records.write_all_at(bytes, at).map_err(SlabError::of(&self.folder.join("slots"), "writing", at))
    }

    /// Ensures that the log has the name of a slice's object, and counts the slice.
    fn name(&self, state: &mut SlotTable, slice: &NewSlice<'_>) -> Result<(), SlabError> {
        if let Some(known) = state.names.get_mut(&slice.object) {
            known.slices += 1;
            return Ok(());
        }
        let name = self.with_room(state, slice.name.clone(), 0);
        self.log(state, slice.object, &name)?;
        *state.paths.entry(name.location()).or_default() += 1;
        state.tag_bytes += name.tags.as_str().len() as u64;
        state.names.insert(slice.object, Known { name, slices: 1 });
        Ok(())
    }

    /// Returns a name without its tags, counted, where there is no room for them. `freed` is the number of bytes of its earlier tags.
    fn with_room(&self, state: &SlotTable, name: ObjectName, freed: u64) -> ObjectName {
        let bytes = name.tags.as_str().len() as u64;
        if bytes == 0 || state.tag_bytes.saturating_sub(freed) + bytes <= state.log_most / TAGS_SHARE {
            return name;
        }
        self.untagged.fetch_add(1, Ordering::Relaxed);
        ObjectName { tags: ObjectTags::default(), ..name }
    }

    /// Adds an entry to the log, which is rewritten when it is full.
    fn log(&self, state: &mut SlotTable, object: u64, name: &ObjectName) -> Result<(), SlabError> {
        let path = self.folder.join("names");
        let too_many = |most: u64| SlabError::Names { file: path.clone(), most };
        let entry = names::encode(object, name).ok_or_else(|| too_many(state.log_most))?;
        if state.log_len + entry.len() as u64 > state.log_most {
            let kept: Vec<u8> = state
                .names
                .iter()
                .filter_map(|(object, known)| names::encode(*object, &known.name))
                .flatten()
                .collect();
            if kept.len() as u64 * 2 + entry.len() as u64 > state.log_most {
                return Err(too_many(state.log_most));
            }
            // Written to a second file, so that a killed process leaves one of them complete.
            let beside = self.folder.join("names.new");
            let log = open(&beside)?;
            log.set_len(0)
                .and_then(|()| log.write_all_at(&kept, 0))
                .and_then(|()| fs::rename(&beside, &path))
                .map_err(SlabError::of(&beside, "writing", 0))?;
            state.log = log;
            state.log_len = kept.len() as u64;
        }
        state.log.write_all_at(&entry, state.log_len).map_err(SlabError::of(&path, "writing", state.log_len))?;
        state.log_len += entry.len() as u64;
        Ok(())
    }

    /// Replaces the tags of an object, if it has slices here and other tags.
    ///
    /// # Errors
    ///
    /// The log can't be written. The earlier tags stay.
    pub(crate) fn tag(&self, object: u64, tags: &ObjectTags) -> Result<(), SlabError> {
        let mut state = self.state();
        let Some(known) = state.names.get(&object).filter(|known| known.name.tags != *tags) else { return Ok(()) };
        let freed = known.name.tags.as_str().len() as u64;
        let name = self.with_room(&state, ObjectName { tags: tags.clone(), ..known.name.clone() }, freed);
        self.log(&mut state, object, &name)?;
        state.tag_bytes = state.tag_bytes.saturating_sub(freed) + name.tags.as_str().len() as u64;
        if let Some(known) = state.names.get_mut(&object) {
            known.name = name;
        }
        Ok(())
    }

    /// Returns whether an object has slices here, and other tags.
    pub(crate) fn has_other_tags(&self, object: u64, tags: &ObjectTags) -> bool {
        self.state().names.get(&object).is_some_and(|known| known.name.tags != *tags)
    }

    /// Returns the number of objects whose tags had no room.
    pub(crate) fn untagged(&self) -> u64 {
        self.untagged.load(Ordering::Relaxed)
    }

    fn state(&self) -> MutexGuard<'_, SlotTable> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SlotTable {
    /// Counts one slot less for an object.
    fn forget(&mut self, object: u64) {
        let Some(known) = self.names.get_mut(&object) else { return };
        known.slices = known.slices.saturating_sub(1);
        if known.slices > 0 {
            return;
        }
        let (location, tags) = (known.name.location(), known.name.tags.as_str().len() as u64);
        self.names.remove(&object);
        self.tag_bytes = self.tag_bytes.saturating_sub(tags);
        if let Some(versions) = self.paths.get_mut(&location) {
            *versions -= 1;
            if *versions == 0 {
                self.paths.remove(&location);
            }
        }
    }
}

/// Writes pieces of data, at most `most` bytes. Returns their length and checksum.
pub(crate) fn fill<'a>(
    file: &File,
    start: u64,
    most: u64,
    data: impl Iterator<Item = &'a Bytes>,
) -> io::Result<(u32, u64)> {
    let mut hash = Xxh3Default::new();
    let mut parts = Vec::new();
    let mut len = 0;
    for bytes in data {
        let bytes = bytes.get(..bytes.len().min((most - len) as usize)).unwrap_or_default();
        hash.update(bytes);
        parts.push(IoSlice::new(bytes));
        len += bytes.len() as u64;
    }
    write_all(file, &mut parts, start)?;
    Ok((len as u32, hash.digest()))
}

/// Writes all slices of bytes in as few calls as possible. One call for many pages lets the kernel keep them in large
/// folios.
fn write_all(file: &File, mut parts: &mut [IoSlice<'_>], mut at: u64) -> io::Result<()> {
    while !parts.is_empty() {
        let most = parts.len().min(PARTS);
        match rustix::io::pwritev(file, &parts[..most], at) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                at += written as u64;
                IoSlice::advance_slices(&mut parts, written);
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn slot_slab(slot: Slot, slice: u64) -> usize {
    (u64::from(slot) / (SLAB / slice)) as usize
}

fn slab_name(number: usize) -> String {
    format!("slab-{number:04}")
}

fn open(path: &Path) -> Result<File, SlabError> {
    let opened = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
    opened.map_err(SlabError::of(path, "opening", 0))
}

/// Returns the file that a process holds while it keeps slices in a folder; `None` where no process does. Nothing is made.
pub fn held_lock(folder: &Path) -> Option<PathBuf> {
    let path = folder.join("lock");
    let file = File::open(&path).ok()?;
    let taken = rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared);
    (taken == Err(rustix::io::Errno::WOULDBLOCK)).then_some(path)
}

fn lock(folder: &Path) -> Result<File, SlabError> {
    let path = folder.join("lock");
    let file = open(&path)?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(SlabError::Locked { folder: folder.to_owned() }),
        Err(error) => Err(SlabError::of(&path, "locking", 0)(error.into())),
    }
}

fn start_anew(folder: &Path, records: &File, header: &[u8]) -> io::Result<()> {
    records.set_len(0)?;
    remove_slabs(folder, 0);
    match fs::remove_file(folder.join("names")) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    records.write_all_at(header, 0)
}

/// Removes slabs from number `from` on.
fn remove_slabs(folder: &Path, from: usize) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix("slab-")?.parse::<usize>().ok());
        if number.is_some_and(|number| number >= from) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn open_log(path: &Path) -> Result<(File, HashMap<u64, ObjectName>, u64), SlabError> {
    let mut log = open(path)?;
    let mut bytes = Vec::new();
    log.read_to_end(&mut bytes).map_err(SlabError::of(path, "reading", 0))?;
    let (names, good) = names::decode(&bytes);
    log.set_len(good as u64).map_err(SlabError::of(path, "cutting", good as u64))?;
    Ok((log, names, good as u64))
}

/// Reads all records. Those without a name, or with the key of another record, are left out.
fn read_records(records: &File, path: &Path, slots: u32, state: &mut SlotTable) -> Result<Vec<StoredSlice>, SlabError> {
    let mut found = Vec::new();
    let mut buffer = vec![0; 1 << 20];
    let mut slot = 0;
    while slot < slots {
        let at = HEADER + u64::from(slot) * record::SIZE as u64;
        let want = ((slots - slot) as usize * record::SIZE).min(buffer.len());
        records.read_exact_at(&mut buffer[..want], at).map_err(SlabError::of(path, "reading", at))?;
        let (whole, _) = buffer[..want].as_chunks::<{ record::SIZE }>();
        for bytes in whole {
            if let Some(record) = Record::decode(bytes, slot)
                && let Some(known) = state.names.get_mut(&record.object)
            {
                known.slices += 1;
                state.held[slot as usize] = Some(record);
                let Record { key, object, index, of, .. } = record;
                found.push(StoredSlice { slot, key, object, index, of });
            }
            slot += 1;
        }
    }
    Ok(found)
}
