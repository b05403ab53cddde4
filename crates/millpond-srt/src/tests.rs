//! Two peers over a network that loses, delays, repeats and reorders, on a clock of its own.

use crate::{
    CallFailed, Caller, CallerOptions, Counts, KeyLength, Passphrase, Rejection, SocketId, SrtArrival, SrtConnection,
    SrtListener, SrtReceived,
};
use bytes::Bytes;
use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

const MS: Duration = Duration::from_millis(1);

fn address() -> SocketAddr {
    (Ipv4Addr::new(192, 0, 2, 1), 4242).into()
}

fn passphrase(text: &str) -> Option<Passphrase> {
    Some(Passphrase::new(text).unwrap())
}

/// How a network treats datagrams.
#[derive(Clone, Copy)]
struct Weather {
    /// Parts of a hundred that are lost, arrive twice, and arrive later than others.
    lost: u32,
    twice: u32,
    later: u32,
    delay: Duration,
}

const FINE: Weather = Weather { lost: 0, twice: 0, later: 0, delay: Duration::from_millis(10) };

/// Datagrams under way in one direction.
struct Way {
    weather: Weather,
    random: fastrand::Rng,
    number: u64,
    under_way: BTreeMap<(Duration, u64), Vec<u8>>,
}

impl Way {
    fn new(weather: Weather, seed: u64) -> Self {
        Self { weather, random: fastrand::Rng::with_seed(seed), number: 0, under_way: BTreeMap::new() }
    }

    fn send(&mut self, datagram: &[u8], now: Duration) {
        let Weather { lost, twice, later, delay } = self.weather;
        let mut chance = |of: u32| self.random.u32(0..100) < of;
        let copies = if chance(lost) { 0 } else { 1 + u32::from(chance(twice)) };
        for _ in 0..copies {
            let extra = if self.random.u32(0..100) < later { MS * self.random.u32(1..15) } else { Duration::ZERO };
            self.number += 1;
            self.under_way.insert((now + delay + extra, self.number), datagram.to_vec());
        }
    }

    fn receive(&mut self, now: Duration) -> Option<Vec<u8>> {
        let first = self.under_way.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }
}

fn options(passphrase: Option<(Passphrase, KeyLength)>, latency: Duration) -> CallerOptions {
    CallerOptions {
        listener: address().ip(),
        stream_id: "publish:live/cam".to_owned(),
        encryption: passphrase,
        latency,
        timeout: Duration::from_secs(3),
    }
}

/// Two peers, and what was delivered to each.
struct Pair {
    now: Duration,
    ways: [Way; 2],
    peers: [SrtConnection; 2],
    delivered: [Vec<SrtReceived>; 2],
    /// Delay of each delivery from the payload's first byte on, which are its milliseconds.
    delays: Vec<Duration>,
}

/// Connects a caller and a listener.
fn connect(caller: CallerOptions, accept: Option<Passphrase>, weather: Weather, seed: u64) -> Result<Pair, CallFailed> {
    let listener = SrtListener::new([9; 32]);
    let mut ways = [Way::new(weather, seed), Way::new(weather, seed + 1)];
    let mut random = [7; 56];
    fastrand::Rng::with_seed(seed).fill(&mut random);
    let (mut now, latency) = (Duration::from_secs(4000), caller.latency);
    let mut caller = Caller::new(caller, &random, now)?;
    let mut accepted: Option<SrtConnection> = None;
    loop {
        now += MS;
        if let Some(datagram) = caller.poll(now)? {
            ways[0].send(&datagram, now);
        }
        while let Some(datagram) = ways[0].receive(now) {
            if let Some(connection) = &mut accepted {
                connection.receive(&datagram, now).unwrap();
                continue;
            }
            match listener.receive(address(), &datagram, now) {
                SrtArrival::Nothing => {}
                SrtArrival::Answer(answer) => {
                    assert!(answer.len() <= datagram.len());
                    ways[1].send(&answer, now);
                }
                SrtArrival::Request(request) => {
                    assert_eq!(request.stream_id(), b"publish:live/cam");
                    match request.unlock(accept.as_ref()) {
                        Ok(unlocked) => accepted = Some(unlocked.accept(SocketId(77), latency, now)),
                        Err((request, why)) => ways[1].send(&request.refuse(why, now), now),
                    }
                }
            }
        }
        if let Some(connection) = &mut accepted {
            while let Some(datagram) = connection.poll(now) {
                ways[1].send(&datagram, now);
            }
        }
        while let Some(datagram) = ways[1].receive(now) {
            if let Some(connection) = caller.receive(&datagram, now)? {
                let peers = [connection, accepted.unwrap()];
                return Ok(Pair { now, ways, peers, delivered: [Vec::new(), Vec::new()], delays: Vec::new() });
            }
        }
    }
}

