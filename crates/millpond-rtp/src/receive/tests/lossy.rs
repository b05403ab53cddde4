//! A sender that retransmits, behind a network that loses, delays and reorders: on a virtual clock.

use super::*;
use crate::{feedback::GenericNack, rtcp, rtx, sdp_reader::RetransmissionOffer};
use std::collections::BTreeMap;

const REPAIRS: u8 = 98;
const RECEIVER: u32 = 5;

/// A network both ways.
#[derive(Clone, Copy, Debug)]
struct Network {
    /// Time to the other side, in milliseconds.
    delay: u64,
    /// Greatest additional delay.
    jitter: u64,
    /// Lost packets of 1000, both ways.
    loss: u32,
    /// Packets that are lost after a lost one.
    burst: usize,
    /// Whether packets are repeated as they were.
    repeats: bool,
    seed: u64,
}

/// Output of a receiver.
struct Output {
    units: Vec<Unit>,
    /// Time at which each unit came out, in milliseconds.
    times: Vec<u64>,
    receiver: TrackReceiver,
    requests: usize,
}

/// Plays frames of one packet each, `step` milliseconds apart.
fn play(network: Network, frames: u64, step: u64) -> Output {
    let mut random = fastrand::Rng::with_seed(network.seed);
    let mut burst = 0;
    let mut is_lost = move |random: &mut fastrand::Rng| {
        burst = if random.u32(..1000) < network.loss { network.burst } else { usize::saturating_sub(burst, 1) };
        burst > 0
    };
    let delay = |random: &mut fastrand::Rng| network.delay + random.u64(..=network.jitter);
    let offer = RetransmissionOffer {
        payload_type: (!network.repeats).then_some(REPAIRS),
        time: Some(Duration::from_millis(2000)),
    };
    let mut receiver = receiver(Packetizer::Opus, ReorderLimits::UDP).with_retransmission(&offer);
    receiver.requested(Duration::from_millis(2 * network.delay));
    receiver.begin(FIRST);
    // By time and an order of their own: packets to the receiver, and requests to the sender.
    let (mut ahead, mut back) = (BTreeMap::<(u64, u64), Bytes>::new(), BTreeMap::<(u64, u64), GenericNack>::new());
    let (mut order, mut repairs, mut requests) = (0_u64, 0_u16, 0);
    let packet_of = |number: u64| {
        let header = header(FIRST.wrapping_add(number as u16), STEP.wrapping_mul(number as u32));
        (header, number.to_be_bytes())
    };
    let (mut units, mut times) = (Vec::new(), Vec::new());
    for now in 0..frames * step + 5000 {
        if now % step == 0 && now / step < frames {
            let (header, payload) = packet_of(now / step);
            order += 1;
            // The first and last ones arrive: nothing tells of the loss of the last ones.
            if now == 0 || now / step + 20 > frames || !is_lost(&mut random) {
                ahead.insert((now + delay(&mut random), order), packet(header, &payload));
            }
        }
        while let Some(entry) = back.first_entry().filter(|entry| entry.key().0 <= now) {
            let nack = entry.remove();
            assert_eq!((nack.sender, nack.source), (RECEIVER, SSRC));
            for sequence in nack.sequences() {
                let newest = now / step;
                let number = (0..=newest).rev().find(|number| packet_of(*number).0.sequence == sequence).unwrap();
                let (header, payload) = packet_of(number);
                repairs += 1;
                let repair = match network.repeats {
                    true => packet(header, &payload),
                    false => [&rtx::header(header, 99, REPAIRS, repairs)[..], &payload].concat().into(),
                };
                order += 1;
                if !is_lost(&mut random) {
                    ahead.insert((now + delay(&mut random), order), repair);
                }
            }
        }
        let at = Duration::from_millis(now);
        while let Some(entry) = ahead.first_entry().filter(|entry| entry.key().0 <= now) {
            receiver.rtp(&entry.remove(), at, &mut units);
        }
        if receiver.wake().is_some_and(|wake| wake <= at) {
            receiver.tick(at, &mut units);
        }
        if let Some(compound) = receiver.feedback(RECEIVER, "test", at) {
            requests += 1;
            let items = rtcp::parse(&compound).unwrap();
            let [RtcpItem::Nack(nack)] = &items[..] else { panic!("{items:?}") };
            order += 1;
            if !is_lost(&mut random) {
                back.insert((now + delay(&mut random), order), nack.clone());
            }
        }
        assert!(receiver.wake().is_none_or(|wake| wake > at), "{now}");
        times.resize(units.len(), now);
    }
    Output { units, times, receiver, requests }
}

/// Numbers of the frames, which must be in order.
fn numbers(output: &Output) -> Vec<u64> {
    let number = |unit: &Unit| u64::from_be_bytes(unit.bytes[..].try_into().unwrap());
    let numbers: Vec<u64> = output.units.iter().map(number).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b));
    numbers
}

