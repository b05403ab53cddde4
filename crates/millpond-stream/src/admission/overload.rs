//! Whether the sending threads have too much to do.
//!
//! A frame is late for one of two reasons: its thread had too much to send, or did not get the processor. Only the first
//! is a matter of capacity. [`Overload`] takes the measurements of each second and says when new sessions are refused:
//! call [`observe`](Overload::observe) once a second, with the time.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

/// Share of late frames above which a second counts as bad.
const LATE: f64 = 0.01;
/// Fewer frames than these say nothing.
const FRAMES: u64 = 100;
/// Share of its possible running time above which a thread has too much to send.
const BUSY: f64 = 0.9;
/// As [`BUSY`], below which new sessions are accepted again.
const CALM: f64 = 0.8;
/// Share of a core that a thread must get before its load can be judged.
const GOT: f64 = 0.5;
/// Overloaded seconds within [`WINDOW`] before new sessions are refused.
const BAD: usize = 3;
/// Time within which overloaded seconds count.
const WINDOW: Duration = Duration::from_secs(5);
/// Time without an overloaded second before new sessions are accepted again.
const RECOVERY: Duration = Duration::from_secs(5);
/// Time between two reports that other programs use the processor.
const REPORTS: Duration = Duration::from_secs(60);

/// Processor time of a thread since the last measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spent {
    /// Time on a processor.
    pub(crate) run: Duration,
    /// Time it could have run and had no processor.
    pub(crate) wait: Duration,
}

/// The measurements of about one second.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    pub(crate) elapsed: Duration,
    /// Frames that were sent.
    pub(crate) frames: u64,
    /// Frames that were loaded in time and sent late.
    pub(crate) late: u64,
    /// Times of the sending threads; empty where the system does not tell.
    pub(crate) threads: Vec<Spent>,
}

/// Why frames were late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    /// A thread had too much to send. Also where nothing is known of the threads.
    Sending,
    /// The threads did not get the processor.
    Waiting,
}

/// A change of state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// New sessions are refused from now on.
    Refuses,
    /// New sessions are accepted again.
    Takes,
    /// Frames are late because other programs use the processor. No session is refused.
    Starved,
}

/// Decides whether new sessions are refused.
#[derive(Debug, Default)]
pub(crate) struct Overload {
    /// Times of overloaded seconds within the window.
    bad: VecDeque<Instant>,
    /// Time of the last overloaded second, while new sessions are refused.
    last: Option<Instant>,
    reported: Option<Instant>,
}

impl Measured {
    /// The cause where too many frames were late.
    fn cause(&self) -> Option<Cause> {
        let is_late = self.frames >= FRAMES && self.late as f64 > self.frames as f64 * LATE;
        let is_sending = self.threads.is_empty() || self.busy() >= BUSY;
        is_late.then_some(if is_sending { Cause::Sending } else { Cause::Waiting })
    }

    /// Running share of the busiest thread. A thread that got less than [`GOT`] of a core does not count: its load can't be
    /// judged.
    fn busy(&self) -> f64 {
        let elapsed = self.elapsed.as_secs_f64();
        let shares = self.threads.iter().filter(|spent| spent.run.as_secs_f64() >= elapsed * GOT).map(|spent| {
            let could = self.elapsed.saturating_sub(spent.wait).max(spent.run);
            spent.run.as_secs_f64() / could.as_secs_f64().max(f64::MIN_POSITIVE)
        });
        shares.fold(0.0, f64::max)
    }
}

