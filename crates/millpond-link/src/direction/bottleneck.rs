use super::{Impairments, QueueLimit};
use std::time::Duration;

/// A transmitter of limited rate with a queue before it, which drops arriving packets when it is full (drop-tail).
#[derive(Debug, Default)]
pub(super) struct Bottleneck {
    /// The time at which everything in the queue has been sent.
    idle_from: Duration,
}

impl Bottleneck {
    /// Returns the time at which a packet has been sent, or `None` if the queue is full.
    pub(super) fn send(&mut self, now: Duration, bytes: usize, impairments: &Impairments) -> Option<Duration> {
        let Some(rate) = impairments.rate else { return Some(now) };
        let takes = duration(bytes as u64, rate);
        let waits = self.idle_from.saturating_sub(now);
        let longest = match impairments.queue {
            QueueLimit::Time(limit) => limit,
            QueueLimit::Bytes(limit) => duration(limit, rate),
        };
        if !waits.is_zero() && waits + takes > longest {
            return None;
        }
        self.idle_from = now + waits + takes;
        Some(self.idle_from)
    }
}

/// The time that `bytes` take at `rate` bits per second. A rate of 0 counts as 1.
fn duration(bytes: u64, rate: u64) -> Duration {
    let nanoseconds = u128::from(bytes) * 8 * 1_000_000_000 / u128::from(rate.max(1));
    Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
}
