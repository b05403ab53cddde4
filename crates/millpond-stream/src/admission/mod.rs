//! Admission: a session plays only if the machine can serve it together with all sessions that play already.

mod bandwidth;
mod clients;
mod origins;
mod overload;

pub(crate) use origins::{OriginLoad, Origins};
pub(crate) use overload::{Change, Measured, Overload, Spent};

use bandwidth::Bandwidth;
pub use clients::ClientAddress;
use clients::Clients;
use millpond_store::Holds;
use std::{
    net::IpAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Instant,
};

/// Limits of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Sessions in all.
    pub sessions: usize,
    /// Sessions of one client address.
    pub sessions_per_client: usize,
    /// Sessions of one client address that have not played yet.
    pub waiting_per_client: usize,
    /// Bits a second of all sessions that play; `None` is unbounded.
    pub bandwidth: Option<u64>,
    /// Bits a second of all sessions that read from the origin of one admit; `None` is unbounded.
    pub origin_bandwidth: Option<u64>,
}

/// Reason for which a session is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Full {
    /// [`Bounds::sessions`] is reached.
    #[error("too many sessions")]
    Sessions,
    /// [`Bounds::sessions_per_client`] is reached.
    #[error("too many sessions of the client")]
    Client,
    /// Too many sessions of the client's address or connection have not played.
    #[error("too many sessions that were set up and not played")]
    Waiting,
    /// [`Bounds::bandwidth`] is reached.
    #[error("no bandwidth left")]
    Bandwidth,
    /// [`Bounds::origin_bandwidth`] is reached, or the origin is late.
    #[error("the origin is late or has no bandwidth left")]
    Origin,
    /// Sessions hold half of the memory.
    #[error("sessions hold half of the memory")]
    Memory,
    /// The sending threads have too much to do.
    #[error("sending is late")]
    Sending,
}

impl Full {
    /// Names of the reasons in metrics, in the order of the variants.
    pub(crate) const NAMES: [&'static str; 7] =
        ["sessions", "client", "waiting", "bandwidth", "origin", "memory", "sending"];
}

/// Counts admitted sessions, and decides whether another one may play.
#[derive(Debug)]
pub struct Admission {
    /// A lock: written when the configuration changes.
    bounds: RwLock<Bounds>,
    /// A lock: taken when sessions begin and end, and when they first play.
    clients: Mutex<Clients>,
    /// Bandwidth of the sessions that play.
    bandwidth: Bandwidth,
    /// Memory of their frames.
    holds: Holds,
    /// Whether [`Overload`] refuses sessions.
    is_overloaded: AtomicBool,
    /// A lock: taken once a second.
    overload: Mutex<Overload>,
}

/// An admitted session. It is counted until this is dropped.
#[derive(Debug)]
pub struct Admitted {
    admission: Arc<Admission>,
    client: ClientAddress,
    /// Number of sessions of its connection that have not played, while it is one of them.
    waiting: Option<Arc<AtomicUsize>>,
}

/// Bandwidth promised to a session until this is dropped.
#[derive(Debug)]
pub(crate) struct Booking {
    admission: Arc<Admission>,
    /// The origin that the session reads from, if it can refuse sessions.
    origin: Option<Arc<OriginLoad>>,
    rate: u64,
}

impl Admission {
    pub(crate) fn new(bounds: Bounds, holds: Holds) -> Arc<Self> {
        let (clients, bandwidth) = (Mutex::default(), Bandwidth::new(bounds.bandwidth));
        let (is_overloaded, overload) = (AtomicBool::new(false), Mutex::default());
        Arc::new(Self { bounds: RwLock::new(bounds), clients, bandwidth, holds, is_overloaded, overload })
    }

