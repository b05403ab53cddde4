//! One viewer: its position, and when it will need which slice.

use super::{Course, LinkEstimate, Seconds};
use std::ops::Range;

/// Factor by which the link is assumed to be slower than measured. A link that is little faster than the media is then busy all
/// the time, so that the slices ahead of the viewer outlast a lost packet.
const MARGIN: f64 = 1.25;
/// Time for which Active plans ahead.
const HORIZON: Seconds = 60.0;
/// Most slices of one viewer that Active plans.
const SLICES: u64 = 64;

/// A viewer that reads an object in order, at the pace of the media.
///
/// It has requested bytes up to an offset, and will request more when it gets there. Between two requests it is assumed
/// to play the requested bytes, and to wait at their end.
#[derive(Clone, Debug)]
pub struct Viewer {
    slice: u64,
    course: Course,
    /// Time at which the first byte of the course is played; while the viewer waits, no earlier than now.
    begun: Seconds,
    /// Whether it waits for all requested bytes before it plays.
    waits: bool,
    /// Offset behind the last requested byte.
    asked: u64,
    /// Slices before this one were requested, or returned to the caller.
    next: u64,
}

/// A part of a slice that a viewer will need and that is not cached. Parts of one slice are needed at different times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Wish<V> {
    pub(super) viewer: V,
    pub(super) index: u64,
    pub(super) bytes: u64,
    /// Time at which its first byte is needed.
    pub(super) first: Seconds,
    /// Time at which its last byte is needed.
    pub(super) last: Seconds,
}

impl Viewer {
    /// Creates a viewer of slices of `slice` bytes without requests.
    pub(super) fn new(slice: u64) -> Self {
        Self { slice: slice.max(1), course: Course::default(), begun: 0.0, waits: false, asked: 0, next: 0 }
    }

    /// Notes that the viewer starts the course now, and has requested its bytes up to `asked`. Returns whether it reads
    /// on from its last position; `false` is a seek.
    pub fn moves(&mut self, course: Course, asked: u64, now: Seconds) -> bool {
        let first = asked.div_ceil(self.slice);
        let goes_on = course.start() + self.slice >= self.asked && course.start() <= self.asked + self.slice;
        self.next = if goes_on { self.next.max(first) } else { first };
        (self.waits, self.course, self.begun, self.asked) = (course.is_whole(), course, now, asked);
        goes_on
    }

    /// Notes that the viewer has received all requested bytes. Returns whether it waited for them.
    pub fn receives(&mut self, now: Seconds) -> bool {
        if self.waits {
            self.begun = self.begun.max(now);
        }
        std::mem::take(&mut self.waits)
    }

    /// Returns the time at which the first byte of the course is or was played.
    fn begun(&self, now: Seconds) -> Seconds {
        if self.waits { self.begun.max(now) } else { self.begun }
    }

    /// Returns the time at which the first byte of a slice is needed.
    pub(super) fn needs(&self, index: u64, now: Seconds) -> Seconds {
        self.begun(now) + self.since_begun(index.saturating_mul(self.slice))
    }

    /// Returns the course.
    pub fn course(&self) -> &Course {
        &self.course
    }

    /// Returns the slices that a window of `ahead` slices newly covers. Also returns the time at which the window will cover the
    /// next slice, if that is before the viewer's next request.
    pub(super) fn window(&mut self, ahead: f64, now: Seconds) -> (Range<u64>, Option<Seconds>) {
        let start = self.next;
        let end = self.course.end().div_ceil(self.slice);
        while self.next < end {
            let Some(enters) = self.enters(ahead, self.next) else { break };
            let at = self.begun(now) + enters;
            if at > now + 1e-9 {
                return (start..self.next, Some(at));
            }
            self.next += 1;
        }
        (start..self.next, None)
    }

    /// Returns the time from the begin of the course at which a window of `ahead` slices covers a slice; `None` where that is
    /// not before the next request.
    ///
    /// A viewer of whole segments reads one of them at a time. So its window has `ahead` segments at least: a window of half a
    /// slice covers the next segment when half of this one has been played.
    fn enters(&self, ahead: f64, index: u64) -> Option<Seconds> {
        if ahead <= 0.0 {
            return None;
        }
        let first = index.saturating_mul(self.slice);
        let edge = (index as f64 - ahead) * self.slice as f64;
        let by_bytes = (edge < self.asked as f64).then(|| self.since_begun(edge.max(0.0).ceil() as u64));
        let by_segments = self.course.segments_between(self.asked.saturating_sub(1), first).and_then(|segments| {
            let played = (segments as f64 - ahead).max(0.0);
            (played < 1.0).then(|| played * self.since_begun(self.asked))
        });
        [by_bytes, by_segments].into_iter().flatten().reduce(f64::min)
    }