impl Pair {
    /// Lets a millisecond pass.
    fn step(&mut self) {
        self.now += MS;
        let now = self.now;
        for from in 0..2 {
            let to = 1 - from;
            while let Some(datagram) = self.ways[from].receive(now) {
                self.peers[to].receive(&datagram, now).unwrap();
            }
        }
        for of in 0..2 {
            self.peers[of].tick(now).unwrap();
            while let Some(datagram) = self.peers[of].poll(now) {
                self.ways[of].send(&datagram, now);
            }
            while let Some(received) = self.peers[of].deliver(now) {
                if let SrtReceived::Payload(payload) = &received {
                    let sent = u32::from_be_bytes(*payload.first_chunk().unwrap());
                    self.delays.push(now - MS * sent);
                }
                self.delivered[of].push(received);
            }
            assert!(self.peers[of].next() > now, "what is due was done");
        }
    }

    /// A payload that begins with the time.
    fn payload(&self, number: u32) -> Bytes {
        let mut payload = vec![number as u8; 1316];
        payload[..4].copy_from_slice(&(self.now.as_millis() as u32).to_be_bytes());
        payload[4..8].copy_from_slice(&number.to_be_bytes());
        payload.into()
    }

    /// Sends payloads for a time, two each millisecond, and waits until they have arrived. Returns those that were sent.
    fn stream(&mut self, from: usize, milliseconds: u32) -> Vec<Bytes> {
        let mut sent = Vec::new();
        for number in 0..2 * milliseconds {
            let payload = self.payload(number);
            self.peers[from].send(payload.clone(), self.now);
            sent.push(payload);
            if number % 2 == 1 {
                self.step();
            }
        }
        (0..2500).for_each(|_| self.step());
        assert!(self.peers[from].is_sent());
        sent
    }

    fn counts(&self, of: usize) -> Counts {
        self.peers[of].counts()
    }
}

#[test]
fn a_bad_network_loses_nothing_within_the_latency() {
    let weather = Weather { lost: 5, twice: 2, later: 10, delay: 50 * MS };
    for seed in 0..4 {
        let mut pair = connect(options(None, 500 * MS), None, weather, seed).unwrap();
        for from in [0, 1] {
            let sent: Vec<SrtReceived> = pair.stream(from, 4000).into_iter().map(SrtReceived::Payload).collect();
            assert!(pair.delivered[1 - from] == sent, "seed {seed}, from {from}");
        }
        assert!(pair.counts(0).repeated > 200 && pair.counts(1).lost == 0);
        // Payloads are delivered at their time: what the handshake took plus the latency.
        let (least, most) = (pair.delays.iter().min().unwrap(), pair.delays.iter().max().unwrap());
        assert!(*least >= 499 * MS && *most <= 620 * MS, "{least:?} {most:?}");
    }
}

#[test]
fn what_is_too_late_is_left_out_and_nothing_waits_for_it() {
    let weather = Weather { lost: 20, twice: 0, later: 0, delay: 50 * MS };
    let mut pair = connect(options(None, 60 * MS), None, weather, 5).unwrap();
    let sent = pair.stream(0, 3000);
    let (mut payloads, mut lost) = (Vec::new(), 0);
    for received in &pair.delivered[1] {
        match received {
            SrtReceived::Payload(payload) => payloads.push(payload.clone()),
            SrtReceived::Lost(packets) => lost += packets,
        }
    }
    assert!(lost > 500, "{lost}");
    assert_eq!(payloads.len() + lost as usize, sent.len());
    assert!(payloads.iter().all(|payload| sent.contains(payload)));
    assert!(*pair.delays.iter().max().unwrap() <= 120 * MS);
    assert_eq!(pair.counts(1).lost, u64::from(lost));
}

#[test]
fn an_outage_costs_what_is_too_late() {
    let mut pair = connect(options(None, 100 * MS), None, FINE, 6).unwrap();
    pair.stream(0, 100);
    pair.ways[0].weather.lost = 100;
    for number in 0..4000 {
        let payload = pair.payload(number);
        pair.peers[0].send(payload, pair.now);
        pair.step();
    }
    assert!(pair.counts(0).dropped > 2000, "its sender keeps a second");
    pair.ways[0].weather.lost = 0;
    pair.delivered[1].clear();
    let sent = pair.stream(0, 100);
    let behind = pair.delivered[1].len() - sent.len();
    let end: Vec<SrtReceived> = sent.into_iter().map(SrtReceived::Payload).collect();
    assert!(pair.delivered[1][behind..] == end, "the stream goes on");
}

