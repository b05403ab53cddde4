//! Which missing packets are asked for, and when.

use super::{
    hold::{Hold, LONGEST},
    round_trip::RoundTrip,
};
use crate::sdp_reader::RetransmissionOffer;
use std::{collections::VecDeque, time::Duration};

/// Most packets that are missing at a time. More are no loss but an outage, and are not asked for.
const MOST_MISSING: usize = 512;
/// Most times that one packet is asked for.
const MOST_ASKS: u8 = 3;
/// Time that reordered packets have before they are asked for. It follows the reordering that is seen.
const TOLERANCE: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(100));
/// Least time between two requests, whose lists are joined (RFC 4585 3.6.2: feedback is a small part of the bandwidth).
const PACE: Duration = Duration::from_millis(10);
/// Least time from a request to the next one for the same packet: a near sender may be busy.
const RETRY: Duration = Duration::from_millis(50);
/// Least wait for the answer to the last request, for the same reason.
const LAST: Duration = Duration::from_millis(250);
/// Time within which second answers arrive, and number of packets that are remembered for them.
const ECHO: (Duration, usize) = (Duration::from_secs(4), 1024);
/// Packets in a row that stay missing though asked for, after which a sender that never repaired any is asked no more.
const FUTILE: u32 = 20;

/// Counts of packets that were asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RepairCounts {
    /// Packets that were asked for, each once.
    pub asked: u64,
    /// Those that arrived in time, repeated or merely late.
    pub repaired: u64,
    /// Those that were given up. They may have arrived later.
    pub too_late: u64,
}

/// Asks for missing packets (RFC 4585 6.2.1), as often as an answer can still arrive in time.
///
/// Tell it of each [`gap`](Self::gap) and of each packet that fills one. Send the numbers that [`due`](Self::due) returns, at
/// the time of [`wake`](Self::wake). A missing packet is worth waiting for [`until`](Self::until) its last answer is due.
#[derive(Debug)]
pub(super) struct Repairs {
    /// Time for which the sender keeps packets, if stated.
    kept: Option<Duration>,
    /// Whether the sender repeats packets as they were.
    repeats: bool,
    /// In ascending order.
    missing: VecDeque<Missing>,
    trip: RoundTrip,
    hold: Hold,
    tolerance: Duration,
    /// Time of the last request.
    sent: Option<Duration>,
    /// Packets that were asked for, and when: each request may be answered. Only where packets are repeated as they were.
    echoes: VecDeque<(u16, Duration)>,
    counts: RepairCounts,
    /// Packets in a row that were asked for in vain.
    futile: u32,
}

#[derive(Clone, Copy, Debug)]
struct Missing {
    sequence: u16,
    /// Arrival of the first packet after it: about the time at which it was due.
    noticed: Duration,
    /// Number of requests for it.
    asked: u8,
    /// Time of the last one.
    at: Duration,
}

impl Repairs {
    pub(super) fn new(offer: &RetransmissionOffer) -> Self {
        Self {
            kept: offer.time,
            repeats: offer.payload_type.is_none(),
            missing: VecDeque::new(),
            trip: RoundTrip::new(),
            hold: Hold::default(),
            tolerance: TOLERANCE.0,
            sent: None,
            echoes: VecDeque::new(),
            counts: RepairCounts::default(),
            futile: 0,
        }
    }

    /// Takes the time of an RTSP request and its reply.
    pub(super) fn requested(&mut self, took: Duration) {
        self.trip.requested(took);
    }

    /// Notes `count` missing packets from `first` on. All come after the packets that are missing already.
    pub(super) fn gap(&mut self, first: u16, count: u16, now: Duration) {
        if self.is_futile() || self.missing.len() + usize::from(count) > MOST_MISSING {
            return;
        }
        let missing = |step| Missing { sequence: first.wrapping_add(step), noticed: now, asked: 0, at: now };
        self.missing.extend((0..count).map(missing));
    }

    /// Whether a packet was asked for, and is still waited for.
    pub(super) fn is_asked(&self, sequence: u16) -> bool {
        self.find(sequence).is_some_and(|place| self.missing[place].asked > 0)
    }

    /// Whether a packet is a second answer to a request. It is so far behind the other packets that it would look like a restart
    /// of its source.
    pub(super) fn is_echo(&self, sequence: u16, now: Duration) -> bool {
        self.echoes.iter().any(|(asked, at)| *asked == sequence && now.saturating_sub(*at) < ECHO.0)
    }

    /// Takes note of a packet that arrived out of order, or was repeated as it was.
    pub(super) fn arrived(&mut self, sequence: u16, now: Duration) {
        let Some(missing) = self.find(sequence).and_then(|place| self.missing.remove(place)) else { return };
        if self.repeats && missing.asked > 0 {
            return self.filled(missing, now);
        }
        self.counts.repaired += u64::from(missing.asked > 0);
        // A network that reorders by so much is given that time before the next request.
        let late = now.saturating_sub(missing.noticed);
        self.tolerance = self.tolerance.max(late + late / 4).min(TOLERANCE.1);
    }

