//! A cluster over regions: viewers of each region come to nodes of it, and one region is lost.

use super::{
    events::Events,
    moves,
    region_caches::{RegionCaches, Way},
    regions_outcome::RegionsOutcome,
    regions_setting::RegionsSetting,
};
use crate::simulate::generate::Zipf;
use fastrand::Rng;
use millpond_cluster::{
    Assignment, Candidate, HomeRoute, Load, Loads, Node, ObjectKey, RangeGroup, Request, Sosd, Standing, View,
};
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

/// Keys whose first dispensers and homes are compared.
const KEYS: usize = 5000;
/// How long viewers take to connect again, at most.
const RECONNECT: Duration = Duration::from_secs(1);

/// Plays viewers of a cluster over regions. `progress` is told the share that is done, now and then.
///
/// Viewers come at random to the regions, and stay for exponential times. Each asks the manager of its region, which knows the streams of
/// others from published loads. At half time the last region is lost: its viewers come to the other ones.
pub fn run_regions(setting: &RegionsSetting, mut progress: impl FnMut(f64)) -> RegionsOutcome {
    let mut run = Run::new(setting);
    run.begin();
    while let Some((now, event)) = run.events.next() {
        if now > setting.lasts {
            break;
        }
        match event {
            Event::Comes(viewer) => run.start(viewer, now),
            Event::Leaves(stream) => drop(run.end(stream)),
            Event::Publishes => {
                progress(now.as_secs_f64() / setting.lasts.as_secs_f64());
                run.publish(now);
            }
            Event::Lost => run.lose(now),
        }
    }
    run.finish()
}

enum Event {
    Comes(Viewer),
    /// A stream, by its number.
    Leaves(u64),
    Publishes,
    /// The last region.
    Lost,
}

#[derive(Clone, Copy)]
struct Viewer {
    region: usize,
    asset: usize,
    stays: Duration,
    /// Whether another one comes after it, as in a steady state.
    is_steady: bool,
}

struct Stream {
    viewer: Viewer,
    node: usize,
    ends: Duration,
}

struct Run<'a> {
    setting: &'a RegionsSetting,
    /// With their regions. The load is that of the moment.
    nodes: Vec<(Node, usize)>,
    numbers: HashMap<String, usize>,
    /// Regions that are there.
    regions: usize,
    view: Arc<View>,
    managers: Vec<Loads>,
    /// In the order in which they began.
    streams: BTreeMap<u64, Stream>,
    popularity: Zipf,
    caches: RegionCaches,
    /// Bytes that nodes of other regions than the viewer's sent.
    abroad: u64,
    began: u64,
    revision: u64,
    rng: Rng,
    events: Events<Event>,
    outcome: RegionsOutcome,
}

fn key(asset: usize) -> ObjectKey {
    ObjectKey::new("films", &format!("{asset}.mp4"))
}

impl<'a> Run<'a> {
    fn new(setting: &'a RegionsSetting) -> Self {
        let regions = setting.regions.max(2);
        let node = |number: usize| {
            let region = number % regions;
            let name = format!("node-{number}").parse().expect("a plain name");
            let zone = setting.zoned.then(|| format!("region-{region}").into());
            (Node { zone, ..Node::new(name, setting.capacity) }, region)
        };
        let nodes: Vec<_> = (0..setting.nodes.max(regions)).map(node).collect();
        let outcome = RegionsOutcome { regions, nodes: nodes.len(), zoned: setting.zoned, ..RegionsOutcome::default() };
        Self {
            setting,
            numbers: nodes.iter().enumerate().map(|(number, (node, _))| (node.name.to_string(), number)).collect(),
            caches: RegionCaches::new(nodes.clone(), setting.cache),
            nodes,
            regions,
            view: Arc::default(),
            managers: vec![Loads::new(Arc::default()); regions],
            streams: BTreeMap::new(),
            popularity: Zipf::new(setting.assets.max(1), setting.skew),
            abroad: 0,
            began: 0,
            revision: 0,
            rng: Rng::with_seed(setting.seed),
            events: Events::new(),
            outcome,
        }
    }

