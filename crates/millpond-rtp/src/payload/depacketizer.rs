//! Joins packets to access units.

use super::{
    PayloadError,
    aac::AacJoin,
    ac3::{Ac3Join, Eac3Join},
    av1::Av1Join,
    building::{Building, Content, Continues, Join, Progress, Start},
    latm::LatmJoin,
    mpa::MpaJoin,
    nal::{Avc, Hevc, NalJoin},
    opus::OpusJoin,
    pcm::{Pcm, PcmJoin},
    vpx::{Vp8Join, Vp9Join},
};
use crate::{packet::Header, payload::Packetizer, sdp_reader::MediaDescription};
use bytes::Bytes;
use millpond_media::Importance;

/// Default limit on the size of a unit, in bytes.
pub const MOST_UNIT_BYTES: usize = 16 * 1024 * 1024;

/// An access unit in the form of MP4 samples; PCM is big-endian.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// Timestamp in ticks of the payload's clock; it wraps.
    pub timestamp: u32,
    /// Whether packets between the last unit and this one were lost.
    pub lost_before: bool,
    /// Whether decoding can begin here, given parameter sets.
    pub is_key: bool,
    /// How far later frames depend on the unit, if its payload descriptors state this, as in VP8 and VP9.
    pub importance: Option<Importance>,
    /// H.264 and HEVC parameter sets in the unit, as NAL units without lengths. They are in `bytes` too. For AAC in LATM its
    /// `AudioSpecificConfig`, which is not.
    pub parameter_sets: Vec<Bytes>,
    /// Bytes of the unit.
    pub bytes: Bytes,
}

/// Joins the packets of one stream: the inverse of [`Packetizer`].
///
/// Pass each packet to [`push`](Depacketizer::push) in the order of sequence numbers. A late packet is ignored, because its unit
/// has been dropped. If sequence numbers are missing, all units that may have contained these packets are dropped. So every
/// returned unit is whole. An H.264 or HEVC picture after missing packets may lack NAL units before its first slice. It never
/// lacks a kind of NAL unit with which the sender always begins such pictures. At the end of the stream,
/// [`finish`](Depacketizer::finish) returns the last unit of a sender that doesn't mark ends. If the stream continues elsewhere,
/// call [`restart`](Depacketizer::restart).
#[derive(Debug)]
pub struct Depacketizer {
    format: Box<dyn Join>,
    unit: Building,
    at: At,
    /// Whether the unit certainly has its first packet.
    is_begun: bool,
    /// Next sequence number.
    next: Option<u16>,
    /// Whether the last unit ended with a marker, which shows whether a missing packet had one.
    marks: Option<bool>,
    /// Whether the sender marks each slice of a picture, so that markers end no unit.
    marks_slices: bool,
    /// Timestamp and bytes of the last unit that a marker has ended, until a packet of another time.
    ended: Option<(u32, Bytes)>,
    /// Whether packets were lost since the last unit was returned.
    lost: bool,
    dropped: u64,
}

/// Position in the stream.
#[derive(Clone, Copy, Debug)]
enum At {
    /// Between units. `sure` is whether the next packet certainly begins a unit.
    Between { sure: bool },
    /// Inside a unit with this timestamp.
    Within(u32),
    /// Inside a dropped unit: all packets with this timestamp are ignored.
    Broken(u32),
}

impl Depacketizer {
    /// Creates a depacketizer for packets of a [`Packetizer`] or a compatible sender. The first packet counts as the
    /// first one of a unit, unless its payload shows otherwise; see [`starting_at`](Depacketizer::starting_at).
    #[must_use]
    pub fn new(format: Packetizer) -> Self {
        let format: Box<dyn Join> = match format {
            Packetizer::Avc(length_size) => Box::new(NalJoin::<Avc>::new(length_size)),
            Packetizer::Hevc(length_size) => Box::new(NalJoin::<Hevc>::new(length_size)),
            Packetizer::Av1 => Box::new(Av1Join::default()),
            Packetizer::Vp8 => Box::new(Vp8Join::default()),
            Packetizer::Vp9 => Box::new(Vp9Join::default()),
            Packetizer::Aac => Box::new(AacJoin::default()),
            Packetizer::Mpa => Box::new(MpaJoin::default()),
            Packetizer::Opus => Box::new(OpusJoin),
            Packetizer::Ac3 => Box::new(Ac3Join::default()),
            Packetizer::Eac3 => Box::new(Eac3Join::default()),
            Packetizer::Pcm(pcm) => Box::new(PcmJoin(pcm)),
        };
        Self::with(format)
    }

