//! A cluster of many nodes: viewers come and go, nodes die and join, a crowd comes to one asset.

use super::{
    events::Events, fleet_outcome::FleetOutcome, fleet_setting::FleetSetting, moves, recent::RecentSessions,
    sharded::ShardedCache,
};
use crate::simulate::generate::Zipf;
use fastrand::Rng;
use millpond_cluster::{
    Assignment, Bitrate, Book, Booking, Candidate, Load, Loads, Node, NodeName, ObjectKey, RangeGroup, Request,
    Resource, Role, Sosd, Standing, View, node_key,
};
use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::Arc,
    time::Duration,
};

/// Time that a viewer or manager waits for a dead node, once.
const DEAD: Duration = Duration::from_secs(1);
/// Dispensers that a manager tries for a viewer.
const TRIES: usize = 16;
/// One stream of so many is compared with the hash's first choice.
const SAMPLED: u64 = 64;
/// How long viewers take to connect again, at most.
const RECONNECT: Duration = Duration::from_secs(1);

/// Plays viewers of a fleet. `progress` is told the share that is done, now and then.
///
/// Viewers come at random and stay for exponential times. Each asks a manager, which assigns, asks the book and books. Nodes
/// publish their load now and then. Then nodes are killed, others join, and a crowd comes to a cold asset.
pub fn run_fleet(setting: &FleetSetting, mut progress: impl FnMut(f64)) -> FleetOutcome {
    let mut fleet = Fleet::new(setting);
    fleet.begin();
    while let Some((now, event)) = fleet.events.next() {
        if now > FleetSetting::END {
            break;
        }
        fleet.hear(now);
        match event {
            Event::Comes(viewer) => fleet.start(viewer, now),
            Event::Leaves(stream) => drop(fleet.end(stream)),
            Event::Publishes => {
                progress(now.as_secs_f64() / FleetSetting::END.as_secs_f64());
                fleet.publish(now);
            }
            Event::Kills => fleet.kill(now),
            Event::Expires => fleet.expire(now),
            Event::Joins => fleet.join(now),
        }
    }
    fleet.finish()
}

enum Event {
    Comes(Viewer),
    /// A stream, by its number.
    Leaves(u64),
    Publishes,
    Kills,
    /// The leases of the nodes that were killed.
    Expires,
    Joins,
}

#[derive(Clone, Copy)]
struct Viewer {
    asset: usize,
    stays: Duration,
    /// When its node was killed.
    cut: Option<Duration>,
    /// Whether another one comes after it, as in a steady state.
    is_steady: bool,
}

struct Stream {
    viewer: Viewer,
    node: usize,
    ends: Duration,
}

struct Member {
    node: Node,
    is_alive: bool,
    is_registered: bool,
    lies: bool,
    load: Load,
    /// Its load as it is registered.
    published: Load,
}

/// A booking that other managers do not know yet.
struct News {
    at: Duration,
    manager: usize,
    node: usize,
}

struct Fleet<'a> {
    setting: &'a FleetSetting,
    rule: Box<dyn Assignment>,
    members: Vec<Member>,
    /// Places of members by name.
    places: HashMap<String, usize>,
    managers: Vec<Loads>,
    news: VecDeque<News>,
    book: Book,
    streams: HashMap<u64, Stream>,
    keys: Vec<ObjectKey>,
    popularity: Zipf,
    recent: RecentSessions,
    caches: ShardedCache,
    crowd: HashSet<usize>,
    turn: u64,
    led: u64,
    /// The nodes without load.
    idle: Loads,
    /// Streams that were compared with it; those at the first choice, and at one of the first three.
    sampled: [u64; 3],
    revision: u64,
    rng: Rng,
    events: Events<Event>,
    outcome: FleetOutcome,
}

