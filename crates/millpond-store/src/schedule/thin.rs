//! Viewers on a thin link, on a virtual clock: planner and meter as the store drives them, with players that buffer one
//! second of media.

use super::*;
use fastrand::Rng;
use std::{
    collections::{HashMap, HashSet},
    ops::Range,
};

const SLICE: u64 = 1 << 20;
/// Media of about 1 Mbit/s in segments of four seconds.
const RATE: f64 = 125_000.0;
const SEGMENT: f64 = 4.0;
const STEP: Seconds = 0.01;
/// Seconds after which viewers leave, as in `bench/thin_link.py`.
const EARLY: [f64; 12] = [6.0, 8.0, 9.0, 11.0, 12.0, 13.0, 15.0, 17.0, 18.0, 20.0, 21.0, 23.0];

struct Transfer {
    slice: (u64, u64),
    got: f64,
    of: f64,
    /// Whether a reader waits for it; otherwise it is prefetched.
    waited_for: bool,
    begun: bool,
}

struct World {
    now: Seconds,
    /// Bytes a second.
    bandwidth: f64,
    /// Bytes that pass at once, before the bandwidth limits the others.
    burst: f64,
    /// Time from which on the link has half of its bandwidth.
    halves: Seconds,
    /// Bytes that came.
    came: f64,
    /// The longest time for which nothing arrives.
    longest_gap: Seconds,
    /// The end of the current gap.
    gap: Seconds,
    /// One time in which nothing arrives: a lost packet that TCP sends again late.
    outage: Range<Seconds>,
    meter: Meter,
    planner: Planner,
    under_way: Vec<Transfer>,
    here: HashSet<(u64, u64)>,
    rng: Rng,
}

impl World {
    fn fetch(&mut self, slice: (u64, u64), of: f64, waited_for: bool) {
        match self.under_way.iter_mut().find(|transfer| transfer.slice == slice) {
            Some(transfer) => transfer.waited_for |= waited_for,
            None if self.here.contains(&slice) => {}
            None => {
                self.meter.requested(of as u64);
                self.under_way.push(Transfer { slice, got: 0.0, of, waited_for, begun: false });
            }
        }
    }

    /// Advances by ten milliseconds: the transfers share the link, then the planner is asked.
    fn step(&mut self, titles: &HashMap<u64, Vec<u64>>) {
        self.now += STEP;
        // From time to time nothing arrives: those bytes are lost, not late.
        if self.rng.f64() < STEP / 4.0 {
            self.gap = self.now + self.longest_gap * self.rng.f64();
        }
        let bandwidth = if self.now < self.halves { self.bandwidth } else { self.bandwidth / 2.0 };
        let share = (bandwidth * STEP + self.burst) / self.under_way.len().max(1) as f64;
        if self.now >= self.gap && !self.outage.contains(&self.now) {
            let count = self.under_way.len() as f64;
            for transfer in &mut self.under_way {
                let bytes = share.min(transfer.of - transfer.got);
                transfer.got += bytes;
                self.came += bytes;
                self.burst = (self.burst - (bytes - bandwidth * STEP / count).max(0.0)).max(0.0);
                match std::mem::replace(&mut transfer.begun, true) {
                    true => self.meter.arrived(self.now, bytes.round() as u64),
                    false => self.meter.begins(self.now, Some(0.001), bytes.round() as u64),
                }
            }
        }
        for done in self.under_way.extract_if(.., |transfer| transfer.of - transfer.got < 1.0) {
            self.meter.ends(self.now, 0, true);
            self.here.insert(done.slice);
        }
        let ahead = self.under_way.iter().filter(|transfer| !transfer.waited_for).count();
        let (under_way, here) = (&self.under_way, &self.here);
        let title = titles.keys().copied().max().unwrap_or(0);
        let is_coming =
            |index| here.contains(&(title, index)) || under_way.iter().any(|transfer| transfer.slice == (title, index));
        let (fetches, _) = self.planner.plan(self.now, self.meter.state(), ahead, |_, index| is_coming(index));
        let end = titles[&title].last().copied().unwrap_or(0);
        for fetch in fetches {
            let start = fetch.index * SLICE;
            if start < end {
                self.fetch((title, fetch.index), (end - start).min(SLICE) as f64, false);
            }
        }
    }

