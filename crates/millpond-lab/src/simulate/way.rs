//! The modelled link to the origin, which may vary over time.

use super::run::Link;

/// A link in steps: each is in force from its second on. It carries one fetch after the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Way {
    steps: Vec<(f64, Link)>,
}

impl From<Link> for Way {
    fn from(link: Link) -> Self {
        Self { steps: vec![(0.0, link)] }
    }
}

impl Way {
    /// In steps of seconds and bandwidths, with one delay; none where there are no steps, or the times don't rise.
    pub fn varying(steps: &[(f64, f64)], delay: f64) -> Option<Self> {
        let rises = steps.windows(2).all(|pair| pair[0].0 < pair[1].0);
        let steps: Vec<_> = steps.iter().map(|&(at, bandwidth)| (at, Link { bandwidth, delay })).collect();
        (rises && !steps.is_empty()).then_some(Self { steps })
    }

    /// What it gives at a moment, and up to when.
    fn step(&self, now: f64) -> (Link, f64) {
        let next = self.steps.partition_point(|(at, _)| *at <= now).max(1);
        (self.steps[next - 1].1, self.steps.get(next).map_or(f64::INFINITY, |(at, _)| *at))
    }

    /// What it gives at a moment.
    pub fn at(&self, now: f64) -> Link {
        self.step(now).0
    }

    /// When the last of some bytes is through, where the first comes at `begins`.
    pub fn carries(&self, begins: f64, bytes: f64) -> f64 {
        let (mut now, mut left) = (begins, bytes);
        loop {
            let (link, until) = self.step(now);
            let end = now + left / link.bandwidth;
            if end <= until {
                return end;
            }
            left -= (until - now) * link.bandwidth;
            now = until;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_take_as_long_as_each_step_lets_them() {
        let way = Way::varying(&[(0.0, 10.0), (5.0, 1.0), (15.0, 100.0)], 0.5).unwrap();
        assert_eq!((way.at(0.0).bandwidth, way.at(5.0).bandwidth, way.at(99.0).bandwidth), (10.0, 1.0, 100.0));
        assert_eq!(way.carries(0.0, 40.0), 4.0);
        assert_eq!(way.carries(4.0, 15.0), 10.0);
        assert_eq!(way.carries(4.0, 120.0), 16.0);
        assert!(Way::varying(&[], 0.0).is_none() && Way::varying(&[(1.0, 1.0), (1.0, 2.0)], 0.0).is_none());
        assert_eq!(Way::varying(&[(9.0, 3.0)], 0.0).unwrap().at(0.0).bandwidth, 3.0, "the first holds before it too");
    }
}
