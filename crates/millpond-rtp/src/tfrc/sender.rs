//! The sender: from feedback to the allowed rate (RFC 5348 4).

#[cfg(test)]
mod tests;

use super::{equation::throughput, receive_rates::ReceiveRates};
use std::time::Duration;

/// Bounds of a round trip. Packets leave in rounds of some milliseconds: less cannot be measured.
const ROUND_TRIP: (Duration, Duration) = (Duration::from_millis(1), Duration::from_secs(60));
/// Weight of the old round trip in the average (RFC 5348 4.3, step 2).
const OLD_ROUND_TRIP: f64 = 0.9;
/// The same in the average of square roots (RFC 5348 4.5).
const OLD_ROOT: f64 = 0.9;
/// t_mbi: longest time from one packet to the next in seconds.
const LONGEST_GAP: f64 = 64.0;
/// Highest rate that is allowed: 10 Gbit/s.
const MOST: f64 = 1.25e9;
/// Time to the first feedback: RTCP begins after at most 1.5 intervals of 5 s (RFC 3550 6.3.1).
const FIRST_FEEDBACK: Duration = Duration::from_millis(7500);
/// Longest time between two feedbacks that is believed to be their interval.
const LONGEST_INTERVAL: Duration = Duration::from_secs(30);
/// Bounds of a packet's size.
const PACKET: (f64, f64) = (64.0, 65_535.0);
/// Packet size before the first packet, in bytes.
const FIRST_PACKET: f64 = 1400.0;

/// Feedback of a receiver (RFC 5348 3.2.2).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Feedback {
    /// Round trip, where it was measured.
    pub round_trip: Option<Duration>,
    /// X_recv in bytes per second: rate of the packets that arrived; `None` or 0 while too few were counted.
    pub receive_rate: Option<f64>,
    /// p: loss event rate, from 0 to 1.
    pub loss_event_rate: f64,
    /// Whether it tells of a loss event that earlier feedback did not tell of.
    pub has_new_loss: bool,
    /// Time at which the newest packet that it covers was sent.
    pub covers: Duration,
}

/// The sender's state. It owns no timer: call [`expire`](Self::expire) at the time that [`expires`](Self::expires) gives.
///
/// Before the first feedback the pace of the media is the limit, not the initial window of RFC 5348 4.2: the first report of an
/// RTP receiver may take seconds. Until then a stream would be slower than it plays, whatever the network can carry. For the same
/// reason the first no-feedback timer runs for four intervals of RTCP, not for 2 s.
///
/// Call [`sent`](Self::sent) for packets, [`limited`](Self::limited) whenever the rate holds packets back, and
/// [`feedback`](Self::feedback) for feedback. Then [`rate`](Self::rate) is the allowed rate.
#[derive(Clone, Debug)]
pub struct Sender {
    /// s: average packet size in bytes.
    packet: f64,
    /// X.
    rate: f64,
    /// X_Bps, the result of the equation; infinite before the first loss.
    equation: f64,
    loss_event_rate: f64,
    /// R in seconds.
    round_trip: Option<f64>,
    /// Last sample of R, and the average of the square roots of samples.
    roots: Option<(f64, f64)>,
    received: ReceiveRates,
    /// tld: time at which the rate was doubled last.
    doubled: Option<Duration>,
    /// Time of the last feedback.
    heard: Option<Duration>,
    /// Average time between two feedbacks.
    interval: Duration,
    /// Expiry of the no-feedback timer.
    expires: Duration,
    /// Bytes since the timer was set, and the time at which it was set.
    sent: (f64, Duration),
    /// Times at which the rate held packets back (RFC 5348 8.2.1).
    limited: Limited,
}

/// The times of RFC 5348 8.2.1: NotLimited1, NotLimited2, t_new and t_next.
#[derive(Clone, Copy, Debug, Default)]
struct Limited {
    first: Option<Duration>,
    second: Option<Duration>,
    new: Duration,
    next: Duration,
}

