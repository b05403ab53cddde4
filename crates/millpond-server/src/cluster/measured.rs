//! Traffic that no stream has booked, such as downloads of files: it is booked as it is measured.

use super::{Booked, Cluster, Counted};
use millpond_cluster::{Bitrate, Demand, Unbooked};
use std::{collections::HashMap, sync::Arc, time::Duration};
use tokio::sync::watch;

/// Least bandwidth that is booked for measured traffic.
const LEAST: Bitrate = Bitrate::from_mbps(1);

/// Traffic of this node and of the storages that it reads.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    last: Option<(Counted, Duration)>,
    sent: Meter,
    read: HashMap<Arc<str>, Meter>,
}

/// Traffic of one resource.
#[derive(Debug, Default)]
struct Meter {
    unbooked: Unbooked,
    booked: Option<Booked>,
}

impl Cluster {
    /// Books measured traffic, and ends the bookings of viewers who have left, until `stop` turns true. It waits for etcd, which the
    /// task that renews the lease must not do.
    pub(super) async fn book_measured(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        if !self.books() {
            return;
        }
        let (mut counted, mut traffic) = (self.bookings.counted.subscribe(), Traffic::default());
        loop {
            tokio::select! {
                Ok(()) = counted.changed() => {}
                _ = stop.wait_for(|stop| *stop) => return,
            }
            self.end_viewers();
            let now = counted.borrow_and_update().clone();
            if let Some(now) = now {
                traffic.follow(&self, now).await;
            }
        }
    }
}

impl Traffic {
    /// Books what is sent, and read of storages, beyond what is booked for streams.
    pub(super) async fn follow(&mut self, cluster: &Arc<Cluster>, (counted, at): (Counted, Duration)) {
        let Some((before, since)) = self.last.replace((counted.clone(), at)) else { return };
        let elapsed = at.saturating_sub(since);
        if elapsed.is_zero() {
            return;
        }
        let sent = counted.sent.saturating_sub(before.sent);
        self.sent.follow(cluster, (sent, elapsed), Demand::default()).await;
        if !cluster.bookings.ledger().bounds_storages() {
            return;
        }
        for read in counted.read {
            let known =
                before.read.iter().find(|known| known.place == read.place).map_or(read.bytes, |known| known.bytes);
            let meter = self.read.entry(read.place.clone()).or_default();
            let (storage, stores) = (Some(read.place), read.stores);
            let demand = Demand { storage, stores, is_read_only: true, ..Demand::default() };
            meter.follow(cluster, (read.bytes.saturating_sub(known), elapsed), demand).await;
        }
    }
}

impl Meter {
    /// Books the bandwidth that is not that of streams. `demand` has its resources.
    async fn follow(&mut self, cluster: &Arc<Cluster>, (bytes, elapsed): (u64, Duration), demand: Demand) {
        let own = self.booked.as_ref().map_or(Bitrate::ZERO, Booked::rate);
        let streams = cluster.bookings.ledger().needed(demand.storage.as_deref()).minus(own);
        let rate = self.unbooked.measure(bytes, streams, elapsed);
        let differs = rate.minus(own).plus(own.minus(rate));
        if differs < LEAST && rate >= LEAST {
            return;
        }
        self.booked = None;
        if rate < LEAST {
            return;
        }
        let demand = Demand { rate, ..demand };
        self.booked = match cluster.try_book(demand.clone()).await {
            Ok(booked) => booked,
            // All that is free is taken: no further stream starts.
            Err(shortage) => cluster.try_book(Demand { rate: shortage.free, ..demand }).await.ok().flatten(),
        };
    }
}
