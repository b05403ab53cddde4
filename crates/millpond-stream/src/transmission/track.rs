//! One track of a subscriber: what is carried over from one PLAY to the next.

use super::{Protection, history::History};
use crate::{
    Counters, Frame,
    outlet::{Outlet, PACKET},
    stored::seconds,
};
use bytes::Bytes;
use millpond_media::movie::TrackKind;
use millpond_rtp::{
    packet::{HEADER, Header},
    payload::{self, Packetizer, Piece},
    rtcp::{self, ReportBlock, RtcpItem, SenderReport},
    sdp_writer::Described,
    srtp::SrtpError,
};
use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// Seconds from the NTP epoch to the Unix epoch (RFC 5905 figure 4).
const NTP_TO_UNIX: u64 = 2_208_988_800;

/// The frame of a track that was sent last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Passed {
    pub(crate) epoch: u32,
    pub(crate) due: Duration,
    /// In ticks of the track.
    pub(crate) pts: i64,
}

/// Makes packets of one track's frames.
#[derive(Clone, Debug)]
pub struct TrackSender {
    /// Index in the formats of its feed.
    pub(crate) track: u16,
    pub(crate) outlet: Arc<dyn Outlet>,
    pub(super) packetizer: Packetizer,
    payload_type: u8,
    pub(crate) ssrc: u32,
    /// Most bytes of a packet.
    packet: usize,
    pub(super) is_sound: bool,
    /// Whether its receiver is one of WebRTC: frames that show before one that was sent are left out, and sound from before it joined.
    pub(super) is_real_time: bool,
    /// The latest presentation time of the frames that were sent, in ticks of the track.
    shown: Option<i64>,
    /// Keys, where packets are encrypted.
    pub(super) protection: Option<Box<Protection>>,
    /// Ticks of RTP timestamps a second.
    clock: u32,
    /// Ticks of the track a second.
    pub(crate) timescale: u32,
    /// Parameter sets as they would stand in a frame: sent before key frames without them.
    pub(super) sets: Option<Bytes>,
    /// Rotation of pictures as a NAL unit of a frame: sent before the first slice of key frames.
    pub(super) orientation: Option<Bytes>,
    /// Sequence number of the next packet.
    pub(crate) sequence: u16,
    /// RTP timestamp of the presentation time `start`.
    base: u32,
    /// In ticks of the track.
    pub(crate) start: i64,
    /// The next frame.
    pub(crate) next: u32,
    /// `None` before the first frame since it was opened.
    pub(crate) passed: Option<Passed>,
    pub(super) packets: u64,
    pub(super) octets: u64,
    /// The timestamp that was sent last.
    last: u32,
    /// Packets that its receiver reports as lost.
    pub(crate) lost: i32,
    /// Frames are dropped up to the next frame that can be decoded independently.
    pub(super) skips: bool,
    /// Its format changed to one that its receiver does not know: nothing is sent meanwhile.
    pub(super) is_paused: bool,
    /// Packets that its receiver may ask for again; `None` where it may not.
    pub(super) history: Option<Box<History>>,
}

/// Bytes of the packets of all tracks of a subscriber.
pub(super) fn octets(tracks: &[TrackSender]) -> u64 {
    tracks.iter().map(|track| track.octets).sum()
}

impl TrackSender {
    /// A track of a feed, before its first packet. `source` is its SSRC, and the keys where its packets are encrypted.
    pub fn new(
        track: u16,
        described: &Described<'_>,
        outlet: Arc<dyn Outlet>,
        (ssrc, protection): (u32, Option<Box<Protection>>),
    ) -> Self {
        let Described { track: source, packetizer, payload_type, .. } = *described;
        Self {
            track,
            outlet,
            packetizer,
            payload_type,
            ssrc,
            packet: PACKET,
            is_sound: matches!(source.kind, TrackKind::Audio { .. }),
            is_real_time: false,
            shown: None,
            clock: packetizer.clock_rate(source),
            timescale: source.timescale.get(),
            sets: payload::parameter_sets(source).map(Bytes::from),
            orientation: payload::orientation(source).map(Bytes::from),
            // Random (RFC 3550 5.1), but in the lower half for encrypted packets: the first ones that arrive then tell how often it
            // wrapped (RFC 3711 3.3.1).
            sequence: fastrand::u16(..) >> u16::from(protection.is_some()),
            protection,
            base: fastrand::u32(..),
            start: 0,
            next: 0,
            passed: None,
            packets: 0,
            octets: 0,
            last: 0,
            lost: 0,
            skips: false,
            is_paused: false,
            history: None,
        }
    }

