//! Streams that a title costs an origin and a network: by unicast, by interval caching, and by periodic broadcast with patches.
//!
//! Viewers arrive at random and watch the whole title. The phase of a viewer and its patch are those of the engine
//! (`millpond_stream::broadcast`). Figures are means over ten durations of the title, after one to warm up.

use fastrand::Rng;
use millpond_stream::broadcast::{Patch, Stagger, nearest};
use serde::Serialize;
use std::time::Duration;

/// Durations of the title that are simulated. The first one is not counted.
const TITLES: u32 = 11;

/// Conditions of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BroadcastSetting {
    /// Number of phases of the title.
    pub phases: u16,
    /// Duration of the title.
    pub title: Duration,
    /// Caching window of interval caching.
    pub window: Duration,
    /// Speed of the patches of viewers by unicast, as a multiple of the pace of playing.
    pub speed: f64,
    /// Mean number of viewers at a time.
    pub viewers: u32,
    /// Seed of the arrivals.
    pub seed: u64,
}

/// Mean numbers of streams at the rate of the title, and the highest ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct BroadcastRow {
    /// Viewers that watch at a time. Unicast without a cache takes one stream of the origin and the network for each viewer.
    pub watching: BroadcastLoad,
    /// Streams of the origin with interval caching. The network carries those of all viewers.
    pub intervals: BroadcastLoad,
    /// Streams of the origin, and of the network to receivers of multicast: the phases alone.
    pub phases: f64,
    /// Patches of receivers of multicast. They come from the cache if that holds the beginning of the title.
    pub patches: BroadcastLoad,
    /// Streams of the network to viewers by unicast, which are sent patches at a higher speed.
    pub unicast: BroadcastLoad,
    /// The longest part of the title that a receiver of multicast holds back, in seconds.
    pub held: f64,
}

/// A number of streams over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct BroadcastLoad {
    /// Mean.
    pub mean: f64,
    /// Highest number.
    pub peak: f64,
}

/// A stream between two times, as a multiple of the rate of the title.
type Stream = (f64, f64, f64);

impl BroadcastLoad {
    /// Counts streams between two times.
    fn of(streams: &[Stream], (from, to): (f64, f64)) -> Self {
        let inside: Vec<Stream> = streams
            .iter()
            .map(|(begin, end, rate)| (begin.max(from), end.min(to), *rate))
            .filter(|(begin, end, _)| begin < end)
            .collect();
        let sum: f64 = inside.iter().map(|(begin, end, rate)| (end - begin) * rate).sum();
        let mut changes: Vec<(f64, f64)> =
            inside.iter().flat_map(|(begin, end, rate)| [(*begin, *rate), (*end, -rate)]).collect();
        // At equal times, streams that end are counted before streams that begin.
        changes.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let (mut now, mut peak) = (0.0_f64, 0.0_f64);
        for (_, change) in changes {
            now += change;
            peak = peak.max(now);
        }
        Self { mean: sum / (to - from), peak }
    }
}

/// Runs one setting. `None` for a title without a duration, and for a number of phases that no title may have.
pub fn broadcast(setting: &BroadcastSetting) -> Option<BroadcastRow> {
    let BroadcastSetting { window, speed, .. } = *setting;
    let stagger = Stagger::new(setting.title, setting.phases)?;
    let title = setting.title.as_secs_f64();
    let counted = (title, title * f64::from(TITLES));
    let (mut watching, mut intervals, mut patches, mut unicast) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut last, mut held) = (f64::NEG_INFINITY, 0.0_f64);
    for at in arrivals(setting) {
        watching.push((at, at + title, 1.0));
        if at - last > window.as_secs_f64() {
            intervals.push((at, at + title, 1.0));
        }
        last = at;
        let phase = nearest(stagger.positions(Duration::from_secs_f64(at)), Duration::ZERO);
        let lead = phase.map_or(Duration::ZERO, |phase| phase.lead);
        patches.push((at, at + lead.as_secs_f64(), 1.0));
        if at >= counted.0 {
            held = held.max(lead.as_secs_f64());
        }
        let patch = Patch { lead, speed };
        let joins = at + patch.time().unwrap_or(setting.title).as_secs_f64();
        let rest = title - patch.length().unwrap_or(setting.title).as_secs_f64();
        unicast.extend([(at, joins, speed), (joins, joins + rest, 1.0)]);
    }
    let load = |streams: &[Stream]| BroadcastLoad::of(streams, counted);
    Some(BroadcastRow {
        watching: load(&watching),
        intervals: load(&intervals),
        phases: f64::from(stagger.phases()),
        patches: load(&patches),
        unicast: load(&unicast),
        held,
    })
}

/// Arrivals of a Poisson process, in seconds.
fn arrivals(setting: &BroadcastSetting) -> impl Iterator<Item = f64> {
    let title = setting.title.as_secs_f64();
    let (mean, end) = (title / f64::from(setting.viewers.max(1)), title * f64::from(TITLES));
    let (mut rng, mut at) = (Rng::with_seed(setting.seed), 0.0);
    std::iter::from_fn(move || {
        at -= mean * (1.0 - rng.f64()).ln();
        (at < end).then_some(at)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(viewers: u32, phases: u16) -> BroadcastSetting {
        let title = Duration::from_secs(7200);
        BroadcastSetting { phases, title, window: Duration::from_secs(10), speed: 2.0, viewers, seed: 1 }
    }

    #[test]
    fn phases_cost_the_same_for_all_numbers_of_viewers_and_patches_grow_with_them() {
        let (few, many) = (broadcast(&setting(1, 4)).unwrap(), broadcast(&setting(500, 4)).unwrap());
        assert_eq!((few.phases, many.phases), (4.0, 4.0));
        assert!((400.0..600.0).contains(&many.watching.mean), "{many:?}");
        // A patch is half an interval at the mean: an eighth of the title.
        let share = many.patches.mean / many.watching.mean;
        assert!((0.1..0.15).contains(&share), "{share}");
        assert!(many.held <= 1800.0 && many.held > 1700.0, "{}", many.held);
        // The same bytes sooner.
        assert!((many.unicast.mean / many.watching.mean - 1.0).abs() < 0.1, "{many:?}");
        let share = many.intervals.mean / many.watching.mean;
        assert!((share - (-10.0_f64 * 500.0 / 7200.0).exp()).abs() < 0.1, "{share}: gaps above the window");
    }

    #[test]
    fn more_phases_make_patches_shorter() {
        let patches = [1, 4, 16].map(|phases| broadcast(&setting(100, phases)).unwrap().patches.mean);
        assert!(patches[0] > 3.0 * patches[1] && patches[1] > 3.0 * patches[2], "{patches:?}");
    }
}
