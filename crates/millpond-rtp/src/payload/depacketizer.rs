//! Packets put together to access units.

use super::{
    PayloadError,
    aac::AacJoin,
    ac3::{Ac3Join, Eac3Join},
    av1::Av1Join,
    building::{Building, Join, Progress, Start},
    mpa::MpaJoin,
    nal::{Avc, Hevc, NalJoin},
    opus::OpusJoin,
    pcm::{Pcm, PcmJoin},
    vpx::{Vp8Join, Vp9Join},
};
use crate::{packet::Header, payload::Packetizer, sdp_reader::MediaDescription};
use bytes::Bytes;

/// The most bytes of a unit, unless another bound is set.
pub const MOST_UNIT_BYTES: usize = 16 * 1024 * 1024;

/// An access unit, as it lies in a sample of an MP4 file; PCM with its most significant byte first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// In ticks of the payload's clock, and wraps.
    pub timestamp: u32,
    /// Whether something between the unit before and this one was lost.
    pub lost_before: bool,
    /// Its bytes.
    pub bytes: Bytes,
}

/// Puts the packets of one stream together: the other direction of [`Packetizer`].
///
/// Each packet goes to [`push`](Depacketizer::push) in the order of sequence numbers; one that comes after its turn is
/// passed over, as its unit has been given up then. Where numbers are missing, units that they may have been part of
/// are dropped: what comes out is whole. At the end of the stream [`finish`](Depacketizer::finish) gives the last unit
/// of a sender that doesn't mark ends. A stream that goes on elsewhere (a seek, another source) needs a new
/// depacketizer.
#[derive(Debug)]
pub struct Depacketizer {
    format: Box<dyn Join>,
    unit: Building,
    at: At,
    /// The sequence number to come.
    next: Option<u16>,
    /// Whether the unit before ended with a marker, so that a missing end is known to have had one.
    marks: Option<bool>,
    /// Something was lost since the last unit that came out.
    lost: bool,
    dropped: u64,
}

/// Where the stream stands.
#[derive(Clone, Copy, Debug)]
enum At {
    /// Between units. Whether the next packet is surely the first one of its unit.
    Between { sure: bool },
    /// In a unit with this timestamp.
    Within(u32),
    /// In a unit that is given up: nothing with this timestamp is of use.
    Broken(u32),
}

impl Depacketizer {
    /// For packets that a packetizer made, or could have made. The first packet is taken to be the first one of a unit,
    /// unless it says otherwise; see [`starting_at`](Depacketizer::starting_at).
    #[must_use]
    pub fn new(format: Packetizer) -> Self {
        let format: Box<dyn Join> = match format {
            Packetizer::Avc(length_size) => Box::new(NalJoin::<Avc>::new(length_size)),
            Packetizer::Hevc(length_size) => Box::new(NalJoin::<Hevc>::new(length_size)),
            Packetizer::Av1 => Box::new(Av1Join::default()),
            Packetizer::Vp8 => Box::new(Vp8Join),
            Packetizer::Vp9 => Box::new(Vp9Join),
            Packetizer::Aac => Box::new(AacJoin::default()),
            Packetizer::Mpa => Box::new(MpaJoin::default()),
            Packetizer::Opus => Box::new(OpusJoin),
            Packetizer::Ac3 => Box::new(Ac3Join::default()),
            Packetizer::Eac3 => Box::new(Eac3Join::default()),
            Packetizer::Pcm(pcm) => Box::new(PcmJoin(pcm)),
        };
        Self::with(format)
    }

