//! The sessions of all connections, by their names.

use crate::rtsp::record::End;
use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// A session, as signalling sees it.
pub(in crate::rtsp) trait Viewer: Clone {
    /// Its state; `None` while one of its requests is performed.
    fn signs(&self) -> Option<Signs>;

    /// Whether its packets go over the connection that it was set up on.
    fn is_interleaved(&self) -> bool;

    /// Notes that its client was heard.
    fn heard(&self, now: Duration);

    /// Whether the token that admitted it has ended.
    fn is_over(&self) -> bool {
        false
    }

    /// Ends the connection that it was set up on: players then know that nothing follows.
    fn disconnect(&self) {}

    /// Notes why it ends. The first reason counts.
    fn ends(&self, why: End);
}

/// State of a session.
#[derive(Clone, Copy, Debug)]
pub(in crate::rtsp) struct Signs {
    /// Time at which its client was last heard.
    pub(in crate::rtsp) heard: Duration,
    /// Whether its transmission ended because the client reads nothing.
    pub(in crate::rtsp) is_stuck: bool,
    /// Whether it plays and has not reached its end.
    pub(in crate::rtsp) is_sent: bool,
    /// Whether it has ever played.
    pub(in crate::rtsp) has_played: bool,
}

/// The sessions of all connections.
#[derive(Debug)]
pub(in crate::rtsp) struct Sessions<T> {
    /// Silence of a client after which a new session will end, in milliseconds.
    timeout: AtomicU64,
    /// A lock: taken for look-ups, and when sessions begin and end.
    all: Mutex<HashMap<String, Held<T>>>,
}

/// A session, and the address that it was given to.
#[derive(Debug)]
struct Held<T> {
    client: IpAddr,
    /// Silence of the client after which it ends, as the client was told.
    timeout: Duration,
    session: T,
}

impl<T: Viewer> Sessions<T> {
    /// Returns no sessions yet. Each ends after `timeout` of silence.
    pub(in crate::rtsp) fn new(timeout: Duration) -> Self {
        let sessions = Self { timeout: AtomicU64::new(0), all: Mutex::default() };
        sessions.set_timeout(timeout);
        sessions
    }

    /// Changes the timeout of sessions that begin from now on. The others keep theirs.
    pub(in crate::rtsp) fn set_timeout(&self, timeout: Duration) {
        self.timeout.store(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Returns the timeout of sessions that begin now.
    pub(in crate::rtsp) fn timeout(&self) -> Duration {
        Duration::from_millis(self.timeout.load(Ordering::Relaxed))
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, Held<T>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The session of a name, for the address that it was given to: a name is of no use to others.
    pub(in crate::rtsp) fn find(&self, name: &str, client: IpAddr) -> Option<T> {
        let all = self.all();
        all.get(name).filter(|held| held.client == client.to_canonical()).map(|held| held.session.clone())
    }

    /// Adds a session of a client.
    pub(in crate::rtsp) fn add(&self, name: String, client: IpAddr, session: T) {
        self.all().insert(name, Held { client: client.to_canonical(), timeout: self.timeout(), session });
    }

    /// Removes a session, which ends with its last reference.
    pub(in crate::rtsp) fn remove(&self, name: &str) {
        let held = self.all().remove(name);
        // It ends outside of the lock.
        drop(held);
    }

    /// Removes all sessions.
    pub(in crate::rtsp) fn clear(&self) {
        let all = std::mem::take(&mut *self.all());
        drop(all);
    }

    /// Removes sessions whose clients are silent or read nothing, and those whose tokens have ended. Packets that are sent on a connection show that its client is there.
    pub(in crate::rtsp) fn expire(&self, now: Duration) {
        let is_over = |Held { session, timeout, .. }: &Held<T>| {
            let limit = now.saturating_sub(*timeout);
            if session.is_over() {
                session.ends(End::Expired);
                session.disconnect();
                return true;
            }
            let Some(Signs { heard, is_stuck, is_sent, .. }) = session.signs() else { return false };
            let is_over = is_stuck || (heard < limit && !(session.is_interleaved() && is_sent));
            if is_over {
                session.ends(End::Silent);
            }
            is_over
        };
        let gone: Vec<_> = self.all().extract_if(|_, held| is_over(held)).collect();
        // They end outside of the lock, and each tells so.
        drop(gone);
    }

    /// Returns the number of sessions that play and have not reached their end.
    pub(in crate::rtsp) fn playing(&self) -> usize {
        let plays = |held: &&Held<T>| held.session.signs().is_none_or(|signs| signs.is_sent);
        self.all().values().filter(plays).count()
    }

    /// All sessions with their names.
    pub(in crate::rtsp) fn list(&self) -> Vec<(String, T)> {
        self.all().iter().map(|(name, held)| (name.clone(), held.session.clone())).collect()
    }

    /// Returns the number of sessions.
    pub(in crate::rtsp) fn len(&self) -> usize {
        self.all().len()
    }
}
