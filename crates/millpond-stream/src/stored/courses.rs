//! When the bytes of a title's objects are due: what the fetch scheduler is told of a session's position.

use super::StoredMedia;
use millpond_package::ObjectIndex;
use millpond_store::schedule::Course;
use std::{iter, time::Duration};

/// Seconds of media that are looked up at once, one point a second. The scheduler plans a minute ahead.
const REACH: u32 = 75;
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

/// A sample that is due at a time, in seconds of the title. Sorted by time, then by offset.
struct Point {
    time: f64,
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
        let point = |number: &u16, time: f64| {
            let track = media.track(*number)?;
            let ordinal = track.ordinal_at(time)?;
            let timed = track.samples_of(ordinal..ordinal.saturating_add(1)).pop()?;
            let place = track.place(&timed.sample)?;
            Some(Point { time, offset: place.range.start, object: place.object })
        };
        let times = (0..REACH).map(|second| at.as_secs_f64() + f64::from(second));
        self.points = times.flat_map(|time| tracks.iter().filter_map(move |track| point(track, time))).collect();
        self.points.sort_by(|a, b| a.time.total_cmp(&b.time).then(a.offset.cmp(&b.offset)));
    }

    /// The course of an object of `length` bytes from a byte on that is due at a time. Behind the points its bytes are due at `rate`,
    /// in bytes a second.
    pub(crate) fn course(&self, object: ObjectIndex, byte: u64, at: Duration, (length, rate): (u64, f64)) -> Course {
        let begin = (byte, at.as_secs_f64());
        let ahead = |point: &&Point| point.object == object && point.offset > byte && point.time > begin.1;
        let mut points = self.points.iter().filter(ahead).peekable();
        let moments = iter::from_fn(|| {
            let Point { time, offset, .. } = points.next()?;
            let mut furthest = *offset;
            while let Some(other) = points.next_if(|other| other.time == *time) {
                if other.offset - offset <= INTERLEAVED {
                    furthest = other.offset;
                }
            }
            Some((furthest, *time))
        });
        let mut known: Vec<_> = iter::once(begin).chain(moments).collect();
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
        let courses = courses(&[(0.0, 10), (0.0, 40), (1.0, 1000), (1.0, 1040), (2.0, 1500), (2.0, 1540)]);
        let course = courses.course(OBJECT, 10, Duration::ZERO, (2540, 100.0));
        assert_eq!(course, Course::new([(10, 0.0), (1040, 1.0), (1540, 2.0), (2540, 12.0)]));
        let later = courses.course(OBJECT, 1200, Duration::from_millis(1400), (2540, 100.0));
        assert_eq!(later, Course::new([(1200, 1.4), (1540, 2.0), (2540, 12.0)]));
        let other = courses.course(ObjectIndex(1), 0, Duration::ZERO, (100, 50.0));
        assert_eq!(other, Course::new([(0, 0.0), (100, 2.0)]), "an object without points has its mean rate");
    }

    #[test]
    fn tracks_in_regions_of_their_own_are_due_each_by_itself() {
        let far = 10 * INTERLEAVED;
        let courses = courses(&[(0.0, 0), (0.0, far), (1.0, 900), (1.0, far + 20), (2.0, 1700), (2.0, far + 40)]);
        let pictures = courses.course(OBJECT, 0, Duration::ZERO, (far + 60, 1e6));
        let rest = (far + 60, 2.0 + (far + 60 - 1700) as f64 / 1e6);
        assert_eq!(pictures, Course::new([(0, 0.0), (900, 1.0), (1700, 2.0), rest]));
        let sound = courses.course(OBJECT, far, Duration::ZERO, (far + 60, 20.0));
        assert_eq!(sound, Course::new([(far, 0.0), (far + 20, 1.0), (far + 40, 2.0), (far + 60, 3.0)]));
    }
}
