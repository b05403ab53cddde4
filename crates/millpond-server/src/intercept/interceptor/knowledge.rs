//! Short-lived knowledge of servers: whether they have RTSP, and which paths they do not have by it.

use std::{
    collections::{HashMap, VecDeque},
    net::IpAddr,
    time::{Duration, Instant},
};

/// Most facts. Above it the oldest is forgotten.
const MOST: usize = 10_000;

/// A fact about a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Fact {
    /// It answers requests of RTSP.
    HasRtsp(IpAddr),
    /// It does not.
    NoRtsp(IpAddr),
    /// It has nothing by RTSP under the path and query of a hash.
    NoPath(IpAddr, u64),
    /// Its path of a hash is no live stream that clients of RTSP could share.
    NotShared(IpAddr, u64),
}

/// Facts about servers, each known for the same time.
#[derive(Debug)]
pub(super) struct Knowledge {
    lifetime: Duration,
    until: HashMap<Fact, Instant>,
    /// Facts in the order in which they end.
    order: VecDeque<(Instant, Fact)>,
}

impl Knowledge {
    /// Remembers each fact for `lifetime`.
    pub(super) fn new(lifetime: Duration) -> Self {
        Self { lifetime, until: HashMap::new(), order: VecDeque::new() }
    }

    /// Notes a fact. It replaces its contrary.
    pub(super) fn note(&mut self, fact: Fact, now: Instant) {
        self.expire(now);
        while self.order.len() >= MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.forget(oldest);
        }
        if let Fact::HasRtsp(server) = fact {
            self.until.remove(&Fact::NoRtsp(server));
        } else if let Fact::NoRtsp(server) = fact {
            self.until.remove(&Fact::HasRtsp(server));
        }
        let until = now + self.lifetime;
        self.until.insert(fact, until);
        self.order.push_back((until, fact));
    }

    /// Tells whether a fact was noted not long ago.
    pub(super) fn has(&mut self, fact: Fact, now: Instant) -> bool {
        self.expire(now);
        self.until.contains_key(&fact)
    }

    /// Removes a fact.
    pub(super) fn remove(&mut self, fact: Fact) {
        self.until.remove(&fact);
    }

    fn expire(&mut self, now: Instant) {
        while let Some(over) = self.order.pop_front_if(|(until, _)| *until <= now) {
            self.forget(over);
        }
    }

    /// Removes a fact that was not noted again since.
    fn forget(&mut self, (until, fact): (Instant, Fact)) {
        if self.until.get(&fact) == Some(&until) {
            self.until.remove(&fact);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Fact::{HasRtsp, NoPath, NoRtsp};

    const SERVER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn facts_end_after_their_time() {
        let (mut known, start) = (Knowledge::new(MINUTE), Instant::now());
        known.note(NoPath(SERVER, 7), start);
        known.note(NoRtsp(SERVER), start + MINUTE / 2);
        assert!(known.has(NoPath(SERVER, 7), start + MINUTE / 2) && !known.has(NoPath(SERVER, 8), start));
        // Noted again, it lasts longer.
        known.note(NoRtsp(SERVER), start + MINUTE);
        assert!(!known.has(NoPath(SERVER, 7), start + MINUTE) && known.has(NoRtsp(SERVER), start + MINUTE * 7 / 4));
        known.note(HasRtsp(SERVER), start + MINUTE * 7 / 4);
        assert!(!known.has(NoRtsp(SERVER), start + MINUTE * 7 / 4));
        assert!(known.has(HasRtsp(SERVER), start + MINUTE * 2) && !known.has(HasRtsp(SERVER), start + MINUTE * 3));
        assert!(known.until.is_empty() && known.order.is_empty());
    }

    #[test]
    fn many_paths_take_bounded_memory() {
        let (mut known, start) = (Knowledge::new(MINUTE), Instant::now());
        for path in 0..3 * MOST as u64 {
            known.note(NoPath(SERVER, path), start);
        }
        assert_eq!((known.until.len(), known.order.len()), (MOST, MOST));
        assert!(known.has(NoPath(SERVER, 3 * MOST as u64 - 1), start) && !known.has(NoPath(SERVER, 0), start));
    }
}
