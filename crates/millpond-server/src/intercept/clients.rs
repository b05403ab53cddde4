//! The open connections of each client.

use millpond_stream::ClientAddress;
use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Connections of each client, of which there is a limit.
#[derive(Debug)]
pub(super) struct Clients {
    most: usize,
    /// Open connections by client. A lock: taken when a connection begins and ends.
    open: Mutex<HashMap<ClientAddress, usize>>,
}

/// One connection of a client, counted until it is dropped.
#[derive(Debug)]
pub(super) struct Counted {
    clients: Arc<Clients>,
    client: ClientAddress,
}

impl Clients {
    /// Allows each client `most` connections.
    pub(super) fn new(most: usize) -> Self {
        Self { most, open: Mutex::default() }
    }

    /// Counts a connection; `None` where its client has too many.
    pub(super) fn count(self: &Arc<Self>, client: IpAddr) -> Option<Counted> {
        let client = ClientAddress::from(client);
        let mut open = self.lock();
        let number = open.entry(client).or_default();
        if *number >= self.most {
            return None;
        }
        *number += 1;
        Some(Counted { clients: self.clone(), client })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ClientAddress, usize>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut open = self.clients.lock();
        if let Some(number) = open.get_mut(&self.client) {
            *number -= 1;
            if *number == 0 {
                open.remove(&self.client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_client_has_its_limit() {
        let clients = Arc::new(Clients::new(2));
        let count = |address: &str| clients.count(address.parse().unwrap());
        let (first, _second) = (count("192.0.2.1").unwrap(), count("::ffff:192.0.2.1").unwrap());
        assert!(count("192.0.2.1").is_none() && count("192.0.2.2").is_some());
        drop(first);
        let third = count("192.0.2.1");
        assert!(third.is_some() && count("192.0.2.1").is_none());
        drop((third, _second));
        assert!(clients.lock().is_empty(), "clients without connections are forgotten");
    }
}
