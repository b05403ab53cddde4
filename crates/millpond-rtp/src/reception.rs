//! What a receiver counts of one source (RFC 3550 appendix A): sequence numbers, loss, jitter.
//!
//! A [`SourceStatistics`] is told each packet as it comes, and what it says can go into a receiver report at any time.

use crate::rtcp::{ReportBlock, SenderReport};
use std::time::Duration;

/// Packets in a row before a source that nobody announced is believed (RFC 3550 A.1, MIN_SEQUENTIAL).
const IN_A_ROW: u8 = 2;
/// Jumps ahead of this many and more are no loss (MAX_DROPOUT).
const MOST_LOST: u16 = 3000;
/// Packets that come later than this many after their turn are no such (MAX_MISORDER).
const MOST_LATE: u16 = 100;

/// What one packet was, by its sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// The next one, after so many that didn't come (yet): 0 where none is missing. The first one is too.
    Next {
        /// Numbers passed over.
        skipped: u16,
    },
    /// One that had been passed over.
    Late,
    /// One that had come already.
    Duplicate,
    /// The first one of a source that began again elsewhere: everything is counted from here.
    Restart,
    /// Not counted: from a source not yet believed, or too far from the others.
    Refused,
}

/// What is counted of one source.
///
/// Each packet goes to [`packet`](SourceStatistics::packet), each sender report to [`sender_report`](SourceStatistics::sender_report). All
/// times are those since one moment that the caller chooses. Nothing is forgotten but by a restart of the source.
#[derive(Clone, Debug)]
pub struct SourceStatistics {
    clock_rate: u32,
    /// Packets in a row that are still needed.
    probation: u8,
    /// What comes next if a far jump was a restart.
    suspect: Option<u16>,
    /// Nothing before the first packet.
    range: Option<Range>,
    received: u64,
    reordered: u64,
    duplicates: u64,
    restarts: u64,
    refused: u64,
    jitter: Jitter,
    /// Expected and received at the last report (RFC 3550 A.3).
    prior: (u64, u64),
    /// The last sender report and when it came.
    heard: Option<(u32, Duration)>,
}

/// Sequence numbers, extended by their wraps.
#[derive(Clone, Copy, Debug)]
struct Range {
    first: i64,
    highest: i64,
    /// Which of the last 128 came: bit 0 is the highest one.
    seen: u128,
}

impl Range {
    fn new(sequence: u16) -> Self {
        Self { first: i64::from(sequence), highest: i64::from(sequence), seen: 1 }
    }

    fn ahead(&mut self, by: u16) {
        self.highest += i64::from(by);
        self.seen = self.seen.checked_shl(u32::from(by)).unwrap_or(0) | 1;
    }

    /// Whether it was missing.
    fn behind(&mut self, by: u16) -> bool {
        // One from before the first was sent, so it was to be expected.
        self.first = self.first.min(self.highest - i64::from(by));
        let bit = 1_u128.checked_shl(u32::from(by)).unwrap_or(0);
        let missing = self.seen & bit == 0;
        self.seen |= bit;
        missing
    }
}

impl SourceStatistics {
    /// A source that nobody announced: its first packets count once there are two in a row (RFC 3550 A.1).
    #[must_use]
    pub fn new(clock_rate: u32) -> Self {
        Self { probation: IN_A_ROW, ..Self::announced(clock_rate) }
    }

    /// A source that is known to send, as one is that RTSP set up: its first packet counts. `clock_rate` are the ticks
    /// a second of its timestamps.
    #[must_use]
    pub fn announced(clock_rate: u32) -> Self {
        Self {
            clock_rate: clock_rate.max(1),
            probation: 0,
            suspect: None,
            range: None,
            received: 0,
            reordered: 0,
            duplicates: 0,
            restarts: 0,
            refused: 0,
            jitter: Jitter::default(),
            prior: (0, 0),
            heard: None,
        }
    }

    /// Counts a packet (RFC 3550 A.1).
    pub fn packet(&mut self, sequence: u16, timestamp: u32, arrival: Duration) -> Arrival {
        let is = self.place(sequence);
        match is {
            Arrival::Refused => {
                self.refused += 1;
                return is;
            }
            Arrival::Late => self.reordered += 1,
            Arrival::Duplicate => self.duplicates += 1,
            Arrival::Next { .. } | Arrival::Restart => {}
        }
        self.received += 1;
        self.jitter.packet(timestamp, ticks(arrival, self.clock_rate));
        is
    }

    fn place(&mut self, sequence: u16) -> Arrival {
        if self.probation > 0 {
            return self.believe(sequence);
        }
        let Some(range) = &mut self.range else {
            self.range = Some(Range::new(sequence));
            return Arrival::Next { skipped: 0 };
        };
        let (ahead, behind) =
            (sequence.wrapping_sub(range.highest as u16), (range.highest as u16).wrapping_sub(sequence));
        if ahead == 0 {
            return Arrival::Duplicate;
        }
        if ahead < MOST_LOST {
            range.ahead(ahead);
            return Arrival::Next { skipped: ahead - 1 };
        }
        if behind < MOST_LATE {
            return if range.behind(behind) { Arrival::Late } else { Arrival::Duplicate };
        }
        // Two in a row, far away: the source began again.
        if self.suspect == Some(sequence) {
            self.restart(sequence);
            return Arrival::Restart;
        }
        self.suspect = Some(sequence.wrapping_add(1));
        Arrival::Refused
    }

