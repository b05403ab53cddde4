//! Viewers by HTTP. They have no sessions, so a client that plays a title has one booking, whatever the number of its requests.

use super::{Booked, Cluster};
use millpond_cluster::{Demand, Shortage};
use millpond_stream::ClientAddress;
use std::{
    collections::HashMap,
    hash::{BuildHasher as _, RandomState},
    net::IpAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// Time without a request after which a viewer has left.
const IDLE: Duration = Duration::from_secs(30);
/// Most viewers with a booking. The traffic of others is booked as it is measured.
const MOST: usize = 100_000;

/// The viewers by HTTP that have a booking.
#[derive(Debug, Default)]
pub(super) struct HttpViewers {
    keys: RandomState,
    /// By the hash of the client's address and the title. A lock, held for a look-up.
    all: Mutex<HashMap<u64, Arc<HttpViewer>>>,
}

#[derive(Debug, Default)]
struct HttpViewer {
    /// Time of its last request, in milliseconds since the start of the server.
    heard: AtomicU64,
    /// A lock, held while its bandwidth is booked: requests that come meanwhile must not book it again.
    booked: tokio::sync::Mutex<Option<Booked>>,
}

impl HttpViewers {
    fn key(&self, client: IpAddr, title: &str) -> u64 {
        self.keys.hash_one((ClientAddress::from(client), title))
    }

    fn all(&self) -> MutexGuard<'_, HashMap<u64, Arc<HttpViewer>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a request of a viewer. Returns whether the viewer is known.
    fn hear(&self, key: u64, now: Duration) -> bool {
        let all = self.all();
        let known = all.get(&key);
        if let Some(viewer) = known {
            viewer.heard.store(now.as_millis() as u64, Ordering::Relaxed);
        }
        known.is_some()
    }

    /// The viewer of a request at `now`, who may be new.
    fn viewer(&self, key: u64, now: Duration) -> Arc<HttpViewer> {
        let mut all = self.all();
        let viewer = match all.get(&key) {
            Some(known) => known.clone(),
            None => {
                let new = Arc::<HttpViewer>::default();
                if all.len() < MOST {
                    all.insert(key, new.clone());
                }
                new
            }
        };
        viewer.heard.store(now.as_millis() as u64, Ordering::Relaxed);
        viewer
    }

    /// Removes a viewer. Returns whether there was one.
    fn remove(&self, key: u64) -> bool {
        let removed = self.all().remove(&key);
        removed.is_some()
    }

    /// Removes the viewers who have left, and returns them: their bookings end when they are dropped.
    fn leave(&self, now: Duration) -> Vec<Arc<HttpViewer>> {
        let since = |viewer: &HttpViewer| {
            now.as_millis() as u64 - viewer.heard.load(Ordering::Relaxed).min(now.as_millis() as u64)
        };
        let gone = |_: &u64, viewer: &mut Arc<HttpViewer>| since(viewer) > IDLE.as_millis() as u64;
        self.all().extract_if(gone).map(|(_, viewer)| viewer).collect()
    }
}

impl Cluster {
    /// Books bandwidth for a viewer by HTTP who begins to play a title, unless the viewer has it.
    ///
    /// # Errors
    /// The node or the storage lacks bandwidth.
    pub(crate) async fn book_viewer(
        self: &Arc<Self>,
        (client, title): (IpAddr, &str),
        demand: Demand,
    ) -> Result<(), Shortage> {
        if !self.books() {
            return Ok(());
        }
        let viewers = &self.bookings.viewers;
        let viewer = viewers.viewer(viewers.key(client, title), self.now());
        let mut booked = viewer.booked.lock().await;
        if booked.as_ref().is_some_and(Booked::lasts) {
            return Ok(());
        }
        match self.book(demand).await {
            Ok(new) => *booked = new,
            // The booking of the viewer is still its own.
            Err(_) if booked.as_ref().is_some_and(|booked| !booked.is_over()) => {}
            Err(shortage) => return Err(shortage),
        }
        Ok(())
    }

    /// Ends the booking of a viewer by HTTP who was refused for another reason. One who watches the title already books again at
    /// the next request.
    pub(crate) fn refuse_viewer(&self, (client, title): (IpAddr, &str)) {
        let viewers = &self.bookings.viewers;
        if viewers.remove(viewers.key(client, title)) {
            self.bookings.wake();
        }
    }

    /// Notes that a viewer by HTTP goes on with a title. One who comes from another node, or was away for a while, gets a booking
    /// where there is room, and is not refused otherwise.
    pub(crate) fn hear_viewer(self: &Arc<Self>, (client, title): (IpAddr, &str), demand: impl FnOnce() -> Demand) {
        let viewers = &self.bookings.viewers;
        if !self.books() {
            return;
        }
        let key = viewers.key(client, title);
        if viewers.hear(key, self.now()) {
            return;
        }
        let (cluster, viewer, demand) = (self.clone(), viewers.viewer(key, self.now()), demand());
        tokio::spawn(async move {
            let mut booked = viewer.booked.lock().await;
            if booked.is_none() {
                *booked = cluster.try_book(demand).await.ok().flatten();
            }
        });
    }

    /// Ends the bookings of viewers who have left.
    pub(super) fn end_viewers(&self) {
        drop(self.bookings.viewers.leave(self.now()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_and_a_title_are_one_viewer_until_the_client_is_silent() {
        let viewers = HttpViewers::default();
        let [a, b]: [IpAddr; 2] = ["2001:db8::1", "2001:db8::2"].map(|text| text.parse().unwrap());
        let key = viewers.key(a, "films/a.mp4");
        assert_eq!(key, viewers.key(b, "films/a.mp4"), "one network of IPv6");
        assert_ne!(key, viewers.key(a, "films/b.mp4"));
        assert_ne!(key, viewers.key("192.0.2.1".parse().unwrap(), "films/a.mp4"));
        assert!(!viewers.hear(key, Duration::ZERO));
        let first = viewers.viewer(key, Duration::from_secs(1));
        assert!(Arc::ptr_eq(&first, &viewers.viewer(key, Duration::from_secs(2))));
        assert!(viewers.hear(key, Duration::from_secs(20)));
        assert!(viewers.leave(Duration::from_secs(50)).is_empty());
        assert_eq!(viewers.leave(Duration::from_secs(51)).len(), 1);
        assert!(!viewers.hear(key, Duration::from_secs(51)));
        viewers.viewer(key, Duration::from_secs(52));
        assert!(viewers.remove(key) && !viewers.remove(key));
    }
}
