//! Random workloads, the same each time for the same seed.

use super::workload::{Visit, Workload};
use fastrand::Rng;

/// Table I of the SProxy paper: rate in kbit/s, lengths of clips in minutes, longest access in minutes.
const TABLE_1: &[(f64, &[f64], f64)] = &[
    (28.0, &[1.0, 10.0, 20.0, 50.0], 1.0),
    (56.0, &[50.0], 12.0),
    (112.0, &[1.0, 2.0, 5.0, 10.0, 20.0, 50.0], 14.0),
    (156.0, &[1.0, 20.0, 50.0], 14.0),
    (180.0, &[2.0, 5.0, 10.0, 20.0, 50.0, 100.0], 50.0),
    (256.0, &[1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0], 25.0),
];

/// Figures of the paper's trace: requests, hours, share of one clip, bytes accessed, bytes of all objects.
const REQUESTS: usize = 16_238;
const HOURS: f64 = 24.0;
const POPULAR: f64 = 0.92;
const ACCESSED: f64 = 70.775e9;
const UNIQUE: f64 = 5.358e9;
/// Where the paper is silent: how many begin in the middle, and how the other clips share what is left.
const FROM_THE_MIDDLE: f64 = 0.1;
const SKEW: f64 = 0.8;

#[derive(Clone, Copy)]
struct Clip {
    len: u64,
    rate: f64,
    longest: f64,
}

/// The workload of the SProxy paper's simulation, as far as its numbers say.
///
/// Clips of the classes of Table I are taken in turn until they have 5.358 GB; the popular one is of 256 kbit/s and 50
/// minutes. Accesses last a minute and an exponential time more, cut at the class's longest access and at the clip's end;
/// its mean is chosen so that 70.775 GB are accessed.
pub fn sproxy(seed: u64) -> Workload {
    let clips = sproxy_clips();
    let (mut low, mut high) = (1.0, 3600.0);
    let mut visits = Vec::new();
    for _ in 0..30 {
        let mean = f64::midpoint(low, high);
        visits = sproxy_visits(&clips, mean, seed);
        let bytes: u64 = visits.iter().map(|visit| visit.to - visit.from).sum();
        if (bytes as f64) < ACCESSED {
            low = mean;
        } else {
            high = mean;
        }
    }
    Workload { name: "sproxy".to_owned(), visits }
}

fn sproxy_clips() -> Vec<Clip> {
    let clip = |rate: f64, minutes: f64, longest: f64| {
        let rate = rate * 1000.0 / 8.0;
        Clip { len: (rate * minutes * 60.0) as u64, rate, longest: longest * 60.0 }
    };
    let mut clips = vec![clip(256.0, 50.0, 25.0)];
    let mut bytes = clips[0].len as f64;
    let classes: Vec<Clip> = TABLE_1
        .iter()
        .flat_map(|(rate, lengths, longest)| lengths.iter().map(move |minutes| clip(*rate, *minutes, *longest)))
        .collect();
    for class in classes.iter().cycle() {
        if bytes + class.len as f64 > UNIQUE {
            break;
        }
        bytes += class.len as f64;
        clips.push(*class);
    }
    clips
}

fn sproxy_visits(clips: &[Clip], mean: f64, seed: u64) -> Vec<Visit> {
    let mut rng = Rng::with_seed(seed);
    let others = Zipf::new(clips.len() - 1, SKEW);
    let mut visits: Vec<Visit> = (0..REQUESTS)
        .map(|number| {
            // Every clip is asked for at least once.
            let object = match number {
                n if n < clips.len() => n,
                _ if rng.f64() < POPULAR * REQUESTS as f64 / (REQUESTS - clips.len()) as f64 => 0,
                _ => 1 + others.draw(&mut rng),
            };
            let clip = clips[object];
            let lasts = (60.0 - mean * (1.0 - rng.f64()).ln()).min(clip.longest.max(60.0));
            let from = if rng.f64() < FROM_THE_MIDDLE { rng.f64() * clip.len as f64 } else { 0.0 };
            let to = (from + lasts * clip.rate).min(clip.len as f64);
            Visit {
                at: rng.f64() * HOURS * 3600.0,
                object: object as u64,
                len: clip.len,
                from: from as u64,
                to: to as u64,
                rate: clip.rate,
            }
        })
        .collect();
    visits.sort_by(|a, b| a.at.total_cmp(&b.at));
    visits
}

