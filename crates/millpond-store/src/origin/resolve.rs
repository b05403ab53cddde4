//! Opens names below a folder without ever leaving it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, openat};

use crate::path::ObjectPath;

/// Why a name could not be opened.
#[derive(Debug)]
pub(crate) enum ResolveError {
    /// A symbolic link leads out of the folder.
    Outside,
    /// The system call failed.
    Io(io::Error),
}

impl From<rustix::io::Errno> for ResolveError {
    fn from(errno: rustix::io::Errno) -> Self {
        Self::Io(errno.into())
    }
}

/// A folder, by its real path and as an open descriptor.
#[derive(Debug)]
pub(crate) struct Root {
    path: PathBuf,
    fd: OwnedFd,
}

impl Root {
    /// Opens a folder that exists.
    pub(crate) fn new(path: &Path) -> io::Result<Self> {
        let path = path.canonicalize()?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = openat(CWD, &path, flags, Mode::empty())?;
        Ok(Self { path, fd })
    }

    /// Returns the real path of the folder.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a name below the folder for reading. Symbolic links are followed while they stay inside.
    ///
    /// `NONBLOCK` keeps the open of a FIFO from waiting for a writer. The caller checks the kind of the file.
    pub(crate) fn open(&self, name: &ObjectPath, extra: OFlags) -> Result<OwnedFd, ResolveError> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY | extra;
        let relative = if name.is_root() { "." } else { name.as_str() };
        match beneath(&self.fd, Path::new(relative), flags, true) {
            Beneath::Open(fd) => Ok(fd),
            Beneath::Failed(errno) => Err(errno.into()),
            // An absolute link, or one through `..`, whose target may still be inside.
            Beneath::Leaves | Beneath::Unknown => self.open_real(Path::new(relative), flags),
        }
    }

    /// Opens by the real path, which contains no links. A link that is created in it later is not followed.
    fn open_real(&self, relative: &Path, flags: OFlags) -> Result<OwnedFd, ResolveError> {
        let real = self.path.join(relative).canonicalize().map_err(ResolveError::Io)?;
        let inside = real.strip_prefix(&self.path).map_err(|_| ResolveError::Outside)?;
        let inside = if inside.as_os_str().is_empty() { Path::new(".") } else { inside };
        match beneath(&self.fd, inside, flags, false) {
            Beneath::Open(fd) => Ok(fd),
            Beneath::Leaves => Err(ResolveError::Outside),
            Beneath::Failed(errno) => Err(errno.into()),
            Beneath::Unknown => self.open_stepwise(inside, flags),
        }
    }

    /// Opens one component after the other, none of them a link: for systems without `openat2`.
    fn open_stepwise(&self, inside: &Path, flags: OFlags) -> Result<OwnedFd, ResolveError> {
        let step = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let mut components = inside.components().peekable();
        let mut folder: Option<OwnedFd> = None;
        while let Some(component) = components.next() {
            let at = folder.as_ref().unwrap_or(&self.fd).as_fd();
            let name: &Path = component.as_ref();
            if components.peek().is_none() {
                return Ok(openat(at, name, flags | OFlags::NOFOLLOW, Mode::empty())?);
            }
            folder = Some(openat(at, name, step, Mode::empty())?);
        }
        Err(ResolveError::Io(io::ErrorKind::InvalidInput.into()))
    }
}

enum Beneath {
    Open(OwnedFd),
    /// The kernel found a link that leads out.
    Leaves,
    Failed(rustix::io::Errno),
    /// The system does not have the call, or a sandbox forbids it.
    Unknown,
}

/// Asks the kernel to resolve a name without leaving the folder (openat2(2), Linux 5.6).
#[cfg(target_os = "linux")]
fn beneath(fd: &OwnedFd, name: &Path, flags: OFlags, links: bool) -> Beneath {
    use rustix::fs::{ResolveFlags, openat2};
    use rustix::io::Errno;

    let mut resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    if !links {
        resolve |= ResolveFlags::NO_SYMLINKS;
    }
    // EAGAIN: a concurrent rename made the check uncertain. The manual advises another attempt.
    for _ in 0..8 {
        match openat2(fd, name, flags, Mode::empty(), resolve) {
            Ok(fd) => return Beneath::Open(fd),
            Err(Errno::AGAIN) => {}
            Err(Errno::XDEV) => return Beneath::Leaves,
            Err(Errno::NOSYS | Errno::PERM) => return Beneath::Unknown,
            Err(errno) => return Beneath::Failed(errno),
        }
    }
    Beneath::Unknown
}

#[cfg(not(target_os = "linux"))]
fn beneath(_: &OwnedFd, _: &Path, _: OFlags, _: bool) -> Beneath {
    Beneath::Unknown
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn tree() -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::fs::write(root.join("a/b/file"), "inside").unwrap();
        std::fs::write(dir.path().join("secret"), "outside").unwrap();
        symlink("../secret", root.join("up")).unwrap();
        symlink(dir.path().join("secret"), root.join("absolute")).unwrap();
        symlink(dir.path(), root.join("a/out")).unwrap();
        symlink("a/b", root.join("relative")).unwrap();
        symlink(root.join("a/b/file"), root.join("whole")).unwrap();
        symlink("whole", root.join("chain")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        let root = Root::new(&root).unwrap();
        (dir, root)
    }

    fn read(fd: OwnedFd) -> String {
        io::read_to_string(std::fs::File::from(fd)).unwrap()
    }

    #[test]
    fn links_are_followed_inside_only() {
        let (_dir, root) = tree();
        let open = |name: &str| root.open(&ObjectPath::parse(name).unwrap(), OFlags::empty());
        for name in ["a/b/file", "relative/file", "whole", "chain"] {
            assert_eq!(read(open(name).unwrap()), "inside", "{name}");
        }
        for name in ["up", "absolute", "a/out/secret", "a/out/root/a/b/../../../secret2"] {
            let Ok(path) = ObjectPath::parse(name) else { continue };
            let result = root.open(&path, OFlags::empty());
            assert!(matches!(result, Err(ResolveError::Outside)), "{name}");
        }
        assert!(matches!(open("loop"), Err(ResolveError::Io(_))));
        assert!(matches!(open("none"), Err(ResolveError::Io(e)) if e.kind() == io::ErrorKind::NotFound));
        // A link out whose target lies inside again is inside.
        assert_eq!(read(open("a/out/root/a/b/file").unwrap()), "inside");
    }

    #[test]
    fn stepwise_opens_the_same_and_follows_no_link() {
        let (_dir, root) = tree();
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let fd = root.open_stepwise(Path::new("a/b/file"), flags).unwrap();
        assert_eq!(read(fd), "inside");
        assert!(root.open_stepwise(Path::new("relative/file"), flags).is_err());
        assert!(root.open_stepwise(Path::new("up"), flags).is_err());
    }
}
