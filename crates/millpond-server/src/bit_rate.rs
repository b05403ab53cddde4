//! The bit rate of a session, between two looks at its bytes.

use std::time::{Duration, Instant};

/// Least time between two looks.
const LOOK: Duration = Duration::from_secs(2);

/// Bits a second of a session, between two looks.
#[derive(Debug, Default)]
pub(crate) struct BitRate {
    at: Option<Instant>,
    bytes: u64,
    bps: u64,
}

impl BitRate {
    /// Bits a second of a session that began at a time and has sent or received `bytes`, since the look before this one. Looks within
    /// 2 s of each other give the same rate.
    pub(crate) fn look(&mut self, began: Instant, bytes: u64) -> u64 {
        let elapsed = self.at.unwrap_or(began).elapsed();
        if self.at.is_none() || elapsed >= LOOK {
            let bits = bytes.saturating_sub(self.bytes) as f64 * 8.0;
            *self = Self { at: Some(Instant::now()), bytes, bps: (bits / elapsed.as_secs_f64().max(1.0)) as u64 };
        }
        self.bps
    }
}
