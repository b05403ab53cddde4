//! The server of Srinilta and Choudhary: a manager, dispensers and throttled storages.

use super::{
    dispenser::Dispenser,
    events::Events,
    storages::Storages,
    stream::{HALF, PACKET, Stream},
};
use crate::simulate::generate::Zipf;
use fastrand::Rng;
use millpond_cluster::{Assignment, AssignmentName, Bitrate, Load, Loads, Node, ObjectKey, Request, View};
use std::{sync::Arc, time::Duration};

/// How often dispensers publish their load.
const PUBLISHED: Duration = Duration::from_secs(5);
/// Time after the last stream has begun in which packets are counted.
const MEASURED: Duration = Duration::from_secs(600);

/// The choices of a run. The default is the paper's server without its three techniques.
#[derive(Clone, Debug, PartialEq)]
pub struct PaperSetting {
    /// Streams that play at the same time.
    pub streams: usize,
    /// Bandwidth of each.
    pub rate: Bitrate,
    /// Dispensers.
    pub dispensers: usize,
    /// Storage nodes.
    pub storages: usize,
    /// Bytes a second of each storage node, between seeks of 5 to 25 ms.
    pub storage_rate: f64,
    /// Objects.
    pub objects: usize,
    /// Exponent of their popularity.
    pub skew: f64,
    /// How streams are assigned to dispensers.
    pub assignment: AssignmentName,
    /// Bytes of a striping unit.
    pub unit: u64,
    /// Bytes of each dispenser's interval cache; 0 is none.
    pub cache: u64,
    /// Caching window in units.
    pub window: u64,
    /// Periods by which a missed deadline delays the following ones.
    pub delay: f64,
    /// Time in which all streams begin. The paper does not tell it.
    pub ramp: Duration,
    /// Seed of random numbers.
    pub seed: u64,
}

impl Default for PaperSetting {
    fn default() -> Self {
        Self {
            streams: 400,
            rate: Bitrate::from_bps(1_500_000),
            dispensers: 4,
            storages: 11,
            storage_rate: 10e6,
            objects: 100,
            skew: 0.729,
            assignment: AssignmentName::RoundRobin,
            unit: 512 << 10,
            cache: 0,
            window: 10,
            delay: 0.0,
            ramp: Duration::from_secs(60),
            seed: 1,
        }
    }
}

/// The results of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PaperOutcome {
    /// Units that streams needed.
    pub requests: u64,
    /// Units that were in memory, or on the way there.
    pub cached: u64,
    /// Packets that were due.
    pub packets: u64,
    /// Packets that had not arrived when they were due.
    pub missed: u64,
    /// Delays of deadlines, in periods.
    pub delayed: f64,
    /// Most streams of a dispenser, over the mean.
    pub balance: f64,
}

impl PaperOutcome {
    /// Share of the units that were in memory.
    pub fn cached_share(&self) -> f64 {
        self.cached as f64 / self.requests.max(1) as f64
    }

    /// Share of the packets that were missed.
    pub fn missed_share(&self) -> f64 {
        self.missed as f64 / self.packets.max(1) as f64
    }

    /// Share of the deadlines, as they were without delays, that delays put off: so much less is delivered in a time.
    pub fn delayed_share(&self) -> f64 {
        self.delayed / (self.packets as f64 + self.delayed).max(1.0)
    }
}

/// Plays the streams of a setting. Streams begin at random within the ramp and play on; packets of the ten minutes after it are counted.
///
/// Each stream has a buffer of two halves of 1 MiB. A half is requested when the one before it begins to be delivered.
pub fn serve(setting: &PaperSetting) -> PaperOutcome {
    let mut server = Server::new(setting);
    server.begin();
    while let Some((now, event)) = server.events.next() {
        if now >= setting.ramp + MEASURED {
            break;
        }
        match event {
            Event::Begins => server.start(now),
            Event::Requests(stream) => server.go_on(stream, now),
            Event::Publishes => server.publish(now),
        }
    }
    server.finish()
}

enum Event {
    Begins,
    /// A stream, by its place, can request a half.
    Requests(usize),
    Publishes,
}

struct Server<'a> {
    setting: &'a PaperSetting,
    rule: Box<dyn Assignment>,
    keys: Vec<ObjectKey>,
    nodes: Vec<Node>,
    loads: Loads,
    turn: u64,
    dispensers: Vec<Dispenser>,
    storages: Storages,
    streams: Vec<Stream>,
    popularity: Zipf,
    rng: Rng,
    events: Events<Event>,
    outcome: PaperOutcome,
}

