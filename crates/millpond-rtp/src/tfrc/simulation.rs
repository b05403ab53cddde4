//! Flows that share a bottleneck, on a virtual clock: rate control beside TCP.

mod tcp;

use super::*;
use crate::rtcp::ReportBlock;
use std::{cmp::Reverse, collections::BinaryHeap, time::Duration};
use tcp::{Growth, Tcp};

const MS: Duration = Duration::from_millis(1);
/// Bytes of a packet on the link.
const PACKET: usize = 1400;
/// Bytes per second of the link: 10 Mbit/s.
const RATE: f64 = 1.25e6;
/// Time from one end to the other, without the queue.
const DELAY: Duration = Duration::from_millis(20);
const ROUND: Duration = Duration::from_millis(5);
/// Bytes per second of the media: 20 Mbit/s.
const MEDIA: f64 = 2.5e6;
/// Time between two sender reports.
const SENDER_REPORTS: Duration = Duration::from_millis(500);
const SSRC: u32 = 7;

/// A link whose queue drops what it has no space for.
struct Link {
    free: Duration,
    /// Longest time that a packet waits.
    queue: Duration,
}

impl Link {
    /// Time at which a packet arrives; `None` where it is dropped.
    fn send(&mut self, now: Duration) -> Option<Duration> {
        let begins = self.free.max(now);
        if begins - now > self.queue {
            return None;
        }
        self.free = begins + Duration::from_secs_f64(PACKET as f64 / RATE);
        Some(self.free + DELAY)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A round of the sending thread.
    Round,
    /// A packet of the controlled flow arrives.
    Packet(u64),
    /// The receiver reports.
    Report,
    /// A report arrives: newest packet, lost packets, the last sender report and the time since it.
    Reported(u64, u64, (u32, Duration)),
    /// A sender report is sent.
    SenderReport(u32),
    /// A sender report arrives.
    SenderReported(u32),
    /// An acknowledgement arrives at a TCP flow.
    Ack(usize, u64),
    /// A TCP flow looks whether nothing was acknowledged for too long.
    Timer(usize),
}

/// A controlled flow that always has packets to send.
struct Controlled {
    control: RateControl,
    sent: u64,
    received: u64,
    newest: u64,
    /// Time between two reports.
    reports: Duration,
    /// The last sender report, and its arrival.
    sender_report: (u32, Duration),
    /// Rates in bytes per second, one for each round.
    rates: Vec<f64>,
}

struct Network {
    now: Duration,
    link: Link,
    events: BinaryHeap<Reverse<(Duration, u64, Event)>>,
    /// Number of events so far: those of one time happen in this order.
    count: u64,
    flow: Controlled,
    tcp: Vec<Tcp>,
    random: u64,
    /// Time at which the last acknowledgement arrives, flow by flow.
    acknowledged: Vec<Duration>,
}

impl Network {
    fn new(tcp: usize, growth: Growth, reports: Duration, queue: Duration) -> Self {
        let control = RateControl::new(Duration::ZERO);
        let flow = Controlled {
            control,
            sent: 0,
            received: 0,
            newest: 0,
            reports,
            sender_report: (0, Duration::ZERO),
            rates: Vec::new(),
        };
        let link = Link { free: Duration::ZERO, queue };
        let acknowledged = vec![Duration::ZERO; tcp];
        let tcp = (0..tcp).map(|_| Tcp::new(growth)).collect();
        let mut network =
            Self { now: Duration::ZERO, link, events: BinaryHeap::new(), count: 0, flow, tcp, random: 1, acknowledged };
        network.at(MS, Event::Round);
        network.at(MS, Event::Report);
        network.at(2 * MS, Event::SenderReport(1));
        for place in 0..network.tcp.len() {
            // One after another.
            network.at(MS * (100 * place as u32 + 7), Event::Timer(place));
        }
        network
    }

    fn at(&mut self, time: Duration, event: Event) {
        self.count += 1;
        self.events.push(Reverse((time, self.count, event)));
    }

    fn run(&mut self, until: Duration) {
        while self.events.peek().is_some_and(|next| next.0.0 < until) {
            let Some(Reverse((time, _, event))) = self.events.pop() else { return };
            self.now = time;
            self.happen(event);
        }
    }

