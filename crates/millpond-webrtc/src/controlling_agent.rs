//! The half of ICE of a server that calls a peer: a full agent in the controlling role (RFC 8445 4).
//!
//! It checks each address of the peer, and each check nominates. The first address that answers is used. Its owner states no
//! address of its own: the peer learns it from the checks. Afterwards checks ask for consent (RFC 7675).

use crate::{
    ice::{self, AddressProbe, Controlling},
    known_addresses::KnownAddresses,
    sdp::IceCredentials,
};
use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

/// Time between two checks (RFC 8445 14.2).
const PACE: Duration = Duration::from_millis(50);
/// Time before the first repetition of a check, and the longest one.
const REPETITION: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(3));
/// Checks of one address.
const MOST_CHECKS: u32 = 9;
/// Addresses that are checked: those that the answer tells, and as many from which the peer sends checks of its own.
const MOST_ADDRESSES: usize = 32;
/// Time for the first answer.
const FIRST_ANSWER: Duration = Duration::from_secs(15);
/// Time without an answer after which a peer takes no more media (RFC 7675 5.1).
const CONSENT: Duration = Duration::from_secs(30);
/// Shortest time between two requests for consent, and what is added to it at most, in milliseconds (RFC 7675 5.1).
const CONSENT_CHECKS: (Duration, u64) = (Duration::from_secs(4), 2000);

/// Finds the address of a peer that was called, and keeps its consent.
#[derive(Debug)]
pub(crate) struct ControllingAgent {
    local: IceCredentials,
    remote: IceCredentials,
    tie_breaker: u64,
    candidates: Vec<Candidate>,
    /// Addresses that have answered a check, or have made a valid one.
    known: KnownAddresses,
    /// Address that media is sent to.
    address: Option<SocketAddr>,
    /// The last request for consent.
    consent: Option<AddressProbe>,
    /// Time before which no check leaves.
    paced: Instant,
    /// Time of the last answer from the address of media, or of the beginning.
    answered: Instant,
}

/// An address that may be the peer's.
#[derive(Debug)]
struct Candidate {
    address: SocketAddr,
    /// Time of the next check.
    next: Instant,
    /// Checks that have left.
    checks: u32,
    /// The check, which is repeated as it is.
    probe: AddressProbe,
}

impl ControllingAgent {
    /// Begins with the addresses of an answer. `tie_breaker` is a random number.
    pub(crate) fn new(
        (local, remote): (IceCredentials, IceCredentials),
        addresses: &[SocketAddr],
        tie_breaker: u64,
        now: Instant,
    ) -> Self {
        let mut this = Self {
            local,
            remote,
            tie_breaker,
            candidates: Vec::new(),
            known: KnownAddresses::default(),
            address: None,
            consent: None,
            paced: now,
            answered: now,
        };
        addresses.iter().for_each(|address| this.add(*address, now));
        this
    }

    /// Address that media is sent to.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Whether an address has shown that it is the peer's.
    pub(crate) fn knows(&self, address: SocketAddr) -> bool {
        self.address == Some(address) || self.known.has(address)
    }

    /// Time at which the peer does not consent, unless it answers before.
    pub(crate) fn end(&self) -> Instant {
        self.answered + if self.address.is_some() { CONSENT } else { FIRST_ANSWER }
    }

