//! Timestamps of servers that send faster than they would be played (`Speed`, RFC 2326 12.35).
//!
//! The timestamps of a faster delivery are those of the usual one. GStreamer compresses them: its packets are those of a film that plays
//! faster. The distance between frames tells both apart.

use std::collections::BTreeSet;

/// Different times of a track after which the distance between frames is known.
const TIMES: usize = 9;

/// Finds the factor of a session's timestamps.
#[derive(Debug)]
pub(super) struct Pace {
    speed: f64,
    /// Usual ticks from one frame to the next, and the times seen, of each track.
    tracks: Vec<(i64, BTreeSet<i64>)>,
}

impl Pace {
    /// Creates one for a session with a speed. `usual` are the ticks from one frame to the next of each track at the usual speed.
    pub(super) fn new(speed: f64, usual: &[i64]) -> Self {
        Self { speed, tracks: usual.iter().map(|usual| (*usual, BTreeSet::new())).collect() }
    }

    /// Takes the time of a frame. Returns the factor, once it is known.
    pub(super) fn take(&mut self, track: usize, time: i64) -> Option<f64> {
        let (usual, times) = self.tracks.get_mut(track).filter(|(usual, _)| *usual > 1)?;
        times.insert(time);
        if times.len() < TIMES {
            return None;
        }
        let times: Vec<i64> = times.iter().copied().collect();
        let mut steps: Vec<i64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        steps.sort_unstable();
        let ratio = *usual as f64 / steps[steps.len() / 2].max(1) as f64;
        let is_usual = ratio.ln().abs() < (ratio / self.speed).ln().abs();
        Some(if is_usual { 1.0 } else { self.speed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn factor(step: i64) -> Option<f64> {
        let mut pace = Pace::new(4.0, &[3000, 1024]);
        // GStreamer gives all frames before the requested time that time.
        let times = std::iter::repeat_n(0, 30).chain((0..20).map(|n| 7 + n * step));
        times.into_iter().find_map(|time| pace.take(0, time))
    }

    #[test]
    fn the_distance_of_frames_tells_the_factor() {
        assert_eq!(factor(3000), Some(1.0));
        assert_eq!(factor(750), Some(4.0), "GStreamer 1.22");
        assert_eq!(Pace::new(4.0, &[1]).take(0, 5), None);
    }
}
