//! Who may play: nobody whom the machine can't serve as well as those who do already.

use super::{bandwidth::Bandwidth, origins::Origin};
use millpond_store::Holds;
use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

/// Over this share of frames that the machine sends late, nobody else may play.
const LATE: f64 = 0.01;
/// Fewer frames than these say nothing.
const FRAMES: u64 = 100;

/// How much RTSP may take on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Sessions in all.
    pub sessions: usize,
    /// Sessions of one client's address.
    pub sessions_per_client: usize,
    /// Bits a second of all that play; nothing for no bound.
    pub bandwidth: Option<u64>,
    /// Bits a second of those that read from the origin of one place.
    pub origin_bandwidth: Option<u64>,
}

/// Knows what is taken on.
#[derive(Debug)]
pub(super) struct Admission {
    bounds: Bounds,
    /// A lock: taken when sessions come and go.
    clients: Mutex<Clients>,
    /// Of those that play.
    bandwidth: Bandwidth,
    /// What their frames take of the memory.
    holds: Holds,
    /// Frames went out late in the last second.
    is_late: AtomicBool,
}

#[derive(Debug, Default)]
struct Clients {
    sessions: usize,
    each: HashMap<IpAddr, usize>,
}

/// A session that was taken on.
#[derive(Debug)]
pub(super) struct Place {
    admission: Arc<Admission>,
    client: IpAddr,
}

/// Bandwidth that was taken.
#[derive(Debug)]
pub(super) struct Share {
    admission: Arc<Admission>,
    /// That which it reads from, where that has bounds.
    origin: Option<Arc<Origin>>,
    rate: u64,
}

impl Admission {
    pub(super) fn new(bounds: Bounds, holds: Holds) -> Arc<Self> {
        let (clients, bandwidth) = (Mutex::default(), Bandwidth::new(bounds.bandwidth));
        Arc::new(Self { bounds, clients, bandwidth, holds, is_late: AtomicBool::new(false) })
    }

    fn clients(&self) -> MutexGuard<'_, Clients> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A session of a client; nothing where there are too many, of it or in all.
    pub(super) fn place(self: &Arc<Self>, client: IpAddr) -> Option<Place> {
        let mut clients = self.clients();
        let of_client = clients.each.get(&client).copied().unwrap_or(0);
        if clients.sessions >= self.bounds.sessions || of_client >= self.bounds.sessions_per_client {
            return None;
        }
        clients.sessions += 1;
        clients.each.insert(client, of_client + 1);
        drop(clients);
        Some(Place { admission: self.clone(), client })
    }

    /// Whether a client would be taken on now, with so many bits a second, which may have to be read from an origin.
    pub(super) fn has_room(&self, client: IpAddr, rate: u64, origin: Option<&Origin>) -> bool {
        let clients = self.clients();
        let of_client = clients.each.get(&client).copied().unwrap_or(0);
        let has_place = clients.sessions < self.bounds.sessions && of_client < self.bounds.sessions_per_client;
        drop(clients);
        has_place
            && self.is_well()
            && self.bandwidth.has_room(rate)
            && origin.is_none_or(|origin| origin.has_room(rate))
    }

    /// Whether what plays goes out in time, and leaves at least half of the memory.
    fn is_well(&self) -> bool {
        !self.is_late.load(Ordering::Relaxed) && self.holds.weight() <= self.holds.budget() / 2
    }

    /// Room for so many bits a second, of the machine and of an origin where they are read from one; nothing where there is not so
    /// much, or where what plays already goes out late.
    pub(super) fn share(self: &Arc<Self>, rate: u64, origin: Option<&Arc<Origin>>) -> Option<Share> {
        if !self.is_well() || !self.bandwidth.take(rate) {
            return None;
        }
        let mut share = Share { admission: self.clone(), origin: None, rate };
        if let Some(origin) = origin {
            // Without it the share goes back.
            origin.take(rate).then(|| share.origin = Some(origin.clone()))?;
        }
        Some(share)
    }

