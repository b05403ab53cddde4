use super::super::LinkModel;
use super::*;
use millpond_store::policy::PolicyName;

fn setting(cache: u64, slice: u32, mode: Mode) -> Setting {
    Setting { cache, slice, mode, policy: PolicyName::Lru, link: LinkModel::constant(1e12, 0.0) }
}

fn visit(at: f64, object: u64, from: u64, to: u64) -> Visit {
    Visit { at, object, len: 100, from, to, rate: 1.0 }
}

fn outcome(visits: &[Visit], setting: &Setting) -> Outcome {
    run(&Workload { name: "test".into(), visits: visits.to_vec() }, setting, |_| {})
}

#[test]
fn slices_are_fetched_as_far_as_a_viewer_watches() {
    let once = [visit(0.0, 1, 0, 25)];
    let on_demand = outcome(&once, &setting(1000, 10, Mode::OnDemand));
    assert_eq!((on_demand.server_bytes, on_demand.asks, on_demand.hits), (30, 3, 0));
    assert_eq!(outcome(&once, &setting(1000, 10, Mode::Full)).server_bytes, 100);
    let window = outcome(&once, &setting(1000, 10, Mode::Window(1.0)));
    assert_eq!((window.server_bytes, window.prefetched_bytes, window.false_prefetch_bytes), (40, 30, 10));
    // The viewer leaves in the middle of the third slice, at which half a slice ahead is just not reached.
    let half = outcome(&once, &setting(1000, 10, Mode::Window(0.5)));
    assert_eq!((half.server_bytes, half.false_prefetch_bytes), (30, 0));
    let half = outcome(&[visit(0.0, 1, 0, 26)], &setting(1000, 10, Mode::Window(0.5)));
    assert_eq!((half.server_bytes, half.false_prefetch_bytes), (40, 10));
}

#[test]
fn a_second_viewer_finds_the_slices_of_the_first_up_to_the_size_of_the_cache() {
    let twice = [visit(0.0, 1, 0, 100), visit(200.0, 1, 0, 100)];
    let roomy = outcome(&twice, &setting(100, 10, Mode::OnDemand));
    assert_eq!((roomy.server_bytes, roomy.hits, roomy.hit_bytes), (100, 10, 100));
    // A loop that doesn't fit finds nothing under LRU.
    let tight = outcome(&twice, &setting(90, 10, Mode::OnDemand));
    assert_eq!((tight.server_bytes, tight.hits), (200, 0));
}

/// Media of 100 kB/s in slices of ten seconds.
const RATE: f64 = 1e5;

fn film(at: f64, object: u64) -> Visit {
    Visit { at, object, len: 10_000_000, from: 0, to: 10_000_000, rate: RATE }
}

fn over(link: &LinkModel, visits: &[Visit], mode: Mode) -> Outcome {
    outcome(visits, &Setting { link: link.clone(), ..setting(1 << 40, 1_000_000, mode) })
}

#[test]
fn a_slow_link_stalls_viewers_and_active_fetches_in_time() {
    let link = LinkModel::constant(1.5 * RATE, 2.0);
    let on_demand = over(&link, &[film(0.0, 1)], Mode::OnDemand);
    assert_eq!((on_demand.stalls, on_demand.startup_seconds), (9, 2.0));
    assert!((on_demand.stall_seconds - 18.0).abs() < 1e-6, "{}", on_demand.stall_seconds);
    let active = over(&link, &[film(0.0, 1)], Mode::Active);
    assert_eq!((active.stalls, active.startup_seconds), (0, 2.0));
}

#[test]
fn deadlines_of_all_viewers_share_the_link() {
    // Three viewers take two thirds of the link: none stalls, though one at a time would see an idle link.
    let link = LinkModel::constant(4.5 * RATE, 0.1);
    let visits = [film(0.0, 1), film(3.0, 2), film(6.0, 3)];
    let on_demand = over(&link, &visits, Mode::OnDemand);
    let active = over(&link, &visits, Mode::Active);
    assert!(on_demand.stalls >= 20, "{on_demand:?}");
    assert_eq!((active.stalls, active.false_prefetch_bytes), (0, 0), "{active:?}");
}

#[test]
fn viewers_of_one_object_fetch_each_slice_once() {
    let link = LinkModel::constant(4.5 * RATE, 0.1);
    let together: Vec<Visit> = (0..5).map(|number| film(f64::from(number) * 0.5, 1)).collect();
    for mode in [Mode::Active, Mode::Window(1.0)] {
        let outcome = over(&link, &together, mode);
        assert_eq!(outcome.server_bytes, 10_000_000, "{mode}");
    }
}