    /// For a stream as its description has it; NAL units get lengths of four bytes.
    ///
    /// # Errors
    /// Its packets are of a format or a mode that isn't read.
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
            "mpa" => Packetizer::Mpa,
            "opus" => Packetizer::Opus,
            "ac3" => Packetizer::Ac3,
            "eac3" => Packetizer::Eac3,
            other => match Pcm::named(other, stream.channels.unwrap_or(1)) {
                Some(pcm) => Packetizer::Pcm(pcm),
                None => return Err(unread("a=rtpmap", other, "a payload format that is read")),
            },
        }))
    }

    fn with(format: Box<dyn Join>) -> Self {
        Self {
            format,
            unit: Building::new(MOST_UNIT_BYTES),
            at: At::Between { sure: true },
            next: None,
            marks: None,
            lost: false,
            dropped: 0,
        }
    }

    /// The first sequence number, as RTSP tells it (RFC 2326 12.33): when the first packets are lost, that is found
    /// out.
    #[must_use]
    pub fn starting_at(self, sequence: u16) -> Self {
        Self { next: Some(sequence), ..self }
    }

    /// Another bound than [`MOST_UNIT_BYTES`].
    #[must_use]
    pub fn with_most_bytes(mut self, most: usize) -> Self {
        self.unit.most(most);
        self
    }

    /// Units that were given up because a part of them was lost or could not be read. Units of which nothing came are
    /// not among them.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Takes a packet; units that it completes are added to `units`.
    ///
    /// # Errors
    /// The payload is not what its format says, or its unit gets too large. That unit is given up; what follows can be
    /// read.
    pub fn push(&mut self, header: &Header, payload: &[u8], units: &mut Vec<Unit>) -> Result<(), PayloadError> {
        let Some(skipped) = self.skipped(header.sequence) else { return Ok(()) };
        self.lost |= skipped > 0;
        self.turn(header.timestamp, skipped, units);
        let result = self.add(header, payload, units);
        if result.is_err() {
            self.give_up();
            self.at = At::Broken(header.timestamp);
        }
        if header.marker && self.format.marks_ends() {
            self.marked(units);
        }
        result
    }

    /// Gives the last unit of a stream that has ended, where the sender marks no ends and only the next unit would have
    /// shown that this one is complete. Whether its end was lost can't be known then.
    pub fn finish(&mut self, units: &mut Vec<Unit>) {
        if let At::Within(timestamp) = self.at {
            // Otherwise the end is missing: it has a mark, or the format tells when it comes.
            let unmarked = self.marks == Some(false) && self.format.marks_ends();
            if unmarked { self.end(timestamp, units) } else { self.give_up() }
        }
        self.at = At::Between { sure: true };
    }

    /// How many numbers are missing before this one; nothing when its turn is over.
    fn skipped(&mut self, sequence: u16) -> Option<u16> {
        let skipped = sequence.wrapping_sub(self.next.unwrap_or(sequence));
        if skipped >= 1 << 15 {
            return None;
        }
        self.next = Some(sequence.wrapping_add(1));
        Some(skipped)
    }

    /// What a packet's place in the stream says of the unit before.
    fn turn(&mut self, timestamp: u32, skipped: u16, units: &mut Vec<Unit>) {
        // With one packet missing, and the mark of the unit before missing too, it is that: this one begins a unit.
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
                (Start::Yes, _) | (Start::Unknown, true) => {
                    self.format.forget();
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

    /// The unit ends with this packet.
    fn marked(&mut self, units: &mut Vec<Unit>) {
        if let At::Within(timestamp) = self.at {
            self.end(timestamp, units);
        }
        self.marks = Some(true);
        self.at = At::Between { sure: true };
    }

    fn end(&mut self, timestamp: u32, units: &mut Vec<Unit>) {
        if self.format.is_whole(&self.unit) {
            self.unit.close(0);
            self.give(timestamp, units);
        } else {
            self.give_up();
        }
    }

    fn give(&mut self, timestamp: u32, units: &mut Vec<Unit>) {
        let lost = &mut self.lost;
        units.extend(self.unit.done().map(|(bytes, after)| Unit {
            timestamp: timestamp.wrapping_add(after),
            lost_before: std::mem::take(lost),
            bytes: bytes.into(),
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
