//! A workload against the cache's own policies and modes, on a virtual clock and a modelled link.

use super::{
    way::Way,
    workload::{Visit, Workload},
};
use millpond_store::{
    policy::{self, Item, Ledger, Slot},
    schedule::{self, Course, Mode, Viewer},
};
use serde::Serialize;
use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashSet},
    ops::Range,
};

pub use millpond_store::schedule::Link;

/// One setting of everything that can be chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// Bytes of the cache.
    pub cache: u64,
    /// Bytes of a slice.
    pub slice: u32,
    /// When slices are sent for.
    pub mode: Mode,
    /// Which slice goes.
    pub policy: &'static str,
    /// The link to the origin, shared by all fetches, one after the other. Active knows what it gives now, not what it
    /// will give.
    pub link: Way,
}

/// What a run came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Outcome {
    /// Bytes of the cache.
    pub cache_bytes: u64,
    /// Bytes of a slice; 0 where objects are cached whole.
    pub slice_bytes: u64,
    /// The mode.
    pub mode: String,
    /// The policy.
    pub policy: String,
    /// Visits.
    pub visits: u64,
    /// Bytes that viewers read.
    pub bytes: u64,
    /// Bytes that the origin sent.
    pub server_bytes: u64,
    /// Of the bytes that viewers read, those of slices that were there.
    pub hit_bytes: u64,
    /// Slices asked for.
    pub asks: u64,
    /// Of those, slices that were there.
    pub hits: u64,
    /// Bytes sent for ahead of their viewer.
    pub prefetched_bytes: u64,
    /// Of those, bytes of slices that nobody read before they went, or the end of the trace.
    pub false_prefetch_bytes: u64,
    /// Mean seconds from the beginning of a visit to its first byte.
    pub startup_seconds: f64,
    /// Times that playing stopped.
    pub stalls: u64,
    /// Seconds that it stopped for.
    pub stall_seconds: f64,
}

impl Outcome {
    /// Share of the bytes read that were not there.
    pub fn byte_miss_ratio(&self) -> f64 {
        1.0 - self.hit_bytes as f64 / self.bytes.max(1) as f64
    }
}

/// Hash of a slice's name.
pub(super) fn key(object: u64, index: u64) -> u64 {
    let mixed =
        (object.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15)) ^ index.wrapping_mul(0xc2b2_ae3d_27d4_eb4f);
    (mixed ^ (mixed >> 31)).wrapping_mul(0xd6e8_feb8_6659_fd93)
}

/// Runs a workload. `progress` is told the share that is done, now and then.
///
/// A visit reads on at its rate; a slice that is not there is sent for and read as it comes. Stops shift what follows.
///
/// # Panics
///
/// Where the policy is not one of [`policy::NAMES`].
pub fn run(workload: &Workload, setting: &Setting, mut progress: impl FnMut(f64)) -> Outcome {
    let mut state = State::new(setting);
    let mut due: BinaryHeap<Reverse<(Moment, usize)>> = BinaryHeap::new();
    let mut readers: Vec<Reader> = Vec::new();
    let mut free: Vec<usize> = Vec::new();
    let mut visits = workload.visits.iter().enumerate().peekable();
    loop {
        let next_visit = visits.peek().map(|(_, visit)| Moment(visit.at));
        let next_step = due.peek().map(|Reverse((moment, _))| *moment);
        match (next_visit, next_step) {
            (None, None) => break,
            (Some(visit), step) if step.is_none_or(|step| visit <= step) => {
                let Some((number, visit)) = visits.next() else { break };
                if number % 4096 == 0 {
                    progress(number as f64 / workload.visits.len() as f64);
                }
                let slice = state.slice(visit);
                let reader = Reader { visit: *visit, at: visit.from, edge: None, viewer: Viewer::new(slice) };
                let place = free.pop().unwrap_or(readers.len());
                if place == readers.len() {
                    readers.push(reader);
                } else {
                    readers[place] = reader;
                }
                due.push(Reverse((Moment(visit.at), place)));
            }
            _ => {
                let Some(Reverse((Moment(now), place))) = due.pop() else { break };
                match state.step(&mut readers[place], now) {
                    Some(next) => due.push(Reverse((Moment(next), place))),
                    None => free.push(place),
                }
            }
        }
    }
    state.finish(workload)
}

#[derive(Clone, Copy, PartialEq)]
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

/// A viewer on the way through an object.
struct Reader {
    visit: Visit,
    /// The next byte.
    at: u64,
    /// When it will have played the slice that it is in; none before its first.
    edge: Option<f64>,
    viewer: Viewer,
}

struct State<'a> {
    setting: &'a Setting,
    ledger: Ledger,
    /// By slot: when the slice is there whole, and whether anybody has read it since it was sent for ahead.
    coming: Vec<Coming>,
    link_free: f64,
    outcome: Outcome,
    gone: Vec<(Slot, Item)>,
    wishes: Vec<schedule::Wish<()>>,
    startup: f64,
}

#[derive(Clone, Copy, Default)]
struct Coming {
    first: f64,
    last: f64,
    unread: bool,
}

