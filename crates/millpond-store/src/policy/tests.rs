//! Requirements on every policy.

use super::*;
use std::collections::{HashMap, HashSet};

fn item(key: u64, size: u32) -> Item {
    Item { key, object: key / 10, index: (key % 10) as u32, of: 10, size }
}

/// Random lookups, insertions, pins and changes of size, compared with a model of the content.
#[test]
fn room_is_kept_and_pins_are_honoured() {
    for name in PolicyName::ALL {
        let mut rng = fastrand::Rng::with_seed(5);
        let mut ledger = Ledger::new(5000, name);
        let mut model: HashMap<u64, Slot> = HashMap::new();
        let mut pinned: HashSet<u64> = HashSet::new();
        for step in 0..40_000_u64 {
            let mut gone = Vec::new();
            let key = rng.u64(..300);
            match rng.u8(..20) {
                0 => {
                    if let Some(slot) = model.get(&key).filter(|_| pinned.len() < 20 && pinned.insert(key)) {
                        ledger.pin(*slot);
                    } else if !model.contains_key(&key) {
                        pinned.remove(&key);
                    }
                }
                1 => {
                    if pinned.remove(&key) {
                        ledger.unpin(model[&key]);
                    }
                }
                2 if !pinned.contains(&key) => {
                    let removed = ledger.remove(key);
                    assert_eq!(removed.map(|(slot, _)| slot), model.remove(&key), "{name}");
                }
                3 => ledger.resize(rng.u64(2000..6000), step, &mut gone),
                4 if rng.u8(..50) == 0 => ledger.set_policy(name, step),
                _ => {
                    let item = item(key, 50 + (key % 50) as u32);
                    assert_eq!(ledger.ask(&item, step), model.get(&key).copied(), "{name}");
                    if let Ok(slot) = ledger.insert(item, step, &mut gone) {
                        model.insert(key, slot);
                    }
                }
            }
            for (slot, item) in gone {
                assert!(!pinned.contains(&item.key), "{name}: a pinned entry went");
                assert_eq!(model.remove(&item.key), Some(slot), "{name}: what went was not in");
            }
            let counters = ledger.counters();
            assert_eq!(counters.entries as usize, model.len(), "{name}");
            assert!(counters.bytes <= ledger.capacity() || counters.bytes == counters.pinned, "{name}: {counters:?}");
        }
        for key in pinned {
            ledger.unpin(model[&key]);
        }
        let mut gone = Vec::new();
        ledger.resize(0, 0, &mut gone);
        assert_eq!((gone.len(), ledger.counters().bytes), (model.len(), 0), "{name}");
    }
}

/// Returns the hit ratio for popular keys among many that are read once.
fn hit_ratio(name: PolicyName) -> f64 {
    let mut rng = fastrand::Rng::with_seed(9);
    let mut ledger = Ledger::new(1000, name);
    let mut gone = Vec::new();
    for ask in 0..200_000_u64 {
        let key = if rng.bool() { (rng.f64().powi(4) * 3000.0) as u64 } else { 10_000 + ask };
        ledger.read(&item(key, 1), true, ask);
        if ledger.ask(&item(key, 1), ask).is_none() {
            let _ = ledger.insert(item(key, 1), ask, &mut gone);
            gone.clear();
        }
    }
    let counters = ledger.counters();
    counters.hits as f64 / (counters.hits + counters.misses) as f64
}

#[test]
fn what_is_asked_for_once_does_not_put_out_what_is_popular() {
    let lru = hit_ratio(PolicyName::Lru);
    for name in PolicyName::ALL.into_iter().filter(|name| *name != PolicyName::Lru) {
        let ratio = hit_ratio(name);
        assert!(ratio > lru + 0.02, "{name}: {ratio:.3}, lru {lru:.3}");
    }
}

/// Not a test of speed: prints the operations of each policy in a second, for `cargo test --release -- --ignored
/// --nocapture`.
#[test]
#[ignore = "prints figures"]
fn requests_a_second() {
    let mut rng = fastrand::Rng::with_seed(1);
    let keys: Vec<u64> = (0..4_000_000).map(|_| (rng.f64().powi(6) * 1e6) as u64).collect();
    for name in PolicyName::ALL {
        let mut ledger = Ledger::new(100_000, name);
        let mut gone = Vec::new();
        let started = std::time::Instant::now();
        for (now, key) in keys.iter().enumerate() {
            let item = item(key.wrapping_mul(0x9e37_79b9_7f4a_7c15), 1);
            ledger.read(&item, true, now as u64);
            if ledger.ask(&item, now as u64).is_none() {
                let _ = ledger.insert(item, now as u64, &mut gone);
                gone.clear();
            }
        }
        let rate = keys.len() as f64 / started.elapsed().as_secs_f64() / 1e6;
        let counters = ledger.counters();
        let misses = counters.misses as f64 / keys.len() as f64;
        println!("{name:10} {rate:6.2} million a second, {misses:.4} missed");
    }
}
