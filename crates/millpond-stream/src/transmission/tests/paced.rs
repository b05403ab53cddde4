//! Rate control of a sending thread beside a simulated bottleneck.

use super::*;
use millpond_rtp::feedback::GenericNack;
use std::collections::{BTreeMap, VecDeque};

/// Bytes of a picture: eleven packets, 350 kB/s.
const PICTURE: usize = 14_000;
/// Time that a packet may wait at the bottleneck.
const QUEUE: Duration = Duration::from_millis(100);
/// Round trip without the queue.
const ROUND_TRIP: Duration = Duration::from_millis(40);

/// A network of a rate, and the receiver behind it.
struct Network {
    /// Bytes per second.
    rate: f64,
    free: Duration,
    /// Packets of `Simulation::got` that were looked at.
    looked: usize,
    arriving: VecDeque<(Duration, u16)>,
    received: u32,
    newest: u16,
    first: u16,
}

impl Network {
    fn new(rate: f64) -> Self {
        let free = Duration::ZERO;
        Self { rate, free, looked: 0, arriving: VecDeque::new(), received: 0, newest: 0, first: 0 }
    }

    /// Lets a time go by in steps, after each of which the receiver reports where it is `reports` since it last did.
    fn run(&mut self, net: &mut Simulation, time: Duration, reports: Duration) {
        let (end, mut due) = (net.gone + time, net.gone + reports);
        while net.gone < end {
            net.run(20 * MS);
            for (at, sequence, ..) in &net.got[self.looked..] {
                let begins = self.free.max(*at);
                if begins - *at <= QUEUE {
                    self.free = begins + Duration::from_secs_f64(1400.0 / self.rate);
                    self.arriving.push_back((self.free + ROUND_TRIP / 2, *sequence));
                }
            }
            self.looked = net.got.len();
            while let Some((_, sequence)) = self.arriving.pop_front_if(|(at, _)| *at <= net.gone) {
                (self.received, self.newest) = (self.received + 1, sequence);
            }
            if net.gone >= due && self.received > 0 {
                due = net.gone + reports;
                self.report(net);
            }
        }
    }

    fn report(&mut self, net: &mut Simulation) {
        self.first = net.got[0].1;
        let sender = net.reports.iter().rev().find_map(|(at, report)| match report {
            RtcpItem::Sender(report) if *at + ROUND_TRIP < net.gone => Some((*at, report.ntp)),
            _ => None,
        });
        let (at, ntp) = sender.unwrap_or_default();
        let held = net.gone.saturating_sub(at + ROUND_TRIP);
        let expected = u32::from(self.newest.wrapping_sub(self.first)) + 1;
        let reception = ReportBlock {
            ssrc: SSRC,
            fraction_lost: 0,
            lost: expected as i32 - self.received as i32,
            highest: self.newest.into(),
            jitter: 0,
            last_report: (ntp >> 16) as u32,
            delay: (held.as_secs_f64() * 65_536.0) as u32,
        };
        let now = net.now();
        net.rounds.hear(&mut rtcp::receiver_report(99, &[reception], "viewer"), receiver_at(5001), now);
    }
}

/// A session with rate control, of pictures of a minute.
fn paced() -> Simulation {
    let mut net = Simulation::new();
    net.pace = RateRule::Tfrc.pace(net.start);
    net.play(vec![track(udp())], Duration::ZERO, Lateness::None);
    net.load(0..1500, PICTURE);
    net
}

/// Pictures that were sent whole, with the times of their last packets.
fn whole(net: &Simulation) -> BTreeMap<u32, Duration> {
    let first = net.got[0].2;
    let ends = net.got.iter().filter(|got| got.3);
    ends.map(|got| (got.2.wrapping_sub(first) / 3600, got.0)).collect()
}

#[test]
fn a_viewer_whose_network_is_wide_enough_gets_everything_in_time() {
    for reports in [50 * MS, 1000 * MS, 5000 * MS, 100_000 * MS] {
        let mut net = paced();
        // 800 kB/s. Requests come every 25 s, whether or not reports do.
        let mut network = Network::new(8e5);
        for second in (0..50).step_by(25) {
            net.progress.set_heard(second * 1000);
            network.run(&mut net, 25_000 * MS, reports);
        }
        let whole = whole(&net);
        assert!(whole.len() >= 1249, "{reports:?}: {}", whole.len());
        let late = whole.iter().map(|(number, at)| *at - INTERVAL * *number).max().unwrap();
        assert!(late <= 100 * MS, "{reports:?}: {late:?}");
        assert_eq!(net.count(|c| &c.dropped_frames) + net.count(|c| &c.held_frames), 0, "{reports:?}");
    }
}

