//! One track of a session.

use crate::{
    Format,
    reception::{
        assembly::Assembly,
        format::StreamFormat,
        rtsp::{key_frames::KeyFrames, tracks::Chosen},
    },
    source_health::SourceCounts,
};
use bytes::Bytes;
use millpond_rtp::{
    client::{ClientTrack, RtpStart, TrackTransport},
    feedback::PictureLoss,
    payload::{PayloadError, Unit},
    receive::{ReorderLimits, TrackReceiver},
    rtcp::{self, RtcpItem, SenderReport},
    setup::RtpProfile,
};
use std::{collections::VecDeque, time::Duration};

/// Name of the receiver in reports (RFC 3550 6.5.1).
const CNAME: &str = "millpond";
/// Most sender reports that are kept of sources that are not followed yet.
const MOST_EARLY: usize = 4;

/// Receives one track, and knows its format.
#[derive(Debug)]
pub(in crate::reception) struct SessionTrack {
    track: u16,
    /// Name of the payload format, for the log.
    encoding: String,
    transport: TrackTransport,
    receiver: TrackReceiver,
    /// Source of the reports.
    ssrc: u32,
    format: StreamFormat,
    /// Whether units were lost before the next frame.
    is_broken: bool,
    has_ended: bool,
    has_warned: bool,
    /// Whether it has given a unit.
    is_heard: bool,
    is_video: bool,
    /// Source whose sender reports were passed on.
    reported: Option<u32>,
    /// Sender reports of sources that were not followed: publishers send them before the first packet.
    early: VecDeque<SenderReport>,
    /// `None` where the sender takes no requests for key frames.
    key_frames: Option<KeyFrames>,
}

impl SessionTrack {
    /// Creates a track.
    ///
    /// # Errors
    /// The payload format is not supported.
    pub(in crate::reception) fn new(
        chosen: Chosen,
        agreed: &ClientTrack,
        limits: ReorderLimits,
        now: Duration,
    ) -> Result<Self, PayloadError> {
        let Chosen { track, format, description, .. } = chosen;
        let is_unicast = matches!(agreed.transport, TrackTransport::Unicast { .. });
        let offer = description.feedback.retransmission.filter(|_| is_unicast && agreed.profile == RtpProfile::Avpf);
        let receiver = TrackReceiver::new(&description, agreed.ssrc, limits, now)?;
        Ok(Self {
            track,
            transport: agreed.transport,
            receiver: match offer {
                Some(offer) => receiver.with_retransmission(&offer),
                None => receiver,
            },
            ssrc: fastrand::u32(..),
            format,
            is_broken: false,
            has_ended: false,
            has_warned: false,
            is_heard: false,
            is_video: description.media == "video",
            reported: None,
            early: VecDeque::new(),
            key_frames: None,
            encoding: description.encoding,
        })
    }

    /// Asks for key frames from now on, as senders of WebRTC expect it.
    pub(in crate::reception) fn ask_for_key_frames(&mut self, now: Duration) {
        self.key_frames = self.is_video.then(|| KeyFrames::of_publisher(now));
    }

    /// Asks as seldom as a server expects it.
    pub(in crate::reception) fn ask_as_of_a_server(&mut self) {
        self.key_frames = self.key_frames.take().map(KeyFrames::of_server);
    }

    /// Takes the announced first packet.
    pub(in crate::reception) fn begin(&mut self, start: &RtpStart, assembly: &mut Assembly) {
        if let Some(sequence) = start.sequence {
            self.receiver.begin(sequence);
        }
        if let Some(timestamp) = start.timestamp {
            assembly.start(self.track, timestamp);
        }
    }

    pub(in crate::reception) fn rtp(
        &mut self,
        packet: &Bytes,
        now: Duration,
        (units, assembly): (&mut Vec<Unit>, &mut Assembly),
    ) {
        self.receiver.rtp(packet, now, units);
        self.has_ended = false;
        if self.receiver.ssrc() != self.reported {
            self.follow(assembly);
        }
        self.warn(assembly);
    }

    /// Takes note of the source that is followed: of another one than before, pictures refer to others that nobody has.
    fn follow(&mut self, assembly: &mut Assembly) {
        let before = std::mem::replace(&mut self.reported, self.receiver.ssrc());
        if before.is_some() {
            assembly.await_key(self.track);
        }
        for report in std::mem::take(&mut self.early) {
            if Some(report.ssrc) == self.reported {
                assembly.sender_report(self.track, &report);
            }
        }
    }

    /// Tells the first violation of the payload format, and packets of a payload type that is not described. A source that goes on
    /// like this must not fill the log.
    fn warn(&mut self, assembly: &mut Assembly) {
        if let Some((found, described)) = self.receiver.other_payload() {
            let track = self.track;
            assembly.name(format!(
                "packets left out: track {track} has payload type {found}, the description says {described}"
            ));
        }
        if let Some(problem) = self.receiver.problem()
            && !self.has_warned
        {
            self.has_warned = true;
            let highest = self.receiver.statistics().highest();
            tracing::warn!(track = self.track, encoding = %self.encoding, highest, %problem, "invalid packet");
        }
    }

