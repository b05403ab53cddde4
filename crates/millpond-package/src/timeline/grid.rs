//! Boundaries at which audio and text are cut.

use crate::timeline::segmentation::Segments;
use millpond_media::units::Timescale;

/// Most boundaries after the end of the video: three days of 4-second segments.
const MOST_EXTRA: usize = 65_536;

/// Boundaries of the video, and regular ones where there is no video.
#[derive(Clone, Debug)]
pub(crate) struct Grid {
    timescale: Timescale,
    /// Boundaries inside the video, in ascending order.
    boundaries: Vec<i64>,
    /// End of the video.
    end: Option<i64>,
    /// Target duration in nanoseconds.
    target: i64,
    /// Time from which the multiples count without video, in nanoseconds.
    start: i64,
}

impl Grid {
    /// Creates the grid of a video's segments. Without video, the grid has the multiples of the target duration.
    pub(crate) fn new(video: Option<&Segments>, target: i64) -> Self {
        let Some(video) = video else {
            return Self { timescale: Timescale::MILLIS, boundaries: Vec::new(), end: None, target, start: 0 };
        };
        let inner = video.times().split_first().and_then(|(_, rest)| rest.split_last());
        Self {
            timescale: video.timescale(),
            boundaries: inner.map_or_else(Vec::new, |(_, inner)| inner.to_vec()),
            end: Some(video.end()),
            target,
            start: 0,
        }
    }

    /// Returns the same grid for tracks that begin at `start`, in nanoseconds.
    pub(crate) fn from(self, start: i64) -> Self {
        Self { start, ..self }
    }

    pub(crate) const fn timescale(&self) -> Timescale {
        self.timescale
    }

    /// Number of boundaries inside the video.
    pub(crate) fn len(&self) -> usize {
        self.boundaries.len()
    }

    /// Returns the boundaries inside the video, in ticks of `timescale`.
    pub(crate) fn inner(&self, timescale: Timescale) -> Vec<i64> {
        self.boundaries.iter().map(|b| self.timescale.convert(*b, timescale)).collect()
    }

    /// Returns the boundaries of a track that ends at `end`, in ticks of `timescale`. They are the video's boundaries, then a
    /// boundary at the video's end and after every target duration. The last boundary is omitted if less than half a target would
    /// remain. At most `most` boundaries follow the video's.
    pub(crate) fn boundaries(&self, timescale: Timescale, end: i64, most: usize) -> Vec<i64> {
        let mut all = self.inner(timescale);
        let start = || nanos_to(self.start, timescale);
        let base = self.end.map_or_else(start, |e| self.timescale.convert(e, timescale));
        let first = i64::from(self.end.is_none());
        for k in 0..most.min(MOST_EXTRA) {
            let steps = i64::try_from(k).unwrap_or(i64::MAX).saturating_add(first);
            let offset = self.target.saturating_mul(steps);
            let boundary = base.saturating_add(nanos_to(offset, timescale));
            let next = base.saturating_add(nanos_to(offset.saturating_add(self.target / 2), timescale));
            if next > end {
                break;
            }
            if all.last().is_none_or(|last| boundary > *last) {
                all.push(boundary);
            }
        }
        all
    }
}

pub(crate) fn nanos_to(nanos: i64, timescale: Timescale) -> i64 {
    let ticks = i128::from(nanos) * i128::from(timescale.get()) / 1_000_000_000;
    i64::try_from(ticks).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    fn video(times: &[i64]) -> Segments {
        Segments::new(Timescale::MILLIS, Vec::new(), times.to_vec())
    }

    #[test]
    fn audio_alone_is_cut_at_multiples() {
        let grid = Grid::new(None, 4 * SECOND);
        assert_eq!(grid.boundaries(Timescale::MILLIS, 10_000, 99), [4000, 8000]);
        assert_eq!(grid.boundaries(Timescale::MILLIS, 9_999, 99), [4000], "1.999 s go with the segment before");
    }

    #[test]
    fn longer_audio_gets_more_segments() {
        let grid = Grid::new(Some(&video(&[0, 4000, 9000])), 4 * SECOND);
        assert_eq!(grid.boundaries(Timescale::MILLIS, 9_500, 99), [4000]);
        assert_eq!(grid.boundaries(Timescale::MILLIS, 11_000, 99), [4000, 9000]);
        assert_eq!(grid.boundaries(Timescale::MILLIS, 16_000, 99), [4000, 9000, 13_000]);
        assert_eq!(grid.boundaries(Timescale::MILLIS, i64::MAX, 1), [4000, 9000]);
    }

    #[test]
    fn shorter_tracks_keep_the_videos_boundaries() {
        let grid = Grid::new(Some(&video(&[0, 4000, 9000])), 4 * SECOND);
        assert_eq!(grid.boundaries(Timescale::MILLIS, 100, 99), [4000]);
    }
}
