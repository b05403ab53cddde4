//! A player's buffer and playhead. No I/O and no clock: each call takes the time since
//! the viewer pressed play, and returns what to do next.

use std::time::Duration;

use crate::options::Pace;

/// Looks again after this long where what is waited for has no time of its own: the other stream's segment.
const POLL: Duration = Duration::from_millis(100);

/// One viewer's playback of the streams (video, audio) of a title between two media times.
///
/// For each stream, alternate [`Playout::next`] and, where it says [`Action::Fetch`], the fetch and then
/// [`Playout::arrived`] or [`Playout::ran_out`]. Times must not go backwards. At the end, [`Playout::outcome`].
///
/// Playback begins when each stream has a segment. When a stream has nothing left at the playhead it stalls,
/// and continues when each stream has a segment beyond it again.
#[derive(Clone, Debug)]
pub struct Playout {
    pace: Pace,
    streams: Vec<Buffered>,
    /// Media seconds where the viewer leaves.
    end: f64,
    state: PlayerState,
    startup: Option<Duration>,
    stalls: u64,
    stalled: Duration,
}

#[derive(Clone, Debug)]
struct Buffered {
    /// Media seconds up to which it has arrived.
    until: f64,
    /// Whether it has all it will get.
    complete: bool,
}

#[derive(Clone, Copy, Debug)]
enum PlayerState {
    /// Nothing was shown yet.
    Starting { at: f64 },
    /// The playhead was at `from` at the time `since`, and moves.
    Playing { since: Duration, from: f64 },
    /// The playhead waits at `at` since the time `since`.
    Stalled { since: Duration, at: f64 },
}

/// The next action of a stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Action {
    /// Fetch the segment that begins at this media time, in seconds.
    Fetch(f64),
    /// Ask again at this time since the viewer pressed play.
    WaitUntil(Duration),
    /// This stream has nothing left to do.
    Done,
}

/// Startup and stalls as the viewer saw them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Time from pressing play to the first picture; `None` where there was none.
    pub startup: Option<Duration>,
    /// How often playback stopped for want of media.
    pub stalls: u64,
    /// How long it stood still in all.
    pub stalled: Duration,
}

impl Playout {
    /// Creates a viewer of `streams` streams that watches from `start` to `end`, in media seconds.
    #[must_use]
    pub fn new(pace: Pace, streams: usize, start: f64, end: f64) -> Self {
        Self {
            pace,
            streams: vec![Buffered { until: start, complete: start >= end }; streams],
            end,
            state: PlayerState::Starting { at: start },
            startup: None,
            stalls: 0,
            stalled: Duration::ZERO,
        }
    }

    /// Returns what this stream does now.
    pub fn next(&mut self, stream: usize, now: Duration) -> Action {
        self.advance(now);
        let Some(Buffered { until, complete }) = self.streams.get(stream).cloned() else { return Action::Done };
        let Pace::Realtime { buffer } = self.pace else {
            return if complete { Action::Done } else { Action::Fetch(until) };
        };
        let head = self.playhead(now);
        if complete {
            return if head >= self.end { Action::Done } else { self.wait_for(self.end - head, now) };
        }
        let over = until - head - buffer.as_secs_f64();
        // A nanosecond is the resolution of Duration: without it a wait could end just before its time, forever.
        if over < 1e-9 { Action::Fetch(until) } else { self.wait_for(over, now) }
    }

    /// The next segment of a stream has arrived whole; it ends at the media time `until`.
    pub fn arrived(&mut self, stream: usize, until: f64, now: Duration) {
        self.advance(now);
        let end = self.end;
        if let Some(stream) = self.streams.get_mut(stream) {
            stream.until = stream.until.max(until);
            stream.complete |= stream.until >= end;
        }
        self.resume(now);
    }

    /// A stream ends here, though perhaps before the others.
    pub fn ran_out(&mut self, stream: usize, now: Duration) {
        self.advance(now);
        if let Some(stream) = self.streams.get_mut(stream) {
            stream.complete = true;
        }
        self.resume(now);
    }

    /// Seconds of media that a stream has ahead of the playhead.
    #[must_use]
    pub fn ahead(&self, stream: usize, now: Duration) -> f64 {
        self.streams.get(stream).map_or(0.0, |stream| (stream.until - self.playhead(now)).max(0.0))
    }

    /// Returns what the viewer has seen up to now, a stall under way included.
    #[must_use]
    pub fn outcome(&mut self, now: Duration) -> Outcome {
        self.advance(now);
        let under_way = match self.state {
            PlayerState::Stalled { since, .. } => now.saturating_sub(since),
            _ => Duration::ZERO,
        };
        Outcome { startup: self.startup, stalls: self.stalls, stalled: self.stalled + under_way }
    }

    fn wait_for(&self, seconds: f64, now: Duration) -> Action {
        let moving = matches!(self.state, PlayerState::Playing { .. });
        let wait = if moving { Duration::from_secs_f64(seconds.clamp(0.0, 1e9)) } else { POLL };
        Action::WaitUntil(now + wait.max(Duration::from_millis(1)))
    }

    fn playhead(&self, now: Duration) -> f64 {
        match self.state {
            PlayerState::Starting { at } | PlayerState::Stalled { at, .. } => at,
            PlayerState::Playing { since, from } => from + now.saturating_sub(since).as_secs_f64(),
        }
    }

    /// The media time up to which all streams can be shown; a complete stream delays no other.
    fn limit(&self) -> f64 {
        let waiting = self.streams.iter().filter(|stream| !stream.complete).map(|stream| stream.until);
        waiting.fold(self.end, f64::min)
    }

