//! Times of look-ups of slices. One of many is measured, so that the others cost a count of their thread.

use crate::waits::{LOOKUP_BOUNDS, WaitCounts, Waits};
use std::cell::Cell;
use std::time::Instant;

/// Number of look-ups of a thread of which one is measured.
const SAMPLED: u32 = 64;

thread_local! {
    static COUNT: Cell<u32> = const { Cell::new(0) };
}

/// Where a look-up found a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Memory,
    Disk,
    Absent,
}

/// Times of look-ups by [`Found`].
#[derive(Debug)]
pub(crate) struct Lookups([Waits; 3]);

/// Times of look-ups of slices at one moment: of one in 64.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LookupTimes {
    /// Look-ups that found the slice in memory.
    pub memory: WaitCounts,
    /// Look-ups that found the slice on the disk.
    pub disk: WaitCounts,
    /// Look-ups that found no slice.
    pub absent: WaitCounts,
}

impl Default for Lookups {
    fn default() -> Self {
        Self([(); 3].map(|()| Waits::of(LOOKUP_BOUNDS)))
    }
}

impl Lookups {
    /// Looks a slice up, and measures one look-up of many. `found` says where it found the slice.
    pub(crate) fn time<T>(&self, look_up: impl FnOnce() -> T, found: impl FnOnce(&T) -> Found) -> T {
        let count = COUNT.get();
        COUNT.set(count.wrapping_add(1));
        if !count.is_multiple_of(SAMPLED) {
            return look_up();
        }
        let began = Instant::now();
        let result = look_up();
        let took = began.elapsed();
        self.0[found(&result) as usize].add(took);
        result
    }

    pub(crate) fn snapshot(&self) -> LookupTimes {
        let [memory, disk, absent] = self.0.each_ref().map(Waits::snapshot);
        LookupTimes { memory, disk, absent }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_look_up_of_many_is_measured() {
        std::thread::spawn(|| {
            let lookups = Lookups::default();
            let mut made = 0;
            for _ in 0..3 * SAMPLED {
                lookups.time(|| made += 1, |()| Found::Disk);
            }
            let LookupTimes { memory, disk, .. } = lookups.snapshot();
            assert_eq!((made, disk.counts.iter().sum::<u64>()), (3 * SAMPLED, 3));
            assert_eq!((memory.counts.iter().sum::<u64>(), memory.counts.len()), (0, LOOKUP_BOUNDS.len() + 1));
        })
        .join()
        .unwrap();
    }
}
