//! Small runs: what the figures must show.

use super::*;
use millpond_cluster::{AssignmentName, Bitrate};
use std::time::Duration;

#[test]
fn the_three_techniques_carry_more_streams() {
    let carried = |technique: &dyn Fn(PaperSetting) -> PaperSetting| {
        let tried = (300..1000).step_by(50).take_while(|streams| {
            let setting = technique(PaperSetting { streams: *streams, skew: 1.2, ..PaperSetting::default() });
            serve(&setting).missed_share() < 0.01
        });
        tried.last().unwrap_or(0)
    };
    let none = carried(&|setting| setting);
    let all =
        carried(&|setting| PaperSetting { assignment: AssignmentName::Sosd, cache: 20 << 20, delay: 1.0, ..setting });
    assert!((350..500).contains(&none), "{none}");
    assert!(all as f64 >= 1.3 * none as f64, "{all} and {none}");
}

#[test]
fn same_object_same_dispenser_finds_more_in_memory() {
    let cached = |assignment, skew| {
        let setting = PaperSetting { assignment, skew, cache: 20 << 20, ..PaperSetting::default() };
        let outcome = serve(&setting);
        assert!(outcome.requests > 10_000 && outcome.packets > 100_000, "{outcome:?}");
        outcome.cached_share()
    };
    for skew in [0.729, 1.2] {
        let (rr, sosd) = (cached(AssignmentName::RoundRobin, skew), cached(AssignmentName::Sosd, skew));
        assert!(sosd > 1.2 * rr, "{skew}: {sosd} and {rr}");
    }
    assert!(cached(AssignmentName::Sosd, 1.2) > cached(AssignmentName::Sosd, 0.729));
    assert_eq!(serve(&PaperSetting::default()).cached, 0);
    assert_eq!(serve(&PaperSetting::default()), serve(&PaperSetting::default()), "the same each time");
}

#[test]
fn a_fleet_stays_balanced_and_reads_once() {
    let setting = FleetSetting {
        nodes: 40,
        watched: Duration::from_secs(120),
        mixed: true,
        lying: 0.1,
        ..FleetSetting::default()
    };
    let outcome = run_fleet(&setting, |_| ());
    assert!(outcome.most_over_mean <= 1.25, "{outcome:?}");
    assert!(outcome.moved_leaving <= 1.3 && outcome.moved_joining <= 1.3, "{outcome:?}");
    assert!(outcome.moved_leaving >= 0.3 && outcome.cut > 0, "{outcome:?}");
    assert_eq!(outcome.refused, 0);
    assert!(outcome.origin_ratio < 1.1 && outcome.crowd_origin_ratio <= 1.05, "{outcome:?}");
    assert!(outcome.longest_cut < 3.0 && outcome.crowd_viewers >= 200, "{outcome:?}");
}

#[test]
fn a_node_that_joins_a_few_leaves_none_far_above_the_mean() {
    for seed in 1..=6 {
        let outcome = run_fleet(&FleetSetting { seed, ..FleetSetting::default() }, |_| ());
        assert!(outcome.most_over_mean <= 1.25 && outcome.most_over_bound <= 1.1, "{outcome:?}");
    }
}

#[test]
fn streams_that_do_not_fit_are_refused() {
    let capacity = Bitrate::from_mbps(4 * 20);
    let setting = FleetSetting { nodes: 4, viewers: 24, capacity, ..FleetSetting::default() };
    let outcome = run_fleet(&setting, |_| ());
    assert!(outcome.refused > 0 && outcome.most_streams <= 5 * 20, "{outcome:?}");
}

/// Twelve nodes in three regions, with zones or without.
fn regions(zoned: bool) -> RegionsOutcome {
    let setting = RegionsSetting {
        nodes: 12,
        zoned,
        assets: 100,
        viewers: 40,
        watched: Duration::from_secs(60),
        lasts: Duration::from_secs(240),
        ..RegionsSetting::default()
    };
    let clocked = |outcome: RegionsOutcome| RegionsOutcome {
        decisions_per_second: 0.0,
        first_decisions_per_second: 0.0,
        ..outcome
    };
    let outcome = clocked(run_regions(&setting, |_| ()));
    assert_eq!(outcome, clocked(run_regions(&setting, |_| ())), "the same each time");
    outcome
}

#[test]
fn zones_keep_viewers_and_read_once_over_their_borders() {
    let [with, without] = [true, false].map(regions);
    for outcome in [&with, &without] {
        assert!(outcome.streams > 1500 && outcome.cut > 100 && outcome.refused == 0, "{outcome:?}");
        // Slices whose home was in the lost region are read again.
        assert!((1.0..1.35).contains(&outcome.origin_ratio), "{outcome:?}");
        assert!(outcome.node_share <= outcome.region_share && outcome.region_share <= outcome.cluster_share);
        assert!(outcome.cluster_share > 0.3 && outcome.most_over_mean < 1.6, "{outcome:?}");
        assert!((0..3).all(|region| outcome.between[region][region] == 0), "{outcome:?}");
    }
    assert!(with.abroad_share() < 0.01, "{with:?}");
    assert!((0.5..0.75).contains(&without.abroad_share()), "{without:?}");
    // Each region reads each group from the others once at most.
    assert!(with.crossed() as f64 <= 2.0 * with.origin_bytes as f64, "{with:?}");
    let [inside, outside] = [&with, &without].map(|outcome| outcome.crossed() + outcome.abroad_bytes);
    assert!(inside < outside, "{with:?} and {without:?}");
    // The region that is lost takes its own dispensers and homes with it. The home of a zone then asks another home of the cluster.
    assert!(with.moved_assets == 0.0 && with.moved_homes < 0.12, "{with:?}");
    let third = 0.28..0.39;
    assert!(third.contains(&without.moved_assets) && third.contains(&without.moved_homes), "{without:?}");
}
