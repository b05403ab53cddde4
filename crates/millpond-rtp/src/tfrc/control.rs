//! The rate control of one session.

use super::{Allowance, Feedback, ReportReader, Sender};
use crate::rtcp::ReportBlock;
use std::time::Duration;

/// Rate control of one session: all its tracks share one allowed rate.
///
/// In each round call [`refresh`](Self::refresh), then send at most [`packets`](Self::packets) packets and note them with
/// [`sent`](Self::sent). Where more are ready, call [`limited`](Self::limited); where it is 0, the next packet may leave after
/// [`wait`](Self::wait).
#[derive(Clone, Debug)]
pub struct RateControl {
    sender: Sender,
    reader: ReportReader,
    allowance: Allowance,
    /// Time of the last sign of life that restarted the no-feedback timer.
    heard: Duration,
}

impl RateControl {
    /// A session that begins at `now`.
    #[must_use]
    pub fn new(now: Duration) -> Self {
        let (sender, reader) = (Sender::new(now), ReportReader::default());
        Self { sender, reader, allowance: Allowance::new(), heard: now }
    }

    /// Adds the credit of the time that has passed. `heard` is the time of the receiver's last request or report: it
    /// restarts the no-feedback timer, so that a player whose reports are rare or lost keeps its rate.
    pub fn refresh(&mut self, heard: Duration, now: Duration) {
        if heard > self.heard {
            self.heard = heard;
            self.sender.heard(heard.min(now));
        }
        if self.sender.expires() <= now {
            self.sender.expire(now);
        }
        self.allowance.grow(self.sender.instant_rate(), self.sender.round_trip(), now);
    }

    /// Number of packets that may leave now.
    #[must_use]
    pub fn packets(&self) -> usize {
        self.allowance.packets(self.sender.packet_size() as usize)
    }

    /// Time until the next packet may leave.
    #[must_use]
    pub fn wait(&self) -> Duration {
        self.allowance.wait(self.sender.instant_rate())
    }

    /// Notes that the rate holds packets back: all that it allows was sent.
    pub fn limited(&mut self, now: Duration) {
        self.sender.limited(now);
    }

    /// Notes that packets of a source were sent. `sequence` is the number of the first packet, `bytes` the size of all packets.
    pub fn sent(&mut self, ssrc: u32, sequence: u16, packets: usize, bytes: usize, now: Duration) {
        self.sender.sent(packets, bytes);
        self.reader.sent(ssrc, sequence, packets, bytes, now);
        self.allowance.spend(bytes);
    }

    /// Number of packets that may be sent again now. Repeats leave before new packets, and use their credit, up to a round trip
    /// ahead.
    #[must_use]
    pub fn repeats(&self) -> usize {
        self.allowance.ahead(self.sender.instant_rate(), self.sender.round_trip(), self.sender.packet_size() as usize)
    }

    /// Notes that packets were sent again. `bytes` is their size together.
    pub fn repeated(&mut self, packets: usize, bytes: usize) {
        self.sender.sent(packets, bytes);
        self.allowance.spend(bytes);
    }

    /// Notes that a sender report was sent. `ntp` has the middle 32 bits of its time.
    pub fn reported(&mut self, ssrc: u32, ntp: u32, now: Duration) {
        self.reader.reported(ssrc, ntp, now);
    }

    /// Takes a report block of the receiver.
    pub fn report(&mut self, block: &ReportBlock, now: Duration) {
        let feedback = self.reader.report(block, self.sender.packet_size(), now);
        self.take(feedback, now);
    }

    /// Takes sequence numbers that the receiver misses.
    pub fn missing(&mut self, ssrc: u32, sequences: impl IntoIterator<Item = u16>, now: Duration) {
        let feedback = self.reader.missing(ssrc, sequences, self.sender.packet_size());
        self.take(feedback, now);
    }

