use std::time::Duration;

/// The faults of one direction. The default has none.
///
/// As text: comma-separated `NAME=VALUE`, such as `delay=50ms,loss=1%,rate=4Mbit,queue=100ms`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Impairments {
    /// Delay of each packet (`delay`).
    pub delay: Duration,
    /// Greatest deviation from `delay`, at most `delay` (`jitter`). The deviation is uniform, but packets keep their order.
    pub jitter: Duration,
    /// Probability from 0 to 1 that a packet is lost (`loss`).
    pub loss: f64,
    /// Loss in bursts (`burst`).
    pub burst: Option<Burst>,
    /// Probability from 0 to 1 that a packet is held back (`reorder`), so that later ones overtake it.
    pub reorder: f64,
    /// Extra delay of a packet that is held back (`reorder-by`).
    pub reorder_by: Duration,
    /// Probability from 0 to 1 that a packet is delivered twice (`duplicate`).
    pub duplicate: f64,
    /// Rate of the bottleneck, in bits per second (`rate`). IP headers count. `None` is no limit.
    pub rate: Option<u64>,
    /// Limit of the queue before the bottleneck (`queue`). It matters only with a rate.
    pub queue: QueueLimit,
}

impl Default for Impairments {
    fn default() -> Self {
        Self {
            delay: Duration::ZERO,
            jitter: Duration::ZERO,
            loss: 0.0,
            burst: None,
            reorder: 0.0,
            reorder_by: Duration::from_millis(10),
            duplicate: 0.0,
            rate: None,
            queue: QueueLimit::Time(Duration::from_millis(100)),
        }
    }
}

impl Impairments {
    /// The delay with its jitter. `offset` from 0 to 1 is the place between the least and the greatest delay.
    pub(super) fn delay_at(&self, offset: f64) -> Duration {
        let jitter = self.jitter.min(self.delay);
        (self.delay - jitter) + jitter.mul_f64(2.0 * offset)
    }
}

/// The model of Gilbert and Elliott: a good and a bad state, which change at random before each packet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Burst {
    /// Probability from 0 to 1 of entering the bad state before a packet. In the long run, `enter / (enter + leave)` of all packets
    /// meet the bad state.
    pub enter: f64,
    /// Probability from 0 to 1 of leaving the bad state before a packet. A burst has 1/`leave` packets on average.
    pub leave: f64,
    /// Probability from 0 to 1 that a packet is lost in the bad state.
    pub loss: f64,
}

/// The greatest length of a queue. A packet that would exceed it is dropped, except in an empty queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueLimit {
    /// Bytes that wait, the packet in transmission included.
    Bytes(u64),
    /// Time until the last packet has left.
    Time(Duration),
}