impl<'a> Server<'a> {
    fn new(setting: &'a PaperSetting) -> Self {
        // Dispensers are never short of bandwidth: the storages are.
        let capacity = Bitrate::from_bps(setting.rate.bps().saturating_mul(setting.streams as u64).max(1));
        let named = |number| Node::new(format!("dispenser-{number}").parse().expect("a plain name"), capacity);
        let nodes: Vec<_> = (0..setting.dispensers.clamp(1, 9)).map(named).collect();
        let bits = setting.unit.clamp(PACKET, HALF) as f64 * 8.0;
        let length = Duration::from_secs_f64(bits / setting.rate.bps().max(1) as f64);
        Self {
            setting,
            rule: setting.assignment.rule(),
            keys: (0..setting.objects).map(|object| ObjectKey::new("films", &format!("{object}.mp4"))).collect(),
            loads: Loads::new(View::of(1, nodes.clone()).into()),
            turn: 0,
            dispensers: nodes.iter().map(|_| Dispenser::new(setting.cache, setting.window, length)).collect(),
            nodes,
            storages: Storages::new(setting.storages, setting.storage_rate),
            streams: Vec::new(),
            popularity: Zipf::new(setting.objects, setting.skew),
            rng: Rng::with_seed(setting.seed),
            events: Events::new(),
            outcome: PaperOutcome::default(),
        }
    }

    fn begin(&mut self) {
        for _ in 0..self.setting.streams {
            let at = self.setting.ramp.mul_f64(self.rng.f64());
            self.events.add(at, Event::Begins);
        }
        self.events.add(PUBLISHED, Event::Publishes);
    }

    fn publish(&mut self, now: Duration) {
        for (number, node) in self.nodes.iter_mut().enumerate() {
            let streams = self.streams.iter().filter(|stream| stream.dispenser == number).count();
            node.load =
                Load { rate: Bitrate::from_bps(self.setting.rate.bps() * streams as u64), sessions: streams as u32 };
        }
        let view = Arc::new(View::of(1, self.nodes.clone()));
        self.loads.update(view, now);
        if now < self.setting.ramp {
            self.events.add(now + PUBLISHED, Event::Publishes);
        }
    }

    fn start(&mut self, now: Duration) {
        let object = self.popularity.draw(&mut self.rng);
        let request = Request { key: &self.keys[object], rate: self.setting.rate, turn: self.turn, rooms: None };
        self.turn += 1;
        let answer = self.rule.assign(&mut self.loads, &request);
        let Some(best) = answer.candidates.first() else { return };
        self.loads.add(&best.name, self.setting.rate, now);
        let dispenser = self.nodes.iter().position(|node| node.name == best.name).unwrap_or(0);
        self.dispensers[dispenser].enter(object, now);
        let arrivals = [0, 1].map(|half| self.request(object, dispenser, half, now));
        let period = Duration::from_secs_f64(PACKET as f64 * 8.0 / self.setting.rate.bps().max(1) as f64);
        let stream = Stream::new(object, dispenser, arrivals, period, self.setting.delay);
        self.streams.push(stream);
        self.deliver(self.streams.len() - 1);
    }

    /// Requests a half, whose number a stream's next one is.
    fn go_on(&mut self, number: usize, now: Duration) {
        let stream = &self.streams[number];
        let (object, dispenser, half) = (stream.object, stream.dispenser, stream.next_half());
        let arrivals = self.request(object, dispenser, half, now);
        self.streams[number].requested(arrivals);
        self.deliver(number);
    }

    /// Delivers a half, all of whose arrivals are known.
    fn deliver(&mut self, number: usize) {
        let stream = &mut self.streams[number];
        let begins = stream.due();
        let delivered = stream.deliver();
        let requests_at = stream.requests_at();
        self.events.add(requests_at, Event::Requests(number));
        if begins >= self.setting.ramp {
            self.outcome.packets += delivered.packets;
            self.outcome.missed += delivered.missed;
            self.outcome.delayed += delivered.delayed;
        }
    }

    /// Requests the units of a half. Returns when each of them has arrived.
    fn request(&mut self, object: usize, dispenser: usize, half: u64, now: Duration) -> Vec<Duration> {
        let bytes = self.setting.unit.clamp(PACKET, HALF);
        let units = HALF / bytes;
        let mut arrivals = Vec::with_capacity(units as usize);
        for unit in half * units..(half + 1) * units {
            let (storages, rng) = (&mut self.storages, &mut self.rng);
            let read = || storages.read(object, unit, bytes, now, rng);
            let (arrives, is_hit) = self.dispensers[dispenser].take(object, unit, bytes, now, read);
            arrivals.push(arrives);
            if now >= self.setting.ramp {
                self.outcome.requests += 1;
                self.outcome.cached += u64::from(is_hit);
            }
        }
        arrivals
    }

    fn finish(mut self) -> PaperOutcome {
        let mut counts = vec![0_usize; self.dispensers.len()];
        for stream in &self.streams {
            counts[stream.dispenser] += 1;
        }
        let mean = self.streams.len() as f64 / counts.len() as f64;
        self.outcome.balance = counts.into_iter().max().unwrap_or(0) as f64 / mean.max(1.0);
        self.outcome
    }
}
