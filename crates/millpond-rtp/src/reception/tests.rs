//! Tests against the formulas of RFC 3550 appendix A.

use super::*;

const NOW: Duration = Duration::ZERO;

fn source(sequences: &[u16]) -> SourceStatistics {
    let mut source = SourceStatistics::announced(90_000);
    for sequence in sequences {
        source.packet(*sequence, 0, NOW);
    }
    source
}

fn arrivals(sequences: &[u16]) -> Vec<Arrival> {
    let mut source = SourceStatistics::announced(90_000);
    sequences.iter().map(|sequence| source.packet(*sequence, 0, NOW)).collect()
}

#[test]
fn sequence_numbers_wrap() {
    let source = source(&[65_534, 65_535, 0, 1]);
    assert_eq!((source.highest(), source.expected(), source.received()), (0x1_0001, 4, 4));
    assert_eq!((source.lost(), source.missing()), (0, 0));
    let mut source = SourceStatistics::announced(90_000);
    for turn in 0..3 * 65_536_u32 {
        source.packet(turn as u16, 0, NOW);
    }
    assert_eq!((source.highest(), source.expected()), (3 * 65_536 - 1, 3 * 65_536));
}

#[test]
fn packets_are_told_apart() {
    use Arrival::{Duplicate, Late, Next};
    let next = |skipped| Next { skipped };
    assert_eq!(
        arrivals(&[10, 11, 14, 12, 12, 14, 15, 13, 9]),
        [next(0), next(0), next(2), Late, Duplicate, Duplicate, next(0), Late, Late]
    );
    assert_eq!(arrivals(&[0, 2, 65_535, 1, 65_535]), [next(0), next(1), Late, Late, Duplicate], "over the wrap");
}

#[test]
fn loss_is_what_was_expected_less_what_came() {
    let lossy = source(&[1, 2, 5, 6]);
    assert_eq!((lossy.expected(), lossy.received(), lossy.lost(), lossy.missing()), (6, 4, 2, 2));
    let twice = source(&[1, 2, 2, 2, 4]);
    assert_eq!((twice.lost(), twice.missing(), twice.duplicates()), (-1, 1, 2), "duplicates count (RFC 3550 A.3)");
    let late = source(&[10, 8]);
    assert_eq!((late.expected(), late.missing(), late.reordered()), (3, 1, 1), "one from before the first");
}

#[test]
fn a_source_begins_again_after_two_in_a_row_elsewhere() {
    use Arrival::{Next, Refused, Restart};
    let mut source = source(&[100, 101]);
    assert_eq!(source.packet(30_000, 0, NOW), Refused, "one stray packet");
    assert_eq!(source.packet(102, 0, NOW), Next { skipped: 0 });
    assert_eq!(source.packet(40_000, 0, NOW), Refused);
    assert_eq!(source.packet(40_001, 0, NOW), Restart);
    assert_eq!((source.expected(), source.received(), source.highest()), (1, 1, 40_001));
    assert_eq!((source.restarts(), source.refused()), (1, 2));
    // The limits of A.1: 2999 ahead is loss, 3000 is not; 99 behind is late, 100 is not.
    assert_eq!(arrivals(&[0, 2999])[1], Next { skipped: 2998 });
    assert_eq!(arrivals(&[0, 3000])[1], Refused);
    assert_eq!(arrivals(&[200, 101])[1], Arrival::Late);
    assert_eq!(arrivals(&[200, 100])[1], Refused);
}

#[test]
fn who_was_not_announced_is_on_probation() {
    use Arrival::{Next, Refused};
    let mut source = SourceStatistics::new(90_000);
    let all: Vec<Arrival> = [7, 9, 10, 11].into_iter().map(|number| source.packet(number, 0, NOW)).collect();
    assert_eq!(all, [Refused, Refused, Next { skipped: 0 }, Next { skipped: 0 }]);
    assert_eq!((source.expected(), source.received()), (2, 2));
}

