//! The client for which a job runs.

use std::{
    future::Future,
    net::{IpAddr, Ipv6Addr},
};

tokio::task_local! {
    static ASKER: Asker;
}

/// A client as one share of the pool: an IPv4 address, or an IPv6 network of 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Asker(IpAddr);

impl From<IpAddr> for Asker {
    fn from(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V6(address) => {
                let network = u128::from(address) & !u128::from(u64::MAX);
                Self(Ipv6Addr::from(network).into())
            }
            address => Self(address),
        }
    }
}

impl Asker {
    /// Runs a future whose jobs are those of this client.
    pub async fn asks<T>(self, future: impl Future<Output = T>) -> T {
        ASKER.scope(self, future).await
    }

    /// Returns the client whose future runs, if it is known.
    pub(super) fn current() -> Option<Self> {
        ASKER.try_with(|asker| *asker).ok()
    }
}