impl<'a> State<'a> {
    fn new(setting: &'a Setting) -> Self {
        let policy = policy::by_name(setting.policy).expect("a policy that there is");
        Self {
            setting,
            ledger: Ledger::new(setting.cache, policy),
            coming: Vec::new(),
            link_free: 0.0,
            outcome: Outcome::default(),
            gone: Vec::new(),
            wishes: Vec::new(),
            startup: 0.0,
        }
    }

    /// Bytes of a slice of an object: all of it where objects are cached whole.
    fn slice(&self, visit: &Visit) -> u64 {
        if self.setting.mode == Mode::Full { visit.len.max(1) } else { u64::from(self.setting.slice) }
    }

    /// A viewer goes on to its next moment of interest; says when that is, nothing at the end.
    fn step(&mut self, reader: &mut Reader, now: f64) -> Option<f64> {
        let visit = reader.visit;
        let slice = self.slice(&visit);
        let mut clock = now;
        if reader.edge.is_none_or(|edge| edge <= now) {
            if reader.at >= visit.to {
                return None;
            }
            let from = reader.at;
            let index = from / slice;
            let end = ((index + 1) * slice).min(visit.to);
            clock += self.read(&visit, from, slice, end - from, now, reader.edge.is_none());
            reader.viewer.moves(Course::constant(from, visit.len, visit.rate), end, clock);
            reader.at = end;
            reader.edge = Some(clock + (end - from) as f64 / visit.rate);
        }
        let wakes = self.look_ahead(reader, slice, clock);
        [reader.edge, wakes].into_iter().flatten().reduce(f64::min)
    }

    /// Sends for what the mode says to send for now; says when to look again.
    fn look_ahead(&mut self, reader: &mut Reader, slice: u64, now: f64) -> Option<f64> {
        let Reader { visit, viewer, .. } = reader;
        let (due, wakes) = match self.setting.mode.ahead() {
            Some(ahead) if ahead > 0.0 && self.setting.mode != Mode::Full => viewer.window(ahead, now),
            Some(_) => return None,
            None => self.active(visit, viewer, slice, now),
        };
        for index in due {
            self.fetch(visit, index, slice, now, true);
        }
        wakes
    }

    fn active(&mut self, visit: &Visit, viewer: &mut Viewer, slice: u64, now: f64) -> (Range<u64>, Option<f64>) {
        self.wishes.clear();
        let here = |index| self.ledger.find(item(visit, index, slice).key).is_some();
        viewer.wishes((), now, here, &mut self.wishes);
        let (mut due, mut wakes) = (0, None);
        let busy = (self.link_free - now).max(0.0);
        schedule::latest(&mut self.wishes, self.setting.link.at(now), busy, |place, at| {
            if at <= now {
                due = due.max(place + 1);
            } else {
                wakes = Some(at);
            }
        });
        // One viewer's slices have their deadlines in order.
        let first = self.wishes.first().map_or(0, |wish| wish.index);
        let end = self.wishes[..due].last().map_or(first, |wish| wish.index + 1);
        if let Some(last) = end.checked_sub(1).filter(|_| due > 0) {
            viewer.deals_with(last);
        }
        (first..end, wakes)
    }

    /// A viewer comes to a slice; says for how long it has to wait for it.
    fn read(&mut self, visit: &Visit, at: u64, slice: u64, bytes: u64, now: f64, first: bool) -> f64 {
        let index = at / slice;
        self.outcome.asks += 1;
        let item = item(visit, index, slice);
        self.ledger.read(&item, at.is_multiple_of(slice), (now * 1000.0) as u64);
        let coming = match self.ledger.ask(&item, (now * 1000.0) as u64) {
            Some(slot) => {
                let coming = &mut self.coming[slot as usize];
                coming.unread = false;
                if coming.first <= now {
                    self.outcome.hits += 1;
                    self.outcome.hit_bytes += bytes;
                }
                *coming
            }
            None => self.fetch(visit, index, slice, now, false),
        };
        // Read as it comes: neither its first byte nor its last may be late.
        let lasts = bytes as f64 / visit.rate;
        let needed = if bytes == u64::from(item.size) { coming.last - now - lasts } else { 0.0 };
        let wait = (coming.first - now).max(needed).max(0.0);
        if first {
            self.startup += wait;
        } else if wait > 1e-3 {
            self.outcome.stalls += 1;
            self.outcome.stall_seconds += wait;
        }
        wait
    }

    /// Sends for a slice, where it isn't there.
    fn fetch(&mut self, visit: &Visit, index: u64, slice: u64, now: f64, ahead: bool) -> Coming {
        let item = item(visit, index, slice);
        if let Some(slot) = self.ledger.find(item.key) {
            return self.coming[slot as usize];
        }
        let begins = self.link_free.max(now + self.setting.link.at(now).delay);
        let last = self.setting.link.carries(begins, f64::from(item.size));
        self.link_free = last;
        self.outcome.server_bytes += u64::from(item.size);
        if ahead {
            self.outcome.prefetched_bytes += u64::from(item.size);
        }
        let coming = Coming { first: begins, last, unread: ahead };
        let slot = self.ledger.insert(item, (now * 1000.0) as u64, &mut self.gone);
        for (slot, item) in self.gone.drain(..) {
            if self.coming[slot as usize].unread {
                self.outcome.false_prefetch_bytes += u64::from(item.size);
            }
        }
        match slot {
            Ok(slot) => {
                let place = slot as usize;
                if place >= self.coming.len() {
                    self.coming.resize(place + 1, Coming::default());
                }
                self.coming[place] = coming;
            }
            // No room for it at all: it goes by.
            Err(_) if ahead => self.outcome.false_prefetch_bytes += u64::from(item.size),
            Err(_) => {}
        }
        coming
    }

