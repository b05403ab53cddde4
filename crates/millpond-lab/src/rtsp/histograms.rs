//! Histograms of a report.

use super::figures::MediaFigures;
use serde::Serialize;

/// Numbers of packets and frames by time. Each entry is the upper end of a bucket in milliseconds, and the number in it. Buckets
/// are a 64th of their time wide or narrower; empty ones are left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Histograms {
    /// Frames by the time since the frame before, in each track.
    pub between: Vec<(f64, u64)>,
    /// Packets by their delay behind the schedule.
    pub behind: Vec<(f64, u64)>,
}

impl Histograms {
    pub(crate) fn new(figures: &MediaFigures) -> Self {
        Self { between: figures.between.buckets(), behind: figures.behind.buckets() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtsp::schedule::Timing;
    use millpond_rtp::reception::Arrival;
    use std::time::Duration;

    #[test]
    fn packets_and_frames_are_counted_by_time() {
        let mut figures = MediaFigures::default();
        let millis = Duration::from_millis;
        for (behind, since_frame) in [(0, None), (3, Some(millis(43))), (3, None), (50, Some(millis(90)))] {
            let timing = Timing { behind: millis(behind), since_frame };
            figures.packet(Arrival::Next { skipped: 0 }, timing, 100);
        }
        let Histograms { between, behind } = Histograms::new(&figures);
        let counts = |buckets: &[(f64, u64)]| buckets.iter().map(|(_, count)| *count).collect::<Vec<_>>();
        assert_eq!((counts(&between), counts(&behind)), (vec![1, 1], vec![1, 2, 1]));
        let within: u64 = behind.iter().filter(|(end, _)| *end <= 52.0).map(|(_, count)| count).sum();
        assert_eq!(within, 4);
    }
}
