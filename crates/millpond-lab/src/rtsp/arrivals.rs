//! Arrival times of clients.

use super::options::{Audience, Options};
use crate::options::Arrivals;
use fastrand::Rng;
use std::time::Duration;

/// The times of all arrivals after the run began, in order. Every thread computes the same ones and takes its share.
pub(crate) fn arrivals(options: &Options) -> Box<dyn Iterator<Item = Duration>> {
    let mut rng = Rng::with_seed(options.seed);
    match (options.audience, options.arrivals) {
        (Audience::Places { clients, ramp_up }, Arrivals::Even) => {
            Box::new((0..clients).map(move |client| ramp_up.mul_f64(f64::from(client) / f64::from(clients))))
        }
        (Audience::Places { clients, ramp_up }, Arrivals::Poisson) => {
            // Given how many events a Poisson process has in an interval, they lie there independently and evenly.
            let mut fractions: Vec<f64> = (0..clients).map(|_| rng.f64()).collect();
            fractions.sort_by(f64::total_cmp);
            Box::new(fractions.into_iter().map(move |fraction| ramp_up.mul_f64(fraction)))
        }
        (Audience::Rate(rate), how) => {
            let end = options.length.unwrap_or_default();
            let mut at = 0.0;
            let times = std::iter::from_fn(move || {
                let now = Duration::try_from_secs_f64(at).ok()?;
                at += match how {
                    Arrivals::Even => 1.0 / rate,
                    Arrivals::Poisson => exponential(&mut rng, 1.0 / rate),
                };
                Some(now)
            });
            Box::new(times.take_while(move |at| *at < end))
        }
    }
}

/// A random number with an exponential distribution.
pub(crate) fn exponential(rng: &mut Rng, mean: f64) -> f64 {
    -mean * (1.0 - rng.f64()).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(audience: Audience, arrivals: Arrivals) -> Options {
        Options { audience, arrivals, length: Some(Duration::from_secs(100)), ..Options::new(Vec::new()) }
    }

    #[test]
    fn places_are_filled_over_the_ramp() {
        let audience = |clients| Audience::Places { clients, ramp_up: Duration::from_secs(10) };
        let even: Vec<Duration> = arrivals(&options(audience(5), Arrivals::Even)).collect();
        assert_eq!(even, [0, 2, 4, 6, 8].map(Duration::from_secs));
        let options = options(audience(1000), Arrivals::Poisson);
        let poisson: Vec<Duration> = arrivals(&options).collect();
        assert_eq!(poisson, arrivals(&options).collect::<Vec<_>>(), "the same for every thread");
        assert!(poisson.len() == 1000 && poisson.is_sorted() && poisson[999] < Duration::from_secs(10));
    }

    #[test]
    fn a_rate_goes_on_until_the_run_ends() {
        let even: Vec<Duration> = arrivals(&options(Audience::Rate(2.0), Arrivals::Even)).collect();
        assert_eq!((even.len(), even[3]), (200, Duration::from_millis(1500)));
        let poisson: Vec<Duration> = arrivals(&options(Audience::Rate(50.0), Arrivals::Poisson)).collect();
        assert!(poisson.is_sorted() && (4700..5300).contains(&poisson.len()), "{}", poisson.len());
        let gaps = poisson.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64());
        let longer = gaps.filter(|gap| *gap > 0.02).count() as f64 / poisson.len() as f64;
        // Of exponential gaps, 1/e are longer than the mean.
        assert!((longer - 0.368).abs() < 0.03, "{longer}");
    }
}