impl Sender {
    /// A sender that begins at `now`.
    #[must_use]
    pub fn new(now: Duration) -> Self {
        let mut sender = Self {
            packet: FIRST_PACKET,
            rate: MOST,
            equation: f64::INFINITY,
            loss_event_rate: 0.0,
            round_trip: None,
            roots: None,
            received: ReceiveRates::default(),
            doubled: None,
            heard: None,
            interval: FIRST_FEEDBACK,
            expires: Duration::ZERO,
            sent: (0.0, now),
            limited: Limited { new: now, next: now, ..Limited::default() },
        };
        sender.set_timer(now);
        sender
    }

    /// X: allowed rate in bytes per second, from one packet in 64 seconds to 10 Gbit/s.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// Rate for the present moment: lower while the round trip is above its average, which keeps queues from oscillating
    /// (RFC 5348 4.5).
    #[must_use]
    pub fn instant_rate(&self) -> f64 {
        let factor = self.roots.map_or(1.0, |(sample, average)| average / sample.sqrt());
        (self.rate * factor).clamp(self.least(), MOST)
    }

    /// R: average round trip; `None` before the first sample.
    #[must_use]
    pub fn round_trip(&self) -> Option<Duration> {
        self.round_trip.map(Duration::from_secs_f64)
    }

    /// s: average packet size in bytes.
    #[must_use]
    pub fn packet_size(&self) -> f64 {
        self.packet
    }

    /// Time at which [`expire`](Self::expire) has to be called.
    #[must_use]
    pub fn expires(&self) -> Duration {
        self.expires
    }

    /// Notes that packets of `bytes` together were sent.
    pub fn sent(&mut self, packets: usize, bytes: usize) {
        if packets == 0 {
            return;
        }
        let size = (bytes as f64 / packets as f64).clamp(PACKET.0, PACKET.1);
        // An average over some 100 packets.
        self.packet += (size - self.packet) * (packets as f64 / 100.0).min(1.0);
        self.sent.0 += bytes as f64;
    }

    /// Notes that the rate holds packets back: the sender is not limited by its data (RFC 5348 8.2.1).
    pub fn limited(&mut self, now: Duration) {
        let Limited { first, second, new, next } = &mut self.limited;
        if first.is_none_or(|at| at <= *new) {
            *first = Some(now);
        } else if second.is_none_or(|at| at <= *next) {
            *second = Some(now);
        }
    }

    /// Notes another sign of life of the receiver, such as a request: it restarts the no-feedback timer.
    pub fn heard(&mut self, now: Duration) {
        self.set_timer(now);
    }

    /// Takes feedback (RFC 5348 4.3).
    pub fn feedback(&mut self, feedback: &Feedback, now: Duration) {
        if let Some(sample) = feedback.round_trip {
            self.sample(clamp(sample).as_secs_f64());
        }
        let loss_event_rate = sane(feedback.loss_event_rate).min(1.0);
        // A rate of 0 is that of the first feedback: none was measured (RFC 5348 4.3).
        let receive_rate = feedback.receive_rate.map(|rate| sane(rate).min(MOST)).filter(|rate| *rate > 0.0);
        let has_more_loss = feedback.has_new_loss || loss_event_rate > self.loss_event_rate;
        let round_trip = self.round_trip_or_default();
        let limit = match (receive_rate, self.is_data_limited(feedback.covers, now), has_more_loss) {
            (None, ..) => 2.0 * self.received.largest(),
            (Some(rate), true, true) => {
                self.received.halve();
                self.received.maximize(0.85 * rate, now);
                self.received.largest()
            }
            (Some(rate), true, false) => {
                self.received.maximize(rate, now);
                2.0 * self.received.largest()
            }
            (Some(rate), false, _) => {
                self.received.update(rate, round_trip, now);
                2.0 * self.received.largest()
            }
        };
        self.loss_event_rate = loss_event_rate;
        self.apply(limit, now);
        if let Some(heard) = self.heard {
            let gap = now.saturating_sub(heard).min(LONGEST_INTERVAL);
            self.interval = (self.interval * 3 + gap) / 4;
        }
        self.heard = Some(now);
        self.set_timer(now);
    }

