//! When the phases of a title begin, and which of them a viewer takes.

use std::{fmt, ops::RangeInclusive, sync::Arc, time::Duration};

/// Most phases of a title.
pub const MOST_PHASES: u16 = 64;
/// Numbers of phases that a title may have.
pub const PHASES: RangeInclusive<u16> = 1..=MOST_PHASES;

/// A phase of a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BroadcastPhase {
    /// Path of the channel.
    pub channel: Arc<str>,
    /// Number of the phase, from 1.
    pub number: u16,
    /// Number of phases of the channel.
    pub of: u16,
}

impl BroadcastPhase {
    /// Returns the path of its stream.
    #[must_use]
    pub fn path(&self) -> String {
        format!("{}/phase-{}", self.channel, self.number)
    }
}

impl fmt::Display for BroadcastPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "phase {} of {}", self.number, self.of)
    }
}

/// Phases of a title: loops that begin at equal distances in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stagger {
    title: Duration,
    phases: u16,
}

/// A phase that is ahead of a viewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ahead {
    /// Number of the phase, from 1.
    pub phase: u16,
    /// Time of the title by which it is ahead.
    pub lead: Duration,
}

impl Stagger {
    /// Divides a title into phases. `None` for a title without a duration, and for a number of phases that no title may have.
    #[must_use]
    pub fn new(title: Duration, phases: u16) -> Option<Self> {
        (!title.is_zero() && PHASES.contains(&phases)).then_some(Self { title, phases })
    }

    /// Number of phases.
    #[must_use]
    pub fn phases(self) -> u16 {
        self.phases
    }

    /// Time from the beginning of one phase to the beginning of the next one: the longest lead of the nearest phase.
    #[must_use]
    pub fn interval(self) -> Duration {
        self.title / u32::from(self.phases)
    }

    /// Time from the start of the broadcast to the first beginning of a phase.
    fn delay(self, phase: u16) -> Duration {
        self.interval() * u32::from(phase.saturating_sub(1))
    }

    /// Returns the first beginning of a phase at a time or after it. Both count from the start of the broadcast.
    #[must_use]
    pub fn next_begin(self, phase: u16, since: Duration) -> Duration {
        let late = since.saturating_sub(self.delay(phase)).as_nanos();
        let loops = late.div_ceil(self.title.as_nanos().max(1));
        let gone = u128::from(u64::MAX).min(loops * self.title.as_nanos());
        self.delay(phase) + Duration::from_nanos(u64::try_from(gone).unwrap_or(u64::MAX))
    }

    /// Returns the time of the title that a phase has reached; `None` before its first beginning.
    #[must_use]
    pub fn position(self, phase: u16, since: Duration) -> Option<Duration> {
        let gone = since.checked_sub(self.delay(phase))?.as_nanos() % self.title.as_nanos().max(1);
        Some(Duration::from_nanos(u64::try_from(gone).unwrap_or(u64::MAX)))
    }

    /// Returns the positions of all phases that have begun, with their numbers.
    pub fn positions(self, since: Duration) -> impl Iterator<Item = (u16, Duration)> {
        (1..=self.phases).filter_map(move |phase| Some((phase, self.position(phase, since)?)))
    }
}

/// Chooses the phase that is least ahead of a time of the title. `None` where no phase is at that time or ahead of it.
pub fn nearest(positions: impl IntoIterator<Item = (u16, Duration)>, at: Duration) -> Option<Ahead> {
    let ahead = |(phase, position): (u16, Duration)| Some(Ahead { phase, lead: position.checked_sub(at)? });
    positions.into_iter().filter_map(ahead).min_by_key(|ahead| ahead.lead)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn phases_begin_at_equal_distances_and_loop() {
        let stagger = Stagger::new(seconds(100), 4).unwrap();
        assert_eq!(stagger.interval(), seconds(25));
        for (phase, since, expected) in
            [(1, 0, 0), (2, 0, 25), (4, 0, 75), (1, 1, 100), (2, 25, 25), (2, 26, 125), (3, 350, 350), (3, 351, 450)]
        {
            assert_eq!(stagger.next_begin(phase, seconds(since)), seconds(expected), "{phase} {since}");
        }
        assert_eq!(stagger.positions(seconds(30)).collect::<Vec<_>>(), [(1, seconds(30)), (2, seconds(5))]);
        assert_eq!(stagger.position(1, seconds(230)), Some(seconds(30)));
    }

    #[test]
    fn a_viewer_takes_the_phase_that_began_last() {
        let stagger = Stagger::new(seconds(100), 4).unwrap();
        let at = |since, at| nearest(stagger.positions(seconds(since)), seconds(at));
        assert_eq!(at(0, 0), Some(Ahead { phase: 1, lead: Duration::ZERO }));
        assert_eq!(at(30, 0), Some(Ahead { phase: 2, lead: seconds(5) }));
        assert_eq!(at(130, 0), Some(Ahead { phase: 2, lead: seconds(5) }));
        assert_eq!(at(130, 50), Some(Ahead { phase: 4, lead: seconds(5) }), "from within the title");
        assert_eq!(at(130, 90), None, "no phase is ahead");
        for since in 100..300 {
            assert!(at(since, 0).unwrap().lead <= stagger.interval(), "{since}");
        }
    }

    #[test]
    fn a_title_without_an_end_has_no_phases() {
        assert_eq!(Stagger::new(Duration::ZERO, 4), None);
        assert_eq!(Stagger::new(seconds(1), 0), None);
        assert_eq!(Stagger::new(seconds(1), MOST_PHASES + 1), None);
    }
}