    fn has(&self, title: u64, byte: u64) -> bool {
        let (slice, offset) = ((title, byte / SLICE), (byte % SLICE) as f64);
        let coming = self.under_way.iter().find(|transfer| transfer.slice == slice);
        self.here.contains(&slice) || coming.is_some_and(|transfer| transfer.got >= offset)
    }

    /// Plays one viewer. Returns the number and the duration of its stalls.
    fn watch(&mut self, titles: &HashMap<u64, Vec<u64>>, title: u64, seconds: f64) -> (u32, Seconds) {
        let bounds = &titles[&title];
        let id = self.planner.join(title);
        let (start, end) = (self.now, bounds[bounds.len() - 1]);
        let (mut stalls, mut stalled) = (0, 0.0);
        // End of the buffered media; `None` before the first segment.
        let mut until: Option<Seconds> = None;
        for number in 1..bounds.len() {
            while until.is_some_and(|until| until - self.now > 1.0) && self.now - start < seconds {
                self.step(titles);
            }
            if self.now - start >= seconds {
                break;
            }
            let (from, to) = (bounds[number - 1], bounds[number]);
            let points = bounds[number - 1..].iter().zip(0..).map(|(at, later)| (*at, f64::from(later) * SEGMENT));
            self.planner.viewer(id).unwrap().moves(Course::new(points).whole(), to, self.now);
            for index in from / SLICE..to.div_ceil(SLICE) {
                let last = ((index + 1) * SLICE).min(to) - 1;
                if !self.has(title, last) {
                    self.fetch((title, index), (end - index * SLICE).min(SLICE) as f64, true);
                }
                while !self.has(title, last) {
                    self.step(titles);
                }
            }
            self.planner.viewer(id).unwrap().receives(self.now);
            let late = until.map_or(0.0, |until| self.now - until);
            if late > 0.0 {
                stalls += 1;
                stalled += late;
            }
            until = Some(until.map_or(self.now, |until| until.max(self.now)) + SEGMENT);
        }
        self.planner.leave(id);
        let (now, meter) = (self.now, &mut self.meter);
        self.under_way.retain(|transfer| {
            let least = if transfer.waited_for { 0.5 } else { 0.875 };
            let stays = transfer.got >= least * transfer.of;
            if !stays {
                meter.ends(now, (transfer.of - transfer.got) as u64, transfer.begun);
            }
            stays
        });
        (stalls, stalled)
    }
}

fn world(mode: Mode, factor: f64, seed: u64) -> World {
    World {
        now: 0.0,
        bandwidth: RATE * factor,
        burst: 0.0,
        halves: f64::INFINITY,
        came: 0.0,
        longest_gap: 0.0,
        gap: 0.0,
        outage: 0.0..0.0,
        meter: Meter::default(),
        planner: Planner::new(mode, SLICE),
        under_way: Vec::new(),
        here: HashSet::new(),
        rng: Rng::with_seed(seed + 1000),
    }
}

/// Returns the ends of a title's segments, in bytes: a minute of media.
fn title(rng: &mut Rng) -> Vec<u64> {
    let mut bounds = vec![0];
    for _ in 0..15 {
        let bytes = RATE * SEGMENT * (0.97 + 0.06 * rng.f64());
        bounds.push(bounds.last().unwrap() + bytes as u64);
    }
    bounds
}

/// Returns the stalls of viewers that leave early, one after the other, behind one that stays.
fn stalls(mode: Mode, factor: f64, longest_gap: Seconds, seed: u64) -> (u32, Seconds) {
    let mut rng = Rng::with_seed(seed);
    let mut world = World { longest_gap, ..world(mode, factor, seed) };
    let mut titles = HashMap::new();
    let mut all = (0, 0.0);
    for (number, seconds) in [60.0].iter().chain(&EARLY).enumerate() {
        titles.insert(number as u64, title(&mut rng));
        let (count, time) = world.watch(&titles, number as u64, *seconds);
        if number > 0 {
            all = (all.0 + count, all.1 + time);
        }
    }
    all
}

/// Returns the sums over runs with other media and other gaps.
fn all_stalls(mode: Mode, factor: f64, longest_gap: Seconds) -> (u32, Seconds) {
    let runs = (0..5).map(|seed| stalls(mode, factor, longest_gap, seed));
    runs.fold((0, 0.0), |sum, run| (sum.0 + run.0, sum.1 + run.1))
}