    /// Adds the missing slices that the viewer will need within the horizon, except those returned to the caller
    /// before.
    pub(super) fn wishes<V: Copy>(&self, name: V, now: Seconds, here: impl Fn(u64) -> bool, out: &mut Vec<Wish<V>>) {
        let end = self.course.end().div_ceil(self.slice).min(self.next + SLICES);
        let asks = self.since_begun(self.asked);
        // A viewer that waits at the end of the requested bytes delays all later ones.
        let begun = self.begun(now).max(now - asks);
        let begun = begun - self.course.time_at(self.course.start());
        for index in self.next..end {
            let range = index * self.slice..((index + 1) * self.slice).min(self.course.end());
            let mut parts = self.course.parts(range).peekable();
            if parts.peek().is_none_or(|part| begun + part.first > now + HORIZON) {
                return;
            }
            if !here(index) {
                out.extend(parts.map(|part| Wish {
                    viewer: name,
                    index,
                    bytes: part.len,
                    first: begun + part.first,
                    last: begun + part.last,
                }));
            }
        }
    }

    /// Marks a slice as returned to the caller. Returns whether it was not before.
    pub(super) fn handle(&mut self, index: u64) -> bool {
        let is_news = index >= self.next;
        self.next = self.next.max(index + 1);
        is_news
    }

    fn since_begun(&self, byte: u64) -> Seconds {
        self.course.time_at(byte) - self.course.time_at(self.course.start())
    }
}

