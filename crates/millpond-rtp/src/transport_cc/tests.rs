use super::*;
use crate::rtcp;
use proptest::prelude::*;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Reads a report: the first number, and the arrival of each packet.
fn read(report: &[u8]) -> (u16, Vec<Option<Duration>>) {
    let word = |at: usize| u16::from_be_bytes([report[at], report[at + 1]]);
    assert_eq!((report[0], report[1], usize::from(word(2))), (0x8f, 205, report.len() / 4 - 1));
    let (first, count) = (word(12), usize::from(word(14)));
    let reference = u32::from_be_bytes([0, report[16], report[17], report[18]]);
    let chunks = count.div_ceil(CHUNK);
    let symbols = (0..count).map(|at| word(20 + 2 * (at / CHUNK)) >> (2 * (CHUNK - 1 - at % CHUNK)) & 3);
    let mut deltas = &report[20 + 2 * chunks..];
    let mut clock = i64::from(reference) * 64_000;
    let times = symbols.map(|symbol| {
        let delta = match symbol {
            0 => return None,
            1 => i64::from(deltas[0]),
            _ => i64::from(i16::from_be_bytes([deltas[0], deltas[1]])),
        };
        deltas = &deltas[usize::from(symbol)..];
        clock += delta * 250;
        Some(Duration::from_micros(clock as u64))
    });
    let times = times.collect();
    assert!(deltas.len() < 4 && deltas.iter().all(|byte| *byte == 0));
    (first, times)
}

#[test]
fn arrivals_are_reported_ten_times_a_second() {
    let mut arrivals = TransportArrivals::default();
    assert_eq!(arrivals.next(), None);
    // Number 65,535 is missing; the next one is late.
    for (sequence, at) in [(65_534, 1000), (1, 1020), (0, 1100)] {
        arrivals.arrived(sequence, ms(at));
    }
    let mut report = Vec::new();
    assert!(!arrivals.report((7, 9), ms(1099), &mut report) && report.is_empty());
    assert_eq!(arrivals.next(), Some(ms(1100)));
    assert!(arrivals.report((7, 9), ms(1100), &mut report));
    assert_eq!(report[4..12], [0, 0, 0, 7, 0, 0, 0, 9]);
    assert_eq!(report[19], 0, "the first report");
    assert_eq!(read(&report), (65_534, vec![Some(ms(1000)), None, Some(ms(1100)), Some(ms(1020))]));
    assert_eq!(arrivals.next(), None);
    // A packet that was reported as missing is not reported again. The next report begins behind the last one.
    arrivals.arrived(65_535, ms(1110));
    arrivals.arrived(3, ms(1110));
    let mut report = rtcp::receiver_report(7, &[], "test");
    let head = report.len();
    assert!(arrivals.report((7, 9), ms(1300), &mut report));
    assert_eq!((read(&report[head..]), report[head + 19]), ((2, vec![None, Some(ms(1110))]), 1));
    assert_eq!(rtcp::parse(&report), Ok(vec![]), "a valid compound");
}

#[test]
fn a_sender_that_begins_again_is_followed() {
    let mut arrivals = TransportArrivals::default();
    arrivals.arrived(100, ms(10));
    arrivals.arrived(40_000, ms(20));
    let mut report = Vec::new();
    assert!(arrivals.report((7, 9), ms(200), &mut report));
    assert_eq!(read(&report), (40_000, vec![Some(ms(20))]));
}

proptest! {
    #[test]
    fn each_packet_is_reported_once_within_a_quarter_of_a_millisecond(
        first: u16, packets in prop::collection::vec((1..300_u16, 0..20_000_u64), 1..900)
    ) {
        let mut arrivals = TransportArrivals::default();
        let (mut sequence, mut now) = (first, Duration::from_secs(3));
        let (mut sent, mut found) = (Vec::new(), Vec::new());
        let mut take = |arrivals: &mut TransportArrivals, now: Duration| {
            let mut report = Vec::new();
            while arrivals.report((7, 9), now, &mut report) {
                assert!(report.len() <= 1200, "{}", report.len());
                let (first, times) = read(&report);
                let numbered = times.into_iter().enumerate();
                found.extend(numbered.filter_map(|(at, time)| Some((first.wrapping_add(at as u16), time?))));
                report.clear();
            }
        };
        for (step, micros) in packets {
            sequence = sequence.wrapping_add(step);
            now += Duration::from_micros(micros);
            take(&mut arrivals, now);
            arrivals.arrived(sequence, now);
            sent.push((sequence, now));
        }
        take(&mut arrivals, now + INTERVAL);
        prop_assert_eq!(found.len(), sent.len());
        for ((found, at), (sent, exact)) in found.iter().zip(&sent) {
            prop_assert_eq!(found, sent);
            prop_assert!(*at <= *exact && *exact - *at < DELTA, "{:?} {:?}", at, exact);
        }
    }
}
