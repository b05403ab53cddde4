//! One track of a session, as it is sent: what is carried over from one PLAY to the next.

use super::{
    batch::PACKET,
    block::seconds,
    srtp::Srtp,
    wire::{Room, Wire},
};
use crate::metrics::StreamCounters;
use bytes::Bytes;
use millpond_rtp::{
    description::Described,
    packet::{HEADER, Header},
    payload::{self, Packetizer, Piece},
    rtcp::{self, ReportBlock, SenderReport},
    srtp::{self, SrtpError},
};
use std::{
    net::SocketAddr,
    sync::{Arc, atomic::Ordering},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// From the NTP epoch to the Unix epoch, in seconds (RFC 5905 figure 4).
const NTP_TO_UNIX: u64 = 2_208_988_800;

/// Where packets go.
#[derive(Clone, Debug)]
pub(super) enum Sink {
    /// To a receiver's ports of RTP and RTCP.
    Udp {
        /// For RTP.
        rtp: SocketAddr,
        /// For RTCP.
        rtcp: SocketAddr,
    },
    /// On a connection.
    Tcp {
        /// The connection.
        wire: Arc<Wire>,
        /// Its channels for RTP and RTCP.
        channels: (u8, u8),
    },
}

/// A track that was set up.
#[derive(Clone, Debug)]
pub(super) struct SentTrack {
    /// Place in the presentation's tracks.
    pub(super) track: usize,
    pub(super) sink: Sink,
    pub(super) packetizer: Packetizer,
    pub(super) payload_type: u8,
    pub(super) ssrc: u32,
    /// Keys, where nobody but the receiver is to read it.
    pub(super) srtp: Option<Box<Srtp>>,
    /// Ticks a second of the RTP timestamps, and of the track.
    pub(super) clock: u32,
    pub(super) timescale: u32,
    /// Parameter sets, as they would stand in a frame: sent before key frames without them.
    pub(super) sets: Option<Bytes>,
    /// How pictures are to be turned, as a NAL unit of a frame: sent before the first slice of key frames.
    pub(super) orientation: Option<Bytes>,
    /// The next packet's number.
    pub(super) sequence: u16,
    /// RTP timestamp of the presentation time `start`, in ticks of the track.
    pub(super) base: u32,
    pub(super) start: i64,
    /// The next frame, among those presented.
    pub(super) next: u32,
    pub(super) packets: u64,
    pub(super) octets: u64,
    /// The timestamp last sent.
    pub(super) last: u32,
    /// Packets that its receiver says it did not get.
    pub(super) lost: i32,
    /// Frames are left out up to the next that stands alone.
    pub(super) skips: bool,
}

impl Sink {
    /// How much room there is; on the way to a UDP receiver nobody knows.
    pub(super) fn room(&self) -> Room {
        match self {
            Self::Udp { .. } => Room::Enough,
            Self::Tcp { wire, .. } => wire.room(),
        }
    }
}

impl SentTrack {
    /// A track of a presentation, before its first packet.
    pub(super) fn new(
        number: usize,
        described: &Described<'_>,
        sink: Sink,
        (ssrc, srtp): (u32, Option<Box<Srtp>>),
    ) -> Self {
        let Described { track, packetizer, payload_type, .. } = *described;
        Self {
            track: number,
            sink,
            packetizer,
            payload_type,
            ssrc,
            clock: packetizer.clock_rate(track),
            timescale: track.timescale.get(),
            sets: payload::parameter_sets(track).map(Bytes::from),
            orientation: payload::orientation(track).map(Bytes::from),
            // Random (RFC 3550 5.1), but in the lower half where the first packets that come tell how often it wrapped (RFC 3711 3.3.1).
            sequence: fastrand::u16(..) >> u16::from(srtp.is_some()),
            srtp,
            base: fastrand::u32(..),
            start: 0,
            next: 0,
            packets: 0,
            octets: 0,
            last: 0,
            lost: 0,
            skips: false,
        }
    }

    /// Goes to a frame, which is presented at a time or after it.
    pub(super) fn begin(&mut self, next: u32, from: f64) {
        self.next = next;
        // What was sent before lies before: timestamps go on, a moment later.
        self.base = if self.packets == 0 { self.base } else { self.last.wrapping_add(self.clock / 10) };
        self.start = (from * f64::from(self.timescale)).round() as i64;
    }

    /// The RTP timestamp of a presentation time in ticks of the track.
    pub(super) fn timestamp(&self, pts: i64) -> u32 {
        let ticks = i128::from(pts - self.start) * i128::from(self.clock) / i128::from(self.timescale.max(1));
        // It wraps.
        self.base.wrapping_add(ticks as u32)
    }

    /// The header of the next packet.
    pub(super) fn header(&mut self, pts: i64, marker: bool, octets: usize) -> [u8; HEADER] {
        let timestamp = self.timestamp(pts);
        let Self { payload_type, sequence, ssrc, .. } = *self;
        self.sequence = sequence.wrapping_add(1);
        self.packets += 1;
        self.octets += octets as u64;
        self.last = timestamp;
        Header { marker, payload_type, sequence, timestamp, ssrc }.to_bytes()
    }

    /// The most bytes of a packet's payload.
    pub(super) fn room(&self) -> usize {
        PACKET - HEADER - if self.srtp.is_some() { srtp::TAG } else { 0 }
    }

    /// Adds the next packet to a buffer, sealed.
    ///
    /// # Errors
    /// Its key is spent.
    pub(super) fn seal(
        &mut self,
        pts: i64,
        piece: &Piece,
        frame: &[u8],
        buffer: &mut Vec<u8>,
    ) -> Result<(), SrtpError> {
        let start = buffer.len();
        buffer.extend_from_slice(&self.header(pts, piece.marker, piece.len()));
        buffer.extend_from_slice(piece.head());
        buffer.extend_from_slice(&frame[piece.body.clone()]);
        self.srtp.as_mut().map_or(Ok(()), |srtp| srtp.seal(buffer, start))
    }

    /// A sender report: `position` is what is due now, from the start of the presentation.
    fn report(&self, position: Duration) -> SenderReport {
        let ticks = position.as_nanos() as i128 * i128::from(self.timescale) / 1_000_000_000;
        SenderReport {
            ssrc: self.ssrc,
            ntp: ntp(SystemTime::now()),
            timestamp: self.timestamp(i64::try_from(ticks).unwrap_or(i64::MAX)),
            // Both wrap there (RFC 3550 6.4.1).
            packets: self.packets as u32,
            octets: self.octets as u32,
        }
    }

    /// A sender report as it is sent, or with a reason the end of the source; nothing where its key is spent.
    pub(super) fn rtcp(&mut self, position: Duration, ends: Option<&str>) -> Option<Vec<u8>> {
        let report = self.report(position);
        let mut bytes = match ends {
            Some(reason) => rtcp::bye(&report, "millpond", reason),
            None => report.to_bytes("millpond"),
        };
        if let Some(srtp) = &mut self.srtp {
            srtp.seal_reports(&mut bytes).ok()?;
        }
        Some(bytes)
    }

    /// What its receiver reports; nothing where it comes from somebody else.
    pub(super) fn open<'a>(&mut self, packet: &'a mut [u8]) -> Option<&'a [u8]> {
        match &mut self.srtp {
            Some(srtp) => srtp.open_reports(packet),
            None => Some(packet),
        }
    }

    /// Its receiver reports.
    pub(super) fn hear(&mut self, reception: &ReportBlock, counters: &StreamCounters) {
        counters.reports.fetch_add(1, Ordering::Relaxed);
        let lost = reception.lost.saturating_sub(self.lost);
        counters.lost_packets.fetch_add(u64::try_from(lost).unwrap_or(0), Ordering::Relaxed);
        self.lost = reception.lost.max(self.lost);
        counters.jitter.observe(seconds(reception.jitter.into(), self.clock));
        if let Some(trip) = reception.round_trip((ntp(SystemTime::now()) >> 16) as u32) {
            counters.round_trip.observe(Duration::from_secs_f64(trip));
        }
    }
}

/// NTP time: seconds since 1900 in 32.32 bits.
pub(super) fn ntp(now: SystemTime) -> u64 {
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = since.as_secs().wrapping_add(NTP_TO_UNIX) & 0xffff_ffff;
    (seconds << 32) | ((u64::from(since.subsec_nanos()) << 32) / 1_000_000_000)
}
