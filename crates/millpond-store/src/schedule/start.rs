//! When a viewer can begin to play: later by what a slow link lacks. The delay lies before the first picture, where none is lost.

use super::{Course, Mode, Planner, Seconds, ViewerId, viewer::Wish};
use std::ops::Range;

/// Seconds of playback, from the start on, whose bytes must all arrive before their deadlines.
const HORIZON: Seconds = 60.0;
/// Time between two deadlines of it.
const STEP: Seconds = 0.25;
/// Bytes must arrive this much earlier than the bandwidth says.
const SPARE: Seconds = 0.1;
/// The further time by which bytes must arrive earlier where the object takes all of the link. A lost packet of TCP holds up all bytes
/// behind it for about this time, and such a link does not make up for it soon.
const GAP: Seconds = 0.6;

/// How a viewer plays from its position on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlaySpan {
    /// Seconds of media in a second.
    pub speed: f64,
    /// Seconds of media until it stops.
    pub lasts: Seconds,
}

/// The bytes that a viewer is about to need, and what other viewers need of the same link.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Beginning {
    course: Course,
    /// Seconds from now at which slices for others are needed, rising, and the bytes of each.
    others: Vec<(Seconds, u64)>,
}

impl Planner {
    /// Returns the beginning of a viewer; `None` if there is no such viewer, and in modes that do not plan by time. Slices for others are
    /// those of the last plan.
    pub(crate) fn beginning(&self, id: ViewerId, now: Seconds) -> Option<Beginning> {
        let watching = self.viewers.get(&id).filter(|_| self.mode == Mode::Active)?;
        let course = watching.viewer.course().clone();
        let own = course.start()..course.byte_at(course.time_at(course.start()) + HORIZON);
        let is_own = |wish: &Wish<ViewerId>| {
            let is_near = own.contains(&wish.index.saturating_mul(self.slice));
            is_near && self.viewers.get(&wish.viewer).is_none_or(|other| other.object == watching.object)
        };
        let others = self.wishes.iter().take_while(|wish| wish.last <= now + HORIZON).filter(|wish| !is_own(wish));
        Some(Beginning { others: others.map(|wish| (wish.last - now, wish.bytes)).collect(), course })
    }
}

