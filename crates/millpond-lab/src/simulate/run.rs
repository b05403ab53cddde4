//! A workload against the cache's own policies and planner, on a virtual clock and a modelled link.

use super::{
    look_ahead::LookAhead,
    outcome::{Outcome, Setting},
    slice_item::item,
    workload::{Visit, Workload},
};
use millpond_store::{
    policy::{Item, Ledger, Slot},
    schedule::{Mode, ViewerId},
};
use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashSet},
};

/// Runs a workload. `progress` is told the share that is done, now and then.
///
/// A visit reads on at its rate; a slice that is not cached is fetched, and read as it arrives. A stall delays the rest of
/// the visit. All visits share one planner, one link and one cache. A fetch that has begun is always completed.
pub fn run(workload: &Workload, setting: &Setting, progress: impl FnMut(f64)) -> Outcome {
    play(workload, setting, progress)
}

/// Receives progress and fetches while a workload is played.
pub(super) trait Observer {
    /// The share of the visits that have begun.
    fn progress(&mut self, share: f64);

    /// A slice of an object is fetched, ahead of its viewer or for it.
    fn fetched(&mut self, _now: f64, _object: u64, _index: u64, _ahead: bool) {}
}

impl<F: FnMut(f64)> Observer for F {
    fn progress(&mut self, share: f64) {
        self(share);
    }
}

