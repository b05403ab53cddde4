//! The listening socket of the admin address: TCP, or a socket file.

use super::AdminAddress;
use crate::serve::ServeError;
use millpond_connections::{Inherited, Listener};
use std::{
    io,
    os::unix::{
        fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _},
        net::{UnixListener as StdUnixListener, UnixStream as StdUnixStream},
    },
    path::{Path, PathBuf},
    pin::Pin,
    task::{Context, Poll},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream, UnixListener, UnixStream},
};

/// Permissions of the socket file: its user and group.
const MODE: u32 = 0o660;

/// The bound socket of the admin address.
#[derive(Debug)]
pub(crate) enum AdminListener {
    /// TCP.
    Tcp(Listener),
    /// A socket file, which is removed at the end.
    Unix(SocketFile),
}

/// A socket file, removed when it is dropped.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    socket: StdUnixListener,
    inode: u64,
}

/// A second descriptor of the socket, for the admin thread.
pub(crate) enum AdminSocket {
    /// TCP.
    Tcp(std::net::TcpListener),
    /// A socket file.
    Unix(StdUnixListener),
}

/// The socket as the admin thread accepts its connections.
pub(super) enum AdminDoor {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// A connection of either kind.
pub(super) enum AdminStream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // The process that took over has another file there.
        if self.is_in_place() {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl SocketFile {
    /// Whether the path still names this socket.
    fn is_in_place(&self) -> bool {
        std::fs::symlink_metadata(&self.path).is_ok_and(|found| found.ino() == self.inode)
    }

    /// Listens on a socket file. A file that a server left behind is replaced. That of a running server is not, unless this process
    /// takes over from it.
    fn open(path: &Path, takes_over: bool) -> io::Result<Self> {
        match std::fs::symlink_metadata(path) {
            Ok(found) if !found.file_type().is_socket() => return Err(io::ErrorKind::AlreadyExists.into()),
            Ok(_) if !takes_over && StdUnixStream::connect(path).is_ok() => return Err(io::ErrorKind::AddrInUse.into()),
            _ => {}
        }
        // Clients find the old socket or the new one, with its permissions.
        let beside = path.with_extension(format!("{}.new", std::process::id()));
        let socket = StdUnixListener::bind(&beside)?;
        std::fs::set_permissions(&beside, std::fs::Permissions::from_mode(MODE))?;
        std::fs::rename(&beside, path)?;
        socket.set_nonblocking(true)?;
        let inode = std::fs::symlink_metadata(path)?.ino();
        Ok(Self { path: path.to_owned(), socket, inode })
    }
}

impl AdminListener {
    /// Binds the admin address, or takes its socket over that another process has bound.
    ///
    /// # Errors
    /// The address can't be listened on.
    pub(crate) fn open(address: &AdminAddress, inherited: &mut Inherited) -> Result<Self, ServeError> {
        match address {
            AdminAddress::Tcp(addr) => Ok(Self::Tcp(Listener::open("admin", *addr, inherited)?)),
            AdminAddress::Unix(path) => SocketFile::open(path, inherited.is_from_another())
                .map(Self::Unix)
                .map_err(|error| ServeError::AdminSocket { path: path.display().to_string(), error }),
        }
    }

    /// The address that clients connect to.
    pub(crate) fn address(&self) -> Option<AdminAddress> {
        match self {
            Self::Tcp(listener) => listener.address().map(AdminAddress::Tcp),
            Self::Unix(file) => Some(AdminAddress::Unix(file.path.clone())),
        }
    }

    /// The address of the configuration.
    pub(crate) fn configured(&self) -> AdminAddress {
        match self {
            Self::Tcp(listener) => AdminAddress::Tcp(listener.configured()),
            Self::Unix(file) => AdminAddress::Unix(file.path.clone()),
        }
    }

    /// Whether clients find it at its address. Another process may have replaced a socket file.
    pub(crate) fn is_in_place(&self) -> bool {
        match self {
            Self::Tcp(_) => true,
            Self::Unix(file) => file.is_in_place(),
        }
    }

    /// A second descriptor of the socket.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn duplicate(&self) -> io::Result<AdminSocket> {
        match self {
            Self::Tcp(listener) => listener.duplicate().map(AdminSocket::Tcp),
            Self::Unix(file) => file.socket.try_clone().map(AdminSocket::Unix),
        }
    }
}

impl AdminSocket {
    /// Registers the socket with the current runtime.
    pub(super) fn into_door(self) -> io::Result<AdminDoor> {
        match self {
            Self::Tcp(socket) => TcpListener::from_std(socket).map(AdminDoor::Tcp),
            Self::Unix(socket) => UnixListener::from_std(socket).map(AdminDoor::Unix),
        }
    }
}

impl AdminDoor {
    /// Waits for the next connection.
    pub(super) async fn accept(&self) -> io::Result<AdminStream> {
        match self {
            Self::Tcp(listener) => listener.accept().await.map(|(stream, _)| AdminStream::Tcp(stream)),
            Self::Unix(listener) => listener.accept().await.map(|(stream, _)| AdminStream::Unix(stream)),
        }
    }
}

impl AsyncRead for AdminStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Unix(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for AdminStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Unix(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_flush(cx),
            Self::Unix(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replaced_socket_file_is_told_and_bound_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("admin.sock");
        let old = SocketFile::open(&path, false).unwrap();
        assert!(old.is_in_place());
        // A process that takes over, and ends before it serves.
        let new = SocketFile::open(&path, true).unwrap();
        assert!(new.is_in_place() && !old.is_in_place());
        drop(new);
        assert!(!path.exists() && !old.is_in_place());
        let again = SocketFile::open(&path, false).unwrap();
        drop(old);
        assert!(again.is_in_place() && StdUnixStream::connect(&path).is_ok());
    }
}
