//! The sessions of a port, by their names and addresses.

use super::{record::Record, traffic::Traffic};
use crate::wire::Wire;
use bytes::Bytes;
use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::{mpsc, watch};

/// Datagrams that wait for a session, at most, by what the session does. A full queue drops further datagrams; ICE, DTLS and RTCP
/// repeat theirs, and publishers send lost packets again. Key frames of publishers have hundreds of packets.
const WAITING: usize = 64;
const WAITING_MEDIA: usize = 1024;
/// Addresses of one session.
const ADDRESSES: usize = 16;

/// A datagram of a peer.
#[derive(Debug)]
pub(super) struct Received {
    pub(super) from: SocketAddr,
    pub(super) bytes: Bytes,
    /// The connection that it came on; `None` for the UDP port.
    pub(super) wire: Option<Arc<Wire>>,
}

/// The sessions of a port.
#[derive(Debug, Default)]
pub(super) struct Sessions(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    /// Sessions by their names.
    sessions: HashMap<String, Known>,
    /// Inboxes by the user fragments of ICE.
    checks: HashMap<String, mpsc::Sender<Received>>,
    /// Inboxes by the addresses that sessions have checked.
    addresses: HashMap<SocketAddr, mpsc::Sender<Received>>,
}

/// A session, as others see and end it.
#[derive(Debug)]
pub(super) struct Known {
    /// The user fragment of its answer.
    fragment: String,
    pub(super) record: Arc<Record>,
    pub(super) traffic: Traffic,
    /// Tells the session why it has to end.
    end: watch::Sender<Option<EndedBy>>,
}

/// Somebody else who ends a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EndedBy {
    /// Its client, by DELETE.
    Client,
    /// An operator.
    Operator,
}

/// A session's entry in the table. Dropping it removes the session.
#[derive(Debug)]
pub(super) struct Entry {
    sessions: Arc<Sessions>,
    id: String,
    fragment: String,
    addresses: Vec<SocketAddr>,
    outbox: mpsc::Sender<Received>,
    /// Datagrams of the session.
    pub(super) inbox: mpsc::Receiver<Received>,
    /// Tells who ends the session.
    pub(super) end: watch::Receiver<Option<EndedBy>>,
}

impl Sessions {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a session with its names: the one in its address, and the user fragment of its answer.
    pub(super) fn add(self: &Arc<Self>, (id, fragment): (&str, &str), record: Arc<Record>, traffic: Traffic) -> Entry {
        let waiting = if traffic.is_received() { WAITING_MEDIA } else { WAITING };
        let ((outbox, inbox), (ends, end)) = (mpsc::channel(waiting), watch::channel(None));
        let mut table = self.table();
        table.sessions.insert(id.to_owned(), Known { fragment: fragment.to_owned(), record, traffic, end: ends });
        table.checks.insert(fragment.to_owned(), outbox.clone());
        drop(table);
        let (id, fragment) = (id.to_owned(), fragment.to_owned());
        Entry { sessions: self.clone(), id, fragment, addresses: Vec::new(), outbox, inbox, end }
    }

    /// Ends the session of a name, of the stream at `path`, because its client asks for it. Returns whether there is one.
    pub(super) fn end(&self, id: &str, path: &str) -> bool {
        let table = self.table();
        let known = table.sessions.get(id).filter(|known| known.is_of(path));
        known.is_some_and(|known| known.end(EndedBy::Client))
    }

    /// Ends the session of a number, because an operator asks for it. Returns whether there is one.
    pub(super) fn kick(&self, number: u64) -> bool {
        let table = self.table();
        let known = table.sessions.values().find(|known| known.record.number == number);
        known.is_some_and(|known| known.end(EndedBy::Operator))
    }

    /// The user fragment of a session of the stream at `path`; `None` where there is none, or it has ended.
    pub(super) fn fragment(&self, id: &str, path: &str) -> Option<String> {
        let table = self.table();
        let known = table.sessions.get(id).filter(|known| known.is_of(path) && known.end.borrow().is_none());
        known.map(|known| known.fragment.clone())
    }

