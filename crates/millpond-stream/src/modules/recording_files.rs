//! The files of a recording: one for each stretch with the same formats.

use std::{
    fs::{File, OpenOptions},
    io::{self, IoSlice, Write as _},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// Interval between syncs of a file.
const SYNC: Duration = Duration::from_secs(10);

/// The files of a recording, of which the last one is written.
#[derive(Debug)]
pub(super) struct RecordingFiles {
    /// The first file.
    first: PathBuf,
    file: File,
    /// Number of the file, from 1 on.
    number: u32,
    /// Bytes of the file.
    bytes: u64,
    /// Time of the last sync.
    synced: Instant,
}

impl RecordingFiles {
    /// Makes the first file.
    pub(super) fn create(first: PathBuf) -> io::Result<Self> {
        Ok(Self { file: create(&first)?, first, number: 1, bytes: 0, synced: Instant::now() })
    }

    /// Number of files.
    pub(super) const fn number(&self) -> u32 {
        self.number
    }

    /// The first file.
    pub(super) fn first(&self) -> &Path {
        &self.first
    }

    /// The file that is written.
    pub(super) fn path(&self) -> PathBuf {
        numbered(&self.first, self.number)
    }

    /// Completes the file and makes the next one, unless the file is empty.
    pub(super) fn next(&mut self) -> io::Result<()> {
        if self.bytes == 0 {
            return Ok(());
        }
        self.complete(false)?;
        self.file = create(&numbered(&self.first, self.number + 1))?;
        (self.number, self.bytes) = (self.number + 1, 0);
        Ok(())
    }

    /// Writes slices one after another, as a whole fragment.
    pub(super) fn write(&mut self, mut slices: &mut [IoSlice<'_>]) -> io::Result<()> {
        let length: u64 = slices.iter().map(|slice| slice.len() as u64).sum();
        // Empty ones at the front would look like the end of the disk.
        IoSlice::advance_slices(&mut slices, 0);
        while !slices.is_empty() {
            match self.file.write_vectored(slices) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => IoSlice::advance_slices(&mut slices, written),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.bytes += length;
        if self.synced.elapsed() >= SYNC {
            self.file.sync_data()?;
            self.synced = Instant::now();
        }
        Ok(())
    }

    /// Leaves a file of whole fragments on the disk, or none where there is no fragment. `is_torn` is whether the last fragment could not
    /// be written.
    pub(super) fn complete(&mut self, is_torn: bool) -> io::Result<()> {
        let path = self.path();
        if self.bytes == 0 {
            return std::fs::remove_file(&path);
        }
        if is_torn {
            self.file.set_len(self.bytes)?;
        }
        self.file.sync_all()?;
        // So that the file has its name after a loss of power.
        path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
    }
}

fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}

/// The path of file `number` of a recording: `a.mp4`, `a-2.mp4`, `a-3.mp4` and so on.
fn numbered(first: &Path, number: u32) -> PathBuf {
    if number == 1 {
        return first.to_owned();
    }
    let stem = first.file_stem().unwrap_or_default().to_string_lossy();
    let extension = first.extension().map(|extension| format!(".{}", extension.to_string_lossy())).unwrap_or_default();
    first.with_file_name(format!("{stem}-{number}{extension}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_a_recording_are_numbered_and_never_replace_others() {
        let folder = tempfile::tempdir().unwrap();
        let first = folder.path().join("cams_door-20261122T155156Z-7.mp4");
        let mut files = RecordingFiles::create(first.clone()).unwrap();
        files.next().unwrap();
        assert_eq!((files.number(), files.path()), (1, first.clone()), "an empty file is used");
        files.write(&mut [IoSlice::new(b""), IoSlice::new(b"abc"), IoSlice::new(b"de")]).unwrap();
        files.next().unwrap();
        let second = folder.path().join("cams_door-20261122T155156Z-7-2.mp4");
        assert_eq!((files.number(), files.path()), (2, second.clone()));
        files.write(&mut [IoSlice::new(b"f")]).unwrap();
        std::fs::write(folder.path().join("cams_door-20261122T155156Z-7-3.mp4"), "somebody's").unwrap();
        assert_eq!(files.next().unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(&first).unwrap(), b"abcde");
        assert_eq!(std::fs::read(&second).unwrap(), b"f");
        // A file without a fragment does not stay.
        let empty = folder.path().join("empty.mp4");
        RecordingFiles::create(empty.clone()).unwrap().complete(false).unwrap();
        assert!(!empty.exists());
    }
}
