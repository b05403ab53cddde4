//! The files of a recording: one for each stretch with the same formats, or of a length that their plan decides.

use super::RecordingEnd;
use std::{
    fmt,
    fs::{File, OpenOptions},
    io::{self, IoSlice, Write as _},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// Interval between syncs of a file.
const SYNC: Duration = Duration::from_secs(10);

/// Names the files of a recording, decides when one ends, and takes complete ones. It is called on the thread that writes.
pub trait FilePlan: fmt::Debug + Send {
    /// The file that is made before frames arrive; `None` where each file is made with its first fragment.
    fn first(&self) -> Option<PathBuf> {
        None
    }

    /// Makes a file whose first frame has this wall time, since the Unix epoch. Never replaces another file.
    ///
    /// # Errors
    /// The file can't be made.
    fn create(&mut self, began: Duration) -> io::Result<(File, PathBuf)>;

    /// Whether the file ends before a key frame of the wall time `at`. The file began at the wall time `began`, and holds `lasts` of media.
    fn ends(&self, began: Duration, at: Duration, lasts: Duration) -> bool {
        let _ = (began, at, lasts);
        false
    }

    /// Returns the bytes that follow the init segment of a file, which began at this wall time: whole boxes.
    fn head(&self, began: Duration) -> Vec<u8> {
        let _ = began;
        Vec::new()
    }

    /// Returns the bytes that follow the last fragment of a file: whole boxes.
    fn tail(&self, file: &WrittenFile) -> Vec<u8> {
        let _ = file;
        Vec::new()
    }

    /// Takes a file that is complete and synced. `end` is why the recording ends with it; `None` where another file follows.
    ///
    /// # Errors
    /// The file can't be taken.
    fn complete(&mut self, file: &WrittenFile, end: Option<&RecordingEnd>) -> io::Result<()> {
        let _ = (file, end);
        Ok(())
    }
}

/// A file of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WrittenFile {
    /// Its path.
    pub path: PathBuf,
    /// Wall time of its first frame, since the Unix epoch.
    pub began: Duration,
    /// Duration, gaps included.
    pub duration: Duration,
    /// Its bytes.
    pub bytes: u64,
    /// Frames in it.
    pub frames: u64,
    /// Frames that were left out of it because the disk was slow.
    pub lost: u64,
    /// Longer gaps in it, each as time from its beginning and length.
    pub gaps: Vec<(Duration, Duration)>,
}

/// A plan of files that are numbered behind a first name, and end only where formats change.
#[derive(Debug)]
pub(super) struct NumberedFiles {
    first: PathBuf,
    number: u32,
}

impl NumberedFiles {
    pub(super) fn new(first: PathBuf) -> Self {
        Self { first, number: 0 }
    }
}

impl FilePlan for NumberedFiles {
    fn first(&self) -> Option<PathBuf> {
        Some(self.first.clone())
    }

    fn create(&mut self, _: Duration) -> io::Result<(File, PathBuf)> {
        let path = numbered(&self.first, self.number + 1);
        let file = OpenOptions::new().write(true).create_new(true).open(&path)?;
        self.number += 1;
        Ok((file, path))
    }
}

/// The files of a recording, of which the last one is written.
#[derive(Debug)]
pub(super) struct RecordingFiles {
    plan: Box<dyn FilePlan>,
    open: Option<OpenFile>,
    /// Number of files that were made.
    number: u32,
    /// The first file, or that of the plan.
    first: PathBuf,
}

#[derive(Debug)]
struct OpenFile {
    file: File,
    written: WrittenFile,
    /// Time of the last sync.
    synced: Instant,
}

/// A fragment's bytes, ready to be written.
pub(super) struct FragmentBytes<'a> {
    /// The init segment, before the first fragment of a file.
    pub(super) init: Option<&'a [u8]>,
    /// All that follows.
    pub(super) rest: Vec<IoSlice<'a>>,
    /// Its frames.
    pub(super) frames: u64,
}

