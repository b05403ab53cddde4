//! Same object, same dispenser (Srinilta and Choudhary 3.1, SOSD), with bounded loads (Mirrokni, Thorup and Zadimoghaddam 2018).

use super::{Answer, Assignment, AssignmentName, Best, Candidate, Request, Standing};
use crate::{Bitrate, Loads, hash};

/// Most candidates of an answer.
pub(super) const CANDIDATES: usize = 8;

/// Streams of an object go to the same dispenser, while that has at most its bound; those beyond it go to the next one of the
/// object's order. So popular objects come to have several dispensers, and keep them.
///
/// The order of an object is by rendezvous hashing: a node's share of all objects is in proportion to its capacity, and when a
/// node comes or goes, only its own share moves.
#[derive(Clone, Copy, Debug)]
pub struct Sosd {
    /// A dispenser gets at most this share of the mean load, in thousandths. The mean is in proportion to capacity.
    pub spread: u64,
    /// Share of its capacity, in thousandths, up to which a dispenser has no bound: a cluster with little to do need not spread it.
    pub idle: u64,
}

impl Default for Sosd {
    fn default() -> Self {
        Self { spread: 1125, idle: 125 }
    }
}

impl Sosd {
    /// Share of its capacity up to which a dispenser gets streams, where all dispensers have `total` of load and capacity.
    fn bound(self, total: (Bitrate, Bitrate)) -> f64 {
        let mean = total.0.bps() as f64 / total.1.bps().max(1) as f64;
        let [spread, idle] = [self.spread, self.idle].map(|thousandths| thousandths as f64 / 1000.0);
        (mean * spread).max(idle).min(1.0)
    }
}

impl Assignment for Sosd {
    fn name(&self) -> AssignmentName {
        AssignmentName::Sosd
    }

    fn assign(&self, loads: &Loads, request: &Request<'_>) -> Answer {
        let share = self.bound(loads.totals(request.rate));
        let mut ranks =
            [Standing::Room, Standing::AboveBound, Standing::Full].map(|rank| (rank, Best::new(CANDIDATES)));
        for dispenser in loads.dispensers() {
            let load = dispenser.load.plus(request.rate);
            let bound = Bitrate::from_bps((dispenser.capacity.bps() as f64 * share) as u64);
            let rank = match load {
                load if load <= bound => 0,
                load if load <= dispenser.capacity => 1,
                _ => 2,
            };
            let mixed = hash::pair(request.key.hash(), dispenser.hash);
            ranks[rank].1.offer(mixed, dispenser.capacity.bps() as f64, (dispenser, bound));
        }
        let named = ranks.into_iter().flat_map(|(standing, best)| {
            best.into_iter().map(move |(score, (dispenser, bound))| Candidate::new(dispenser, score, standing, bound))
        });
        Answer { candidates: named.take(CANDIDATES).collect(), compared: loads.dispensers().len() }
    }
}
