//! A deterministic simulation of a cluster: the real tasks of nodes (registration, following, bookings, holders of live streams, purges, clocks)
//! on an etcd in memory, with time that only passes when nobody has work, and faults drawn from one seed.
//!
//! `MILLPOND_SEED=N` replays one seed, `MILLPOND_SEEDS=N` tries as many, `MILLPOND_STEPS=N` makes each longer. Simulations of this kind
//! are described by FoundationDB (Zhou et al., SIGMOD 2021, section 4) and TigerBeetle (VOPR).

mod etcd;
mod faults;
mod gate;
mod invariants;
mod member;
mod origin;
mod world;

pub(super) use etcd::{SimulatedEtcd, SimulatedWatch};

use super::{Cluster, state::Membership};
use etcd::Mutant;
use std::{cell::Cell, time::Instant};
use world::{Broken, Kind, Outcome, World};

impl Cluster {
    /// Whether this node is registered.
    fn is_member(&self) -> bool {
        *self.state.membership().borrow() == Membership::Member
    }
}

/// Runs one seed: `Ok` with what happened, or the invariant that broke.
fn run(seed: u64, steps: u32, kind: Kind, mutant: Mutant) -> Result<Outcome, Broken> {
    thread_local! {
        static IS_WARM: Cell<bool> = const { Cell::new(false) };
    }
    // Statics of the process and of the thread draw random numbers when they are made.
    if !IS_WARM.replace(true) {
        let _ = run(seed, 60, kind, Mutant::None);
    }
    fastrand::seed(seed);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async { World::new(kind, mutant).run(steps).await })
}

fn number(variable: &str, default: u64) -> u64 {
    let set = std::env::var(variable).ok();
    set.map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{variable}={text}: expected a number")))
}

/// The seeds to run, and the steps of each.
fn asked(seeds: u64, steps: u32) -> (Vec<u64>, u32) {
    let steps = u32::try_from(number("MILLPOND_STEPS", steps.into())).unwrap();
    match std::env::var_os("MILLPOND_SEED") {
        Some(_) => (vec![number("MILLPOND_SEED", 0)], steps),
        None => ((1..=number("MILLPOND_SEEDS", seeds)).collect(), steps),
    }
}

fn simulate(kind: Kind, seeds: u64, steps: u32) {
    let (seeds, steps) = asked(seeds, steps);
    let (began, mut total) = (Instant::now(), Outcome::default());
    for seed in &seeds {
        match run(*seed, steps, kind, Mutant::None) {
            Ok(outcome) => total.add(&outcome),
            Err(broken) => panic!("MILLPOND_SEED={seed} MILLPOND_STEPS={steps}, {kind:?}: {broken}"),
        }
    }
    eprintln!("{kind:?}: {} seeds of {steps} steps in {:.1?}: {total}", seeds.len(), began.elapsed());
    assert!(total.is_varied(kind), "the simulation does too little: {total}");
}

#[test]
#[ignore = "seed 17 books a storage twice while three nodes begin at once: open"]
fn no_booking_is_lost_or_made_twice_while_nodes_die_and_etcd_answers() {
    simulate(Kind::Calm, 6, 1500);
}

#[test]
fn a_cluster_heals_after_any_faults_and_gives_no_purged_bytes() {
    simulate(Kind::Rough, 6, 1500);
}

#[test]
#[ignore = "tables with random hashing change the order of work beside other tests: open"]
fn a_seed_replays() {
    // Without the slice cache, which has a clock of its own.
    let run = || run(7, 400, Kind::Unread, Mutant::None).unwrap_or_else(|broken| panic!("{broken}"));
    assert_eq!(run().to_string(), run().to_string());
}

/// Faults of the registry itself are found: the invariants can fail.
#[test]
fn mutants_are_found() {
    for (mutant, kind) in [
        (Mutant::ForgetsConditions, Kind::Calm),
        (Mutant::ForgetsLeases, Kind::Rough),
        (Mutant::LosesChanges, Kind::Rough),
        (Mutant::KeepsKeys, Kind::Rough),
        (Mutant::LosesPurges, Kind::Rough),
    ] {
        let found = (1..=20).find_map(|seed| Some((seed, run(seed, 1500, kind, mutant).err()?)));
        let (seed, broken) = found.unwrap_or_else(|| panic!("{mutant:?} is not found"));
        eprintln!("{mutant:?}: seed {seed}: {broken}");
    }
}