    /// Index in the formats of its feed.
    pub fn track(&self) -> u16 {
        self.track
    }

    /// Keeps packets from now on, and sends them again with a payload type when the receiver asks for them. `source` is the SSRC of
    /// these packets with their keys; without it they have a random SSRC.
    pub(crate) fn keep_packets(&mut self, payload_type: u8, source: Option<(u32, Box<Protection>)>) {
        let (ssrc, protection) = match source {
            Some((ssrc, protection)) => (ssrc, Some(protection)),
            None => (self.ssrc ^ fastrand::u32(1..), None),
        };
        self.history = Some(Box::new(History::new(payload_type, ssrc, protection)));
    }

    /// Limits RTP packets, from now on, to `most` bytes: header, payload, and what SRTP adds.
    pub(crate) fn bound_packets(&mut self, most: usize) {
        self.packet = most;
    }

    /// Sends as receivers of WebRTC play, from now on. They decode no B-frames, and keep the delay of the first sound.
    pub(crate) fn play_in_real_time(&mut self) {
        self.is_real_time = true;
    }

    /// Whether a frame is left out, because it shows before one that was sent.
    pub(super) fn is_out_of_order(&mut self, frame: &Frame) -> bool {
        if !self.is_real_time {
            return false;
        }
        let is_late = !frame.is_sync && self.shown.is_some_and(|shown| frame.pts < shown);
        if !is_late {
            self.shown = Some(frame.pts);
        }
        is_late
    }

    /// Goes to a frame, which shows at a time or after it.
    pub(crate) fn begin(&mut self, next: u32, from: f64) {
        (self.next, self.is_paused) = (next, false);
        // Timestamps go on a moment after those that were sent before.
        self.base = if self.packets == 0 { self.base } else { self.last.wrapping_add(self.clock / 10) };
        self.start = (from * f64::from(self.timescale)).round() as i64;
    }

    /// Notes that a frame was sent.
    pub(super) fn passed(&mut self, frame: &Frame) {
        self.next = frame.number.wrapping_add(1);
        self.passed = Some(Passed { epoch: frame.epoch, due: frame.due, pts: frame.pts });
    }

    /// Goes on with another format of its track. Returns whether that is possible: the receiver was told the codec, its way into
    /// packets and the clock.
    pub(super) fn adopt(&mut self, described: &Described<'_>) -> bool {
        let Described { track, packetizer, .. } = *described;
        // The payload type stays the one that was agreed upon.
        let is_same = packetizer == self.packetizer
            && packetizer.clock_rate(track) == self.clock
            && track.timescale.get() == self.timescale;
        if is_same {
            self.sets = payload::parameter_sets(track).map(Bytes::from);
            self.orientation = payload::orientation(track).map(Bytes::from);
        }
        is_same
    }

    /// The RTP timestamp of a presentation time in ticks of the track.
    pub(crate) fn timestamp(&self, pts: i64) -> u32 {
        let ticks = i128::from(pts - self.start) * i128::from(self.clock) / i128::from(self.timescale.max(1));
        // It wraps.
        self.base.wrapping_add(ticks as u32)
    }

