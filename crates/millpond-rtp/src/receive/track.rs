//! A received track.

use super::{
    reorder::{ReorderBuffer, ReorderLimits},
    source::{SentBy, Source},
};
use crate::{
    packet::{self, Header},
    payload::{Depacketizer, PayloadError, Unit},
    reception::{Arrival, SourceStatistics},
    rtcp::{self, RtcpError, RtcpItem},
    sdp_reader::MediaDescription,
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
/// [`tick`](TrackReceiver::tick) at the time that [`wake`](TrackReceiver::wake) returns. Nothing that a source sends ends
/// the reception: what can't be used is counted. All times count from one epoch of the caller's choice.
#[derive(Debug)]
pub struct TrackReceiver {
    payload_type: u8,
    clock_rate: u32,
    source: Source,
    statistics: SourceStatistics,
    reorder: ReorderBuffer<(Header, Bytes)>,
    /// Announced sequence number of the first packet.
    start: Option<u16>,
    depacketizer: Depacketizer,
    counts: ReceiveCounts,
    problem: Option<PayloadError>,
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
            start: None,
            depacketizer: Depacketizer::of(stream)?,
            counts: ReceiveCounts::default(),
            problem: None,
        })
    }

    /// Sets the sequence number of the first packet, as the reply to the first PLAY announces it, so that the loss of
    /// the first packets is detected. A wrong announcement is ignored, and so is one that packets have overtaken: a
    /// packet by UDP may arrive before the reply.
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
        }
        match self.statistics.packet(header.sequence, header.timestamp, now) {
            Arrival::Restart => self.restart(),
            Arrival::Refused => return,
            Arrival::Next { .. } | Arrival::Late | Arrival::Duplicate => {}
        }
        // Packets of other types, such as error correction, count for the order too.
        if !self.reorder.push(header.sequence, now, (header, packet.slice_ref(payload))) {
            self.counts.late += 1;
        }
        self.tick(now, units);
    }

    /// Gives up missing packets that were waited for long enough.
    pub fn tick(&mut self, now: Duration, units: &mut Vec<Unit>) {
        while let Some((header, payload)) = self.reorder.pop(now) {
            if header.payload_type != self.payload_type {
                self.counts.other_payload += 1;
                self.depacketizer.pass(header.sequence);
            } else if let Err(error) = self.depacketizer.push(&header, &payload, units) {
                self.counts.broken += 1;
                self.problem.get_or_insert(error);
            }
        }
    }

    /// Time at which [`tick`](TrackReceiver::tick) must be called, if any.
    #[must_use]
    pub fn wake(&self) -> Option<Duration> {
        self.reorder.wake()
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

    /// Number of units dropped because a packet of them was lost or unreadable.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.depacketizer.dropped()
    }

    /// Removes and returns the first violation of the payload format since the last call.
    pub fn problem(&mut self) -> Option<PayloadError> {
        self.problem.take()
    }

    /// Continues with a source that restarted.
    fn restart(&mut self) {
        self.reorder.restart(None);
        self.depacketizer.restart();
    }
}