    /// Allowed rate in bytes per second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.sender.rate()
    }

    /// Average round trip; `None` before the first sample.
    #[must_use]
    pub fn round_trip(&self) -> Option<Duration> {
        self.sender.round_trip()
    }

    /// Number of loss events.
    #[must_use]
    pub fn loss_events(&self) -> u64 {
        self.reader.loss_events()
    }

    fn take(&mut self, feedback: Option<Feedback>, now: Duration) {
        if let Some(feedback) = feedback {
            self.sender.feedback(&feedback, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const SSRC: u32 = 7;
    const PACKET: usize = 1000;

    /// A session that sends a packet in each millisecond, as far as it may.
    struct Session {
        control: RateControl,
        sent: u16,
        now: Duration,
    }

    impl Session {
        fn new() -> Self {
            Self { control: RateControl::new(Duration::ZERO), sent: 0, now: Duration::ZERO }
        }

        fn send(&mut self, milliseconds: u32) {
            for _ in 0..milliseconds {
                self.now += MS;
                self.control.refresh(self.now, self.now);
                if self.control.packets() > 0 {
                    self.control.sent(SSRC, self.sent, 1, PACKET, self.now);
                    self.sent += 1;
                }
            }
        }

        /// Reports all packets as received but `lost`, after a round trip of this time.
        fn report(&mut self, lost: i32, round_trip: Duration) {
            self.control.reported(SSRC, 1, self.now);
            let highest = self.sent.wrapping_sub(1).into();
            let block =
                ReportBlock { ssrc: SSRC, fraction_lost: 0, lost, highest, jitter: 0, last_report: 1, delay: 0 };
            self.control.report(&block, self.now + round_trip);
        }
    }

    #[test]
    fn round_trips_of_nothing_and_of_minutes_are_bounded() {
        for (round_trip, known) in [(Duration::ZERO, MS), (MS * 300_000, MS * 60_000)] {
            let mut session = Session::new();
            for lost in 0..20 {
                session.send(200);
                session.report(lost, round_trip);
            }
            let found = session.control.round_trip().unwrap();
            assert!(found.abs_diff(known) < MS, "{round_trip:?}: {found:?}");
            assert!((1.0..1.25e9).contains(&session.control.rate()), "{}", session.control.rate());
        }
    }

    #[test]
    fn a_receiver_that_lies_gets_at_most_twice_what_it_was_sent() {
        let mut session = Session::new();
        for round in 0..50 {
            session.send(200);
            // No loss, negative loss, and packets that were never sent.
            session.report([0, i32::MIN, -5][round % 3], 20 * MS);
            let ahead = ReportBlock {
                ssrc: SSRC,
                fraction_lost: 0,
                lost: 0,
                highest: u32::from(session.sent) + 5000,
                jitter: 0,
                last_report: 0,
                delay: 0,
            };
            session.control.report(&ahead, session.now);
        }
        assert!(session.control.rate() <= 2.1e6, "{}", session.control.rate());
    }

    #[test]
    fn a_clock_that_jumps_gives_no_more_than_a_round_trip_of_credit() {
        for jump in [Duration::from_secs(3600), Duration::MAX / 4] {
            let mut session = Session::new();
            for lost in 1..10 {
                session.send(200);
                session.report(lost, 20 * MS);
            }
            let most = 2 + (session.control.rate() * 0.1) as usize / PACKET;
            let before = session.now;
            for now in [before.saturating_sub(jump), before, before + jump, before] {
                session.control.refresh(before, now);
                assert!(session.control.packets() <= most, "{now:?}: {} of {most}", session.control.packets());
                session.control.limited(now);
                session.report(10, 20 * MS);
                assert!((1.0..1.25e9).contains(&session.control.rate()));
            }
        }
    }

    #[test]
    fn repeats_use_the_credit_of_new_packets() {
        let mut session = Session::new();
        session.send(1000);
        session.report(10, 50 * MS);
        session.send(1000);
        session.control.refresh(session.now, session.now + MS * 1000);
        let (packets, repeats) = (session.control.packets(), session.control.repeats());
        assert!(packets > 2 && repeats == packets, "unused credit makes no longer burst: {packets} {repeats}");
        session.control.repeated(packets, packets * PACKET);
        assert_eq!(session.control.packets(), 0);
        let ahead = session.control.repeats();
        assert!(ahead > 0);
        session.control.repeated(ahead, ahead * PACKET);
        assert_eq!(session.control.repeats(), 0);
        assert!(session.control.wait() > Duration::ZERO);
    }
}
