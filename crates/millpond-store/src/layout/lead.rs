//! When a viewer of a striped object can begin to play: delayed deadlines (section 3.3 of Srinilta and Choudhary). The delay lies
//! before the first deadline, where no picture is lost.
//!
//! Each store sends its own units, one after the other. A viewer that begins with the first byte plays the first unit several
//! times as fast as one store sends it. So the viewer must begin late enough that every unit is complete in time.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use super::Layout;
use crate::schedule::{Course, CoursePart, Seconds};

/// Most units that are looked at, and the longest time of playing.
const UNITS: u64 = 256;
const HORIZON: Seconds = 30.0;
/// What must arrive earlier than measured rates say: this time, and this share of the time that a unit takes.
const SPARE: Seconds = 0.1;
const SPARE_SHARE: f64 = 0.25;

/// How an object lies on its stores, and how fast they are.
#[derive(Clone, Debug, PartialEq)]
pub struct Striping {
    /// The arrangement of its units.
    pub layout: Layout,
    /// Names of the stores, in the order of the arrangement.
    pub names: Vec<Arc<str>>,
    /// Their rates.
    pub stores: Vec<StoreRate>,
    /// Longest delay of a start.
    pub longest: Duration,
}

/// The rate of a store.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StoreRate {
    /// Nothing was measured.
    Unknown,
    /// Bytes a second.
    Measured(f64),
    /// The store failed, and is left alone.
    Resting,
}

impl Striping {
    /// Returns the seconds from now after which a viewer can begin `course` without a late byte. The result is 0 or less if the
    /// viewer can begin now. It is `None` before the rates of the stores of its first units are known. `missing` counts the bytes
    /// of a range that have not arrived.
    pub fn delay(&self, course: &Course, missing: impl Fn(Range<u64>) -> u64) -> Option<Seconds> {
        let mut busy = vec![0.0; self.stores.len()];
        let begin = course.time_at(course.start());
        let first = course.start() / self.layout.unit();
        let mut delay: Seconds = 0.0;
        for unit in first..self.layout.units().min(first.saturating_add(UNITS)) {
            let whole = self.layout.bytes(unit);
            let mut at = whole.start.max(course.start());
            let end = whole.end.min(course.end());
            if at >= end || course.time_at(at) - begin > HORIZON {
                break;
            }
            let Some((store, rate)) = self.store_of(unit, &busy) else { continue };
            for CoursePart { len: length, last: needed, .. } in course.parts(at..end) {
                let rest = missing(at..at + length);
                at += length;
                if rest == 0 {
                    continue;
                }
                let Some(rate) = rate else {
                    // Later units wait for nothing: their stores are measured meanwhile.
                    if unit < first + self.stores.len() as u64 {
                        return None;
                    }
                    continue;
                };
                busy[store] += rest as f64 / rate;
                let spare = SPARE + SPARE_SHARE * self.layout.unit() as f64 / rate;
                delay = delay.max(busy[store] + spare - (needed - begin));
            }
        }
        Some(delay)
    }