impl Overload {
    /// Takes the measurements of the second before `now`.
    pub(crate) fn observe(&mut self, now: Instant, measured: &Measured) -> Option<Change> {
        let cause = measured.cause();
        if let Some(last) = &mut self.last {
            if cause == Some(Cause::Sending) || measured.busy() >= CALM {
                *last = now;
            } else if now.saturating_duration_since(*last) >= RECOVERY {
                self.last = None;
                return Some(Change::Takes);
            }
            return None;
        }
        self.bad.retain(|at| now.saturating_duration_since(*at) < WINDOW);
        match cause {
            Some(Cause::Sending) => {
                self.bad.push_back(now);
                if self.bad.len() >= BAD {
                    self.bad.clear();
                    self.last = Some(now);
                    return Some(Change::Refuses);
                }
            }
            Some(Cause::Waiting) if self.reported.is_none_or(|at| now.saturating_duration_since(at) >= REPORTS) => {
                self.reported = Some(now);
                return Some(Change::Starved);
            }
            Some(Cause::Waiting) | None => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// A server on a virtual clock, a second at a time.
    struct Server {
        overload: Overload,
        now: Instant,
    }

    impl Server {
        fn new() -> Self {
            Self { overload: Overload::default(), now: Instant::now() }
        }

        /// A second in which of 10,000 frames some were late, and threads ran and waited for so many milliseconds.
        fn second(&mut self, late: u64, threads: &[(u32, u32)]) -> Option<Change> {
            self.now += 1000 * MS;
            let threads = threads.iter().map(|(run, wait)| Spent { run: *run * MS, wait: *wait * MS }).collect();
            let measured = Measured { elapsed: 1000 * MS, frames: 10_000, late, threads };
            self.overload.observe(self.now, &measured)
        }
    }

    const IDLE: &[(u32, u32)] = &[(200, 5), (180, 5)];
    const FULL: &[(u32, u32)] = &[(300, 5), (990, 5)];
    const STARVED: &[(u32, u32)] = &[(300, 600), (250, 650)];

    #[test]
    fn one_busy_second_refuses_nobody() {
        let mut server = Server::new();
        for _ in 0..20 {
            assert_eq!(server.second(5_000, FULL), None, "whatever its cause");
            for _ in 0..4 {
                assert_eq!(server.second(0, IDLE), None);
            }
        }
    }

    #[test]
    fn sustained_overload_by_sending_refuses_newcomers() {
        let mut server = Server::new();
        assert_eq!(server.second(101, FULL), None);
        assert_eq!(server.second(0, IDLE), None);
        assert_eq!(server.second(101, FULL), None);
        assert_eq!(server.second(101, &[(700, 290), (100, 0)]), Some(Change::Refuses), "it never slept");
        assert_eq!(server.second(101, FULL), None, "known already");
        let mut calm = Server::new();
        (0..20).for_each(|_| assert_eq!(calm.second(100, FULL), None, "in time: full is not too full"));
    }

    #[test]
    fn lateness_without_the_processor_is_no_overload() {
        let mut server = Server::new();
        assert_eq!(server.second(9_000, STARVED), Some(Change::Starved));
        (0..59).for_each(|_| assert_eq!(server.second(9_000, STARVED), None, "told once a minute"));
        assert_eq!(server.second(9_000, STARVED), Some(Change::Starved));
        // It got half of the core and slept for a third of what was left: the lateness is not its own.
        assert_eq!(server.second(9_000, &[(500, 250)]), None);
    }

    #[test]
    fn recovery_takes_longer_than_a_moment() {
        let mut server = Server::new();
        (0..2).for_each(|_| assert_eq!(server.second(500, FULL), None));
        assert_eq!(server.second(500, FULL), Some(Change::Refuses));
        (0..4).for_each(|_| assert_eq!(server.second(0, IDLE), None));
        assert_eq!(server.second(0, &[(850, 0)]), None, "in time, and all but full: still refused");
        (0..4).for_each(|_| assert_eq!(server.second(0, IDLE), None));
        assert_eq!(server.second(0, IDLE), Some(Change::Takes));
        (0..2).for_each(|_| assert_eq!(server.second(500, FULL), None, "the window begins anew"));
        assert_eq!(server.second(500, FULL), Some(Change::Refuses));
    }

    #[test]
    fn where_nothing_is_known_of_the_threads_lateness_counts() {
        let mut server = Server::new();
        (0..2).for_each(|_| assert_eq!(server.second(500, &[]), None));
        assert_eq!(server.second(500, &[]), Some(Change::Refuses));
        (0..4).for_each(|_| assert_eq!(server.second(0, &[]), None));
        assert_eq!(server.second(0, &[]), Some(Change::Takes));
        let few = Measured { elapsed: 1000 * MS, frames: 99, late: 99, threads: Vec::new() };
        (0..10).for_each(|_| assert_eq!(Overload::default().observe(server.now, &few), None, "too few to say"));
    }
}
