//! Sessions that are opened at a time.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Sessions of one server that are opened at a time. Viewers choose names, and a server may be a camera: thousands of wrong
/// names are no reason for thousands of connections.
const AT_ONCE: usize = 8;

/// Turns of the sessions that open the sources of each server. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turns {
    /// By host and port. A lock: taken for a look-up.
    servers: Arc<Mutex<HashMap<String, Weak<Semaphore>>>>,
}

/// A turn. The next session has it when this is dropped.
#[derive(Debug)]
pub(in crate::reception) struct Turn(#[expect(dead_code, reason = "keeps the turn")] Option<OwnedSemaphorePermit>);

impl Turns {
    /// Waits for a turn at a server. Turns are given in the order of these calls. Cancel safe.
    pub(in crate::reception) async fn take(&self, server: &str) -> Turn {
        let turns = self.of(server);
        Turn(turns.acquire_owned().await.ok())
    }

    fn of(&self, server: &str) -> Arc<Semaphore> {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = servers.get(server).and_then(Weak::upgrade) {
            return known;
        }
        servers.retain(|_, turns| turns.strong_count() > 0);
        let new = Arc::new(Semaphore::new(AT_ONCE));
        servers.insert(server.to_owned(), Arc::downgrade(&new));
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;

    #[tokio::test]
    async fn a_server_has_few_turns_and_another_has_its_own() {
        let turns = Turns::default();
        let mut taken = Vec::new();
        for _ in 0..AT_ONCE {
            taken.push(turns.take("door:554").now_or_never().expect("a turn"));
        }
        assert!(turns.take("door:554").now_or_never().is_none());
        assert!(turns.take("gate:554").now_or_never().is_some());
        assert!(turns.take("yard:554").now_or_never().is_some());
        assert!(!turns.servers.lock().unwrap().contains_key("gate:554"), "servers that nobody opens are forgotten");
        taken.pop();
        assert!(turns.take("door:554").now_or_never().is_some());
    }
}
