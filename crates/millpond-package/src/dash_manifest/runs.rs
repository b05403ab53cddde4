//! Segments of a track by runs of equal durations (ISO/IEC 23009-1 5.3.9.6).

/// Consecutive segments with the same duration: an `S` element, or all segments of a `SegmentTemplate` with a duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// Number of segments before it.
    pub(super) first: u64,
    /// Media time of its beginning, in ticks.
    pub(super) start: u64,
    /// Duration of a segment in ticks; never zero.
    pub(super) duration: u64,
    /// Number of its segments; `None` where time adds segments.
    pub(super) count: Option<u64>,
}

/// Bounds of the segments of a Period, in media time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Time up to which segments exist by the clock.
    pub(super) available: u64,
    /// End of the Period.
    pub(super) end: Option<u64>,
}

/// A segment of a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    /// Number of segments before it.
    pub(super) index: u64,
    /// Media time of its beginning.
    pub(super) time: u64,
    pub(super) duration: u64,
    /// Whether the manifest lists it, so that it exists whatever the clock says.
    pub(super) is_listed: bool,
}

impl Run {
    /// Returns the number of its segments that exist.
    fn len(&self, bounds: Bounds) -> u64 {
        let ended = bounds.end.filter(|end| bounds.available >= *end);
        let by_clock = match ended {
            Some(end) => end.saturating_sub(self.start).div_ceil(self.duration),
            None => bounds.available.saturating_sub(self.start) / self.duration,
        };
        let before_end = bounds.end.map(|end| end.saturating_sub(self.start).div_ceil(self.duration));
        self.count.unwrap_or(by_clock).min(before_end.unwrap_or(u64::MAX))
    }

    fn segment(&self, place: u64) -> Segment {
        Segment {
            index: self.first.saturating_add(place),
            time: self.start.saturating_add(place.saturating_mul(self.duration)),
            duration: self.duration,
            is_listed: self.count.is_some(),
        }
    }
}

/// Returns the first segment that begins at `from` or later.
pub(super) fn first_from(runs: &[Run], from: u64, bounds: Bounds) -> Option<Segment> {
    runs.iter().find_map(|run| {
        let place = from.saturating_sub(run.start).div_ceil(run.duration);
        (place < run.len(bounds)).then(|| run.segment(place))
    })
}

/// Returns the last segment that begins at `time` or before, else the first one.
pub(super) fn around(runs: &[Run], time: u64, bounds: Bounds) -> Option<Segment> {
    let before = runs.iter().rev().filter(|run| run.start <= time).find_map(|run| {
        let last = run.len(bounds).checked_sub(1)?;
        Some(run.segment(last.min(time.saturating_sub(run.start) / run.duration)))
    });
    before.or_else(|| first_from(runs, 0, bounds))
}

/// Returns the last segment.
pub(super) fn last(runs: &[Run], bounds: Bounds) -> Option<Segment> {
    around(runs, u64::MAX, bounds)
}

/// Returns the end of the segment that time adds next, at `from` or later; `None` where time adds none.
pub(super) fn next_end(runs: &[Run], from: u64) -> Option<u64> {
    let run = runs.last().filter(|run| run.count.is_none())?;
    let place = from.saturating_sub(run.start).div_ceil(run.duration);
    Some(run.segment(place.saturating_add(1)).time)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUNS: [Run; 2] = [
        Run { first: 0, start: 100, duration: 10, count: Some(3) },
        Run { first: 3, start: 130, duration: 20, count: None },
    ];

    fn bounds(available: u64, end: Option<u64>) -> Bounds {
        Bounds { available, end }
    }

    #[test]
    fn segments_by_times() {
        let time = |segment: Option<Segment>| segment.map(|segment| (segment.index, segment.time));
        let now = bounds(175, None);
        assert_eq!(time(first_from(&RUNS, 0, now)), Some((0, 100)));
        assert_eq!(time(first_from(&RUNS, 111, now)), Some((2, 120)));
        assert_eq!(time(first_from(&RUNS, 131, now)), Some((4, 150)));
        assert_eq!(time(first_from(&RUNS, 151, now)), None, "it ends at 190");
        assert_eq!(time(first_from(&RUNS, 151, bounds(190, None))), Some((5, 170)));
        assert_eq!(
            time(first_from(&RUNS, 151, bounds(175, Some(175)))),
            Some((5, 170)),
            "the end of the Period cuts it"
        );
        assert_eq!(time(first_from(&RUNS, 111, bounds(500, Some(115)))), None);
        assert_eq!(time(around(&RUNS, 0, now)), Some((0, 100)));
        assert_eq!(time(around(&RUNS, 149, now)), Some((3, 130)));
        assert_eq!(time(last(&RUNS, now)), Some((4, 150)));
        assert_eq!(time(last(&RUNS, bounds(0, None))), Some((2, 120)), "listed segments exist");
        assert_eq!((next_end(&RUNS, 151), next_end(&RUNS[..1], 151)), (Some(190), None));
    }

    #[test]
    fn great_numbers_do_not_overflow() {
        let run = [Run { first: u64::MAX, start: u64::MAX - 5, duration: u64::MAX, count: Some(u64::MAX) }];
        for bounds in [bounds(0, None), bounds(u64::MAX, Some(u64::MAX))] {
            let _ = (first_from(&run, u64::MAX, bounds), around(&run, 0, bounds), last(&run, bounds));
        }
    }
}