#[test]
fn payloads_are_encrypted_both_ways() {
    for length in [KeyLength::Aes128, KeyLength::Aes192, KeyLength::Aes256] {
        let secret = passphrase("a long secret");
        let caller = options(secret.clone().map(|secret| (secret, length)), 100 * MS);
        let mut pair = connect(caller, secret, FINE, 8).unwrap();
        for from in [0, 1] {
            let sent: Vec<SrtReceived> = pair.stream(from, 50).into_iter().map(SrtReceived::Payload).collect();
            assert!(pair.delivered[1 - from] == sent);
        }
    }
}

#[test]
fn other_passphrases_are_refused() {
    let with = |text: &str| options(passphrase(text).map(|secret| (secret, KeyLength::Aes128)), 100 * MS);
    for (caller, accept) in [
        (with("a long secret"), passphrase("another secret")),
        (with("a long secret"), None),
        (options(None, 100 * MS), passphrase("a long secret")),
    ] {
        assert_eq!(connect(caller, accept, FINE, 9).err(), Some(CallFailed::Secret));
    }
}

#[test]
fn a_caller_gives_up_and_hears_refusals() {
    let lost = Weather { lost: 100, ..FINE };
    let failed = connect(options(None, 100 * MS), None, lost, 1).err();
    assert_eq!(failed, Some(CallFailed::Silent(Duration::from_secs(3))));
    let long = CallerOptions { stream_id: "x".repeat(513), ..options(None, MS) };
    assert_eq!(Caller::new(long, &[0; 56], MS).err(), Some(CallFailed::StreamId));
    let (listener, now) = (SrtListener::new([9; 32]), Duration::from_secs(1));
    let mut caller = Caller::new(options(None, MS), &[5; 56], now).unwrap();
    let answer = |datagram: &[u8], why| match listener.receive(address(), datagram, now) {
        SrtArrival::Answer(answer) => answer,
        SrtArrival::Request(request) => request.refuse(why, now),
        SrtArrival::Nothing => panic!("no answer"),
    };
    let first = caller.poll(now).unwrap().unwrap();
    assert_eq!(caller.receive(&answer(&first, Rejection::UNKNOWN), now).map(|_| ()), Ok(()));
    let second = caller.poll(now).unwrap().unwrap();
    let failed = caller.receive(&answer(&second, Rejection::CONFLICT), now).err();
    assert_eq!(failed, Some(CallFailed::Refused(Rejection::CONFLICT)));
    assert_eq!(failed.unwrap().to_string(), "the listener refuses the connection: 1409 (another publisher)");
}

#[test]
fn cookies_are_good_for_their_address_and_a_minute() {
    let (listener, now) = (SrtListener::new([9; 32]), Duration::from_secs(100));
    let mut caller = Caller::new(options(None, MS), &[5; 56], now).unwrap();
    let first = caller.poll(now).unwrap().unwrap();
    let SrtArrival::Answer(answer) = listener.receive(address(), &first, now) else { panic!("no answer") };
    caller.receive(&answer, now).unwrap();
    let second = caller.poll(now).unwrap().unwrap();
    let is_request = |from: SocketAddr, now| matches!(listener.receive(from, &second, now), SrtArrival::Request(_));
    assert!(is_request(address(), now) && is_request(address(), now + 30 * 1000 * MS));
    let other = SocketAddr::new(address().ip(), 4243);
    assert!(!is_request(other, now) && !is_request(address(), now + 90 * 1000 * MS));
    assert!(matches!(SrtListener::new([8; 32]).receive(address(), &second, now), SrtArrival::Nothing));
}

#[test]
fn a_silent_peer_and_one_that_leaves_end_the_connection() {
    let mut pair = connect(options(None, 100 * MS), None, FINE, 3).unwrap();
    (0..20_000).for_each(|_| pair.step());
    let now = pair.now + Duration::from_secs(5);
    assert_eq!(pair.peers[0].tick(now), Err(crate::SrtEnded::Silent(Duration::from_secs(5))));
    let last = pair.peers[0].close(pair.now);
    assert_eq!(pair.peers[1].receive(&last, pair.now), Err(crate::SrtEnded::Closed));
    assert_eq!(pair.peers[1].tick(pair.now), Err(crate::SrtEnded::Closed));
}
