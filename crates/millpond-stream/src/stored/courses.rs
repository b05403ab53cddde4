//! When the bytes of a title's objects are due: what the fetch scheduler is told of a session's position.

use super::{StoredMedia, seconds};
use millpond_package::{ObjectIndex, PresentedTrack};
use millpond_store::schedule::Course;
use std::time::Duration;

/// Media time of the samples that one look-up in the sample tables covers. The fetch scheduler plans a minute ahead.
const REACH: Duration = Duration::from_secs(75);
/// Samples within this time count as due together, at its beginning. A key frame of some hundred kilobytes is due at once.
const TOGETHER: Duration = Duration::from_millis(200);
/// Most samples of a track that are looked up at once, and in one piece of them.
const SAMPLES: (u32, u32) = (16_384, 256);
/// Seconds of media after which they are looked up again.
const RENEWED: Duration = Duration::from_secs(10);
/// Samples of one time that are no further apart in an object are interleaved there. Others are regions of their own.
const INTERLEAVED: u64 = 4 << 20;

/// The bytes of the objects of some tracks by the times at which they are due, over the next minute of a session. A title's bit rate
/// varies, so its mean would tell the wrong moment.
#[derive(Default)]
pub(crate) struct Courses {
    from: Option<Duration>,
    points: Vec<Point>,
}

/// Samples of a track that are due at a time, in seconds of the title. Sorted by time, then by offset.
struct Point {
    time: f64,
    /// Offset behind the last of them.
    offset: u64,
    object: ObjectIndex,
}

impl Courses {
    /// Moves to a time of the title.
    pub(crate) fn moves(&mut self, media: &StoredMedia, tracks: &[u16], at: Duration) {
        if self.from.is_some_and(|from| from <= at && at < from + RENEWED) {
            return;
        }
        self.from = Some(at);
        self.points.clear();
        for track in tracks.iter().filter_map(|number| media.track(*number)) {
            self.add(track, at);
        }
        self.points.sort_by(|a, b| a.time.total_cmp(&b.time).then(a.offset.cmp(&b.offset)));
    }

    /// Adds the samples of a track from a time on.
    fn add(&mut self, track: &PresentedTrack, at: Duration) {
        let Some(timescale) = track.source_track().map(|source| source.timescale.get()) else { return };
        let Some(first) = track.ordinal_at(at.as_secs_f64()) else { return };
        let end = first.saturating_add(SAMPLES.0);
        let pieces = (first..end).step_by(SAMPLES.1 as usize);
        let samples = pieces.map(|from| track.samples_of(from..from.saturating_add(SAMPLES.1)));
        let mut last: Option<u128> = None;
        for timed in samples.take_while(|samples| !samples.is_empty()).flatten() {
            let due = seconds(timed.dts, timescale);
            if due > at + REACH {
                return;
            }
            let Some(place) = track.place(&timed.sample) else { continue };
            let (number, offset) = (due.as_nanos() / TOGETHER.as_nanos(), place.range.end);
            match self.points.last_mut().filter(|point| last == Some(number) && point.object == place.object) {
                Some(point) => point.offset = point.offset.max(offset),
                None => self.points.push(Point { time: due.as_secs_f64(), offset, object: place.object }),
            }
            last = Some(number);
        }
    }

    /// The course of an object of `length` bytes from a byte on that is due at a time. Behind the points its bytes are due at `rate`,
    /// in bytes a second.
    pub(crate) fn course(&self, object: ObjectIndex, byte: u64, at: Duration, (length, rate): (u64, f64)) -> Course {
        let begin = (byte, at.as_secs_f64());
        let mut points = &self.points[self.points.partition_point(|point| point.time < begin.1)..];
        let mut known = vec![begin];
        while let Some(first) = points.first() {
            let count = points.partition_point(|point| point.time < first.time + TOGETHER.as_secs_f64());
            let (together, later) = points.split_at(count.max(1));
            let ahead = || together.iter().filter(|point| point.object == object && point.offset > byte);
            let nearest = ahead().map(|point| point.offset).min();
            let near = ahead().map(|point| point.offset).filter(|offset| offset - nearest.unwrap_or(0) <= INTERLEAVED);
            known.extend(near.max().map(|furthest| (furthest, first.time)));
            points = later;
        }
        let last = known.iter().copied().max_by_key(|point| point.0).unwrap_or(begin);
        known.push((length, last.1 + length.saturating_sub(last.0) as f64 / rate.max(1e-9)));
        Course::new(known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OBJECT: ObjectIndex = ObjectIndex(0);

    fn courses(points: &[(f64, u64)]) -> Courses {
        let point = |(time, offset): &(f64, u64)| Point { time: *time, offset: *offset, object: OBJECT };
        Courses { from: Some(Duration::ZERO), points: points.iter().map(point).collect() }
    }

    #[test]
    fn interleaved_tracks_are_due_up_to_the_furthest_one() {
        let courses = courses(&[(0.0, 10), (0.0, 40), (1.0, 1040), (1.1, 1000), (2.0, 1500), (2.0, 1540)]);
        let course = courses.course(OBJECT, 5, Duration::ZERO, (2540, 100.0));
        assert_eq!(course, Course::new([(5, 0.0), (40, 0.0), (1040, 1.0), (1540, 2.0), (2540, 12.0)]));
        let later = courses.course(OBJECT, 1200, Duration::from_millis(1400), (2540, 100.0));
        assert_eq!(later, Course::new([(1200, 1.4), (1540, 2.0), (2540, 12.0)]));
        let other = courses.course(ObjectIndex(1), 0, Duration::ZERO, (100, 50.0));
        assert_eq!(other, Course::new([(0, 0.0), (100, 2.0)]), "an object without points has its mean rate");
    }

    #[test]
    fn tracks_in_regions_of_their_own_are_due_each_by_itself() {
        let far = 10 * INTERLEAVED;
        let courses = courses(&[(1.0, far + 20), (1.1, 900), (2.0, 1700), (2.0, far + 40)]);
        let pictures = courses.course(OBJECT, 0, Duration::ZERO, (far + 60, 1e6));
        let rest = (far + 60, 2.0 + (far + 60 - 1700) as f64 / 1e6);
        assert_eq!(pictures, Course::new([(0, 0.0), (900, 1.0), (1700, 2.0), rest]));
        let sound = courses.course(OBJECT, far, Duration::ZERO, (far + 60, 20.0));
        assert_eq!(sound, Course::new([(far, 0.0), (far + 20, 1.0), (far + 40, 2.0), (far + 60, 3.0)]));
    }
}
