//! A received track.

use super::{
    reorder::{ReorderBuffer, ReorderLimits},
    repairs::{RepairCounts, Repairs},
    source::{SentBy, Source},
};
use crate::{
    feedback::GenericNack,
    packet::{self, Header},
    payload::{Depacketizer, PayloadError, Unit},
    reception::{Arrival, SourceStatistics},
    rtcp::{self, RtcpError, RtcpItem},
    rtx,
    sdp_reader::{MediaDescription, RetransmissionOffer},
};
use bytes::Bytes;
use std::time::Duration;

/// Greatest distance of the first packet from the announced one: beyond it, the announcement is wrong.
const MOST_SKIPPED: u16 = 100;

/// Counts of packets that are not used. Loss, order and jitter are in [`TrackReceiver::statistics`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiveCounts {
    /// Packets of other sources.
    pub foreign: u64,
    /// Packets with another payload type.
    pub other_payload: u64,
    /// Packets that are no RTP.
    pub invalid: u64,
    /// Packets that arrived after their place was given up, or twice.
    pub late: u64,
    /// Packets whose payload violates its format.
    pub broken: u64,
}

/// Receives one track.
///
/// Pass each RTP packet to [`rtp`](TrackReceiver::rtp), each RTCP packet to [`rtcp`](TrackReceiver::rtcp), and call
/// [`tick`](TrackReceiver::tick) and [`feedback`](TrackReceiver::feedback) at the time that [`wake`](TrackReceiver::wake)
/// returns. Nothing that a source sends ends
/// the reception: what can't be used is counted. All times count from one epoch of the caller's choice.
#[derive(Debug)]
pub struct TrackReceiver {
    payload_type: u8,
    clock_rate: u32,
    source: Source,
    statistics: SourceStatistics,
    reorder: ReorderBuffer<(Header, Bytes)>,
    /// `None` where lost packets stay lost.
    repairs: Option<Repairs>,
    /// Payload type of retransmissions.
    repair_type: Option<u8>,
    /// Least time that packets are held: that of the other tracks.
    least_hold: Duration,
    /// Announced sequence number of the first packet.
    start: Option<u16>,
    depacketizer: Depacketizer,
    counts: ReceiveCounts,
    problem: Option<PayloadError>,
    /// Payload type of a packet that is not described, until it is asked for.
    other: Option<u8>,
}

impl TrackReceiver {
    /// Creates a receiver for a described stream. `ssrc` is the announced source, if any.
    ///
    /// # Errors
    /// The payload format, or its mode, is not supported.
    pub fn new(
        stream: &MediaDescription,
        ssrc: Option<u32>,
        limits: ReorderLimits,
        now: Duration,
    ) -> Result<Self, PayloadError> {
        Ok(Self {
            payload_type: stream.payload_type,
            clock_rate: stream.clock_rate,
            source: Source::announced(ssrc, now),
            statistics: SourceStatistics::announced(stream.clock_rate),
            reorder: ReorderBuffer::new(limits),
            repairs: None,
            repair_type: None,
            least_hold: Duration::ZERO,
            start: None,
            depacketizer: Depacketizer::of(stream)?,
            counts: ReceiveCounts::default(),
            problem: None,
            other: None,
        })
    }

    /// Asks for missing packets from now on, as the sender offers. Packets are then waited for within
    /// [`ReorderLimits::REPAIRED`], at most 2 s.
    #[must_use]
    pub fn with_retransmission(self, offer: &RetransmissionOffer) -> Self {
        let reorder = ReorderBuffer::new(ReorderLimits::REPAIRED);
        Self { reorder, repairs: Some(Repairs::new(offer)), repair_type: offer.payload_type, ..self }
    }

    /// Takes the time of an RTSP request and its reply: an upper bound of the round trip time.
    pub fn requested(&mut self, took: Duration) {
        if let Some(repairs) = &mut self.repairs {
            repairs.requested(took);
        }
    }

    /// Sets the sequence number of the first packet, as the reply to the first PLAY announces it, so that the loss of the first
    /// packets is detected. A wrong announcement is ignored. An announcement after the first packet is ignored too, because a UDP
    /// packet may arrive before the reply.
    pub fn begin(&mut self, sequence: u16) {
        if self.statistics.received() == 0 {
            self.start = Some(sequence);
        }
    }