    /// The header of the next packet.
    pub(super) fn header(&mut self, pts: i64, marker: bool, octets: usize) -> Header {
        let timestamp = self.timestamp(pts);
        let Self { payload_type, sequence, ssrc, .. } = *self;
        self.sequence = sequence.wrapping_add(1);
        self.packets += 1;
        self.octets += octets as u64;
        self.last = timestamp;
        Header { marker, payload_type, sequence, timestamp, ssrc }
    }

    /// Most bytes of a packet's payload.
    pub(super) fn payload_size(&self) -> usize {
        self.packet - HEADER - self.protection.as_ref().map_or(0, |protection| protection.overhead())
    }

    /// Adds a packet to a buffer, encrypted.
    ///
    /// # Errors
    /// Its key is used up.
    pub(super) fn seal(
        &mut self,
        header: Header,
        piece: &Piece,
        frame: &[u8],
        buffer: &mut Vec<u8>,
    ) -> Result<(), SrtpError> {
        let start = buffer.len();
        buffer.extend_from_slice(&header.to_bytes());
        buffer.extend_from_slice(piece.head());
        buffer.extend_from_slice(&frame[piece.body.clone()]);
        self.protection.as_mut().map_or(Ok(()), |protection| protection.seal(buffer, start))
    }

    /// A sender report. `position` is the due time of `now`, from the start of the feed.
    fn report(&self, position: Duration, now: SystemTime) -> SenderReport {
        let ticks = position.as_nanos() as i128 * i128::from(self.timescale) / 1_000_000_000;
        SenderReport {
            ssrc: self.ssrc,
            ntp: ntp(now),
            timestamp: self.timestamp(i64::try_from(ticks).unwrap_or(i64::MAX)),
            // Both wrap there (RFC 3550 6.4.1).
            packets: self.packets as u32,
            octets: self.octets as u32,
        }
    }

    /// The bytes of a sender report, and of a BYE where `ends` gives the reason; `None` where its key is used up.
    pub(super) fn rtcp(&mut self, position: Duration, now: SystemTime, ends: Option<&str>) -> Option<Vec<u8>> {
        let report = self.report(position, now);
        let mut bytes = match ends {
            Some(reason) => rtcp::bye(&report, "millpond", reason),
            None => report.to_bytes("millpond"),
        };
        if let Some(protection) = &mut self.protection {
            protection.seal_reports(&mut bytes).ok()?;
        }
        Some(bytes)
    }

    /// Decrypts the reports of the track's receiver, if they are encrypted. `None` if the reports are not from this receiver.
    pub(super) fn open<'a>(&mut self, packet: &'a mut [u8]) -> Option<&'a [u8]> {
        match &mut self.protection {
            Some(protection) => protection.open_reports(packet),
            None => Some(packet),
        }
    }

    /// Takes a compound of its receiver's RTCP packets.
    pub(crate) fn hear(&mut self, packet: &mut [u8], now: SystemTime, counters: &Counters) {
        let reports = self.open(packet).and_then(|packet| rtcp::parse(packet).ok()).unwrap_or_default();
        for report in reports {
            if let RtcpItem::Reception(reception) = report
                && reception.ssrc == self.ssrc
            {
                self.count(&reception, now, counters);
            }
        }
    }

    /// Counts a report of its receiver.
    pub(super) fn count(&mut self, reception: &ReportBlock, now: SystemTime, counters: &Counters) {
        let lost = u64::try_from(reception.lost.saturating_sub(self.lost)).unwrap_or(0);
        self.lost = reception.lost.max(self.lost);
        let round_trip = reception.round_trip((ntp(now) >> 16) as u32).map(Duration::from_secs_f64);
        counters.report(lost, seconds(reception.jitter.into(), self.clock), round_trip);
    }
}

/// NTP time: seconds since 1900 in 32.32 bits.
#[must_use]
pub fn ntp(now: SystemTime) -> u64 {
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = since.as_secs().wrapping_add(NTP_TO_UNIX) & 0xffff_ffff;
    (seconds << 32) | ((u64::from(since.subsec_nanos()) << 32) / 1_000_000_000)
}