    /// Time since the last answer.
    pub(crate) fn silence(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.answered)
    }

    /// Time of the next check; `None` where none is left.
    pub(crate) fn next(&self) -> Option<Instant> {
        match self.address {
            Some(_) => Some(self.paced),
            None => self.waiting().map(|candidate| candidate.next).min().map(|next| next.max(self.paced)),
        }
    }

    /// The addresses that are to be checked again.
    fn waiting(&self) -> impl Iterator<Item = &Candidate> {
        self.candidates.iter().filter(|candidate| candidate.checks < MOST_CHECKS)
    }

    /// Sends the check that is due.
    pub(crate) fn tick(&mut self, now: Instant, mut send: impl FnMut(SocketAddr, Vec<u8>)) {
        if now < self.paced {
            return;
        }
        if let Some(address) = self.address {
            self.consent = self.probe(false);
            self.paced = now + self.consent_interval(now);
            if let Some(probe) = &self.consent {
                send(address, probe.message.clone());
            }
            return;
        }
        let due = |candidate: &&mut Candidate| candidate.checks < MOST_CHECKS && candidate.next <= now;
        let Some(candidate) = self.candidates.iter_mut().filter(due).min_by_key(|candidate| candidate.next) else {
            return;
        };
        let (first, longest) = REPETITION;
        candidate.next = now + first.saturating_mul(1 << candidate.checks).min(longest);
        candidate.checks += 1;
        self.paced = now + PACE;
        send(candidate.address, candidate.probe.message.clone());
    }

    /// Time to the next request for consent: another one each time, so that the requests of many connections spread.
    fn consent_interval(&self, now: Instant) -> Duration {
        let (shortest, spread) = CONSENT_CHECKS;
        let mixed = self.tie_breaker ^ now.saturating_duration_since(self.answered).as_nanos() as u64;
        shortest + Duration::from_millis(mixed % (spread + 1))
    }

    /// Takes a message of STUN, and gives what it has to send to `send`.
    pub(crate) fn receive(
        &mut self,
        (from, datagram): (SocketAddr, &[u8]),
        now: Instant,
        mut send: impl FnMut(SocketAddr, Vec<u8>),
    ) {
        if let Some(check) = ice::check(datagram, from, &self.local, &self.remote) {
            self.known.add(from);
            send(from, check.answer);
            // An address that no candidate tells (RFC 8445 7.3.1.3).
            if self.address.is_none() {
                self.add(from, now);
            }
            return;
        }
        let is_consent = |probe: &AddressProbe| probe.is_answered_by(datagram, &self.remote);
        if self.address == Some(from) && self.consent.as_ref().is_some_and(is_consent) {
            self.answered = now;
            return;
        }
        let is_answered = |candidate: &Candidate| {
            candidate.address == from && candidate.checks > 0 && candidate.probe.is_answered_by(datagram, &self.remote)
        };
        if self.candidates.iter().any(is_answered) {
            self.known.add(from);
            if self.address.is_none() {
                self.address = Some(from);
                self.answered = now;
                self.paced = now + self.consent_interval(now);
            }
        }
    }

    /// Adds an address to those that are checked.
    fn add(&mut self, address: SocketAddr, now: Instant) {
        let is_known = self.candidates.iter().any(|candidate| candidate.address == address);
        if is_known || self.candidates.len() == MOST_ADDRESSES {
            return;
        }
        if let Some(probe) = self.probe(true) {
            self.candidates.push(Candidate { address, next: now, checks: 0, probe });
        }
    }

    fn probe(&self, nominates: bool) -> Option<AddressProbe> {
        let role = Controlling { tie_breaker: self.tie_breaker, nominates };
        AddressProbe::controlling(&self.local, &self.remote, role)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn credentials(name: &str) -> IceCredentials {
        IceCredentials { ufrag: name.to_owned(), password: format!("password-of-{name}-22-bytes") }
    }

    fn address(last: u8) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, last], 4000))
    }

    fn agent(addresses: &[SocketAddr], now: Instant) -> ControllingAgent {
        ControllingAgent::new((credentials("local"), credentials("remote")), addresses, 7, now)
    }

    /// Runs an agent until a time, and returns what it sent, each with its time.
    fn run(agent: &mut ControllingAgent, from: Instant, until: Instant) -> Vec<(Duration, SocketAddr, Vec<u8>)> {
        let mut sent = Vec::new();
        while let Some(now) = agent.next().filter(|next| *next <= until) {
            agent.tick(now, |to, bytes| sent.push((now.saturating_duration_since(from), to, bytes)));
        }
        sent
    }

    /// The peer's answer to a check; `None` where it is none of its checks.
    fn answer(check: &[u8], from: SocketAddr) -> Option<ice::Check> {
        ice::check(check, from, &credentials("remote"), &credentials("local"))
    }

    /// Gives an agent a datagram, and returns what it sends.
    fn give(agent: &mut ControllingAgent, from: SocketAddr, bytes: &[u8], now: Instant) -> Vec<(SocketAddr, Vec<u8>)> {
        let mut sent = Vec::new();
        agent.receive((from, bytes), now, |to, bytes| sent.push((to, bytes)));
        sent
    }

    #[test]
    fn each_address_is_checked_at_a_pace_with_growing_distances() {
        let now = Instant::now();
        let mut agent = agent(&[address(1), address(2), address(1)], now);
        let sent = run(&mut agent, now, now + Duration::from_secs(60));
        assert_eq!(sent.len(), 2 * MOST_CHECKS as usize);
        let first: Vec<u128> = sent.iter().filter(|sent| sent.1 == address(1)).map(|sent| sent.0.as_millis()).collect();
        assert_eq!(first[..6], [0, 250, 750, 1750, 3750, 6750]);
        assert!(sent.windows(2).all(|two| two[1].0 - two[0].0 >= PACE));
        assert!(sent.iter().all(|sent| answer(&sent.2, address(9)).unwrap().nominates));
        assert_eq!(agent.end(), now + FIRST_ANSWER);
        assert_eq!(agent.next(), None);
    }

    #[test]
    fn the_address_that_answers_is_used_and_asked_for_consent() {
        let now = Instant::now();
        let mut agent = agent(&[address(1), address(2)], now);
        let sent = run(&mut agent, now, now + Duration::from_millis(50));
        let [(_, _, first), (_, to, second)] = &sent[..] else { panic!("{sent:?}") };
        assert_eq!(*to, address(2));
        let reply = answer(second, address(9)).unwrap().answer;
        assert!(give(&mut agent, address(1), &reply, now).is_empty());
        assert_eq!((agent.address(), agent.knows(address(1))), (None, false), "the answer has another sender");
        give(&mut agent, address(2), &reply, now);
        assert_eq!((agent.address(), agent.knows(address(2))), (Some(address(2)), true));
        // A later answer changes nothing, but the peer may send from there.
        give(&mut agent, address(1), &answer(first, address(9)).unwrap().answer, now);
        assert_eq!((agent.address(), agent.knows(address(1))), (Some(address(2)), true));

        let sent = run(&mut agent, now, now + Duration::from_secs(29));
        assert!((4..=7).contains(&sent.len()) && sent.iter().all(|sent| sent.1 == address(2)), "{sent:?}");
        assert_eq!(agent.end(), now + CONSENT);
        let last = answer(&sent.last().unwrap().2, address(9)).unwrap();
        assert!(!last.nominates);
        let later = now + Duration::from_secs(29);
        give(&mut agent, address(2), &reply, later);
        assert_eq!(agent.end(), now + CONSENT, "the answer to an old check");
        give(&mut agent, address(2), &last.answer, later);
        assert_eq!(agent.end(), later + CONSENT);
    }

    #[test]
    fn a_peer_that_checks_is_answered_and_checked() {
        let now = Instant::now();
        let mut agent = agent(&[], now);
        assert_eq!(agent.next(), None);
        let of_peer = AddressProbe::new(&credentials("remote"), &credentials("local")).unwrap();
        let sent = give(&mut agent, address(3), &of_peer.message, now);
        assert!(sent.len() == 1 && of_peer.is_answered_by(&sent[0].1, &credentials("local")));
        let checks = run(&mut agent, now, now);
        assert_eq!((checks.len(), checks[0].1), (1, address(3)));
        let stranger = AddressProbe::new(&credentials("other"), &credentials("local")).unwrap();
        assert!(give(&mut agent, address(4), &stranger.message, now).is_empty() && !agent.knows(address(4)));
    }

    #[test]
    fn addresses_are_bounded() {
        let now = Instant::now();
        let mut agent = agent(&[], now);
        let of_peer = AddressProbe::new(&credentials("remote"), &credentials("local")).unwrap();
        (0..=255).for_each(|last| _ = give(&mut agent, address(last), &of_peer.message, now));
        assert_eq!(agent.candidates.len(), MOST_ADDRESSES);
        let sent = run(&mut agent, now, now + Duration::from_secs(600));
        assert_eq!(sent.len(), MOST_ADDRESSES * MOST_CHECKS as usize);
    }
}