    /// Calls a function with each session.
    pub(super) fn each<T>(&self, of: impl Fn(&Known) -> T) -> Vec<T> {
        self.table().sessions.values().map(of).collect()
    }

    /// Gives a check of ICE to the session of a user fragment. Returns whether there is one.
    pub(super) fn give_check(&self, fragment: &str, from: SocketAddr, datagram: Bytes) -> bool {
        give_to(self.table().checks.get(fragment), from, datagram)
    }

    /// The inbox of the session of a user fragment, for a connection of its own.
    pub(super) fn inbox(&self, fragment: &str) -> Option<mpsc::Sender<Received>> {
        self.table().checks.get(fragment).cloned()
    }

    /// Gives a datagram to the session that has checked its address. Returns whether there is one.
    pub(super) fn give(&self, from: SocketAddr, datagram: Bytes) -> bool {
        give_to(self.table().addresses.get(&from), from, datagram)
    }
}

/// Gives a datagram of the UDP port to an inbox, if there is one. It is lost where the inbox is full.
fn give_to(inbox: Option<&mpsc::Sender<Received>>, from: SocketAddr, bytes: Bytes) -> bool {
    let Some(inbox) = inbox else { return false };
    let _ = inbox.try_send(Received { from, bytes, wire: None });
    true
}

impl Known {
    /// Whether it is of the stream at a path.
    fn is_of(&self, path: &str) -> bool {
        self.record.asset == path.trim_matches('/')
    }

    /// Ends the session. Returns whether it had not ended: the first one who ends it is told.
    fn end(&self, by: EndedBy) -> bool {
        self.end.send_if_modified(|ended| {
            let is_first = ended.is_none();
            ended.get_or_insert(by);
            is_first
        })
    }
}

impl Entry {
    /// Takes the datagrams of an address from now on. An address belongs to the session that checked it last.
    pub(super) fn claim(&mut self, address: SocketAddr) {
        let mut table = self.sessions.table();
        table.addresses.insert(address, self.outbox.clone());
        if self.addresses.contains(&address) {
            return;
        }
        if self.addresses.len() == ADDRESSES {
            let oldest = self.addresses.remove(0);
            table.remove(oldest, &self.outbox);
        }
        drop(table);
        self.addresses.push(address);
    }
}