    /// Notices that the playhead has reached the end of what is there.
    fn advance(&mut self, now: Duration) {
        let PlayerState::Playing { since, from } = self.state else { return };
        let limit = self.limit();
        if limit < self.end && self.playhead(now) >= limit {
            let stopped = since + Duration::from_secs_f64((limit - from).max(0.0));
            self.stalls += 1;
            self.state = PlayerState::Stalled { since: stopped, at: limit };
        }
    }

    /// Plays on where every stream has something to show.
    fn resume(&mut self, now: Duration) {
        let (at, since) = match self.state {
            PlayerState::Playing { .. } => return,
            PlayerState::Starting { at } => (at, None),
            PlayerState::Stalled { since, at } => (at, Some(since)),
        };
        if self.limit() <= at && at < self.end {
            return;
        }
        match since {
            None => self.startup = Some(now),
            Some(since) => self.stalled += now.saturating_sub(since),
        }
        self.state = PlayerState::Playing { since: now, from: at };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REALTIME: Pace = Pace::Realtime { buffer: Duration::from_secs(20) };

    fn at(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    /// One stream of 4-second segments, each taking `cost` seconds: when each fetch began, and the outcome.
    fn simulate(pace: Pace, title: f64, cost: impl Fn(usize) -> f64) -> (Vec<f64>, Outcome, f64) {
        let mut playout = Playout::new(pace, 1, 0.0, title);
        let (mut now, mut asked) = (Duration::ZERO, Vec::new());
        for _ in 0..10_000 {
            match playout.next(0, now) {
                Action::Done => return (asked, playout.outcome(now), now.as_secs_f64()),
                Action::WaitUntil(time) => now = time,
                Action::Fetch(from) => {
                    let index = asked.len();
                    assert_eq!(from, index as f64 * 4.0);
                    asked.push(now.as_secs_f64());
                    now += at(cost(index));
                    playout.arrived(0, from + 4.0, now);
                }
            }
        }
        panic!("the viewer never left");
    }

    #[test]
    fn fills_the_buffer_then_keeps_pace() {
        let (asked, outcome, left) = simulate(REALTIME, 60.0, |_| 0.5);
        assert_eq!(asked.len(), 15);
        // Playing from 0.5 s: 20 s ahead are there after the sixth; then one each 4 s.
        assert_eq!(asked[..6], [0.0, 0.5, 1.0, 1.5, 2.0, 2.5]);
        for pair in asked[6..].windows(2) {
            assert!((pair[1] - pair[0] - 4.0).abs() < 1e-6, "{asked:?}");
        }
        assert_eq!(outcome, Outcome { startup: Some(at(0.5)), stalls: 0, stalled: Duration::ZERO });
        assert!((left - 60.5).abs() < 1e-6, "watched to the end: {left}");
    }

    #[test]
    fn fast_never_waits() {
        let (asked, _, left) = simulate(Pace::Fast, 60.0, |_| 0.5);
        assert_eq!(asked.len(), 15);
        assert_eq!(left, 7.5);
    }

    #[test]
    fn a_slow_segment_stalls_for_what_it_is_late() {
        // The second segment comes at 1 + 7 = 8 s; the first was shown from 1 s to 5 s.
        let (_, outcome, left) = simulate(REALTIME, 40.0, |index| if index == 1 { 7.0 } else { 1.0 });
        assert_eq!(outcome, Outcome { startup: Some(at(1.0)), stalls: 1, stalled: at(3.0) });
        assert!((left - 44.0).abs() < 1e-6, "{left}");
    }

    #[test]
    fn each_slow_segment_is_a_stall() {
        let (_, outcome, _) = simulate(REALTIME, 40.0, |_| 5.0);
        assert_eq!((outcome.stalls, outcome.stalled), (9, at(9.0)));
    }

    #[test]
    fn both_streams_are_needed() {
        let mut playout = Playout::new(REALTIME, 2, 0.0, 12.0);
        playout.arrived(0, 4.0, at(1.0));
        assert_eq!(playout.outcome(at(1.5)).startup, None);
        playout.arrived(1, 3.0, at(2.0));
        assert_eq!(playout.outcome(at(2.0)).startup, Some(at(2.0)));
        // Audio ends at media time 3: playback stops at 2 + 3 = 5 s.
        playout.arrived(0, 8.0, at(4.0));
        assert_eq!(playout.outcome(at(6.0)), Outcome { startup: Some(at(2.0)), stalls: 1, stalled: at(1.0) });
        playout.ran_out(1, at(7.0));
        assert_eq!(playout.ahead(0, at(7.0)), 5.0);
        assert_eq!(playout.outcome(at(8.0)).stalled, at(2.0));
    }

    #[test]
    fn a_full_buffer_waits_for_the_other_stream() {
        let mut playout = Playout::new(REALTIME, 2, 0.0, 100.0);
        playout.arrived(0, 24.0, at(1.0));
        assert_eq!(playout.next(0, at(1.0)), Action::WaitUntil(at(1.0) + POLL));
        assert_eq!(playout.next(1, at(1.0)), Action::Fetch(0.0));
    }

    #[test]
    fn odd_titles_end() {
        assert_eq!(Playout::new(REALTIME, 1, 5.0, 5.0).next(0, Duration::ZERO), Action::Done);
        assert_eq!(Playout::new(Pace::Fast, 0, 0.0, 5.0).next(0, Duration::ZERO), Action::Done);
        let mut early = Playout::new(REALTIME, 1, 0.0, 5.0);
        early.ran_out(0, at(1.0));
        assert_eq!(early.next(0, at(1.0)), Action::WaitUntil(at(6.0)));
        assert_eq!(early.next(0, at(6.0)), Action::Done);
    }
}