#[test]
fn reports_have_the_share_lost_since_the_last_one() {
    let mut source = source(&[0, 1, 2, 3]);
    assert_eq!(source.report(9, NOW).fraction_lost, 0);
    for sequence in [4, 6] {
        source.packet(sequence, 0, NOW);
    }
    let report = source.report(9, NOW);
    assert_eq!((report.ssrc, report.fraction_lost, report.lost, report.highest), (9, 85, 1, 6), "1 of 3");
    assert_eq!(source.report(9, NOW).fraction_lost, 0, "nothing since");
    source.packet(5, 0, NOW);
    let report = source.report(9, NOW);
    assert_eq!((report.fraction_lost, report.lost), (0, 0), "it came late");
}

#[test]
fn lost_in_all_stays_in_its_24_bits() {
    let mut source = source(&[0]);
    for turn in 1..4000_u32 {
        source.packet((turn * 2999) as u16, 0, NOW);
    }
    assert!(source.lost() > 0x7f_ffff);
    let report = source.report(1, NOW);
    assert_eq!((report.lost, report.fraction_lost), (0x7f_ffff, 255));
    for _ in 0..10 {
        source.packet((3999_u32 * 2999) as u16, 0, NOW);
    }
    assert_eq!(source.duplicates(), 10);
}

#[test]
fn reports_tell_when_the_sender_was_heard() {
    let mut source = source(&[0]);
    let silent = source.report(1, Duration::from_secs(9));
    assert_eq!((silent.last_report, silent.delay), (0, 0));
    let sent = SenderReport { ssrc: 1, ntp: 0x1234_5678_9abc_def0, timestamp: 0, packets: 0, octets: 0 };
    source.sender_report(&sent, Duration::from_millis(1500));
    let report = source.report(1, Duration::from_secs(2));
    assert_eq!((report.last_report, report.delay), (0x5678_9abc, 0x8000));
    assert_eq!(report.round_trip(0x5678_9abc + 0x8000 + 0x4000), Some(0.25));
    assert_eq!(source.report(1, Duration::from_secs(1 << 20)).delay, u32::MAX);
}

/// Compares with the jitter of A.8 in floating point: J += (|D| - J) / 16.
#[test]
fn jitter_follows_the_formula() {
    let (rate, step) = (8000, 160_u32);
    let mut source = SourceStatistics::announced(rate);
    let (mut expected, mut before) = (0.0_f64, None);
    for turn in 0..200_u32 {
        // Packets 20 ms apart, late by up to 6 ms; timestamps wrap in between.
        let late = u64::from(turn * 7 % 13) * 500;
        let arrival = Duration::from_micros(u64::from(turn) * 20_000 + late);
        source.packet(turn as u16, (turn * step).wrapping_sub(100 * step), arrival);
        let transit = late as f64 * 8.0 / 1000.0;
        if let Some(before) = before.replace(transit) {
            let differs: f64 = transit - before;
            expected += (differs.abs() - expected) / 16.0;
        }
    }
    let jitter = source.jitter().as_secs_f64() * f64::from(rate);
    assert!((jitter - expected).abs() < 1.0 && jitter > 5.0, "{jitter} {expected}");
    assert_eq!(source.report(1, NOW).jitter, jitter as u32);
}

#[test]
fn steady_packets_have_no_jitter() {
    let mut source = SourceStatistics::announced(48_000);
    for turn in 0..1000_u32 {
        source.packet(turn as u16, u32::MAX.wrapping_add(turn * 960), Duration::from_millis(u64::from(turn) * 20));
    }
    assert_eq!(source.jitter(), Duration::ZERO);
}

#[test]
fn timestamps_are_extended() {
    let mut timeline = ExtendedTimestamps::default();
    let all: Vec<i64> = [u32::MAX - 9, 0, 100, u32::MAX, 100].into_iter().map(|at| timeline.extend(at)).collect();
    assert_eq!(all, [0, 10, 110, 9, 110]);
}
