//! The rate control of one session.

use super::{Allowance, Feedback, ReportReader, Sender, Start};
use crate::rtcp::ReportBlock;
use std::time::Duration;

/// Rate control of one session: all its tracks share one allowed rate.
///
/// In each round call [`refresh`](Self::refresh), then send at most [`packets`](Self::packets) packets and note them with
/// [`sent`](Self::sent). Where it is 0, the next packet may leave after [`wait`](Self::wait).
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
    pub fn new(start: Start, now: Duration) -> Self {
        let (sender, reader) = (Sender::new(start, now), ReportReader::default());
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

    /// Time until the next packet may leave. Call it where [`packets`](Self::packets) is 0: the rate then limits the sender.
    #[must_use]
    pub fn wait(&mut self, now: Duration) -> Duration {
        self.sender.limited(now);
        self.allowance.wait(self.sender.instant_rate())
    }

    /// Notes that packets of a source were sent. `sequence` is the number of the first one, `bytes` their size together.
    pub fn sent(&mut self, ssrc: u32, sequence: u16, (packets, bytes): (usize, usize), now: Duration) {
        self.sender.sent(packets, bytes);
        self.reader.sent(ssrc, sequence, (packets, bytes), now);
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