    /// Takes note of a retransmission. Returns whether the packet was asked for and is still of use: nothing else is taken.
    pub(super) fn repaired(&mut self, sequence: u16, now: Duration) -> bool {
        let place = self.find(sequence).filter(|place| self.missing[*place].asked > 0);
        let Some(missing) = place.and_then(|place| self.missing.remove(place)) else { return false };
        self.tolerance = (self.tolerance - self.tolerance / 16).max(TOLERANCE.0);
        self.filled(missing, now);
        true
    }

    fn filled(&mut self, missing: Missing, now: Duration) {
        self.counts.repaired += 1;
        self.futile = 0;
        // Of a packet that was asked for twice nobody knows which request was answered (Karn's rule).
        if missing.asked == 1 {
            self.trip.repaired(now.saturating_sub(missing.at));
        }
        self.hold.need(now.saturating_sub(missing.noticed), now);
    }

    /// Forgets the packets before `next`, which were given up.
    pub(super) fn give_up(&mut self, next: u16) {
        while let Some(first) = self.missing.front()
            && first.sequence != next
            && next.wrapping_sub(first.sequence) < 1 << 15
        {
            if first.asked > 0 {
                self.counts.too_late += 1;
                self.futile += 1;
            }
            self.missing.pop_front();
        }
    }

    /// Forgets all packets: the source restarted.
    pub(super) fn restart(&mut self) {
        self.missing.clear();
    }

    /// Time until which a missing packet is worth waiting for; `None` where it is not asked for.
    pub(super) fn until(&self, sequence: u16) -> Option<Duration> {
        let missing = &self.missing[self.find(sequence)?];
        let last = match self.next_request(missing) {
            Some(next) => next + self.retry().max(LAST),
            None if missing.asked > 0 => missing.at + self.retry().max(LAST),
            None => return None,
        };
        Some(last.min(missing.noticed + LONGEST))
    }

    /// Returns the packets to ask for now, in ascending order, and counts them as asked for.
    pub(super) fn due(&mut self, now: Duration) -> Vec<u16> {
        if self.wake().is_none_or(|wake| now < wake) {
            return Vec::new();
        }
        let within = self.trip.nearly_all();
        let mut due = Vec::new();
        for place in 0..self.missing.len() {
            let missing = self.missing[place];
            if self.next_request(&missing).is_none_or(|at| now < at) {
                continue;
            }
            self.counts.asked += u64::from(missing.asked == 0);
            let asked = Missing { asked: missing.asked + 1, at: now, ..missing };
            self.missing[place] = asked;
            self.hold.begin(now.saturating_sub(missing.noticed) + within, now);
            // On a network with loss requests and answers are lost too, soon.
            if let Some(next) = self.next_request(&asked).filter(|_| missing.asked == 0) {
                self.hold.need(next.saturating_sub(missing.noticed) + within, now);
            }
            due.push(missing.sequence);
        }
        if self.repeats {
            self.echoes.extend(due.iter().map(|sequence| (*sequence, now)));
            let surplus = self.echoes.len().saturating_sub(ECHO.1);
            self.echoes.drain(..surplus);
        }
        self.sent = Some(now);
        due
    }

    /// Time at which [`due`](Self::due) must be called, if any.
    pub(super) fn wake(&self) -> Option<Duration> {
        let first = self.missing.iter().filter_map(|missing| self.next_request(missing)).min()?;
        Some(self.sent.map_or(first, |sent| first.max(sent + PACE)))
    }

    /// Time that all packets are held, so that repaired ones are in order and the others don't wait for them alone.
    pub(super) fn hold(&mut self, now: Duration) -> Duration {
        self.hold.at(now)
    }

    pub(super) fn counts(&self) -> RepairCounts {
        self.counts
    }

    /// Time of the next request for a packet; `None` where its answer would come too late.
    fn next_request(&self, missing: &Missing) -> Option<Duration> {
        let at = match missing.asked {
            0 => missing.noticed + self.tolerance,
            MOST_ASKS.. => return None,
            _ => missing.at + self.retry(),
        };
        let limit = self.kept.map_or(LONGEST, |kept| kept.min(LONGEST));
        (at + self.trip.smoothed() <= missing.noticed + limit).then_some(at)
    }

    /// Time from a request to the next one for the same packet: one and a half round trips.
    fn retry(&self) -> Duration {
        let trip = self.trip.smoothed();
        (trip + trip / 2).max(self.trip.nearly_all()).max(RETRY)
    }

    /// Whether the sender answers no request.
    fn is_futile(&self) -> bool {
        self.counts.repaired == 0 && self.futile >= FUTILE
    }