    /// Takes an RTP packet, and appends the units that it completes to `units`.
    pub fn rtp(&mut self, packet: &Bytes, now: Duration, units: &mut Vec<Unit>) {
        let Ok((header, payload)) = packet::parse(packet) else {
            self.counts.invalid += 1;
            return;
        };
        if self.repair_type == Some(header.payload_type) {
            self.retransmitted(header, packet.slice_ref(payload), now);
            return self.tick(now, units);
        }
        match self.source.packet(header.ssrc, header.sequence, now) {
            SentBy::Followed => {}
            SentBy::Replacement => {
                self.statistics = SourceStatistics::announced(self.clock_rate);
                self.restart();
            }
            SentBy::Foreign => {
                self.counts.foreign += 1;
                return;
            }
        }
        if let Some(start) = self.start.take()
            && header.sequence.wrapping_sub(start) < MOST_SKIPPED
        {
            self.reorder.restart(Some(start));
            self.depacketizer.expect(start);
            self.gap(start, header.sequence.wrapping_sub(start), now);
        }
        if !self.is_counted(&header, now) {
            return;
        }
        // Packets of other types, such as error correction, count for the order too.
        let (header, payload) = (header, packet.slice_ref(payload));
        if !self.reorder.push(header.sequence, now, packet.len(), (header, payload)) {
            self.counts.late += 1;
        }
        self.tick(now, units);
    }

    /// Counts a packet of the source. Returns whether it belongs to the stream.
    fn is_counted(&mut self, header: &Header, now: Duration) -> bool {
        let Header { sequence, timestamp, .. } = *header;
        // A packet that was asked for may be far behind the others, which would look like a restart.
        if let Some(repairs) = self.repairs.as_mut().filter(|repairs| repairs.is_asked(sequence)) {
            repairs.arrived(sequence, now);
            return true;
        }
        if self.repairs.as_ref().is_some_and(|repairs| repairs.is_echo(sequence, now)) {
            self.counts.late += 1;
            return false;
        }
        match self.statistics.packet(sequence, timestamp, now) {
            Arrival::Restart => self.restart(),
            Arrival::Refused => return false,
            Arrival::Next { skipped } => self.gap(sequence.wrapping_sub(skipped), skipped, now),
            Arrival::Late => self.repairs.iter_mut().for_each(|repairs| repairs.arrived(sequence, now)),
            Arrival::Duplicate => {}
        }
        true
    }

    fn gap(&mut self, first: u16, count: u16, now: Duration) {
        if let Some(repairs) = self.repairs.as_mut().filter(|_| count > 0) {
            repairs.gap(first, count, now);
        }
    }

    /// Puts a retransmitted packet in the place of the original one (RFC 4588 4). One that was not asked for is ignored,
    /// whatever its source is: the answer to a request shows which source belongs to the stream (RFC 4588 5.3).
    fn retransmitted(&mut self, header: Header, payload: Bytes, now: Duration) {
        let Some((sequence, original)) = rtx::original(&payload) else {
            self.counts.other_payload += 1;
            return;
        };
        let ssrc = self.source.ssrc().unwrap_or(header.ssrc);
        let header = Header { payload_type: self.payload_type, sequence, ssrc, ..header };
        let (original, bytes) = (payload.slice_ref(original), payload.len());
        let is_asked = self.repairs.as_mut().is_some_and(|repairs| repairs.repaired(sequence, now));
        if !is_asked || !self.reorder.push(sequence, now, bytes, (header, original)) {
            self.counts.late += 1;
        }
    }

    /// Gives up missing packets that were waited for long enough.
    pub fn tick(&mut self, now: Duration, units: &mut Vec<Unit>) {
        let Self { repairs, least_hold, .. } = self;
        self.reorder.set_hold(repairs.as_mut().map_or(*least_hold, |repairs| repairs.hold(now).max(*least_hold)));
        while let Some((header, payload)) = self.next_packet(now) {
            if header.payload_type != self.payload_type {
                self.counts.other_payload += 1;
                self.other = Some(header.payload_type);
                self.depacketizer.pass(header.sequence);
            } else if let Err(error) = self.depacketizer.push(&header, &payload, units) {
                self.counts.broken += 1;
                self.problem.get_or_insert(error);
            }
        }
    }

