//! Files that settings name. They are read again when they change: at most a minute later, and at once on SIGHUP and at each reload.

use std::{
    fs::File,
    io::{self, Read as _},
    os::unix::fs::MetadataExt,
    path::Path,
    sync::LazyLock,
    time::Duration,
};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::watch,
    time::{Interval, interval},
};

/// Most bytes of a file that [`read`] takes.
const MOST_BYTES: u64 = 16 << 20;
/// How often files are looked at.
const PERIOD: Duration = Duration::from_secs(60);

/// Changes at each reload. As the signal, it is the process's: whoever reads a file need not know of reloads.
static RELOADS: LazyLock<watch::Sender<()>> = LazyLock::new(watch::Sender::default);

/// Lets all files be looked at now.
pub fn look_now() {
    RELOADS.send_replace(());
}

/// Opens a file that a setting names. Pipes, sockets and devices are refused: opening or reading one might never end.
///
/// # Errors
/// Those of the system, or that the path is no regular file.
pub fn open(path: &Path) -> io::Result<File> {
    let kind = std::fs::metadata(path)?.file_type();
    // Reading a folder fails with the system's own error.
    if kind.is_file() || kind.is_dir() {
        return File::open(path);
    }
    Err(io::Error::other("it is a pipe, a socket or a device, expected a regular file"))
}

/// Reads a file that a setting names.
///
/// # Errors
/// Those of [`open`] and of reading, or that the file is too large.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(io::Error::other(format!("it is larger than {} MiB", MOST_BYTES >> 20)));
    }
    Ok(bytes)
}

/// Reads a text file that a setting names.
///
/// # Errors
/// Those of [`read`], or that the file is no UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    String::from_utf8(read(path)?).map_err(|_| io::Error::other("it is no text in UTF-8"))
}

/// Identifies the state of a file. A symbolic link is followed, because Kubernetes replaces secrets by changing its
/// target. A missing file has a stamp too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStamp(Option<(u64, i64, i64, u64)>);

impl FileStamp {
    /// Of a file as it is now. To be taken before it is read: a change in between is then seen by the next look.
    pub fn of(path: &Path) -> Self {
        let meta = std::fs::metadata(path).ok();
        Self(meta.map(|meta| (meta.ino(), meta.ctime(), meta.ctime_nsec(), meta.len())))
    }
}

/// The times at which files are looked at.
#[derive(Debug)]
pub struct Looks {
    period: Interval,
    /// Without the signal the period still works.
    hangup: Option<Signal>,
    reloads: watch::Receiver<()>,
    shutdown: watch::Receiver<bool>,
}

impl Looks {
    /// From now on; the first is at once.
    pub fn until(shutdown: watch::Receiver<bool>) -> Self {
        let (hangup, reloads) = (signal(SignalKind::hangup()).ok(), RELOADS.subscribe());
        Self { period: interval(PERIOD), hangup, reloads, shutdown }
    }

    /// Waits for the next; `false` where there is none, for the server shuts down.
    pub async fn next(&mut self) -> bool {
        let hung_up = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.period.tick() => true,
            _ = hung_up => true,
            _ = self.reloads.changed() => true,
            _ = self.shutdown.wait_for(|down| *down) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::timeout;

    #[test]
    fn pipes_and_devices_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
        for path in [&*pipe, Path::new("/dev/zero")] {
            assert!(read(path).unwrap_err().to_string().contains("expected a regular file"), "{}", path.display());
        }
        let file = folder.path().join("file");
        std::fs::write(&file, "text").unwrap();
        assert_eq!(read_text(&file).unwrap(), "text");
        assert!(read(folder.path()).is_err() && read(&folder.path().join("none")).is_err());
    }

    #[tokio::test]
    async fn files_are_looked_at_when_a_reload_says_so() {
        let (_stop, stopped) = watch::channel(false);
        let mut looks = Looks::until(stopped);
        assert!(looks.next().await, "the first is at once");
        look_now();
        assert!(timeout(PERIOD / 2, looks.next()).await.unwrap());
    }
}
