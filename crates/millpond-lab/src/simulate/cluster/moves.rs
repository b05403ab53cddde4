//! How many assets move when nodes come and go.

use millpond_cluster::{Assignment, Bitrate, Loads, Node, ObjectKey, Request, View};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// Keys that are compared.
const KEYS: usize = 20_000;

/// The nodes without load.
pub(super) fn idle(nodes: &[Node]) -> Loads {
    let unloaded = nodes.iter().map(|node| Node { load: Default::default(), ..node.clone() });
    Loads::new(Arc::new(View::of(1, unloaded)))
}

/// Share of assets whose first dispenser differs between two states of a cluster, over `share`, that of the nodes that changed.
pub(super) fn moved(rule: &dyn Assignment, before: &Loads, after: &Loads, rate: Bitrate, share: f64) -> f64 {
    let differs = |number: &usize| {
        let key = ObjectKey::new("others", &number.to_string());
        let [before, after] = [before, after].map(|loads| {
            let answer = rule.assign(loads, &Request { key: &key, rate, turn: *number as u64 });
            answer.candidates.first().map(|first| first.name.clone())
        });
        before != after
    };
    (0..KEYS).filter(differs).count() as f64 / KEYS as f64 / share
}

/// Decisions a second, by the wall clock.
pub(super) fn decisions_per_second(rule: &dyn Assignment, loads: &Loads, rate: Bitrate) -> f64 {
    let keys: Vec<_> = (0..500).map(|number| ObjectKey::new("films", &number.to_string())).collect();
    let started = Instant::now();
    let mut decisions = 0_u32;
    while started.elapsed() < Duration::from_millis(200) {
        for (turn, key) in keys.iter().enumerate().take(50) {
            std::hint::black_box(rule.assign(loads, &Request { key, rate, turn: turn as u64 }));
            decisions += 1;
        }
    }
    f64::from(decisions) / started.elapsed().as_secs_f64()
}
