//! Who may play: nobody whom the machine can't serve as well as those who do already.

use super::{
    bandwidth::Bandwidth,
    origins::Origin,
    overload::{Change, Measured, Overload},
};
use millpond_store::Holds;
use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Instant,
};

/// Sessions of one connection that have not played yet: a player sets one up, plays it, and may set up the next.
const WAITING_PER_CONNECTION: usize = 16;

/// How much RTSP may take on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Sessions in all.
    pub sessions: usize,
    /// Sessions of one client's address.
    pub sessions_per_client: usize,
    /// Sessions of one client's address that have not played yet.
    pub waiting_per_client: usize,
    /// Bits a second of all that play; nothing for no bound.
    pub bandwidth: Option<u64>,
    /// Bits a second of those that read from the origin of one place.
    pub origin_bandwidth: Option<u64>,
}

/// Reason for which a session is refused (453).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Full {
    /// As many sessions as there may be.
    #[error("rtsp-sessions is reached")]
    Sessions,
    /// As many of the client's address as there may be.
    #[error("rtsp-sessions-per-client is reached")]
    Client,
    /// As many that have not played, of the client's address or its connection.
    #[error("too many sessions that were set up and not played")]
    Waiting,
    /// `rtsp-mbps` is given out.
    #[error("rtsp-mbps is reached")]
    Bandwidth,
    /// The origin gives no more, by `rtsp-origin-mbps` or because it is late.
    #[error("the origin is late or rtsp-origin-mbps is reached")]
    Origin,
    /// Sessions hold half of the memory.
    #[error("sessions hold half of the memory")]
    Memory,
    /// The threads that send have too much to do.
    #[error("sending is late")]
    Sending,
}

/// Knows what is taken on.
#[derive(Debug)]
pub(super) struct Admission {
    bounds: Bounds,
    /// A lock: taken when sessions come and go, and when they first play.
    clients: Mutex<Clients>,
    /// Of those that play.
    bandwidth: Bandwidth,
    /// What their frames take of the memory.
    holds: Holds,
    /// As [`Overload`] says.
    is_overloaded: AtomicBool,
    /// A lock: taken once a second.
    overload: Mutex<Overload>,
}

#[derive(Debug, Default)]
struct Clients {
    sessions: usize,
    each: HashMap<IpAddr, Client>,
}

/// Sessions of one client.
#[derive(Clone, Copy, Debug, Default)]
struct Client {
    sessions: usize,
    /// Those of them that have not played.
    waiting: usize,
}

/// A session that was taken on.
#[derive(Debug)]
pub(super) struct Place {
    admission: Arc<Admission>,
    client: IpAddr,
    /// Sessions of its connection that have not played, while it is one of them.
    waiting: Option<Arc<AtomicUsize>>,
}

/// Bandwidth that was taken.
#[derive(Debug)]
pub(super) struct Share {
    admission: Arc<Admission>,
    /// That which it reads from, where that has bounds.
    origin: Option<Arc<Origin>>,
    rate: u64,
}

/// The client that an address is counted for: of IPv6 a whole network (/64), whose addresses one host can take all.
fn client_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address @ IpAddr::V4(_) => address,
    }
}

impl Admission {
    pub(super) fn new(bounds: Bounds, holds: Holds) -> Arc<Self> {
        let (clients, bandwidth) = (Mutex::default(), Bandwidth::new(bounds.bandwidth));
        let (is_overloaded, overload) = (AtomicBool::new(false), Mutex::default());
        Arc::new(Self { bounds, clients, bandwidth, holds, is_overloaded, overload })
    }