    fn begin(&mut self) {
        self.publish(Duration::ZERO);
        for _ in 0..self.nodes.len() * self.setting.viewers {
            let at = RegionsSetting::WARM.mul_f64(self.rng.f64());
            self.viewer_comes(at);
        }
        self.events.add(self.setting.lost(), Event::Lost);
    }

    fn viewer_comes(&mut self, at: Duration) {
        let (region, asset) = (self.rng.usize(..self.outcome.regions), self.popularity.draw(&mut self.rng));
        let stays = self.setting.watched.mul_f64(-(1.0 - self.rng.f64()).ln()).min(self.setting.length);
        self.events.add(at, Event::Comes(Viewer { region, asset, stays, is_steady: true }));
    }

    fn start(&mut self, viewer: Viewer, now: Duration) {
        // Viewers of a region that is lost come to another one.
        let region = if viewer.region < self.regions { viewer.region } else { self.rng.usize(..self.regions) };
        let ends = now + viewer.stays;
        match self.assign(region, viewer.asset) {
            Some(candidate) => {
                let node = self.numbers[candidate.name.as_str()];
                self.managers[region].add(&candidate.name, self.setting.rate, now);
                self.play(Viewer { region, ..viewer }, node, ends);
            }
            None => self.outcome.refused += 1,
        }
        if viewer.is_steady {
            let pause = Duration::from_secs(1).mul_f64(self.rng.f64());
            self.viewer_comes(ends + pause);
        }
    }

    /// The dispenser that the manager of a region sends a viewer to.
    fn assign(&mut self, region: usize, asset: usize) -> Option<Candidate> {
        let request = Request { key: &key(asset), rate: self.setting.rate, turn: self.began, rooms: None };
        let answer = Sosd::default().assign(&mut self.managers[region], &request);
        answer.candidates.into_iter().next().filter(|first| first.standing != Standing::Full)
    }

    fn play(&mut self, viewer: Viewer, node: usize, ends: Duration) {
        self.outcome.streams += 1;
        self.began += 1;
        let (of, region) = &mut self.nodes[node];
        of.load = Load { rate: of.load.rate.plus(self.setting.rate), sessions: of.load.sessions + 1 };
        let bytes = self.setting.rate.bps() as f64 / 8.0 * viewer.stays.as_secs_f64();
        self.outcome.viewer_bytes += bytes as u64;
        if *region != viewer.region {
            self.abroad += bytes as u64;
        }
        let (object, view) = (key(viewer.asset), self.view.clone());
        for group in 0..(bytes / RangeGroup::BYTES as f64).ceil() as u64 {
            self.caches.read(node, (viewer.asset, &object), group, &view);
        }
        self.events.add(ends, Event::Leaves(self.began));
        self.streams.insert(self.began, Stream { viewer, node, ends });
    }

    fn end(&mut self, number: u64) -> Option<Stream> {
        let stream = self.streams.remove(&number)?;
        let load = &mut self.nodes[stream.node].0.load;
        *load = Load { rate: load.rate.minus(self.setting.rate), sessions: load.sessions - 1 };
        Some(stream)
    }

    /// The nodes of regions that are there.
    fn there(&self) -> impl Iterator<Item = &(Node, usize)> {
        self.nodes.iter().filter(|(_, region)| *region < self.regions)
    }

    /// Nodes publish their loads, and managers see them.
    fn publish(&mut self, now: Duration) {
        self.observe(now);
        self.show(now);
        self.events.add(now + self.setting.published, Event::Publishes);
    }