impl Beginning {
    /// Returns the seconds from now after which the viewer can begin without a late byte, over a link of `bandwidth` bytes a second; 0 if
    /// it can begin now. `None` if bytes are missing whose link was not measured. `missing` counts the bytes of a range that have not
    /// arrived.
    pub(crate) fn delay(
        &self,
        playing: PlaySpan,
        bandwidth: Option<f64>,
        missing: impl Fn(Range<u64>) -> u64,
    ) -> Option<Seconds> {
        let course = &self.course;
        let begin = course.time_at(course.start());
        let mut others = self.others.iter().peekable();
        let (mut from, mut carried, mut delay) = (course.start(), 0, 0.0_f64);
        for step in 1..=(HORIZON / STEP) as u32 {
            let played = f64::from(step) * STEP;
            let media = (played * playing.speed).min(playing.lasts);
            let to = course.byte_at(begin + media);
            let lacks = if to > from { missing(from..to) } else { 0 };
            from = from.max(to);
            carried += lacks;
            while let Some((_, bytes)) = others.next_if(|(needed, _)| *needed <= played) {
                carried += bytes;
            }
            if lacks > 0 {
                let bandwidth = bandwidth?;
                let share = (to - course.start()) as f64 / bandwidth / played;
                delay = delay.max(carried as f64 / bandwidth + SPARE + GAP * share.min(1.0) - played);
            }
            if media >= playing.lasts || to >= course.end() {
                break;
            }
        }
        Some(delay)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::{LinkEstimate, LinkState};

    const WHOLE: PlaySpan = PlaySpan { speed: 1.0, lasts: 1e9 };

    /// 1.6 times 100 B/s for 15 s, then 75 B/s.
    fn varying() -> Course {
        Course::new([(0, 0.0), (2400, 15.0), (6000, 63.0)])
    }

    fn planner(course: Course) -> (Planner, ViewerId) {
        let mut planner = Planner::new(Mode::Active, 1000);
        let id = planner.join(1);
        planner.viewer(id).unwrap().moves(course, 100, 0.0);
        (planner, id)
    }

    #[test]
    fn a_start_waits_for_what_the_link_lacks() {
        let (planner, id) = planner(varying());
        let beginning = planner.beginning(id, 0.0).unwrap();
        let start = |bandwidth| beginning.delay(WHOLE, Some(bandwidth), |range| range.end - range.start).unwrap();
        // 2400 bytes take 20 s over 120 B/s, and play for 15.
        assert!((start(120.0) - 5.7).abs() < 0.01, "{}", start(120.0));
        assert!((start(150.0) - 1.7).abs() < 0.01, "{}", start(150.0));
        assert!(start(320.0) < 0.4, "{}", start(320.0));
        assert_eq!(start(1e9), 0.0);
        // Twice as fast, or only the first five seconds of it.
        let start = |playing| beginning.delay(playing, Some(320.0), |range| range.end - range.start).unwrap();
        assert!(
            (start(PlaySpan { speed: 2.0, ..WHOLE }) - 0.7).abs() < 0.1,
            "{}",
            start(PlaySpan { speed: 2.0, ..WHOLE })
        );
        let start =
            |lasts| beginning.delay(PlaySpan { lasts, ..WHOLE }, Some(80.0), |range| range.end - range.start).unwrap();
        assert!((start(5.0) - 5.7).abs() < 0.01 && start(5.0) < start(9.0), "{} {}", start(5.0), start(9.0));
    }

    #[test]
    fn bytes_that_are_there_are_not_waited_for() {
        let (planner, id) = planner(varying());
        let there =
            |until: u64| move |range: Range<u64>| range.end - range.start.clamp(until.min(range.end), range.end);
        let beginning = planner.beginning(id, 0.0).unwrap();
        let start = |until| beginning.delay(WHOLE, Some(120.0), there(until)).unwrap();
        assert!((start(360) - 2.7).abs() < 0.01, "{}", start(360));
        assert_eq!([start(720), start(6000)], [0.0, 0.0]);
        assert_eq!(beginning.delay(WHOLE, None, there(100)), None, "nothing was measured");
        assert_eq!(beginning.delay(WHOLE, None, there(6000)), Some(0.0), "nothing is missing");
    }

    #[test]
    fn other_viewers_share_the_link_and_viewers_of_the_same_object_do_not() {
        let missing = |range: Range<u64>| range.end - range.start;
        let state = LinkState {
            estimate: LinkEstimate { bandwidth: 120.0, delay: 0.0 },
            busy: 0.0,
            least_delay: 0.0,
            lanes: None,
        };
        for (object, expected) in [(1, 0.5..0.7), (2, 40.0..60.0)] {
            let mut planner = Planner::new(Mode::Active, 1000);
            let [other, id] = [planner.join(object), planner.join(1)];
            planner.viewer(other).unwrap().moves(Course::constant(0, 60_000, 100.0), 0, 0.0);
            planner.viewer(id).unwrap().moves(Course::constant(0, 60_000, 100.0), 100, 0.0);
            planner.plan(0.0, state, 0, |_, _| false);
            let start = planner.beginning(id, 0.0).unwrap().delay(WHOLE, Some(120.0), missing).unwrap();
            assert!(expected.contains(&start), "object {object}: {start}");
        }
    }

    #[test]
    fn modes_that_do_not_plan_by_time_begin_at_once() {
        let (mut planner, id) = planner(varying());
        for mode in [Mode::OnDemand, Mode::Window(4.0), Mode::Full] {
            planner.set_mode(mode);
            assert_eq!(planner.beginning(id, 0.0), None);
        }
    }
}
