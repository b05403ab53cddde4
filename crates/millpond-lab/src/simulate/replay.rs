//! Visits that take no time: a run of a policy without clock and link.

use super::{outcome::Outcome, slice_item::item, workload::Workload};
use millpond_store::policy::{Ledger, PolicyName};

/// Runs a workload's visits one after the other. `slice` is none where objects are cached whole; `progress` is told the
/// share that is done, now and then.
pub fn replay(
    workload: &Workload,
    capacity: u64,
    slice: Option<u32>,
    policy: PolicyName,
    mut progress: impl FnMut(f64),
) -> Outcome {
    let mut ledger = Ledger::new(capacity, policy);
    let mut outcome = Outcome {
        cache_bytes: capacity,
        slice_bytes: slice.map_or(0, u64::from),
        mode: if slice.is_some() { "on-demand" } else { "full" }.to_owned(),
        policy: policy.to_string(),
        visits: workload.visits.len() as u64,
        ..Outcome::default()
    };
    let mut evicted = Vec::new();
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
                let _ = ledger.insert(item, now, &mut evicted);
                evicted.clear();
            }
            at = end;
        }
    }
    outcome
}