    fn finish(mut self, workload: &Workload) -> Outcome {
        let unread: HashSet<Slot> =
            (0..).zip(&self.coming).filter(|(_, coming)| coming.unread).map(|(slot, _)| slot).collect();
        let left = self.ledger.items().filter(|(slot, _)| unread.contains(slot)).map(|(_, item)| u64::from(item.size));
        self.outcome.false_prefetch_bytes += left.sum::<u64>();
        let visits = workload.visits.len() as u64;
        let full = self.setting.mode == Mode::Full;
        Outcome {
            cache_bytes: self.setting.cache,
            slice_bytes: if full { 0 } else { self.setting.slice.into() },
            mode: self.setting.mode.to_string(),
            policy: self.setting.policy.to_owned(),
            visits,
            bytes: workload.visits.iter().map(|visit| visit.to - visit.from).sum(),
            startup_seconds: self.startup / visits.max(1) as f64,
            ..self.outcome
        }
    }
}

pub(super) fn item(visit: &Visit, index: u64, slice: u64) -> Item {
    let start = index * slice;
    let size = (visit.len.saturating_sub(start)).min(slice);
    Item {
        key: key(visit.object, index),
        object: key(visit.object, u64::MAX),
        index: index as u32,
        of: visit.len.div_ceil(slice) as u32,
        size: u32::try_from(size).unwrap_or(u32::MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAST: Link = Link { bandwidth: 1e12, delay: 0.0 };

    fn setting(cache: u64, slice: u32, mode: Mode) -> Setting {
        Setting { cache, slice, mode, policy: "lru", link: FAST.into() }
    }

    fn visit(at: f64, object: u64, from: u64, to: u64) -> Visit {
        Visit { at, object, len: 100, from, to, rate: 1.0 }
    }

    fn outcome(visits: &[Visit], setting: &Setting) -> Outcome {
        run(&Workload { name: "test".into(), visits: visits.to_vec() }, setting, |_| {})
    }

    #[test]
    fn slices_are_fetched_as_far_as_a_viewer_watches() {
        let once = [visit(0.0, 1, 0, 25)];
        let on_demand = outcome(&once, &setting(1000, 10, Mode::OnDemand));
        assert_eq!((on_demand.server_bytes, on_demand.asks, on_demand.hits), (30, 3, 0));
        assert_eq!(outcome(&once, &setting(1000, 10, Mode::Full)).server_bytes, 100);
        let window = outcome(&once, &setting(1000, 10, Mode::Window(1.0)));
        assert_eq!((window.server_bytes, window.prefetched_bytes, window.false_prefetch_bytes), (40, 30, 10));
        // Stops in the middle of the third slice: half a slice ahead is reached, just.
        let half = outcome(&once, &setting(1000, 10, Mode::Window(0.5)));
        assert_eq!((half.server_bytes, half.false_prefetch_bytes), (30, 0));
        let half = outcome(&[visit(0.0, 1, 0, 26)], &setting(1000, 10, Mode::Window(0.5)));
        assert_eq!((half.server_bytes, half.false_prefetch_bytes), (40, 10));
    }

    #[test]
    fn a_second_viewer_finds_what_the_first_left_and_room_is_kept() {
        let twice = [visit(0.0, 1, 0, 100), visit(200.0, 1, 0, 100)];
        let roomy = outcome(&twice, &setting(100, 10, Mode::OnDemand));
        assert_eq!((roomy.server_bytes, roomy.hits, roomy.hit_bytes), (100, 10, 100));
        // LRU and a loop that doesn't fit: nothing is found.
        let tight = outcome(&twice, &setting(90, 10, Mode::OnDemand));
        assert_eq!((tight.server_bytes, tight.hits), (200, 0));
    }

    #[test]
    fn a_slow_link_stops_playing_and_active_sees_it_coming() {
        let link = Way::from(Link { bandwidth: 1.5, delay: 2.0 });
        let on = |mode| outcome(&[visit(0.0, 1, 0, 100)], &Setting { link: link.clone(), ..setting(1000, 10, mode) });
        let on_demand = on(Mode::OnDemand);
        assert_eq!((on_demand.stalls, on_demand.startup_seconds), (9, 2.0));
        assert!((on_demand.stall_seconds - 18.0).abs() < 1e-6, "{}", on_demand.stall_seconds);
        let active = on(Mode::Active);
        assert_eq!((active.stalls, active.startup_seconds), (0, 2.0));
    }
}
