//! Eviction policies: the cost of one slice read, with its eviction, in a cache of a tenth of the titles.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use millpond_store::policy::{Item, Ledger, PolicyName};
use std::hint::black_box;

/// Bytes of a slice.
const SLICE: u32 = 2 << 20;
const TITLES: u32 = 1000;
/// Slices of each title.
const SLICES: u32 = 100;
/// Viewers at a time.
const VIEWERS: usize = 200;
const READS: u64 = 50_000;

/// Viewers that read titles from the beginning, some by Zipf's law (exponent 0.9), and leave at any slice.
fn reads() -> Vec<(Item, bool)> {
    let mut random = fastrand::Rng::with_seed(1);
    let mut sum = 0.0;
    let shares: Vec<f64> = (1..=TITLES)
        .map(|rank| {
            sum += f64::from(rank).powf(-0.9);
            sum
        })
        .collect();
    let mut viewers = vec![(0_u32, SLICES); VIEWERS];
    let mut read = |_| {
        let viewer = &mut viewers[random.usize(..VIEWERS)];
        if viewer.1 >= SLICES || random.u32(..SLICES) == 0 {
            let share = random.f64() * sum;
            *viewer = (shares.partition_point(|to| *to < share) as u32, 0);
        }
        let (title, index) = *viewer;
        viewer.1 += 1;
        let object = u64::from(title).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let key = object ^ u64::from(index + 1).wrapping_mul(0xc2b2_ae3d_27d4_eb4f);
        (Item { key, object, index, of: SLICES, size: SLICE }, true)
    };
    (0..READS).map(&mut read).collect()
}

fn replay(ledger: &mut Ledger, reads: &[(Item, bool)]) -> u64 {
    let mut evicted = Vec::new();
    for ((item, enters), number) in reads.iter().zip(0_u64..) {
        // 200 viewers of 4 Mbit/s read 50 slices a second.
        let now = number * 20;
        ledger.read(item, *enters, now);
        if ledger.ask(item, now).is_none() {
            let _ = ledger.insert(*item, now, &mut evicted);
            evicted.clear();
        }
    }
    ledger.counters().hits
}

fn policies(criterion: &mut Criterion) {
    let reads = reads();
    let capacity = u64::from(TITLES * SLICES / 10) * u64::from(SLICE);
    let mut group = criterion.benchmark_group("policies");
    group.throughput(Throughput::Elements(READS)).sample_size(20);
    for policy in PolicyName::ALL {
        group.bench_function(policy.as_str(), |bencher| {
            let full = || {
                let mut ledger = Ledger::new(capacity, policy);
                replay(&mut ledger, &reads);
                ledger
            };
            bencher.iter_batched_ref(full, |ledger| black_box(replay(ledger, &reads)), BatchSize::PerIteration);
        });
    }
    group.finish();
}

criterion_group!(benches, policies);
criterion_main!(benches);
