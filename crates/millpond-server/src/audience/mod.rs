//! The audience of HTTP: viewers as inferred from requests, responses under way, and viewers that are refused.
//!
//! HTTP has no sessions. Requests of one client address, user agent, subject (token or CMCD session) and asset count as one viewer.
//! A viewer has left after a minute without a request. Each request takes one short lock of one of 64 shards; tables are bounded.

mod blocks;
mod report;
mod shard;

pub(crate) use blocks::BlockReport;
pub(crate) use report::{Kicked, ViewerReport, ViewerState};

use crate::statistics::Rebuffers;
use blocks::Blocks;
use shard::{LongResponse, Shard};
use std::{
    collections::BTreeMap,
    fmt,
    hash::{BuildHasher, RandomState},
    net::IpAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};
use tokio::sync::Notify;

/// Number of shards of the table.
const SHARDS: usize = 64;
/// Most bytes of a user agent, subject or asset that are kept.
const TEXT: usize = 256;

/// Reads the bytes sent so far of a response under way.
pub(crate) type ReadBytes = Box<dyn Fn() -> u64 + Send + Sync>;

/// The identity of a viewer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Viewing<'a> {
    /// Address of the client.
    pub(crate) client: IpAddr,
    /// User agent.
    pub(crate) agent: &'a str,
    /// Session of CMCD, or subject of the token.
    pub(crate) subject: Option<&'a str>,
    /// Path of the asset or file, with its place.
    pub(crate) asset: &'a str,
}

/// A viewer's key, random for each run of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ViewerKey(u64);

/// Kind of a response under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    /// A file, which ends: it belongs to its viewer.
    File,
    /// A running stream, which is listed by itself.
    Long,
}

/// A response that is registered until it is dropped.
pub(crate) struct UnderWay {
    audience: Arc<Audience>,
    key: ViewerKey,
    number: u64,
    length: Length,
    cut: Arc<Notify>,
}

/// The audience of a server.
#[derive(Debug)]
pub(crate) struct Audience {
    keys: RandomState,
    /// Moment from which times of the tables count.
    clock: Instant,
    numbers: AtomicU64,
    /// Locks: each taken once by a request of its viewers.
    shards: Vec<Mutex<Shard>>,
    /// Long responses by their numbers. A lock: taken at the begin and end of each.
    long: Mutex<BTreeMap<u64, LongResponse>>,
    blocks: Blocks,
    /// A lock: taken where a player reports a rebuffer, and at each look.
    rebuffers: Mutex<Rebuffers>,
}

impl Default for Audience {
    fn default() -> Self {
        Self {
            keys: RandomState::new(),
            clock: Instant::now(),
            numbers: AtomicU64::new(1),
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            long: Mutex::default(),
            blocks: Blocks::default(),
            rebuffers: Mutex::default(),
        }
    }
}

impl Audience {
    /// Returns the key of a viewer.
    pub(crate) fn key(&self, viewing: &Viewing<'_>) -> ViewerKey {
        let Viewing { client, agent, subject, asset } = *viewing;
        ViewerKey(self.keys.hash_one((client.to_canonical(), short(agent), subject.map(short), short(asset))))
    }

    /// Tells whether any viewer is refused now: requests need no key otherwise.
    pub(crate) fn has_blocks(&self) -> bool {
        !self.blocks.is_empty()
    }

    /// Tells until when the requests of a viewer are refused, if they are.
    pub(crate) fn blocked(&self, viewing: &Viewing<'_>) -> Option<Duration> {
        self.blocks.left(self.key(viewing), Instant::now())
    }

    /// Counts a request that was answered.
    pub(crate) fn answered(&self, viewing: &Viewing<'_>, bytes: u64) {
        let key = self.key(viewing);
        let now = self.now();
        self.shard(key).viewer(key, viewing, now).add(bytes, now);
    }

    /// Registers a response under way, whose bytes `sent` reads.
    pub(crate) fn begin(self: &Arc<Self>, viewing: &Viewing<'_>, length: Length, sent: ReadBytes) -> UnderWay {
        let (key, now) = (self.key(viewing), self.now());
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let cut = Arc::new(Notify::new());
        match length {
            Length::File => self.shard(key).viewer(key, viewing, now).begin(number, sent, cut.clone()),
            Length::Long => {
                let response = LongResponse::new(key, viewing, now, sent, cut.clone());
                self.long().insert(number, response);
            }
        }
        UnderWay { audience: self.clone(), key, number, length, cut }
    }