    fn show(&mut self, now: Duration) {
        self.revision += 1;
        let view = View::of(self.revision, self.there().map(|(node, _)| node.clone()));
        for (loads, (own, _)) in self.managers.iter_mut().zip(&self.nodes) {
            loads.update(view.clone().seen_by(own).into(), now);
        }
        self.view = view.into();
    }

    /// Compares the nodes' loads.
    fn observe(&mut self, now: Duration) {
        if now < RegionsSetting::WARM {
            return;
        }
        let loads = || self.there().map(|(node, _)| node.load.rate.bps());
        let (most, sum) = (loads().max().unwrap_or(0), loads().sum::<u64>());
        let over = most as f64 * loads().count() as f64 / sum.max(1) as f64;
        let kept = match self.regions == self.outcome.regions {
            true => &mut self.outcome.most_over_mean,
            false => &mut self.outcome.most_over_mean_after,
        };
        *kept = kept.max(over);
    }

    /// The last region is lost.
    fn lose(&mut self, now: Duration) {
        self.observe(now);
        let before = self.firsts();
        self.regions -= 1;
        self.show(now);
        let after = self.firsts();
        let moved = |which: usize| {
            let differing = before.iter().zip(&after).filter(|(one, two)| one[which] != two[which]).count();
            differing as f64 / before.len() as f64
        };
        [self.outcome.moved_assets, self.outcome.moved_homes] = [0, 1].map(moved);
        for node in (0..self.nodes.len()).filter(|node| self.nodes[*node].1 >= self.regions) {
            self.caches.kill(node);
        }
        let is_lost = |stream: &Stream| self.nodes[stream.node].1 >= self.regions;
        let cut: Vec<u64> =
            self.streams.iter().filter(|(_, stream)| is_lost(stream)).map(|(number, _)| *number).collect();
        for number in cut {
            let Some(Stream { viewer, ends, .. }) = self.end(number) else { continue };
            self.outcome.cut += 1;
            let again = now + RECONNECT.mul_f64(self.rng.f64());
            // The viewer that comes after it comes all the same.
            let viewer = Viewer { stays: ends.saturating_sub(again), is_steady: false, ..viewer };
            self.events.add(again, Event::Comes(viewer));
        }
    }

    /// The first dispenser of each of some assets, without load, and the home that the first node asks for its first bytes.
    fn firsts(&self) -> Vec<[Option<String>; 2]> {
        let own = &self.nodes[0].0;
        let idle = self.there().map(|(node, _)| Node { load: Load::default(), ..node.clone() });
        let view = Arc::new(View::of(1, idle).seen_by(own));
        let mut loads = Loads::new(view.clone());
        let of = |asset: usize| {
            let key = key(asset);
            let request = Request { key: &key, rate: self.setting.rate, turn: 0, rooms: None };
            let answer = Sosd::default().assign(&mut loads, &request);
            let route = HomeRoute::of(&view, (&own.name, own.zone.as_deref()), &key, RangeGroup::of(0));
            let home = route.zone.or(route.cluster).map(|home| home.name.to_string());
            [answer.candidates.first().map(|first| first.name.to_string()), home]
        };
        (0..KEYS).map(of).collect()
    }

    fn finish(mut self) -> RegionsOutcome {
        let drawn: Vec<_> = (0..20_000).map(|_| key(self.popularity.draw(&mut self.rng))).collect();
        let decisions = moves::decisions_per_second(&Sosd::default(), &mut self.managers[0], self.setting.rate, drawn);
        let outcome = &mut self.outcome;
        [outcome.decisions_per_second, outcome.first_decisions_per_second] = decisions;
        outcome.abroad_bytes = self.abroad;
        outcome.origin_bytes = self.caches.origin_bytes();
        outcome.origin_ratio = self.caches.origin_ratio();
        outcome.between = self.caches.between();
        outcome.node_share = self.caches.share(Way::Node);
        outcome.region_share = self.caches.share(Way::Region);
        outcome.cluster_share = self.caches.share(Way::Cluster);
        self.outcome
    }
}