    pub(in crate::reception) fn rtcp(&mut self, packet: &[u8], now: Duration, assembly: &mut Assembly) {
        // Packets that are not RTCP are ignored: some servers fill that channel with data of their own.
        for item in self.receiver.rtcp(packet, now).unwrap_or_default() {
            match item {
                RtcpItem::Sender(report) if self.receiver.ssrc() == Some(report.ssrc) => {
                    assembly.sender_report(self.track, &report);
                }
                RtcpItem::Sender(report) => {
                    if self.early.len() == MOST_EARLY {
                        self.early.pop_front();
                    }
                    self.early.push_back(report);
                }
                RtcpItem::Bye(sources) => {
                    self.has_ended |= self.receiver.ssrc().is_some_and(|ssrc| sources.contains(&ssrc));
                }
                RtcpItem::Reception(_) | RtcpItem::Nack(_) | RtcpItem::KeyFrame => {}
            }
        }
    }

    pub(in crate::reception) fn tick(&mut self, now: Duration, units: &mut Vec<Unit>) {
        self.receiver.tick(now, units);
    }

    /// Returns the requests for lost packets and for a key frame that are due, if any.
    pub(in crate::reception) fn feedback(&mut self, now: Duration) -> Option<Vec<u8>> {
        let packets = self.receiver.feedback(self.ssrc, CNAME, now);
        let Some(source) = self.receiver.ssrc() else { return packets };
        if !self.key_frames.as_mut().is_some_and(|frames| frames.ask(now)) {
            return packets;
        }
        let mut compound = packets.unwrap_or_else(|| rtcp::receiver_report(self.ssrc, &[], CNAME));
        PictureLoss { sender: self.ssrc, source }.append_to(&mut compound);
        Some(compound)
    }

    /// See [`TrackReceiver::requested`].
    pub(in crate::reception) fn requested(&mut self, took: Duration) {
        self.receiver.requested(took);
    }

    /// See [`TrackReceiver::hold`].
    pub(in crate::reception) fn hold(&mut self, now: Duration) -> Duration {
        self.receiver.hold(now)
    }

    /// See [`TrackReceiver::hold_at_least`].
    pub(in crate::reception) fn hold_at_least(&mut self, hold: Duration) {
        self.receiver.hold_at_least(hold);
    }

    pub(in crate::reception) fn wake(&self) -> Option<Duration> {
        // Without a source nobody can be asked.
        let key_frames = self.key_frames.as_ref().filter(|_| self.receiver.ssrc().is_some());
        self.receiver.wake().into_iter().chain(key_frames.map(KeyFrames::next)).min()
    }

    /// Reads the parameter sets of a unit, and removes the sets that its format has. Returns whether the format became known or
    /// changed with this unit, and the unit, unless nothing is left of it.
    pub(in crate::reception) fn sift(&mut self, mut unit: Unit, now: Duration) -> (bool, Option<Unit>) {
        self.is_heard = true;
        if let Some(frames) = &mut self.key_frames {
            frames.frame(unit.is_key, unit.lost_before, now);
        }
        let is_changed = self.format.unit(&mut unit, now);
        self.is_broken |= unit.lost_before;
        if unit.bytes.is_empty() {
            return (is_changed, None);
        }
        unit.lost_before = std::mem::take(&mut self.is_broken);
        (is_changed, Some(unit))
    }

    /// Returns a receiver report.
    pub(in crate::reception) fn report(&mut self, now: Duration) -> Vec<u8> {
        self.receiver.report(self.ssrc, CNAME, now)
    }

    pub(in crate::reception) fn has_channel(&self, channel: u8) -> bool {
        matches!(self.transport, TrackTransport::Interleaved { channels: (rtp, rtcp) } if channel == rtp || channel == rtcp)
    }

    pub(in crate::reception) fn is_rtcp_channel(&self, channel: u8) -> bool {
        matches!(self.transport, TrackTransport::Interleaved { channels: (rtp, rtcp) } if channel == rtcp && rtp != rtcp)
    }

    /// Index of the track in the stream's formats.
    pub(in crate::reception) fn track(&self) -> u16 {
        self.track
    }

    pub(in crate::reception) fn transport(&self) -> TrackTransport {
        self.transport
    }

    pub(in crate::reception) fn format(&self) -> Option<&Format> {
        self.format.format()
    }

    pub(in crate::reception) fn has_format(&self) -> bool {
        self.format().is_some()
    }

    pub(in crate::reception) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Whether it has given a unit.
    pub(in crate::reception) fn is_heard(&self) -> bool {
        self.is_heard
    }

    pub(in crate::reception) fn is_video(&self) -> bool {
        self.is_video
    }

    /// Returns the counts of packets and frames so far.
    pub(in crate::reception) fn counts(&self) -> SourceCounts {
        let (statistics, counts, repairs) =
            (self.receiver.statistics(), self.receiver.counts(), self.receiver.repairs());
        SourceCounts {
            sessions: 0,
            packets: statistics.received(),
            lost_packets: self.receiver.skipped(),
            asked_packets: repairs.asked,
            repaired_packets: repairs.repaired,
            too_late_packets: repairs.too_late,
            reordered_packets: statistics.reordered(),
            unused_packets: counts.foreign + counts.other_payload + counts.invalid + counts.late + counts.broken,
            broken_frames: self.receiver.dropped(),
        }
    }
}