    /// Creates a depacketizer for a stream of a session description. NAL units get lengths of four bytes.
    ///
    /// # Errors
    /// The format of its packets, or its mode, is not supported.
    pub fn of(stream: &MediaDescription) -> Result<Self, PayloadError> {
        let parameter = |name: &str| stream.parameters.get(name).map_or("", String::as_str);
        let unread =
            |name: &'static str, found: &str, expected| PayloadError::Mode { name, found: found.into(), expected };
        let is = |name: &'static str, among: &[&str], expected| match parameter(name) {
            found if among.iter().any(|one| found.eq_ignore_ascii_case(one)) => Ok(()),
            found => Err(unread(name, found, expected)),
        };
        Ok(Self::new(match stream.encoding.as_str() {
            "h264" => {
                is("packetization-mode", &["", "0", "1"], "0 or 1, not interleaved (RFC 6184 8.1)")?;
                Packetizer::Avc(4)
            }
            "h265" => {
                is("sprop-max-don-diff", &["", "0"], "0, in the order of decoding (RFC 7798 7.1)")?;
                Packetizer::Hevc(4)
            }
            "av1" => Packetizer::Av1,
            "vp8" => Packetizer::Vp8,
            "vp9" => Packetizer::Vp9,
            "mpeg4-generic" => {
                is("mode", &["AAC-hbr"], "AAC-hbr (RFC 3640 3.3.6)")?;
                is("sizelength", &["13"], "13 (RFC 3640 3.3.6)")?;
                is("indexlength", &["3"], "3 (RFC 3640 3.3.6)")?;
                is("indexdeltalength", &["3"], "3 (RFC 3640 3.3.6)")?;
                let duration = parameter("constantduration").parse().ok().filter(|ticks| *ticks > 0);
                return Ok(Self::with(Box::new(duration.map_or_else(AacJoin::default, AacJoin::new))));
            }
            "mp4a-latm" => return Ok(Self::with(Box::new(LatmJoin::of(stream)?))),
            "mpa" => Packetizer::Mpa,
            "opus" => Packetizer::Opus,
            "ac3" => Packetizer::Ac3,
            "eac3" => Packetizer::Eac3,
            other => match Pcm::named(other, stream.channels.unwrap_or(1)) {
                Some(pcm) => Packetizer::Pcm(pcm),
                None => return Err(unread("a=rtpmap", other, "a supported payload format")),
            },
        }))
    }

    fn with(format: Box<dyn Join>) -> Self {
        Self {
            format,
            unit: Building::new(MOST_UNIT_BYTES),
            at: At::Between { sure: true },
            is_begun: true,
            next: None,
            marks: None,
            marks_slices: false,
            ended: None,
            lost: false,
            dropped: 0,
        }
    }

    /// Sets the first sequence number, as stated by RTSP (RFC 2326 12.33), so that the loss of the first packets is
    /// detected.
    #[must_use]
    pub fn starting_at(mut self, sequence: u16) -> Self {
        self.expect(sequence);
        self
    }

    /// Sets the next sequence number, before the first packet.
    pub(crate) fn expect(&mut self, sequence: u16) {
        self.next = Some(sequence);
    }

    /// Takes note of a packet that contains nothing of the stream: it is not missing.
    pub(crate) fn pass(&mut self, sequence: u16) {
        if self.next == Some(sequence) {
            self.next = Some(sequence.wrapping_add(1));
        }
    }

    /// Sets another limit than [`MOST_UNIT_BYTES`].
    #[must_use]
    pub fn with_most_bytes(mut self, most: usize) -> Self {
        self.unit.most(most);
        self
    }

    /// Number of units dropped because a packet of them was lost or unreadable. Units of which no packet arrived are
    /// not counted.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Takes a packet, and appends the units that it completes to `units`.
    ///
    /// # Errors
    /// The payload violates its format, or its unit is too large. That unit is dropped; later ones can be read.
    pub fn push(&mut self, header: &Header, payload: &[u8], units: &mut Vec<Unit>) -> Result<(), PayloadError> {
        let Some(skipped) = self.skipped(header.sequence) else { return Ok(()) };
        self.lost |= skipped > 0;
        self.turn(header.timestamp, skipped, units);
        // Packets without a payload fill up a connection, or keep it open.
        let result = if payload.is_empty() {
            Ok(())
        } else {
            self.resume(header.timestamp, skipped, payload);
            self.add(header, payload, units)
        };
        if result.is_err() {
            self.give_up();
            self.at = At::Broken(header.timestamp);
        }
        if header.marker && self.format.marks_ends() && !self.marks_slices {
            self.marked(units);
        }
        result
    }

    /// Returns the last unit of an ended stream whose sender marks no ends, so that only the next unit would have shown
    /// that it is complete. A loss at its end can't be detected.
    pub fn finish(&mut self, units: &mut Vec<Unit>) {
        if let At::Within(timestamp) = self.at {
            // Otherwise the end is missing: it has a mark, or the format shows it.
            let unmarked = self.marks == Some(false) && self.format.marks_ends();
            if unmarked { self.end(timestamp, units) } else { self.give_up() }
        }
        self.at = At::Between { sure: true };
    }

    /// Continues at another position, with any sequence number, such as after a restart of the source. The unit under
    /// construction is dropped. A first unit whose beginning is uncertain is dropped too.
    pub fn restart(&mut self) {
        if let At::Within(_) = self.at {
            self.give_up();
        }
        self.lost = true;
        self.next = None;
        self.ended = None;
        self.at = At::Between { sure: false };
    }

    /// Goes on with a unit that a marker has ended too early, where a packet belongs to it. The unit is then given again.
    fn resume(&mut self, timestamp: u32, skipped: u16, payload: &[u8]) {
        let Some((ended, bytes)) = self.ended.take() else { return };
        if ended != timestamp || skipped > 0 || !matches!(self.at, At::Between { .. }) {
            return;
        }
        match self.format.continues(&bytes, payload) {
            Continues::No => return self.ended = Some((ended, bytes)),
            Continues::Precedes => {}
            Continues::Slices => self.marks_slices = true,
        }
        self.format.forget();
        self.unit.forget();
        // It was no larger than a unit may be.
        self.unit.bytes = bytes.into();
        self.is_begun = true;
        self.at = At::Within(timestamp);
    }

    /// Returns how many sequence numbers are missing before this one; `None` for a late packet.
    fn skipped(&mut self, sequence: u16) -> Option<u16> {
        let skipped = sequence.wrapping_sub(self.next.unwrap_or(sequence));
        if skipped >= 1 << 15 {
            return None;
        }
        self.next = Some(sequence.wrapping_add(1));
        Some(skipped)
    }

    /// Updates the state before a packet, given its timestamp and the packets missing before it.
    fn turn(&mut self, timestamp: u32, skipped: u16, units: &mut Vec<Unit>) {
        // One missing packet, and a missing mark of the last unit, are the same packet: this packet begins a unit.
        let sure = skipped == 0 || skipped == 1 && self.marks == Some(true);
        match self.at {
            At::Within(before) if before == timestamp && skipped > 0 => {
                self.give_up();
                self.at = At::Broken(timestamp);
            }
            At::Within(before) if before != timestamp => {
                if skipped == 0 {
                    self.marks = Some(false);
                    self.end(before, units);
                } else {
                    self.give_up();
                }
                self.at = At::Between { sure };
            }
            At::Broken(before) if before != timestamp => self.at = At::Between { sure },
            At::Between { sure: before } => self.at = At::Between { sure: before && skipped == 0 },
            At::Within(_) | At::Broken(_) => {}
        }
    }

    fn add(&mut self, header: &Header, payload: &[u8], units: &mut Vec<Unit>) -> Result<(), PayloadError> {
        if let At::Between { sure } = self.at {
            match (self.format.start(payload)?, sure) {
                (start @ (Start::Yes | Start::Later), sure) | (start @ Start::Unknown, sure @ true) => {
                    self.format.forget();
                    self.is_begun = sure || start == Start::Yes;
                    self.at = At::Within(header.timestamp);
                }
                (Start::No, _) | (Start::Unknown, false) => {
                    self.give_up();
                    self.at = At::Broken(header.timestamp);
                }
            }
        }
        if let At::Within(timestamp) = self.at
            && self.format.join(payload, &mut self.unit)? == Progress::Closed
        {
            self.marks = Some(header.marker);
            self.give(timestamp, units);
            self.at = At::Between { sure: true };
        }
        Ok(())
    }

    /// Completes the unit, which ends with this packet.
    fn marked(&mut self, units: &mut Vec<Unit>) {
        if let At::Within(timestamp) = self.at {
            let before = units.len();
            self.end(timestamp, units);
            self.ended = units.get(before..).and_then(<[Unit]>::last).map(|unit| (timestamp, unit.bytes.clone()));
        }
        self.marks = Some(true);
        self.at = At::Between { sure: true };
    }

    fn end(&mut self, timestamp: u32, units: &mut Vec<Unit>) {
        if self.is_begun {
            self.format.learn(&self.unit);
        }
        let has_beginning = self.is_begun || self.format.has_beginning(&self.unit);
        if has_beginning && self.format.finish(&mut self.unit) {
            self.give(timestamp, units);
        } else {
            self.give_up();
        }
    }

    fn give(&mut self, timestamp: u32, units: &mut Vec<Unit>) {
        let (lost, format) = (&mut self.lost, &self.format);
        units.extend(self.unit.done().map(|(bytes, after)| {
            let bytes = Bytes::from(bytes);
            let Content { is_key, importance, parameter_sets } = format.content(&bytes);
            let lost_before = std::mem::take(lost);
            Unit { timestamp: timestamp.wrapping_add(after), lost_before, is_key, importance, parameter_sets, bytes }
        }));
    }

    fn give_up(&mut self) {
        self.unit.forget();
        self.format.forget();
        self.lost = true;
        self.dropped += 1;
    }
}

#[cfg(test)]
mod tests;
