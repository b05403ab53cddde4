//! The throughput equation of TCP (RFC 5348 3.1) and its inverse.

use std::time::Duration;

/// Smallest loss event rate that [`loss_event_rate`] returns: one loss in 100 million packets.
const LEAST: f64 = 1e-8;

/// Rate of a TCP flow in bytes per second (RFC 5348 3.1), with b = 1 and t_RTO = 4 R.
///
/// `packet` is the packet size in bytes, and `loss_events` the loss event rate, above 0 and up to 1. Without loss events the
/// result is infinite.
#[must_use]
pub fn throughput(packet: f64, round_trip: Duration, loss_events: f64) -> f64 {
    packet / (round_trip.as_secs_f64() * round_trips_a_packet(loss_events.clamp(0.0, 1.0)))
}

/// Loss event rate at which the equation gives `rate` (RFC 5348 6.3.1), from 1e-8 to 1.
#[must_use]
pub fn loss_event_rate(packet: f64, round_trip: Duration, rate: f64) -> f64 {
    let wanted = packet / (round_trip.as_secs_f64() * rate);
    // The function grows with the rate of loss events. Bisection of exponents halves 27 powers of two to a millionth.
    let (mut low, mut high) = (LEAST.ln(), 0.0_f64);
    for _ in 0..32 {
        let middle = f64::midpoint(low, high);
        if round_trips_a_packet(middle.exp()) < wanted {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high).exp()
}

/// Length of the interval before the first loss event (RFC 5348 6.3.1). At this length the equation gives the largest receive
/// rate so far, and at least half a packet per round trip.
pub(super) fn first_interval(packet: f64, round_trip: Duration, largest: f64) -> f64 {
    let round_trip = round_trip.max(Duration::from_millis(1));
    1.0 / loss_event_rate(packet, round_trip, largest.max(0.5 * packet / round_trip.as_secs_f64()))
}

/// f(p): round trips from one packet to the next.
fn round_trips_a_packet(p: f64) -> f64 {
    (2.0 * p / 3.0).sqrt() + 12.0 * (3.0 * p / 8.0).sqrt() * p * (1.0 + 32.0 * p * p)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packet size, round trip in milliseconds, loss event rate, bytes per second: computed from the formula of RFC 5348 3.1
    /// by another program.
    const TABLE: [(f64, u64, f64, f64); 24] = [
        (1000.0, 10, 1e-5, 38_726_348.1),
        (1000.0, 10, 1e-4, 12_236_435.9),
        (1000.0, 10, 0.001, 3_838_436.3),
        (1000.0, 10, 0.01, 1_123_322.3),
        (1000.0, 10, 0.05, 368_588.5),
        (1000.0, 10, 0.1, 177_010.2),
        (1000.0, 10, 0.5, 4173.6),
        (1000.0, 10, 1.0, 411.0),
        (1460.0, 100, 1e-5, 5_654_046.8),
        (1460.0, 100, 1e-4, 1_786_519.6),
        (1460.0, 100, 0.001, 560_411.7),
        (1460.0, 100, 0.01, 164_005.1),
        (1460.0, 100, 0.05, 53_813.9),
        (1460.0, 100, 0.1, 25_843.5),
        (1460.0, 100, 0.5, 609.3),
        (1460.0, 100, 1.0, 60.0),
        (1460.0, 500, 1e-5, 1_130_809.4),
        (1460.0, 500, 1e-4, 357_303.9),
        (1460.0, 500, 0.001, 112_082.3),
        (1460.0, 500, 0.01, 32_801.0),
        (1460.0, 500, 0.05, 10_762.8),
        (1460.0, 500, 0.1, 5168.7),
        (1460.0, 500, 0.5, 121.9),
        (1460.0, 500, 1.0, 12.0),
    ];

    #[test]
    fn the_equation_agrees_with_its_table_to_one_percent() {
        for (packet, milliseconds, loss_events, expected) in TABLE {
            let rate = throughput(packet, Duration::from_millis(milliseconds), loss_events);
            assert!(
                (rate / expected - 1.0).abs() < 0.01,
                "{packet} {milliseconds} {loss_events}: {rate}, not {expected}"
            );
        }
        assert_eq!(throughput(1460.0, Duration::from_millis(10), 0.0), f64::INFINITY);
    }

    /// f(p) of some loss event rates, as Linux has them in a table for DCCP (net/dccp/ccids/lib/tfrc_equation.c, scaled by a million).
    const LINUX: [(f64, f64); 12] = [
        (1e-4, 8172.0),
        (5e-4, 18_339.0),
        (0.001, 26_052.0),
        (0.002, 37_172.0),
        (0.005, 60_335.0),
        (0.01, 89_021.0),
        (0.02, 136_520.0),
        (0.03, 180_704.0),
        (0.05, 271_305.0),
        (0.08, 431_270.0),
        (0.1, 564_939.0),
        (1.0, 243_315_981.0),
    ];

    #[test]
    fn the_equation_agrees_with_the_table_of_linux_to_one_percent() {
        for (loss_events, expected) in LINUX {
            let found = round_trips_a_packet(loss_events) * 1e6;
            assert!((found / expected - 1.0).abs() < 0.01, "{loss_events}: {found}, not {expected}");
        }
    }

    #[test]
    fn the_inverse_finds_the_loss_event_rate_of_the_table_to_one_percent() {
        for (packet, milliseconds, expected, rate) in TABLE {
            let found = loss_event_rate(packet, Duration::from_millis(milliseconds), rate);
            assert!((found / expected - 1.0).abs() < 0.01, "{packet} {milliseconds} {rate}: {found}, not {expected}");
        }
        let far = Duration::from_millis(10);
        assert!(loss_event_rate(1460.0, far, 0.0) > 0.99 && loss_event_rate(1460.0, far, f64::MAX) < 2.0 * LEAST);
    }
}