    fn happen(&mut self, event: Event) {
        let now = self.now;
        match event {
            Event::Round => self.round(),
            Event::Packet(number) => {
                self.flow.received += 1;
                self.flow.newest = number;
            }
            Event::Report => {
                let Controlled { received, newest, reports, sender_report: (ntp, at), .. } = self.flow;
                if received > 0 {
                    self.at(now + DELAY, Event::Reported(newest, newest + 1 - received, (ntp, now - at)));
                }
                self.at(now + reports, Event::Report);
            }
            Event::SenderReport(ntp) => {
                self.flow.control.reported(SSRC, ntp, now);
                if let Some(arrival) = self.link.send(now) {
                    self.at(arrival, Event::SenderReported(ntp));
                }
                self.at(now + SENDER_REPORTS, Event::SenderReport(ntp + 1));
            }
            Event::SenderReported(ntp) => self.flow.sender_report = (ntp, now),
            Event::Reported(newest, lost, (ntp, held)) => {
                let block = ReportBlock {
                    ssrc: SSRC,
                    fraction_lost: 0,
                    lost: lost as i32,
                    highest: newest as u32,
                    jitter: 0,
                    last_report: ntp,
                    delay: (held.as_secs_f64() * 65_536.0) as u32,
                };
                self.flow.control.report(&block, now);
            }
            Event::Ack(place, number) => {
                self.tcp[place].acknowledge(number, now);
                self.send(place);
            }
            Event::Timer(place) => {
                self.tcp[place].check(now);
                self.send(place);
                self.at(now + 50 * MS, Event::Timer(place));
            }
        }
    }

    fn round(&mut self) {
        let now = self.now;
        self.flow.control.refresh(Duration::ZERO, now);
        let due = (MEDIA * ROUND.as_secs_f64() / PACKET as f64) as usize;
        let packets = self.flow.control.packets();
        for _ in 0..packets.min(due) {
            let number = self.flow.sent;
            self.flow.control.sent(SSRC, number as u16, 1, PACKET, now);
            self.flow.sent += 1;
            if let Some(arrival) = self.link.send(now) {
                self.at(arrival, Event::Packet(number));
            }
        }
        if packets < due {
            self.flow.control.limited(now);
        }
        self.flow.rates.push(self.flow.control.rate());
        self.at(now + ROUND, Event::Round);
    }

    fn send(&mut self, place: usize) {
        while self.tcp[place].may_send() {
            let number = self.tcp[place].send(self.now);
            if let Some(arrival) = self.link.send(self.now) {
                // Without jitter, packets of TCP would arrive in step with those that leave the queue, and never find it full.
                self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let jitter = Duration::from_nanos((self.random >> 33) % 2_000_000);
                let time = (arrival + DELAY + jitter).max(self.acknowledged[place]);
                self.acknowledged[place] = time;
                self.at(time, Event::Ack(place, number));
            }
        }
    }

    /// Rate of the controlled flow over the mean of the TCP flows, from 10 s on.
    fn share(&mut self, length: Duration) -> f64 {
        self.run(MS * 10_000);
        let before = (self.flow.received, self.delivered());
        self.run(length);
        let (received, delivered) = (self.flow.received - before.0, self.delivered() - before.1);
        received as f64 / (delivered as f64 / self.tcp.len() as f64)
    }

    fn delivered(&self) -> u64 {
        self.tcp.iter().map(|tcp| tcp.delivered).sum()
    }
}

#[test]
fn its_share_beside_tcp_is_fair() {
    let reports = 50 * MS;
    for growth in [Growth::Reno, Growth::Cubic] {
        for tcp in [1, 4] {
            for queue in [50 * MS, 100 * MS] {
                let mut network = Network::new(tcp, growth, reports, queue);
                let share = network.share(MS * 120_000);
                assert!((0.5..=1.5).contains(&share), "{growth:?} x{tcp} {queue:?}: {share}");
            }
        }
    }
}

#[test]
fn alone_it_fills_the_link_and_is_smooth() {
    let mut network = Network::new(0, Growth::Reno, 50 * MS, 50 * MS);
    network.run(MS * 60_000);
    let used = network.flow.received as f64 * PACKET as f64 / (60.0 * RATE);
    assert!(used > 0.8, "{used}");
    let later = &network.flow.rates[network.flow.rates.len() / 3..];
    let mean = later.iter().sum::<f64>() / later.len() as f64;
    let variance = later.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / later.len() as f64;
    assert!(variance.sqrt() / mean < 0.25, "{mean} {variance}");
}
