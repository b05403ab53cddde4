//! The decision which input plays. It reads no clock.

use std::time::Duration;

/// Time at the start in which no slate plays: inputs are being opened.
const START: Duration = Duration::from_secs(3);
/// Time for which an input that could not be taken is left alone.
const LEFT_ALONE: Duration = Duration::from_secs(2);

/// Chooses among inputs, the preferred one first.
#[derive(Debug)]
pub(super) struct Choice {
    /// Time for which a preferred input must be alive before it plays again.
    back: Duration,
    /// The input that is always there.
    slate: Option<usize>,
    playing: Option<usize>,
    /// Times until which inputs are left alone.
    left_until: Vec<Duration>,
}

impl Choice {
    /// Makes that among `count` inputs.
    pub(super) fn new(count: usize, slate: Option<usize>, back: Duration) -> Self {
        Self { back, slate, playing: None, left_until: vec![Duration::ZERO; count] }
    }

    /// The input that plays.
    pub(super) fn playing(&self) -> Option<usize> {
        self.playing
    }

    /// Returns the input that is to play instead of the one that plays; `None` where that is to stay. `alive` has the time for which each
    /// input is alive.
    pub(super) fn decide(&self, alive: &[Option<Duration>], now: Duration) -> Option<usize> {
        let age = |input: usize| {
            let age = if self.slate == Some(input) { Some(Duration::MAX) } else { alive.get(input).copied().flatten() };
            age.filter(|_| self.left_until.get(input).is_some_and(|until| now >= *until))
        };
        let mut inputs = 0..self.left_until.len();
        match self.playing.filter(|playing| age(*playing).is_some()) {
            Some(playing) => (0..playing).find(|input| age(*input).is_some_and(|age| age >= self.back)),
            None => {
                let best = inputs.find(|input| age(*input).is_some());
                let is_early = self.playing.is_none() && now < START;
                best.filter(|best| !(is_early && self.slate == Some(*best)) && self.playing != Some(*best))
            }
        }
    }

    /// Notes that an input plays now.
    pub(super) fn plays(&mut self, input: usize) {
        self.playing = Some(input);
    }

    /// Notes that an input could not be taken, or that its frames are passed on no more.
    pub(super) fn failed(&mut self, input: usize, now: Duration) {
        if let Some(until) = self.left_until.get_mut(input) {
            *until = now + LEFT_ALONE;
        }
        if self.playing == Some(input) {
            self.playing = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BACK: Duration = Duration::from_secs(10);

    fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn the_first_input_that_is_alive_plays_and_a_better_one_comes_back_later() {
        let mut choice = Choice::new(3, None, BACK);
        assert_eq!(choice.decide(&[None, None, None], s(0)), None);
        // At the start no time must pass.
        assert_eq!(choice.decide(&[None, Some(s(0)), Some(s(5))], s(0)), Some(1));
        choice.plays(1);
        assert_eq!(choice.decide(&[Some(s(9)), Some(s(9)), None], s(9)), None);
        assert_eq!(choice.decide(&[Some(s(10)), Some(s(10)), None], s(10)), Some(0));
        choice.plays(0);
        assert_eq!(choice.decide(&[None, Some(s(1)), Some(s(50))], s(20)), Some(1));
        // All are gone: what plays stays, so that it goes on when it comes back.
        choice.plays(1);
        assert_eq!(choice.decide(&[None, None, None], s(30)), None);
        assert_eq!((choice.decide(&[None, Some(s(0)), None], s(31)), choice.playing()), (None, Some(1)));
    }

    #[test]
    fn a_slate_plays_when_nothing_else_does_but_not_at_once() {
        let mut choice = Choice::new(2, Some(1), BACK);
        assert_eq!(choice.decide(&[None, None], s(1)), None);
        assert_eq!(choice.decide(&[None, None], s(3)), Some(1));
        choice.plays(1);
        assert_eq!(choice.decide(&[Some(s(3)), None], s(6)), None);
        assert_eq!(choice.decide(&[Some(s(10)), None], s(13)), Some(0));
        choice.plays(0);
        assert_eq!(choice.decide(&[None, None], s(20)), Some(1));
    }

    #[test]
    fn an_input_that_fails_is_left_alone_for_a_while() {
        let mut choice = Choice::new(2, Some(1), BACK);
        choice.plays(0);
        choice.failed(0, s(20));
        assert_eq!(choice.decide(&[Some(s(20)), None], s(20)), Some(1));
        choice.failed(1, s(20));
        assert_eq!(choice.decide(&[Some(s(20)), None], s(20)), None);
        assert_eq!(choice.decide(&[Some(s(22)), None], s(22)), Some(0));
    }
}
