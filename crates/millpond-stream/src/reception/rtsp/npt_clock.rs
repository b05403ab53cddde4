//! Times of a stored title (npt, RFC 2326 3.6) from RTP timestamps.

use std::ops::RangeInclusive;

/// Seconds from the announced timestamp to that of the first unit within which the announcement is believed. A server that starts at the
/// key frame before the requested time sends earlier timestamps, one that starts at the key frame after it later ones.
const BELIEVED: RangeInclusive<f64> = -60.0..=60.0;
/// Seconds by which that distance may differ from the time of the title, where the announcement is wrong by the whole time: GStreamer 1.22
/// makes such ones after some seeks.
const WRONG: f64 = 0.05;

/// Converts the RTP timestamps of one track to ticks of the title.
#[derive(Debug)]
pub(super) struct NptClock {
    rate: u32,
    /// Time of the title at which the server plays, in ticks.
    from: i64,
    /// Timestamp of that time, as the server announces it.
    announced: Option<u32>,
    /// The last timestamp and its time.
    last: Option<(u32, i64)>,
    /// Ticks of the title for each tick of the timestamps.
    factor: f64,
}

impl NptClock {
    /// Creates the clock of a track with `rate` ticks a second. The server plays from a time in seconds, and announces its timestamp.
    pub(super) fn new(rate: u32, from: f64, announced: Option<u32>) -> Self {
        Self { rate, from: (from * f64::from(rate)).round() as i64, announced, last: None, factor: 1.0 }
    }

    /// Sets the ticks of the title for each tick of the timestamps.
    pub(super) fn set_factor(&mut self, factor: f64) {
        self.factor = factor;
    }

    /// Returns a [`time`](Self::time) with the factor.
    pub(super) fn stretched(&self, time: i64) -> i64 {
        if self.factor == 1.0 {
            return time;
        }
        self.from.saturating_add((time.saturating_sub(self.from) as f64 * self.factor).round() as i64)
    }

    /// Returns the time of a timestamp in ticks, before the factor.
    pub(super) fn time(&mut self, timestamp: u32) -> i64 {
        let (before, time) = self.last.unwrap_or_else(|| self.first(timestamp));
        let time = time.saturating_add(distance(before, timestamp));
        self.last = Some((timestamp, time));
        time
    }

    /// Returns the timestamp of the time at which the server plays, and that time.
    fn first(&self, timestamp: u32) -> (u32, i64) {
        let is_believed = |announced: &u32| {
            let rate = f64::from(self.rate.max(1));
            let (late, from) = (distance(*announced, timestamp) as f64 / rate, self.from as f64 / rate);
            let is_wrong = from > WRONG && (late - from).abs() < WRONG;
            BELIEVED.contains(&late) && !is_wrong
        };
        (self.announced.filter(is_believed).unwrap_or(timestamp), self.from)
    }
}

/// Returns the ticks from one timestamp to another one less than half a turn away.
fn distance(from: u32, to: u32) -> i64 {
    i64::from(to.wrapping_sub(from) as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_count_from_the_announced_timestamp_over_the_turn() {
        let mut clock = NptClock::new(90_000, 10.0, Some(u32::MAX - 899));
        assert_eq!(clock.time(0), 900_900, "900 ticks after the turn");
        assert_eq!(clock.time(u32::MAX - 99), 900_800);
        let mut early = NptClock::new(90_000, 10.0, Some(180_000));
        assert_eq!(early.time(0), 720_000, "the key frame before the range");
    }

    #[test]
    fn announcements_that_are_wrong_by_the_seek_are_ignored() {
        // GStreamer 1.22 after npt=60.5-.
        let mut clock = NptClock::new(90_000, 60.0, Some(4_158_030_102));
        assert_eq!(clock.time(4_163_430_102), 5_400_000);
        assert_eq!(clock.time(4_163_433_101), 5_402_999);
        // The same server after npt=1.9-, which it answers with npt=1-.
        let mut near = NptClock::new(90_000, 1.0, Some(1_968_298_986));
        assert_eq!(near.time(1_968_388_986), 90_000);
        let mut late = NptClock::new(90_000, 9.9, Some(0));
        assert_eq!(late.time(189_000), 1_080_000, "the key frame after the range");
        let mut silent = NptClock::new(48_000, 1.5, None);
        assert_eq!(silent.time(7), 72_000);
        assert_eq!(silent.time(17), 72_010);
        silent.set_factor(4.0);
        assert_eq!(silent.stretched(72_010), 72_040);
    }
}
