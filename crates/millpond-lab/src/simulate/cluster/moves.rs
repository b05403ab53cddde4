//! How many assets move when nodes come and go.

use millpond_cluster::{Assignment, Bitrate, Loads, Node, ObjectKey, Request, View};
use std::{sync::Arc, time::Instant};

/// Keys that are compared.
const KEYS: usize = 20_000;

/// The nodes without load.
pub(super) fn idle(nodes: &[Node]) -> Loads {
    let unloaded = nodes.iter().map(|node| Node { load: Default::default(), ..node.clone() });
    Loads::new(Arc::new(View::of(1, unloaded)))
}

/// Share of assets whose first dispenser differs between two states of a cluster, over `share`, that of the nodes that changed.
pub(super) fn moved(rule: &dyn Assignment, before: &mut Loads, after: &mut Loads, rate: Bitrate, share: f64) -> f64 {
    let first = |loads: &mut Loads, number: usize| {
        let key = ObjectKey::new("others", &number.to_string());
        let answer = rule.assign(loads, &Request { key: &key, rate, turn: number as u64, rooms: None });
        answer.candidates.first().map(|first| first.name.clone())
    };
    let differing = (0..KEYS).filter(|number| first(before, *number) != first(after, *number));
    differing.count() as f64 / KEYS as f64 / share
}

/// Decisions a second, by the wall clock, of one thread that draws assets as viewers do: those of assets that were asked for before, and
/// those of assets that were not.
pub(super) fn decisions_per_second(
    rule: &dyn Assignment,
    loads: &mut Loads,
    rate: Bitrate,
    draws: impl IntoIterator<Item = ObjectKey>,
) -> [f64; 2] {
    let new = (0..500).map(|number| ObjectKey::new("new", &number.to_string())).collect();
    [draws.into_iter().collect(), new].map(|keys: Vec<_>| {
        let (started, mut decisions) = (Instant::now(), 0_u32);
        for (turn, key) in keys.iter().enumerate() {
            std::hint::black_box(rule.assign(loads, &Request { key, rate, turn: turn as u64, rooms: None }));
            decisions += 1;
        }
        f64::from(decisions) / started.elapsed().as_secs_f64()
    })
}
