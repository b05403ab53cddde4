//! Receivers' reports read as feedback (RFC 5348 section 7: the sender computes the loss event rate).

#[cfg(test)]
mod tests;

use super::{LossEvents, equation::first_interval, sender::Feedback, sent::Sent};
use crate::rtcp::ReportBlock;
use std::{collections::VecDeque, time::Duration};

/// Shortest time over which packets are counted for a receive rate: less is noise.
const RATE_TIME: Duration = Duration::from_millis(100);
/// Most tracks: those that were set up again are the oldest ones.
const TRACKS: usize = 16;
/// Sender reports that are remembered for round trips.
const REPORTS: usize = 4;
/// Most lost packets of one report that are placed one by one. Others of that report belong to the same loss events.
const PLACED: u64 = 256;

/// Computes feedback from the receiver reports of one session, track by track.
///
/// A report tells the number of lost packets, not which ones they were. They are taken to be spread evenly over the packets
/// since the last report. So the loss event rate is exact where reports come once in a round trip. Where they are rare it is
/// too high, by up to the number of packets lost together. NACKs (RFC 4585 6.2.1) name the packets.
#[derive(Clone, Debug, Default)]
pub struct ReportReader {
    tracks: Vec<Track>,
    events: LossEvents,
    /// Number of loss events at the last feedback.
    told: u64,
    /// The last round trip, in the average that groups losses to events.
    round_trip: Option<Duration>,
    /// Largest receive rate of all tracks together so far.
    largest: f64,
}

#[derive(Clone, Debug)]
struct Track {
    ssrc: u32,
    /// Sequence number of packet 0.
    base: u16,
    sent: Sent,
    /// Middle 32 bits of the NTP time in sender reports, and when those were sent.
    sender_reports: VecDeque<(u32, Duration)>,
    /// Number after the last packet that was counted as received or lost.
    counted: u64,
    /// Number after the newest packet of the last report, and the packets lost until there.
    reported: u64,
    lost: i32,
    /// Packets lost by NACKs since the last report.
    named: u64,
    window: Window,
    /// X_recv of the track in bytes per second; `None` before packets of a tenth of a second were reported.
    receive_rate: Option<f64>,
}

/// The packets since a receive rate was computed.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    /// Number of its first packet.
    first: u64,
    /// Arrival of the report before it; `None` before the first report.
    began: Option<Duration>,
    lost: u64,
}

impl ReportReader {
    /// Notes that packets of a source were sent. `sequence` is the number of the first packet.
    pub fn sent(&mut self, ssrc: u32, sequence: u16, packets: usize, bytes: usize, at: Duration) {
        let track = match self.tracks.iter_mut().position(|track| track.ssrc == ssrc) {
            Some(place) => &mut self.tracks[place],
            None => {
                if self.tracks.len() == TRACKS {
                    self.tracks.remove(0);
                }
                self.tracks.push(Track::new(ssrc, sequence));
                let last = self.tracks.len() - 1;
                &mut self.tracks[last]
            }
        };
        track.sent.add(packets as u64, bytes as u64, at);
    }

    /// Notes that a sender report was sent. `ntp` has the middle 32 bits of its time.
    pub fn reported(&mut self, ssrc: u32, ntp: u32, at: Duration) {
        let Some(track) = self.track(ssrc) else { return };
        if track.sender_reports.len() == REPORTS {
            track.sender_reports.pop_front();
        }
        track.sender_reports.push_back((ntp, at));
    }

    /// Takes a report block. Returns feedback. `None` if the report has nothing new, because it is older than another report or
    /// is about packets that were never sent. `packet` is the average packet size in bytes.
    pub fn report(&mut self, block: &ReportBlock, packet: f64, now: Duration) -> Option<Feedback> {
        let place = self.tracks.iter().position(|track| track.ssrc == block.ssrc)?;
        let (end, sample) = (self.tracks[place].end(block)?, self.tracks[place].round_trip(block, now));
        if let Some(sample) = sample {
            self.round_trip = Some(self.round_trip.map_or(sample, |old| (old * 9 + sample) / 10));
        }
        let track = &mut self.tracks[place];
        let lost = track.lost_since(block, end);
        track.measure(end, lost, now);
        let unnamed = lost.saturating_sub(std::mem::take(&mut track.named));
        track.reported = end;
        self.largest = self.largest.max(self.receive_rate().unwrap_or_default());
        self.count(place, end, unnamed, packet);
        let track = &mut self.tracks[place];
        let covers = track.sent.time(end - 1);
        track.sent.forget(track.window.first.min(end - 1));
        Some(self.next_feedback(sample, covers))
    }

    /// Takes sequence numbers that a receiver misses (generic NACK). Returns feedback where a loss event begins with them.
    pub fn missing(&mut self, ssrc: u32, sequences: impl IntoIterator<Item = u16>, packet: f64) -> Option<Feedback> {
        let place = self.tracks.iter().position(|track| track.ssrc == ssrc)?;
        let known = self.events.number();
        for sequence in sequences {
            let track = &mut self.tracks[place];
            let Some(number) = track.number(sequence).filter(|number| *number >= track.counted) else { continue };
            track.named += 1;
            let counted = std::mem::replace(&mut track.counted, number + 1);
            self.events.count_packets(number + 1 - counted);
            self.lose(place, number, packet);
        }
        let covers = self.tracks[place].sent.time(self.tracks[place].counted.saturating_sub(1));
        (self.events.number() > known).then(|| self.next_feedback(None, covers))
    }