    fn clients(&self) -> MutexGuard<'_, Clients> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check_place(&self, clients: &Clients, client: Client) -> Result<(), Full> {
        let Bounds { sessions, sessions_per_client, waiting_per_client, .. } = self.bounds;
        match client {
            _ if clients.sessions >= sessions => Err(Full::Sessions),
            client if client.sessions >= sessions_per_client => Err(Full::Client),
            client if client.waiting >= waiting_per_client => Err(Full::Waiting),
            _ => Ok(()),
        }
    }

    /// A session of a client, which has not played yet. `waiting` counts those of its connection.
    ///
    /// # Errors
    /// Why there is no room for it.
    pub(super) fn place(self: &Arc<Self>, address: IpAddr, waiting: &Arc<AtomicUsize>) -> Result<Place, Full> {
        let client = client_of(address);
        let mut clients = self.clients();
        let mut of_client = clients.each.get(&client).copied().unwrap_or_default();
        self.check_place(&clients, of_client)?;
        if waiting.load(Ordering::Relaxed) >= WAITING_PER_CONNECTION {
            return Err(Full::Waiting);
        }
        waiting.fetch_add(1, Ordering::Relaxed);
        clients.sessions += 1;
        of_client.sessions += 1;
        of_client.waiting += 1;
        clients.each.insert(client, of_client);
        drop(clients);
        Ok(Place { admission: self.clone(), client, waiting: Some(waiting.clone()) })
    }

    /// Whether a client would be taken on now, with so many bits a second, which may have to be read from an origin.
    pub(super) fn has_room(&self, client: IpAddr, rate: u64, origin: Option<&Origin>) -> bool {
        let clients = self.clients();
        let of_client = clients.each.get(&client_of(client)).copied().unwrap_or_default();
        let has_place = self.check_place(&clients, of_client).is_ok();
        drop(clients);
        has_place
            && self.check().is_ok()
            && self.bandwidth.has_room(rate)
            && origin.is_none_or(|origin| origin.has_room(rate))
    }

    /// Whether what plays goes out in time, and leaves at least half of the memory.
    fn check(&self) -> Result<(), Full> {
        if self.is_overloaded.load(Ordering::Relaxed) {
            return Err(Full::Sending);
        }
        if self.holds.weight() > self.holds.budget() / 2 {
            return Err(Full::Memory);
        }
        Ok(())
    }

    /// Room for so many bits a second, of the machine and of an origin where they are read from one.
    ///
    /// # Errors
    /// Why there is no room: there is not so much, or what plays already goes out late.
    pub(super) fn share(self: &Arc<Self>, rate: u64, origin: Option<&Arc<Origin>>) -> Result<Share, Full> {
        self.check()?;
        if !self.bandwidth.take(rate) {
            return Err(Full::Bandwidth);
        }
        let mut share = Share { admission: self.clone(), origin: None, rate };
        if let Some(origin) = origin {
            // Without it the share goes back.
            origin.take(rate).then(|| share.origin = Some(origin.clone())).ok_or(Full::Origin)?;
        }
        Ok(share)
    }

    /// Takes what was measured in the second before `now`. Says what has changed.
    pub(super) fn observe(&self, now: Instant, measured: &Measured) -> Option<Change> {
        let change = self.overload.lock().unwrap_or_else(PoisonError::into_inner).observe(now, measured);
        match change {
            Some(Change::Refuses) => self.is_overloaded.store(true, Ordering::Relaxed),
            Some(Change::Takes) => self.is_overloaded.store(false, Ordering::Relaxed),
            Some(Change::Starved) | None => {}
        }
        change
    }
}

impl Place {
    /// Whether the session has played.
    pub(super) fn has_played(&self) -> bool {
        self.waiting.is_none()
    }

    /// Counts the session among those that have played.
    pub(super) fn play(&mut self) {
        if self.waiting.is_some() {
            let admission = self.admission.clone();
            self.stop_waiting(&mut admission.clients());
        }
    }