#[test]
fn none_of_sixty_early_leavers_stalls_on_a_link_a_tenth_faster_than_the_media() {
    for factor in [1.1, 1.15, 1.3, 2.0] {
        let (count, time) = all_stalls(Mode::Active, factor, 0.0);
        assert_eq!(count, 0, "{factor}: {time} s");
    }
    assert!(all_stalls(Mode::OnDemand, 1.15, 0.0).0 > 20, "without prefetch they stall");
}

#[test]
fn on_a_link_with_gaps_active_stalls_no_longer_than_a_window_that_is_always_full() {
    for factor in [1.1, 1.15, 1.3] {
        let (active, eager) = (all_stalls(Mode::Active, factor, 0.25), all_stalls(Mode::Window(4.0), factor, 0.25));
        assert!(active.1 <= eager.1 + 0.1, "{factor}: {active:?}, window {eager:?}");
    }
}

#[test]
fn a_lost_packet_does_not_stall_a_viewer_who_has_watched_for_half_a_minute() {
    for factor in [1.1, 1.15, 1.2] {
        for begin in 30..50 {
            let outage = f64::from(begin)..f64::from(begin) + 2.5;
            let mut world = World { outage, ..world(Mode::Active, factor, 1) };
            let titles = HashMap::from([(0, title(&mut Rng::with_seed(1)))]);
            assert_eq!(world.watch(&titles, 0, 60.0), (0, 0.0), "{factor}, {begin} s");
        }
    }
}

/// Gives the first quarter of a title 1.6 times its bytes, and the rest so much less that their sum stays.
fn vary(bounds: &[u64]) -> Vec<u64> {
    let sizes = bounds.windows(2).zip(0_u32..).map(|(ends, number)| {
        let share = if number < 4 { 1.6 } else { (15.0 - 4.0 * 1.6) / 11.0 };
        ((ends[1] - ends[0]) as f64 * share) as u64
    });
    let ends = sizes.scan(0, |end, size| {
        *end += size;
        Some(*end)
    });
    std::iter::once(0).chain(ends).collect()
}

/// A change of the link's shape.
type Shape = fn(&mut World);

/// Returns the stalls of a viewer who stays and of twelve who leave early, their seconds, and the bytes that came: sums over five runs.
fn cell(mode: Mode, is_vbr: bool, shape: Shape) -> (u32, Seconds, f64) {
    let mut sum = (0, 0.0, 0.0);
    for seed in 0..5 {
        let mut rng = Rng::with_seed(seed);
        let mut world = world(mode, 1.3, seed);
        shape(&mut world);
        let mut titles = HashMap::new();
        for (number, seconds) in (0..).zip([60.0].iter().chain(&EARLY)) {
            let bounds = title(&mut rng);
            titles.insert(number, if is_vbr { vary(&bounds) } else { bounds });
            let (count, time) = world.watch(&titles, number, *seconds);
            sum = (sum.0 + count, sum.1 + time, sum.2);
        }
        sum.2 += world.came;
    }
    sum
}

#[test]
fn active_stalls_no_longer_than_any_other_mode_whatever_the_link() {
    let shapes: [(&str, Shape); 5] = [
        ("little faster than the media", |world| world.bandwidth = RATE * 1.15),
        ("twice as fast", |world| world.bandwidth = RATE * 2.0),
        ("fast", |world| world.bandwidth = RATE * 20.0),
        ("slow behind a burst", |world| world.burst = 8e6),
        ("halves", |world| (world.bandwidth, world.halves) = (RATE * 2.4, 30.0)),
    ];
    let others = [Mode::OnDemand, Mode::Window(0.5), Mode::Window(1.0), Mode::Window(4.0)];
    for ((name, shape), is_vbr) in shapes.into_iter().flat_map(|shape| [(shape, false), (shape, true)]) {
        let active = cell(Mode::Active, is_vbr, shape);
        for mode in others {
            let other = cell(mode, is_vbr, shape);
            // Two in a hundred: no mode knows when viewers leave.
            assert!(active.1 <= other.1 * 1.02, "{name}, VBR {is_vbr}: {active:?}, {mode} {other:?}");
            if mode == Mode::OnDemand && other.0 == 0 {
                assert!(active.2 <= other.2 * 1.1, "{name}, VBR {is_vbr}: {active:?}, {mode} {other:?}");
            }
        }
    }
}