    /// Counts packets in a row until there are enough.
    fn believe(&mut self, sequence: u16) -> Arrival {
        let follows = self.suspect == Some(sequence);
        self.probation = if follows { self.probation - 1 } else { IN_A_ROW - 1 };
        self.suspect = Some(sequence.wrapping_add(1));
        if self.probation > 0 {
            return Arrival::Refused;
        }
        self.suspect = None;
        self.range = Some(Range::new(sequence));
        Arrival::Next { skipped: 0 }
    }

    fn restart(&mut self, sequence: u16) {
        self.range = Some(Range::new(sequence));
        self.suspect = None;
        self.restarts += 1;
        (self.received, self.reordered, self.duplicates, self.prior) = (0, 0, 0, (0, 0));
        self.jitter = Jitter::default();
    }

    /// Notes a sender report, for the next report to say when it came.
    pub fn sender_report(&mut self, report: &SenderReport, arrival: Duration) {
        self.heard = Some(((report.ntp >> 16) as u32, arrival));
    }

    /// The highest sequence number, with the count of wraps in the upper 16 bits.
    #[must_use]
    pub fn highest(&self) -> u32 {
        self.range.map_or(0, |range| range.highest as u32)
    }

    /// Packets that there should be, by their numbers.
    #[must_use]
    pub fn expected(&self) -> u64 {
        self.range.map_or(0, |range| (range.highest - range.first + 1).unsigned_abs())
    }

    /// Packets that came, duplicates among them.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Expected but not received (RFC 3550 A.3): below 0 where packets came twice.
    #[must_use]
    pub fn lost(&self) -> i64 {
        difference(self.expected(), self.received)
    }

    /// Numbers that never came: as [`lost`](SourceStatistics::lost), with duplicates not making up for it.
    #[must_use]
    pub fn missing(&self) -> u64 {
        (self.expected() + self.duplicates).saturating_sub(self.received)
    }

    /// Packets that came after one with a higher number.
    #[must_use]
    pub fn reordered(&self) -> u64 {
        self.reordered
    }

    /// Packets that came again.
    #[must_use]
    pub fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// Times that the source began again.
    #[must_use]
    pub fn restarts(&self) -> u64 {
        self.restarts
    }

    /// Packets that were not counted.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Interarrival jitter (RFC 3550 A.8).
    #[must_use]
    pub fn jitter(&self) -> Duration {
        Duration::from_secs_f64(self.jitter.scaled as f64 / 16.0 / f64::from(self.clock_rate))
    }

    /// What a receiver report says of the source `ssrc` at `now`; the share lost is that since the last call (RFC 3550
    /// A.3).
    pub fn report(&mut self, ssrc: u32, now: Duration) -> ReportBlock {
        let (expected, received) = (self.expected(), self.received);
        let of = difference(expected, self.prior.0);
        let lost = of - difference(received, self.prior.1);
        self.prior = (expected, received);
        let fraction = if of <= 0 || lost <= 0 { 0 } else { (lost << 8) / of };
        let (last_report, delay) = match self.heard {
            Some((ntp, at)) => (ntp, u32::try_from(ticks_in_all(now.saturating_sub(at), 65_536)).unwrap_or(u32::MAX)),
            None => (0, 0),
        };
        ReportBlock {
            ssrc,
            fraction_lost: fraction.min(255) as u8,
            lost: self.lost().clamp(-0x80_0000, 0x7f_ffff) as i32,
            highest: self.highest(),
            jitter: u32::try_from(self.jitter.scaled >> 4).unwrap_or(u32::MAX),
            last_report,
            delay,
        }
    }
}

fn difference(of: u64, to: u64) -> i64 {
    of.wrapping_sub(to) as i64
}

/// RFC 3550 A.8, in whole numbers.
#[derive(Clone, Copy, Debug, Default)]
struct Jitter {
    /// Relative transit time of the packet before.
    transit: Option<u32>,
    /// Sixteen times the jitter, in ticks.
    scaled: u64,
}

impl Jitter {
    fn packet(&mut self, timestamp: u32, arrival: u32) {
        let transit = arrival.wrapping_sub(timestamp);
        if let Some(before) = self.transit.replace(transit) {
            let differs = u64::from((transit.wrapping_sub(before) as i32).unsigned_abs());
            self.scaled = self.scaled + differs - ((self.scaled + 8) >> 4);
        }
    }
}

fn ticks_in_all(time: Duration, rate: u32) -> u128 {
    time.as_nanos() * u128::from(rate) / 1_000_000_000
}

/// A time as timestamps have it: it wraps.
fn ticks(time: Duration, rate: u32) -> u32 {
    ticks_in_all(time, rate) as u32
}

/// Timestamps of one source without their wraps.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExtendedTimestamps {
    last: Option<(u32, i64)>,
}

impl ExtendedTimestamps {
    /// Ticks since the first timestamp; below 0 before it. Each is taken to be less than half a wrap from the one
    /// before.
    pub fn extend(&mut self, timestamp: u32) -> i64 {
        let extended = match self.last {
            Some((last, extended)) => extended + i64::from(timestamp.wrapping_sub(last) as i32),
            None => 0,
        };
        self.last = Some((timestamp, extended));
        extended
    }
}

#[cfg(test)]
mod tests;