    /// Returns the store that has least to send among those with a unit, and its rate; `None` where all of them rest.
    fn store_of(&self, unit: u64, busy: &[f64]) -> Option<(usize, Option<f64>)> {
        let rate = |store: usize| match self.stores.get(store)? {
            StoreRate::Resting => None,
            StoreRate::Unknown => Some((store, None)),
            StoreRate::Measured(rate) => Some((store, Some(rate.max(1.0)))),
        };
        let stores = self.layout.stores_of(unit).filter_map(rate);
        stores.min_by(|(a, _), (b, _)| busy[*a].total_cmp(&busy[*b]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// 100 MiB on four stores of 1 MiB a second each.
    fn striping(copies: usize) -> Striping {
        let layout = Layout::new(100 * MIB, MIB, 4, copies).unwrap();
        let names = ["a", "b", "c", "d"].map(Arc::from).into();
        Striping { layout, names, stores: vec![StoreRate::Measured(MIB as f64); 4], longest: Duration::from_secs(5) }
    }

    /// Plays so many MiB a second from an offset on.
    fn course(from: u64, rate: f64) -> Course {
        Course::constant(from, 100 * MIB, rate * MIB as f64)
    }

    fn all(range: Range<u64>) -> u64 {
        range.end - range.start
    }

    /// Returns the lateness of the latest byte of a viewer that begins after `delay`, by steps of 16 KiB.
    fn lateness(striping: &Striping, rate: f64, delay: f64) -> f64 {
        let step = 16 << 10;
        let late = (0..100 * MIB).step_by(step as usize).map(|byte| {
            let (unit, within) = (byte / MIB, byte % MIB);
            let sent = (unit / striping.stores.len() as u64) * MIB + within + step;
            sent as f64 / MIB as f64 - delay - (byte + step) as f64 / MIB as f64 / rate
        });
        late.fold(f64::MIN, f64::max)
    }

    #[test]
    fn a_start_is_late_enough_for_every_byte_and_no_later() {
        for rate in [3.6, 3.8, 4.0] {
            let striping = striping(1);
            let delay = striping.delay(&course(0, rate), all).unwrap();
            let late = lateness(&striping, rate, delay);
            assert!((-0.36..=-0.34).contains(&late), "{rate}: {delay} {late}");
            assert!((1.0..1.2).contains(&delay), "{rate}: {delay}");
        }
        // Half of the stores' rate is not enough for the first units either.
        assert!(striping(1).delay(&course(0, 2.0), all).unwrap() > 0.5);
        // At less than the rate of one store, only the spare time counts.
        assert!(striping(1).delay(&course(0, 0.2), all).unwrap() == 0.0);
    }

    #[test]
    fn what_has_arrived_is_not_waited_for() {
        let striping = striping(1);
        let arrived = |units: u64| move |range: Range<u64>| range.end.max(units * MIB) - range.start.max(units * MIB);
        let delay = |units| striping.delay(&course(0, 3.6), arrived(units)).unwrap();
        assert!(delay(2) > 0.0 && delay(8) == 0.0, "{} {}", delay(2), delay(8));
        assert_eq!(striping.delay(&course(90 * MIB, 3.6), |_| 0), Some(0.0));
        assert_eq!(striping.delay(&course(100 * MIB, 3.6), all), Some(0.0));
    }

    #[test]
    fn segments_are_needed_whole() {
        let segments = (0..20).map(|number| (number * 7 * MIB, number as f64 * 2.0));
        let course = Course::new(segments).whole();
        // The first segment is needed at the beginning: two rows of units.
        let delay = striping(1).delay(&course, all).unwrap();
        assert!((2.0..2.5).contains(&delay), "{delay}");
    }

    #[test]
    fn unknown_stores_make_wait_and_resting_ones_do_not_count() {
        let mut one = striping(1);
        one.stores[2] = StoreRate::Unknown;
        assert_eq!(one.delay(&course(0, 3.6), all), None);
        assert_eq!(one.delay(&course(0, 3.6), |_| 0), Some(0.0));
        let mut two = striping(2);
        two.stores[2] = StoreRate::Resting;
        let (without, with) =
            (two.delay(&course(0, 2.7), all).unwrap(), striping(2).delay(&course(0, 2.7), all).unwrap());
        assert!(without > with && without < 3.0, "{without} {with}");
        two.stores = vec![StoreRate::Resting; 4];
        assert_eq!(two.delay(&course(0, 2.7), all), Some(0.0));
    }

    #[test]
    fn a_slow_store_decides() {
        let mut slow = striping(1);
        slow.stores[3] = StoreRate::Measured(MIB as f64 / 2.0);
        let delay = slow.delay(&course(0, 1.9), all).unwrap();
        assert!((0.4..1.5).contains(&delay), "{delay}");
    }
}