    fn next_packet(&mut self, now: Duration) -> Option<(Header, Bytes)> {
        let Some(repairs) = &mut self.repairs else { return self.reorder.pop(now) };
        let packet = self.reorder.pop_or_wait(now, |missing| repairs.until(missing));
        if let Some(next) = self.reorder.next() {
            repairs.give_up(next);
        }
        packet
    }

    /// Returns a request for missing packets that is due: an early compound of an empty report, the CNAME and a generic NACK
    /// (RFC 4585 3.1), from `ssrc` of the receiver.
    pub fn feedback(&mut self, ssrc: u32, cname: &str, now: Duration) -> Option<Vec<u8>> {
        let source = self.source.ssrc()?;
        let due = self.repairs.as_mut()?.due(now);
        if due.is_empty() {
            return None;
        }
        let mut compound = rtcp::receiver_report(ssrc, &[], cname);
        GenericNack::new(ssrc, source, due).append_to(&mut compound);
        Some(compound)
    }

    /// Time for which packets are held at `now`: that which repairs of this track take.
    pub fn hold(&mut self, now: Duration) -> Duration {
        self.repairs.as_mut().map_or(Duration::ZERO, |repairs| repairs.hold(now))
    }

    /// Sets the least time that packets are held: the hold of other tracks, so that all stay together.
    pub fn hold_at_least(&mut self, hold: Duration) {
        self.least_hold = hold;
    }

    /// Time at which [`tick`](TrackReceiver::tick) and [`feedback`](TrackReceiver::feedback) must be called, if any.
    #[must_use]
    pub fn wake(&self) -> Option<Duration> {
        let Some(repairs) = &self.repairs else { return self.reorder.wake() };
        let order = self.reorder.wake_or(|missing| repairs.until(missing));
        order.into_iter().chain(repairs.wake()).min()
    }

    /// Takes an RTCP packet; returns its items. Only sender reports of the followed source matter here.
    ///
    /// # Errors
    /// The packet is invalid.
    pub fn rtcp(&mut self, compound: &[u8], now: Duration) -> Result<Vec<RtcpItem>, RtcpError> {
        let items = rtcp::parse(compound)?;
        for item in &items {
            if let RtcpItem::Sender(report) = item
                && self.source.ssrc() == Some(report.ssrc)
            {
                self.statistics.sender_report(report, now);
            }
        }
        Ok(items)
    }

    /// Returns a receiver report with the CNAME (RFC 3550 6.4.2), from `ssrc` of the receiver. It has no block before the
    /// first packet, and then only keeps the way through address translators open.
    pub fn report(&mut self, ssrc: u32, cname: &str, now: Duration) -> Vec<u8> {
        let block = match self.source.ssrc() {
            Some(source) if self.statistics.received() > 0 => Some(self.statistics.report(source, now)),
            _ => None,
        };
        rtcp::receiver_report(ssrc, block.as_slice(), cname)
    }

    /// Source that is followed, if known.
    #[must_use]
    pub fn ssrc(&self) -> Option<u32> {
        self.source.ssrc()
    }

    /// Statistics of the source.
    #[must_use]
    pub fn statistics(&self) -> &SourceStatistics {
        &self.statistics
    }

    /// Counts of packets that are not used.
    #[must_use]
    pub fn counts(&self) -> ReceiveCounts {
        self.counts
    }

    /// Counts of packets that were asked for.
    #[must_use]
    pub fn repairs(&self) -> RepairCounts {
        self.repairs.as_ref().map(Repairs::counts).unwrap_or_default()
    }

    /// Number of missing packets that were waited for in vain.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        self.reorder.skipped()
    }

    /// Number of units dropped because a packet of them was lost or unreadable.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.depacketizer.dropped()
    }

    /// Removes and returns the first violation of the payload format since the last call.
    pub fn problem(&mut self) -> Option<PayloadError> {
        self.problem.take()
    }

    /// Removes and returns a payload type of packets that are left out, and the described one.
    pub fn other_payload(&mut self) -> Option<(u8, u8)> {
        Some((self.other.take()?, self.payload_type))
    }

    /// Continues with a source that restarted.
    fn restart(&mut self) {
        self.reorder.restart(None);
        self.repairs.iter_mut().for_each(Repairs::restart);
        self.depacketizer.restart();
    }
}
