use super::*;

const MS: Duration = Duration::from_millis(1);
const ROUND_TRIP: Duration = Duration::from_millis(50);

/// Gives packets of these numbers, one in a millisecond, and returns those with which a loss event began.
fn give(receiver: &mut Receiver, numbers: impl IntoIterator<Item = u64>) -> Vec<u64> {
    let each = numbers.into_iter().filter(|number| receiver.packet(*number, 1000, ROUND_TRIP, MS * *number as u32));
    each.collect()
}

#[test]
fn the_first_packet_is_answered_and_then_one_in_a_round_trip() {
    let mut receiver = Receiver::default();
    assert_eq!((receiver.feedback_at(), receiver.feedback(MS)), (None, None));
    give(&mut receiver, [0]);
    assert_eq!(receiver.feedback_at(), Some(Duration::ZERO));
    assert_eq!(receiver.feedback(3 * MS).map(|all| (all.newest, all.delay)), Some((0, 3 * MS)));
    assert_eq!(receiver.feedback_at(), None);
    give(&mut receiver, 10..12);
    assert_eq!(receiver.feedback_at(), Some(60 * MS));
}

#[test]
fn a_packet_is_lost_once_three_others_followed() {
    let mut receiver = Receiver::default();
    assert_eq!(give(&mut receiver, (0..200).filter(|number| *number != 100)), [103]);
    let mut receiver = Receiver::default();
    assert!(give(&mut receiver, [0, 1, 3, 4, 2, 5, 6, 7]).is_empty(), "it came late");
    assert_eq!(give(&mut receiver, [11, 9, 12, 13]), [12], "8 and 10 are lost");
    assert_eq!(receiver.events.number(), 1);
}

#[test]
fn the_rate_of_loss_events_is_that_of_regular_losses() {
    let mut receiver = Receiver::default();
    give(&mut receiver, (0..10_000).filter(|number| number % 200 != 7));
    let rate = receiver.feedback(10_000 * MS).unwrap().loss_event_rate;
    assert!((rate - 1.0 / 200.0).abs() < 1e-4, "{rate}");
    // Ten losses within a round trip are one event.
    let mut receiver = Receiver::default();
    give(&mut receiver, (0..10_000).filter(|number| number % 200 > 20 || number % 2 == 0));
    let rate = receiver.feedback(10_000 * MS).unwrap().loss_event_rate;
    assert!((rate - 1.0 / 200.0).abs() < 1e-4, "{rate}");
}

#[test]
fn the_first_interval_follows_from_the_rate() {
    let mut receiver = Receiver::default();
    give(&mut receiver, 0..1000);
    let rate = receiver.feedback(1000 * MS).unwrap().receive_rate;
    assert!((rate - 1e6).abs() < 2e4, "{rate}");
    assert_eq!(give(&mut receiver, 1001..1010), [1003]);
    let p = receiver.feedback(1010 * MS).unwrap().loss_event_rate;
    let found = super::super::throughput(1000.0, ROUND_TRIP, p);
    assert!((found / rate - 1.0).abs() < 0.05, "{found}");
}

#[test]
fn huge_gaps_and_repeated_packets_cost_little() {
    let mut receiver = Receiver::default();
    give(&mut receiver, [0, 1, 1, 1, u64::MAX / 2, u64::MAX / 2 + 1]);
    receiver.packet(u64::MAX - 1, 0, Duration::ZERO, Duration::ZERO);
    receiver.packet(u64::MAX, usize::MAX, Duration::MAX / 4, MS);
    for number in 0..1000 {
        receiver.packet(number * 2, 1000, ROUND_TRIP, MS);
    }
    for number in 0..10_000 {
        receiver.packet(u64::MAX / 2 + 2 * number, 1000, ROUND_TRIP, MS);
    }
    assert!(receiver.gaps.len() <= GAPS + 1);
    let feedback = receiver.feedback(2 * MS).unwrap();
    assert!((0.0..=1.0).contains(&feedback.loss_event_rate), "{feedback:?}");
}

/// Loss event rate of a receiver whose first loss event was of packet 100, whose interval has 4 packets then.
fn first_loss(receiver: &mut Receiver) -> f64 {
    assert_eq!(give(receiver, (0..104).filter(|number| *number != 100)), [103]);
    receiver.events.rate()
}

#[test]
fn a_packet_that_arrived_twice_does_not_prove_a_loss() {
    let mut receiver = Receiver::default();
    assert!(give(&mut receiver, [0, 1, 3, 3, 3, 1, 4]).is_empty());
    assert_eq!(give(&mut receiver, [5]), [5]);
}

#[test]
fn a_loss_interval_has_all_packets_from_one_event_to_the_next() {
    // Numbers 100 to 299, of which 110 is lost in the same round trip as 100 (RFC 5348 5.3).
    let mut receiver = Receiver::default();
    let first = 1.0 / first_loss(&mut receiver);
    let lost = |number: &u64| *number != 110 && *number != 300;
    assert_eq!(give(&mut receiver, (104..304).filter(lost)), [303]);
    // The first interval is short, as no receive rate is known. So the long one after it has discounted it (5.5).
    let mean = (200.0 + 0.25 * first) / 1.25;
    assert!((receiver.events.rate() - 1.0 / mean).abs() < 1e-9, "{}", receiver.events.rate());
    // The open interval begins with the lost packet and has those after it: 300 to 499.
    give(&mut receiver, 304..500);
    let mean = (200.0 + 200.0) / 2.0;
    assert!((receiver.events.rate() - 1.0 / mean).abs() < 1e-9, "{}", receiver.events.rate());
}

#[test]
fn a_long_gap_counts_whole_and_has_an_event_in_each_round_trip() {
    let mut receiver = Receiver::default();
    give(&mut receiver, [0]);
    for number in 100_001..100_004 {
        // The gap has 10 s, and a round trip is 50 ms.
        receiver.packet(number, 1000, ROUND_TRIP, 10_000 * MS + MS * (number - 100_001) as u32);
    }
    let events = receiver.events.number();
    assert!((190..=200).contains(&events), "{events}");
    let rate = receiver.events.rate();
    assert!((rate - 1.0 / 500.0).abs() < 1e-4, "{rate}");
}

#[test]
fn a_lost_packet_has_a_time_between_the_last_arrival_and_the_next_one() {
    // 9 arrives late, at 60 ms: it is the last packet to arrive before 12 (RFC 5348 5.2). So 11 was lost after 60 ms, not within
    // a round trip of the loss at 1 ms.
    let mut receiver = Receiver::default();
    for (number, at) in [(0, 0), (2, 2), (3, 3), (4, 4), (10, 9), (9, 60), (12, 61), (13, 62), (14, 63)] {
        receiver.packet(number, 1000, ROUND_TRIP, MS * at);
    }
    assert_eq!(receiver.events.number(), 2);
}