    /// The limits in force.
    pub fn bounds(&self) -> Bounds {
        *self.bounds.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the limits. Sessions that were admitted before stay.
    pub(crate) fn set_bounds(&self, bounds: Bounds) {
        *self.bounds.write().unwrap_or_else(PoisonError::into_inner) = bounds;
        self.bandwidth.set_most(bounds.bandwidth);
    }

    fn clients(&self) -> MutexGuard<'_, Clients> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Admits a session of a client, which has not played yet. `waiting` counts such sessions of its connection.
    ///
    /// # Errors
    /// The reason of a refusal.
    pub fn admit(self: &Arc<Self>, address: IpAddr, waiting: &Arc<AtomicUsize>) -> Result<Admitted, Full> {
        let client = ClientAddress::from(address);
        self.clients().add(client, waiting, &self.bounds())?;
        Ok(Admitted { admission: self.clone(), client, waiting: Some(waiting.clone()) })
    }

    /// Whether a session of a client at `rate` bits a second would be admitted now. `origin` is the one it has to read from.
    pub(crate) fn has_room(&self, client: IpAddr, rate: u64, origin: Option<&OriginLoad>) -> bool {
        let is_admitted = self.clients().check(client.into(), &self.bounds()).is_ok();
        is_admitted
            && self.check().is_ok()
            && self.bandwidth.has_room(rate)
            && origin.is_none_or(|origin| origin.has_room(rate))
    }

    /// Checks that frames are sent in time and that sessions leave at least half of the memory.
    fn check(&self) -> Result<(), Full> {
        if self.is_overloaded.load(Ordering::Relaxed) {
            return Err(Full::Sending);
        }
        if self.holds.weight() > self.holds.budget() / 2 {
            return Err(Full::Memory);
        }
        Ok(())
    }

    /// Books `rate` bits a second of the machine, and of the origin where the session reads from one.
    ///
    /// # Errors
    /// The reason of a refusal.
    pub(crate) fn book(self: &Arc<Self>, rate: u64, origin: Option<&Arc<OriginLoad>>) -> Result<Booking, Full> {
        self.check()?;
        if !self.bandwidth.take(rate) {
            return Err(Full::Bandwidth);
        }
        let mut booking = Booking { admission: self.clone(), origin: None, rate };
        if let Some(origin) = origin {
            // An error drops the booking, which gives its bandwidth back.
            origin.take(rate).then(|| booking.origin = Some(origin.clone())).ok_or(Full::Origin)?;
        }
        Ok(booking)
    }

    /// Takes the measurements of the second before `now`. Returns what has changed.
    pub(crate) fn observe(&self, now: Instant, measured: &Measured) -> Option<Change> {
        let change = self.overload.lock().unwrap_or_else(PoisonError::into_inner).observe(now, measured);
        match change {
            Some(Change::Refuses) => self.is_overloaded.store(true, Ordering::Relaxed),
            Some(Change::Takes) => self.is_overloaded.store(false, Ordering::Relaxed),
            Some(Change::Starved) | None => {}
        }
        change
    }
}

impl Admitted {
    /// Whether the session has played.
    pub fn has_played(&self) -> bool {
        self.waiting.is_none()
    }

    /// Counts the session among those that have played.
    pub fn play(&mut self) {
        if let Some(waiting) = self.waiting.take() {
            self.admission.clients().play(self.client, &waiting);
        }
    }
}

impl Booking {
    /// Books bandwidth of an origin for a session that plays, unless it has some. Returns whether it has some now.
    pub(crate) fn add_origin(&mut self, origin: &Arc<OriginLoad>) -> bool {
        if self.origin.is_none() && origin.take_more(self.rate) {
            self.origin = Some(origin.clone());
        }
        self.origin.is_some()
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let mut clients = self.admission.clients();
        if let Some(waiting) = self.waiting.take() {
            clients.play(self.client, &waiting);
        }
        clients.remove(self.client);
    }
}

impl Drop for Booking {
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
    use millpond_store::{Memory, policy::PolicyName};
    use std::time::Duration;

    const BOUNDS: Bounds = Bounds {
        sessions: 3,
        sessions_per_client: 2,
        waiting_per_client: 2,
        bandwidth: Some(1000),
        origin_bandwidth: None,
    };

    fn holds() -> Holds {
        Holds::of(&Memory::new(100, PolicyName::Sieve), "sessions")
    }

    #[test]
    fn sessions_are_bounded_by_client_and_in_all() {
        let admission = Admission::new(BOUNDS, holds());
        let [a, b]: [IpAddr; 2] = ["192.0.2.1", "192.0.2.2"].map(|text| text.parse().unwrap());
        let admit = |client| admission.admit(client, &Arc::default());
        let first = admit(a).unwrap();
        let _second = admit(a).unwrap();
        assert_eq!(admit(a).unwrap_err(), Full::Client);
        let _third = admit(b).unwrap();
        assert_eq!(admit(b).unwrap_err(), Full::Sessions);
        drop(first);
        assert!(admit(b).is_ok());
        assert_eq!(admission.clients().numbers().0, 2, "clients");
    }

