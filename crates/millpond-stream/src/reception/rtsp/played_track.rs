//! One track of a stored title that a server plays.

use super::npt_clock::NptClock;
use crate::{Format, reception::format::StreamFormat};
use bytes::Bytes;
use millpond_rtp::{
    client::{ClientTrack, RtpStart, TrackTransport},
    payload::{PayloadError, Unit},
    receive::{ReorderLimits, TrackReceiver},
    rtcp::RtcpItem,
    sdp_reader::MediaDescription,
};
use std::time::Duration;

/// A frame of a stored title.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlayedFrame {
    /// Index of its track among those of the playback.
    pub(crate) track: usize,
    /// Presentation time from the beginning of the title, in ticks of the track.
    pub(crate) time: i64,
    /// Whether decoding can begin with it.
    pub(crate) is_key: bool,
    /// Its bytes as in the samples of an MP4 file.
    pub(crate) data: Bytes,
}

/// Receives one track on the connection.
#[derive(Debug)]
pub(super) struct PlayedTrack {
    index: usize,
    channels: (u8, u8),
    rate: u32,
    receiver: TrackReceiver,
    format: StreamFormat,
    /// `None` before the server plays.
    clock: Option<NptClock>,
    is_heard: bool,
    has_ended: bool,
    units: Vec<Unit>,
}

/// The reason why the frames of a track can't be those of the title.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// Packets are missing.
    Lost,
    /// The configuration of its decoder changed, at this second of the title.
    Changed(u64),
}

impl PlayedTrack {
    /// Creates the track of a stream that is set up.
    ///
    /// # Errors
    /// The payload format is not supported, or the server sends it by other ways than the connection.
    pub(super) fn new(
        index: usize,
        (description, format): (&MediaDescription, StreamFormat),
        agreed: &ClientTrack,
        now: Duration,
    ) -> Result<Option<Self>, PayloadError> {
        let TrackTransport::Interleaved { channels } = agreed.transport else { return Ok(None) };
        Ok(Some(Self {
            index,
            channels,
            rate: description.clock_rate,
            receiver: TrackReceiver::new(description, agreed.ssrc, ReorderLimits::IN_ORDER, now)?,
            format,
            clock: None,
            is_heard: false,
            has_ended: false,
            units: Vec::new(),
        }))
    }

    /// Notes the time from which the server plays, and its first packet.
    pub(super) fn begin(&mut self, from: f64, start: RtpStart) {
        self.clock = Some(NptClock::new(self.rate, from, start.timestamp));
    }

    /// Sets the ticks of the title for each tick of the timestamps.
    pub(super) fn set_factor(&mut self, factor: f64) {
        self.clock.iter_mut().for_each(|clock| clock.set_factor(factor));
    }

    /// Returns the time of a frame of this track in the title.
    pub(super) fn stretched(&self, time: i64) -> i64 {
        self.clock.as_ref().map_or(time, |clock| clock.stretched(time))
    }

    /// Returns whether a channel is one of the track's.
    pub(super) fn has_channel(&self, channel: u8) -> bool {
        channel == self.channels.0 || channel == self.channels.1
    }

    /// Takes a packet of a channel, and passes the frames that it completes to `take`.
    ///
    /// # Errors
    /// Frames before them are missing, or need another decoder.
    pub(super) fn packet(
        &mut self,
        channel: u8,
        packet: &Bytes,
        now: Duration,
        mut take: impl FnMut(PlayedFrame),
    ) -> Result<(), Fault> {
        if channel != self.channels.0 {
            self.rtcp(packet, now);
            return Ok(());
        }
        let Some(clock) = &mut self.clock else { return Ok(()) };
        self.has_ended = false;
        self.receiver.rtp(packet, now, &mut self.units);
        for mut unit in self.units.drain(..) {
            let is_known = self.format.format().is_some();
            if self.format.unit(&mut unit, now) && is_known {
                let at = clock.time(unit.timestamp);
                return Err(Fault::Changed(clock.stretched(at).max(0).unsigned_abs() / u64::from(self.rate.max(1))));
            }
            if std::mem::replace(&mut self.is_heard, true) && unit.lost_before {
                return Err(Fault::Lost);
            }
            let time = clock.time(unit.timestamp);
            if !unit.bytes.is_empty() && self.format.format().is_some() {
                take(PlayedFrame { track: self.index, time, is_key: unit.is_key, data: unit.bytes });
            }
        }
        Ok(())
    }

    fn rtcp(&mut self, packet: &[u8], now: Duration) {
        // Packets that are not RTCP are ignored, as in live streams.
        for item in self.receiver.rtcp(packet, now).unwrap_or_default() {
            if let RtcpItem::Bye(sources) = item {
                // No other sender has this channel. A server that has nothing to send may tell its identifier here only.
                self.has_ended |= self.receiver.ssrc().is_none_or(|ssrc| sources.contains(&ssrc));
            }
        }
    }

    /// Returns the channel of RTCP and a receiver report for it.
    pub(super) fn report(&mut self, ssrc: u32, now: Duration) -> (u8, Vec<u8>) {
        (self.channels.1, self.receiver.report(ssrc, "millpond", now))
    }

    /// Returns whether the server said that no packet follows.
    pub(super) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Returns the format; `None` while parameter sets or a first frame are missing.
    pub(super) fn format(&self) -> Option<&Format> {
        self.format.format()
    }
}
