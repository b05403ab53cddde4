//! Which stream of a ladder a viewer gets: the best one that his network carries.
//!
//! Down where frames would be dropped, one stream at a time. Up again after a time without strain, which doubles with each
//! attempt that failed: only an attempt shows whether the network carries more.

use crate::strain::Strain;
use std::time::Duration;

/// Time after a change in which strain does not count: frames of the stream before still wait.
const SETTLES: Duration = Duration::from_secs(4);
/// Time without strain before the first attempt to go up.
const FIRST: Duration = Duration::from_secs(10);
/// Longest time without strain before an attempt.
const MOST: Duration = Duration::from_secs(160);

/// The stream that a viewer should get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// The same one.
    Stay,
    /// The next one that needs less.
    Down,
    /// The next one that needs more.
    Up,
}

/// Chooses among streams, counted from 0, in descending order of their rates.
#[derive(Debug)]
pub(crate) struct Climber {
    /// Number of streams.
    streams: usize,
    at: usize,
    /// Time for which frames may wait.
    limit: Duration,
    /// Time of the last change.
    since: Option<Duration>,
    /// Time since which there is no strain.
    calm: Option<Duration>,
    /// Time without strain before the next attempt to go up.
    patience: Duration,
    /// Whether the last change was up, and it is not known yet whether that stream can be sent.
    is_trial: bool,
    /// Frames dropped and reports of losses that are known.
    seen: (u64, u64),
}

impl Climber {
    /// Begins with the first of `streams`. Frames may wait for `limit`.
    pub(crate) fn new(streams: usize, limit: Duration) -> Self {
        let (since, calm, seen) = (None, None, (0, 0));
        Self { streams, at: 0, limit, since, calm, patience: FIRST, is_trial: false, seen }
    }

    /// Looks at the strain at a time. Times rise.
    pub(crate) fn look(&mut self, now: Duration, strain: &Strain) -> Wish {
        let counted = (strain.dropped, strain.losses);
        let has_lost = std::mem::replace(&mut self.seen, counted) != counted;
        // From a quarter of the time on branches drop frames.
        if has_lost || strain.waits > self.limit / 4 {
            self.calm = None;
            let is_settled = self.since.is_none_or(|since| now.saturating_sub(since) >= SETTLES);
            return if is_settled && self.at + 1 < self.streams { Wish::Down } else { Wish::Stay };
        }
        if strain.waits > self.limit / 8 {
            self.calm = None;
            return Wish::Stay;
        }
        let calm = now.saturating_sub(*self.calm.get_or_insert(now));
        if self.is_trial && calm >= self.patience {
            self.is_trial = false;
            self.patience = (self.patience / 2).max(FIRST);
        }
        if self.at > 0 && calm >= self.patience { Wish::Up } else { Wish::Stay }
    }

    /// Whether there was no strain at the last look.
    pub(crate) fn is_calm(&self) -> bool {
        self.calm.is_some()
    }

    /// Notes that the viewer gets another stream from a time on.
    pub(crate) fn changed(&mut self, to: usize, now: Duration) {
        if to > self.at && self.is_trial {
            self.patience = (self.patience * 2).min(MOST);
        }
        self.is_trial = to < self.at;
        (self.at, self.since, self.calm) = (to, Some(now), None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(3);

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn waits(millis: u64) -> Strain {
        Strain { waits: Duration::from_millis(millis), ..Strain::default() }
    }

    /// Looks each 100 ms from one second to another, and follows each wish at once. Returns the wishes with their seconds.
    fn run(climber: &mut Climber, span: std::ops::Range<u64>, strain: impl Fn(usize) -> Strain) -> Vec<(u64, Wish)> {
        let mut wishes = Vec::new();
        for tenth in span.start * 10..span.end * 10 {
            let now = Duration::from_millis(tenth * 100);
            let wish = climber.look(now, &strain(climber.at));
            let to = match wish {
                Wish::Stay => continue,
                Wish::Down => climber.at + 1,
                Wish::Up => climber.at - 1,
            };
            climber.changed(to, now);
            wishes.push((tenth / 10, wish));
        }
        wishes
    }

    #[test]
    fn it_goes_down_where_frames_would_be_dropped() {
        let mut climber = Climber::new(3, LIMIT);
        assert_eq!(climber.look(seconds(1), &waits(750)), Wish::Stay);
        assert_eq!(climber.look(seconds(1), &waits(751)), Wish::Down);
        climber.changed(1, seconds(2));
        assert_eq!(climber.look(seconds(3), &waits(1500)), Wish::Stay, "what waits is that of the stream before");
        assert_eq!(climber.look(seconds(6), &waits(1500)), Wish::Down);
        climber.changed(2, seconds(6));
        assert_eq!(climber.look(seconds(60), &waits(2900)), Wish::Stay, "there is none below");
    }

    #[test]
    fn frames_that_were_dropped_and_packets_that_were_lost_are_strain() {
        for strain in [Strain { dropped: 1, ..Strain::default() }, Strain { losses: 1, ..Strain::default() }] {
            let mut climber = Climber::new(2, LIMIT);
            assert_eq!(climber.look(seconds(1), &strain), Wish::Down);
            assert_eq!(climber.look(seconds(2), &strain), Wish::Stay, "nothing more was lost");
        }
    }

    #[test]
    fn it_goes_up_after_a_calm_time_and_stays_where_that_succeeds() {
        let mut climber = Climber::new(2, LIMIT);
        climber.look(seconds(0), &waits(800));
        climber.changed(1, seconds(0));
        assert_eq!(run(&mut climber, 1..9, |_| waits(376)), [], "too much waits");
        assert_eq!(run(&mut climber, 9..300, |_| waits(300)), [(19, Wish::Up)]);
        // The network becomes worse much later: that is no failed attempt.
        assert_eq!(run(&mut climber, 300..310, |_| waits(800)), [(300, Wish::Down)]);
        assert_eq!(run(&mut climber, 310..330, |_| waits(0)), [(320, Wish::Up)]);
    }

    #[test]
    fn attempts_that_fail_become_rare() {
        let mut climber = Climber::new(2, LIMIT);
        // Only the lower one can be sent.
        let wishes = run(&mut climber, 0..2000, |at| if at == 0 { waits(1000) } else { waits(0) });
        let ups: Vec<u64> = wishes.iter().filter(|(_, wish)| *wish == Wish::Up).map(|(at, _)| *at).collect();
        let apart: Vec<u64> = ups.windows(2).map(|two| two[1] - two[0]).collect();
        assert_eq!(ups[0], 10);
        assert!(apart[0] >= 20 && apart[1] >= 40 && apart[2] >= 80 && apart[3] >= 160, "{ups:?}");
        assert!(apart.iter().all(|apart| *apart <= 170), "{ups:?}");
    }

    #[test]
    fn with_one_stream_there_is_nothing_to_choose() {
        let mut climber = Climber::new(1, LIMIT);
        assert_eq!(run(&mut climber, 0..100, |_| waits(2000)), []);
        assert_eq!(run(&mut climber, 100..200, |_| waits(0)), []);
    }
}
