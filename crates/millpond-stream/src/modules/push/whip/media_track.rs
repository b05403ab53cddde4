//! A track that is sent: its packets, encrypted, and those that are sent again.

use super::sent_packets::{Retransmission, SentPackets};
use crate::{Format, Frame, modules::push::rtp_track::RtpTrack};
use millpond_rtp::{packet::HEADER, rtcp, rtx, sdp_writer::Described, srtp::Protector};
use millpond_webrtc::{SrtpKeys, sdp::AcceptedFormat};
use std::time::{Duration, Instant, SystemTime};

/// Most bytes of a packet: it fits any path of the internet with a tunnel's headers.
const PACKET: usize = 1200;

/// A track that is sent.
pub(super) struct MediaTrack {
    packets: RtpTrack,
    protector: Protector,
    sent: SentPackets,
    /// The latest presentation time of the frames that were sent, in ticks of the track.
    shown: Option<i64>,
}

impl MediaTrack {
    /// A track before its first packet. `described` is its format, the SSRCs were offered, and `accepted` was chosen.
    pub(super) fn new(
        (track, described): (u16, &Described<'_>),
        (ssrc, repeat_ssrc): (u32, u32),
        accepted: AcceptedFormat,
        keys: &SrtpKeys,
    ) -> Self {
        let AcceptedFormat { payload_type, repeat_type } = accepted;
        let protector = Protector::new(&keys.sent);
        let longest = PACKET - HEADER - rtx::ORIGINAL - protector.suite().tag_length();
        let described = Described { payload_type, ..*described };
        let packets = RtpTrack::new(track, &described).encrypted(ssrc, longest);
        let retransmission =
            repeat_type.map(|number| Retransmission::new(number, repeat_ssrc, Protector::new(&keys.sent)));
        Self { packets, protector, sent: SentPackets::new(retransmission), shown: None }
    }

    /// Index in the formats of the feed.
    pub(super) fn track(&self) -> u16 {
        self.packets.track
    }

    /// SSRC of its packets.
    pub(super) fn ssrc(&self) -> u32 {
        self.packets.ssrc()
    }

    /// Goes on with the format of another epoch. Returns whether its receiver can follow.
    pub(super) fn adopt(&mut self, format: Option<&Format>) -> bool {
        self.packets.adopt(format)
    }

    /// Gives the packets of a frame to `send`. A frame that shows before one that was sent is left out: players of WebRTC decode no
    /// B-frames.
    pub(super) fn packets(&mut self, frame: &Frame, now: Instant, mut send: impl FnMut(Vec<u8>)) {
        if !frame.is_sync && self.shown.is_some_and(|shown| frame.pts < shown) {
            return;
        }
        self.shown = Some(frame.pts);
        let Self { packets, protector, sent, .. } = self;
        packets.packets(frame, |parts| {
            let plain = parts.concat();
            let mut packet = Vec::with_capacity(plain.len() + protector.suite().tag_length());
            packet.extend_from_slice(&plain);
            let &[_, _, high, low, ..] = &plain[..] else { return };
            // An error is that of a key that is used up, after 2^48 packets.
            if protector.rtp(&mut packet, 0).is_ok() {
                sent.push(u16::from_be_bytes([high, low]), (&plain, &packet), now);
                send(packet);
            }
        });
    }

    /// Returns what repeats a packet.
    pub(super) fn repeat(&mut self, sequence: u16, now: Instant) -> Option<Vec<u8>> {
        self.sent.repeat(sequence, now)
    }

    /// The report that is due, encrypted. `position` is the time of the stream that is now.
    pub(super) fn report(&mut self, position: Duration, now: (Instant, SystemTime), cname: &str) -> Option<Vec<u8>> {
        let pts = self.packets.ticks(position);
        let mut compound = self.packets.report(pts, now)?.to_bytes(cname);
        self.protector.rtcp(&mut compound, 0).ok()?;
        Some(compound)
    }

    /// The last report, encrypted, which says that the track ends (RFC 3550 6.6).
    pub(super) fn bye(&mut self, position: Duration, wall: SystemTime, cname: &str) -> Option<Vec<u8>> {
        let pts = self.packets.ticks(position);
        let mut compound = rtcp::bye(&self.packets.summary(pts, wall), cname, "");
        self.protector.rtcp(&mut compound, 0).ok()?;
        Some(compound)
    }
}
