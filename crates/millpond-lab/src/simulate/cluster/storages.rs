//! Throttled storages, as the paper simulated its disks.

use fastrand::Rng;
use std::time::Duration;

/// Time of a disk before the first byte: least and most.
const SEEK: (f64, f64) = (0.005, 0.025);

/// Storage nodes that hold striping units in turn. Each serves one request after the other.
#[derive(Debug)]
pub(super) struct Storages {
    /// When each of them has nothing to do.
    free: Vec<Duration>,
    /// Bytes a second of each.
    rate: f64,
}

impl Storages {
    pub(super) fn new(count: usize, rate: f64) -> Self {
        Self { free: vec![Duration::ZERO; count.max(1)], rate }
    }

    /// Requests a unit of an object. Returns when it has arrived.
    pub(super) fn read(&mut self, object: usize, unit: u64, bytes: u64, now: Duration, rng: &mut Rng) -> Duration {
        let at = (object as u64).wrapping_add(unit) % self.free.len() as u64;
        let free = &mut self.free[at as usize];
        let seek = SEEK.0 + (SEEK.1 - SEEK.0) * rng.f64();
        *free = now.max(*free) + Duration::from_secs_f64(seek + bytes as f64 / self.rate);
        *free
    }
}
