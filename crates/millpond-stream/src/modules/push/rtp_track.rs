//! A track as packets of RTP, for a receiver that gets all of them in their order.

use crate::{Format, Frame, frame::ticks, transmission::ntp};
use bytes::Bytes;
use millpond_rtp::{
    packet::Header,
    payload::{self, Packetizer, Piece},
    rtcp::SenderReport,
    sdp_writer::Described,
};
use std::time::{Duration, Instant, SystemTime};

/// Most bytes of a payload where nothing else is said: that of an Ethernet frame, although TCP carries them, for receivers that pass them
/// on by UDP.
const PAYLOAD: usize = 1400;

/// Time between two reports.
const REPORT: Duration = Duration::from_secs(5);

/// Makes the packets of a track.
pub(super) struct RtpTrack {
    /// Index in the formats of the feed.
    pub(super) track: u16,
    packetizer: Packetizer,
    payload_type: u8,
    ssrc: u32,
    /// Most bytes of a payload.
    longest: usize,
    sequence: u16,
    /// The RTP timestamp of the presentation time `start`.
    base: u32,
    /// In ticks of the track; `None` before the first frame.
    start: Option<i64>,
    clock: u32,
    timescale: u32,
    /// Parameter sets as they would stand in a frame: sent before key frames without them.
    sets: Option<Bytes>,
    pieces: Vec<Piece>,
    packets: u32,
    octets: u32,
    /// Moment of the next report; `None` before the first one.
    next_report: Option<Instant>,
}

impl RtpTrack {
    /// A track before its first packet.
    pub(super) fn new(track: u16, described: &Described<'_>) -> Self {
        let Described { track: source, packetizer, payload_type, .. } = *described;
        Self {
            track,
            packetizer,
            payload_type,
            ssrc: fastrand::u32(..),
            longest: PAYLOAD,
            sequence: fastrand::u16(..),
            base: fastrand::u32(..),
            start: None,
            clock: packetizer.clock_rate(source),
            timescale: source.timescale.get(),
            sets: payload::parameter_sets(source).map(Bytes::from),
            pieces: Vec::new(),
            packets: 0,
            octets: 0,
            next_report: None,
        }
    }

    /// The same as an encrypted source, with an SSRC and with payloads of at most `longest` bytes. The first number is in the lower half:
    /// the first packets that arrive then tell how often it wrapped (RFC 3711 3.3.1).
    pub(super) fn encrypted(self, ssrc: u32, longest: usize) -> Self {
        Self { ssrc, longest, sequence: self.sequence >> 1, ..self }
    }

    /// SSRC of its packets.
    pub(super) fn ssrc(&self) -> u32 {
        self.ssrc
    }

    /// Goes on with the format of another epoch. Returns whether its receiver can follow: it was told the codec and the clock.
    pub(super) fn adopt(&mut self, format: Option<&Format>) -> bool {
        // A track without frames in an epoch only pauses.
        let Some(format) = format else { return true };
        let described = format.described(usize::from(self.track));
        let Some(Described { track, packetizer, .. }) = described else { return false };
        let is_same = packetizer == self.packetizer
            && packetizer.clock_rate(track) == self.clock
            && track.timescale.get() == self.timescale;
        if is_same {
            self.sets = payload::parameter_sets(track).map(Bytes::from);
        }
        is_same
    }

    /// Gives the packets of a frame to `send`, each as its header, the head of its payload, and a part of the frame. A frame that its
    /// codec does not allow is left out.
    pub(super) fn packets(&mut self, frame: &Frame, mut send: impl FnMut([&[u8]; 3])) {
        let sets = self.sets.clone().filter(|_| frame.is_sync && !self.packetizer.stands_alone(&frame.data));
        let timestamp = self.timestamp(frame.pts);
        if let Some(sets) = sets {
            self.part(&sets, timestamp, true, &mut send);
        }
        self.part(&frame.data, timestamp, false, &mut send);
    }

    /// The packets of NAL units, or of a whole frame. `goes_on` is whether more of the frame follows.
    fn part(&mut self, data: &Bytes, timestamp: u32, goes_on: bool, send: &mut impl FnMut([&[u8]; 3])) {
        let mut pieces = std::mem::take(&mut self.pieces);
        pieces.clear();
        if self.packetizer.cut(data, self.longest, &mut pieces).is_ok() {
            for piece in &pieces {
                let marker = piece.marker && !goes_on;
                let Self { payload_type, sequence, ssrc, .. } = *self;
                let header = Header { marker, payload_type, sequence, timestamp, ssrc }.to_bytes();
                self.sequence = sequence.wrapping_add(1);
                self.packets = self.packets.wrapping_add(1);
                // The count wraps (RFC 3550 6.4.1).
                self.octets = self.octets.wrapping_add(piece.len() as u32);
                send([&header, piece.head(), data.get(piece.body.clone()).unwrap_or_default()]);
            }
        }
        self.pieces = pieces;
    }

    /// The RTP timestamp of a presentation time. It wraps.
    fn timestamp(&mut self, pts: i64) -> u32 {
        let start = *self.start.get_or_insert(pts);
        let ticks = i128::from(pts.saturating_sub(start)) * i128::from(self.clock) / i128::from(self.timescale.max(1));
        self.base.wrapping_add(ticks as u32)
    }

    /// The report that is due with a frame, if one is due.
    pub(super) fn report(&mut self, pts: i64, (now, wall): (Instant, SystemTime)) -> Option<SenderReport> {
        if self.next_report.is_some_and(|next| now < next) {
            return None;
        }
        self.next_report = Some(now + REPORT);
        Some(self.summary(pts, wall))
    }

    /// A report of a moment.
    pub(super) fn summary(&mut self, pts: i64, wall: SystemTime) -> SenderReport {
        let timestamp = self.timestamp(pts);
        let Self { ssrc, packets, octets, .. } = *self;
        SenderReport { ssrc, ntp: ntp(wall), timestamp, packets, octets }
    }

    /// A time of the stream in ticks of the track.
    pub(super) fn ticks(&self, position: Duration) -> i64 {
        ticks(position, self.timescale)
    }
}
