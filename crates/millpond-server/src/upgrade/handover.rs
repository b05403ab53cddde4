//! Listening sockets pass from the process that serves to the one that takes over.
//!
//! The two have a pair of connected sockets; the new process has its end as standard input. One message names the listening sockets
//! and carries their descriptors (`SCM_RIGHTS`). Two lines come back when the new process serves: the second one is the page that it
//! announces on the local network. The old process closes its end when it has left.

use millpond_connections::Inherited;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};
use std::{
    io::{self, BufRead as _, BufReader, IoSlice, IoSliceMut, Read as _, Write as _},
    mem::MaybeUninit,
    net::TcpListener,
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::net::UnixStream,
    },
    time::Duration,
};

/// Environment variable that tells a process that another one hands its sockets over.
pub(super) const VARIABLE: &str = "TAKES_OVER_FROM_MILLPOND";
/// Most sockets: those of all settings.
const MOST: usize = 16;
/// Most bytes of their names.
const NAMES: usize = 1024;
/// Line of a process that serves.
const READY: &str = "ready\n";
/// Most bytes of the lines of such a process.
const LINES: u64 = 1024;
/// Longest wait for the second line. Earlier builds send none.
const SECOND: Duration = Duration::from_secs(1);

/// Sends sockets with their names.
///
/// # Errors
/// The system's.
pub(super) fn send(to: &UnixStream, sockets: &[(&'static str, TcpListener)]) -> io::Result<()> {
    let names: Vec<_> = sockets.iter().map(|(name, _)| *name).collect();
    let mut names = names.join(",").into_bytes();
    names.push(b'\n');
    let descriptors: Vec<_> = sockets.iter().map(|(_, socket)| socket.as_fd()).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if names.len() > NAMES || !control.push(SendAncillaryMessage::ScmRights(&descriptors)) {
        return Err(io::Error::other("too many listening sockets"));
    }
    let sent = sendmsg(to, &[IoSlice::new(&names)], &mut control, SendFlags::empty())?;
    if sent == names.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
}

/// Receives the sockets of the process before this one.
///
/// # Errors
/// The message can't be read.
pub(super) fn receive(from: &UnixStream) -> io::Result<Inherited> {
    let mut names = [0; NAMES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC;
    let received = recvmsg(from, &mut [IoSliceMut::new(&mut names)], &mut control, flags)?;
    let mut descriptors: Vec<OwnedFd> = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(all) = message {
            descriptors.extend(all);
        }
    }
    let text = std::str::from_utf8(&names[..received.bytes]).unwrap_or_default();
    let names = text.strip_suffix('\n').ok_or(io::ErrorKind::UnexpectedEof)?.split(',');
    let named = names.map(|name| Some(name.to_owned()));
    Ok(Inherited::new(named.zip(descriptors.into_iter().map(TcpListener::from))))
}

/// Tells the process before this one that this one serves, and the page that it will announce.
///
/// # Errors
/// The system's: the other process is gone.
pub(super) fn tell_ready(mut to: &UnixStream, page: &str) -> io::Result<()> {
    to.write_all(format!("{READY}{page}\n").as_bytes())
}

/// Waits until the new process serves. Returns the page that it will announce: empty if it announces none.
///
/// # Errors
/// It has ended, or does not serve within `patience`.
pub(super) fn wait_ready(from: &UnixStream, patience: Duration) -> io::Result<String> {
    from.set_read_timeout(Some(patience))?;
    let mut lines = BufReader::new(from).take(LINES);
    let (mut ready, mut page) = (String::new(), String::new());
    if lines.read_line(&mut ready)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    if ready != READY {
        return Err(io::ErrorKind::InvalidData.into());
    }
    from.set_read_timeout(Some(SECOND))?;
    let _ = lines.read_line(&mut page);
    Ok(page.trim_end_matches('\n').to_owned())
}

/// Waits until the process before this one has left, which closes its end then.
///
/// # Errors
/// The process has not left within `patience`.
pub(super) fn wait_left(mut from: &UnixStream, patience: Duration) -> io::Result<()> {
    from.set_read_timeout(Some(patience))?;
    from.read(&mut [0]).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpStream;

    #[test]
    fn sockets_pass_with_their_names() {
        let (old, new) = UnixStream::pair().unwrap();
        let bound = || TcpListener::bind("127.0.0.1:0").unwrap();
        let sockets = [("http", bound()), ("rtsp", bound())];
        let address = sockets[1].1.local_addr().unwrap();
        send(&old, &sockets).unwrap();
        drop(sockets);
        // It waits in the queue of a socket that only the message has.
        let _client = TcpStream::connect(address).unwrap();
        let inherited = receive(&new).unwrap();
        assert_eq!(inherited.rest().len(), 2);
        assert!(inherited.rest().contains(&address));
        tell_ready(&new, "http 0.0.0.0:80 Films").unwrap();
        assert_eq!(wait_ready(&old, Duration::from_secs(60)).unwrap(), "http 0.0.0.0:80 Films");
        wait_left(&new, Duration::from_millis(20)).unwrap_err();
        drop(old);
        wait_left(&new, Duration::from_secs(60)).unwrap();
    }

    #[test]
    fn a_process_without_a_page_serves_too() {
        let (old, new) = UnixStream::pair().unwrap();
        tell_ready(&new, "").unwrap();
        assert_eq!(wait_ready(&old, Duration::from_secs(60)).unwrap(), "");
        // An earlier build.
        (&new).write_all(b"ready\n").unwrap();
        assert_eq!(wait_ready(&old, Duration::from_secs(60)).unwrap(), "");
        drop(new);
        assert!(wait_ready(&old, Duration::from_secs(60)).is_err(), "it has ended");
    }
}