impl Table {
    /// Removes an address, unless another session has claimed it.
    fn remove(&mut self, address: SocketAddr, owner: &mpsc::Sender<Received>) {
        if self.addresses.get(&address).is_some_and(|inbox| inbox.same_channel(owner)) {
            self.addresses.remove(&address);
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut table = self.sessions.table();
        table.sessions.remove(&self.id);
        table.checks.remove(&self.fragment);
        for address in &self.addresses {
            table.remove(*address, &self.outbox);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::webrtc::Client;
    use std::net::Ipv4Addr;

    /// The stream of all sessions.
    const PATH: &str = "live/cam";

    fn address(port: u16) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, port).into()
    }

    /// Adds a session of a number, whose fragment is its name in capitals.
    fn add(sessions: &Arc<Sessions>, id: &str, number: u64) -> Entry {
        let record = Record::new((number, PATH), Client { address: address(1), agent: None }, false);
        sessions.add((id, &id.to_uppercase()), Arc::new(record), Traffic::Sent(Arc::default()))
    }

    /// The first bytes of the datagrams that wait for a session.
    fn received(entry: &mut Entry) -> Vec<(u16, u8)> {
        std::iter::from_fn(|| entry.inbox.try_recv().ok()).map(|of| (of.from.port(), of.bytes[0])).collect()
    }

    #[test]
    fn datagrams_reach_the_session_that_checked_their_address() {
        let sessions = Arc::<Sessions>::default();
        let (mut first, mut second) = (add(&sessions, "a", 1), add(&sessions, "b", 2));
        sessions.give(address(7), Bytes::from_static(b"0"));
        sessions.give_check("A", address(7), Bytes::from_static(b"1"));
        sessions.give_check("B", address(7), Bytes::from_static(b"2"));
        sessions.give_check("C", address(7), Bytes::from_static(b"3"));
        assert_eq!((received(&mut first), received(&mut second)), (vec![(7, b'1')], vec![(7, b'2')]));
        first.claim(address(7));
        sessions.give(address(7), Bytes::from_static(b"4"));
        sessions.give(address(8), Bytes::from_static(b"5"));
        assert_eq!((received(&mut first), received(&mut second)), (vec![(7, b'4')], vec![]));
        // Each check takes it back: a check with another's address costs that one nothing for long.
        second.claim(address(7));
        first.claim(address(7));
        sessions.give(address(7), Bytes::from_static(b"5"));
        assert_eq!((received(&mut first), received(&mut second)), (vec![(7, b'5')], vec![]));
        second.claim(address(7));
        sessions.give(address(7), Bytes::from_static(b"6"));
        assert_eq!((received(&mut first), received(&mut second)), (vec![], vec![(7, b'6')]));
        drop(first);
        sessions.give(address(7), Bytes::from_static(b"7"));
        assert_eq!(received(&mut second), [(7, b'7')]);
    }

    #[test]
    fn addresses_and_datagrams_of_a_session_are_bounded() {
        let sessions = Arc::<Sessions>::default();
        let mut entry = add(&sessions, "a", 1);
        let most = ADDRESSES as u16;
        (1..=2 * most).chain(2 * most - 1..=2 * most).for_each(|port| entry.claim(address(port)));
        assert_eq!(sessions.table().addresses.len(), ADDRESSES);
        for port in 1..=2 * most {
            sessions.give(address(port), Bytes::from_static(b"x"));
        }
        let newest: Vec<_> = (most + 1..=2 * most).map(|port| (port, b'x')).collect();
        assert_eq!(received(&mut entry), newest);
        for _ in 0..2 * WAITING {
            sessions.give(address(2 * most), Bytes::from_static(b"x"));
        }
        assert_eq!(received(&mut entry).len(), WAITING);
    }

    #[test]
    fn a_session_that_is_dropped_leaves_nothing() {
        let sessions = Arc::<Sessions>::default();
        let (mut first, mut second) = (add(&sessions, "a", 1), add(&sessions, "b", 2));
        (1..10).for_each(|port| first.claim(address(port)));
        second.claim(address(10));
        drop(first);
        assert!(sessions.fragment("a", PATH).is_none() && !sessions.end("a", PATH) && !sessions.kick(1));
        let table = sessions.table();
        let addresses: Vec<SocketAddr> = table.addresses.keys().copied().collect();
        assert_eq!((table.sessions.len(), table.checks.len(), addresses), (1, 1, vec![address(10)]));
        drop(table);
        drop(second);
        assert_eq!(sessions.each(|_| ()).len(), 0);
    }

    #[test]
    fn sessions_are_ended_once_by_others() {
        let sessions = Arc::<Sessions>::default();
        let (first, second) = (add(&sessions, "a", 1), add(&sessions, "b", 2));
        assert!(!sessions.end("a", "cams/other") && sessions.fragment("a", "cams/other").is_none());
        assert!(
            sessions.fragment("a", PATH).is_some()
                && sessions.end("a", PATH)
                && !sessions.end("a", PATH)
                && !sessions.kick(1)
                && sessions.fragment("a", PATH).is_none()
        );
        assert!(sessions.kick(2) && !sessions.kick(2) && !sessions.end("b", PATH) && !sessions.kick(3));
        assert_eq!((*first.end.borrow(), *second.end.borrow()), (Some(EndedBy::Client), Some(EndedBy::Operator)));
    }
}
