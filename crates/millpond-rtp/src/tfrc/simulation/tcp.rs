//! A model of TCP: its window, in packets. Losses are found as SACK finds them, and new data stands for what is sent again.

use std::{collections::VecDeque, time::Duration};

/// Longest time without an acknowledgement: the least RTO of Linux with a queue of 100 ms.
const TIMEOUT: Duration = Duration::from_millis(400);

/// How the window grows and shrinks.
#[derive(Clone, Copy, Debug)]
pub(super) enum Growth {
    /// RFC 5681.
    Reno,
    /// RFC 9438, with its Reno-friendly region.
    Cubic,
}

pub(super) struct Tcp {
    growth: Growth,
    window: f64,
    threshold: f64,
    sent: u64,
    /// Packets on their way: numbers and times of sending.
    flying: VecDeque<(u64, Duration)>,
    /// Losses before this number belong to the last reduction.
    recovery: u64,
    round_trip: f64,
    heard: Duration,
    /// Cubic: W_max, the time of the last reduction, and the window that Reno would have.
    largest: f64,
    reduced: Duration,
    reno: f64,
    pub(super) delivered: u64,
}

impl Tcp {
    pub(super) fn new(growth: Growth) -> Self {
        Self {
            growth,
            window: 10.0,
            threshold: f64::INFINITY,
            sent: 0,
            flying: VecDeque::new(),
            recovery: 0,
            round_trip: 0.1,
            heard: Duration::ZERO,
            largest: 0.0,
            reduced: Duration::ZERO,
            reno: 0.0,
            delivered: 0,
        }
    }

    pub(super) fn may_send(&self) -> bool {
        (self.flying.len() as f64) < self.window.floor().max(1.0)
    }

    /// Sends a packet and returns its number.
    pub(super) fn send(&mut self, now: Duration) -> u64 {
        self.flying.push_back((self.sent, now));
        self.sent += 1;
        self.sent - 1
    }

    pub(super) fn acknowledge(&mut self, number: u64, now: Duration) {
        self.heard = now;
        // The link keeps the order: what was sent before is lost.
        while let Some((lost, _)) = self.flying.front().copied().filter(|first| first.0 < number) {
            self.flying.pop_front();
            self.lose(lost, now);
        }
        let Some((_, at)) = self.flying.pop_front_if(|first| first.0 == number) else { return };
        self.delivered += 1;
        self.round_trip += ((now - at).as_secs_f64() - self.round_trip) / 8.0;
        if self.window < self.threshold {
            self.window += 1.0;
            return;
        }
        match self.growth {
            Growth::Reno => self.window += 1.0 / self.window,
            Growth::Cubic => self.grow_cubic(now),
        }
    }

    fn grow_cubic(&mut self, now: Duration) {
        let offset = (self.largest * 0.3 / 0.4).cbrt();
        let time = (now - self.reduced).as_secs_f64() + self.round_trip;
        let target = (0.4 * (time - offset).powi(3) + self.largest).clamp(self.window, 1.5 * self.window);
        self.reno += 3.0 * 0.3 / 1.7 / self.window;
        self.window = (self.window + (target - self.window) / self.window).max(self.reno);
    }

    fn lose(&mut self, number: u64, now: Duration) {
        if number < self.recovery {
            return;
        }
        self.recovery = self.sent;
        self.largest = if self.window < self.largest { 0.85 * self.window } else { self.window };
        self.window = (self.window * if matches!(self.growth, Growth::Reno) { 0.5 } else { 0.7 }).max(2.0);
        (self.threshold, self.reno, self.reduced) = (self.window, self.window, now);
    }

    /// The retransmission timer.
    pub(super) fn check(&mut self, now: Duration) {
        if !self.flying.is_empty() && now - self.heard > TIMEOUT.max(Duration::from_secs_f64(4.0 * self.round_trip)) {
            self.flying.clear();
            self.heard = now;
            self.threshold = (self.window / 2.0).max(2.0);
            (self.window, self.recovery, self.reduced) = (1.0, self.sent, now);
        }
    }
}
