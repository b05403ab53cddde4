//! The addresses of a peer that have shown that they are the peer's.

use std::{collections::VecDeque, net::SocketAddr};

/// Addresses of a peer that are known at once. Browsers check from each of their interfaces.
const MOST: usize = 16;

/// Addresses of a peer, the newest one last. Of too many, the oldest ones are forgotten.
#[derive(Debug, Default)]
pub(crate) struct KnownAddresses(VecDeque<SocketAddr>);

impl KnownAddresses {
    pub(crate) fn has(&self, address: SocketAddr) -> bool {
        self.0.contains(&address)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn add(&mut self, address: SocketAddr) {
        self.0.retain(|known| *known != address);
        self.0.push_back(address);
        if self.0.len() > MOST {
            self.0.pop_front();
        }
    }
}
