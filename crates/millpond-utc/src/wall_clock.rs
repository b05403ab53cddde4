//! A wall clock with a correction.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

/// A wall clock, corrected by its difference to the clocks of other machines. Its clones are one clock.
#[derive(Clone)]
pub struct WallClock {
    read: Arc<dyn Fn() -> Duration + Send + Sync>,
    /// Milliseconds that are added.
    correction: Arc<AtomicI64>,
}

impl WallClock {
    /// The clock of this machine, without a correction.
    #[must_use]
    pub fn system() -> Self {
        Self::of(|| SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
    }

    /// A clock that begins with the time of this machine, and goes on evenly: it does not follow when the machine's clock is set.
    #[must_use]
    pub fn steady() -> Self {
        let (wall, began) = (Self::system().now(), Instant::now());
        Self::of(move || wall + began.elapsed())
    }

    /// A clock that is read by a function: time since the Unix epoch.
    pub fn of(read: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        Self { read: Arc::new(read), correction: Arc::default() }
    }

    /// Corrected time since the Unix epoch.
    #[must_use]
    pub fn now(&self) -> Duration {
        let correction = self.correction();
        let by = Duration::from_millis(correction.unsigned_abs());
        if correction < 0 { self.uncorrected().saturating_sub(by) } else { self.uncorrected().saturating_add(by) }
    }

    /// Time since the Unix epoch, as the machine has it.
    #[must_use]
    pub fn uncorrected(&self) -> Duration {
        (self.read)()
    }

    /// Milliseconds that are added.
    #[must_use]
    pub fn correction(&self) -> i64 {
        self.correction.load(Ordering::Relaxed)
    }

    /// Adds some milliseconds from now on, instead of those before.
    pub fn correct(&self, milliseconds: i64) {
        self.correction.store(milliseconds, Ordering::Relaxed);
    }
}

impl Default for WallClock {
    fn default() -> Self {
        Self::system()
    }
}

impl fmt::Debug for WallClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WallClock").field("correction", &self.correction).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_correction_holds_for_all_clones() {
        let clock = WallClock::of(|| Duration::from_secs(1000));
        let other = clock.clone();
        clock.correct(-1500);
        assert_eq!((other.now(), other.uncorrected()), (Duration::from_millis(998_500), Duration::from_secs(1000)));
        clock.correct(1500);
        assert_eq!(other.now(), Duration::from_millis(1_001_500));
        clock.correct(i64::MIN);
        assert_eq!((other.now(), other.correction()), (Duration::ZERO, i64::MIN));
    }
}