/// Settings of [`zipf`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ZipfOptions {
    /// Visits.
    pub visits: usize,
    /// Objects.
    pub objects: usize,
    /// The exponent of popularity: 0 is even, 1 a usual skew.
    pub skew: f64,
    /// Mean length of an object in seconds of playing.
    pub length: f64,
    /// Bytes a second of the media.
    pub rate: f64,
    /// Mean share of an object that is watched: below 1, viewers leave after exponential times.
    pub watched: f64,
    /// Share of viewers that begin in the middle.
    pub middle: f64,
    /// Visits a second.
    pub arrivals: f64,
    /// Share of the visits that go to one object within a minute, in the middle of the time.
    pub crowd: f64,
}

impl Default for ZipfOptions {
    fn default() -> Self {
        Self {
            visits: 20_000,
            objects: 2000,
            skew: 0.9,
            length: 600.0,
            rate: 125_000.0,
            watched: 0.4,
            middle: 0.1,
            arrivals: 0.5,
            crowd: 0.0,
        }
    }
}

/// Viewers of objects of Zipf popularity.
pub fn zipf(name: &str, options: ZipfOptions, seed: u64) -> Workload {
    let mut rng = Rng::with_seed(seed);
    let popularity = Zipf::new(options.objects.max(1), options.skew);
    let lengths: Vec<f64> = (0..options.objects.max(1)).map(|_| options.length * (0.2 + 1.6 * rng.f64())).collect();
    let end = options.visits as f64 / options.arrivals;
    let mut visits: Vec<Visit> = (0..options.visits)
        .map(|_| {
            let crowded = rng.f64() < options.crowd;
            let object = if crowded { options.objects } else { popularity.draw(&mut rng) };
            let seconds = lengths.get(object).copied().unwrap_or(options.length);
            let len = (seconds * options.rate) as u64;
            let at = if crowded { end / 2.0 + 60.0 * rng.f64() } else { rng.f64() * end };
            let from = if !crowded && rng.f64() < options.middle { rng.f64() * seconds } else { 0.0 };
            let lasts =
                if options.watched >= 1.0 { seconds } else { -seconds * options.watched * (1.0 - rng.f64()).ln() };
            let to = (from + lasts.max(1.0)).min(seconds);
            let bytes = |seconds: f64| ((seconds * options.rate) as u64).min(len);
            Visit { at, object: object as u64, len, from: bytes(from), to: bytes(to), rate: options.rate }
        })
        .filter(|visit| visit.to > visit.from)
        .collect();
    visits.sort_by(|a, b| a.at.total_cmp(&b.at));
    Workload { name: name.to_owned(), visits }
}

/// Draws numbers below `count`, the first ones most often.
pub(super) struct Zipf {
    sums: Vec<f64>,
}

impl Zipf {
    pub(super) fn new(count: usize, skew: f64) -> Self {
        let mut sum = 0.0;
        let sums = (1..=count.max(1)).map(|rank| {
            sum += (rank as f64).powf(-skew);
            sum
        });
        Self { sums: sums.collect() }
    }

    pub(super) fn draw(&self, rng: &mut Rng) -> usize {
        let at = rng.f64() * self.sums.last().copied().unwrap_or(0.0);
        self.sums.partition_point(|sum| *sum < at).min(self.sums.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_numbers_are_met() {
        let workload = sproxy(1);
        let totals = workload.totals();
        assert_eq!(totals.visits, 16_238);
        assert!((totals.bytes as f64 / ACCESSED - 1.0).abs() < 0.01, "{totals:?}");
        assert!((totals.unique_bytes as f64 / UNIQUE - 1.0).abs() < 0.03, "{totals:?}");
        assert!((totals.most as f64 / 16_238.0 - POPULAR).abs() < 0.01, "{totals:?}");
        assert!(workload.visits.is_sorted_by(|a, b| a.at <= b.at));
        assert_eq!(workload, sproxy(1), "the same each time");
        assert_ne!(workload, sproxy(2));
    }

    #[test]
    fn viewers_leave_and_crowds_come() {
        let early = zipf("early", ZipfOptions::default(), 1);
        let share: f64 = early.visits.iter().map(|v| (v.to - v.from) as f64 / v.len as f64).sum();
        assert!((0.2..0.45).contains(&(share / early.visits.len() as f64)));
        let crowd = zipf("crowd", ZipfOptions { crowd: 0.3, ..ZipfOptions::default() }, 1);
        assert!((0.28..0.32).contains(&(crowd.totals().most as f64 / crowd.visits.len() as f64)));
    }
}