impl RecordingFiles {
    /// Makes the first file, where the plan names it.
    pub(super) fn create(plan: Box<dyn FilePlan>) -> io::Result<Self> {
        let first = plan.first();
        let mut files = Self { plan, open: None, number: 0, first: first.clone().unwrap_or_default() };
        if first.is_some() {
            files.open(Duration::ZERO)?;
        }
        Ok(files)
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
    pub(super) fn path(&self) -> &Path {
        self.open.as_ref().map_or(&self.first, |open| &open.written.path)
    }

    /// As [`FilePlan::ends`].
    pub(super) fn ends(&self, began: Duration, at: Duration, lasts: Duration) -> bool {
        self.plan.ends(began, at, lasts)
    }

    fn open(&mut self, began: Duration) -> io::Result<&mut OpenFile> {
        let (file, path) = self.plan.create(began)?;
        self.number += 1;
        if self.first.as_os_str().is_empty() {
            self.first.clone_from(&path);
        }
        let written = WrittenFile { path, began, ..WrittenFile::default() };
        Ok(self.open.insert(OpenFile { file, written, synced: Instant::now() }))
    }

    /// Writes a fragment. Makes a file for it where none is open; its first frame has the wall time `began`.
    pub(super) fn write(&mut self, began: Duration, fragment: FragmentBytes<'_>) -> io::Result<()> {
        if self.open.is_none() {
            self.open(began)?;
        }
        let head = fragment.init.map(|_| self.plan.head(began)).unwrap_or_default();
        let Some(open) = &mut self.open else { return Ok(()) };
        if open.written.bytes == 0 {
            open.written.began = began;
        }
        let FragmentBytes { init, rest, frames } = fragment;
        let mut slices: Vec<_> = init.map(IoSlice::new).into_iter().chain([IoSlice::new(&head)]).chain(rest).collect();
        open.write(&mut slices)?;
        open.written.frames += frames;
        if open.synced.elapsed() >= SYNC {
            open.file.sync_data()?;
            open.synced = Instant::now();
        }
        Ok(())
    }

    /// Leaves a file of whole fragments on the disk, or none where there is no fragment. `is_torn` is whether the last fragment could not
    /// be written. `end` is why the recording ends with the file; where it goes on, an empty file stays for the next fragment.
    pub(super) fn complete(&mut self, facts: FileFacts, is_torn: bool, end: Option<&RecordingEnd>) -> io::Result<()> {
        let is_empty = self.open.as_ref().is_none_or(|open| open.written.bytes == 0);
        if is_empty && end.is_none() {
            return Ok(());
        }
        let Some(OpenFile { file, mut written, .. }) = self.open.take() else { return Ok(()) };
        if is_empty {
            return std::fs::remove_file(&written.path);
        }
        if is_torn {
            file.set_len(written.bytes)?;
        }
        let FileFacts { duration, lost, gaps } = facts;
        (written.duration, written.lost, written.gaps) = (duration, lost, gaps);
        let tail = if is_torn { Vec::new() } else { self.plan.tail(&written) };
        let mut open = OpenFile { file, written, synced: Instant::now() };
        open.write(&mut [IoSlice::new(&tail)])?;
        open.file.sync_all()?;
        self.plan.complete(&open.written, end)?;
        // So that the file has its name after a loss of power.
        open.written.path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
    }
}

/// The facts of a file at its end.
#[derive(Debug, Default)]
pub(super) struct FileFacts {
    pub(super) duration: Duration,
    pub(super) lost: u64,
    pub(super) gaps: Vec<(Duration, Duration)>,
}

impl OpenFile {
    /// Writes slices one after another.
    fn write(&mut self, mut slices: &mut [IoSlice<'_>]) -> io::Result<()> {
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
        self.written.bytes += length;
        Ok(())
    }
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

    fn fragment<'a>(bytes: &[&'a [u8]]) -> FragmentBytes<'a> {
        FragmentBytes { init: None, rest: bytes.iter().map(|bytes| IoSlice::new(bytes)).collect(), frames: 1 }
    }

    fn goes_on(files: &mut RecordingFiles) -> io::Result<()> {
        files.complete(FileFacts::default(), false, None)
    }

    #[test]
    fn files_of_a_recording_are_numbered_and_never_replace_others() {
        let folder = tempfile::tempdir().unwrap();
        let first = folder.path().join("cams_door-20261122T155156Z-7.mp4");
        let mut files = RecordingFiles::create(Box::new(NumberedFiles::new(first.clone()))).unwrap();
        goes_on(&mut files).unwrap();
        assert_eq!((files.number(), files.path()), (1, &*first), "an empty file is used");
        files.write(Duration::ZERO, fragment(&[b"", b"abc", b"de"])).unwrap();
        goes_on(&mut files).unwrap();
        let second = folder.path().join("cams_door-20261122T155156Z-7-2.mp4");
        files.write(Duration::ZERO, fragment(&[b"f"])).unwrap();
        assert_eq!((files.number(), files.path()), (2, &*second));
        std::fs::write(folder.path().join("cams_door-20261122T155156Z-7-3.mp4"), "somebody's").unwrap();
        goes_on(&mut files).unwrap();
        let error = files.write(Duration::ZERO, fragment(&[b"g"])).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(&first).unwrap(), b"abcde");
        assert_eq!(std::fs::read(&second).unwrap(), b"f");
        // A file without a fragment does not stay.
        let empty = folder.path().join("empty.mp4");
        let mut files = RecordingFiles::create(Box::new(NumberedFiles::new(empty.clone()))).unwrap();
        files.complete(FileFacts::default(), false, Some(&RecordingEnd::Stopped)).unwrap();
        assert!(!empty.exists());
    }

    #[derive(Debug)]
    struct Marked(PathBuf);

    impl FilePlan for Marked {
        fn create(&mut self, began: Duration) -> io::Result<(File, PathBuf)> {
            let path = self.0.join(began.as_secs().to_string());
            Ok((File::create_new(&path)?, path))
        }

        fn head(&self, began: Duration) -> Vec<u8> {
            format!("<{}", began.as_secs()).into()
        }

        fn tail(&self, file: &WrittenFile) -> Vec<u8> {
            format!("{}+{}>", file.duration.as_secs(), file.frames).into()
        }
    }

    #[test]
    fn a_plan_names_files_and_marks_them() {
        let folder = tempfile::tempdir().unwrap();
        let mut files = RecordingFiles::create(Box::new(Marked(folder.path().to_owned()))).unwrap();
        assert_eq!(files.number(), 0, "files are made with their first fragment");
        goes_on(&mut files).unwrap();
        files.write(Duration::from_secs(7), FragmentBytes { init: Some(b"init"), ..fragment(&[b"1"]) }).unwrap();
        files.write(Duration::from_secs(8), fragment(&[b"2"])).unwrap();
        let facts = FileFacts { duration: Duration::from_secs(2), ..FileFacts::default() };
        files.complete(facts, false, None).unwrap();
        files.write(Duration::from_secs(9), FragmentBytes { init: Some(b"init"), ..fragment(&[b"3"]) }).unwrap();
        files.complete(FileFacts::default(), true, Some(&RecordingEnd::Stopped)).unwrap();
        let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
        assert_eq!((&*read("7"), &*read("9")), ("init<7122+2>", "init<93"));
    }
}