    #[test]
    fn few_sessions_wait_and_many_play() {
        let bounds = Bounds { sessions: 1000, sessions_per_client: 100, waiting_per_client: 20, ..BOUNDS };
        let admission = Admission::new(bounds, holds());
        let client: IpAddr = "192.0.2.1".parse().unwrap();
        let connections: [Arc<AtomicUsize>; 2] = Default::default();
        let mut admitted: Vec<Admitted> = Vec::new();
        let fill = |admitted: &mut Vec<Admitted>, connection| loop {
            match admission.admit(client, connection) {
                Ok(admit) => admitted.push(admit),
                Err(full) => return full,
            }
        };
        assert_eq!((fill(&mut admitted, &connections[0]), admitted.len()), (Full::Waiting, 16), "of a connection");
        assert_eq!((fill(&mut admitted, &connections[1]), admitted.len()), (Full::Waiting, 20), "of an address");
        assert!(!admission.has_room(client, 1, None));
        let mapped: IpAddr = "::ffff:192.0.2.1".parse().unwrap();
        assert_eq!(admission.admit(mapped, &Arc::default()).unwrap_err(), Full::Waiting, "written otherwise");
        // A crowd behind one address plays.
        admitted.iter_mut().for_each(Admitted::play);
        while admitted.len() < 100 {
            let mut admit = admission.admit(client, &connections[0]).unwrap();
            admit.play();
            admit.play();
            assert!(admit.has_played());
            admitted.push(admit);
        }
        assert_eq!(fill(&mut admitted, &connections[0]), Full::Client);
        drop(admitted);
        assert_eq!(admission.clients().numbers(), (0, 0));
        assert_eq!(connections.map(|connection| connection.load(Ordering::Relaxed)), [0, 0]);
    }

    #[test]
    fn a_network_of_ipv6_is_one_client() {
        let admission = Admission::new(Bounds { sessions_per_client: 1, ..BOUNDS }, holds());
        let admit = |client: &str| admission.admit(client.parse().unwrap(), &Arc::default());
        let _one = admit("2001:db8:0:1::1").unwrap();
        assert_eq!(admit("2001:db8:0:1:ffff::2").unwrap_err(), Full::Client);
        assert!(admit("2001:db8:0:2::1").is_ok());
    }

    #[test]
    fn bandwidth_is_granted_once() {
        let admission = Admission::new(BOUNDS, holds());
        let booking = admission.book(600, None).unwrap();
        assert!(admission.book(600, None).is_err());
        let client = "192.0.2.1".parse().unwrap();
        assert!(!admission.has_room(client, 600, None) && admission.has_room(client, 400, None));
        assert!(admission.book(400, None).is_ok());
        drop(booking);
        assert!(admission.book(1000, None).is_ok());
        assert!(admission.book(u64::MAX, None).is_err(), "no overflow");
    }

    #[test]
    fn origins_and_memory_are_granted_too() {
        let (holds, origin) = (holds(), Arc::new(OriginLoad::new(Some(500))));
        let admission = Admission::new(BOUNDS, holds.clone());
        let client = "192.0.2.1".parse().unwrap();
        let booking = admission.book(400, Some(&origin)).unwrap();
        assert!(admission.book(200, Some(&origin)).is_err() && !admission.has_room(client, 200, Some(&origin)));
        assert!(admission.book(600, None).is_ok(), "what was refused took nothing");
        let mut from_memory = admission.book(200, None).unwrap();
        assert!(!from_memory.add_origin(&origin), "jumps to where nobody was");
        drop(booking);
        assert!(from_memory.add_origin(&origin) && from_memory.add_origin(&origin) && !origin.has_room(400));
        drop(from_memory);
        assert!(admission.book(500, Some(&origin)).is_ok());
        let hold = holds.take(51);
        assert!(admission.book(1, None).is_err() && !admission.has_room(client, 1, None));
        drop(hold);
        assert!(admission.book(1, None).is_ok());
    }

    #[test]
    fn late_frames_stop_new_sessions() {
        let admission = Admission::new(Bounds { bandwidth: None, ..BOUNDS }, holds());
        let mut now = Instant::now();
        let mut second = |late| {
            now += Duration::from_secs(1);
            let elapsed = Duration::from_secs(1);
            admission.observe(now, &Measured { elapsed, frames: 10_000, late, threads: Vec::new() })
        };
        assert_eq!([500, 500].map(&mut second), [None, None]);
        assert!(admission.book(1, None).is_ok(), "a moment's lateness");
        assert_eq!(second(500), Some(Change::Refuses));
        assert_eq!(admission.book(1, None).unwrap_err(), Full::Sending);
        (0..4).for_each(|_| assert_eq!(second(0), None));
        assert_eq!(admission.book(1, None).unwrap_err(), Full::Sending, "not at once");
        assert_eq!(second(0), Some(Change::Takes));
        assert!(admission.book(1, None).is_ok());
    }
}
