use super::*;

const MS: Duration = Duration::from_millis(1);
const ROUND_TRIP: Duration = Duration::from_millis(100);

/// Feedback of a receiver that got all packets of the last round trip.
fn feedback(receive_rate: f64, loss_event_rate: f64, now: Duration) -> Feedback {
    Feedback {
        round_trip: Some(ROUND_TRIP),
        receive_rate: Some(receive_rate),
        loss_event_rate,
        has_new_loss: false,
        covers: now,
    }
}

/// Has the rate limit the sender, so that receive rates are no limits of data.
fn busy(sender: &mut Sender, now: Duration) {
    sender.limited(now);
    sender.sent(10, 14_000);
}

#[test]
fn it_begins_with_the_pace_of_the_media_and_doubles_each_round_trip_after_silence() {
    let mut sender = Sender::new(Duration::ZERO);
    assert_eq!(sender.rate(), MOST);
    let mut now = Duration::ZERO;
    for _ in 0..20 {
        now += ROUND_TRIP;
        busy(&mut sender, now - MS);
        sender.feedback(&feedback(10_000.0, 0.0, now), now);
    }
    // The initial window is allowed in any case: 4380 bytes in 100 ms.
    assert_eq!(sender.rate().round(), 43_800.0);
    for doublings in 1..6 {
        let rate = sender.rate();
        for _ in 0..4 {
            now += ROUND_TRIP / 4;
            busy(&mut sender, now - MS);
            sender.feedback(&feedback(rate, 0.0, now), now);
        }
        let expected = 43_800.0 * f64::from(1 << doublings);
        assert!((sender.rate() / expected - 1.0).abs() < 0.01, "{doublings}: {}", sender.rate());
    }
    // No more than twice the rate that arrives.
    for _ in 0..20 {
        now += ROUND_TRIP;
        busy(&mut sender, now - MS);
        sender.feedback(&feedback(100_000.0, 0.0, now), now);
    }
    assert_eq!(sender.rate().round(), 200_000.0);
}

#[test]
fn with_loss_the_equation_is_the_rate() {
    let mut sender = Sender::new(Duration::ZERO);
    for round in 1..50_u32 {
        let now = ROUND_TRIP * round;
        busy(&mut sender, now - MS);
        sender.feedback(&feedback(1e6, 0.01, now), now);
    }
    assert!((sender.rate() / throughput(1400.0, ROUND_TRIP, 0.01) - 1.0).abs() < 0.01);
    assert_eq!(sender.round_trip(), Some(ROUND_TRIP));
}

#[test]
fn receive_rates_limit_a_busy_sender_only() {
    for is_busy in [true, false] {
        let mut sender = Sender::new(Duration::ZERO);
        for round in 1..50_u32 {
            let now = ROUND_TRIP * round;
            if is_busy {
                busy(&mut sender, now - MS);
            }
            // Much arrives, then little: the stream is slower for a while.
            let rate = if round < 25 { 50_000.0 } else { 1000.0 };
            sender.feedback(&feedback(rate, 0.001, now), now);
        }
        let expected = if is_busy { 2000.0 } else { 100_000.0 };
        assert!((sender.rate() - expected).abs() < 1.0, "{is_busy}: {}", sender.rate());
    }
}

#[test]
fn more_loss_of_an_idle_sender_lowers_its_limit() {
    let mut sender = Sender::new(Duration::ZERO);
    sender.feedback(&feedback(50_000.0, 0.0, ROUND_TRIP), ROUND_TRIP);
    sender.feedback(&feedback(50_000.0, 0.001, 2 * ROUND_TRIP), 2 * ROUND_TRIP);
    assert_eq!(sender.rate().round(), 42_500.0);
    // A new loss event counts even where the rate of loss events falls.
    let event = Feedback { has_new_loss: true, ..feedback(40_000.0, 0.0009, 3 * ROUND_TRIP) };
    sender.feedback(&event, 3 * ROUND_TRIP);
    assert_eq!(sender.rate().round(), 34_000.0);
}

#[test]
fn without_feedback_the_rate_halves_down_to_one_packet_in_64_seconds() {
    let mut sender = Sender::new(Duration::ZERO);
    let mut now = Duration::ZERO;
    for round in 1..40_u32 {
        now = ROUND_TRIP * round;
        busy(&mut sender, now);
        sender.feedback(&feedback(50_000.0, 0.01, now), now);
    }
    let mut expiries = Vec::new();
    for _ in 0..40 {
        let rate = sender.rate();
        let next = sender.expires();
        assert!(next > now);
        sender.sent(1, 1400);
        sender.expire(next);
        expiries.push(next - now);
        assert!(sender.rate() <= rate, "{} {rate}", sender.rate());
        now = next;
    }
    assert!(expiries[0].abs_diff(4 * ROUND_TRIP) < MS, "{:?}", expiries[0]);
    assert!(expiries[39] >= Duration::from_secs(100), "{:?}", expiries[39]);
    assert!((sender.rate() - 1400.0 / 64.0).abs() < 0.1, "{}", sender.rate());
}

