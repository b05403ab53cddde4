//! Behaviour of one client while it plays: how long it stays, when it jumps or pauses. Pure: random numbers and options
//! in, times out.

use super::{
    arrivals::exponential,
    options::{Options, Watch},
};
use fastrand::Rng;
use std::time::Duration;

/// The shortest and the longest pause, in seconds.
const PAUSE: (f64, f64) = (0.5, 5.0);
/// A jump leaves this share of the title before its end.
const TAIL: f64 = 0.1;

/// Something a client does of its own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Act {
    /// Seeks to this fraction of the title.
    Seek(f64),
    /// Stands still for so long.
    Pause(Duration),
}

/// Returns where a client begins, as a fraction of the title, and how long it stays: no time is to the end. `length` is that of
/// the title, where it is known.
pub(crate) fn visit(options: &Options, length: Option<f64>, rng: &mut Rng) -> (f64, Option<Duration>) {
    let start = rng.f64() * options.start_within;
    let watch = match options.watch {
        Watch::Title => None,
        Watch::Fixed(time) => Some(time),
        Watch::Exponential(mean) => Duration::try_from_secs_f64(exponential(rng, mean.as_secs_f64())).ok(),
    };
    // x^k of a uniform x has the mean 1 / (k + 1).
    let fraction = rng.f64().powf(1.0 / options.mean_watch - 1.0);
    let part = length.filter(|_| options.mean_watch < 1.0).map(|length| length * (1.0 - start) * fraction);
    let part = part.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    (start, [watch, part].into_iter().flatten().min())
}

/// Returns what a client does next and after how long; nothing where it only watches.
pub(crate) fn next(options: &Options, rng: &mut Rng) -> Option<(Duration, Act)> {
    let a_minute = options.seeks + options.pauses;
    if a_minute <= 0.0 {
        return None;
    }
    let wait = Duration::try_from_secs_f64(exponential(rng, 60.0 / a_minute)).ok()?;
    let act = if rng.f64() * a_minute < options.seeks {
        Act::Seek(rng.f64() * (1.0 - TAIL))
    } else {
        Act::Pause(Duration::from_secs_f64(PAUSE.0 + rng.f64() * (PAUSE.1 - PAUSE.0)))
    };
    Some((wait, act))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visits_are_as_long_as_asked_for() {
        let mut rng = Rng::with_seed(1);
        let options = Options::new(Vec::new());
        assert_eq!(visit(&options, Some(60.0), &mut rng), (0.0, None));
        let fixed = Options { watch: Watch::Fixed(Duration::from_secs(5)), ..options.clone() };
        assert_eq!(visit(&fixed, None, &mut rng).1, Some(Duration::from_secs(5)));
        let mean = |options: &Options| {
            let mut rng = Rng::with_seed(2);
            let all = (0..20_000).filter_map(|_| visit(options, Some(100.0), &mut rng).1);
            all.map(|time| time.as_secs_f64()).sum::<f64>() / 20_000.0
        };
        let exponential = Options { watch: Watch::Exponential(Duration::from_secs(8)), ..options.clone() };
        assert!((mean(&exponential) - 8.0).abs() < 0.2);
        let early = Options { mean_watch: 0.25, ..options.clone() };
        assert!((mean(&early) - 25.0).abs() < 0.7);
        assert_eq!(visit(&early, None, &mut rng).1, None, "no part of what has no length");
        let later = Options { start_within: 0.5, ..options };
        assert!((0..100).all(|_| (0.0..0.5).contains(&visit(&later, None, &mut rng).0)));
    }

    #[test]
    fn jumps_and_pauses_come_as_often_as_asked_for() {
        let mut rng = Rng::with_seed(3);
        let options = Options { seeks: 9.0, pauses: 3.0, ..Options::new(Vec::new()) };
        let all: Vec<(Duration, Act)> = (0..12_000).filter_map(|_| next(&options, &mut rng)).collect();
        let time: f64 = all.iter().map(|(wait, _)| wait.as_secs_f64()).sum();
        assert!((time / 60_000.0 - 1.0).abs() < 0.05, "{time}");
        let seeks = all.iter().filter(|(_, act)| matches!(act, Act::Seek(at) if *at < 0.9)).count();
        assert!((8_700..9_300).contains(&seeks), "{seeks}");
        assert_eq!(next(&Options::new(Vec::new()), &mut rng), None);
    }
}