    /// Number of loss events.
    #[must_use]
    pub fn loss_events(&self) -> u64 {
        self.events.number()
    }

    /// Counts packets up to `end`, of which `lost` ones are lost somewhere.
    fn count(&mut self, place: usize, end: u64, lost: u64, packet: f64) {
        let track = &mut self.tracks[place];
        let first = track.counted.min(end);
        track.counted = track.counted.max(end);
        let all = end - first;
        let placed = lost.min(PLACED).min(all);
        let mut next = first;
        for number in 0..placed {
            let number = first + all * (2 * number + 1) / (2 * placed);
            self.events.count_packets(number + 1 - next);
            next = number + 1;
            self.lose(place, number, packet);
        }
        self.events.count_packets(end - next);
    }

    fn lose(&mut self, place: usize, number: u64, packet: f64) {
        let at = self.tracks[place].sent.time(number);
        let round_trip = self.round_trip.unwrap_or_default();
        let Self { events, largest, .. } = self;
        let first = || {
            // Before the first rate: the window of four packets with which TCP begins.
            let window = 4.0 * packet / round_trip.max(Duration::from_millis(1)).as_secs_f64();
            first_interval(packet, round_trip, if *largest > 0.0 { *largest } else { window })
        };
        events.lost(at, round_trip, 1, first);
    }

    fn next_feedback(&mut self, round_trip: Option<Duration>, covers: Duration) -> Feedback {
        let has_new_loss = std::mem::replace(&mut self.told, self.events.number()) < self.events.number();
        let (receive_rate, loss_event_rate) = (self.receive_rate(), self.events.rate());
        Feedback { round_trip, receive_rate, loss_event_rate, has_new_loss, covers }
    }

    /// X_recv of all tracks together; `None` while it is unknown of one.
    fn receive_rate(&self) -> Option<f64> {
        self.tracks.iter().map(|track| track.receive_rate).sum()
    }

    fn track(&mut self, ssrc: u32) -> Option<&mut Track> {
        self.tracks.iter_mut().find(|track| track.ssrc == ssrc)
    }
}

impl Track {
    fn new(ssrc: u32, base: u16) -> Self {
        Self {
            ssrc,
            base,
            sent: Sent::default(),
            sender_reports: VecDeque::new(),
            counted: 0,
            reported: 0,
            lost: 0,
            named: 0,
            window: Window::default(),
            receive_rate: None,
        }
    }

    /// Number of the newest packet with a sequence number; `None` where none was sent.
    fn number(&self, sequence: u16) -> Option<u64> {
        let last = self.sent.packets().checked_sub(1)?;
        // Sequence numbers wrap.
        let newest = self.base.wrapping_add(last as u16);
        last.checked_sub(newest.wrapping_sub(sequence).into())
    }

    /// Number after the newest packet of a report; `None` where it tells nothing new.
    fn end(&self, block: &ReportBlock) -> Option<u64> {
        self.number(block.highest as u16).map(|newest| newest + 1).filter(|end| *end > self.reported)
    }

    /// Packets that were lost since the last report, at most those that were sent.
    fn lost_since(&mut self, block: &ReportBlock, end: u64) -> u64 {
        // Duplicates may make it negative; a receiver that begins again tells less than before.
        let lost = block.lost.saturating_sub(self.lost).max(0) as u64;
        self.lost = block.lost;
        lost.min(end - self.reported)
    }

    /// Round trip by a report about one of our sender reports (RFC 3550 6.4.1).
    fn round_trip(&self, block: &ReportBlock, now: Duration) -> Option<Duration> {
        let known = self.sender_reports.iter().rev().find(|(ntp, _)| *ntp == block.last_report)?;
        let held = Duration::from_secs_f64(f64::from(block.delay) / 65_536.0);
        // A receiver that held it for longer than it was away is wrong.
        now.saturating_sub(known.1).checked_sub(held)
    }

    /// Computes the receive rate, once packets of a tenth of a second were reported.
    fn measure(&mut self, end: u64, lost: u64, now: Duration) {
        let Window { first, began, lost: before } = self.window;
        self.window.lost = before + lost;
        let sent = self.sent.time(end - 1).saturating_sub(self.sent.time(first));
        let elapsed = began.map_or(Duration::ZERO, |began| now.saturating_sub(began)).max(sent);
        if elapsed < RATE_TIME {
            return;
        }
        let packets = (end - first).max(1);
        // The newest one arrived: the report names it.
        let arrived = packets.saturating_sub(self.window.lost).max(1) as f64 / packets as f64;
        let bytes = self.sent.bytes_before(end) - self.sent.bytes_before(first);
        self.receive_rate = Some(bytes * arrived / elapsed.as_secs_f64());
        self.window = Window { first: end, began: Some(now), lost: 0 };
    }
}