    /// Reports all viewers of the last minute, and all long responses, in the order of their ids.
    pub(crate) fn reports(&self) -> Vec<ViewerReport> {
        let now = self.now();
        let times = Times { wall: SystemTime::now(), now };
        let mut all = Vec::new();
        for shard in &self.shards {
            lock(shard).report(times, &mut all);
        }
        all.sort_by_key(|report| report.key);
        all.extend(self.long().iter().map(|(number, response)| response.report(*number, times)));
        all
    }

    /// Shows each viewer of the last minute, and each long response, to `seen`: a number that no other one has, and the asset.
    pub(crate) fn each_viewer(&self, seen: &mut dyn FnMut(u64, &str)) {
        let now = self.now();
        for shard in &self.shards {
            lock(shard).each(now, seen);
        }
        // Keys are random numbers. Those of long responses count down from the highest one.
        self.long().iter().for_each(|(number, response)| seen(!number, &response.about.asset));
    }

    /// Counts a request whose player reports that its buffer ran empty.
    pub(crate) fn rebuffered(&self, asset: &str) {
        lock(&self.rebuffers).add(short(asset));
    }

    /// Takes the rebuffers since the last call.
    pub(crate) fn take_rebuffers(&self) -> Rebuffers {
        std::mem::take(&mut lock(&self.rebuffers))
    }

    /// Number of viewers of the last minute, and of long responses.
    pub(crate) fn count(&self) -> usize {
        let now = self.now();
        self.shards.iter().map(|shard| lock(shard).count(now)).sum::<usize>() + self.long().len()
    }

    /// Ends the responses of a viewer or a long response, and refuses the viewer's requests for a time. `None` where
    /// there is none of that id.
    pub(crate) fn kick(&self, id: &str, refused: Duration) -> Option<Kicked> {
        let (kind, number) = id.split_once('-')?;
        let number = u64::from_str_radix(number, 16).ok()?;
        let block = match kind {
            "h" => {
                let key = ViewerKey(number);
                let block = self.shard(key).kick(key)?;
                (key, block)
            }
            "l" => {
                let long = self.long();
                let response = long.get(&number)?;
                response.cut.notify_one();
                (response.key, response.about.clone())
            }
            _ => return None,
        };
        let until = self.blocks.add(block, Instant::now(), refused);
        Some(Kicked { id: id.to_owned(), until })
    }

    /// The viewers that are refused now.
    pub(crate) fn blocks(&self) -> Vec<BlockReport> {
        self.blocks.reports(Instant::now())
    }

    /// Refuses a viewer no longer. Returns whether one was refused.
    pub(crate) fn unblock(&self, id: &str) -> bool {
        let number = id.strip_prefix("h-").and_then(|number| u64::from_str_radix(number, 16).ok());
        number.is_some_and(|number| self.blocks.remove(ViewerKey(number)))
    }

    fn now(&self) -> Duration {
        self.clock.elapsed()
    }

    fn shard(&self, key: ViewerKey) -> MutexGuard<'_, Shard> {
        lock(&self.shards[key.0 as usize % SHARDS])
    }

    fn long(&self) -> MutexGuard<'_, BTreeMap<u64, LongResponse>> {
        lock(&self.long)
    }
}

/// The present moment, by both clocks.
#[derive(Clone, Copy)]
struct Times {
    wall: SystemTime,
    now: Duration,
}

impl Times {
    /// The wall clock time of a moment of the table, in seconds since the Unix epoch.
    fn wall(self, at: Duration) -> f64 {
        let time = self.wall.checked_sub(self.now.saturating_sub(at));
        let since = time.and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
        since.unwrap_or_default().as_secs_f64()
    }
}

impl UnderWay {
    /// Waits until an operator ends the response.
    pub(crate) async fn cut(&self) {
        self.cut.notified().await;
    }

    /// Whether the response is counted as one request of its viewer when it ends.
    pub(crate) fn is_long(&self) -> bool {
        self.length == Length::Long
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        match self.length {
            Length::File => self.audience.shard(self.key).end(self.key, self.number),
            Length::Long => _ = self.audience.long().remove(&self.number),
        }
    }
}

impl fmt::Debug for UnderWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnderWay").field("number", &self.number).finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The beginning of a text that a client sent.
fn short(text: &str) -> &str {
    &text[..text.floor_char_boundary(TEXT)]
}

#[cfg(test)]
mod tests;
