//! The sessions of a port, by the ids of their sockets and by their callers.

use super::record::Record;
use bytes::Bytes;
use millpond_srt::SocketId;
use std::{
    collections::{HashMap, hash_map},
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::{mpsc, watch};

/// Datagrams that wait for a session, at most: a tenth of a second of 100 Mbit/s. A full queue loses further ones, which are asked for again.
const WAITING: usize = 1024;

/// The sessions of a port.
#[derive(Debug, Default)]
pub(super) struct Sessions(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    sockets: HashMap<SocketId, Route>,
    /// Our sockets by the addresses and the sockets of callers.
    callers: HashMap<Caller, SocketId>,
}

/// Address and socket of a caller.
pub(super) type Caller = (SocketAddr, SocketId);

#[derive(Debug)]
struct Route {
    caller: Caller,
    inbox: mpsc::Sender<Bytes>,
    /// The session; `None` until it is accepted.
    record: Option<Arc<Record>>,
    /// Turns true when an operator ends it.
    kick: watch::Sender<bool>,
}

/// A session's entry in the table. Dropping it removes the session.
#[derive(Debug)]
pub(super) struct Entry {
    sessions: Arc<Sessions>,
    /// Id of our socket.
    pub(super) socket: SocketId,
    /// Datagrams of the session.
    pub(super) inbox: mpsc::Receiver<Bytes>,
    /// Turns true when an operator ends it.
    pub(super) kicked: watch::Receiver<bool>,
}

impl Sessions {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the session of a caller. `random` gives ids of sockets. `None` where the caller has a session.
    pub(super) fn enter(self: &Arc<Self>, caller: Caller, mut random: impl FnMut() -> u32) -> Option<Entry> {
        let ((outbox, inbox), (kick, kicked)) = (mpsc::channel(WAITING), watch::channel(false));
        let mut table = self.table();
        if table.callers.contains_key(&caller) {
            return None;
        }
        let socket = loop {
            // Ids have 30 bits, and none is that of the listener (draft-sharabayko-srt-01 3.2.1).
            let socket = SocketId(random() >> 2);
            if let (true, hash_map::Entry::Vacant(vacant)) = (socket != SocketId::LISTENER, table.sockets.entry(socket))
            {
                vacant.insert(Route { caller, inbox: outbox, record: None, kick });
                break socket;
            }
        };
        table.callers.insert(caller, socket);
        drop(table);
        Some(Entry { sessions: self.clone(), socket, inbox, kicked })
    }

    /// Gives a datagram to the session of a socket, where its caller has this address. Returns whether there is one.
    pub(super) fn give(&self, socket: SocketId, from: SocketAddr, datagram: &[u8]) -> bool {
        let table = self.table();
        let Some(route) = table.sockets.get(&socket).filter(|route| route.caller.0 == from) else { return false };
        let _ = route.inbox.try_send(Bytes::copy_from_slice(datagram));
        true
    }

    /// Gives a repeated step of a handshake to the session of its caller. Returns whether there is one.
    pub(super) fn give_again(&self, caller: Caller, datagram: &[u8]) -> bool {
        let socket = self.table().callers.get(&caller).copied();
        socket.is_some_and(|socket| self.give(socket, caller.0, datagram))
    }

    /// Ends the session of a number, because an operator asks for it. Returns whether there is one.
    pub(super) fn kick(&self, number: u64) -> bool {
        let table = self.table();
        let is_it = |route: &&Route| route.record.as_ref().is_some_and(|record| record.number == number);
        let route = table.sockets.values().find(is_it);
        route.is_some_and(|route| !route.kick.send_replace(true))
    }

    /// The records of all sessions.
    pub(super) fn records(&self) -> Vec<Arc<Record>> {
        self.table().sockets.values().filter_map(|route| route.record.clone()).collect()
    }
}

impl Entry {
    /// Shows the session to operators.
    pub(super) fn show(&self, record: Arc<Record>) {
        if let Some(route) = self.sessions.table().sockets.get_mut(&self.socket) {
            route.record = Some(record);
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut table = self.sessions.table();
        if let Some(route) = table.sockets.remove(&self.socket) {
            table.callers.remove(&route.caller);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn address(port: u16) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, port).into()
    }

    #[test]
    fn a_caller_has_one_session_and_datagrams_come_from_its_address() {
        let sessions = Arc::<Sessions>::default();
        let caller = (address(1), SocketId(7));
        // The first ids are taken, or that of the listener.
        let mut ids = [40, 0, 40, 44].into_iter();
        let mut first = sessions.enter(caller, || ids.next().unwrap()).unwrap();
        assert!(sessions.enter(caller, || 80).is_none());
        let second = sessions.enter((address(1), SocketId(8)), || ids.next().unwrap()).unwrap();
        assert_eq!((first.socket, second.socket), (SocketId(10), SocketId(11)));
        assert!(sessions.give(first.socket, address(1), b"a") && sessions.give_again(caller, b"b"));
        assert!(!sessions.give(first.socket, address(2), b"c") && !sessions.give(SocketId(12), address(1), b"d"));
        assert!(!sessions.give_again((address(2), SocketId(7)), b"e"));
        let got: Vec<Bytes> = std::iter::from_fn(|| first.inbox.try_recv().ok()).collect();
        assert_eq!(got, ["a", "b"]);
        (0..2 * WAITING).for_each(|_| assert!(sessions.give(first.socket, address(1), b"x")));
        assert_eq!(std::iter::from_fn(|| first.inbox.try_recv().ok()).count(), WAITING);
        drop(first);
        assert!(!sessions.give_again(caller, b"f") && sessions.table().sockets.len() == 1);
        drop(second);
        assert!(sessions.table().sockets.is_empty() && sessions.table().callers.is_empty());
    }
}
