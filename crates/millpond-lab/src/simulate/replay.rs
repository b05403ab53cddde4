//! Visits that come and go at once: a plain run of a policy, without clock and link.

use super::{
    run::{Outcome, item},
    workload::Workload,
};
use millpond_store::policy::{self, Ledger};

/// Runs a workload's visits one after the other. `slice` is none where objects are cached whole; `progress` is told the
/// share that is done, now and then.
///
/// # Panics
///
/// Where the policy is not one of [`policy::NAMES`].
pub fn replay(
    workload: &Workload,
    capacity: u64,
    slice: Option<u32>,
    policy: &'static str,
    mut progress: impl FnMut(f64),
) -> Outcome {
    let mut ledger = Ledger::new(capacity, policy::by_name(policy).expect("a policy that there is"));
    let mut outcome = Outcome {
        cache_bytes: capacity,
        slice_bytes: slice.map_or(0, u64::from),
        mode: if slice.is_some() { "on-demand" } else { "full" }.to_owned(),
        policy: policy.to_owned(),
        visits: workload.visits.len() as u64,
        ..Outcome::default()
    };
    let mut gone = Vec::new();
    for (number, visit) in workload.visits.iter().enumerate() {
        if number % (1 << 20) == 0 {
            progress(number as f64 / workload.visits.len() as f64);
        }
        let now = (visit.at * 1000.0) as u64;
        let slice = slice.map_or(visit.len.max(1), u64::from);
        let mut at = visit.from;
        while at < visit.to {
            let index = at / slice;
            let end = ((index + 1) * slice).min(visit.to);
            let item = item(visit, index, slice);
            outcome.asks += 1;
            outcome.bytes += end - at;
            ledger.read(&item, at.is_multiple_of(slice), now);
            if ledger.ask(&item, now).is_some() {
                outcome.hits += 1;
                outcome.hit_bytes += end - at;
            } else {
                outcome.server_bytes += u64::from(item.size);
                let _ = ledger.insert(item, now, &mut gone);
                gone.clear();
            }
            at = end;
        }
    }
    outcome
}