/// As [`run`], for any observer.
pub(super) fn play(workload: &Workload, setting: &Setting, observer: impl Observer) -> Outcome {
    let mut simulation = Simulation::new(setting, observer);
    let mut visits = workload.visits.iter().enumerate().peekable();
    loop {
        let visit = visits.peek().map(|(_, visit)| Moment(visit.at));
        let event = simulation.events.peek().map(|Reverse((moment, _))| *moment);
        match (visit, event) {
            (None, None) => break,
            (Some(visit), event) if event.is_none_or(|event| visit <= event) => {
                let Some((number, visit)) = visits.next() else { break };
                if number % 4096 == 0 {
                    simulation.observer.progress(number as f64 / workload.visits.len() as f64);
                }
                simulation.begin(visit);
            }
            _ => {
                let Some(Reverse((Moment(now), event))) = simulation.events.pop() else { break };
                simulation.handle(now, event);
            }
        }
    }
    simulation.finish(workload)
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Moment(f64);

impl Eq for Moment {}

impl PartialOrd for Moment {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Moment {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// An event of the simulation. Events of one moment are handled in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The first byte of a fetch arrives, this long after its request where that measures the link's delay.
    FirstByte(Option<Moment>),
    /// The last byte of a fetch arrives.
    LastByte { bytes: u32, ahead: bool },
    /// A reader, by its place in the list, comes to its next slice, or to its end.
    Reads(usize),
    /// The planner is called.
    Look,
}

/// A viewer on its way through an object.
#[derive(Clone, Copy)]
struct SimulatedReader {
    visit: Visit,
    /// The next byte.
    at: u64,
    /// Its name in the planner.
    id: Option<ViewerId>,
}

struct Simulation<'a, O> {
    setting: &'a Setting,
    observer: O,
    events: BinaryHeap<Reverse<(Moment, Event)>>,
    readers: Vec<SimulatedReader>,
    /// Places of readers that have left.
    free: Vec<usize>,
    ledger: Ledger,
    /// The arrival of each cached slice, by its slot.
    arrivals: Vec<Arrival>,
    /// The planner; none where the mode doesn't follow viewers.
    look_ahead: Option<LookAhead>,
    /// When the link has nothing to do.
    link_free: f64,
    outcome: Outcome,
    evicted: Vec<(Slot, Item)>,
    startup: f64,
}

/// When a slice arrives, and whether it was fetched ahead and no viewer has read it yet.
#[derive(Clone, Copy, Default)]
struct Arrival {
    first: f64,
    last: f64,
    unread: bool,
}

fn millis(now: f64) -> u64 {
    (now * 1000.0) as u64
}

impl<'a, O: Observer> Simulation<'a, O> {
    fn new(setting: &'a Setting, observer: O) -> Self {
        Self {
            setting,
            observer,
            events: BinaryHeap::new(),
            readers: Vec::new(),
            free: Vec::new(),
            ledger: Ledger::new(setting.cache, setting.policy),
            arrivals: Vec::new(),
            look_ahead: setting.mode.follows_viewers().then(|| LookAhead::new(setting.mode, setting.slice.into())),
            link_free: 0.0,
            outcome: Outcome::default(),
            evicted: Vec::new(),
            startup: 0.0,
        }
    }

    /// Bytes of a slice of an object: all of it where objects are cached whole.
    fn slice(&self, visit: &Visit) -> u64 {
        if self.setting.mode == Mode::Full { visit.len.max(1) } else { u64::from(self.setting.slice) }
    }

    fn at(&mut self, moment: f64, event: Event) {
        self.events.push(Reverse((Moment(moment), event)));
    }

    /// A visit begins.
    fn begin(&mut self, visit: &Visit) {
        let id = self.look_ahead.as_mut().map(|look_ahead| look_ahead.join(visit));
        let reader = SimulatedReader { visit: *visit, at: visit.from, id };
        let place = self.free.pop().unwrap_or(self.readers.len());
        if place == self.readers.len() {
            self.readers.push(reader);
        } else {
            self.readers[place] = reader;
        }
        self.at(visit.at, Event::Reads(place));
    }

    fn handle(&mut self, now: f64, event: Event) {
        match event {
            Event::Reads(place) => self.reads(place, now),
            Event::FirstByte(after) => {
                if let Some(look_ahead) = &mut self.look_ahead {
                    look_ahead.meter.begins(now, after.map(|after| after.0), 0);
                }
            }
            Event::LastByte { bytes, ahead } => {
                if let Some(look_ahead) = &mut self.look_ahead {
                    look_ahead.meter.arrived(now, bytes.into());
                    look_ahead.meter.ends(now, 0, true);
                    if ahead {
                        look_ahead.fetch_ends();
                        self.look_by(now);
                    }
                }
            }
            Event::Look => self.look(now),
        }
    }

    /// A viewer comes to its next slice, or leaves.
    fn reads(&mut self, place: usize, now: f64) {
        let SimulatedReader { visit, at, id } = self.readers[place];
        if at >= visit.to {
            self.free.push(place);
            if let Some((look_ahead, id)) = self.look_ahead.as_mut().zip(id) {
                look_ahead.leave(id);
                self.look_by(now);
            }
            return;
        }
        let slice = self.slice(&visit);
        let end = ((at / slice + 1) * slice).min(visit.to);
        if let Some((look_ahead, id)) = self.look_ahead.as_mut().zip(id) {
            look_ahead.moves(id, at, end, now);
            self.look_by(now);
        }
        let wait = self.read(&visit, at, slice, end - at, now);
        self.readers[place].at = end;
        self.at(now + wait + (end - at) as f64 / visit.rate, Event::Reads(place));
    }

    /// Something changed: the planner is called as soon as it may be, or at the moment that it named.
    fn look_by(&mut self, moment: f64) {
        if let Some(at) = self.look_ahead.as_mut().and_then(|look_ahead| look_ahead.call_by(moment)) {
            self.at(at, Event::Look);
        }
    }

    fn look(&mut self, now: f64) {
        let Some(look_ahead) = &mut self.look_ahead else { return };
        let (ledger, slice) = (&self.ledger, u64::from(self.setting.slice));
        let here = |visit: &Visit, index: u64| ledger.find(item(visit, index, slice).key).is_some();
        let (fetches, wake) = look_ahead.call(now, here);
        for (visit, index) in fetches {
            self.fetch(&visit, index, slice, now, true);
        }
        if let Some(wake) = wake {
            self.look_by(wake);
        }
    }

    /// A viewer comes to a slice. Returns for how long it waits.
    fn read(&mut self, visit: &Visit, at: u64, slice: u64, bytes: u64, now: f64) -> f64 {
        let index = at / slice;
        self.outcome.asks += 1;
        let item = item(visit, index, slice);
        self.ledger.read(&item, at.is_multiple_of(slice), millis(now));
        let arrival = match self.ledger.ask(&item, millis(now)) {
            Some(slot) => {
                let arrival = &mut self.arrivals[slot as usize];
                arrival.unread = false;
                if arrival.first <= now {
                    self.outcome.hits += 1;
                    self.outcome.hit_bytes += bytes;
                }
                *arrival
            }
            None => self.fetch(visit, index, slice, now, false),
        };
        // The slice is read as it arrives: neither its first byte nor its last may be late.
        let lasts = bytes as f64 / visit.rate;
        let needed = if bytes == u64::from(item.size) { arrival.last - now - lasts } else { 0.0 };
        let wait = (arrival.first - now).max(needed).max(0.0);
        if at == visit.from {
            self.startup += wait;
        } else if wait > 1e-3 {
            self.outcome.stalls += 1;
            self.outcome.stall_seconds += wait;
        }
        wait
    }

    /// Fetches a slice, where it isn't cached.
    fn fetch(&mut self, visit: &Visit, index: u64, slice: u64, now: f64, ahead: bool) -> Arrival {
        let item = item(visit, index, slice);
        if let Some(slot) = self.ledger.find(item.key) {
            return self.arrivals[slot as usize];
        }
        let first = self.link_free.max(now + self.setting.link.delay());
        let last = self.setting.link.carries(first, f64::from(item.size));
        self.link_free = last;
        self.measure(&item, now, first, last, ahead);
        self.observer.fetched(now, visit.object, index, ahead);
        self.outcome.server_bytes += u64::from(item.size);
        if ahead {
            self.outcome.prefetched_bytes += u64::from(item.size);
        }
        let arrival = Arrival { first, last, unread: ahead };
        let slot = self.ledger.insert(item, millis(now), &mut self.evicted);
        for (slot, item) in self.evicted.drain(..) {
            if self.arrivals[slot as usize].unread {
                self.outcome.false_prefetch_bytes += u64::from(item.size);
            }
        }
        match slot {
            Ok(slot) => {
                let place = slot as usize;
                if place >= self.arrivals.len() {
                    self.arrivals.resize(place + 1, Arrival::default());
                }
                self.arrivals[place] = arrival;
            }
            // The cache has no room for it.
            Err(_) if ahead => self.outcome.false_prefetch_bytes += u64::from(item.size),
            Err(_) => {}
        }
        arrival
    }

    /// Has the planner's meter see a fetch.
    fn measure(&mut self, item: &Item, now: f64, first: f64, last: f64, ahead: bool) {
        let Some(look_ahead) = &mut self.look_ahead else { return };
        let after = look_ahead.meter.tells_delay().then_some(Moment(first - now));
        look_ahead.meter.requested(item.size.into());
        if ahead {
            look_ahead.fetch_begins();
        }
        self.at(first, Event::FirstByte(after));
        self.at(last, Event::LastByte { bytes: item.size, ahead });
    }

    fn finish(mut self, workload: &Workload) -> Outcome {
        let unread: HashSet<Slot> =
            (0..).zip(&self.arrivals).filter(|(_, arrival)| arrival.unread).map(|(slot, _)| slot).collect();
        let left = self.ledger.items().filter(|(slot, _)| unread.contains(slot)).map(|(_, item)| u64::from(item.size));
        self.outcome.false_prefetch_bytes += left.sum::<u64>();
        let visits = workload.visits.len() as u64;
        let full = self.setting.mode == Mode::Full;
        Outcome {
            cache_bytes: self.setting.cache,
            slice_bytes: if full { 0 } else { self.setting.slice.into() },
            mode: self.setting.mode.to_string(),
            policy: self.setting.policy.to_string(),
            visits,
            bytes: workload.visits.iter().map(|visit| visit.to - visit.from).sum(),
            startup_seconds: self.startup / visits.max(1) as f64,
            ..self.outcome
        }
    }
}

#[cfg(test)]
mod tests;