#[test]
fn rare_reports_and_requests_keep_the_rate() {
    let mut sender = Sender::new(Duration::ZERO);
    let second = Duration::from_secs(1);
    assert_eq!(sender.expires(), 30 * second);
    for report in 1..20_u32 {
        let now = 5 * second * report;
        assert!(sender.expires() > now + 10 * second || report == 1, "{report}");
        sender.sent(1000, 1_400_000);
        sender.feedback(&feedback(280_000.0, 0.0, now), now);
    }
    let rate = sender.rate();
    for request in 4..20_u32 {
        let now = 25 * second * request;
        sender.heard(now);
        assert!(sender.expires() >= now + 19 * second);
    }
    assert_eq!(sender.rate(), rate);
}

#[test]
fn media_that_nobody_reports_on_slows_down_from_the_pace_that_it_has() {
    let mut sender = Sender::new(Duration::ZERO);
    for _ in 0..3000 {
        sender.sent(1, 1000);
    }
    sender.expire(sender.expires());
    // 100 kB/s in 30 s.
    assert!((sender.rate() - 100_000.0).abs() < 1.0, "{}", sender.rate());
}

#[test]
fn a_longer_round_trip_than_usual_slows_at_once() {
    let mut sender = Sender::new(Duration::ZERO);
    for round in 1..30_u32 {
        let now = ROUND_TRIP * round;
        busy(&mut sender, now - MS);
        sender.feedback(&feedback(1e6, 0.01, now), now);
    }
    assert!((sender.instant_rate() / sender.rate() - 1.0).abs() < 1e-6);
    let now = ROUND_TRIP * 31;
    sender.feedback(&Feedback { round_trip: Some(2 * ROUND_TRIP), ..feedback(1e6, 0.01, now) }, now);
    let factor = sender.instant_rate() / sender.rate();
    assert!((factor - (0.9 + 0.1 * 2.0_f64.sqrt()) / 2.0_f64.sqrt()).abs() < 1e-6, "{factor}");
}

#[test]
fn no_feedback_takes_the_rate_out_of_its_bounds() {
    let times = [Duration::ZERO, MS, ROUND_TRIP, Duration::from_secs(600), Duration::MAX];
    let values = [0.0, 1e-9, 0.5, 1.0, 1e9, f64::INFINITY, f64::NAN, -1.0];
    let mut random = 1_u64;
    let mut draw = |most: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 33) as usize % most
    };
    let mut sender = Sender::new(Duration::ZERO);
    for _ in 0..100_000 {
        let now = times[draw(4)] + MS * draw(1000) as u32;
        match draw(6) {
            0 => sender.expire(now),
            1 => sender.limited(now),
            2 => sender.heard(now),
            3 => sender.sent(draw(3), draw(100_000)),
            _ => {
                let round_trip = [None, Some(times[draw(5)])][draw(2)];
                let receive_rate = [None, Some(values[draw(8)])][draw(2)];
                let loss_event_rate = values[draw(8)];
                let (has_new_loss, covers) = (draw(2) == 0, times[draw(5)]);
                sender.feedback(&Feedback { round_trip, receive_rate, loss_event_rate, has_new_loss, covers }, now);
            }
        }
        let least = sender.packet_size() / LONGEST_GAP;
        for rate in [sender.rate(), sender.instant_rate()] {
            assert!((PACKET.0 / LONGEST_GAP..=MOST).contains(&rate), "{rate} {least}");
        }
        let _ = sender.expires();
    }
}

#[test]
fn a_first_feedback_without_a_receive_rate_limits_nothing() {
    // A receiver's first feedback tells X_recv = 0 (RFC 5348 4.3 and 6.3).
    let mut sender = Sender::new(Duration::ZERO);
    sender.sent(10, 14_000);
    sender.feedback(&feedback(0.0, 0.001, ROUND_TRIP), ROUND_TRIP);
    let expected = throughput(sender.packet_size(), ROUND_TRIP, 0.001);
    assert!((sender.rate() / expected - 1.0).abs() < 0.01, "{}", sender.rate());
}
