//! The prefetch planner: one plan for all viewers of an origin.

use criterion::{BatchSize, BenchmarkId, Criterion, criterion_group, criterion_main};
use millpond_store::schedule::{Course, LinkEstimate, LinkState, Mode, Planner, ViewerId};
use std::hint::black_box;

/// Bytes of a slice.
const SLICE: u64 = 2 << 20;
/// Bytes of a title.
const TITLE: u64 = 500 << 20;
/// A link of 1 Gbit/s with a round trip of 30 ms.
const LINK: LinkState =
    LinkState { estimate: LinkEstimate { bandwidth: 125e6, delay: 0.05 }, busy: 0.0, least_delay: 0.03, lanes: None };

/// Viewers of 4 Mbit/s that joined in the last ten minutes, two for each title.
fn planner(mode: Mode, viewers: u64) -> Planner {
    let mut random = fastrand::Rng::with_seed(1);
    let mut planner = Planner::new(mode, SLICE);
    for number in 0..viewers {
        let id = planner.join(number / 2);
        let from = random.u64(..TITLE / 2);
        let course = Course::constant(from, TITLE, 500_000.0).whole();
        if let Some(viewer) = planner.viewer(id) {
            viewer.moves(course, from + SLICE, -random.f64());
            viewer.receives(0.0);
        }
    }
    planner
}

/// A third of the slices is cached.
fn is_cached(viewer: ViewerId, index: u64) -> bool {
    (viewer ^ index).is_multiple_of(3)
}

fn plan(criterion: &mut Criterion) {
    for (name, mode) in [("active", Mode::Active), ("window", Mode::Window(1.0))] {
        let mut group = criterion.benchmark_group(format!("planner/{name}"));
        for viewers in [10, 100, 1000] {
            group.bench_with_input(BenchmarkId::from_parameter(viewers), &viewers, |bencher, viewers| {
                let plan = |planner: &mut Planner| black_box(planner.plan(0.1, LINK, 0, is_cached));
                bencher.iter_batched_ref(|| planner(mode, *viewers), plan, BatchSize::SmallInput);
            });
        }
        group.finish();
    }
}

criterion_group!(benches, plan);
criterion_main!(benches);