    fn find(&self, sequence: u16) -> Option<usize> {
        let first = self.missing.front()?.sequence;
        let distance = sequence.wrapping_sub(first);
        self.missing.binary_search_by_key(&distance, |missing| missing.sequence.wrapping_sub(first)).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    /// With a round trip of 100 ms.
    fn repairs(kept: Option<u64>, payload_type: Option<u8>) -> Repairs {
        let mut repairs = Repairs::new(&RetransmissionOffer { payload_type, time: kept.map(at) });
        repairs.requested(at(100));
        repairs
    }

    /// Asks until a time, as it says itself; returns when it asked, and for what.
    fn requests(repairs: &mut Repairs, until: u64) -> Vec<(u64, Vec<u16>)> {
        let mut all = Vec::new();
        while let Some(wake) = repairs.wake().filter(|wake| *wake <= at(until)) {
            all.push((wake.as_millis() as u64, repairs.due(wake)));
        }
        all
    }

    #[test]
    fn packets_are_asked_for_again_after_one_and_a_half_round_trips() {
        let mut repairs = repairs(None, Some(97));
        repairs.gap(65_535, 2, at(1000));
        assert_eq!(repairs.until(0), Some(at(1260)));
        assert!(!repairs.repaired(0, at(1001)), "nobody asked");
        assert_eq!(requests(&mut repairs, 1100), [(1010, vec![65_535, 0])]);
        assert!(repairs.repaired(65_535, at(1110)) && !repairs.repaired(65_535, at(1110)));
        assert_eq!((repairs.until(65_535), repairs.until(0)), (None, Some(at(1410))));
        assert_eq!(requests(&mut repairs, 9999), [(1160, vec![0]), (1310, vec![0])]);
        assert_eq!(repairs.until(0), Some(at(1560)), "no more often");
        repairs.give_up(1);
        assert_eq!(repairs.counts(), RepairCounts { asked: 2, repaired: 1, too_late: 1 });
        assert_eq!((repairs.wake(), repairs.until(0)), (None, None));
        assert!(!repairs.repaired(0, at(1470)));
        assert_eq!(repairs.hold(at(1310)), at(135 + 30), "the first answer, and a tenth of the time since then");
        assert!(repairs.hold(at(9000)) >= at(400));
    }

    #[test]
    fn nothing_is_asked_for_that_would_come_too_late() {
        // The sender has no packet for longer than 250 ms.
        let mut short = repairs(Some(250), Some(97));
        short.gap(1, 1, at(0));
        assert_eq!(requests(&mut short, 9999), [(10, vec![1])]);
        let mut far = repairs(None, Some(97));
        far.trip.repaired(at(2500));
        far.gap(1, 1, at(0));
        assert_eq!((far.wake(), far.until(1), far.hold(at(0))), (None, None, Duration::ZERO));
        let mut none = repairs(Some(0), Some(97));
        none.gap(1, 1, at(0));
        assert_eq!(none.wake(), None);
    }

    #[test]
    fn reordering_is_tolerated() {
        let mut repairs = repairs(None, Some(97));
        repairs.gap(1, 1, at(0));
        repairs.arrived(1, at(8));
        repairs.gap(5, 1, at(100));
        assert_eq!(requests(&mut repairs, 120), [(110, vec![5])]);
        // It was on its way.
        repairs.arrived(5, at(140));
        repairs.gap(9, 1, at(200));
        assert_eq!(repairs.wake(), Some(at(250)));
        repairs.arrived(9, at(10_000));
        repairs.gap(11, 1, at(20_000));
        assert_eq!(repairs.wake(), Some(at(20_100)), "the longest");
        assert_eq!(repairs.counts(), RepairCounts { asked: 1, repaired: 1, too_late: 0 });
    }

    #[test]
    fn repeated_packets_repair_where_there_is_no_other_format() {
        let mut repairs = repairs(None, None);
        repairs.gap(7, 1, at(0));
        assert_eq!(requests(&mut repairs, 20).len(), 1);
        assert!(repairs.is_asked(7));
        repairs.arrived(7, at(110));
        assert!(!repairs.is_asked(7) && repairs.is_echo(7, at(200)) && !repairs.is_echo(7, at(4100)));
        assert_eq!(repairs.counts(), RepairCounts { asked: 1, repaired: 1, too_late: 0 });
    }

    #[test]
    fn outages_and_deaf_senders_are_left_alone() {
        let mut outage = repairs(None, Some(97));
        outage.gap(0, 600, at(0));
        assert_eq!(outage.wake(), None);
        let mut deaf = repairs(None, Some(97));
        for number in 0..30 {
            deaf.gap(number * 2, 1, at(u64::from(number) * 1000));
            requests(&mut deaf, u64::from(number) * 1000 + 999);
            deaf.give_up(number * 2 + 1);
        }
        assert_eq!(deaf.counts(), RepairCounts { asked: 20, repaired: 0, too_late: 20 });
    }
}
