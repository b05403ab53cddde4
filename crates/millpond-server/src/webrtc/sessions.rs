//! The sessions of a port, by their names and addresses.

use super::record::Record;
use bytes::Bytes;
use millpond_stream::Progress;
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
    pub(super) record: Arc<Record>,
    pub(super) progress: Arc<Progress>,
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
    pub(super) fn add(
        self: &Arc<Self>,
        (id, fragment): (&str, &str),
        record: Arc<Record>,
        progress: Arc<Progress>,
    ) -> Entry {
        let ((outbox, inbox), (ends, end)) = (mpsc::channel(WAITING), watch::channel(None));
        let mut table = self.table();
        table.sessions.insert(id.to_owned(), Known { record, progress, end: ends });
        table.checks.insert(fragment.to_owned(), outbox.clone());
        drop(table);
        let (id, fragment) = (id.to_owned(), fragment.to_owned());
        Entry { sessions: self.clone(), id, fragment, addresses: Vec::new(), outbox, inbox, end }
    }

    /// Ends the session of a name, because its client asks for it. Returns whether there is one.
    pub(super) fn end(&self, id: &str) -> bool {
        self.table().sessions.get(id).is_some_and(|known| known.end(EndedBy::Client))
    }

    /// Ends the session of a number, because an operator asks for it. Returns whether there is one.
    pub(super) fn kick(&self, number: u64) -> bool {
        let table = self.table();
        let known = table.sessions.values().find(|known| known.record.number == number);
        known.is_some_and(|known| known.end(EndedBy::Operator))
    }

    /// Whether there is a session that has not ended.
    pub(super) fn has(&self, id: &str) -> bool {
        self.table().sessions.get(id).is_some_and(|known| known.end.borrow().is_none())
    }

    /// Calls a function with each session.
    pub(super) fn each<T>(&self, of: impl Fn(&Known) -> T) -> Vec<T> {
        self.table().sessions.values().map(of).collect()
    }

    /// Gives a check of ICE to the session of a user fragment. Returns whether there is one.
    pub(super) fn give_check(&self, fragment: &str, from: SocketAddr, datagram: Bytes) -> bool {
        give_to(self.table().checks.get(fragment), (from, datagram))
    }

    /// Gives a datagram to the session that has checked its address. Returns whether there is one.
    pub(super) fn give(&self, from: SocketAddr, datagram: Bytes) -> bool {
        give_to(self.table().addresses.get(&from), (from, datagram))
    }
}

/// Gives a datagram to an inbox, if there is one. It is lost where the inbox is full.
fn give_to(inbox: Option<&mpsc::Sender<Received>>, received: Received) -> bool {
    let Some(inbox) = inbox else { return false };
    let _ = inbox.try_send(received);
    true
}

impl Known {
    /// Ends the session. Returns whether it had not ended.
    fn end(&self, by: EndedBy) -> bool {
        self.end.send_replace(Some(by)).is_none()
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
        table.sessions.remove(&self.id);
        table.checks.remove(&self.fragment);
        for address in &self.addresses {
            table.remove(*address, &self.outbox);
        }
    }
}
