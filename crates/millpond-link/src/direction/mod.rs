//! One direction of a link: what happens to each packet, and when it is delivered.
//!
//! A packet passes these stages in this order: loss, duplication, the queue of the bottleneck, delay with jitter and reordering.
//! Each stage has random numbers of its own and draws equally many for every packet. So the seed and a packet's number decide
//! whether it is lost, whatever its time and whatever the other stages are set to.

#![forbid(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types)]

mod bottleneck;
mod impairments;
mod loss;
#[cfg(test)]
mod tests;
mod text;

pub use impairments::{Burst, Impairments, QueueLimit};
pub use text::TextError;

use bottleneck::Bottleneck;
use fastrand::Rng;
use loss::Loss;
use std::time::Duration;

/// Fate of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// The packet is delivered.
    Delivered {
        /// The time of delivery, on the clock of [`Direction::arrive`].
        at: Duration,
        /// The time at which a duplicate is delivered.
        copy: Option<Duration>,
    },
    /// The packet is not delivered.
    Dropped(Reason),
}

/// Why a packet is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// Random loss ([`Impairments::loss`]).
    Loss,
    /// Loss in the bad state ([`Impairments::burst`]).
    Burst,
    /// The queue of the bottleneck is full ([`Impairments::queue`]).
    Queue,
}

/// Counters of one direction, in packets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Packets that arrived.
    pub arrived: u64,
    /// Packets that are delivered, without duplicates.
    pub delivered: u64,
    /// Packets lost at random.
    pub lost: u64,
    /// Packets lost in bursts.
    pub lost_in_bursts: u64,
    /// Packets that found the queue full.
    pub queue_full: u64,
    /// Duplicates that are delivered.
    pub duplicates: u64,
    /// Packets held back.
    pub held_back: u64,
}

/// The state of one direction.
///
/// Call [`arrive`](Self::arrive) for each packet, with times that never decrease. Packets must be delivered in the order of their
/// times of delivery, and those of equal times in the order of arrival.
#[derive(Debug)]
pub struct Direction {
    impairments: Impairments,
    loss: Loss,
    duplication: Rng,
    bottleneck: Bottleneck,
    jitter: Rng,
    reordering: Rng,
    /// The latest time of delivery of a packet that was not held back.
    newest: Duration,
    tally: Tally,
}

impl Direction {
    /// A direction with an empty queue.
    pub fn new(impairments: Impairments, seed: u64) -> Self {
        let mut seeds = Rng::with_seed(seed);
        Self {
            impairments,
            loss: Loss::new(seeds.fork()),
            duplication: seeds.fork(),
            bottleneck: Bottleneck::default(),
            jitter: seeds.fork(),
            reordering: seeds.fork(),
            newest: Duration::ZERO,
            tally: Tally::default(),
        }
    }

    /// Decides about a packet that arrives at `now` with a length of `bytes`, IP header included.
    pub fn arrive(&mut self, now: Duration, bytes: usize) -> Fate {
        self.tally.arrived += 1;
        let reason = self.loss.next(&self.impairments);
        let is_doubled = self.duplication.f64() < self.impairments.duplicate;
        let offset = self.jitter.f64();
        let is_held_back = self.reordering.f64() < self.impairments.reorder;
        if let Some(reason) = reason {
            return self.drop(reason);
        }
        let Some(sent) = self.bottleneck.send(now, bytes, &self.impairments) else { return self.drop(Reason::Queue) };
        self.tally.delivered += 1;
        let at = self.delivery(sent, offset, is_held_back);
        let copy = if is_doubled { self.copy(now, bytes, offset, is_held_back) } else { None };
        Fate::Delivered { at, copy }
    }

    /// Replaces the impairments. Packets that were decided about keep their times.
    pub fn change(&mut self, impairments: Impairments) {
        self.impairments = impairments;
    }

    /// The counters since the start.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    fn copy(&mut self, now: Duration, bytes: usize, offset: f64, is_held_back: bool) -> Option<Duration> {
        let sent = self.bottleneck.send(now, bytes, &self.impairments)?;
        self.tally.duplicates += 1;
        let at = sent + self.impairments.delay_at(offset);
        Some(if is_held_back { at + self.impairments.reorder_by } else { at.max(self.newest) })
    }

    /// The time of delivery of a packet that leaves the bottleneck at `sent`. `offset`, from 0 to 1, is its place in the jitter.
    fn delivery(&mut self, sent: Duration, offset: f64, is_held_back: bool) -> Duration {
        let at = sent + self.impairments.delay_at(offset);
        if is_held_back {
            self.tally.held_back += 1;
            return at + self.impairments.reorder_by;
        }
        // Jitter alone never reorders: on real paths it comes from queues, which keep the order.
        self.newest = self.newest.max(at);
        self.newest
    }

    fn drop(&mut self, reason: Reason) -> Fate {
        let counter = match reason {
            Reason::Loss => &mut self.tally.lost,
            Reason::Burst => &mut self.tally.lost_in_bursts,
            Reason::Queue => &mut self.tally.queue_full,
        };
        *counter += 1;
        Fate::Dropped(reason)
    }
}