impl<'a> Fleet<'a> {
    fn new(setting: &'a FleetSetting) -> Self {
        let changed = setting.changed_nodes();
        let mut rng = Rng::with_seed(setting.seed);
        let mut book = Book::default();
        let members: Vec<_> = (0..setting.nodes + changed)
            .map(|number| {
                let double = if setting.mixed && number % 4 == 0 { 2 } else { 1 };
                let capacity = Bitrate::from_bps(setting.capacity.bps() * double);
                let mut node = Node::new(format!("node-{number}").parse().expect("a plain name"), capacity);
                node.addresses.http =
                    Some(format!("http://10.{}.{}.{}:8080", number >> 16, number >> 8 & 255, number & 255).into());
                node.addresses.rtsp =
                    Some(format!("rtsp://10.{}.{}.{}", number >> 16, number >> 8 & 255, number & 255).into());
                book.set_capacity(Resource::Node(node.name.clone()), Some(capacity));
                let is_there = number < setting.nodes;
                let lies = rng.f64() < setting.lying;
                Member {
                    node,
                    is_alive: is_there,
                    is_registered: is_there,
                    lies,
                    load: Load::default(),
                    published: Load::default(),
                }
            })
            .collect();
        let places = members.iter().enumerate().map(|(place, member)| (member.node.name.to_string(), place)).collect();
        let view = Arc::new(View::default());
        Self {
            setting,
            rule: setting.assignment.rule(),
            caches: ShardedCache::new(members.len(), setting.cache),
            places,
            members,
            managers: vec![Loads::new(view); setting.managers.max(1)],
            news: VecDeque::new(),
            book,
            streams: HashMap::new(),
            // One more than those that are popular: the crowd's.
            keys: (0..=setting.assets).map(|asset| ObjectKey::new("films", &format!("{asset}.mp4"))).collect(),
            popularity: Zipf::new(setting.assets, setting.skew),
            recent: RecentSessions::default(),
            crowd: HashSet::new(),
            turn: 0,
            led: 0,
            idle: Loads::new(Arc::default()),
            sampled: [0; 3],
            revision: 0,
            rng,
            events: Events::new(),
            outcome: FleetOutcome {
                nodes: setting.nodes,
                assignment: setting.assignment.to_string(),
                changed_nodes: changed,
                ..FleetOutcome::default()
            },
        }
    }

    fn begin(&mut self) {
        self.publish(Duration::ZERO);
        self.idle = moves::idle(&self.registered());
        let viewers = self.setting.nodes * self.setting.viewers;
        for _ in 0..viewers {
            let at = (FleetSetting::WARM / 2).mul_f64(self.rng.f64());
            self.viewer_comes(at);
        }
        for _ in 0..(viewers as f64 * self.setting.crowd) as usize {
            let at = FleetSetting::CROWD + Duration::from_secs(60).mul_f64(self.rng.f64());
            let viewer =
                Viewer { asset: self.setting.assets, stays: self.setting.watched, cut: None, is_steady: false };
            self.events.add(at, Event::Comes(viewer));
        }
        self.events.add(FleetSetting::KILL, Event::Kills);
        self.events.add(FleetSetting::KILL + self.setting.lease, Event::Expires);
        self.events.add(FleetSetting::JOIN, Event::Joins);
    }

    fn viewer_comes(&mut self, at: Duration) {
        let asset = self.popularity.draw(&mut self.rng);
        let stays = self.setting.watched.mul_f64(-(1.0 - self.rng.f64()).ln()).min(self.setting.length);
        self.events.add(at, Event::Comes(Viewer { asset, stays, cut: None, is_steady: true }));
    }

    /// Managers hear of the bookings of others.
    fn hear(&mut self, now: Duration) {
        while let Some(news) = self.news.pop_front_if(|news| news.at <= now) {
            let name = &self.members[news.node].node.name;
            for (_, loads) in self.managers.iter_mut().enumerate().filter(|(number, _)| *number != news.manager) {
                loads.add(name, self.setting.rate, now);
            }
        }
    }

    fn start(&mut self, viewer: Viewer, now: Duration) {
        let manager = self.rng.usize(..self.managers.len());
        self.turn += 1;
        let mut at = now;
        let mut dead = Vec::new();
        for _ in 0..TRIES {
            let Some(candidate) = self.assign(manager, viewer.asset, &dead) else { break };
            let place = self.places[candidate.name.as_str()];
            if !self.members[place].is_alive {
                self.outcome.dead_tries += 1;
                at += DEAD;
                dead.push(candidate.name);
                continue;
            }
            if self.book(manager, &candidate, at) {
                self.news.push_back(News { at: now + self.setting.watch, manager, node: place });
                return self.play(viewer, place, at);
            }
        }
        self.outcome.refused += 1;
        self.replace(viewer, now);
    }

    /// The dispenser that a manager sends a viewer to.
    fn assign(&mut self, manager: usize, asset: usize, dead: &[NodeName]) -> Option<Candidate> {
        let request = Request { key: &self.keys[asset], rate: self.setting.rate, turn: self.turn, rooms: None };
        let answer = self.rule.assign(&mut self.managers[manager], &request);
        let mut able = answer.candidates.into_iter().filter(|candidate| candidate.standing != Standing::Full);
        able.find(|candidate| !dead.contains(&candidate.name))
    }

