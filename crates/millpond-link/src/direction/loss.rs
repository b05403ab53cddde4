use super::{Impairments, Reason};
use fastrand::Rng;

/// The random process that loses packets.
#[derive(Debug)]
pub(super) struct Loss {
    random: Rng,
    bursts: Rng,
    is_bad: bool,
}

impl Loss {
    pub(super) fn new(mut random: Rng) -> Self {
        Self { bursts: random.fork(), random, is_bad: false }
    }

    /// Returns why the next packet is lost, or `None`. Draws three numbers in any case.
    pub(super) fn next(&mut self, impairments: &Impairments) -> Option<Reason> {
        let is_lost = self.random.f64() < impairments.loss;
        let (change, loss) = (self.bursts.f64(), self.bursts.f64());
        let is_lost_in_burst = match impairments.burst {
            Some(burst) => {
                let limit = if self.is_bad { burst.leave } else { burst.enter };
                self.is_bad ^= change < limit;
                self.is_bad && loss < burst.loss
            }
            None => false,
        };
        if is_lost { Some(Reason::Loss) } else { is_lost_in_burst.then_some(Reason::Burst) }
    }
}
