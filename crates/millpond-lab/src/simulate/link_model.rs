//! The modelled link to the origin, which may vary over time.

/// Bandwidth of the link from one moment on.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Step {
    /// The moment, in seconds.
    from: f64,
    /// Bytes a second.
    bandwidth: f64,
}

/// A link that carries one fetch after the other, at a bandwidth that may change in steps.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkModel {
    steps: Vec<Step>,
    delay: f64,
}

impl LinkModel {
    /// Creates a link of constant `bandwidth`, in bytes a second, whose requests are answered after `delay` seconds.
    pub fn constant(bandwidth: f64, delay: f64) -> Self {
        Self { steps: vec![Step { from: 0.0, bandwidth }], delay }
    }

    /// Creates a link from pairs of a moment and the bandwidth from then on. Returns `None` where there are no pairs, or
    /// the moments don't rise.
    pub fn varying(steps: &[(f64, f64)], delay: f64) -> Option<Self> {
        let rises = steps.windows(2).all(|pair| pair[0].0 < pair[1].0);
        let steps: Vec<_> = steps.iter().map(|&(from, bandwidth)| Step { from, bandwidth }).collect();
        (rises && !steps.is_empty()).then_some(Self { steps, delay })
    }

    /// Returns the seconds from a request to its first byte on an idle link.
    pub fn delay(&self) -> f64 {
        self.delay
    }

    /// Returns the bandwidth at a moment, and the moment at which it changes. The first step holds before it too.
    fn bandwidth(&self, now: f64) -> (f64, f64) {
        let next = self.steps.partition_point(|step| step.from <= now).max(1);
        (self.steps[next - 1].bandwidth, self.steps.get(next).map_or(f64::INFINITY, |step| step.from))
    }

    /// Returns when the last of `bytes` arrives, where the first one does at `begins`.
    pub fn carries(&self, begins: f64, bytes: f64) -> f64 {
        let (mut now, mut left) = (begins, bytes);
        loop {
            let (bandwidth, until) = self.bandwidth(now);
            let end = now + left / bandwidth;
            if end <= until {
                return end;
            }
            left -= (until - now) * bandwidth;
            now = until;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_take_as_long_as_each_step_lets_them() {
        let link = LinkModel::varying(&[(0.0, 10.0), (5.0, 1.0), (15.0, 100.0)], 0.5).unwrap();
        assert_eq!((link.bandwidth(0.0), link.bandwidth(5.0)), ((10.0, 5.0), (1.0, 15.0)));
        assert_eq!(link.bandwidth(99.0), (100.0, f64::INFINITY));
        assert_eq!(link.carries(0.0, 40.0), 4.0);
        assert_eq!(link.carries(4.0, 15.0), 10.0);
        assert_eq!(link.carries(4.0, 120.0), 16.0);
        assert!(LinkModel::varying(&[], 0.0).is_none());
        assert!(LinkModel::varying(&[(1.0, 1.0), (1.0, 2.0)], 0.0).is_none());
        assert_eq!(LinkModel::varying(&[(9.0, 3.0)], 0.0).unwrap().bandwidth(0.0).0, 3.0, "the first holds before it");
    }
}