const FAR: Network = Network { delay: 100, jitter: 0, loss: 10, burst: 1, repeats: false, seed: 1 };

#[test]
fn a_network_without_loss_adds_no_delay() {
    let output = play(Network { loss: 0, ..FAR }, 2000, 7);
    assert_eq!((numbers(&output).len(), output.requests), (2000, 0));
    assert!(output.times.iter().zip(0..).all(|(time, number)| *time == 7 * number + 100));
}

#[test]
fn nearly_every_packet_is_repaired() {
    for (delay, repeats) in [(0, false), (5, true), (50, false), (100, false), (100, true), (250, false)] {
        let output = play(Network { delay, repeats, ..FAR }, 20_000, 7);
        let frames = numbers(&output);
        let counts = output.receiver.repairs();
        assert!(frames.len() >= 19_995, "{delay}: {} {counts:?}", frames.len());
        assert!((150..300).contains(&counts.asked) && counts.repaired + counts.too_late == counts.asked, "{counts:?}");
        assert_eq!(output.receiver.skipped(), 20_000 - frames.len() as u64);
    }
}

#[test]
fn the_output_is_smooth_from_the_first_loss_on() {
    let output = play(FAR, 20_000, 7);
    // Frames that come out in each second, after the first one that was delayed.
    let first = output.times.iter().zip(0..).position(|(time, number)| *time > 7 * number + 100).unwrap();
    let begin = output.times[first + 100] / 1000 + 1;
    let counts = (begin..130).map(|second| output.times.iter().filter(|time| **time / 1000 == second).count() as f64);
    let counts: Vec<f64> = counts.collect();
    let mean = counts.iter().sum::<f64>() / counts.len() as f64;
    let variance = counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / counts.len() as f64;
    assert!(variance.sqrt() / mean < 0.04, "{} of {mean}", variance.sqrt());
    // Never longer than repairs take.
    let longest = output.times.iter().zip(0..).map(|(time, number)| time - 7 * number - 100).max().unwrap();
    assert!((200..800).contains(&longest), "{longest}");
}

#[test]
fn a_sender_that_never_answers_costs_little() {
    let mut receiver = receiver(Packetizer::Opus, ReorderLimits::UDP)
        .with_retransmission(&RetransmissionOffer { payload_type: Some(REPAIRS), time: None });
    let (mut units, mut last) = (Vec::new(), 0);
    for number in 0..60_u16 {
        let at = Duration::from_secs(number.into());
        receiver.rtp(&packet(header(number * 2, 0), b"a"), at, &mut units);
        while let Some(wake) = receiver.wake().filter(|wake| *wake < at + Duration::from_secs(1)) {
            receiver.tick(wake, &mut units);
            last += usize::from(receiver.feedback(1, "test", wake).is_some());
        }
    }
    assert_eq!(units.len(), 60);
    assert_eq!((receiver.repairs().asked, receiver.repairs().repaired), (20, 0));
    assert!(last <= 60, "{last}");
}

#[test]
fn unasked_retransmissions_are_ignored() {
    let mut receiver = receiver(Packetizer::Opus, ReorderLimits::UDP)
        .with_retransmission(&RetransmissionOffer { payload_type: Some(REPAIRS), time: None });
    let mut units = Vec::new();
    let now = Duration::ZERO;
    receiver.rtp(&packet(header(1, 0), b"a"), now, &mut units);
    receiver.rtp(&packet(header(3, 0), b"c"), now, &mut units);
    for (original, payload) in [(2, &b"x"[..]), (4, b"x"), (1, b"x"), (30_000, b"x"), (2, b"")] {
        let bytes = [&rtx::header(header(original, 0), 99, REPAIRS, 1)[..], payload].concat();
        receiver.rtp(&bytes.into(), now, &mut units);
    }
    receiver.rtp(&packet(Header { payload_type: REPAIRS, ..header(0, 0) }, b"x"), now, &mut units);
    assert_eq!((receiver.counts().late, receiver.counts().other_payload, units.len()), (5, 1, 1));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn frames_leave_once_and_in_order_whatever_is_lost(
        delay in 0..400_u64, jitter in 0..60_u64, loss in 0..500_u32, burst in 1..20_usize, repeats: bool, seed: u64,
    ) {
        let network = Network { delay, jitter, loss, burst, repeats, seed };
        let output = play(network, 600, 5);
        let frames = numbers(&output);
        prop_assert!(frames.len() as u64 + output.receiver.skipped() == 600, "{} {}", frames.len(), output.receiver.skipped());
        let counts = output.receiver.repairs();
        prop_assert_eq!(counts.asked, counts.repaired + counts.too_late);
        prop_assert_eq!(output.receiver.wake(), None);
        // Two seconds after the loss is noticed, which is when it is over.
        let held = output.times.iter().zip(&frames).map(|(time, number)| time.saturating_sub(5 * number + delay + jitter));
        prop_assert!(held.max().unwrap_or(0) <= 5000);
    }
}