    /// Books a stream, as the transaction does. It fails where others have booked so much that the manager would not have chosen the
    /// node; the manager knows now what is booked of it.
    fn book(&mut self, manager: usize, candidate: &Candidate, now: Duration) -> bool {
        let rate = self.setting.rate;
        let booked = self.book.booked(&Resource::Node(candidate.name.clone()), now);
        self.managers[manager].at_least(&candidate.name, booked);
        let is_above = booked.plus(rate) > candidate.bound && candidate.standing == Standing::Room;
        let booking = Booking::new(self.turn.to_string(), &candidate.name, &[], rate, now, Some(self.setting.length));
        let fits = !is_above && self.book.fits(&booking).is_ok();
        if fits {
            self.book.insert(booking);
            self.managers[manager].add(&candidate.name, rate, now);
        } else {
            self.outcome.lost_transactions += 1;
        }
        fits
    }

    fn play(&mut self, viewer: Viewer, place: usize, now: Duration) {
        self.outcome.streams += 1;
        let load = &mut self.members[place].load;
        *load = Load { rate: load.rate.plus(self.setting.rate), sessions: load.sessions + 1 };
        if self.turn.is_multiple_of(SAMPLED) && viewer.is_steady {
            self.compare(viewer.asset, place);
        }
        self.led += u64::from(self.recent.begin(place, viewer.asset, now));
        if viewer.asset == self.setting.assets {
            self.outcome.crowd_viewers += 1;
            self.crowd.insert(place);
        }
        if let Some(cut) = viewer.cut {
            self.outcome.longest_cut = self.outcome.longest_cut.max((now.saturating_sub(cut)).as_secs_f64());
        }
        let bytes = self.setting.rate.bps() as f64 / 8.0 * viewer.stays.as_secs_f64();
        let view = self.managers[0].view().clone();
        for group in 0..(bytes / RangeGroup::BYTES as f64).ceil() as u64 {
            let (members, places) = (&self.members, &self.places);
            let alive = |name: &str| places.get(name).copied().filter(|place| members[*place].is_alive);
            self.caches.read((viewer.asset, &self.keys[viewer.asset]), group, &view, alive);
        }
        let ends = now + viewer.stays;
        self.events.add(ends, Event::Leaves(self.turn));
        self.streams.insert(self.turn, Stream { viewer, node: place, ends });
        self.outcome.most_streams = self.outcome.most_streams.max(self.streams.len());
        if viewer.is_steady {
            self.replace(viewer, ends);
        }
    }

    /// Compares the dispenser of a stream with the one that an idle cluster would have chosen.
    fn compare(&mut self, asset: usize, place: usize) {
        let request = Request { key: &self.keys[asset], rate: self.setting.rate, turn: self.turn, rooms: None };
        let answer = self.rule.assign(&mut self.idle, &request);
        let rank = answer.candidates.iter().position(|found| found.name == self.members[place].node.name);
        self.sampled[0] += 1;
        self.sampled[1] += u64::from(rank == Some(0));
        self.sampled[2] += u64::from(rank.is_some_and(|rank| rank < 3));
    }

    /// Another viewer comes when one leaves.
    fn replace(&mut self, viewer: Viewer, at: Duration) {
        if viewer.is_steady && at < FleetSetting::END {
            let pause = Duration::from_secs(1).mul_f64(self.rng.f64());
            self.viewer_comes(at + pause);
        }
    }

    fn end(&mut self, number: u64) -> Option<Stream> {
        let stream = self.streams.remove(&number)?;
        self.book.remove(&number.to_string());
        let load = &mut self.members[stream.node].load;
        *load = Load { rate: load.rate.minus(self.setting.rate), sessions: load.sessions - 1 };
        Some(stream)
    }

    /// The registrations of a moment.
    fn registered(&self) -> Vec<Node> {
        let there = self.members.iter().filter(|member| member.is_registered);
        let node = |member: &Member| {
            let load = if member.lies { Load::default() } else { member.published };
            Node { load, ..member.node.clone() }
        };
        there.map(node).collect()
    }

    fn publish(&mut self, now: Duration) {
        self.observe(now);
        for member in self.members.iter_mut().filter(|member| member.is_alive) {
            member.published = member.load;
        }
        self.show(now);
        self.events.add(now + self.setting.published, Event::Publishes);
    }

    /// Managers get a new view.
    fn show(&mut self, now: Duration) {
        self.revision += 1;
        let view = Arc::new(View::of(self.revision, self.registered()));
        let booked = |node: &Node| self.book.booked(&Resource::Node(node.name.clone()), now);
        let booked: Vec<_> = view.nodes().iter().map(|node| (node.name.clone(), booked(node))).collect();
        for loads in &mut self.managers {
            loads.update(view.clone(), now);
            // Bookings show what nodes do not tell.
            booked.iter().for_each(|(name, rate)| loads.at_least(name, *rate));
        }
    }