/// Sorts wishes by deadline. Calls `each` with each wish and its latest moment to fetch, from the last wish to the first. The
/// link carries one after the other, and is busy for `busy` seconds already. A slice is read as it arrives: neither its first
/// byte nor its last one may be late.
pub(super) fn latest<V: Copy>(
    wishes: &mut [Wish<V>],
    link: LinkEstimate,
    busy: Seconds,
    mut each: impl FnMut(usize, Seconds),
) {
    wishes.sort_by(|a, b| a.last.total_cmp(&b.last));
    let rate = link.bandwidth / MARGIN;
    let mut next = f64::INFINITY;
    for (place, wish) in wishes.iter().enumerate().rev() {
        let begins = (wish.last.min(next) - wish.bytes as f64 / rate).min(wish.first);
        each(place, begins - link.delay * MARGIN - busy);
        next = begins;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Slices of 1000 bytes, 10 s each, a request for 500 bytes at 100 s.
    fn viewer() -> Viewer {
        let mut viewer = Viewer::new(1000);
        viewer.moves(Course::constant(0, 10_000, 100.0), 1500, 100.0);
        viewer
    }

    fn first_moment(viewer: &Viewer, bandwidth: f64, delay: f64, now: Seconds) -> Option<(u64, Seconds)> {
        let mut wishes = Vec::new();
        viewer.wishes((), now, |_| false, &mut wishes);
        let mut first = None;
        let mut indexes = Vec::new();
        latest(&mut wishes, LinkEstimate { bandwidth, delay }, 0.0, |place, at| {
            first = Some(at);
            indexes.push(place);
        });
        Some((wishes.first()?.index, first?))
    }

    #[test]
    fn windows_follow_the_position_and_stop_at_the_end_of_the_request() {
        let mut viewer = viewer();
        // Slice 2 enters a window of half a slice at byte 1500, which the viewer has not asked for yet.
        assert_eq!(viewer.clone().window(0.5, 1e9), (2..2, None));
        assert_eq!(viewer.clone().window(1.0, 100.0), (2..2, Some(110.0)));
        assert_eq!(viewer.window(1.0, 110.0), (2..3, None));
        assert_eq!(viewer.window(1.0, 1e9), (3..3, None), "not twice");
        viewer.moves(Course::constant(1500, 10_000, 100.0), 3000, 120.0);
        assert_eq!(viewer.window(1.0, 120.0), (3..3, Some(125.0)));
        assert_eq!(viewer.window(3.0, 125.0), (3..6, None));
        viewer.moves(Course::constant(8000, 10_000, 100.0), 8500, 130.0);
        assert_eq!(viewer.window(9.0, 130.0), (9..10, None), "a seek starts over, up to the end");
    }

    #[test]
    fn a_window_covers_the_next_segment_even_where_segments_are_longer_than_it() {
        // Segments of 2500 bytes, 10 s each: the next request is for the slices 3 and 4.
        let segments = (0..8).map(|number| (number * 2500, number as f64 * 10.0));
        let mut viewer = Viewer::new(1000);
        viewer.moves(Course::new(segments).whole(), 2500, 100.0);
        viewer.receives(100.0);
        assert_eq!(viewer.clone().window(0.5, 100.0), (3..3, Some(105.0)), "half of the segment is played then");
        assert_eq!(viewer.clone().window(0.5, 105.0), (3..5, None), "the rest of the next one too");
        assert_eq!(viewer.clone().window(1.0, 100.0), (3..5, None));
        assert_eq!(viewer.clone().window(2.0, 100.0).0, 3..8);
        assert_eq!(viewer.window(0.0, 109.0), (3..3, None), "no window");
    }

    #[test]
    fn active_fetches_at_the_last_moment_that_is_in_time() {
        let viewer = viewer();
        // Byte 2000 is played at 120 s. On a fast link only the delay counts.
        let (index, at) = first_moment(&viewer, 1e9, 1.0, 100.0).unwrap();
        assert_eq!(index, 2);
        assert!((at - (120.0 - 1.25)).abs() < 1e-3, "{at}");
        // At 100 B/s, assumed to be 80, a slice takes 12.5 s and plays for 10. The fetches of all slices within the
        // horizon, to the end of the one with byte 7000, begin that much sooner.
        let (_, at) = first_moment(&viewer, 100.0, 0.0, 100.0).unwrap();
        assert!((at - (170.0 - 5.0 * 12.5)).abs() < 1e-6, "{at}");
        // A viewer that pauses delays its deadlines.
        let (_, at) = first_moment(&viewer, 1e9, 1.0, 1000.0).unwrap();
        assert!((at - (1005.0 - 1.25)).abs() < 1e-3, "{at}");
    }

    #[test]
    fn a_viewer_of_segments_needs_all_of_each_at_its_start() {
        let mut viewer = Viewer::new(1000);
        let segments = [(0, 0.0), (1500, 10.0), (1600, 10.0), (4000, 20.0), (6000, 30.0)];
        viewer.moves(Course::new(segments).whole(), 1500, 100.0);
        let mut wishes = Vec::new();
        viewer.wishes((), 100.0, |_| false, &mut wishes);
        let when: Vec<_> = wishes.iter().map(|wish| (wish.index, wish.first, wish.last)).collect();
        assert_eq!(when, [(2, 110.0, 110.0), (3, 110.0, 110.0), (4, 120.0, 120.0), (5, 120.0, 120.0)]);
        // Slices that hold the end of a segment: the bytes of the next one are needed later.
        let segments = [(0, 0.0), (1500, 10.0), (3500, 20.0), (6000, 30.0)];
        viewer.moves(Course::new(segments).whole(), 1500, 100.0);
        wishes.clear();
        viewer.wishes((), 100.0, |_| false, &mut wishes);
        let when: Vec<_> = wishes.iter().map(|wish| (wish.index, wish.bytes, wish.first)).collect();
        assert_eq!(when[..4], [(2, 1000, 110.0), (3, 500, 110.0), (3, 500, 120.0), (4, 1000, 120.0)]);
    }

    #[test]
    fn a_viewer_plays_a_segment_once_it_has_all_of_it() {
        let mut viewer = Viewer::new(1000);
        viewer.moves(Course::new([(0, 0.0), (1000, 10.0), (2000, 20.0)]).whole(), 1000, 100.0);
        let first = |viewer: &Viewer, now: Seconds| {
            let mut wishes = Vec::new();
            viewer.wishes((), now, |_| false, &mut wishes);
            wishes[0].first
        };
        assert_eq!((first(&viewer, 100.0), first(&viewer, 103.0)), (110.0, 113.0));
        assert!(viewer.receives(104.0) && !viewer.receives(106.0));
        assert_eq!(first(&viewer, 107.0), 114.0);
        // A viewer of a stream needs no more than the next byte.
        viewer.moves(Course::constant(1000, 2000, 100.0), 1500, 110.0);
        assert!(!viewer.receives(120.0));
    }

    #[test]
    fn one_link_carries_all_wishes() {
        let wish = |viewer, last| Wish { viewer, index: 0, bytes: 1000, first: last, last };
        let mut wishes = vec![wish('b', 11.0), wish('a', 10.0)];
        let mut moments = Vec::new();
        latest(&mut wishes, LinkEstimate { bandwidth: 1250.0, delay: 0.0 }, 2.5, |place, at| moments.push((place, at)));
        assert_eq!(wishes[0].viewer, 'a');
        assert_eq!(moments, [(1, 10.0 - 2.5), (0, 9.0 - 2.5)]);
        wishes[1].last = 10.5;
        wishes[1].first = 10.5;
        moments.clear();
        latest(&mut wishes, LinkEstimate { bandwidth: 1250.0, delay: 0.0 }, 0.0, |place, at| moments.push((place, at)));
        assert_eq!(moments, [(1, 9.5), (0, 8.5)]);
    }
}
