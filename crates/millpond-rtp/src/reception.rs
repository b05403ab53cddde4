//! Statistics of one received source (RFC 3550 appendix A): sequence numbers, loss, jitter.
//!
//! A [`SourceStatistics`] counts each packet as it arrives, and can make a receiver report at any time.

use crate::rtcp::{ReportBlock, SenderReport};
use std::time::Duration;

/// Consecutive packets after which an unannounced source is valid (RFC 3550 A.1, MIN_SEQUENTIAL).
const IN_A_ROW: u8 = 2;
/// Least jump ahead that does not count as loss (MAX_DROPOUT).
const MOST_LOST: u16 = 3000;
/// Least distance behind from which packets no longer count as late (MAX_MISORDER).
const MOST_LATE: u16 = 100;

/// Classification of one packet by its sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// The next packet after `skipped` missing ones. The first packet counts as this too.
    Next {
        /// Number of missing packets before it.
        skipped: u16,
    },
    /// A packet that was missing before.
    Late,
    /// A packet that had arrived before.
    Duplicate,
    /// The first packet of a source that restarted elsewhere: all counts restart.
    Restart,
    /// Not counted: from a source that is not valid yet, or too far from the other packets.
    Refused,
}

/// Statistics of one source.
///
/// Pass each packet to [`packet`](SourceStatistics::packet), and each sender report to
/// [`sender_report`](SourceStatistics::sender_report). All times count from one epoch of the caller's choice. Counts
/// are only reset when the source restarts.
#[derive(Clone, Debug)]
pub struct SourceStatistics {
    clock_rate: u32,
    /// Consecutive packets that are still required.
    probation: u8,
    /// Next sequence number in case a far jump was a restart.
    suspect: Option<u16>,
    /// `None` before the first packet.
    range: Option<Range>,
    received: u64,
    reordered: u64,
    duplicates: u64,
    restarts: u64,
    refused: u64,
    jitter: Jitter,
    /// Packets expected and received at the last report (RFC 3550 A.3).
    prior: (u64, u64),
    /// The last sender report, and its time of arrival.
    heard: Option<(u32, Duration)>,
}

/// Sequence numbers, extended by their wraps.
#[derive(Clone, Copy, Debug)]
struct Range {
    first: i64,
    highest: i64,
    /// Which of the last 128 packets arrived: bit 0 is the highest one.
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

    /// Records a packet behind the highest one; returns whether it was missing.
    fn behind(&mut self, by: u16) -> bool {
        // A packet from before the first one was sent too, so it counts as expected.
        self.first = self.first.min(self.highest - i64::from(by));
        let bit = 1_u128.checked_shl(u32::from(by)).unwrap_or(0);
        let missing = self.seen & bit == 0;
        self.seen |= bit;
        missing
    }
}

impl SourceStatistics {
    /// Creates statistics of an unannounced source: its first packets count once two are consecutive (RFC 3550 A.1).
    #[must_use]
    pub fn new(clock_rate: u32) -> Self {
        Self { probation: IN_A_ROW, ..Self::announced(clock_rate) }
    }

    /// Creates statistics of a source that is known to send, for example set up by RTSP: its first packet counts.
    /// `clock_rate` is the number of timestamp ticks per second.
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
        // Two consecutive packets far away: the source restarted.
        if self.suspect == Some(sequence) {
            self.restart(sequence);
            return Arrival::Restart;
        }
        self.suspect = Some(sequence.wrapping_add(1));
        Arrival::Refused
    }

    /// Counts consecutive packets until the source is valid.
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

    /// Records a sender report, for the next receiver report.
    pub fn sender_report(&mut self, report: &SenderReport, arrival: Duration) {
        self.heard = Some(((report.ntp >> 16) as u32, arrival));
    }

    /// Highest sequence number, with the number of wraps in the upper 16 bits.
    #[must_use]
    pub fn highest(&self) -> u32 {
        self.range.map_or(0, |range| range.highest as u32)
    }

    /// Number of packets expected by their sequence numbers.
    #[must_use]
    pub fn expected(&self) -> u64 {
        self.range.map_or(0, |range| (range.highest - range.first + 1).unsigned_abs())
    }

    /// Number of packets received, duplicates included.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Packets expected but not received (RFC 3550 A.3); negative where duplicates outnumber losses.
    #[must_use]
    pub fn lost(&self) -> i64 {
        difference(self.expected(), self.received)
    }

    /// Sequence numbers that never arrived: like [`lost`](SourceStatistics::lost), but not offset by duplicates.
    #[must_use]
    pub fn missing(&self) -> u64 {
        (self.expected() + self.duplicates).saturating_sub(self.received)
    }

    /// Number of packets that arrived after one with a higher number.
    #[must_use]
    pub fn reordered(&self) -> u64 {
        self.reordered
    }

    /// Number of repeated packets.
    #[must_use]
    pub fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// Number of restarts of the source.
    #[must_use]
    pub fn restarts(&self) -> u64 {
        self.restarts
    }

    /// Number of packets that were not counted.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Interarrival jitter (RFC 3550 A.8).
    #[must_use]
    pub fn jitter(&self) -> Duration {
        Duration::from_secs_f64(self.jitter.scaled as f64 / 16.0 / f64::from(self.clock_rate))
    }

    /// Returns the report block of the source `ssrc` at `now`. The lost fraction is that since the last call (RFC 3550
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

/// Interarrival jitter of RFC 3550 A.8, in integers.
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

/// Converts a time to timestamp ticks, which wrap.
fn ticks(time: Duration, rate: u32) -> u32 {
    ticks_in_all(time, rate) as u32
}

/// Extends the timestamps of one source by their wraps.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExtendedTimestamps {
    last: Option<(u32, i64)>,
}

impl ExtendedTimestamps {
    /// Returns the ticks since the first timestamp; negative before it. Each timestamp must be less than half a wrap
    /// from the one before.
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