    /// The no-feedback timer has expired (RFC 5348 4.4).
    pub fn expire(&mut self, now: Duration) {
        let receive_rate = self.received.largest();
        let recover = self.window() / self.round_trip_or_default().as_secs_f64();
        let is_slow = if self.loss_event_rate > 0.0 { receive_rate < recover } else { self.rate < 2.0 * recover };
        let is_idle = self.sent.0 == 0.0;
        if is_idle && is_slow && self.heard.is_some() {
            // Little may be sent after the pause.
        } else if self.loss_event_rate == 0.0 {
            // Without any feedback the rate may be above all that was ever sent.
            let elapsed = now.saturating_sub(self.sent.1).as_secs_f64().max(0.1);
            let used = if is_idle { self.rate } else { self.rate.min(2.0 * self.sent.0 / elapsed) };
            self.rate = self.bounded(used / 2.0);
        } else {
            let timer_limit = if self.equation > 2.0 * receive_rate { receive_rate } else { self.equation / 2.0 };
            self.received.replace(timer_limit.max(self.least()) / 2.0, now);
            self.apply(2.0 * self.received.largest(), now);
        }
        self.set_timer(now);
    }

    /// Step 4 of RFC 5348 4.3: the rate by the equation, or by slow start.
    fn apply(&mut self, limit: f64, now: Duration) {
        let round_trip = self.round_trip_or_default();
        if self.loss_event_rate > 0.0 {
            self.equation = throughput(self.packet, round_trip, self.loss_event_rate);
            self.rate = self.bounded(self.equation.min(limit));
        } else if self.doubled.is_none_or(|at| now.saturating_sub(at) >= round_trip) {
            self.equation = f64::INFINITY;
            let initial = self.window() / round_trip.as_secs_f64();
            self.rate = self.bounded((2.0 * self.rate).min(limit).max(initial));
            self.doubled = Some(now);
        }
    }

    fn sample(&mut self, sample: f64) {
        self.round_trip = Some(self.round_trip.map_or(sample, |old| mix(old, sample, OLD_ROUND_TRIP)));
        let root = sample.sqrt();
        self.roots = Some((sample, self.roots.map_or(root, |(_, old)| mix(old, root, OLD_ROOT))));
    }

    /// Whether the data limited the sender all the time that feedback covers (RFC 5348 8.2.1). That time begins where the last
    /// feedback ended, not one round trip ago: reports cover all packets since the last one.
    fn is_data_limited(&mut self, covers: Duration, now: Duration) -> bool {
        let Limited { first, second, new, next } = &mut self.limited;
        let old = std::mem::replace(new, covers.min(now));
        *next = now;
        let lies_within = |at: &Option<Duration>| at.is_some_and(|at| old < at && at <= *new);
        let is_limited = lies_within(first) || lies_within(second);
        if first.is_some_and(|at| at <= *new) && second.is_some_and(|at| at > *new) {
            *first = *second;
        }
        !is_limited
    }

    /// W_init: bytes of the initial window (RFC 3390).
    fn window(&self) -> f64 {
        (4.0 * self.packet).min((2.0 * self.packet).max(4380.0))
    }

    /// The round trip; half a second before it is known (RFC 5348 4.2 allows a guess that is not too low).
    fn round_trip_or_default(&self) -> Duration {
        Duration::from_secs_f64(self.round_trip.unwrap_or(0.5))
    }

    fn least(&self) -> f64 {
        self.packet / LONGEST_GAP
    }

    fn bounded(&self, rate: f64) -> f64 {
        rate.clamp(self.least(), MOST)
    }

    /// Sets the no-feedback timer to max(4 R, 2 s / X), or to four intervals of feedback where it comes less often than that.
    fn set_timer(&mut self, now: Duration) {
        let round_trip = self.round_trip_or_default();
        let packets = Duration::from_secs_f64(2.0 * self.packet / self.rate);
        self.expires = now.saturating_add((4 * round_trip.max(self.interval)).max(packets));
        self.sent = (0.0, now);
    }
}

fn clamp(round_trip: Duration) -> Duration {
    round_trip.clamp(ROUND_TRIP.0, ROUND_TRIP.1)
}

fn mix(old: f64, new: f64, weight: f64) -> f64 {
    weight * old + (1.0 - weight) * new
}

/// A number of 0 or more.
fn sane(value: f64) -> f64 {
    // NaN becomes 0.
    value.max(0.0)
}
