//! The sessions of a port, by their names and addresses.

use bytes::Bytes;
use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::{mpsc, watch};

/// Datagrams that wait for a session. What comes beyond is lost, as on the network.
const WAITING: usize = 64;
/// Addresses of one session.
const ADDRESSES: usize = 16;

/// A datagram, and its sender.
pub(super) type Received = (SocketAddr, Bytes);

/// The sessions of a port.
#[derive(Debug, Default)]
pub(super) struct Sessions(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    /// Whether a session has to end, by its name.
    ends: HashMap<String, watch::Sender<bool>>,
    /// Inboxes by the user fragments of ICE.
    checks: HashMap<String, mpsc::Sender<Received>>,
    /// Inboxes by the addresses that sessions have checked.
    addresses: HashMap<SocketAddr, mpsc::Sender<Received>>,
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
    /// Turns true when the session has to end.
    pub(super) end: watch::Receiver<bool>,
}

impl Sessions {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a session with the user fragment of its answer.
    pub(super) fn add(self: &Arc<Self>, id: &str, fragment: &str) -> Entry {
        let ((outbox, inbox), (ends, end)) = (mpsc::channel(WAITING), watch::channel(false));
        let mut table = self.table();
        table.ends.insert(id.to_owned(), ends);
        table.checks.insert(fragment.to_owned(), outbox.clone());
        drop(table);
        let (id, fragment) = (id.to_owned(), fragment.to_owned());
        Entry { sessions: self.clone(), id, fragment, addresses: Vec::new(), outbox, inbox, end }
    }

    /// Ends a session. Returns whether there is one.
    pub(super) fn end(&self, id: &str) -> bool {
        self.table().ends.get(id).is_some_and(|end| !end.send_replace(true))
    }

    /// Whether there is a session that has not ended.
    pub(super) fn has(&self, id: &str) -> bool {
        self.table().ends.get(id).is_some_and(|end| !*end.borrow())
    }

    /// Gives a check of ICE to the session of a user fragment.
    pub(super) fn give_check(&self, fragment: &str, from: SocketAddr, datagram: Bytes) {
        if let Some(inbox) = self.table().checks.get(fragment) {
            let _ = inbox.try_send((from, datagram));
        }
    }

    /// Gives a datagram to the session that has checked its address.
    pub(super) fn give(&self, from: SocketAddr, datagram: Bytes) {
        if let Some(inbox) = self.table().addresses.get(&from) {
            let _ = inbox.try_send((from, datagram));
        }
    }
}

impl Entry {
    /// Takes the datagrams of an address from now on. An address belongs to the session that checked it last.
    pub(super) fn claim(&mut self, address: SocketAddr) {
        if self.addresses.contains(&address) {
            return;
        }
        let mut table = self.sessions.table();
        if self.addresses.len() == ADDRESSES {
            let oldest = self.addresses.remove(0);
            table.remove(oldest, &self.outbox);
        }
        table.addresses.insert(address, self.outbox.clone());
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
        table.ends.remove(&self.id);
        table.checks.remove(&self.fragment);
        for address in &self.addresses {
            table.remove(*address, &self.outbox);
        }
    }
}
