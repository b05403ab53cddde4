//! Transport-wide congestion control: the receiver tells when each packet of a connection arrived
//! (draft-holmer-rmcat-transport-wide-cc-extensions-01).
//!
//! Senders number all packets of a connection in a header extension of RTP ([`URI`]). From the differences of the arrivals they
//! estimate how much the network carries. Browsers that publish begin with a low rate, and raise it only by such reports.

use std::{collections::BTreeMap, time::Duration};

/// URI of the header extension, whose element is a sequence number of 16 bits (section 2).
pub const URI: &str = "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01";
/// Name of the feedback in session descriptions (`a=rtcp-fb`).
pub const FEEDBACK: &str = "transport-cc";

/// Interval of reports. Browsers of today expect one every 50 to 250 ms.
const INTERVAL: Duration = Duration::from_millis(100);
/// Most packets of one report, missing ones included: it fits a datagram, whatever the arrivals are.
const MOST: u16 = 400;
/// Most packets that wait for a report.
const MOST_WAITING: usize = 2048;
/// Distance of sequence numbers that no loss explains: the sender began again.
const LEAP: i64 = 1 << 14;
/// Head of the message (section 3.1).
const TRANSPORT_FEEDBACK: u8 = 205;
const FORMAT: u8 = 15;
/// Ticks a second of deltas, and of reference times.
const DELTA: Duration = Duration::from_micros(250);
const REFERENCE: Duration = Duration::from_millis(64);
/// Packets of one chunk of symbols with two bits each, and its mark.
const CHUNK: usize = 7;
const TWO_BITS: u16 = 0b11 << 14;

/// Keeps the arrivals of packets, and writes reports of them.
///
/// Call [`arrived`](Self::arrived) for each packet, and [`report`](Self::report) at the time of [`next`](Self::next).
#[derive(Debug, Default)]
pub struct TransportArrivals {
    /// Times by sequence numbers without wraps.
    times: BTreeMap<i64, Duration>,
    /// Number after those that were reported.
    next: Option<i64>,
    /// Highest number.
    highest: Option<i64>,
    /// Time of the next report, where something is to be reported.
    due: Option<Duration>,
    reports: u8,
}

impl TransportArrivals {
    /// Notes a packet by the number of its header extension. Those that were reported as missing are passed over.
    pub fn arrived(&mut self, sequence: u16, now: Duration) {
        let mut number = self.number(sequence);
        if self.highest.is_some_and(|highest| (number - highest).abs() > LEAP) {
            *self = Self { reports: self.reports, due: self.due, ..Self::default() };
            number = i64::from(sequence);
        }
        self.highest = Some(self.highest.map_or(number, |highest| highest.max(number)));
        if self.next.is_some_and(|next| number < next) || self.times.len() >= MOST_WAITING {
            return;
        }
        self.times.entry(number).or_insert(now);
        self.due.get_or_insert(now + INTERVAL);
    }

    /// Continues the count of a number that wraps.
    fn number(&self, sequence: u16) -> i64 {
        let Some(highest) = self.highest else { return i64::from(sequence) };
        highest + i64::from(sequence.wrapping_sub(highest as u16) as i16)
    }

    /// Time of the next report; `None` where nothing arrived since the last one.
    #[must_use]
    pub fn next(&self) -> Option<Duration> {
        self.due
    }

    /// Appends the report that is due at `now` to a compound packet. `sender` is the SSRC of the receiver, `source` one of the
    /// connection's. Returns whether there is one.
    pub fn report(&mut self, (sender, source): (u32, u32), now: Duration, compound: &mut Vec<u8>) -> bool {
        if self.due.is_none_or(|due| now < due) {
            return false;
        }
        self.due = None;
        let Some((&oldest, _)) = self.times.first_key_value() else { return false };
        // Of a long gap only the end is told.
        let first = self.next.unwrap_or(oldest).max(oldest - i64::from(MOST / 2));
        // Packets after the reported ones wait for the next report.
        let last = self.times.last_key_value().map_or(first, |(last, _)| *last).min(first + i64::from(MOST) - 1);
        let waiting = self.times.split_off(&(last + 1));
        let times = std::mem::replace(&mut self.times, waiting);
        if !self.times.is_empty() {
            self.due = Some(now);
        }
        self.next = Some(last + 1);
        let (Some(begin), count) = (times.values().min(), (last + 1 - first) as u16) else { return false };
        let reference = begin.as_millis() / REFERENCE.as_millis();
        let mut clock = REFERENCE * u32::try_from(reference).unwrap_or(u32::MAX);
        let mut body = Body::default();
        for number in first..=last {
            match times.get(&number) {
                Some(at) => clock = body.arrived(*at, clock),
                None => body.symbols.push(0),
            }
        }
        let start = compound.len();
        compound.extend_from_slice(&[2 << 6 | FORMAT, TRANSPORT_FEEDBACK, 0, 0]);
        compound.extend_from_slice(&sender.to_be_bytes());
        compound.extend_from_slice(&source.to_be_bytes());
        compound.extend_from_slice(&(first as u16).to_be_bytes());
        compound.extend_from_slice(&count.to_be_bytes());
        let head = (reference as u32) << 8 | u32::from(self.reports);
        compound.extend_from_slice(&head.to_be_bytes());
        body.append_to(compound);
        compound.resize(compound.len().next_multiple_of(4), 0);
        let words = (compound.len() - start) / 4 - 1;
        compound[start + 2..start + 4].copy_from_slice(&(words as u16).to_be_bytes());
        self.reports = self.reports.wrapping_add(1);
        true
    }
}

/// Symbols and deltas of a report (sections 3.1.1 to 3.1.5).
#[derive(Debug, Default)]
struct Body {
    /// 0: not received, 1: a delta of one byte, 2: of two bytes.
    symbols: Vec<u16>,
    deltas: Vec<u8>,
}

impl Body {
    /// Adds a packet that arrived `at` a time. Returns the time that receivers of the report compute for it: the next delta
    /// counts from there, so that roundings do not add up.
    fn arrived(&mut self, at: Duration, clock: Duration) -> Duration {
        let ticks = (at.as_micros() as i64 - clock.as_micros() as i64).div_euclid(DELTA.as_micros() as i64);
        let ticks = ticks.clamp(i16::MIN.into(), i16::MAX.into());
        match u8::try_from(ticks) {
            Ok(delta) => {
                self.symbols.push(1);
                self.deltas.push(delta);
            }
            Err(_) => {
                self.symbols.push(2);
                self.deltas.extend_from_slice(&(ticks as i16).to_be_bytes());
            }
        }
        let moved = DELTA * ticks.unsigned_abs() as u32;
        if ticks < 0 { clock.saturating_sub(moved) } else { clock + moved }
    }

    fn append_to(&self, compound: &mut Vec<u8>) {
        for symbols in self.symbols.chunks(CHUNK) {
            let place = |chunk: u16, (at, symbol): (usize, &u16)| chunk | symbol << (2 * (CHUNK - 1 - at));
            let chunk = symbols.iter().enumerate().fold(TWO_BITS, place);
            compound.extend_from_slice(&chunk.to_be_bytes());
        }
        compound.extend_from_slice(&self.deltas);
    }
}

#[cfg(test)]
mod tests;
