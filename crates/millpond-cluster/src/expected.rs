//! Bookings that are on their way: of streams that a manager has just sent to their dispensers.

use super::{Bitrate, NodeName};
use std::{collections::VecDeque, time::Duration};

/// Time within which a dispenser books a stream that it was sent, and the manager knows.
const BOOKED_WITHIN: Duration = Duration::from_secs(2);
/// Most streams that are remembered so. Beyond it the oldest are forgotten.
const MOST: usize = 10_000;

/// Bandwidth that will be booked of dispensers. Without it a manager would send all streams of a moment where one fits.
#[derive(Clone, Debug, Default)]
pub struct Expected {
    sent: VecDeque<Sent>,
}

#[derive(Clone, Debug)]
struct Sent {
    at: Duration,
    dispenser: NodeName,
    /// Bandwidth that is booked of the dispenser when the stream's booking shows.
    booked: Bitrate,
}

impl Expected {
    /// Notes a stream of `rate` that was sent at `now` to a dispenser of which `booked` was booked.
    pub fn add(&mut self, dispenser: &NodeName, rate: Bitrate, booked: Bitrate, now: Duration) {
        let booked = booked.max(self.booked(dispenser, now)).plus(rate);
        while self.sent.front().is_some_and(|first| self.sent.len() >= MOST || is_over(first, now)) {
            self.sent.pop_front();
        }
        self.sent.push_back(Sent { at: now, dispenser: dispenser.clone(), booked });
    }

    /// The least bandwidth to count as booked of a dispenser.
    pub fn booked(&self, dispenser: &NodeName, now: Duration) -> Bitrate {
        let recent = self.sent.iter().rev().take_while(|sent| !is_over(sent, now));
        recent.filter(|sent| sent.dispenser == *dispenser).map(|sent| sent.booked).max().unwrap_or_default()
    }
}

fn is_over(sent: &Sent, now: Duration) -> bool {
    now.saturating_sub(sent.at) > BOOKED_WITHIN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_on_their_way_count_until_they_are_booked() {
        let [a, b]: [NodeName; 2] = ["a", "b"].map(|name| name.parse().unwrap());
        let (mbps, at) = (Bitrate::from_mbps, Duration::from_secs);
        let mut expected = Expected::default();
        expected.add(&a, mbps(2), mbps(10), at(100));
        expected.add(&a, mbps(2), mbps(10), at(101));
        assert_eq!((expected.booked(&a, at(101)), expected.booked(&b, at(101))), (mbps(14), mbps(0)));
        // The first two show.
        expected.add(&a, mbps(2), mbps(14), at(102));
        assert_eq!(expected.booked(&a, at(102)), mbps(16));
        // They are booked by now, or never will be.
        assert_eq!(expected.booked(&a, at(105)), mbps(0));
        expected.add(&b, mbps(1), mbps(0), at(106));
        assert_eq!(expected.sent.len(), 1);
    }
}
