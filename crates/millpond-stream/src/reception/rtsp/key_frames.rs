//! When the sender of pictures is asked for a key frame.

use std::time::Duration;

/// Time from one key frame of a publisher to the request for the next. Segments and new viewers begin with key frames; browsers send
/// none of their own accord.
const OF_PUBLISHER: Duration = Duration::from_secs(2);
/// The same of a server, which asks its own publisher. Some servers send a whole group again for each request.
const OF_SERVER: Duration = Duration::from_secs(20);
/// Time before a request is repeated, which doubles with each repetition, up to the longest time.
const RETRY: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(2);

/// Decides when key frames are asked for: at the beginning, after a loss, and when none came for a while.
#[derive(Debug)]
pub(super) struct KeyFrames {
    interval: Duration,
    due: Duration,
    retry: Duration,
}

impl KeyFrames {
    /// Those of a publisher, from a time on. The first frames of most senders are key frames, and no request is due at once.
    pub(super) fn of_publisher(now: Duration) -> Self {
        Self { interval: OF_PUBLISHER, due: now + RETRY, retry: RETRY }
    }

    /// Those of a server.
    pub(super) fn of_server(self) -> Self {
        Self { interval: OF_SERVER, ..self }
    }

    /// Takes note of a frame.
    pub(super) fn frame(&mut self, is_key: bool, is_broken: bool, now: Duration) {
        if is_key {
            (self.due, self.retry) = (now + self.interval, RETRY);
        } else if is_broken && self.retry == RETRY {
            self.due = self.due.min(now);
        }
    }

    /// Whether a request is due. It then counts as sent.
    pub(super) fn ask(&mut self, now: Duration) -> bool {
        let is_due = now >= self.due;
        if is_due {
            self.due = now + self.retry;
            self.retry = (2 * self.retry).min(LONGEST);
        }
        is_due
    }

    /// Time of the next request.
    pub(super) fn next(&self) -> Duration {
        self.due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn key_frames_are_asked_for_when_none_comes() {
        let mut frames = KeyFrames::of_publisher(ms(0));
        let asked: Vec<u64> = (0..10_000).filter(|at| frames.ask(ms(*at))).collect();
        assert_eq!(asked, [500, 1000, 2000, 4000, 6000, 8000]);
        frames.frame(true, false, ms(9000));
        frames.frame(false, false, ms(9040));
        let asked: Vec<u64> = (9000..12_000).filter(|at| frames.ask(ms(*at))).collect();
        assert_eq!(asked, [11_000, 11_500]);
    }

    #[test]
    fn a_server_is_asked_at_the_beginning_and_after_losses() {
        let mut frames = KeyFrames::of_publisher(ms(0)).of_server();
        assert!(frames.ask(ms(500)) && frames.ask(ms(1000)));
        frames.frame(true, false, ms(1200));
        assert_eq!(frames.next(), ms(21_200));
        frames.frame(false, true, ms(3000));
        assert!(frames.ask(ms(3000)));
    }

    #[test]
    fn a_loss_is_told_at_once_and_once() {
        let mut frames = KeyFrames::of_publisher(ms(0));
        frames.frame(true, true, ms(0));
        assert_eq!(frames.next(), ms(2000));
        frames.frame(false, true, ms(40));
        assert!(frames.ask(ms(40)));
        frames.frame(false, true, ms(80));
        assert!(!frames.ask(ms(80)) && frames.ask(ms(540)));
        frames.frame(true, false, ms(600));
        assert_eq!(frames.next(), ms(2600));
    }
}
