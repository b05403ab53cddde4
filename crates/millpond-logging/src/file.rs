//! A file of log lines that another program may rename, as logrotate does.

use super::queue::Output;
use rustix::fs::Access;
use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// Interval between checks that the file still has its name.
const CHECK: Duration = Duration::from_secs(1);

/// Permissions of a new file: lines name clients.
const MODE: u32 = 0o640;

/// A file of log lines. It is opened again when its path names another file or none.
#[derive(Debug)]
pub(super) struct LogFile {
    path: PathBuf,
    file: File,
    checked: Instant,
    /// Whether the last byte written ends no line, because the disk was full.
    is_torn: bool,
    /// Whether the last attempt to open the file again failed.
    is_absent: bool,
}

impl LogFile {
    /// Opens the file for appending, and creates it where there is none.
    ///
    /// # Errors
    /// The system's. A pipe without a reader is one: opening it would wait.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = append(path)?;
        let path = path.to_owned();
        Ok(Self { path, file, checked: Instant::now(), is_torn: false, is_absent: false })
    }

    /// Whether the path names the open file.
    fn has_its_name(&self) -> bool {
        match (std::fs::metadata(&self.path), self.file.metadata()) {
            (Ok(named), Ok(open)) => (named.dev(), named.ino()) == (open.dev(), open.ino()),
            (Err(_), _) => false,
            // A file that can't be examined is no reason to open another one.
            (Ok(_), Err(_)) => true,
        }
    }
}

/// Returns why a file can't be opened, or made. Nothing is made.
pub(super) fn obstacle(path: &Path) -> Option<io::Error> {
    if path.exists() {
        return append(path).err();
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match std::fs::metadata(folder) {
        Err(error) => Some(error),
        Ok(found) if !found.is_dir() => Some(io::ErrorKind::NotADirectory.into()),
        Ok(_) => rustix::fs::access(folder, Access::WRITE_OK | Access::EXEC_OK).err().map(io::Error::from),
    }
}

/// The remedy of an error of opening, behind it.
pub(super) fn cure(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => ": make its folder, or correct the path",
        io::ErrorKind::PermissionDenied => ": give the server's user the right to write there",
        io::ErrorKind::IsADirectory => ": name a file in it",
        _ => ": correct the path",
    }
}

fn append(path: &Path) -> io::Result<File> {
    let flags = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or(0);
    OpenOptions::new().append(true).create(true).mode(MODE).custom_flags(flags).open(path)
}

impl Write for LogFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = self.file.write(bytes)?;
        if let Some(last) = bytes[..taken].last() {
            self.is_torn = *last != b'\n';
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Output for LogFile {
    fn begin_line(&mut self) -> io::Result<()> {
        if self.checked.elapsed() >= CHECK {
            self.checked = Instant::now();
            if !self.has_its_name() {
                self.reopen();
            }
        }
        // The beginning of a line that was cut off stays a line of its own.
        if self.is_torn { self.write(b"\n").map(drop) } else { Ok(()) }
    }

    fn reopen(&mut self) {
        match append(&self.path) {
            Ok(file) => (self.file, self.is_torn, self.is_absent) = (file, false, false),
            Err(error) => {
                if !std::mem::replace(&mut self.is_absent, true) {
                    let file = tracing::field::display(self.path.display());
                    tracing::warn!(file, %error, "a log file can't be opened again: lines are still written to the \
                                                  renamed file");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn write(file: &mut LogFile, line: &str) {
        file.checked = Instant::now().checked_sub(CHECK).unwrap();
        file.begin_line().unwrap();
        file.write_all(line.as_bytes()).unwrap();
    }

    #[test]
    fn a_renamed_file_is_opened_again_and_nothing_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        let (path, old) = (folder.path().join("access.log"), folder.path().join("access.log.1"));
        let mut file = LogFile::open(&path).unwrap();
        write(&mut file, "one\n");
        fs::rename(&path, &old).unwrap();
        write(&mut file, "two\n");
        fs::remove_file(&path).unwrap();
        write(&mut file, "three\n");
        assert_eq!(fs::read_to_string(&old).unwrap(), "one\n");
        assert_eq!(fs::read_to_string(&path).unwrap(), "three\n");
        // A folder that is gone leaves the open file in use.
        fs::rename(&path, &old).unwrap();
        let moved = folder.path().with_extension("moved");
        fs::rename(folder.path(), &moved).unwrap();
        write(&mut file, "four\n");
        assert_eq!(fs::read_to_string(moved.join("access.log.1")).unwrap(), "three\nfour\n");
        fs::rename(&moved, folder.path()).unwrap();
        write(&mut file, "five\n");
        assert_eq!(fs::read_to_string(&path).unwrap(), "five\n");
    }

    #[test]
    fn a_torn_line_does_not_join_the_next_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access.log");
        let mut file = LogFile::open(&path).unwrap();
        file.write_all(b"cut o").unwrap();
        write(&mut file, "whole\n");
        assert_eq!(fs::read_to_string(&path).unwrap(), "cut o\nwhole\n");
    }

    #[test]
    fn a_pipe_without_a_reader_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        assert!(LogFile::open(&path).is_err());
    }
}
