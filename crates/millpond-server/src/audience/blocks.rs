//! Viewers whose requests are refused for a time.

use super::{ViewerKey, Viewing, lock, short};
use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

/// Most viewers that are refused at a time.
const MOST: usize = 1024;

/// Client, program and asset of a viewer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct About {
    /// Address of the client.
    pub(crate) client: IpAddr,
    /// User agent; empty where it told none.
    pub(crate) agent: Box<str>,
    /// Session of CMCD, or subject of its token.
    pub(crate) subject: Option<Box<str>>,
    /// Path of the asset.
    pub(crate) asset: Box<str>,
}

/// A viewer that is refused.
#[derive(Clone, Debug)]
pub(crate) struct BlockReport {
    /// Id of the viewer.
    pub(crate) id: String,
    /// The viewer.
    pub(crate) about: About,
    /// End of the block, since the Unix epoch.
    pub(crate) until: Duration,
}

/// The viewers that are refused.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    /// Number of blocks: requests look here first.
    count: AtomicUsize,
    /// A lock: taken by requests while anybody is refused.
    all: Mutex<HashMap<ViewerKey, Block>>,
}

#[derive(Debug)]
struct Block {
    about: About,
    until: Instant,
}

impl About {
    pub(super) fn new(viewing: &Viewing<'_>) -> Self {
        let Viewing { client, agent, subject, asset } = *viewing;
        Self {
            client: client.to_canonical(),
            agent: short(agent).into(),
            subject: subject.map(|subject| short(subject).into()),
            asset: short(asset).into(),
        }
    }
}

impl Blocks {
    pub(super) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }

    /// Time that is left of a viewer's block.
    pub(super) fn left(&self, key: ViewerKey, now: Instant) -> Option<Duration> {
        if self.is_empty() {
            return None;
        }
        let mut all = lock(&self.all);
        let left = all.get(&key)?.until.saturating_duration_since(now);
        if left.is_zero() {
            all.remove(&key);
            self.count.store(all.len(), Ordering::Relaxed);
            return None;
        }
        Some(left)
    }

    /// Refuses a viewer for a time. The block that ends first gives way where there are too many. Returns the end, since the Unix epoch.
    pub(super) fn add(&self, (key, about): (ViewerKey, About), now: Instant, time: Duration) -> Duration {
        let until = now + time;
        let mut all = lock(&self.all);
        all.retain(|_, block| block.until > now);
        if all.len() >= MOST
            && let Some(first) = all.iter().min_by_key(|(_, block)| block.until).map(|(key, _)| *key)
        {
            all.remove(&first);
        }
        all.insert(key, Block { about, until });
        self.count.store(all.len(), Ordering::Relaxed);
        wall(until, now)
    }

    /// Ends a block. Returns whether there was one.
    pub(super) fn remove(&self, key: ViewerKey) -> bool {
        let mut all = lock(&self.all);
        let was = all.remove(&key).is_some();
        self.count.store(all.len(), Ordering::Relaxed);
        was
    }

    /// The blocks that hold, by their ids.
    pub(super) fn reports(&self, now: Instant) -> Vec<BlockReport> {
        let mut all = lock(&self.all);
        all.retain(|_, block| block.until > now);
        self.count.store(all.len(), Ordering::Relaxed);
        let report = |(key, block): (&ViewerKey, &Block)| BlockReport {
            id: key.to_string(),
            about: block.about.clone(),
            until: wall(block.until, now),
        };
        let mut reports: Vec<_> = all.iter().map(report).collect();
        reports.sort_by(|a, b| a.id.cmp(&b.id));
        reports
    }
}

/// The time of a moment, since the Unix epoch.
fn wall(at: Instant, now: Instant) -> Duration {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since + at.saturating_duration_since(now)
}
