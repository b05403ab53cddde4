//! An offset that moves slowly.

/// Time in which an offset moves by one nanosecond, in nanoseconds: 5 ms a second.
const STEP: i64 = 200;

/// An offset that moves to its target by at most 5 ms a second, so that times with it never fall.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Slew {
    now: Motion,
    /// What came before, for frames that are late.
    before: Motion,
}

/// A move to a target.
#[derive(Clone, Copy, Debug, Default)]
struct Motion {
    /// Time from which it moves, in nanoseconds.
    since: i64,
    from: i64,
    target: i64,
}

impl Motion {
    fn at(&self, time: i64) -> i64 {
        let most = time.saturating_sub(self.since).max(0) / STEP;
        self.from.saturating_add(self.target.saturating_sub(self.from).clamp(-most, most))
    }
}

impl Slew {
    /// An offset that is at its target.
    pub(super) fn at_rest(target: i64) -> Self {
        let rest = Motion { since: 0, from: target, target };
        Self { now: rest, before: rest }
    }

    /// The offset at a time, in nanoseconds.
    pub(super) fn at(&self, time: i64) -> i64 {
        if time < self.now.since { self.before.at(time) } else { self.now.at(time) }
    }

    /// Moves to another target from a time on.
    pub(super) fn move_to(&mut self, target: i64, since: i64) {
        if target != self.now.target {
            *self = Self { now: Motion { since, from: self.at(since), target }, before: self.now };
        }
    }

    /// Where it moves to.
    pub(super) fn target(&self) -> i64 {
        self.now.target
    }
}

#[cfg(test)]
mod tests {
    use super::{super::SECOND, *};

    #[test]
    fn an_offset_moves_five_milliseconds_a_second() {
        let mut slew = Slew::at_rest(1000);
        assert_eq!(slew.at(77 * SECOND), 1000);
        slew.move_to(1000 - 12_000_000, 10 * SECOND);
        assert_eq!(slew.at(9 * SECOND), 1000, "earlier times keep theirs");
        assert_eq!(slew.at(11 * SECOND), 1000 - 5_000_000);
        assert_eq!(slew.at(20 * SECOND), 1000 - 12_000_000);
        slew.move_to(SECOND, 12 * SECOND);
        assert_eq!(slew.at(12 * SECOND), 1000 - 10_000_000, "from where it was");
        assert_eq!(slew.at(13 * SECOND), 1000 - 5_000_000);
    }
}