    fn stop_waiting(&mut self, clients: &mut Clients) {
        let Some(waiting) = self.waiting.take() else { return };
        waiting.fetch_sub(1, Ordering::Relaxed);
        if let Some(client) = clients.each.get_mut(&self.client) {
            client.waiting -= 1;
        }
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
        let admission = self.admission.clone();
        let mut clients = admission.clients();
        self.stop_waiting(&mut clients);
        clients.sessions -= 1;
        if let Some(client) = clients.each.get_mut(&self.client) {
            client.sessions -= 1;
            if client.sessions == 0 {
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
        let place = |client| admission.place(client, &Arc::default());
        let first = place(a).unwrap();
        let _second = place(a).unwrap();
        assert_eq!(place(a).unwrap_err(), Full::Client);
        let _third = place(b).unwrap();
        assert_eq!(place(b).unwrap_err(), Full::Sessions);
        drop(first);
        assert!(place(b).is_ok());
        assert_eq!(admission.clients().each.len(), 2);
    }

    #[test]
    fn few_sessions_wait_and_many_play() {
        let bounds = Bounds { sessions: 1000, sessions_per_client: 100, waiting_per_client: 20, ..BOUNDS };
        let admission = Admission::new(bounds, holds());
        let client: IpAddr = "192.0.2.1".parse().unwrap();
        let connections: [Arc<AtomicUsize>; 2] = Default::default();
        let mut places: Vec<Place> = Vec::new();
        let fill = |places: &mut Vec<Place>, connection| loop {
            match admission.place(client, connection) {
                Ok(place) => places.push(place),
                Err(full) => return full,
            }
        };
        assert_eq!((fill(&mut places, &connections[0]), places.len()), (Full::Waiting, 16), "of a connection");
        assert_eq!((fill(&mut places, &connections[1]), places.len()), (Full::Waiting, 20), "of an address");
        assert!(!admission.has_room(client, 1, None));
        let mapped: IpAddr = "::ffff:192.0.2.1".parse().unwrap();
        assert_eq!(admission.place(mapped, &Arc::default()).unwrap_err(), Full::Waiting, "written otherwise");
        // A crowd behind one address plays.
        places.iter_mut().for_each(Place::play);
        while places.len() < 100 {
            let mut place = admission.place(client, &connections[0]).unwrap();
            place.play();
            place.play();
            assert!(place.has_played());
            places.push(place);
        }
        assert_eq!(fill(&mut places, &connections[0]), Full::Client);
        drop(places);
        assert!(admission.clients().each.is_empty() && admission.clients().sessions == 0);
        assert_eq!(connections.map(|connection| connection.load(Ordering::Relaxed)), [0, 0]);
    }

    #[test]
    fn a_network_of_ipv6_is_one_client() {
        let admission = Admission::new(Bounds { sessions_per_client: 1, ..BOUNDS }, holds());
        let place = |client: &str| admission.place(client.parse().unwrap(), &Arc::default());
        let _one = place("2001:db8:0:1::1").unwrap();
        assert_eq!(place("2001:db8:0:1:ffff::2").unwrap_err(), Full::Client);
        assert!(place("2001:db8:0:2::1").is_ok());
    }

    #[test]
    fn bandwidth_is_given_out_once() {
        let admission = Admission::new(BOUNDS, holds());
        let share = admission.share(600, None).unwrap();
        assert!(admission.share(600, None).is_err());
        let client = "192.0.2.1".parse().unwrap();
        assert!(!admission.has_room(client, 600, None) && admission.has_room(client, 400, None));
        assert!(admission.share(400, None).is_ok());
        drop(share);
        assert!(admission.share(1000, None).is_ok());
        assert!(admission.share(u64::MAX, None).is_err(), "no overflow");
    }

    #[test]
    fn an_origin_and_the_memory_are_given_out_too() {
        let (holds, origin) = (holds(), Arc::new(Origin::new(Some(500))));
        let admission = Admission::new(BOUNDS, holds.clone());
        let client = "192.0.2.1".parse().unwrap();
        let share = admission.share(400, Some(&origin)).unwrap();
        assert!(admission.share(200, Some(&origin)).is_err() && !admission.has_room(client, 200, Some(&origin)));
        assert!(admission.share(600, None).is_ok(), "what was refused took nothing");
        let mut from_memory = admission.share(200, None).unwrap();
        assert!(!from_memory.reads(&origin), "jumps to where nobody was");
        drop(share);
        assert!(from_memory.reads(&origin) && from_memory.reads(&origin) && !origin.has_room(400));
        drop(from_memory);
        assert!(admission.share(500, Some(&origin)).is_ok());
        let hold = holds.take(51);
        assert!(admission.share(1, None).is_err() && !admission.has_room(client, 1, None));
        drop(hold);
        assert!(admission.share(1, None).is_ok());
    }

    #[test]
    fn a_house_that_is_late_takes_nobody() {
        let admission = Admission::new(Bounds { bandwidth: None, ..BOUNDS }, holds());
        let mut now = Instant::now();
        let mut second = |late| {
            now += Duration::from_secs(1);
            let elapsed = Duration::from_secs(1);
            admission.observe(now, &Measured { elapsed, frames: 10_000, late, threads: Vec::new() })
        };
        assert_eq!([500, 500].map(&mut second), [None, None]);
        assert!(admission.share(1, None).is_ok(), "a moment's lateness");
        assert_eq!(second(500), Some(Change::Refuses));
        assert_eq!(admission.share(1, None).unwrap_err(), Full::Sending);
        (0..4).for_each(|_| assert_eq!(second(0), None));
        assert_eq!(admission.share(1, None).unwrap_err(), Full::Sending, "not at once");
        assert_eq!(second(0), Some(Change::Takes));
        assert!(admission.share(1, None).is_ok());
    }
}