    /// How many of the frames of the last second the machine sent late. Says whether that has become too many.
    pub(super) fn observe(&self, frames: u64, late: u64) -> bool {
        let is_late = frames >= FRAMES && late as f64 > frames as f64 * LATE;
        !self.is_late.swap(is_late, Ordering::Relaxed) && is_late
    }
}

impl Share {
    /// Takes what one who plays needs of an origin, where it hasn't yet and there is so much. Says whether it has it.
    pub(super) fn reads(&mut self, origin: &Arc<Origin>) -> bool {
        if self.origin.is_none() && origin.take_more(self.rate) {
            self.origin = Some(origin.clone());
        }
        self.origin.is_some()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut clients = self.admission.clients();
        clients.sessions -= 1;
        if let Some(count) = clients.each.get_mut(&self.client) {
            *count -= 1;
            if *count == 0 {
                clients.each.remove(&self.client);
            }
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.admission.bandwidth.give_back(self.rate);
        if let Some(origin) = &self.origin {
            origin.give_back(self.rate);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_store::{Memory, policy::Sieve};

    const BOUNDS: Bounds =
        Bounds { sessions: 3, sessions_per_client: 2, bandwidth: Some(1000), origin_bandwidth: None };

    fn holds() -> Holds {
        Holds::of(&Memory::new(100, Box::new(Sieve::default())), "sessions")
    }

    #[test]
    fn sessions_are_bounded_by_client_and_in_all() {
        let admission = Admission::new(BOUNDS, holds());
        let [a, b]: [IpAddr; 2] = ["192.0.2.1", "192.0.2.2"].map(|text| text.parse().unwrap());
        let first = admission.place(a).unwrap();
        let _second = admission.place(a).unwrap();
        assert!(admission.place(a).is_none(), "of one client");
        let _third = admission.place(b).unwrap();
        assert!(admission.place(b).is_none(), "in all");
        drop(first);
        assert!(admission.place(b).is_some());
        assert_eq!(admission.clients().each.len(), 2);
    }

    #[test]
    fn bandwidth_is_given_out_once() {
        let admission = Admission::new(BOUNDS, holds());
        let share = admission.share(600, None).unwrap();
        assert!(admission.share(600, None).is_none());
        let client = "192.0.2.1".parse().unwrap();
        assert!(!admission.has_room(client, 600, None) && admission.has_room(client, 400, None));
        assert!(admission.share(400, None).is_some());
        drop(share);
        assert!(admission.share(1000, None).is_some());
        assert!(admission.share(u64::MAX, None).is_none(), "no overflow");
    }

    #[test]
    fn an_origin_and_the_memory_are_given_out_too() {
        let (holds, origin) = (holds(), Arc::new(Origin::new(Some(500))));
        let admission = Admission::new(BOUNDS, holds.clone());
        let client = "192.0.2.1".parse().unwrap();
        let share = admission.share(400, Some(&origin)).unwrap();
        assert!(admission.share(200, Some(&origin)).is_none() && !admission.has_room(client, 200, Some(&origin)));
        assert!(admission.share(600, None).is_some(), "what was refused took nothing");
        let mut from_memory = admission.share(200, None).unwrap();
        assert!(!from_memory.reads(&origin), "jumps to where nobody was");
        drop(share);
        assert!(from_memory.reads(&origin) && from_memory.reads(&origin) && !origin.has_room(400));
        drop(from_memory);
        assert!(admission.share(500, Some(&origin)).is_some());
        let hold = holds.take(51);
        assert!(admission.share(1, None).is_none() && !admission.has_room(client, 1, None));
        drop(hold);
        assert!(admission.share(1, None).is_some());
    }

    #[test]
    fn a_house_that_is_late_takes_nobody() {
        let admission = Admission::new(Bounds { bandwidth: None, ..BOUNDS }, holds());
        assert!(!admission.observe(99, 99), "too few to say");
        assert!(!admission.observe(10_000, 100));
        assert!(admission.observe(10_000, 101));
        assert!(admission.share(1, None).is_none());
        assert!(!admission.observe(10_000, 5_000), "known already");
        assert!(!admission.observe(10_000, 0));
        assert!(admission.share(1, None).is_some());
    }
}
