//! Programme clock references (ISO/IEC 13818-1 2.4.2.2).

/// Ticks of 27 MHz after which the clock wraps.
const WRAP: u64 = (1 << 33) * 300;
/// Longest step forward that counts as continuous, in ticks of 27 MHz: 10 s. The standard allows 100 ms; recorders and
/// poor encoders leave out seconds.
const LONGEST_STEP: u64 = 10 * 27_000_000;

/// The clock of one PID.
#[derive(Debug, Default)]
pub(super) struct ProgrammeClock {
    last: Option<u64>,
}

impl ProgrammeClock {
    /// Takes a reference; returns whether it does not continue the one before.
    pub(super) fn step(&mut self, pcr: u64, is_stated: bool) -> bool {
        let step = self.last.map(|last| (pcr % WRAP + WRAP - last) % WRAP);
        self.last = Some(pcr % WRAP);
        is_stated || step.is_some_and(|step| step > LONGEST_STEP)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wraps_are_continuous_and_jumps_are_not() {
        let mut clock = ProgrammeClock::default();
        assert!(!clock.step(WRAP - 1_000_000, false));
        assert!(!clock.step(1_000_000, false), "a wrap");
        assert!(!clock.step(100_000_000, false));
        assert!(clock.step(99_999_999, false), "a step back");
        assert!(!clock.step(100_000_000, false));
        assert!(clock.step(400_000_000, false), "a step of 11 s");
        assert!(clock.step(400_000_001, true), "a stated discontinuity");
    }
}