    /// Compares the nodes' loads.
    fn observe(&mut self, now: Duration) {
        if now < FleetSetting::WARM {
            return;
        }
        let alive = || self.members.iter().filter(|member| member.is_alive);
        let sum: u64 = alive().map(|member| member.load.rate.bps()).sum();
        let capacity: u64 = alive().map(|member| member.node.capacity.bps()).sum();
        let mean = sum as f64 / capacity.max(1) as f64;
        let share = |member: &Member| member.load.rate.bps() as f64 / member.node.capacity.bps() as f64;
        let over = alive().map(share).fold(0.0, f64::max) / mean.max(1e-9);
        self.outcome.most_over_mean = self.outcome.most_over_mean.max(over);
        let bound = Sosd::default().spread as f64 / 1000.0;
        self.outcome.most_over_bound = self.outcome.most_over_mean / bound;
    }

    fn kill(&mut self, now: Duration) {
        for place in 0..self.outcome.changed_nodes {
            self.members[place].is_alive = false;
            self.recent.kill(place, now);
            self.caches.kill(place);
        }
        self.caches.changed();
        let mut cut: Vec<u64> =
            self.streams.iter().filter(|(_, stream)| !self.members[stream.node].is_alive).map(|(id, _)| *id).collect();
        cut.sort_unstable();
        for number in cut {
            let Some(Stream { viewer, ends, .. }) = self.end(number) else { continue };
            self.outcome.cut += 1;
            let again = now + RECONNECT.mul_f64(self.rng.f64());
            let viewer = Viewer { stays: ends.saturating_sub(again), cut: Some(now), is_steady: false, ..viewer };
            self.events.add(again, Event::Comes(viewer));
        }
    }

    /// The leases of dead nodes end.
    fn expire(&mut self, now: Duration) {
        let before = self.registered();
        self.members.iter_mut().for_each(|member| member.is_registered &= member.is_alive);
        self.members_changed(now);
        let after = self.registered();
        self.outcome.moved_leaving = self.moved([moves::idle(&before), moves::idle(&after)]);
    }

    fn join(&mut self, now: Duration) {
        let before = self.registered();
        for member in &mut self.members[self.setting.nodes..] {
            (member.is_alive, member.is_registered) = (true, true);
        }
        self.members_changed(now);
        let after = self.registered();
        self.outcome.moved_joining = self.moved([moves::idle(&before), moves::idle(&after)]);
    }

    /// Share of the assets that moved, over the share of the capacity of all nodes that came or went.
    fn moved(&self, [mut before, mut after]: [Loads; 2]) -> f64 {
        let capacity =
            |loads: &Loads| loads.view().nodes().iter().map(|node| node.capacity).sum::<Bitrate>().bps() as f64;
        let capacities = [capacity(&before), capacity(&after)];
        let most = capacities[0].max(capacities[1]);
        let share = (capacities[0] - capacities[1]).abs() / most;
        moves::moved(&*self.rule, &mut before, &mut after, self.setting.rate, share)
    }

    fn members_changed(&mut self, now: Duration) {
        self.caches.changed();
        self.idle = moves::idle(&self.registered());
        self.show(now);
    }

    fn finish(mut self) -> FleetOutcome {
        let nodes = self.registered();
        let size = |node: &Node| node_key("/millpond/", &node.name, u64::MAX).len() + node.to_json().len();
        let drawn: Vec<_> = (0..20_000).map(|_| self.keys[self.popularity.draw(&mut self.rng)].clone()).collect();
        let loads = &mut self.managers[0];
        assert!(loads.view().taking(Role::Dispenser).count() > 0, "nodes stay");
        self.outcome.view_bytes = nodes.iter().map(size).sum::<usize>() as u64;
        let decisions = moves::decisions_per_second(&*self.rule, loads, self.setting.rate, drawn);
        [self.outcome.decisions_per_second, self.outcome.first_decisions_per_second] = decisions;
        let share = |count| count as f64 / self.sampled[0].max(1) as f64;
        (self.outcome.first_share, self.outcome.three_share) = (share(self.sampled[1]), share(self.sampled[2]));
        self.outcome.led_share = self.led as f64 / self.outcome.streams.max(1) as f64;
        self.outcome.cluster_share = self.caches.cluster_share();
        self.outcome.origin_bytes = self.caches.origin_bytes();
        self.outcome.origin_ratio = self.caches.origin_ratio();
        self.outcome.crowd_origin_ratio = self.caches.origin_ratio_of(self.setting.assets);
        self.outcome.crowd_dispensers = self.crowd.len();
        self.outcome
    }
}
