//! The next action of a playing client, and its time. Pure: times in, times out.

use super::habits::Act;
use std::time::{Duration, Instant};

/// Interval between checks of a session whose media arrives on the connection.
const LOOK: Duration = Duration::from_secs(5);

/// Something to do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Due {
    /// It has seen enough.
    Leave,
    /// Continues after a pause.
    Resume,
    /// Jumps or pauses.
    Act(Act),
    /// Sends a receiver report, and checks whether media arrives.
    Look,
}

/// Planned actions with their times.
#[derive(Clone, Debug)]
pub(crate) struct Agenda {
    leave: Option<Instant>,
    resume: Option<Instant>,
    act: Option<(Instant, Act)>,
    look: Instant,
}

impl Agenda {
    /// From `now` on, for as long as it stays.
    pub(crate) fn new(now: Instant, stay: Option<Duration>) -> Self {
        let leave = stay.and_then(|stay| now.checked_add(stay));
        Self { leave, resume: None, act: None, look: now + LOOK }
    }

    /// To do something of its own after a while.
    pub(crate) fn plan(&mut self, now: Instant, act: Option<(Duration, Act)>) {
        self.act = act.and_then(|(wait, act)| Some((now.checked_add(wait)?, act)));
    }

    /// Nothing but to go on after a pause.
    pub(crate) fn stand_still(&mut self, now: Instant, pause: Duration) {
        self.act = None;
        self.resume = now.checked_add(pause);
    }

    /// Returns when there is something to do.
    pub(crate) fn next(&self) -> Instant {
        let act = self.act.map(|(at, _)| at);
        [self.leave, self.resume, act].into_iter().flatten().fold(self.look, Instant::min)
    }

    /// Returns what there is to do now, one at a time.
    pub(crate) fn take(&mut self, now: Instant) -> Option<Due> {
        let is_due = |at: &mut Instant| *at <= now;
        if self.leave.take_if(is_due).is_some() {
            return Some(Due::Leave);
        }
        if self.resume.take_if(is_due).is_some() {
            return Some(Due::Resume);
        }
        if let Some((_, act)) = self.act.take_if(|(at, _)| *at <= now) {
            return Some(Due::Act(act));
        }
        if self.look <= now {
            self.look = now + LOOK;
            return Some(Due::Look);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_comes_in_its_turn() {
        let seconds = Duration::from_secs;
        let start = Instant::now();
        let mut agenda = Agenda::new(start, Some(seconds(20)));
        agenda.plan(start, Some((seconds(7), Act::Pause(seconds(2)))));
        let mut done = Vec::new();
        loop {
            let at = agenda.next();
            let due = agenda.take(at).expect("something is due");
            assert!(agenda.take(at).is_none_or(|more| more == Due::Look), "one at a time");
            done.push((at - start, due));
            match due {
                Due::Act(Act::Pause(pause)) => agenda.stand_still(at, pause),
                Due::Leave => break,
                _ => {}
            }
        }
        let kinds: Vec<(u64, Due)> = done.iter().map(|(at, due)| (at.as_secs(), *due)).collect();
        let expected =
            [(5, Due::Look), (7, Due::Act(Act::Pause(seconds(2)))), (9, Due::Resume), (10, Due::Look), (15, Due::Look)];
        assert_eq!(kinds[..5], expected);
        assert_eq!(kinds.last(), Some(&(20, Due::Leave)));
    }
}
