//! Transport stream segments that were made of a window.

use bytes::Bytes;
use millpond_package::live::{SegmentNumber, TransportCounters};
use std::collections::VecDeque;

/// Most segments that are kept: players ask for the newest ones, all at about the same time.
const KEPT: usize = 4;
/// Most bytes of them.
const BYTES: usize = 8 << 20;

/// The segments that were made last, and the state of their counters.
#[derive(Debug, Default)]
pub(super) struct Transports {
    counters: TransportCounters,
    /// By track and number, the oldest first.
    made: VecDeque<((usize, SegmentNumber), Bytes)>,
}

impl Transports {
    pub(super) const fn counters(&mut self) -> &mut TransportCounters {
        &mut self.counters
    }

    pub(super) fn known(&self, track: usize, number: SegmentNumber) -> Option<Bytes> {
        self.made.iter().find(|(of, _)| *of == (track, number)).map(|(_, bytes)| bytes.clone())
    }

    /// Keeps a segment, and forgets the oldest ones beyond the limits.
    pub(super) fn keep(&mut self, track: usize, number: SegmentNumber, bytes: Bytes) {
        self.made.push_back(((track, number), bytes));
        let held = |made: &VecDeque<(_, Bytes)>| made.iter().map(|(_, bytes)| bytes.len()).sum::<usize>();
        while self.made.len() > KEPT || held(&self.made) > BYTES {
            self.made.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_kept_within_limits() {
        let mut transports = Transports::default();
        for number in 0..6 {
            transports.keep(0, SegmentNumber(number), Bytes::from_static(b"ts"));
        }
        assert_eq!(transports.known(0, SegmentNumber(1)), None);
        assert!((2..6).all(|number| transports.known(0, SegmentNumber(number)).is_some()));
        assert_eq!(transports.known(1, SegmentNumber(5)), None);
        transports.keep(0, SegmentNumber(6), vec![0; BYTES - 1].into());
        assert_eq!(transports.made.len(), 1);
        transports.keep(0, SegmentNumber(7), vec![0; BYTES + 1].into());
        assert_eq!(transports.made.len(), 0);
    }
}