#[test]
fn a_viewer_whose_network_is_too_narrow_loses_the_ends_of_groups() {
    let mut net = paced();
    // A bit more than half of the stream.
    let mut network = Network::new(2e5);
    network.run(&mut net, 59_000 * MS, 100 * MS);
    let (held, whole) = (net.count(|c| &c.held_frames), whole(&net));
    assert!(held > 300 && whole.len() > 300, "{held} {}", whole.len());
    for (number, at) in whole.range(250..) {
        assert!(number % KEYS == 0 || whole.contains_key(&(number - 1)), "{number} can't be decoded");
        assert!(*at <= INTERVAL * *number + 2000 * MS, "{number}: {at:?}");
    }
    // From 10 s on little is lost, and much of the link is used.
    let before = net.got.iter().filter(|got| got.0 < 10_000 * MS).count();
    let rate = (net.got.len() - before) as f64 * 1400.0 / 49.0;
    assert!((1e5..2.2e5).contains(&rate), "{rate}");
    assert!(net.count(|c| &c.loss_events) > 5);
    assert_eq!(net.count(|c| &c.lagging_frames), 0, "the thread was in time");
}

#[test]
fn a_pause_changes_nothing_of_the_rate() {
    let mut net = paced();
    let mut network = Network::new(2e5);
    network.run(&mut net, 20_000 * MS, 100 * MS);
    let Stopped { tracks, pace, .. } = net.stop();
    let sent = net.got.len();
    net.pace = pace;
    net.play(tracks, INTERVAL * 1000, Lateness::None);
    net.load(1000..1500, PICTURE);
    network.run(&mut net, 10_000 * MS, 100 * MS);
    let rate = (net.got.len() - sent) as f64 * 1400.0 / 10.0;
    assert!(rate < 2.5e5, "{rate}");
}

#[test]
fn a_request_for_a_lost_packet_is_a_loss_event_at_once() {
    let mut net = paced();
    let mut network = Network::new(8e5);
    network.run(&mut net, 2200 * MS, 500 * MS);
    let (sequence, now) = (net.got[net.got.len() - 5].1, net.now());
    let mut compound = rtcp::receiver_report(99, &[], "viewer");
    GenericNack::new(99, SSRC, [sequence]).append_to(&mut compound);
    for _ in 0..2 {
        net.rounds.hear(&mut compound, receiver_at(5001), now);
    }
    assert_eq!(net.count(|c| &c.loss_events), 1);
}

#[test]
fn reports_and_requests_of_strangers_change_nothing() {
    let mut net = paced();
    let mut network = Network::new(8e5);
    network.run(&mut net, 2200 * MS, 500 * MS);
    let newest = net.got[net.got.len() - 5].1;
    let loss = |ssrc| ReportBlock {
        ssrc,
        fraction_lost: 255,
        lost: 1000,
        highest: newest.into(),
        jitter: 0,
        last_report: 0,
        delay: 0,
    };
    let stranger = ([192, 0, 2, 9], 5001).into();
    for (ssrc, from) in [(SSRC, stranger), (SSRC + 1, receiver_at(5001))] {
        let mut compound = rtcp::receiver_report(99, &[loss(ssrc)], "liar");
        GenericNack::new(99, ssrc, [newest]).append_to(&mut compound);
        let now = net.now();
        net.rounds.hear(&mut compound, from, now);
    }
    assert_eq!(net.count(|c| &c.loss_events), 0);
    let mut own = rtcp::receiver_report(99, &[loss(SSRC)], "viewer");
    let now = net.now();
    net.rounds.hear(&mut own, receiver_at(5001), now);
    assert!(net.count(|c| &c.loss_events) > 0);
}

#[test]
fn packets_are_repeated_within_the_credit() {
    let mut net = Simulation::new();
    net.pace = RateRule::Tfrc.pace(net.start);
    let mut sender = track(udp());
    sender.keep_packets(127, None);
    net.play(vec![sender], Duration::ZERO, Lateness::None);
    net.load(0..1500, PICTURE);
    // A narrow network: the rate is low, and so is the credit of a round trip.
    let mut network = Network::new(5e4);
    network.run(&mut net, 20_000 * MS, 100 * MS);
    let before = net.got.len();
    let sequences: Vec<u16> = net.got[before - 15..].iter().map(|got| got.1).collect();
    let (mut request, now) = (rtcp::receiver_report(99, &[], "viewer"), net.now());
    GenericNack::new(99, SSRC, sequences).append_to(&mut request);
    net.rounds.hear(&mut request, receiver_at(5001), now);
    let (repeated, refused) = (net.count(|c| &c.repeated_packets), net.count(|c| &c.refused_repeats));
    assert!(repeated > 0 && refused > 0 && repeated + refused == 15, "{repeated} {refused}");
}
