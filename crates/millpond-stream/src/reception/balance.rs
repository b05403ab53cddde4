//! Choice of a stream's server: by health, then by load.

use crate::{
    reception::{Alternatives, RtspSource, backoff::Backoff, source::SourceTransport},
    source_health::SourceErrorKind,
};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::time::Instant;

/// Delay after a refused password: cameras lock accounts after some attempts.
const UNAUTHORIZED: Duration = Duration::from_secs(60);

/// Streams and failures of servers, by host and port. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Balance {
    /// A lock: taken for a look-up.
    servers: Arc<Mutex<HashMap<String, Server>>>,
}

/// One server.
#[derive(Debug, Default)]
struct Server {
    /// Streams that are received from it, or opened.
    streams: usize,
    /// Its delays, and the time before which it is avoided, since it failed.
    failing: Option<(Backoff, Instant)>,
}

/// A stream on a server, counted until it is dropped.
#[derive(Debug)]
pub(super) struct Load {
    balance: Balance,
    server: String,
}

impl Balance {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Server>> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a server failed, whatever stream was asked for. `random` is from 0 to 1.
    fn failed(&self, server: &str, now: Instant, random: f64) {
        let mut servers = self.lock();
        let server = servers.entry(server.to_owned()).or_default();
        let (mut backoff, _) = server.failing.take().unwrap_or_else(|| (Backoff::new(), now));
        let until = now + backoff.failed(random);
        server.failing = Some((backoff, until));
    }

    /// Notes that a server sends media.
    fn recovered(&self, server: &str) {
        let mut servers = self.lock();
        if let Some(known) = servers.get_mut(server) {
            known.failing = None;
            if known.streams == 0 {
                servers.remove(server);
            }
        }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        let mut servers = self.balance.lock();
        if let Some(server) = servers.get_mut(&self.server) {
            server.streams -= 1;
            if server.streams == 0 && server.failing.is_none() {
                servers.remove(&self.server);
            }
        }
    }
}

/// The servers of one stream.
#[derive(Debug)]
pub(super) struct Servers {
    balance: Balance,
    candidates: Vec<Candidate>,
}

/// A server that has the stream.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) source: RtspSource,
    /// Transport of the next session.
    pub(super) transport: SourceTransport,
    /// Delays of this stream.
    backoff: Backoff,
    /// Time before which this stream is not asked for again.
    until: Instant,
}

/// The server of the next attempt.
#[derive(Debug)]
pub(super) enum Choice {
    /// This candidate, now.
    Now(usize, Load),
    /// None before a time.
    Later(Instant),
}

impl Servers {
    pub(super) fn new(sources: &Alternatives, balance: Balance, now: Instant) -> Self {
        let candidate = |source: &RtspSource| Candidate {
            transport: source.first_transport(),
            source: source.clone(),
            backoff: Backoff::new(),
            until: now,
        };
        Self { balance, candidates: sources.iter().map(candidate).collect() }
    }

    /// Returns a candidate.
    pub(super) fn get(&mut self, number: usize) -> &mut Candidate {
        &mut self.candidates[number]
    }

    /// Chooses the server with the fewest streams, among servers that did not fail recently. Failures in other streams count
    /// where there is a choice.
    pub(super) fn choose(&self, now: Instant) -> Choice {
        let has_choice = self.candidates.len() > 1;
        let mut servers = self.balance.lock();
        let rank = |(number, candidate): (usize, &Candidate)| {
            let server = servers.get(&candidate.source.server());
            let failing = server.filter(|_| has_choice).and_then(|server| server.failing.as_ref());
            let until = failing.map_or(candidate.until, |(_, until)| candidate.until.max(*until));
            (until.max(now), server.map_or(0, |server| server.streams), number)
        };
        let Some((at, _, number)) = self.candidates.iter().enumerate().map(rank).min() else {
            return Choice::Later(now);
        };
        if at > now {
            return Choice::Later(at);
        }
        let server = self.candidates[number].source.server();
        servers.entry(server.clone()).or_default().streams += 1;
        Choice::Now(number, Load { balance: self.balance.clone(), server })
    }

    /// Notes a failure of a candidate. `random` is from 0 to 1.
    pub(super) fn failed(&mut self, number: usize, kind: SourceErrorKind, now: Instant, random: f64) {
        use SourceErrorKind::{Protocol, Refused, TimedOut, Unauthorized, Unreachable};
        let candidate = &mut self.candidates[number];
        let delay = if kind == Unauthorized { UNAUTHORIZED } else { candidate.backoff.failed(random) };
        candidate.until = now + delay;
        // Where there is no choice nobody asks, and clients may name the server.
        let has_choice = self.candidates.len() > 1;
        let candidate = &self.candidates[number];
        if has_choice && matches!(kind, Unreachable | TimedOut | Protocol | Refused(453 | 500..)) {
            self.balance.failed(&candidate.source.server(), now, random);
        }
    }

    /// Notes that a candidate sent media for long.
    pub(super) fn succeeded(&mut self, number: usize) {
        let candidate = &mut self.candidates[number];
        candidate.backoff.succeeded();
        self.balance.recovered(&candidate.source.server());
    }

    /// Tells whether a server can be tried at once.
    pub(super) fn has_another(&self, now: Instant) -> bool {
        matches!(self.choose(now), Choice::Now(..))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use SourceErrorKind::{NotFound, Unreachable};

    fn servers(balance: &Balance, urls: &[&str], now: Instant) -> Servers {
        let mut sources = urls.iter().map(|url| RtspSource::new(url).unwrap());
        let first = sources.next().unwrap();
        Servers::new(&Alternatives::new(first, sources.collect()), balance.clone(), now)
    }

    #[track_caller]
    fn chosen(servers: &Servers, now: Instant) -> (usize, Load) {
        match servers.choose(now) {
            Choice::Now(number, load) => (number, load),
            Choice::Later(at) => panic!("nothing for {:?}", at - now),
        }
    }

    #[test]
    fn streams_are_spread_over_servers() {
        let (balance, now) = (Balance::default(), Instant::now());
        let urls = ["rtsp://a/", "rtsp://b/", "rtsp://c/"];
        let streams: Vec<_> = (0..6).map(|_| chosen(&servers(&balance, &urls, now), now)).collect();
        assert_eq!(streams.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [0, 1, 2, 0, 1, 2]);
        drop(streams);
        assert!(balance.lock().is_empty(), "servers without streams are forgotten");
    }

    #[test]
    fn failed_servers_are_left_and_tried_again() {
        let (balance, now) = (Balance::default(), Instant::now());
        let urls = ["rtsp://a/", "rtsp://b/"];
        let mut first = servers(&balance, &urls, now);
        assert_eq!(chosen(&first, now).0, 0);
        first.failed(0, Unreachable, now, 0.5);
        assert!(first.has_another(now));
        let (number, load) = chosen(&first, now);
        assert_eq!(number, 1);
        // Another stream avoids the server too, but not one that has no other server.
        assert_eq!(chosen(&servers(&balance, &urls, now), now).0, 1);
        assert_eq!(chosen(&servers(&balance, &urls[..1], now), now).0, 0);
        // It has fewer streams when its time is over.
        assert_eq!(chosen(&first, now + Duration::from_millis(500)).0, 0);
        drop(load);
        // A missing name is no fault of the server.
        first.failed(1, NotFound, now, 0.5);
        assert_eq!(chosen(&servers(&balance, &urls, now), now).0, 1);
        let Choice::Later(at) = first.choose(now) else { panic!("both failed") };
        assert_eq!(at - now, Duration::from_millis(500));
        // Delays grow, until media was received.
        let later = now + Duration::from_secs(1);
        first.failed(0, Unreachable, later, 0.5);
        assert_eq!(chosen(&first, later + Duration::from_millis(999)).0, 1);
        first.succeeded(0);
        assert_eq!(chosen(&servers(&balance, &urls, now), later).0, 0);
    }
}
